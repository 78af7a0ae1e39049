-- One run of a controller: the context that a reconcile gets, the finalizer around it, and what its end
-- means for the key (S-CR-02..05).
local cache = require "kube._cache"
local core = require "kube._core"
local errors = require "kube._error"
local finalizer = require "kube._finalizer"
local leader = require "kube._leader"
local options = require "kube._options"
local task = require "kube._task"
local time = require "kube._time"
local verbs = require "kube._verbs"
local workqueue = require "kube._workqueue"
local writes = require "kube._writes"

local codec, log = core.codec, core.log
local M = {}

local WRITES_KEPT = 100

--- An error that is not worth another try: the key waits for its next event.
---@param cause string|table a message, or an error
---@return kube.Error
function M.terminal(cause)
  if type(cause) ~= "string" and type(cause) ~= "table" then
    errors.misuse("kube.terminal() takes a message or an error, not a %s", type(cause))
  end
  local structured = type(cause) == "table"
  return errors.new(structured and cause.code or "terminal", "terminal error: " .. core.error_text(cause),
    { terminal = true, cause = structured and cause or nil })
end

-- kube.log with the controller and the key in every line.
local Log = {}
Log.__index = Log
for _, level in ipairs { "error", "warn", "info", "debug" } do
  Log[level] = function(self, message, fields)
    if fields ~= nil and type(fields) ~= "table" then
      errors.misuse("ctx.log:%s(message, fields): fields must be a table, not a %s", level, type(fields))
    end
    local all = { controller = self._controller, key = self._key }
    for name, value in pairs(fields or {}) do all[name] = value end
    log.write(level, message, all)
  end
end
options.guard(Log, "ctx.log")

-- What a session tells of each answered request.
local function observer(controller, key_of_run, run)
  return function(verb, resource, key, object, sent)
    if verb == "get" or verb == "list" then
      run.reads = run.reads + 1
      return
    end
    run.written = run.written + 1
    if run.written <= WRITES_KEPT then
      run.writes[run.written] = ("%s %s %s"):format(verb, resource, key or "")
    end
    if key then
      controller.cache.overlay:note(verb, resource, key, object, key_of_run)
    elseif verb == "delete_collection" and object then
      controller.cache.overlay:note_collection(resource, object.items, sent)
    end
  end
end

--- What reconcile and finalize get first: one run for one key.
---@class kube.Context
---@field key string "namespace/name", or "name" where there is no namespace
---@field namespace string "" where there is none
---@field name string
---@field controller string
---@field cache kube.CacheView reads what the controller declared, with its own writes laid over
---@field client kube.Session verbs; they write under the controller's name
---@field log kube.ContextLog with controller and key in every line
---@field events kube.Recorder under the controller's name
---@field attempt integer 1 for the first try, more after failures
---@field reasons string[] why the key was queued
---@field deadline number when this run must be over, as kube.time.now() counts
local Context = {}

--- Seconds until the deadline.
---@return number
function Context.remaining() return task.remaining() or math.huge end

-- Made when they are first used: most runs need few of them.
local lazy = {
  cache = function(ctx) return cache.view(ctx._controller.cache, ctx._run) end,
  log = function(ctx) return setmetatable({ _controller = ctx.controller, _key = ctx.key }, Log) end,
  events = function(ctx)
    writes.check_events(ctx._controller.writes, "ctx.events")
    return ctx._controller.events()
  end,
  client = function(ctx)
    local controller = ctx._controller
    return verbs.session { field_manager = controller.name, observe = observer(controller, ctx.key, ctx._run),
      cached = function(resource, key) return controller.cache:get(resource, key) end, writes = controller.writes }
  end,
}
local known = { key = true, namespace = true, name = true, controller = true, attempt = true, reasons = true,
  deadline = true, remaining = true, cache = true, log = true, events = true, client = true }

-- What a context has only while its run lasts: it counts into the run's history.
local ENDS = { client = true, cache = true }

