-- Why a script does not load: the report of its failure, taken apart for people and programs.
local codec = require("kube._core").codec

local M = {}

local AROUND = 1     -- lines shown before and behind the one that is meant
local FRAMES_MAX = 8

-- The lines around one of a file, numbered; nil when it cannot be read.
local function excerpt_of(path, number)
  local file = io.open(path, "rb")
  if not file then return nil end
  local shown, at = codec.array {}, 0
  for line in file:lines() do
    at = at + 1
    if at > number + AROUND then break end
    if at >= number - AROUND then
      table.insert(shown, ("%s%4d | %s"):format(at == number and ">" or " ", at, (line:gsub("\r$", ""))))
    end
  end
  file:close()
  return #shown > 0 and shown or nil
end

-- The places of the script on the stack, but for the innermost one that the message names already.
local function callers(stack, place)
  local places = codec.array {}
  for path, line in stack:gmatch("\n\t([^\n]-):(%d+): in ") do
    local where = path .. ":" .. line
    if not path:find("^lua/kube/") and where ~= place and #places < FRAMES_MAX then table.insert(places, where) end
  end
  return #places > 0 and places or nil
end

--- The message of a failed load, with the place in the script that it names.
---@param report string with a traceback, perhaps
---@return { message: string, file?: string, line?: integer, excerpt?: string[], called_from?: string[] }
function M.read(report)
  local message, stack = report:match("^(.-)(\nstack traceback:.*)$")
  message = message or report:gsub("\nin task main$", "")
  local path, line = message:match("^([^\n]-):(%d+): ")
  if not path then return { message = message, called_from = callers(stack or "") } end
  return { message = message, file = path, line = tonumber(line), excerpt = excerpt_of(path, tonumber(line)),
    called_from = callers(stack or "", path .. ":" .. line) }
end

return M
