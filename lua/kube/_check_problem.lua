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
      table.insert(shown, ("%s%5d | %s"):format(at == number and ">" or " ", at, (line:gsub("\r$", ""))))
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
    local shown = where == place or where == places[#places]
    if not path:find("^lua/kube/") and not shown and #places < FRAMES_MAX then table.insert(places, where) end
  end
  return #places > 0 and places or nil
end

-- What a load failed with, and the place in the script that it names.
local function read_failure(report)
  local message, stack = report:match("^(.-)(\nstack traceback:.*)$")
  message = message or report:gsub("\nin task main$", "")
  local path, line = message:match("^([^\n]-):(%d+): ")
  if not path then return { message = message, called_from = callers(stack or "") } end
  return { message = message, file = path, line = tonumber(line), excerpt = excerpt_of(path, tonumber(line)),
    called_from = callers(stack or "", path .. ":" .. line) }
end

-- A paragraph about a file that cannot be compiled, which shows the line itself.
local function read_paragraph(text)
  local message, shown = text:match("^([^\n]*)\n?(.*)$")
  local path, line = message:match("^([^\n]-):(%d+): ")
  local excerpt = codec.array {}
  for row in shown:gmatch("[^\n]+") do table.insert(excerpt, row) end
  return { message = message, file = path, line = tonumber(line), excerpt = #excerpt > 0 and excerpt or nil }
end

local function each_paragraph(report, read)
  local all = codec.array {}
  for text in (report .. "\n\n"):gmatch("(.-)\n\n+") do table.insert(all, read(text)) end
  return all
end

---@class kube.CheckProblem
---@field message string
---@field file? string
---@field line? integer
---@field excerpt? string[]
---@field called_from? string[] places in the script

--- All that a load failed with.
---@param report string a paragraph for each reason, perhaps with a traceback
---@return kube.CheckProblem[]
function M.of_load(report) return each_paragraph(report, read_failure) end

--- All that the report about files that cannot be compiled, or be read, has to say.
---@param report string
---@return kube.CheckProblem[]
function M.of_files(report) return each_paragraph(report, read_paragraph) end

return M
