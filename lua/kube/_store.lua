-- kube.store: small memory that outlives a reload. Values are kept as JSON by the host, which belongs to all revisions
-- of a script; the process takes them with it when it ends.
local core = require "kube._core"
local errors = require "kube._error"
local options = require "kube._options"

local codec, program = core.codec, core.program

local store = {}

-- What other parts keep there (kube._timer) begins with a byte that no name of a script has.
local PRIVATE = "\0"

local function check_name(what, name)
  if type(name) ~= "string" or name == "" then
    errors.misuse("%s: the name must be a text, not %s", what, name == "" and "an empty one" or "a " .. type(name))
  elseif name:find("%c") then
    errors.misuse("%s: the name must have no control characters", what)
  end
end

local function keep(what, name, value, seconds)
  local ok, text = pcall(codec.encode, value)
  if not ok then
    errors.misuse("%s: the value of '%s' is not plain data: %s", what, name, tostring(text):gsub("^[^ ]+:%d+: ", ""))
  elseif not program.set(name, text, seconds) then
    errors.misuse("%s: there is no room for '%s': 10,000 names and 4 MiB is what kube.store holds", what, name)
  end
end

local function read(name)
  local text = program.get(name)
  if text then return codec.decode(text) end
end

--- Keeps a value under a name, for all revisions of this script: text, numbers, booleans, and tables of them.
---@param name string
---@param value any nil forgets it
---@param seconds? number forgets it after so long
function store.set(name, value, seconds)
  local what = "kube.store.set(name, value, seconds)"
  check_name(what, name)
  options.check_timeout(what .. ": seconds", seconds)
  if value == nil then
    program.set(name, nil)
  else
    keep(what, name, value, seconds)
  end
end

--- What was kept under a name, as a copy; nil when there is nothing.
---@param name string
---@return any
function store.get(name)
  check_name("kube.store.get(name)", name)
  return read(name)
end

--- Adds to a number that is kept under a name, where nothing counts as 0.
---@param name string
---@param by? number default: 1
---@return number new
function store.incr(name, by)
  local what = "kube.store.incr(name, by)"
  check_name(what, name)
  if by ~= nil and type(by) ~= "number" then errors.misuse("%s: by must be a number, not a %s", what, type(by)) end
  local value = read(name) or 0
  if type(value) ~= "number" then
    errors.misuse("%s: what is kept under '%s' is a %s, not a number", what, name, type(value))
  end
  value = value + (by or 1)
  keep(what, name, value)
  return value
end

--- All names under which something is kept, sorted.
---@return string[]
function store.names()
  local names = {}
  for _, name in ipairs(program.names()) do
    if name:sub(1, 1) ~= PRIVATE then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

return store
