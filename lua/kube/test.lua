-- require "kube.test": specs of scripts, run by `moonwatch test`. A script runs as it always does, in a state of its
-- own, against a sandbox that is as new for each kt.new{}; the spec does what users and clusters do, and sees what the
-- script wrote.
local core = require "kube._core"
local condition = require "kube._condition"
local encoding = require "kube._encoding"
local errors = require "kube._error"
local options = require "kube._options"
local run = require "kube._test_run"
local sandbox = require "kube.sandbox"
local task = require "kube._task"
local verbs = require "kube._verbs"
local writes = require "kube._test_writes"

if not core.test then
  errors.misuse('require "kube.test" is for specs: `moonwatch test` runs them, `moonwatch run` does not')
end

local M = {}

local SETTLE_TIMEOUT, LOOK_EVERY = 10, 0.005
local MANAGER = "kube.test"

--- A script that runs in a spec, of kt.new.
---@class kube.Test
local Test = {}
Test.__index = Test

local function read(path)
  local file, problem = io.open(path, "rb")
  if not file then errors.misuse("kube.test: %s", problem) end
  local text = file:read("*a")
  file:close()
  return text
end

-- Objects of YAML or of a table; nil for what is neither.
local function objects_of(source)
  if type(source) == "string" then return encoding.yaml.decode_all(source) end
  if type(source) == "table" then return source.kind == nil and source[1] ~= nil and source or { source } end
end

local function check_objects(what, source)
  local objects = objects_of(source)
  if objects then return objects end
  errors.misuse("%s takes YAML or an object, not a %s", what, type(source))
end

-- An object that says no namespace is in `default`, if it is in one at all.
local function placed(object)
  local metadata = type(object) == "table" and object.metadata
  if type(metadata) ~= "table" or metadata.namespace or not object.apiVersion or not object.kind then return object end
  local _, namespaced = verbs.resource_of(nil, object)
  if namespaced == false then return object end
  object = core.codec.copy(object)
  object.metadata.namespace = "default"
  return object
end

---@class kube.TestOptions
---@field script string the script, beside the spec
---@field manifests? (string|table)[] files beside the spec, and objects, that are there before it starts
---@field seed? number names and uids of the sandbox are made from it

local KNOWN = { script = "string", manifests = "table", seed = "number" }

--- Starts a script, in a sandbox that has nothing but the manifests; the script before it is stopped. Awaits; raises
--- what is wrong with the script.
---@param opts kube.TestOptions
---@return kube.Test
function M.new(opts)
  opts = options.check("kube.test.new", opts, KNOWN)
  if not opts.script then errors.misuse("kube.test.new needs script = \"controller.lua\"") end
  run.reset()
  sandbox.seed(opts.seed or 1)
  local self = setmetatable({ _session = verbs.session { field_manager = MANAGER }, _seen = 0 }, Test)
  for _, manifest in ipairs(opts.manifests or {}) do
    self:apply(type(manifest) == "string" and read(run.beside(manifest)) or manifest)
  end
  local ok, why = run.start(run.beside(opts.script))
  if not ok then errors.misuse("the script does not load: %s", why) end
  self._script = run.script
  return self
end

--- What is the matter with a script that has failed: its error, with a traceback; nil while it runs.
---@return string?
function Test:failed() return self._script:failure() end

local function check_running(self)
  local report = self:failed()
  if report then errors.misuse("the script has failed: %s", report) end
end

local SETTLE = { timeout = "number", events = "boolean", leases = "boolean" }

-- One look: what is still to be done, or nil, and a text that changes whenever something happens.
local function look(self)
  local revision = sandbox.bookmark()
  local last = sandbox.requests({ since = self._seen }).last
  check_running(self)
  local what, whose = core.test.busy(revision)
  return what and (whose and ("%s %s"):format(what, whose) or what), ("%d %d"):format(revision, last)
end

