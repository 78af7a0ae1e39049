-- Options tables: every key is known, every type is right, or the call raises and says so.
local core = require "kube._core"
local errors = require "kube._error"

local options = {}

-- Edit distance, for did-you-mean.
local function distance(a, b)
  local previous = {}
  for j = 0, #b do previous[j] = j end
  for i = 1, #a do
    local current = { [0] = i }
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      current[j] = math.min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + cost)
    end
    previous = current
  end
  return previous[#b]
end

--- The name among `known` (a map by name) that is closest to `word`, or nil when none is near: one that has no letter
--- in common with a short word is not.
---@param most? integer of how many letters it may differ
function options.nearest(word, known, most)
  local best, best_distance = nil, math.min(math.max(2, math.floor(#word / 3)), #word - 1, most or math.huge) + 1
  for name in pairs(known) do
    local d = type(name) == "string" and distance(word, name) or math.huge
    if d < best_distance or (d == best_distance and best and name < best) then
      best, best_distance = name, d
    end
  end
  return best
end

--- " (did you mean 'x'?)", or the list of what there is.
function options.hint(word, known)
  local near = options.nearest(word, known)
  if near then return (" (did you mean '%s'?)"):format(near) end
  local names = {}
  for name in pairs(known) do names[#names + 1] = name end
  table.sort(names)
  return ("; it has: %s"):format(table.concat(names, ", "))
end

local function type_fits(value, wanted)
  for kind in wanted:gmatch("[%w_.]+") do
    if type(value) == kind then return true end
    if kind == "client" and getmetatable(value) == "kube.client" then return true end
    if kind == "null" and value == core.codec.null then return true end
  end
  return false
end

-- What is wrong with each option, in the order of their names.
local function all_wrong(what, given, known)
  local names, sentences = {}, {}
  for name in pairs(given) do names[#names + 1] = name end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for _, name in ipairs(names) do
    local wanted, value = known[name], given[name]
    if not wanted then
      sentences[#sentences + 1] = ("%s has no option '%s'%s"):format(what, tostring(name),
        options.hint(tostring(name), known))
    elseif not type_fits(value, wanted) then
      sentences[#sentences + 1] = ("%s: option '%s' must be a %s, not a %s"):format(what, name,
        (wanted:gsub("|", " or ")), type(value))
    end
  end
  return sentences
end

--- Checks `given` against `known` (name -> "type" or "type|type") and returns it, {} for nil.
--- what names the function in messages.
function options.check(what, given, known)
  if given == nil then return {} end
  if type(given) ~= "table" then
    errors.misuse("%s takes a table of options, not a %s", what, type(given))
  end
  for name, value in pairs(given) do
    if not known[name] or not type_fits(value, known[name]) then
      errors.misuse("%s", table.concat(all_wrong(what, given, known), "; "))
    end
  end
  return given
end

--- What was given in place of something else, for messages: "a table", "null".
---@return string
function options.shown_type(value)
  if value == nil then return "nil" end
  return value == core.codec.null and "null" or "a " .. type(value)
end

--- What was given in place of a number, for messages: a number itself, of all else the type.
---@return string
function options.shown(value) return type(value) == "number" and tostring(value) or options.shown_type(value) end

--- Checks a number of seconds to wait: nil, or 0 and more. what names the argument in messages.
function options.check_timeout(what, seconds)
  if seconds == nil or (type(seconds) == "number" and seconds >= 0) then return end
  errors.misuse("%s must be a number of seconds, not %s", what, options.shown(seconds))
end

--- Makes the methods of a class say what is wrong when one is called with a dot, or is not there.
---@param class table the methods
---@param what string what a script calls such a value: "informer"
---@param more? { is?: fun(value: any): boolean, advice?: fun(name: string): string? } how a value of
--- the class is known when not by its metatable; a better hint for some names
function options.guard(class, what, more)
  local is = more and more.is or function(value) return getmetatable(value) == class end
  local advice = more and more.advice or function() end
  local public = {}
  for name, fn in pairs(class) do
    if type(fn) == "function" and not name:find("^_") then
      public[name] = true
      class[name] = function(self, ...)
        if is(self) then return fn(self, ...) end
        errors.misuse("call it with a colon: %s:%s(...), not %s.%s(...)", what, name, what, name)
      end
    end
  end
  setmetatable(class, { __index = function(_, name)
    if type(name) ~= "string" or name:find("^_") then return nil end
    errors.misuse("%s has no '%s'%s", what, name, advice(name) or options.hint(name, public))
  end })
end

--- Makes a table of functions raise for a name that it does not have, rather than give a nil to call.
---@param library table
---@param what string what a script calls it: "kube.time"
---@return table library
function options.library(library, what)
  return setmetatable(library, { __index = function(_, name)
    if type(name) ~= "string" or name:find("^_") then return nil end
    errors.misuse("%s has no '%s'%s", what, name, options.hint(name, library))
  end })
end

return options
