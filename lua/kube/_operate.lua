-- What a running script tells of itself to those who operate it (core/script/operate.h): each function takes texts and
-- returns a text, JSON for most, or nil and a sentence. None awaits.
local controllers = require "kube._controller"
local core = require "kube._core"
local options = require "kube._options"
local time = require "kube._time"

local codec = core.codec
local M = {}

local PAST_RUNS = 2
local SHOWN = 5  -- slow keys and failing keys
local ERROR_MAX = 1000  -- bytes of one in a report
local SEARCH_MAX = 100000  -- keys that are looked at for one that was meant
local FAILED = { error = true, terminal = true, timeout = true, gave_up = true }

-- The controllers of this script, by name.
local function each()
  local names = {}
  for name in pairs(controllers.by_name) do names[#names + 1] = name end
  table.sort(names)
  local i = 0
  return function()
    i = i + 1
    return controllers.by_name[names[i]]
  end
end

-- What a controller is doing as a whole, and what it waits for before it starts.
local function state_of(controller)
  if controller.started then return "running" end
  local missing = controllers.missing(controller)
  if missing[1] then return "syncing", table.concat(missing, ", ") end
  return "standby"
end

local function queue_of(controller)
  local stats = controller.queue:stats()
  return { ready = stats.ready, waiting = stats.waiting, processing = stats.processing, failing = stats.failing }
end

-- What all answers have of a controller.
local function about(controller)
  local state, missing = state_of(controller)
  return { name = controller.name, resource = controller.resource, place = controller.place, state = state,
    missing = missing, workers = controller.workers, queue = queue_of(controller) }
end

--- The controllers, for `moonwatch status`.
---@return string
function M.controllers()
  local list = codec.array {}
  for controller in each() do list[#list + 1] = about(controller) end
  return codec.encode(list)
end

-- The controller of this name; or nil and a sentence.
local function find(name)
  local found = controllers.by_name[name]
  if found then return found end
  if not next(controllers.by_name) then return nil, "the script has no controllers" end
  return nil, ("there is no controller '%s'%s"):format(name, options.hint(name, controllers.by_name))
end

-- The object in the cache as it is, without its content; nil when there is none.
local function cached(controller, key)
  local reader = controller.cache:reader(controller.resource, key)
  local object = reader and reader:get(key)
  if not object then return nil end
  local metadata = object.metadata
  return { resource_version = metadata.resourceVersion, generation = metadata.generation, uid = metadata.uid,
    deleting_since = metadata.deletionTimestamp }
end

-- A run as plain data. What is known of it, and not more: an error may hold anything.
local function told(run, revision)
  return { revision = revision, time = run.time, reasons = codec.array(run.reasons), attempt = run.attempt,
    waited = run.waited, duration = run.duration, reads = run.reads, writes = run.writes, written = run.written,
    result = run.result, error = run.error, next = run.next }
end

--- The last runs of all controllers, by their names and by key: what is kept of a revision that ends; nil when there
--- are none.
---@return string?
function M.past()
  local out, any = codec.object {}, false
  for controller in each() do
    local runs = codec.object {}
    for key, list in pairs(controller.history:last(PAST_RUNS)) do
      runs[key], any = codec.array {}, true
      for i, run in ipairs(list) do runs[key][i] = told(run) end
    end
    out[controller.name] = runs
  end
  return any and codec.encode(out) or nil
end

-- The runs of earlier revisions, oldest first. past: revision, text of M.past(), and so on.
local function earlier(controller, key, past)
  local out = {}
  for i = 1, #past, 2 do
    local runs = codec.decode(past[i + 1])[controller.name]
    for _, run in ipairs(runs and runs[key] or {}) do
      run.revision = past[i]
      out[#out + 1] = run
    end
  end
  table.sort(out, function(a, b) return a.time < b.time end)
  return out
end

-- What a controller knows of a key; nil when that is nothing.
local function known(controller, key, revision, past)
  local object, queued = cached(controller, key), controller.queue._handle:look(key)
  local runs = codec.array(earlier(controller, key, past or {}))
  for _, run in ipairs(controller.history:of(key)) do runs[#runs + 1] = told(run, revision) end
  if not object and not queued and not runs[1] then return nil end
  local state, missing = state_of(controller)
  if queued then queued.reasons = codec.array(queued.reasons) end
  return { name = controller.name, resource = controller.resource, place = controller.place, state = state,
    missing = missing, object = object, queued = queued, runs = runs }
end

-- " (did you mean 'default/web'?)" for "web", if there is such an object.
local function meant(key)
  local name, looked = key:match("[^/]+$"), 0
  for controller in each() do
    for _, informer in ipairs(controller.cache:declare(controller.resource)) do
      for candidate in informer:lister():keys() do
        looked = looked + 1
        if looked > SEARCH_MAX then return "" end
        if candidate:match("[^/]+$") == name then return (" (did you mean '%s'?)"):format(candidate) end
      end
    end
  end
  return ""
end

--- What became of a key, for `moonwatch why`.
---@param key string
---@param name? string of a controller; default: all
---@param revision? string of this script
---@param ... string revisions that have ended, each with what M.past() said in it
---@return string?
---@return string?
function M.why(key, name, revision, ...)
  local only, problem
  if name then
    only, problem = find(name)
    if not only then return nil, problem end
  end
  local list, past = codec.array {}, { ... }
  for controller in each() do
    if not only or controller == only then list[#list + 1] = known(controller, key, revision, past) end
  end
  if list[1] then return codec.encode(list) end
  if not next(controllers.by_name) then return nil, "the script has no controllers" end
  return nil, ("%s '%s'%s: it is not cached, not queued, and was not reconciled lately"):format(
    only and ("controller %s does not know"):format(name) or "no controller knows", key, meant(key))
end

--- Queues a key, for `moonwatch enqueue`.
---@param name string of the controller
---@param key string
---@return string?
---@return string?
function M.enqueue(name, key)
  local controller, problem = find(name)
  if not controller then return nil, problem end
  local ok, err = pcall(controller.queue.add, controller.queue, key, { reason = "enqueue" })
  if not ok then return nil, tostring(err) end
  return codec.encode(codec.array { known(controller, key) })
end

-- How the last run of a controller that failed did so, beginning with its place.
local function failure_of(controller)
  local last, at
  controller.history:each_last(function(key, run)
    if FAILED[run.result] and (not last or run.time > last.time) then last, at = run, key end
  end)
  local count = ("%d of its %d reconciles failed"):format(controller.metrics.failed, controller.metrics.runs)
  if not last then return ("%s: controller %s: %s"):format(controller.place, controller.name, count) end
  local text, place = last.error:match("^[^\n]*"):sub(1, ERROR_MAX), last.place or controller.place
  local placed = text:sub(1, #place + 2) == place .. ": " or text:find("^%S+:%d+: ") and not text:find("^lua/kube/")
  return ("%s%s (the last of controller %s, for %s; %s)"):format(placed and "" or place .. ": ", text, controller.name,
    at, count)
end

--- The controllers whose reconciles failed, for the report about a revision that is taken back: a line for each, with
--- its last error.
---@return string?
function M.failing()
  local lines = {}
  for controller in each() do
    if controller.metrics.failed > 0 then lines[#lines + 1] = failure_of(controller) end
  end
  return lines[1] and table.concat(lines, "\n") or nil
end

-- The first few of a list.
local function first(list, less)
  table.sort(list, less)
  local out = codec.array {}
  for i = 1, math.min(SHOWN, #list) do out[i] = list[i] end
  return out
end

-- The keys that took longest, and those that fail.
local function remarkable(controller)
  local slow, failing = {}, {}
  controller.history:each_last(function(key, run)
    slow[#slow + 1] = { key = key, duration = run.duration, time = run.time }
    if FAILED[run.result] then
      failing[#failing + 1] = { key = key, attempt = run.attempt, error = run.error, result = run.result,
        time = run.time, next = run.next }
    end
  end)
  return first(slow, function(a, b) return a.duration > b.duration end),
    first(failing, function(a, b)
      if a.attempt ~= b.attempt then return a.attempt > b.attempt end
      return a.key < b.key
    end)
end

local function running(controller)
  local list = {}
  for key, seconds in pairs(controller.queue._handle:running()) do
    list[#list + 1] = { key = key, seconds = seconds }
  end
  return first(list, function(a, b) return a.seconds > b.seconds end)
end

--- What goes on, for `moonwatch top`.
---@return string
function M.top()
  local list, now = codec.array {}, time.now()
  for controller in each() do
    local entry = about(controller)
    entry.rates = controller.metrics.window:rates(now)
    entry.running = running(controller)
    entry.slow, entry.failing = remarkable(controller)
    list[#list + 1] = entry
  end
  return codec.encode(list)
end

return M
