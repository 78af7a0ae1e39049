-- JSON Patch (RFC 6902) as kube-apiserver applies it. Where it departs from the RFC so does this:
-- negative indices count from the end, replace of a missing member adds it, test of a missing member
-- against null holds, and what stands before the first slash of a pointer is ignored.
local json = require "kube.sandbox.json"

local json_patch = {}

local OPERATIONS_MAX = 10000
local REFUSED = "the server rejected our request due to an error in our request"

-- A patch in progress: `root` is the document, `owned` holds the tables that were made here and may
-- therefore be changed. Everything else is copied, one level, before its first change.
local Work = {}
Work.__index = Work

local function refuse() error(REFUSED, 0) end

local unescaped = { ["0"] = "~", ["1"] = "/" }

local function parse(pointer)
  if type(pointer) ~= "string" then refuse() end
  local tokens = {}
  for token in pointer:gmatch("/([^/]*)") do tokens[#tokens + 1] = token:gsub("~([01])", unescaped) end
  if #tokens == 0 then refuse() end
  return tokens
end

-- The position that `token` names among n elements, as strconv.Atoi reads it; refused outside.
local function position(token, n)
  local index = token:match("^[+-]?%d+$") and tonumber((token:gsub("^%+", "")))
  if not index then refuse() end
  if index < 0 then index = index + n end
  if index < 0 or index >= n then refuse() end
  return index + 1
end

local function slot(container, token)
  if json.is_array(container) then return position(token, #container) end
  return token
end

function Work:own(value)
  if self.owned[value] then return value end
  local copy = json.shallow(value)
  self.owned[copy] = true
  return copy
end

-- The container that `pointer` ends in, and the last token. With `change` it is ready to be changed.
function Work:locate(pointer, change)
  local tokens = parse(pointer)
  if change then self.root = self:own(self.root) end
  local container = self.root
  for i = 1, #tokens - 1 do
    local key = slot(container, tokens[i])
    local child = container[key]
    if type(child) ~= "table" then refuse() end
    if change then
      child = self:own(child)
      container[key] = child
    end
    container = child
  end
  return container, tokens[#tokens]
end

function Work:read(pointer)
  local container, token = self:locate(pointer)
  return container[slot(container, token)]
end

function Work:add(pointer, value)
  local container, token = self:locate(pointer, true)
  if value == nil then value = json.null end
  if not json.is_array(container) then
    container[token] = value
  elseif token == "-" then
    container[#container + 1] = value
  else
    table.insert(container, position(token, #container + 1), value)
  end
end

function Work:remove(pointer)
  local container, token = self:locate(pointer, true)
  local key = slot(container, token)
  if container[key] == nil then refuse() end
  if json.is_array(container) then table.remove(container, key) else container[key] = nil end
end

function Work:replace(pointer, value)
  if value == nil then value = json.null end
  if pointer == "" then
    if type(value) ~= "table" then refuse() end
    self.root = value
    return
  end
  local container, token = self:locate(pointer, true)
  container[slot(container, token)] = value
end

function Work:test(pointer, value)
  local found
  if pointer == "" then found = self.root else found = self:read(pointer) end
  if value == nil then value = json.null end
  if found == nil then found = json.null end
  if not json.equal(found, value) then refuse() end
end

local operations = {}

function operations.add(work, op) work:add(op.path, op.value) end
function operations.remove(work, op) work:remove(op.path) end
function operations.replace(work, op) work:replace(op.path, op.value) end
function operations.test(work, op) work:test(op.path, op.value) end

function operations.move(work, op)
  local value = work:read(op.from)
  work:remove(op.from)
  work:add(op.path, value)
end

function operations.copy(work, op)
  -- A deep copy: the value may hold tables owned here, which must not be in two places.
  local value = work:read(op.from)
  work:add(op.path, value ~= nil and json.copy(value) or nil)
end

local function run(work, ops)
  for _, op in ipairs(ops) do
    local act = op ~= json.null and operations[op.op]
    if not act then refuse() end
    act(work, op)
  end
  return work.root
end

local kinds = { table = "object", string = "string", number = "number", cdata = "number", boolean = "bool" }

local function json_kind(value)
  if json.is_array(value) then return "array" end
  return kinds[type(value)] or "null"
end

local MEMBERS = { op = true, path = true, from = true, value = true }

--- What fieldValidation Warn and Strict say about the patch itself: a list of texts for members that
--- no operation has, or nil and the text of a 400 when it cannot be read at all.
function json_patch.check(ops)
  local function cannot(what, target)
    return nil, ("error decoding patch: json: cannot unmarshal %s into Go %s"):format(json_kind(what), target)
  end
  local unknown = {}
  if ops == json.null then return unknown end
  if not json.is_array(ops) then return cannot(ops, "value of type []handlers.jsonPatchOp") end
  for i, op in ipairs(ops) do
    if op ~= json.null and not json.is_object(op) then return cannot(op, "value of type handlers.jsonPatchOp") end
    for _, name in ipairs { "op", "path", "from" } do
      local value = op ~= json.null and op[name]
      if value and value ~= json.null and type(value) ~= "string" then
        return cannot(value, ("struct field jsonPatchOp.%s of type string"):format(name))
      end
    end
    local extra = {}
    for name in pairs(op ~= json.null and op or {}) do
      if not MEMBERS[name] then extra[#extra + 1] = ('json patch unknown field "[%d].%s"'):format(i - 1, name) end
    end
    table.sort(extra)
    for _, text in ipairs(extra) do unknown[#unknown + 1] = text end
  end
  return unknown
end

local function unreadable(ops)
  local text = "json: cannot unmarshal %s into Go value of type jsonpatch.%s"
  if not json.is_array(ops) then return text:format(json_kind(ops), "Patch") end
  for _, op in ipairs(ops) do
    if op ~= json.null and not json.is_object(op) then return text:format(json_kind(op), "Operation") end
  end
end

--- The patched document, or nil, the kind of refusal (bad_request 400, too_large 413, unprocessable
--- 422) and its text. Neither argument is changed; the result shares what did not change.
function json_patch.apply(doc, ops)
  if ops == json.null then return doc end
  local misfit = unreadable(ops)
  if misfit then return nil, "bad_request", misfit end
  if #ops > OPERATIONS_MAX then
    return nil, "too_large", ("Request entity too large: The allowed maximum operations in a JSON patch is %d, got %d")
      :format(OPERATIONS_MAX, #ops)
  end
  local work = setmetatable({ root = doc, owned = {} }, Work)
  local ok, result = pcall(run, work, ops)
  if ok then return result end
  if result ~= REFUSED then error(result, 0) end
  return nil, "unprocessable", REFUSED
end

return json_patch
