-- What jobs say of their pods must add up, and what they have said stays said. Most of it is looked at
-- only when something changes that it depends on, as the server does.
local field = require "kube.sandbox.field"
local job_policies = require "kube.sandbox.strategies.job_policies"
local json = require "kube.sandbox.json"

local job_status = {}

local function add(errors, e) errors[#errors + 1] = e end

local function is_true(status, kind)
  for _, condition in ipairs(json.get(status, "conditions") or {}) do
    if condition.type == kind and condition.status == "True" then return true end
  end
  return false
end

-- A status in the terms of the rules.
local function read(status)
  local function number(name) return tonumber(json.get(status, name)) or 0 end
  local s = {
    complete = is_true(status, "Complete"), failed = is_true(status, "Failed"),
    failing = is_true(status, "FailureTarget"), met = is_true(status, "SuccessCriteriaMet"),
    suspended = is_true(status, "Suspended"),
    active = number "active", succeeded = number "succeeded", lost = number "failed",
    ready = json.get(status, "ready"), terminating = json.get(status, "terminating"),
    start = json.get(status, "startTime"), stop = json.get(status, "completionTime"),
    done = json.get(status, "completedIndexes") or "", bad = json.get(status, "failedIndexes"),
    uncounted = json.get(status, "uncountedTerminatedPods"),
  }
  s.finished = s.complete or s.failed
  return s
end

local function check_counts(errors, status)
  for _, name in ipairs { "active", "succeeded", "failed", "ready", "terminating" } do
    local value = tonumber(json.get(status, name)) or 0
    if value < 0 then add(errors, field.invalid("status." .. name, value, "must be greater than or equal to 0")) end
  end
  local seen = {}
  for _, name in ipairs { "succeeded", "failed" } do
    for i, uid in ipairs(json.get(status, "uncountedTerminatedPods", name) or {}) do
      local path = ("status.uncountedTerminatedPods.%s[%d]"):format(name, i - 1)
      if uid == "" then
        add(errors, field.invalid(path, uid, "must not be empty"))
      elseif seen[uid] then
        add(errors, field.duplicate(path, uid))
      end
      seen[uid] = true
    end
  end
end

local function check_ends(errors, s, changed)
  local function refuse(text) add(errors, job_policies.bare("status.conditions", text)) end
  if changed("complete", "failed") and s.complete and s.failed then
    refuse "cannot set Complete=True and Failed=true conditions"
  end
  if changed("complete", "failing") and s.complete and s.failing then
    refuse "cannot set Complete=True and FailureTarget=true conditions"
  end
  if changed("complete", "stop") then
    if s.stop and not s.complete then
      add(errors, field.invalid("status.completionTime", s.stop,
        "cannot set completionTime when there is no Complete=True condition"))
    elseif s.complete and not s.stop then
      add(errors, field.required("status.completionTime", "completionTime is required for Complete jobs"))
    end
  end
  if changed("start", "stop") and s.start and s.stop and s.stop < s.start then
    add(errors, field.invalid("status.completionTime", s.stop, "must be equal to or after `startTime`"))
  end
  if changed("failed", "bad") and s.failed and not s.failing then
    refuse "cannot set Failed=True condition without the FailureTarget=true condition"
  end
  if changed("complete", "met") and s.complete and not s.met then
    refuse "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
  end
end

local function check_finished(errors, s, changed, spec)
  if not s.finished then return end
  if changed("finished", "active") and s.active > 0 then
    add(errors, field.invalid("status.active", s.active, "active>0 is invalid for finished job"))
  end
  local never_ran = spec.suspend == true and spec.completions == 0
  if changed("finished", "start") and not s.start and not never_ran then
    add(errors, field.required("status.startTime", "startTime is required for finished job"))
  end
  local uncounted = s.uncounted or {}
  if changed("finished", "uncounted") and (json.get(uncounted, "succeeded", 1) or json.get(uncounted, "failed", 1)) then
    local function list(name) return json.encode(json.get(uncounted, name) or json.null) end
    add(errors, field.shown("status.uncountedTerminatedPods",
      ('{"Succeeded":%s,"Failed":%s}'):format(list "succeeded", list "failed"), "must be empty for finished job"))
  end
end

local function check_indexes(errors, s, changed, spec)
  local completions, per_index = json.get(spec, "completions"), json.get(spec, "backoffLimitPerIndex")
  local function check(name, text)
    local _, problem = job_policies.count_indexes(text, completions)
    if problem then
      add(errors, field.invalid("status." .. name, text, ("error parsing %s: %s"):format(name, problem)))
    end
  end
  if changed "done" and completions then check("completedIndexes", s.done) end
  if changed "bad" and completions and per_index and s.bad then check("failedIndexes", s.bad) end
  if changed "done" and s.done ~= "" and spec.completionMode ~= "Indexed" then
    add(errors, field.invalid("status.completedIndexes", s.done,
      "cannot set non-empty completedIndexes when non-indexed completion mode"))
  end
  if changed "bad" and s.bad and not per_index then
    add(errors, field.invalid("status.failedIndexes", s.bad,
      "cannot set non-null failedIndexes when backoffLimitPerIndex is null"))
  end
  local common = changed("bad", "done") and completions and s.bad
    and job_policies.common_index(s.done, s.bad, completions)
  if common then
    add(errors, field.invalid("status.failedIndexes", s.bad,
      ("failedIndexes and completedIndexes overlap at index: %d"):format(common)))
  end
end

local function check_rest(errors, s, changed, spec)
  local function refuse(text) add(errors, job_policies.bare("status.conditions", text)) end
  if changed("finished", "terminating") and s.finished and (s.terminating or 0) > 0 then
    add(errors, field.invalid("status.terminating", s.terminating, "terminating>0 is invalid for finished job"))
  end
  if changed("ready", "active") and s.ready and s.ready > s.active then
    add(errors, field.invalid("status.ready", s.ready, "cannot set more ready pods than active"))
  end
  if s.met and s.failed then refuse "cannot set SuccessCriteriaMet=True and Failed=true conditions" end
  if s.met and s.failing then refuse "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions" end
  if json.get(spec, "successPolicy") and not s.met and s.complete then
    refuse "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
  end
end

local function check_change(errors, s, o, spec)
  local function refuse(text) add(errors, job_policies.bare("status.conditions", text)) end
  for _, pair in ipairs { { "failed", "Failed" }, { "complete", "Complete" }, { "failing", "FailureTarget" } } do
    if o[pair[1]] and not s[pair[1]] then
      refuse(("cannot disable the terminal %s=True condition"):format(pair[2]))
    end
  end
  if s.lost < o.lost then
    add(errors, field.invalid("status.failed", s.lost, "cannot decrease the failed counter"))
  end
  local scalable = spec.completionMode == "Indexed" and spec.completions == spec.parallelism
  if s.succeeded < o.succeeded and not scalable then
    add(errors, field.invalid("status.succeeded", s.succeeded, "cannot decrease the succeeded counter"))
  end
  if s.stop and o.stop and s.stop ~= o.stop then add(errors, field.immutable("status.completionTime", s.stop)) end
  local resuming = o.suspended and not s.suspended
  if o.start and s.start ~= o.start and not resuming and spec.suspend ~= true then
    add(errors, field.invalid("status.startTime", s.start, "field is immutable for unsuspended job once set"))
  end
  if o.met and not s.met then refuse "cannot disable the SuccessCriteriaMet=True condition" end
  if o.complete and not o.met and s.met then
    refuse "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
  end
end

--- Adds what is wrong with the status of a job.
function job_status.check(errors, new, old)
  local spec, s, o = new.spec, read(new.status), read(old.status)
  local function changed(...)
    for _, name in ipairs { ... } do
      if not json.equal(s[name], o[name]) then return true end
    end
    return false
  end
  check_counts(errors, new.status)
  check_ends(errors, s, changed)
  check_finished(errors, s, changed, spec)
  check_indexes(errors, s, changed, spec)
  check_rest(errors, s, changed, spec)
  check_change(errors, s, o, spec)
end

return job_status
