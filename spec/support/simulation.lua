-- A script for spec/e2e/simulation_spec.lua: the website operator under faults. Under a seed it makes,
-- changes and deletes websites while requests fail, hang, are cut or refused and watches lose their
-- history; then the faults end, and what the operator made must be what the websites say, and stay so.
--
-- SIMULATION_PART=chaos: only the first half, for a process that is stopped in the middle of it; =end: only
-- the second, for the one that comes after it and finds what that left.
local kube = require "kube"
local sandbox = require "kube.sandbox"

local seed = tonumber(os.getenv("SIMULATION_SEED"))
local part = os.getenv("SIMULATION_PART")
local steps = part == "chaos" and math.huge or 40
math.randomseed(seed)
for _ = 1, 10 do math.random() end

local SITES, QUIET = 6, 0.3
local WEBSITES, DEPLOYMENTS = "example.com/v1/websites", "apps/v1/deployments"

local function pick(list) return list[math.random(#list)] end

-- A key must never be in two workers: the operator is loaded with a reconcile that looks.
local running, overlaps, runs = {}, 0, 0
local declare = kube.controller
local function guarded(fn)
  return fn and function(ctx, object)
    if running[ctx.key] then overlaps = overlaps + 1 end
    running[ctx.key] = true
    kube.defer(function() running[ctx.key] = nil end)
    runs = runs + 1
    return fn(ctx, object)
  end
end
local operator
rawset(kube, "controller", function(options)
  options.reconcile, options.finalize = guarded(options.reconcile), guarded(options.finalize)
  options.retry = { base = 0.002, max = 0.05 }
  operator = declare(options)
  return operator
end)
require "website"

local wanted = {} -- key -> { host, replicas, image }

local function site(name, spec)
  return { apiVersion = "example.com/v1", kind = "Website", spec = spec,
    metadata = { name = name, namespace = "default" } }
end

local function random_spec()
  return { host = pick { "a", "b", "c" } .. math.random(9) .. ".example.com", replicas = math.random(0, 3),
    image = "web:" .. math.random(9) }
end

-- Sends until it is done: the person at the keyboard is not what is tested here.
local function insist(verb, ...)
  for _ = 1, 2000 do
    local done, err = kube.client["try_" .. verb](kube.client, ...)
    if done then return done end
    if kube.is_not_found(err) or kube.is_already_exists(err) then return nil end
    kube.sleep(0.002)
  end
  error("the server never took " .. verb)
end

local acts = {
  function()
    local name = "s" .. math.random(SITES)
    if not wanted[name] then
      local spec = random_spec()
      if insist("create", site(name, spec)) then wanted[name] = spec end
    end
  end,
  function()
    local name = "s" .. math.random(SITES)
    local spec = random_spec()
    if wanted[name] and insist("patch", WEBSITES, "default/" .. name, { spec = spec }, { type = "merge" }) then
      wanted[name] = spec
    end
  end,
  function()
    local name = "s" .. math.random(SITES)
    if wanted[name] and insist("delete", WEBSITES, "default/" .. name) then wanted[name] = nil end
  end,
  -- Somebody else meddles with what the operator owns.
  function()
    local key = "default/s" .. math.random(SITES)
    insist("patch", DEPLOYMENTS, key, { spec = { replicas = math.random(5, 9) } }, { type = "merge" })
  end,
  function() insist("delete", pick { DEPLOYMENTS, "v1/services" }, "default/s" .. math.random(SITES)) end,
  -- The kubelet reports.
  function()
    local key = "default/s" .. math.random(SITES)
    local live = kube.client:try_get(DEPLOYMENTS, key)
    if live then
      local n = live.spec.replicas
      insist("patch", DEPLOYMENTS, key, { status = { readyReplicas = n, replicas = n } },
        { type = "merge", subresource = "status" })
    end
  end,
}

local faults = {
  function()
    sandbox.fault { verb = pick { "patch", "create", "update", "delete", "get", "list" }, count = math.random(3),
      status = pick { 500, 503, 409, 504 } }
  end,
  function() sandbox.fault { verb = pick { "patch", "delete" }, count = 2, status = 429, retry_after = 0 } end,
  function() sandbox.fault { verb = pick { "patch", "create", "delete" }, count = math.random(2), cut = true } end,
  function() sandbox.fault { count = math.random(5), delay = math.random() * 0.02 } end,
  function() sandbox.fault { verb = "watch", count = 1, cut_after = math.random(3) } end,
  function() sandbox.fault { verb = "watch", count = 2, event_delay = math.random() * 0.02 } end,
  function() sandbox.cut_watches() end,
  function() sandbox.expire() end,
  function() sandbox.pause_watches() kube.sleep(math.random() * 0.03) sandbox.resume_watches() end,
}

-- The control requests of this script must not meet the faults that it made: they are of no resource,
-- and no fault without a verb is for more than a few requests.
local function chaos()
  local step = 0
  while step < steps do
    step = step + 1
    if math.random() < 0.6 then pick(acts)() else pick(faults)() end
    if math.random() < 0.5 then kube.sleep(math.random() * 0.01) end
  end
  sandbox.clear_faults()
  sandbox.resume_watches()
end

local function ready_of(object)
  for _, condition in ipairs(kube.get(object, "status", "conditions") or {}) do
    if condition.type == "Ready" then return condition.status .. " " .. condition.message end
  end
  return "missing"
end

-- What is wrong with the cluster, as text; nil when nothing is.
local function difference()
  local wrong = {}
  local function check(ok, ...) if not ok then wrong[#wrong + 1] = table.concat({ ... }, " ") end end
  local sites, live = {}, {}
  for object in kube.client:each(WEBSITES) do sites[object.metadata.name] = object end
  for object in kube.client:each(DEPLOYMENTS) do live[object.metadata.name] = object end
  for name, object in pairs(sites) do check(wanted[name], "website", name, "is still there") check(object) end
  for name, object in pairs(live) do check(wanted[name], "deployment", object.metadata.name, "is still there") end
  local services, entries = {}, {}
  for object in kube.client:each("v1/services") do services[object.metadata.name] = object end
  for object in kube.client:each("v1/configmaps", { namespace = "website-directory" }) do
    entries[object.metadata.name] = object
  end
  for name, spec in pairs(wanted) do
    local d, entry = live[name], entries["default." .. name]
    check(sites[name], "no website", name)
    check(d and d.spec.replicas == spec.replicas and d.spec.template.spec.containers[1].image == spec.image,
      "deployment", name, "is not as wanted")
    check(services[name], "no service", name)
    check(entry and entry.data.host == spec.host, "directory entry of", name, "is not as wanted")
    local ready = kube.get(d, "status.readyReplicas") or 0
    local told = ("%s %d of %d replicas are ready"):format(ready >= spec.replicas and "True" or "False", ready,
      spec.replicas)
    check(ready_of(sites[name]) == told, "status of", name, "is", ready_of(sites[name]))
  end
  for name in pairs(entries) do
    local of = name:match("^default%.(.*)$")
    check(not of or wanted[of], "directory entry", name, "is still there")
  end
  table.sort(wrong)
  return #wrong > 0 and table.concat(wrong, "; ") or nil
end

local function writes()
  local count = 0
  for _, line in ipairs(sandbox.requests().items) do
    if ({ create = 1, update = 1, patch = 1, delete = 1 })[line.verb] and line.resource ~= "events" then
      count = count + 1
      print("write", line.verb, line.resource, line.name, line.status)
    end
  end
  return count
end

-- Fails with what the operator did last for each website.
local function fail(text)
  for _, name in ipairs { "s1", "s2", "s3", "s4", "s5", "s6", "last" } do
    for _, run in ipairs(operator:history("default/" .. name)) do
      print(name, ("%.3f %s because of %s: %s%s"):format(run.time % 1000, run.result, table.concat(run.reasons, ", "),
        table.concat(run.writes, ", "), run.error and " " .. run.error:sub(1, 100) or ""))
    end
  end
  error(text, 0)
end

-- What the websites that are there ask for.
local function ask()
  for object in kube.client:each(WEBSITES) do
    if not object.metadata.deletionTimestamp then wanted[object.metadata.name] = object.spec end
  end
end

kube.sleep(0)
if part == "chaos" then print("begins") end
if part ~= "end" then chaos() else ask() end
wanted.last = random_spec() -- so that there is something to come to, whatever chaos left
insist("create", site("last", wanted.last))
local wrong
for _ = 1, 400 do
  wrong = difference()
  if not wrong then break end
  kube.sleep(0.025)
end
if wrong then fail("it did not converge: " .. wrong) end
kube.sleep(QUIET)
sandbox.clear_requests()
kube.sleep(QUIET)
local later = writes()
if later > 0 then fail(("%d writes after it had converged"):format(later)) end
assert(not difference(), "it did not stay as it was: " .. tostring(difference()))
assert(overlaps == 0, "a key was in two workers")
assert(runs > 0)
print("converged", runs)
require("kube._core").task.shutdown(0)
