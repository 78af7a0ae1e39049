-- Writes one Event: as often as it takes, within reason. Pure: requests, time and chance come from outside.
local M = {}

local TRIES = 12
local PAUSE = 10 -- seconds between two of them

-- Whether the server has answered: then it is no use to ask again.
local function is_answer(err) return err.status ~= nil or err.code == "not_leading" or err.retriable == false end

local function is_namespace_terminating(err)
  for _, cause in ipairs(err.details and err.details.causes or {}) do
    if cause.reason == "NamespaceTerminating" then return true end
  end
  return false
end

-- One try: true when there is nothing more to do, or false and why.
local function attempt(io, event, patch)
  local answer, err
  if patch then answer, err = io.patch(event, patch) end
  -- Events are deleted after an hour, so what was counted up may be gone.
  if not patch or (not answer and err.status == 404) then answer, err = io.create(event) end
  if answer then
    io.note("written", event)
    return true
  end
  -- Two that are the same, shortly after each other: the second found nothing to patch, and now there is.
  if patch and event.series and err.code == "already_exists" then return false, err end
  if not is_answer(err) then return false, err end
  local quiet = err.code == "already_exists" or is_namespace_terminating(err)
  io.note(quiet and "superfluous" or "refused", event, err)
  return true
end

--- Writes an event, or patches the one that is there. Awaits.
---@param io table<string, function> create(event), patch(event, patch): the answer, or nil and the error;
--- sleep(seconds): returns early when the end begins; is_stopping(): whether it has; random(): from 0 up to 1;
--- note(what, event, err): "written", "superfluous", "refused", "given up"
---@param event table
---@param patch? table
---@return boolean
function M.write(io, event, patch)
  for try = 1, TRIES do
    local done, err = attempt(io, event, patch)
    if done then return true end
    if try < TRIES and not io.is_stopping() then
      -- Not all clients of a server that was away shall come back at once.
      io.sleep(try == 1 and PAUSE * io.random() or PAUSE)
    end
    if try == TRIES or io.is_stopping() then
      io.note("given up", event, err)
      return false
    end
  end
end

return M
