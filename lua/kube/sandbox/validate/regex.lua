-- RE2 regular expressions: compiled to a small program and run over all its threads at once, so that
-- the time is bounded by the length of the program times that of the text, whatever the pattern.
local parse = require "kube.sandbox.validate.regex_parse"

local regex = {}
regex.__index = regex

local MAX_PROGRAM = 20000
local CACHE = 256

-- ---- compilation ----

local emit

local function add(program, instruction)
  if #program >= MAX_PROGRAM then error({ regex = "the sandbox does not support patterns of this size" }, 0) end
  program[#program + 1] = instruction
  return instruction
end

local emitters = {}

function emitters.set(program, node)
  local ascii = {}
  for i = 1, #node.ranges, 2 do
    for rune = node.ranges[i], math.min(node.ranges[i + 1], 127) do ascii[rune] = true end
  end
  add(program, { op = "set", ascii = ascii, ranges = node.ranges })
end

function emitters.assert(program, node) add(program, { op = "assert", kind = node.kind }) end

function emitters.cat(program, node)
  for _, child in ipairs(node) do emit(program, child) end
end

function emitters.alt(program, node)
  local jumps = {}
  for i, child in ipairs(node) do
    local split = i < #node and add(program, { op = "split", first = #program + 2 })
    emit(program, child)
    if split then
      jumps[#jumps + 1] = add(program, { op = "jump" })
      split.second = #program + 1
    end
  end
  for _, jump in ipairs(jumps) do jump.first = #program + 1 end
end

emitters["repeat"] = function(program, node)
  for _ = 1, node.least do emit(program, node[1]) end
  if node.most == math.huge then
    local split = add(program, { op = "split", first = #program + 2 })
    local start = #program
    emit(program, node[1])
    add(program, { op = "jump", first = start })
    split.second = #program + 1
    return
  end
  local splits = {}
  for i = node.least + 1, node.most do
    splits[i - node.least] = add(program, { op = "split", first = #program + 2 })
    emit(program, node[1])
  end
  for _, split in ipairs(splits) do split.second = #program + 1 end
end

function emit(program, node) emitters[node.op](program, node) end

-- ---- running ----

local function is_word(rune)
  return rune and (rune >= 48 and rune <= 57 or rune >= 65 and rune <= 90 or rune == 95 or rune >= 97 and rune <= 122)
    or false
end

local holds = {
  text_start = function(before) return before == nil end,
  text_end = function(_, after) return after == nil end,
  line_start = function(before) return before == nil or before == 10 end,
  line_end = function(_, after) return after == nil or after == 10 end,
  word = function(before, after) return is_word(before) ~= is_word(after) end,
  not_word = function(before, after) return is_word(before) == is_word(after) end,
}

-- Adds what is reachable from pc without reading a rune; true when that includes the end.
local function follow(program, threads, seen, pc, before, after)
  local stack = { pc }
  while #stack > 0 do
    pc = stack[#stack]
    stack[#stack] = nil
    if not seen[pc] then
      seen[pc] = true
      local instruction = program[pc]
      if not instruction then return true end
      if instruction.op == "set" then
        threads[#threads + 1] = pc
      elseif instruction.op ~= "assert" then
        stack[#stack + 1] = instruction.second
        stack[#stack + 1] = instruction.first
      elseif holds[instruction.kind](before, after) then
        stack[#stack + 1] = pc + 1
      end
    end
  end
  return false
end

local function contains(instruction, rune)
  if rune < 128 then return instruction.ascii[rune] end
  local ranges = instruction.ranges
  for i = 1, #ranges, 2 do
    if rune >= ranges[i] and rune <= ranges[i + 1] then return true end
  end
  return false
end

-- The runes of a text; bytes that are not UTF-8 read as U+FFFD, as in Go.
local function runes_of(text)
  local out, i = {}, 1
  while i <= #text do
    local lead = text:byte(i)
    local n = lead < 0x80 and 1 or lead >= 0xF0 and 4 or lead >= 0xE0 and 3 or 2
    local rune = n == 1 and lead or lead % 2 ^ (7 - n)
    for k = i + 1, i + n - 1 do
      local byte = text:byte(k)
      if not byte or byte < 0x80 or byte >= 0xC0 then rune, n = 0xFFFD, 1 break end
      rune = rune * 64 + byte - 0x80
    end
    out[#out + 1] = rune
    i = i + n
  end
  return out
end
regex.runes = runes_of

--- True when the pattern matches somewhere in the text.
function regex:match(text)
  local program, runes = self.program, runes_of(text)
  local threads = {}
  for at = 1, #runes + 1 do
    local rune = runes[at]
    local seen, ready = {}, {}
    for _, pc in ipairs(threads) do
      if follow(program, ready, seen, pc, runes[at - 1], rune) then return true end
    end
    if follow(program, ready, seen, 1, runes[at - 1], rune) then return true end
    threads = {}
    if rune then
      for _, pc in ipairs(ready) do
        if contains(program[pc], rune) then threads[#threads + 1] = pc + 1 end
      end
    end
  end
  return false
end

local cache, cached = {}, 0

--- The compiled pattern, or nil and Go's message about it.
function regex.compile(pattern)
  local known = cache[pattern]
  if known then return known end
  local program = {}
  local ok, problem = pcall(function() emit(program, parse.parse(pattern)) end)
  if not ok then
    if type(problem) ~= "table" then error(problem, 0) end
    return nil, problem.regex
  end
  if cached >= CACHE then cache, cached = {}, 0 end
  known = setmetatable({ program = program }, regex)
  cache[pattern], cached = known, cached + 1
  return known
end

return regex
