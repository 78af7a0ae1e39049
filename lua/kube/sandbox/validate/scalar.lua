-- The checks of a schema that look at one value: its type, enum, bounds, length, pattern and format.
-- Each gets a report to write to (see kube.sandbox.validate.schema) and the value's name.
local json = require "kube.sandbox.json"
local field = require "kube.sandbox.field"
local format = require "kube.sandbox.validate.format"
local regex = require "kube.sandbox.validate.regex"
local values = require "kube.sandbox.validate.value"

local scalar = {}

local kind_of = values.kind
local JSON_INTEGER = 2 ^ 53 - 1

-- Towards zero; never -0.
local function truncate(number) return (number < 0 and math.ceil(number) or math.floor(number)) + 0 end

--- The format of a node as far as the server checks it.
function scalar.format(node)
  local name = node.format
  if not name or name == "" then return nil end
  if node["x-kubernetes-int-or-string"] then return name end
  return format.known(name, node.type) and name or nil
end

-- The types that a node allows, nil for any.
local function types_of(node)
  if node["x-kubernetes-int-or-string"] then return { "integer", "string" } end
  return node.type and node.type ~= "" and { node.type } or nil
end

-- Whole enough for Go: the fraction may be a rounding error.
local function is_whole(number)
  if number ~= number or math.abs(number) > JSON_INTEGER then return false end
  local g = truncate(number)
  return g == number or g ~= 0 and math.abs(number - g) / (math.abs(number) + math.abs(g)) < 1e-9
end

local function contains(list, item)
  for _, v in ipairs(list or {}) do
    if v == item then return true end
  end
  return false
end

local go_format = { integer = "int64", number = "float64" }

local function type_error(report, name, wanted, got)
  local text = ("%s in body must be of type %s: %s"):format(name, wanted, field.show(got))
  report:add(text, field.type_invalid, name, got, text)
  return false
end
scalar.type_error = type_error

--- Checks the type; false when it is wrong.
function scalar.check_type(report, node, value, name)
  local types, kind = types_of(node), kind_of(value)
  if kind == "null" then
    if not types or node.nullable then return true end
    return type_error(report, name, table.concat(types, ","), "null")
  end
  local wanted = scalar.format(node)
  local number = kind == "number" and values.double(value)
  local whole = number and is_whole(number) and contains(types, "integer")
  local fits = contains(types, kind) or whole or kind == "integer" and contains(types, "number")
  local text = kind == "string" or kind == "array"
  if wanted and not text and not fits and go_format[kind] ~= wanted then
    return type_error(report, name, wanted, go_format[kind] or "")
  end
  if wanted and text and not contains(types, "number") and not contains(types, "integer") then return true end
  if not types or fits then return true end
  return type_error(report, name, table.concat(types, ","), kind)
end

-- Go converts the value to the type of the enum's before it compares: a double loses its fraction.
local function same(value, enum)
  local a, b = kind_of(value), kind_of(enum)
  if a == "number" and b == "integer" then return truncate(values.double(value)) == enum end
  if a == "integer" and b == "number" then return values.double(value) == values.double(enum) end
  return b ~= "null" and json.equal(value, enum)
end

function scalar.check_enum(report, node, value, name)
  local enum = node.enum
  if not enum or #enum == 0 then return end
  local texts = {}
  for i, allowed in ipairs(enum) do
    if same(value, allowed) then return end
    texts[i] = type(allowed) == "string" and allowed or json.encode(allowed)
  end
  report:add(("%s in body should be one of [%s]"):format(name, table.concat(texts, " ")),
    field.not_supported, name, value, texts)
end

local function length(text)
  local _, continuation = text:gsub("[\128-\191]", "")
  return #text - continuation
end

