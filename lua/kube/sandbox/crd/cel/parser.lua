-- Expressions of CEL as trees. Nodes: { op = "literal" | "ident" | "select" | "index" | "call" | "list"
-- | "map" | "ternary" | "and" | "or" | "has" | "comprehension" }; the function of a call is checked to
-- be one that can be run. Raises { cel = message }.
local json = require "kube.sandbox.json"
local functions = require "kube.sandbox.crd.cel.functions"
local lexer = require "kube.sandbox.crd.cel.lexer"

local parser = {}

local MAX_DEPTH = 100

local function fail(message) error({ cel = message }, 0) end

local function peek(p, value)
  local token = p.tokens[p.i]
  return token.kind == "op" and token.value == value
end

local function accept(p, value)
  if not peek(p, value) then return false end
  p.i = p.i + 1
  return true
end

local function expect(p, value)
  if not accept(p, value) then fail(("%q is missing at %d"):format(value, p.tokens[p.i].at)) end
end

local function call(p, name, ...)
  if not functions.is_known(name) then fail(("%s() is not supported"):format(name)) end
  p.calls[name] = true
  return { op = "call", name = name, args = { ... } }
end

local expression

local function ident(p)
  local token = p.tokens[p.i]
  if token.kind ~= "ident" then fail(("a name is missing at %d"):format(token.at)) end
  p.i = p.i + 1
  return token.value
end

