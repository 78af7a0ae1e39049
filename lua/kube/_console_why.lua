-- `moonwatch why`, for people.
local text = require "kube._console_text"

local M = {}

local RUNS = 10  -- that are shown; -o json has all

local function object_line(object)
  if not object then return "not in the cache" end
  return ("in the cache, resourceVersion %s%s%s"):format(object.resource_version,
    object.generation and (", generation %d"):format(object.generation) or "",
    object.deleting_since and ", being deleted since " .. object.deleting_since or "")
end

-- Whether something is to be done for the key, and when.
local function queue_line(controller)
  local queued, parts = controller.queued, {}
  if not queued then return "not queued: it waits for its next event" end
  if queued.running_for then parts[1] = ("running for %s"):format(text.duration(queued.running_for)) end
  if queued.ready_in then
    parts[#parts + 1] = ("waits %s"):format(text.duration(queued.ready_in))
  elseif queued.ready and queued.running_for then
    parts[#parts + 1] = "will run again after that"
  elseif queued.ready then
    parts[#parts + 1] = ("ready for %s"):format(text.duration(queued.ready_for))
  elseif not queued.running_for then
    parts[#parts + 1] = "not queued: it waits for its next event"
  end
  if queued.reasons[1] then parts[#parts + 1] = "because of " .. table.concat(queued.reasons, ", ") end
  if queued.failures > 0 then parts[#parts + 1] = text.count(queued.failures, "failure") .. " so far" end
  return table.concat(parts, ", ")
end

local function put_runs(out, runs, revision)
  local rows, notes = {}, {}
  for i = math.max(1, #runs - RUNS + 1), #runs do
    local run = runs[i]
    rows[#rows + 1] = { os.date("%H:%M:%S", run.time), run.result, tostring(run.attempt), text.duration(run.waited),
      text.duration(run.duration), tostring(run.reads), tostring(run.written),
      run.next and text.duration(run.next) or "", table.concat(run.reasons, ", ")
      .. (run.revision ~= revision and (" (revision %s)"):format(run.revision) or "") }
    notes[#rows + 1] = run
  end
  if not rows[1] then
    out[#out + 1] = "    runs    none that is remembered"
    return
  end
  for i, row in ipairs(text.table({ "TIME", "RESULT", ">TRY", ">WAITED", ">TOOK", ">READS", ">WRITES", ">NEXT IN",
    "BECAUSE OF" }, rows, "    ")) do
    out[#out + 1] = row
    local run = notes[i]
    if run then
      for _, write in ipairs(run.writes) do out[#out + 1] = "      wrote: " .. write end
      if run.error then out[#out + 1] = text.indent(run.error, "      ") end
    end
  end
end

--- The lines of an answer of GET /why.
---@param key string
---@param answer table
---@return string[]
function M.lines(key, answer)
  local out = { key }
  for _, script in ipairs(answer.scripts) do
    for _, controller in ipairs(script.controllers) do
      out[#out + 1] = ("  %s, for %s (%s, revision %s)"):format(controller.name, controller.resource, controller.place,
        script.revision)
      out[#out + 1] = "    object  " .. object_line(controller.object)
      out[#out + 1] = "    queue   " .. queue_line(controller)
      if controller.state == "syncing" then
        out[#out + 1] = "    nothing runs yet: the controller waits for " .. (controller.missing or "its caches")
      elseif controller.state == "standby" then
        out[#out + 1] = "    nothing runs here: another process leads"
      end
      put_runs(out, controller.runs, script.revision)
    end
  end
  return out
end

return M
