-- What jobs say about failed and successful pods, and the indexes that they count them by.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"

local job_policies = {}

local function add(errors, e) errors[#errors + 1] = e end

local ACTIONS = { "Count", "FailIndex", "FailJob", "Ignore" }
local OPERATORS = { "In", "NotIn" }
local STATES = { "False", "True", "Unknown" }
local MOST_RULES, MOST_PATTERNS, MOST_CODES, LONGEST_INDEXES = 20, 20, 255, 64 * 1024

local function quoted(known)
  local texts = {}
  for i, name in ipairs(known) do texts[i] = '"' .. name .. '"' end
  return ("valid values: [%s]"):format(table.concat(texts, " "))
end

local function check_one_of(errors, value, path, known)
  if field.is_one_of(value, known) then return end
  add(errors, (value or "") == "" and field.required(path, quoted(known)) or field.not_supported(path, value, known))
end

-- A refusal that shows nothing.
local function bare(path, text)
  local e = field.invalid(path, json.null, text)
  e.message = "Invalid value: " .. text
  return e
end

-- ---- failure ----

local function check_codes(errors, codes, path)
  local values = json.get(codes, "values") or json.array {}
  if not values[1] then
    add(errors, field.invalid(path .. ".values", values, "at least one value is required"))
  elseif #values > MOST_CODES then
    add(errors, field.too_many(path .. ".values", #values, MOST_CODES))
  end
  local seen, ordered = {}, true
  for i, value in ipairs(values) do
    local at = ("%s.values[%d]"):format(path, i - 1)
    if codes.operator == "In" and value == 0 then
      add(errors, field.invalid(at, value, "must not be 0 for the In operator"))
    end
    if seen[value] then add(errors, field.duplicate(at, value)) end
    seen[value] = true
    ordered = ordered and (i == 1 or values[i - 1] <= value)
  end
  if not ordered then add(errors, field.invalid(path .. ".values", values, "must be ordered")) end
end

local function check_exit(errors, codes, path, containers)
  check_one_of(errors, codes.operator, path .. ".operator", OPERATORS)
  local name = json.get(codes, "containerName")
  if name and not containers[name] then
    add(errors, field.invalid(path .. ".containerName", name,
      "must be one of the container or initContainer names in the pod template"))
  end
  check_codes(errors, codes, path)
end

local function check_conditions(errors, patterns, path)
  if #patterns > MOST_PATTERNS then add(errors, field.too_many(path, #patterns, MOST_PATTERNS)) end
  for i, pattern in ipairs(patterns) do
    local at = ("%s[%d]"):format(path, i - 1)
    for _, problem in ipairs { names.qualified(pattern.type or "") } do
      add(errors, field.invalid(at .. ".type", pattern.type or "", problem))
    end
    check_one_of(errors, pattern.status, at .. ".status", STATES)
  end
end

local function check_failure_rule(errors, rule, path, spec, containers)
  if rule.action == "FailIndex" then
    if not json.get(spec, "backoffLimitPerIndex") then
      add(errors, field.invalid(path .. ".action", rule.action, "requires the backoffLimitPerIndex to be set"))
    end
  else
    check_one_of(errors, rule.action, path .. ".action", ACTIONS)
  end
  local exit, conditions = json.get(rule, "onExitCodes"), json.get(rule, "onPodConditions") or {}
  if exit then check_exit(errors, exit, path .. ".onExitCodes", containers) end
  check_conditions(errors, conditions, path .. ".onPodConditions")
  if exit and conditions[1] then
    add(errors, bare(path, "specifying both OnExitCodes and OnPodConditions is not supported"))
  elseif not exit and not conditions[1] then
    add(errors, bare(path, "specifying one of OnExitCodes and OnPodConditions is required"))
  end
end

local function check_failure(errors, spec, path)
  local rules, containers = json.get(spec, "podFailurePolicy", "rules") or {}, {}
  if #rules > MOST_RULES then add(errors, field.too_many(path .. ".rules", #rules, MOST_RULES)) end
  for _, list in ipairs { "containers", "initContainers" } do
    for _, c in ipairs(json.get(spec, "template", "spec", list) or {}) do containers[c.name or ""] = true end
  end
  for i, rule in ipairs(rules) do
    check_failure_rule(errors, rule, ("%s.rules[%d]"):format(path, i - 1), spec, containers)
  end
end

-- ---- indexes ----

local function index_of(text, completions)
  local index = text:find("^[+-]?%d+$") and tonumber(text)
  if not index then return nil, ('cannot convert string to integer for index: "%s"'):format(text) end
  if index >= completions then return nil, ('too large index: "%s"'):format(text) end
  return index
end

local DESCENDING = "non-increasing order, previous: %d, current: %d"

-- The ends of "3" or "3-5"; or nil and what is wrong.
local function interval_of(text, completions)
  local low, high = text:match("^([^-]*)%-?([^-]*)$")
  if not low then
    return nil, ('the fragment "%s" violates the requirement that an index interval can have at most two parts '
      .. "separated by '-'"):format(text)
  end
  local first, problem = index_of(low, completions)
  if not first then return nil, problem end
  if not text:find("-", 1, true) then return first, first end
  local last
  last, problem = index_of(high, completions)
  if not last then return nil, problem end
  if first >= last then return nil, DESCENDING:format(first, last) end
  return first, last
end

--- How many indexes a text like "0,2-4" has; or nil and what is wrong with it.
function job_policies.count_indexes(text, completions)
  local total, previous = 0, nil
  if text == "" then return 0 end
  for part in (text .. ","):gmatch("([^,]*),") do
    local first, last = interval_of(part, completions)
    if not first then return nil, last end
    if previous and previous >= first then return nil, DESCENDING:format(previous, first) end
    total, previous = total + last - first + 1, last
  end
  return total
end

--- The first index that two such texts both have, or nil. What cannot be read is skipped.
function job_policies.common_index(a, b, completions)
  local best
  for left in (a .. ","):gmatch("([^,]*),") do
    local first, last = interval_of(left, completions)
    for right in (b .. ","):gmatch("([^,]*),") do
      local from, to = interval_of(right, completions)
      if first and from and first <= to and from <= last then
        local common = math.max(first, from)
        best = math.min(best or common, common)
      end
    end
  end
  return best
end

-- ---- success ----

local function check_success_rule(errors, rule, path, completions)
  local count, indexes = json.get(rule, "succeededCount"), json.get(rule, "succeededIndexes")
  local total = 0
  if not count and not indexes then
    add(errors, field.required(path, "at least one of succeededCount or succeededIndexes must be specified"))
  end
  if indexes then
    if #indexes > LONGEST_INDEXES then add(errors, field.too_long(path .. ".succeededIndexes", LONGEST_INDEXES)) end
    local found, problem = job_policies.count_indexes(indexes, completions)
    total = found or 0
    if problem then
      add(errors, field.invalid(path .. ".succeededIndexes", indexes, "error parsing succeededIndexes: " .. problem))
    end
  end
  if not count then return end
  path = path .. ".succeededCount"
  local within = "must be less than or equal to %d (the number of %s)"
  if count < 0 then add(errors, field.invalid(path, count, "must be greater than or equal to 0")) end
  if count > completions then
    add(errors, field.invalid(path, count, within:format(completions, "specified completions")))
  end
  if indexes and count > total then
    add(errors, field.invalid(path, count, within:format(total, "indexes in the specified succeededIndexes field")))
  end
end

local function check_success(errors, spec, path)
  local rules = json.get(spec, "successPolicy", "rules") or {}
  if spec.completionMode ~= "Indexed" then
    add(errors, field.shown(path, job_policies.show("successPolicy", spec.successPolicy),
      "requires indexed completion mode"))
    return
  end
  if not rules[1] then
    add(errors, field.required(path .. ".rules",
      "at least one rules must be specified when the successPolicy is specified"))
  elseif #rules > MOST_RULES then
    add(errors, field.too_many(path .. ".rules", #rules, MOST_RULES))
  end
  for i, rule in ipairs(rules) do
    check_success_rule(errors, rule, ("%s.rules[%d]"):format(path, i - 1), json.get(spec, "completions") or 0)
  end
end

--- A policy as the server's own struct has it, or nil where it looks like its JSON.
function job_policies.show(name, policy)
  if name ~= "successPolicy" and name ~= "podFailurePolicy" or not json.is_object(policy) then return nil end
  local rules = {}
  for i, rule in ipairs(json.get(policy, "rules") or {}) do
    local function text(key) return json.encode(rule[key] == nil and json.null or rule[key]) end
    rules[i] = name == "successPolicy"
      and ('{"SucceededIndexes":%s,"SucceededCount":%s}'):format(text "succeededIndexes", text "succeededCount")
      or json.encode(rule)
  end
  return ('{"Rules":[%s]}'):format(table.concat(rules, ","))
end

--- Adds what is wrong with the policies of a job's spec at `path`.
function job_policies.check(errors, spec, path)
  local replacement = json.get(spec, "podReplacementPolicy")
  if json.get(spec, "podFailurePolicy") then check_failure(errors, spec, path .. ".podFailurePolicy") end
  if json.get(spec, "successPolicy") then check_success(errors, spec, path .. ".successPolicy") end
  if replacement then
    check_one_of(errors, replacement, path .. ".podReplacementPolicy",
      json.get(spec, "podFailurePolicy") and { "Failed" } or { "Failed", "TerminatingOrFailed" })
  end
end

job_policies.bare = bare

return job_policies