local function arguments(p, close)
  local list = {}
  if accept(p, close) then return list end
  repeat
    if peek(p, close) then break end
    list[#list + 1] = expression(p)
  until not accept(p, ",")
  expect(p, close)
  return list
end

-- ---- macros ----

local COMPREHENSIONS = { all = true, exists = true, exists_one = true, existsOne = true, map = true, filter = true,
  transformList = true, transformMap = true }

local function variable(node)
  if node.op ~= "ident" then fail("a macro needs the name of a variable") end
  return node.name
end

-- target.all(x, ...), or with two variables (key and value, index and item).
local function comprehension(name, target, args)
  local n = #args
  local two_allowed = name ~= "map" and name ~= "filter"
  if n == 2 then
    return { op = "comprehension", kind = name, target = target, variable = variable(args[1]), body = args[2] }
  elseif n == 3 and name == "map" then
    return { op = "comprehension", kind = name, target = target, variable = variable(args[1]), only = args[2],
      body = args[3] }
  elseif n == 3 and two_allowed then
    return { op = "comprehension", kind = name, target = target, key = variable(args[1]),
      variable = variable(args[2]), body = args[3] }
  elseif n == 4 and name:find("^transform") then
    return { op = "comprehension", kind = name, target = target, key = variable(args[1]),
      variable = variable(args[2]), only = args[3], body = args[4] }
  end
  fail(name .. "() has the wrong number of arguments")
end

local function member_call(p, target, name, args)
  if COMPREHENSIONS[name] then return comprehension(name, target, args) end
  if name == "optMap" or name == "optFlatMap" then
    if #args ~= 2 then fail(name .. "() has the wrong number of arguments") end
    return { op = "optional_map", target = target, variable = variable(args[1]), body = args[2],
      flat = name == "optFlatMap" }
  end
  if target.op == "ident" and functions.is_namespace(target.name) then
    return call(p, target.name .. "." .. name, unpack(args))
  end
  return call(p, "." .. name, target, unpack(args))
end

-- ---- primary expressions ----

local function map_literal(p)
  local node = { op = "map" }
  while not accept(p, "}") do
    if accept(p, "?") then fail("optional entries are not supported") end
    local key = expression(p)
    expect(p, ":")
    node[#node + 1] = { key, expression(p) }
    if not accept(p, ",") then
      expect(p, "}")
      break
    end
  end
  return node
end

local LITERALS = { ["true"] = true, ["false"] = false, null = json.null }

local function named(p)
  local name = ident(p)
  if LITERALS[name] ~= nil then return { op = "literal", value = LITERALS[name] } end
  if not accept(p, "(") then
    if name == "oldSelf" then p.uses_old = true end
    return { op = "ident", name = name }
  end
  local at = p.tokens[p.i - 1].at
  local args = arguments(p, ")")
  if name ~= "has" then return call(p, name, unpack(args)) end
  local selected = args[1]
  if #args ~= 1 or selected.op ~= "select" then fail("has() needs a field") end
  return { op = "has", target = selected.target, name = selected.name, at = at }
end

local function primary(p)
  local token = p.tokens[p.i]
  if token.kind == "int" or token.kind == "double" or token.kind == "string" then
    p.i = p.i + 1
    return { op = "literal", value = token.value }
  end
  if token.kind == "ident" then return named(p) end
  if accept(p, ".") then return named(p) end
  if accept(p, "(") then
    local node = expression(p)
    expect(p, ")")
    return node
  end
  if accept(p, "[") then return { op = "list", items = arguments(p, "]") } end
  if accept(p, "{") then return map_literal(p) end
  fail(("an expression is missing at %d"):format(token.at))
end

local function member(p)
  local node = primary(p)
  while true do
    local at = p.tokens[p.i].at
    if accept(p, ".") then
      local name = ident(p)
      if accept(p, "(") then
        node = member_call(p, node, name, arguments(p, ")"))
      else
        node = { op = "select", target = node, name = name, at = at }
      end
    elseif accept(p, ".?") then
      node = { op = "select", target = node, name = ident(p), at = at, optional = true }
    elseif accept(p, "[") then
      node = { op = "index", target = node, index = expression(p) }
      expect(p, "]")
    elseif accept(p, "[?") then
      node = { op = "index", target = node, index = expression(p), optional = true }
      expect(p, "]")
    else
      return node
    end
  end
end

local function unary(p)
  if accept(p, "!") then return { op = "call", name = "!_", args = { unary(p) } } end
  if accept(p, "-") then
    local token = p.tokens[p.i]
    if token.kind == "int" or token.kind == "double" then
      p.tokens[p.i] = { kind = token.kind, value = -token.value, at = token.at }
      return member(p)
    end
    return { op = "call", name = "-_", args = { unary(p) } }
  end
  return member(p)
end

-- ---- operators, the tightest first ----

local LEVELS = {
  { ["*"] = true, ["/"] = true, ["%"] = true },
  { ["+"] = true, ["-"] = true },
  { ["<"] = true, ["<="] = true, [">"] = true, [">="] = true, ["=="] = true, ["!="] = true, ["in"] = true },
}

local function operator_of(p, level)
  local token = p.tokens[p.i]
  if (token.kind == "op" or token.kind == "ident") and LEVELS[level][token.value] then
    p.i = p.i + 1
    return token.value
  end
end

local function binary(p, level)
  if level == 0 then return unary(p) end
  local node = binary(p, level - 1)
  local operator = operator_of(p, level)
  while operator do
    node = { op = "call", name = "_" .. operator .. "_", args = { node, binary(p, level - 1) } }
    operator = operator_of(p, level)
  end
  return node
end

local function conjunction(p)
  local node = binary(p, #LEVELS)
  while accept(p, "&&") do node = { op = "and", node, binary(p, #LEVELS) } end
  return node
end

local function disjunction(p)
  local node = conjunction(p)
  while accept(p, "||") do node = { op = "or", node, conjunction(p) } end
  return node
end

function expression(p)
  p.depth = p.depth + 1
  if p.depth > MAX_DEPTH then fail("the expression nests too deeply") end
  local node = disjunction(p)
  if accept(p, "?") then
    local yes = disjunction(p)
    expect(p, ":")
    node = { op = "ternary", node, yes, expression(p) }
  end
  p.depth = p.depth - 1
  return node
end

--- The tree of a source text, and whether it looks at oldSelf; nil and why when it cannot be run.
function parser.parse(source)
  local ok, node, uses_old = pcall(function()
    local p = { tokens = lexer.tokens(source), i = 1, depth = 0, calls = {} }
    local root = expression(p)
    if p.tokens[p.i].kind ~= "end" then fail(("unexpected text at %d"):format(p.tokens[p.i].at)) end
    return root, p.uses_old or false
  end)
  if ok then return node, uses_old end
  if type(node) ~= "table" then error(node, 0) end
  return nil, node.cel
end

return parser
