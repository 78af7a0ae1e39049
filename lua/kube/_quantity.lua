-- kube.quantity: resource quantities, which are text in objects and stay text here: what goes in and comes
-- out can be put into an object, and no digit is lost on the way.
local amount = require "kube._amount"
local codec = require("kube._core").codec
local errors = require "kube._error"
local options = require "kube._options"

local M = {}

---@alias kube.Quantity string|number "100m", "1.5Gi", "1e3", 2

local function read(what, value)
  local text = value
  if type(value) == "cdata" or type(value) == "number" and math.abs(value) < math.huge then
    text = codec.encode(value)
  end
  local parsed = type(text) == "string" and amount.parse(text)
  if parsed then return parsed end
  errors.misuse("%s: %s is not a quantity, which is a number and perhaps a suffix: \"100m\", \"1.5\", \"2Gi\"", what,
    type(value) == "string" and "'" .. value .. "'" or options.shown(value))
end

--- Whether a value is a quantity.
---@param value any
---@return boolean
function M.is_valid(value)
  if type(value) == "number" then return value == value and math.abs(value) < math.huge end
  return type(value) == "string" and amount.parse(value) ~= nil
end

--- The quantity as Kubernetes writes it: with the largest suffix of its sort that leaves no fraction.
--- "1000m" is "1", "1.5Gi" is "1536Mi". Finer than a billionth is rounded away from zero.
---@param quantity kube.Quantity
---@return string
function M.canonical(quantity) return amount.format(read("quantity.canonical", quantity)) end

--- The nearest Lua number: 0.1 for "100m".
---@param quantity kube.Quantity
---@return number
function M.number(quantity) return amount.number(read("quantity.number", quantity)) end

--- -1 when a is less than b, 0 when they are equal, 1 when it is more; "1" equals "1000m".
---@param a kube.Quantity
---@param b kube.Quantity
---@return integer
function M.compare(a, b) return amount.compare(read("quantity.compare", a), read("quantity.compare", b)) end

--- a + b, in the sort of suffix that a has, or that of b when a is 0.
---@param a kube.Quantity
---@param b kube.Quantity
---@return string
function M.add(a, b) return amount.format(amount.add(read("quantity.add", a), read("quantity.add", b))) end

--- a - b, in the sort of suffix that a has, or that of b when a is 0.
---@param a kube.Quantity
---@param b kube.Quantity
---@return string
function M.sub(a, b)
  return amount.format(amount.add(read("quantity.sub", a), amount.negate(read("quantity.sub", b))))
end

return M
