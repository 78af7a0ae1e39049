-- kube.quantity, beside a model that counts in long decimal strings.
require "spec.support.helpers_env"
local quantity = require "kube._quantity"

local function refused(text, fn, ...)
  local ok, err = pcall(fn, ...)
  assert.is_false(ok)
  assert.truthy(tostring(err):find("^spec/helpers/quantity_spec%.lua:%d+: "), tostring(err))
  assert.truthy(tostring(err):find(text, 1, true), tostring(err))
end

-- The model: signed integers as strings of digits, by school arithmetic on single digits.
local function strip(digits) return (digits:gsub("^0+(.)", "%1")) end

local function pad(a, b)
  local n = math.max(#a, #b)
  return ("0"):rep(n - #a) .. a, ("0"):rep(n - #b) .. b
end

local function add(a, b)
  a, b = pad(a, b)
  local out, carry = {}, 0
  for i = #a, 1, -1 do
    local value = a:byte(i) + b:byte(i) - 96 + carry
    out[#out + 1] = value % 10
    carry = value > 9 and 1 or 0
  end
  out[#out + 1] = carry
  return strip(table.concat(out):reverse())
end

local function less(a, b)
  a, b = pad(a, b)
  return a < b
end

local function sub(a, b)
  a, b = pad(a, b)
  local out, borrow = {}, 0
  for i = #a, 1, -1 do
    local value = a:byte(i) - b:byte(i) - borrow
    out[#out + 1] = value % 10
    borrow = value < 0 and 1 or 0
  end
  return strip(table.concat(out):reverse())
end

local function times_1024(a)
  local result = "0"
  for _ = 1, 1024 / 64 do
    local x = a
    for _ = 1, 6 do x = add(x, x) end
    result = add(result, x)
  end
  return result
end

local EXPONENTS = { n = -9, u = -6, m = -3, [""] = 0, k = 3, M = 6, G = 9, T = 12, P = 15, E = 18 }
local POWERS = { Ki = 1, Mi = 2, Gi = 3, Ti = 4, Pi = 5, Ei = 6 }

-- Billionths of a quantity with up to nine digits behind the point.
local function billionths(whole, suffix)
  local digits = whole
  if POWERS[suffix] then
    for _ = 1, POWERS[suffix] do digits = times_1024(digits) end
    return strip(digits .. "000000000")
  end
  return strip(digits .. ("0"):rep(EXPONENTS[suffix] + 9))
end

-- Billionths of a text that quantity wrote.
local function value_of(text)
  local sign, whole, suffix = text:match("^(-?)(%d+)(%a*)$")
  local digits = billionths(whole, suffix)
  return digits == "0" and "0" or sign .. digits
end

local function signed_add(a, b)
  local na, nb = a:sub(1, 1) == "-", b:sub(1, 1) == "-"
  local da, db = a:gsub("^-", ""), b:gsub("^-", "")
  if na == nb then return (na and "-" or "") .. add(da, db) end
  if da == db then return "0" end
  if less(da, db) then return (nb and "-" or "") .. sub(db, da) end
  return (na and "-" or "") .. sub(da, db)
end

describe("a quantity", function()
  it("is written as Kubernetes writes it", function()
    local cases = {
      ["0"] = "0", ["0m"] = "0", ["-0"] = "0", ["1000m"] = "1", ["1500m"] = "1500m", ["1.5"] = "1500m",
      ["0.1"] = "100m", ["1000E"] = "1e21", ["1.234"] = "1234m",
      ["100000"] = "100k", ["123456"] = "123456", ["1.5Gi"] = "1536Mi", ["1024Mi"] = "1Gi", ["1024"] = "1024",
      ["0.5Ki"] = "512", ["1Ki"] = "1Ki", ["1.953125Ki"] = "2000", ["2000Ki"] = "2000Ki", ["0.0001Ki"] = "102400u",
      ["1e3"] = "1e3", ["1E3"] = "1e3", ["1500e-3"] = "1500e-3", ["12e2"] = "1200", ["1E"] = "1E", ["100E"] = "100E",
      [".5"] = "500m", ["1."] = "1", ["-2.5"] = "-2500m", ["+1"] = "1", ["1n"] = "1n", ["0.1n"] = "1n",
      ["1.0000000001"] = "1000000001n", ["-0.1n"] = "-1n", ["9223372036854775807"] = "9223372036854775807",
      ["9223372036854775808"] = "9223372036854775808", ["8Ei"] = "9223372036854775807",
      ["16Ei"] = "9223372036854775807", ["7Ei"] = "7Ei",
      ["00012"] = "12", ["1.50"] = "1500m",
    }
    for text, wanted in pairs(cases) do assert.equal(wanted, quantity.canonical(text), text) end
    assert.equal("2", quantity.canonical(2))
    assert.equal("100m", quantity.canonical(0.1))
  end)

  it("compares by value, whatever its suffix", function()
    local equal = { { "1", "1000m" }, { "1Gi", "1024Mi" }, { "1e3", "1k" }, { 2, "2000m" }, { "-0", "0" } }
    for _, pair in ipairs(equal) do assert.equal(0, quantity.compare(pair[1], pair[2])) end
    local rising = { "-1Gi", "-1", "-1m", "0", "1n", "999m", "1", "1.1", "1000", "1Ki", "1M", "1Mi", "1G", "1Gi", "8E" }
    for i = 1, #rising do
      for j = 1, #rising do
        assert.equal(i < j and -1 or i > j and 1 or 0, quantity.compare(rising[i], rising[j]),
          rising[i] .. " " .. rising[j])
      end
    end
  end)

  it("adds and subtracts in the sort of the first, or of the second when that is 0", function()
    assert.equal("1536Mi", quantity.add("1Gi", "512Mi"))
    assert.equal("300m", quantity.add("0.1", "0.2"))
    assert.equal("1Ki", quantity.add("0", "1Ki"))
    assert.equal("1001024", quantity.add("1M", "1Ki"))
    assert.equal("-1", quantity.sub("1", "2"))
    assert.equal("0", quantity.sub("1Gi", "1024Mi"))
    assert.equal("9007199254740993", quantity.add("9007199254740992", "1"))
    assert.equal("900m", quantity.sub(1, "100m"))
  end)

  it("agrees with the model, for any sum", function()
    local seed = os.time()
    math.randomseed(seed)
    local suffixes = { "n", "u", "m", "", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti" }
    local function any()
      local whole = strip(tostring(math.random(0, 10 ^ math.random(0, 6))))
      local suffix = suffixes[math.random(#suffixes)]
      local sign = math.random(2) == 1 and whole ~= "0" and "-" or ""
      return sign .. whole .. suffix, sign .. billionths(whole, suffix)
    end
    for _ = 1, 1000 do
      local a, in_a = any()
      local b, in_b = any()
      local message = ("%s %s, seed %d"):format(a, b, seed)
      assert.equal(in_a, value_of(quantity.canonical(a)), message)
      assert.equal(signed_add(in_a, in_b), value_of(quantity.add(a, b)), message)
      assert.equal(in_a, value_of(quantity.sub(quantity.add(a, b), b)), message)
      assert.equal(0, quantity.compare(quantity.canonical(a), a), message)
      local order = quantity.compare(a, b)
      local negative = value_of(quantity.sub(a, b)):sub(1, 1) == "-"
      assert.equal(negative and -1 or in_a == in_b and 0 or 1, order, message)
    end
  end)

  it("is the nearest number", function()
    assert.equal(0.1, quantity.number "100m")
    assert.equal(1073741824, quantity.number "1Gi")
    assert.equal(-1.5, quantity.number "-1.5")
    assert.equal(9223372036854775807, quantity.number "8Ei")
    assert.equal(0, quantity.number "0")
  end)

  it("is told from what is none", function()
    for _, wrong in ipairs { "", "x", "1K", "1ki", "1Gib", "1 Gi", "--1", "1.2.3", ".", "e3", "1e", "1e999", "1g",
      "0x1", ("9"):rep(100) } do
      assert.is_false(quantity.is_valid(wrong), wrong)
    end
    assert.is_true(quantity.is_valid("1Gi"))
    assert.is_true(quantity.is_valid(3))
    assert.is_false(quantity.is_valid(nil))
    assert.is_false(quantity.is_valid(0 / 0))
    refused("quantity.add: '1K' is not a quantity", quantity.add, "1", "1K")
    refused("quantity.compare: nil is not a quantity", quantity.compare, nil, "1")
    refused("quantity.number: inf is not a quantity", quantity.number, 1 / 0)
    refused("quantity.number: null is not a quantity", quantity.number, require("kube._core").codec.null)
    refused("quantity.compare: a table is not a quantity", quantity.compare, "1", {})
  end)
end)