--- Waits until the script has nothing to do: its informers have seen every change, its queues are empty but for what
--- waits for its time, and no request is under way. Returns the writes of the script since the last time, in order.
---@param opts? number|{ timeout?: number, events?: boolean, leases?: boolean } timeout: seconds, 10; events, leases:
--- also writes of these
---@return kube.TestWrite[]
function Test:settle(opts)
  if type(opts) == "number" then opts = { timeout = opts } end
  opts = options.check("t:settle", opts, SETTLE)
  options.check_timeout("t:settle: timeout", opts.timeout)
  local deadline = core.task.now() + (opts.timeout or SETTLE_TIMEOUT)
  local before
  while true do
    local what, now = look(self)
    -- Twice the same: what was on its way between threads at the first look has arrived at the second.
    if not what and now == before then break end
    if core.task.now() > deadline then
      errors.misuse("t:settle(): still not at rest after %g s: %s", opts.timeout or SETTLE_TIMEOUT,
        what or "it goes on writing")
    end
    before = not what and now or nil
    if what then task.sleep(LOOK_EVERY) end
  end
  local list
  list, self._seen = writes.since(self._seen, opts)
  return list
end

--- Waits until check() returns something true, and returns it; for what comes with time, as retries do.
---@param check fun(): any
---@param timeout? number seconds, 10
---@return any
function Test:eventually(check, timeout)
  options.check_timeout("t:eventually: timeout", timeout)
  local deadline = core.task.now() + (timeout or SETTLE_TIMEOUT)
  while true do
    check_running(self)
    local result = check()
    if result then return result end
    if core.task.now() > deadline then
      errors.misuse("t:eventually(): not after %g s", timeout or SETTLE_TIMEOUT)
    end
    task.sleep(LOOK_EVERY)
  end
end

--- Applies objects as somebody else than the script; one without a namespace goes to `default`.
---@param source string|table YAML, an object, or a list of objects
---@return table applied the last of them
function Test:apply(source)
  local applied
  for _, object in ipairs(check_objects("t:apply", source)) do
    applied = self._session:apply(placed(object), { force = true })
  end
  return applied
end

--- Creates objects; as apply.
---@param source string|table
---@return table created the last of them
function Test:create(source)
  local created
  for _, object in ipairs(check_objects("t:create", source)) do created = self._session:create(placed(object)) end
  return created
end

--- An object, or nil when there is none.
---@param resource string
---@param key string
---@return table?
function Test:get(resource, key)
  local object, err = self._session:try_get(resource, key)
  if err and not errors.predicates.is_not_found(err) then errors.raise(err) end
  return object
end

--- All objects of a resource.
---@param resource string
---@param opts? kube.VerbOptions
---@return table[]
function Test:list(resource, opts) return (self._session:list(resource, opts)) end

--- Deletes an object, as somebody else than the script.
---@param resource string
---@param key string
---@param opts? kube.VerbOptions
function Test:delete(resource, key, opts) return self._session:delete(resource, key, opts) end

--- Changes an object by a merge patch, as somebody else than the script.
---@param resource string
---@param key string
---@param patch table
---@param opts? kube.VerbOptions
---@return table patched
function Test:patch(resource, key, patch, opts) return self._session:patch(resource, key, patch, opts) end

--- Writes what the cluster writes: the status of an object.
---@param resource string
---@param key string
---@param status table merged into the status that it has
---@return table patched
function Test:set_status(resource, key, status)
  return self._session:patch(resource, key, { status = status }, { subresource = "status" })
end

--- Makes requests fail, as sandbox.fault does; resource may be "apps/v1/deployments". Until t:clear_faults(), or
--- the next kt.new.
---@param fault table
---@return string id
function Test.fail(_, fault)
  local copy = {}
  for name, value in pairs(fault) do copy[name] = value end
  local prefix, plural = tostring(copy.resource):match("^(.+)/([^/]+)$")
  if prefix then
    copy.group, copy.resource = prefix:match("^(.+)/[^/]+$") or "", plural
  end
  return sandbox.fault(copy)
end

--- No request fails any more.
function Test.clear_faults() sandbox.clear_faults() end

--- Ends all watches as broken connections do.
function Test.cut_watches() sandbox.cut_watches() end

--- Stops the script as SIGTERM does, and waits until it has ended.
function Test:stop()
  if run.script == self._script then run.stop() end
end

--- Writes as lines: "apply apps/v1/deployments default/web", with "(503)" behind what was refused.
---@param list kube.TestWrite[]
---@return string[]
M.summary = writes.summary

--- Whether a condition of an object is true; nil when it is unknown, or not there.
---@param object? table
---@param name string
---@return boolean?
---@return kube.Condition?
function M.condition(object, name)
  local found = condition.get(object, name)
  local status = found and found.status
  if status == "True" then return true, found end
  if status == "False" then return false, found end
  return nil, found
end

options.guard(Test, "t", { is = function(v) return type(v) == "table" and getmetatable(v) == Test end })

return M
