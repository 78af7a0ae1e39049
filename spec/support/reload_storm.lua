-- A script that is reloaded without a pause while pods change all the time, and the ledger of what its revisions saw.
--
--   local storm = reload_storm.start { keys = 60 }
--   storm:reload()                  -- writes the next revision, asks for it, and waits until it is active
--   storm:status()                  -- what the control socket says
--   storm:settle()                  -- no more changes; waits until the last of them were handled
--   local ledger = storm:stop()     -- the lines of all revisions, in order, as lists of words
--   storm.first, storm.sent         -- by key: its version at the start, and what was sent: { { type, version }, ... }
--
-- A revision writes: "event N type key version" for each event, "replay N key version" for what was cached when it
-- came, "begin N key version" and "end N key" around each reconcile; N counts the revisions from 1.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local http_client = require "spec.support.http_client"
local list_watch_server = require "spec.support.list_watch_server"
local run = require "spec.support.run"
local script_rig = require "spec.support.script_rig"
local uv = require "luv"

local reload_storm = {}
local Storm = {}
Storm.__index = Storm

local RATE = 5000 -- changes per second, as long as the script keeps up
local AHEAD = 2000 -- so many that it has not written of yet: then the server waits for it
local LIMIT = 120 -- seconds that anything may take

local SOURCE = [[
local kube = require "kube"
local N = %d

local pods = kube.informer "v1/pods"
pods:add_event_handler {
  on_add = function(pod, initial)
    local meta = pod.metadata
    print((initial and "replay %%d %%s %%s" or "event %%d ADDED %%s %%s"):format(N, meta.name, meta.resourceVersion))
  end,
  on_update = function(_, pod)
    print(("event %%d MODIFIED %%s %%s"):format(N, pod.metadata.name, pod.metadata.resourceVersion))
  end,
  on_delete = function(pod)
    print(("event %%d DELETED %%s %%s"):format(N, pod.metadata.name, pod.metadata.resourceVersion))
  end,
}

kube.controller {
  name = "storm", resource = "v1/pods", workers = 4,
  reconcile = function(ctx, pod)
    print(("begin %%d %%s %%s"):format(N, ctx.name, pod and pod.metadata.resourceVersion or "gone"))
    kube.sleep(0.002)
    print(("end %%d %%s"):format(N, ctx.name))
  end,
}
]]

function Storm:_write(n)
  local file = assert(io.open(self.path .. "~", "w"))
  file:write(SOURCE:format(n))
  file:close()
  assert(os.rename(self.path .. "~", self.path))
end

