-- The syntax of RE2 regular expressions, as Go's regexp package reads them: a text becomes a tree of
-- { op = "set" | "cat" | "alt" | "repeat" | "assert" }. Errors carry Go's wording. Unicode classes
-- (\pL) and case folding outside ASCII are refused: half a table would match half the texts.
local parse = {}

local MAX_REPEAT = 1000
local MAX_DEPTH = 250
local LAST_RUNE = 0x10FFFF

local function fail(code, text) error({ regex = ("error parsing regexp: %s: `%s`"):format(code, text) }, 0) end

local function unsupported(text) error({ regex = "the sandbox does not support " .. text }, 0) end

-- ---- sets of runes: flat arrays of ranges { low, high, low, high, ... } ----

local classes = {
  d = { 0x30, 0x39 },
  w = { 0x30, 0x39, 0x41, 0x5A, 0x5F, 0x5F, 0x61, 0x7A },
  s = { 0x09, 0x0A, 0x0C, 0x0D, 0x20, 0x20 },
}

local posix = {
  alnum = { 0x30, 0x39, 0x41, 0x5A, 0x61, 0x7A }, alpha = { 0x41, 0x5A, 0x61, 0x7A }, ascii = { 0, 0x7F },
  blank = { 0x09, 0x09, 0x20, 0x20 }, cntrl = { 0, 0x1F, 0x7F, 0x7F }, digit = { 0x30, 0x39 },
  graph = { 0x21, 0x7E }, lower = { 0x61, 0x7A }, print = { 0x20, 0x7E },
  punct = { 0x21, 0x2F, 0x3A, 0x40, 0x5B, 0x60, 0x7B, 0x7E }, space = { 0x09, 0x0D, 0x20, 0x20 },
  upper = { 0x41, 0x5A }, word = classes.w, xdigit = { 0x30, 0x39, 0x41, 0x46, 0x61, 0x66 },
}

