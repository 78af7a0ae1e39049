-- Reading a document into its kind: what is not known, what is there twice, what has the wrong type.
-- Built-in kinds are read as Go structs, custom ones by their schema, their metadata as a struct.
local json = require "kube.sandbox.json"
local coerce = require "kube.sandbox.crd.coerce"
local prune = require "kube.sandbox.crd.prune"
local text_order = require "kube.sandbox.validate.text_order"
local typed = require "kube.sandbox.validate.typed"

local strict = {}

-- The decoder stops to collect after so many.
local LIMIT = 100

local State = {}
State.__index = State

function State:unknown(path) self[#self + 1] = { path = path, text = ('unknown field "%s"'):format(path) } end

function State:refuse(path, text, fatal)
  self.refusals[#self.refusals + 1] = { path = path, text = text, fatal = fatal }
end

local function new_state() return setmetatable({ refusals = {} }, State) end

-- Sorts problems by their place in the text, or by path when there is none.
local function sort(problems, text)
  if #problems < 2 then return end
  local first, second = {}, {}
  if text then first, second = text_order.of(text) end
  local function place(p) return p.repeated and second[p.path] or first[p.path] or math.huge end
  table.sort(problems, function(a, b)
    local x, y = place(a), place(b)
    if x ~= y then return x < y end
    return a.path < b.path
  end)
end

-- Fields inside what is unknown are not looked at, so that one told twice there is not told.
local function is_inside(path, unknown)
  for _, problem in ipairs(unknown) do
    local outer = problem.path
    local next_char = path:sub(#outer + 1, #outer + 1)
    if path:sub(1, #outer) == outer and (next_char == "" or next_char == "." or next_char == "[") then return true end
  end
  return false
end

local function texts_of(problems)
  local texts, told = {}, {}
  for _, problem in ipairs(problems) do
    if #texts >= LIMIT then break end
    if not told[problem.text] then texts[#texts + 1] = problem.text end
    told[problem.text] = true
  end
  return texts
end

-- The decoder goes on after a value of the wrong type and tells the first at the end; a type that
-- reads itself stops it at once.
local function refusal_of(refusals, text)
  sort(refusals, text)
  for _, refusal in ipairs(refusals) do
    if refusal.fatal then return refusal.text end
  end
  return refusals[1] and refusals[1].text
end

local function duplicate(path) return { path = path, text = ('duplicate field "%s"'):format(path), repeated = true } end

local function check_builtin(R, document, text)
  local state = new_state()
  local clean = typed.read(state, R.definition, document)
  local problems = {}
  for _, path in ipairs(text and json.duplicates(text) or {}) do
    if not is_inside(path, state) then problems[#problems + 1] = duplicate(path) end
  end
  for _, problem in ipairs(state) do problems[#problems + 1] = problem end
  sort(problems, text)
  return clean, texts_of(problems), refusal_of(state.refusals, text)
end

local function check_custom(R, document, text)
  local state = new_state()
  local problems = {}
  for i, path in ipairs(text and json.duplicates(text) or {}) do problems[i] = duplicate(path) end
  local clean = coerce.metadata(state, R.schema, document)
  if state.refusals[1] then return document, {}, refusal_of(state.refusals) end
  sort(state)
  for _, problem in ipairs(state) do problems[#problems + 1] = problem end
  if R.schema then
    local unknown
    clean, unknown = prune.prune(clean, R.schema)
    for _, path in ipairs(unknown) do
      problems[#problems + 1] = { text = ('unknown field "%s"'):format(path) }
    end
  end
  return clean, texts_of(problems)
end

--- What a document of kind R becomes once it is read, an array of problems that only strict readers
--- mind ('unknown field "spec.x"', 'duplicate field "spec.y"'), and the text of a refusal or nil.
--- `text` is the JSON that the document came from, when it did.
function strict.check(R, document, text)
  if R.builtin then return check_builtin(R, document, text) end
  return check_custom(R, document, text)
end

return strict