-- Changes one pod: most changes are updates, some take a pod away that comes back later.
function Storm:_change()
  local name = self.names[self.random(#self.names)]
  local list, type, version = self.sent[name]
  if not self.present[name] then
    type, version = "ADDED", self.server:put(name)
  elseif self.random(20) == 1 then
    type, version = "DELETED", self.server:remove(name)
  else
    type, version = "MODIFIED", self.server:put(name)
  end
  self.present[name] = type ~= "DELETED"
  list[#list + 1] = { type, version }
  self.changes = self.changes + 1
end

-- Takes what was written since the last look into the ledger.
function Storm:_read()
  local text = self.rest .. self.process.stdout
  self.process.stdout = ""
  local whole = text:match("^.*\n") or ""
  self.rest = text:sub(#whole + 1)
  for line in whole:gmatch("[^\n]+") do
    local words = {}
    for word in line:gmatch("%S+") do words[#words + 1] = word end
    self.ledger[#self.ledger + 1] = words
    if words[1] == "event" then self.seen = self.seen + 1 end
    if words[1] == "begin" then self.reconciled[words[3]] = words[4] end
  end
end

function Storm:_tick()
  self:_read()
  if not self.changing then return end
  local due = (uv.hrtime() - self.since) / 1e9 * RATE - self.changes
  local room = AHEAD - (self.changes - self.seen)
  if due > AHEAD then self.since = uv.hrtime() - (self.changes + AHEAD) / RATE * 1e9 end -- it had to wait
  for _ = 1, math.min(due, room, 200) do self:_change() end
end

--- Turns the loop until condition() holds.
function Storm:wait(condition, what)
  local ok = http_client.wait(function()
    return self.process.code ~= nil or condition()
  end, LIMIT)
  if ok and not self.process.code then return end
  error(("%s: %s\n%s"):format(what, self.process.code
    and ("the process has ended with %d, by signal %d"):format(self.process.code, self.process.signal)
    or "it did not come true",
    self.process.stderr:sub(-4000)), 2)
end

-- A linear congruential generator: the same storm each time.
local function generator(seed)
  return function(n)
    seed = (seed * 1103515245 + 12345) % 2147483648
    return math.floor(seed / 65536) % n + 1
  end
end

local function start_process(self)
  self.process = run.start_command({ "run", self.path, "--no-reload", "--control", self.socket, "--kubeconfig",
    script_rig.kubeconfig(self.server:url()), "--log-format", "json" }, {})
  cleanup.later(function()
    if not self.process.code then self.process:kill("sigkill") end
  end)
  self:wait(function() return uv.fs_stat(self.socket) ~= nil end, "the control socket")
  self.control = http_client.new { socket = self.socket }
  cleanup.later(function() self.control:close() end)
end

--- options.keys: how many pods there are.
function reload_storm.start(options)
  local directory = assert(uv.fs_mkdtemp("/tmp/mw-storm-XXXXXX"))
  cleanup.later(function() run.sh("rm -rf " .. directory) end)
  local self = setmetatable({ path = directory .. "/main.lua", socket = directory .. "/control", revision = 1,
    names = {}, first = {}, present = {}, sent = {}, ledger = {}, rest = "",
    reconciled = {}, seen = 0, changes = 0, random = generator(7) }, Storm)
  self.server = list_watch_server.new()
  cleanup.later(function() self.server:close() end)
  for i = 1, options.keys do
    local name = "pod-" .. i
    self.names[i], self.present[name], self.sent[name] = name, true, {}
    self.first[name] = self.server:put(name)
  end
  self:_write(1)
  start_process(self)
  local timer = uv.new_timer()
  cleanup.later(function() timer:close() end)
  self.since = uv.hrtime()
  timer:start(5, 5, function() self:_tick() end)
  self:wait(function() return #self.ledger > 0 end, "the first lines")
  self.pid = self:status().pid
  self.since, self.changing = uv.hrtime(), true
  return self
end

function Storm:_ask(method, path)
  local exchange = self.control:send { method = method, path = path }
  self:wait(function() return exchange.done end, method .. " " .. path)
  assert(exchange.status == 200, exchange.body)
  return cjson.decode(exchange.body)
end

function Storm:reload()
  self.revision = self.revision + 1
  self:_write(self.revision)
  local answer = self:_ask("POST", "/reload").scripts[1]
  assert(answer.result == "active", cjson.encode(answer))
end

function Storm:status() return self:_ask("GET", "/status") end

--- How many files the process has open.
function Storm:descriptors()
  local count = 0
  for _ in uv.fs_scandir_next, (assert(uv.fs_scandir(("/proc/%d/fd"):format(self.pid)))) do
    count = count + 1
  end
  return count
end

--- Its resident memory in KiB.
function Storm:memory()
  local file = assert(io.open(("/proc/%d/status"):format(self.pid)))
  local text = file:read("*a")
  file:close()
  return tonumber(text:match("VmRSS:%s*(%d+)"))
end

--- The version that a key has at last: "gone" when there is no such pod.
function Storm:version_of(name)
  return self.present[name] and tostring(self.server.objects["default/" .. name].rv) or "gone"
end

--- Ends the changes and waits until all were handled: each key has been reconciled as it is, and no revision but the
--- last is left.
function Storm:settle()
  self.changing = false
  self:wait(function() return self.seen >= self.changes end, "the last events")
  self:wait(function()
    for _, name in ipairs(self.names) do
      if self.reconciled[name] ~= self:version_of(name) then return false end
    end
    return true
  end, "the last reconciles")
  repeat until #self:status().scripts[1].retiring == 0
end

function Storm:stop()
  self.process:kill("sigterm")
  local code = self.process:wait_exit(LIMIT)
  self:_read()
  assert(code == 0, ("it ended with %d: %s"):format(code, self.process.stderr:sub(-4000)))
  return self.ledger
end

return reload_storm
