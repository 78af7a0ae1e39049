-- Prometheus' text format (version 0.0.4), read strictly and without any of our C:
--
--   local families = exposition.parse(text)
--   families.up.type, families.up.help
--   families.up.samples[1] = { name = "up", labels = { job = "a" }, value = 1 }
--   exposition.value(families, "up", { job = "a" })
--
-- Whatever the format does not allow raises an error with the line's number.
local exposition = {}

local TYPES = { counter = true, gauge = true, histogram = true, summary = true, untyped = true }
local ESCAPES = { n = "\n", ["\\"] = "\\", ['"'] = '"' }

local function number(text)
  if text == "+Inf" then return math.huge end
  if text == "-Inf" then return -math.huge end
  if text == "NaN" then return 0 / 0 end
  assert(text:find("^[-+0-9.eE]+$"), "no number: " .. text)
  return assert(tonumber(text), "no number: " .. text)
end

local function unescape(text, allowed)
  return (text:gsub("\\(.?)", function(c)
    assert(allowed:find(c, 1, true) and ESCAPES[c], "bad escape \\" .. c)
    return ESCAPES[c]
  end))
end

-- The labels at `at` (behind the brace), and where they end.
local function labels_at(line, at)
  local labels = {}
  while line:sub(at, at) ~= "}" do
    local name, start = line:match('^([%a_][%w_]*)="()', at)
    assert(name, "no label")
    assert(labels[name] == nil, "label twice: " .. name)
    local finish = start
    while line:sub(finish, finish) ~= '"' do
      assert(finish <= #line, "unfinished value")
      finish = finish + (line:sub(finish, finish) == "\\" and 2 or 1)
    end
    labels[name] = unescape(line:sub(start, finish - 1), 'n\\"')
    at = finish + 1
    if line:sub(at, at) == "," then
      at = at + 1
    else
      assert(line:sub(at, at) == "}", "no comma")
    end
  end
  return labels, at + 1
end

local function sample_of(line)
  local name, at = line:match("^([%a_:][%w_:]*)()")
  assert(name, "no name")
  local labels = {}
  if line:sub(at, at) == "{" then labels, at = labels_at(line, at + 1) end
  local value = line:match("^ (%S+)$", at)
  return { name = name, labels = labels, value = number(assert(value, "no value")) }
end

local function base_of(sample, family)
  if family.type ~= "histogram" then return sample.name == family.name end
  local suffix = sample.name:match("^" .. family.name .. "(_%l+)$")
  return suffix == "_bucket" or suffix == "_sum" or suffix == "_count"
end

local function key_of(sample)
  local parts = {}
  for name, value in pairs(sample.labels) do parts[#parts + 1] = ("%s=%q"):format(name, value) end
  table.sort(parts)
  return sample.name .. "{" .. table.concat(parts, ",") .. "}"
end

-- Buckets grow up to +Inf, which is the count.
local function check_histogram(family)
  local last, le
  for _, sample in ipairs(family.samples) do
    if sample.name:find("_bucket$") then
      local bound = number(assert(sample.labels.le, "a bucket without le"))
      assert(not le or bound > le, "buckets out of order")
      assert(not last or sample.value >= last, "buckets are not cumulative")
      last, le = sample.value, bound
    elseif sample.name:find("_count$") then
      assert(le == math.huge and last == sample.value, "the count is not that of +Inf")
      last, le = nil, nil
    end
  end
end

local function read_line(families, seen, state, line)
  local kind, name, rest = line:match("^# (%u+) ([%a_:][%w_:]*) (.*)$")
  if kind == "HELP" then
    assert(not families[name], "family twice: " .. name)
    families[name] = { name = name, help = unescape(rest, "n\\"), samples = {} }
    families[#families + 1] = name
    state.family = families[name]
  elseif kind == "TYPE" then
    assert(state.family and state.family.name == name and not state.family.type, "TYPE without HELP")
    assert(TYPES[rest], "unknown type " .. rest)
    state.family.type = rest
  else
    local sample = sample_of(line)
    local family = assert(state.family, "a sample before its family")
    assert(base_of(sample, family), "a sample of another family: " .. sample.name)
    local key = key_of(sample)
    assert(not seen[key], "sample twice: " .. key)
    seen[key] = true
    family.samples[#family.samples + 1] = sample
  end
end

--- The families by name, and their names in order.
function exposition.parse(text)
  assert(text == "" or text:sub(-1) == "\n", "the last line does not end")
  local families, seen, state, n = {}, {}, {}, 0
  for line in text:gmatch("([^\n]*)\n") do
    n = n + 1
    local ok, err = pcall(read_line, families, seen, state, line)
    if not ok then error(("line %d: %s: %s"):format(n, err, line), 2) end
  end
  for _, name in ipairs(families) do
    assert(families[name].type, "no TYPE: " .. name)
    assert(#families[name].samples > 0, "no samples: " .. name)
    if families[name].type == "histogram" then check_histogram(families[name]) end
  end
  return families
end

--- The value of the sample with this name and exactly these labels, or nil.
function exposition.value(families, name, labels)
  local want = key_of { name = name, labels = labels or {} }
  local family = families[name] or families[name:match("^(.*)_%l+$")]
  for _, sample in ipairs(family and family.samples or {}) do
    if key_of(sample) == want then return sample.value end
  end
  return nil
end

return exposition