local context_meta = { __metatable = false, __tostring = function(ctx) return "context of " .. ctx.key end }
function context_meta.__index(ctx, name)
  if Context[name] then return Context[name] end
  local make = lazy[name]
  if make then
    if ENDS[name] and ctx._run.result then
      errors.misuse("ctx.%s: the run of %s has ended; start with kube.spawn() what the run is to wait for, and give "
        .. "what goes on by itself kube.client", name, ctx.key)
    end
    local value = make(ctx)
    rawset(ctx, name, value)
    return value
  end
  errors.misuse("ctx has no '%s'%s", tostring(name), options.hint(tostring(name), known))
end

local function new_context(controller, key, info, run)
  local slash = key:find("/", 1, true)
  return setmetatable({ key = key, namespace = key:sub(1, (slash or 1) - 1), name = key:sub((slash or 0) + 1),
    controller = controller.name, attempt = run.attempt, reasons = info.reasons,
    deadline = run.time + controller.timeout, _controller = controller, _run = run }, context_meta)
end

-- Writes the finalizers of an object, unless it has changed since: a list is replaced whole.
local function write_finalizers(controller, ctx, object, change)
  local copy = { metadata = { finalizers = codec.copy(object.metadata.finalizers or codec.array {}) } }
  change(copy, controller.finalizer)
  copy.metadata.finalizers = codec.array(copy.metadata.finalizers or {})
  copy.metadata.resourceVersion = object.metadata.resourceVersion
  return ctx.client:try_patch(controller.resource, ctx.key, copy, { type = "merge" })
end

local result_options = { requeue_after = "number", priority = "number" }

local function check_result(result)
  options.check("what reconcile returned", result, result_options)
  if result.requeue_after then
    workqueue.check_seconds("what reconcile returned: requeue_after", result.requeue_after)
  end
  if result.priority then workqueue.check_priority("what reconcile returned: priority", result.priority) end
end

-- What was returned, or an error that says what is wrong with it.
local function checked(result)
  if result == nil then return {} end
  if type(result) == "table" and not result.apiVersion then
    local ok, err = pcall(check_result, result)
    if ok then return result end
    return nil, errors.new("misuse", tostring(err), { terminal = true })
  end
  return nil, errors.new("misuse", ("reconcile returned a %s; return nothing, or { requeue_after = seconds }")
    :format(type(result) == "table" and "table with an object" or type(result)), { terminal = true })
end

-- The object is on its way out: what finalize leaves undone keeps the finalizer.
local function finalize(controller, ctx, object)
  if not finalizer.has(object, controller.finalizer) then return nil end
  local result = controller.finalize(ctx, object)
  local what = checked(result)
  if not what or (what.requeue_after or 0) > 0 then return result end
  object = controller.cache:get(controller.resource, ctx.key)  -- finalize may have written to it
  if not object or not finalizer.has(object, controller.finalizer) then return nil end
  local _, err = write_finalizers(controller, ctx, object, finalizer.remove)
  if err and err.status ~= 404 then error(err, 0) end
end

-- The finalizer is there before anything else is done for the object.
local function body(controller, ctx, reconcile)
  local object = controller.cache:get(controller.resource, ctx.key)
  if not object or not controller.finalizer then return reconcile(ctx, object) end
  if object.metadata.deletionTimestamp then return finalize(controller, ctx, object) end
  if not finalizer.has(object, controller.finalizer) then
    local written, err = write_finalizers(controller, ctx, object, finalizer.add)
    if not written then error(err, 0) end
    object = written
  end
  return reconcile(ctx, object)
end

-- A __tostring of the script may run for ever: that was caught when the report was made.
local function in_words(err, report)
  if type(err) ~= "table" or not report then return core.error_text(err) end
  return report:match("^(.-)\nstack traceback:\n") or report:match("^(.-)\nin task ") or report
end

