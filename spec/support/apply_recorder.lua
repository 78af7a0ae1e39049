-- Records random writes on a real API server, for spec/sandbox/apply_spec.lua to repeat without one:
--
-- The server must be alone with it: freeze kube-controller-manager, which writes Deployments too.
--
--   eval "$(scripts/kube env)"
--   luajit spec/support/apply_recorder.lua SEED SEQUENCES [slow] > cases.jsonl
--   luajit spec/support/apply_recorder.lua creates > creates.jsonl
--
-- One line for each object: { kind, steps = [{ op, manager, force, subresource, body, code, now, result }] },
-- `now` being the second in which the server wrote. With `slow` every write has a second of its own, which
-- tells the times of entries apart. `creates` records one create and one apply of many kinds instead.
package.path = "./?.lua;" .. package.path
require "spec.support.sandbox_env"
local codec = require "spec.support.codec"
local json = require "kube.sandbox.json"
local kinds = require "spec.support.apply_kinds"
local manifests = require "spec.support.apply_manifests"
local steps = require "spec.support.apply_steps"

local kubeconfig = assert(io.open(assert(os.getenv "KUBECONFIG"))):read("*a")
local server = kubeconfig:match('name: kube,.-server: "(.-)"')
local authority = kubeconfig:match('name: kube,.-certificate%-authority: "(.-)"')
local token = kubeconfig:match('name: admin,.-token: "(.-)"')

local body_path, head_path = os.tmpname(), os.tmpname()

local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

local function request(method, path, kind, body)
  write(body_path, body or "")
  local pipe = io.popen(("curl -s --cacert %s -H 'Authorization: Bearer %s' -H 'Content-Type: %s' -X %s -D %s " ..
    "--data-binary @%s '%s%s'"):format(authority, token, kind, method, head_path, body_path, server, path))
  local text = pipe:read("*a")
  pipe:close()
  local head = io.open(head_path):read("*a")
  return tonumber(head:match("^HTTP/%S+ (%d+)")), json.decode(text), head:match("[Dd]ate: ([^\r\n]+)")
end

local MONTHS = {}
for i, name in ipairs { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" } do
  MONTHS[name] = i
end

-- The time that the server took for its entries: the newest one, if it is about as old as the answer.
local function written_at(date, result)
  local day, month, year, hour, minute, second = date:match("(%d+) (%a+) (%d+) (%d+):(%d+):(%d+)")
  local answered = os.time { year = year, month = MONTHS[month], day = day, hour = hour, min = minute, sec = second }
  for _, age in ipairs { 0, 1 } do
    local stamp = os.date("%Y-%m-%dT%H:%M:%SZ", answered - age)
    for _, entry in ipairs(json.get(result, "metadata", "managedFields") or {}) do
      if entry.time == stamp then return stamp end
    end
  end
  return os.date("%Y-%m-%dT%H:%M:%SZ", answered)
end

local TYPES = {
  apply = "application/apply-patch+yaml", merge = "application/merge-patch+json",
  json = "application/json-patch+json", strategic = "application/strategic-merge-patch+json",
}

local function send(kind, name, step)
  local path = kind.path:format("default")
  local query = "?fieldManager=" .. step.manager .. (step.op == "apply" and step.force and "&force=true" or "")
  if step.op == "create" then return request("POST", path .. query, "application/json", json.encode(step.body)) end
  path = path .. "/" .. name .. (step.subresource and "/" .. step.subresource or "")
  if step.op == "update" then return request("PUT", path .. query, "application/json", json.encode(step.body)) end
  return request("PATCH", path .. query, TYPES[step.op], json.encode(step.body))
end

-- What differs from run to run is left out of the record.
local function masked(document)
  local out = json.shallow(document)
  if out.metadata then
    out.metadata = json.shallow(out.metadata)
    for _, field in ipairs { "uid", "resourceVersion", "creationTimestamp", "generation" } do
      out.metadata[field] = nil
    end
  end
  return out
end

local function record(random, kind_name, name, next_step, count)
  local kind = kinds[kind_name]
  local case, live = json.object { kind = kind_name, steps = json.array {} }, nil
  for _ = 1, count do
    if arg[3] == "slow" then os.execute("sleep 1.1") end
    local step = next_step(random, kind_name, kind, name, live)
    local code, result, date = send(kind, name, step)
    if code < 300 then live = result end
    case.steps[#case.steps + 1] = json.object {
      op = step.op, manager = step.manager, force = step.force or nil, subresource = step.subresource, code = code,
      body = step.op == "update" and masked(step.body) or step.body, result = masked(result),
      now = written_at(date, result),
    }
  end
  request("PATCH", kind.path:format("default") .. "/" .. name, TYPES.merge, '{"metadata":{"finalizers":null}}')
  request("DELETE", kind.path:format("default") .. "/" .. name, "application/json")
  return case
end

local function record_creates()
  for _, manifest in ipairs(manifests) do
    local api_version, kind, path, rest = unpack(manifest)
    for _, op in ipairs { "create", "apply" } do
      local body = json.decode(('{"apiVersion":"%s","kind":"%s","metadata":{"name":"all-%s","labels":{"x":"y"}},%s}')
        :format(api_version, kind, op, rest))
      local code, result, date = send({ path = path }, "all-" .. op, { op = op, manager = "one", body = body })
      assert(code == 201, ("%s %s: %s"):format(op, kind, json.encode(result)))
      print(json.encode { op = op, kind = kind, body = body, result = masked(result), now = written_at(date, result) })
      request("DELETE", path .. "/all-" .. op .. "?gracePeriodSeconds=0", "application/json")
    end
  end
end

local function record_sequences(seed, count)
  local random = codec.random(seed)
  local code = request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json",
    kinds.definition)
  assert(code == 201 or code == 409, "cannot define the custom kind")
  repeat until request("GET", kinds.Gadget.path:format("default"), "application/json") == 200
  -- Kinds in turn; the custom one has most to offer.
  local order = { "ConfigMap", "Deployment", "Gadget", "Service", "Gadget" }
  for i = 1, count do
    local kind_name, name = order[(i - 1) % #order + 1], ("o%d-%d"):format(seed, i)
    local case
    if random(12) == 1 then
      case = record(random, kind_name, name, steps.migration, 3)
    elseif random(12) == 1 then
      case = record(random, kind_name, name, steps.crowd, 18)
    else
      case = record(random, kind_name, name, steps.next, random(4, 7))
    end
    print(json.encode(case))
  end
end

if arg[1] == "creates" then record_creates() else record_sequences(tonumber(arg[1]), tonumber(arg[2])) end
os.remove(body_path)
os.remove(head_path)