-- Ranges in order, without overlaps.
local function normal(ranges)
  local pairs_of = {}
  for i = 1, #ranges, 2 do pairs_of[#pairs_of + 1] = { ranges[i], ranges[i + 1] } end
  table.sort(pairs_of, function(a, b) return a[1] < b[1] end)
  local out = {}
  for _, r in ipairs(pairs_of) do
    if #out > 0 and r[1] <= out[#out] + 1 then
      out[#out] = math.max(out[#out], r[2])
    else
      out[#out + 1], out[#out + 2] = r[1], r[2]
    end
  end
  return out
end

local function negated(ranges)
  local out, from = {}, 0
  for i = 1, #ranges, 2 do
    if ranges[i] > from then out[#out + 1], out[#out + 2] = from, ranges[i] - 1 end
    from = ranges[i + 1] + 1
  end
  if from <= LAST_RUNE then out[#out + 1], out[#out + 2] = from, LAST_RUNE end
  return out
end

local function append(to, ranges) for i = 1, #ranges do to[#to + 1] = ranges[i] end end

-- The set with the other case of its ASCII letters; two letters have a third form outside ASCII.
local function folded(ranges)
  local out = {}
  append(out, ranges)
  for i = 1, #ranges, 2 do
    for rune = math.max(ranges[i], 0x41), math.min(ranges[i + 1], 0x7A) do
      local upper, lower = rune <= 0x5A, rune >= 0x61
      if upper or lower then
        local other = upper and rune + 32 or rune - 32
        append(out, { other, other })
        if rune == 0x4B or rune == 0x6B then append(out, { 0x212A, 0x212A }) end
        if rune == 0x53 or rune == 0x73 then append(out, { 0x17F, 0x17F }) end
      end
    end
  end
  return normal(out)
end

-- ---- the text, rune by rune ----

local function rune_at(p, i)
  local a, b, c, d = p.text:byte(i, i + 3)
  if not a then return nil end
  if a < 0x80 then return a, i + 1 end
  if a >= 0xC2 and a < 0xE0 and b and b >= 0x80 and b < 0xC0 then return (a - 0xC0) * 64 + b - 0x80, i + 2 end
  if a >= 0xE0 and a < 0xF0 and c then return ((a - 0xE0) * 64 + b - 0x80) * 64 + c - 0x80, i + 3 end
  if a >= 0xF0 and a < 0xF5 and d then
    return (((a - 0xF0) * 64 + b - 0x80) * 64 + c - 0x80) * 64 + d - 0x80, i + 4
  end
  fail("invalid UTF-8", p.text)
end

local function set(p, ranges)
  if p.fold then
    for i = 1, #ranges, 2 do
      if ranges[i] >= 0x80 and ranges[i + 1] < LAST_RUNE then
        unsupported("(?i) on characters outside ASCII")
      end
    end
    ranges = folded(ranges)
  end
  return { op = "set", ranges = ranges }
end

local simple = { a = 7, f = 12, n = 10, r = 13, t = 9, v = 11 }

local function hex_escape(p, i)
  local digits, after = p.text:match("^{(%x+)}()", i)
  if not digits then digits, after = p.text:match("^(%x%x)()", i) end
  local rune = digits and #digits <= 8 and tonumber(digits, 16)
  if not rune or rune > LAST_RUNE then
    local stop = p.text:match("^{%x*()", i) or i
    fail("invalid escape sequence", p.text:sub(i - 2, stop))
  end
  return rune, after
end

-- The rune that an escape at i (the backslash) stands for.
local function escaped_rune(p, i)
  local c = p.text:sub(i + 1, i + 1)
  if c == "" then fail("trailing backslash at end of expression", "") end
  if c == "x" then return hex_escape(p, i + 2) end
  if simple[c] then return simple[c], i + 2 end
  local octal, after = p.text:match("^(0[0-7]?[0-7]?)()", i + 1)
  if not octal then octal, after = p.text:match("^([1-7][0-7][0-7]?)()", i + 1) end
  if octal then return tonumber(octal, 8), after end
  if c:match("^[%p]$") then return c:byte(), i + 2 end
  local _, last = rune_at(p, i + 1)
  fail("invalid escape sequence", p.text:sub(i, last - 1))
end

-- \d \W ...: ranges and where the text goes on, nil for other escapes.
local function perl_class(p, i)
  local c = p.text:sub(i + 1, i + 1)
  if c == "p" or c == "P" then unsupported("Unicode classes (" .. p.text:sub(i, i + 1) .. ")") end
  local ranges = classes[c:lower()]
  if not ranges or c == "" then return nil end
  return c:match("%l") and ranges or negated(ranges), i + 2
end

-- ---- bracket expressions ----

local function class_item(p, i)
  local negate, name, after = p.text:match("^%[:(%^?)(%a+):%]()", i)
  if name then
    local ranges = posix[name]
    if not ranges then fail("invalid character class range", p.text:sub(i, after - 1)) end
    return negate == "" and ranges or negated(ranges), after
  end
  if p.text:sub(i, i) == "\\" then
    local ranges, next_i = perl_class(p, i)
    if ranges then return ranges, next_i end
  end
end

local function class_rune(p, i)
  if i > #p.text then return nil end
  if p.text:sub(i, i) == "\\" then return escaped_rune(p, i) end
  return rune_at(p, i)
end

local function class_range(p, i, start)
  local low, after = class_rune(p, i)
  if not low then fail("missing closing ]", p.text:sub(start)) end
  local high = low
  if p.text:match("^%-[^%]]", after) then
    high, after = class_rune(p, after + 1)
    if not high or high < low then fail("invalid character class range", p.text:sub(i, after - 1)) end
  end
  return { low, high }, after
end

local function bracket(p, start)
  local i = start + 1
  local negate = p.text:sub(i, i) == "^"
  if negate then i = i + 1 end
  local ranges, first = {}, true
  while first or p.text:sub(i, i) ~= "]" do
    if i > #p.text then fail("missing closing ]", p.text:sub(start)) end
    local item, after = class_item(p, i)
    if not item then item, after = class_range(p, i, start) end
    append(ranges, item)
    i, first = after, false
  end
  ranges = normal(ranges)
  local node = set(p, ranges)
  if negate then node.ranges = negated(normal(node.ranges)) end
  return node, i + 1
end

-- ---- groups, repetition, alternation ----

local alternation

local flag_names = { i = "fold", m = "multiline", s = "dot_all", U = "ungreedy" }

local function with_flags(p, on, off)
  local flags = { fold = p.fold, multiline = p.multiline, dot_all = p.dot_all }
  for c in on:gmatch(".") do p[flag_names[c]] = true end
  for c in off:gmatch(".") do p[flag_names[c]] = false end
  return flags
end

local function restore(p, flags) p.fold, p.multiline, p.dot_all = flags.fold, flags.multiline, flags.dot_all end

local function close(p, i)
  if p.text:sub(i, i) ~= ")" then fail("missing closing )", p.text) end
  return i + 1
end

local function group(p, start)
  local flags = with_flags(p, "", "")
  local i = start + 1
  if p.text:sub(i, i) == "?" then
    local named = p.text:match("^%?P?<[%w_]+>()", i)
    local on, off, mark, after = p.text:match("^%?([imsU]*)%-?([imsU]*)([:)])()", i)
    if named then
      i = named
    elseif on then
      with_flags(p, on, off)
      if mark == ")" then return nil, after end
      i = after
    elseif p.text:match("^%?P?<", i) then
      fail("invalid named capture", p.text:match("^[^>]*>?", start))
    else
      fail("invalid or unsupported Perl syntax", p.text:sub(start, start + 2))
    end
  end
  p.depth = p.depth + 1
  if p.depth > MAX_DEPTH then fail("expression nests too deeply", p.text) end
  local node, after = alternation(p, i)
  p.depth = p.depth - 1
  restore(p, flags)
  return node, close(p, after)
end

local asserts = { A = "text_start", z = "text_end", b = "word", B = "not_word" }

local function escape(p, i)
  local c = p.text:sub(i + 1, i + 1)
  if asserts[c] then return { op = "assert", kind = asserts[c] }, i + 2 end
  if c == "Q" then
    local stop, after = p.text:find("\\E", i + 2, true)
    local node, at = { op = "quoted" }, i + 2
    stop = stop or #p.text + 1
    while at < stop do
      local rune
      rune, at = rune_at(p, at)
      node[#node + 1] = set(p, { rune, rune })
    end
    return node, (after or #p.text) + 1
  end
  local ranges, after = perl_class(p, i)
  if ranges then return { op = "set", ranges = ranges }, after end
  local rune
  rune, after = escaped_rune(p, i)
  return set(p, { rune, rune }), after
end

local function atom(p, i)
  local c = p.text:sub(i, i)
  if c == "(" then return group(p, i) end
  if c == "[" then return bracket(p, i) end
  if c == "\\" then return escape(p, i) end
  if c == "." then return { op = "set", ranges = p.dot_all and { 0, LAST_RUNE } or { 0, 9, 11, LAST_RUNE } }, i + 1 end
  if c == "^" then return { op = "assert", kind = p.multiline and "line_start" or "text_start" }, i + 1 end
  if c == "$" then return { op = "assert", kind = p.multiline and "line_end" or "text_end" }, i + 1 end
  local rune, after = rune_at(p, i)
  return set(p, { rune, rune }), after
end

-- The repetition operator at i: least, most and where the text goes on; nil when there is none.
local function operator(p, i)
  local c = p.text:sub(i, i)
  if c == "*" then return 0, math.huge, i + 1 end
  if c == "+" then return 1, math.huge, i + 1 end
  if c == "?" then return 0, 1, i + 1 end
  local low, comma, high, after = p.text:match("^{(%d+)(,?)(%d*)}()", i)
  if not low or comma == "" and high ~= "" then return nil end
  local least = tonumber(low)
  local most = comma == "" and least or high == "" and math.huge or tonumber(high)
  if least > MAX_REPEAT or most ~= math.huge and (most > MAX_REPEAT or most < least) then
    fail("invalid repeat count", p.text:sub(i, after - 1))
  end
  return least, most, after
end

local function weight(node)
  local w = node.weight or 1
  for _, child in ipairs(node) do w = math.max(w, weight(child)) end
  return w
end

local function repeated(p, node, i)
  local start = i
  local least, most, after = operator(p, i)
  while least do
    if p.text:sub(after, after) == "?" then after = after + 1 end
    if i > start then fail("invalid nested repetition operator", p.text:sub(start, after - 1)) end
    local times = most ~= math.huge and most or least
    local w = p.text:sub(i, i) == "{" and math.max(times, 1) * weight(node) or weight(node)
    if w > MAX_REPEAT then fail("invalid repeat count", p.text:sub(i, after - 1)) end
    node = { op = "repeat", least = least, most = most, node, weight = w }
    i = after
    least, most, after = operator(p, i)
  end
  return node, i
end

-- Flags, (?i), are no atom: an operator after them repeats what came before. Quoted text is many: an
-- operator after it repeats its last rune.
local function sequence(p, i)
  local node = { op = "cat" }
  while i <= #p.text do
    local c = p.text:sub(i, i)
    if c == "|" or c == ")" then break end
    local _, _, after = operator(p, i)
    local child
    if not after then
      child, i = atom(p, i)
    elseif #node > 0 then
      child = table.remove(node)
    else
      if p.text:sub(after, after) == "?" then after = after + 1 end
      fail("missing argument to repetition operator", p.text:sub(i, after - 1))
    end
    if child and child.op == "quoted" then
      for _, rune in ipairs(child) do node[#node + 1] = rune end
    elseif child then
      node[#node + 1], i = repeated(p, child, i)
    end
  end
  return node, i
end

function alternation(p, i)
  local node = { op = "alt" }
  repeat
    node[#node + 1], i = sequence(p, i)
    local more = p.text:sub(i, i) == "|"
    if more then i = i + 1 end
  until not more
  return #node == 1 and node[1] or node, i
end

--- The tree of a pattern; raises { regex = message } on what is wrong with it.
function parse.parse(text)
  local p = { text = text, depth = 0 }
  local node, i = alternation(p, 1)
  if i <= #text then fail("unexpected )", text) end
  return node
end

return parse