-- Where in the script it failed; nil when nothing of the script was running.
local function place_in(report)
  for frame in (report or ""):gmatch("\n\t([^\n]+:%d+): in ") do
    if not frame:find("^lua/kube/") then return frame end
  end
end

-- Whether it failed because this process does not lead: another script may have added an election, or the lease is
-- late. That says nothing of the key.
local function is_fenced(err)
  return not leader.is_leading() or type(err) == "table" and err.code == "not_leading"
end

-- The end of a run: what it counts as, and when the key comes back.
---@return string result
---@return table? again options of queue:add
---@return boolean forget the key's failures
local function outcome(controller, run, info, ok, result, report)
  local err
  if ok then
    result, err = checked(result)
    if result then
      local after = result.requeue_after or 0
      if after <= 0 then return "success", nil, true end
      run.next = after
      return "requeue_after", { after = after, reason = "requeue_after",
        priority = result.priority or info.priority }, true
    end
  else
    err = result
  end
  run.error = in_words(err, report)
  run.place = place_in(report)
  run.stopped = run.error:find("cpu budget exceeded", 1, true) ~= nil
  run.cause = err
  -- The end of the script; a run that cancelled something of its own and failed with that has failed.
  if type(err) == "table" and err.code == "cancelled" and controller.queue:is_shut_down() then
    return "cancelled", nil, false
  end
  if type(err) == "table" and err.terminal then return "terminal", nil, false end
  -- Ours, not that of a request or of a kube.timeout in between.
  local timed_out = type(err) == "table" and err.code == "timeout" and run.duration >= controller.timeout
  if controller.retry.attempts and run.attempt >= controller.retry.attempts and not is_fenced(err) then
    run.error = ("gave up after %d attempts: %s"):format(run.attempt, run.error)
    return "gave_up", nil, true
  end
  run.next = math.min(controller.retry.max, controller.retry.base * 2 ^ info.requeues)
  return timed_out and "timeout" or "error", { rate_limited = true, reason = "retry", priority = info.priority }, false
end

local LOUD = { error = "error", terminal = "error", timeout = "error", gave_up = "error" }

local function tell(controller, key, run, report)
  if not LOUD[run.result] then return end
  log.write("error", "reconcile failed", { controller = controller.name, key = key, result = run.result,
    attempt = run.attempt, duration = run.duration, retry_in = run.next,
    -- Where it failed is told once: the next attempts fail there, too.
    error = run.attempt == 1 and report or run.error })
end

-- An election that another script has added, or a lease that is late, may come while a worker waits for a key: that
-- goes back as it was, to be run when this process leads.
local function give_back(queue, key, info)
  for _, reason in ipairs(info.reasons) do queue:add(key, { priority = info.priority, reason = reason }) end
  queue:add(key, { priority = info.priority })
  queue:done(key)
end

--- Reconciles a key that the queue handed out, and settles what becomes of it. Awaits.
function M.run(controller, key, info)
  local queue = controller.queue
  if not leader.is_leading() then return give_back(queue, key, info) end
  local run = { time = time.now(), reasons = info.reasons, attempt = info.requeues + 1,
    waited = info.waited, reads = 0, writes = codec.array {}, written = 0 }
  local ctx = new_context(controller, key, info, run)
  controller.metrics:began()
  local began = core.task.now()
  local ok, result, report = task.run({ name = controller.name .. " " .. key, timeout = controller.timeout,
    drain = true, trigger = ("controller %s, key %s, attempt %d, because of %s"):format(controller.name, key,
      run.attempt, table.concat(info.reasons, ", ")) }, body, controller, ctx, controller.reconcile)
  run.duration = core.task.now() - began
  local again, forget
  run.result, again, forget = outcome(controller, run, info, ok, result, report)
  if forget then queue:forget(key) end
  if again then queue:add(key, again) end
  queue:done(key)
  tell(controller, key, run, report)
  ctx.client, ctx.cache = nil, nil
  controller.history:add(key, run)
  controller.metrics:ended(run)
end

return M
