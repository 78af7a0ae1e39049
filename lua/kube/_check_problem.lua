-- Why a script does not load: the report of its failure, taken apart for people and programs.
local codec = require("kube._core").codec

local M = {}

local FRAMES_MAX = 8

-- The places of the script on the stack, but for the innermost one that the message names already.
local function callers(stack, place)
  local places = codec.array {}
  for path, line in stack:gmatch("\n\t([^\n]-):(%d+): in ") do
    local where = path .. ":" .. line
    local shown = where == place or where == places[#places]
    if not path:find("^lua/kube/") and not shown and #places < FRAMES_MAX then table.insert(places, where) end
  end
  return #places > 0 and places or nil
end

-- A paragraph: the message, lines of the script with their numbers, and a traceback.
local function read_paragraph(text)
  local shown, stack = text:match("^(.-)(\nstack traceback:.*)$")
  local message, excerpt = {}, codec.array {}
  for line in ((shown or text:gsub("\nin task main$", "")) .. "\n"):gmatch("([^\n]*)\n") do
    local is_excerpt = line:find("^ *%d+ | ") or (line:find("^ +| ") and #excerpt > 0)
    table.insert(is_excerpt and excerpt or message, line)
  end
  message = table.concat(message, "\n")
  local path, line = message:match("^([^\n]-):(%d+): ")
  return { message = message, file = path, line = tonumber(line), excerpt = #excerpt > 0 and excerpt or nil,
    called_from = callers(stack or "", path and path .. ":" .. line) }
end

---@class kube.CheckProblem
---@field message string
---@field file? string
---@field line? integer
---@field excerpt? string[] lines of the script, with their numbers
---@field called_from? string[] places in the script

--- All that the report of a script has to say that cannot be read, compiled or loaded.
---@param report string a paragraph for each problem
---@return kube.CheckProblem[]
function M.read(report)
  local all = codec.array {}
  for text in (report .. "\n\n"):gmatch("(.-)\n\n+") do table.insert(all, read_paragraph(text)) end
  return all
end

return M