--- maxLength, minLength, pattern: only the first that fails is told.
function scalar.check_string(report, node, value, name)
  local n = (node.maxLength or node.minLength) and length(value)
  if node.maxLength and n > node.maxLength then
    local text = ("%s in body should be at most %d chars long"):format(name, tonumber(node.maxLength))
    report:add(text, field.too_long, name, tonumber(node.maxLength))
  elseif node.minLength and n < node.minLength then
    report:invalid(name, value, ("%s in body should be at least %d chars long"):format(name, tonumber(node.minLength)))
  elseif node.pattern and node.pattern ~= "" then
    local compiled, problem = regex.compile(node.pattern)
    if not compiled then
      local text = ("%s, but pattern is invalid: %s"):format(node.pattern, problem)
      report:invalid(name, value, ("%s in body should match '%s'"):format(name, text))
    elseif not compiled:match(value) then
      report:invalid(name, value, ("%s in body should match '%s'"):format(name, node.pattern))
    end
  end
end

--- A string against its format; false when the format is not one of strings.
function scalar.check_format(report, node, value, name)
  local wanted = scalar.format(node)
  local check = wanted and format.check(wanted)
  if not check then return false end
  if not check(value) then type_error(report, name, wanted, value) end
  return true
end

-- ---- numbers ----

local ranges = { int32 = { -2 ^ 31, 2 ^ 31 - 1 }, float = { -3.4028234663852886e38, 3.4028234663852886e38 } }

-- Values and bounds have to fit the format; what does not is told without a path.
local function in_range(report, node, number, what, name)
  local exactly_one = not node["x-kubernetes-int-or-string"] and node.type
  local wanted = exactly_one and scalar.format(node) or ""
  local range = ranges[wanted]
  local bad
  if exactly_one == "integer" then
    bad = number % 1 ~= 0 or math.abs(number) >= 2 ^ 63 or range and (number < range[1] or number > range[2])
  else
    bad = range and (number < range[1] or number > range[2])
  end
  if not bad then return true end
  local kind = wanted ~= "" and exactly_one .. " with format " .. wanted or exactly_one .. " (default format)"
  report:unplaced(("%s value must be of type %s in %s"):format(what, kind, name))
  return false
end

-- A bound as it is compared and told: whole when the value is.
local function bound_of(bound, is_integer, fits)
  local number = values.double(bound)
  if is_integer and fits then
    local whole = truncate(number)
    return whole, ("%.0f"):format(whole)
  end
  return number, values.float_text(number)
end

local function check_multiple(report, node, value, number, name)
  local is_integer = kind_of(value) == "integer"
  local fits = in_range(report, node, values.double(node.multipleOf), "MultipleOf", name)
  local factor, text = bound_of(node.multipleOf, is_integer, fits)
  local whole
  if factor <= 0 then
    report:invalid(name, factor, ("factor MultipleOf declared for %s must be positive: %s"):format(name, text))
    return
  elseif is_integer and fits then
    whole = value % factor == 0
  else
    whole = is_whole(factor < 1 and 1 / factor * number or number / factor)
  end
  if not whole then report:invalid(name, value, ("%s in body should be a multiple of %s"):format(name, text)) end
end

local function check_bound(report, node, value, name, side)
  local is_integer = kind_of(value) == "integer"
  local maximum = side == "maximum"
  local what = maximum and "Maximum boundary" or "Minimum boundary"
  local fits = in_range(report, node, values.double(node[side]), what, name)
  local bound, text = bound_of(node[side], is_integer, fits)
  local exclusive = node[maximum and "exclusiveMaximum" or "exclusiveMinimum"] == true
  local compared = is_integer and fits and value or values.double(value)
  local beyond
  if maximum then beyond = compared > bound else beyond = compared < bound end
  if beyond or exclusive and compared == bound then
    local relation = (maximum and "less than" or "greater than") .. (exclusive and "" or " or equal to")
    report:invalid(name, value, ("%s in body should be %s %s"):format(name, relation, text))
  end
end

--- Range of the format, multipleOf, minimum, maximum.
function scalar.check_number(report, node, value, name)
  local number = values.double(value)
  in_range(report, node, number, "Checked", name)
  if node.multipleOf then check_multiple(report, node, value, number, name) end
  if node.minimum then check_bound(report, node, value, name, "minimum") end
  if node.maximum then check_bound(report, node, value, name, "maximum") end
end

return scalar
