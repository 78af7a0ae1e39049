-- Jobs and cron jobs: defaults, the labels by which a job knows its pods, what is set for good.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local pod_rules = require "kube.sandbox.strategies.pod_rules"
local pod_spec = require "kube.sandbox.strategies.pod_spec"

local jobs = {}

local set, inside = pod_spec.set, pod_spec.inside

local function default_job(_, document)
  if not json.is_object(document.spec) then return document end
  local spec = json.shallow(document.spec)
  document.spec = spec
  if spec.completions == nil and spec.parallelism == nil then spec.completions = 1 end
  set(spec, "parallelism", 1)
  set(spec, "backoffLimit", spec.backoffLimitPerIndex ~= nil and 2147483647 or 6)
  set(spec, "completionMode", "NonIndexed")
  set(spec, "suspend", false)
  set(spec, "manualSelector", false)
  set(spec, "podReplacementPolicy", spec.podFailurePolicy and "Failed" or "TerminatingOrFailed")
  if json.is_object(spec.template) then spec.template = pod_spec.template(spec.template) end
  local labels = json.get(spec, "template", "metadata", "labels")
  if labels and not json.get(document, "metadata", "labels") then document.metadata.labels = labels end
  return document
end

local PREFIX = "batch.kubernetes.io/"

local function add_labels(metadata, added)
  local labels = metadata.labels and json.shallow(metadata.labels) or json.object {}
  for key, value in pairs(added) do set(labels, key, value) end
  metadata.labels = labels
end

local function create_job(_, document)
  local spec = document.spec
  if spec.manualSelector == true then return document end
  spec = json.shallow(spec)
  document.spec = spec
  local m = document.metadata
  -- Labels that are not its own are those of its pods, all of them.
  local borrowed = m.labels == nil or m.labels == json.get(spec, "template", "metadata", "labels")
  local own = {
    ["controller-uid"] = m.uid,
    ["job-name"] = m.name,
    [PREFIX .. "controller-uid"] = m.uid,
    [PREFIX .. "job-name"] = m.name,
  }
  inside(spec, "template", function(template)
    set(template, "metadata", json.object {})
    inside(template, "metadata", function(metadata) add_labels(metadata, own) end)
  end)
  if borrowed then m.labels = spec.template.metadata.labels end
  set(spec, "selector", json.object {
    matchLabels = json.object { [PREFIX .. "controller-uid"] = m.uid },
  })
  return document
end

local RESTARTS = { OnFailure = true, Never = true }

local function check_template(errors, spec, path)
  local template = json.get(spec, "template", "spec") or json.object {}
  pod_rules.check(errors, template, path .. ".spec")
  if template.restartPolicy == "Always" then
    errors[#errors + 1] = field.required(path .. ".spec.restartPolicy", 'valid values: "OnFailure", "Never"')
  elseif not RESTARTS[template.restartPolicy] then
    errors[#errors + 1] = field.not_supported(path .. ".spec.restartPolicy", template.restartPolicy or "",
      { "OnFailure", "Never" })
  end
end

local function check_count(errors, spec, name)
  if (tonumber(spec[name]) or 0) < 0 then
    errors[#errors + 1] = field.invalid("spec." .. name, spec[name], "must be greater than or equal to 0")
  end
end

local function validate_job(_, new, old, errors)
  local spec = new.spec or json.object {}
  for _, name in ipairs { "parallelism", "completions", "backoffLimit", "activeDeadlineSeconds",
    "ttlSecondsAfterFinished" } do
    check_count(errors, spec, name)
  end
  if spec.manualSelector == true and not spec.selector then
    errors[#errors + 1] = field.required("spec.selector")
    errors[#errors + 1] = field.invalid("spec.template.metadata.labels",
      json.get(spec, "template", "metadata", "labels"), "`selector` does not match template `labels`")
  end
  check_template(errors, spec, "spec.template")
  if not old then return end
  for _, name in ipairs { "completions", "selector", "template", "completionMode" } do
    if not json.equal(spec[name], old.spec[name]) then
      errors[#errors + 1] = field.immutable("spec." .. name, spec[name])
    end
  end
end

local PRESERVED = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to "
  .. "remove them or set propagationPolicy=Orphan to suppress this warning"

local function delete_job(ctx, _, options)
  if options.propagationPolicy == nil and options.orphanDependents == nil then ctx:warn(PRESERVED) end
end

local function default_cron(_, document)
  if not json.is_object(document.spec) then return document end
  local spec = json.shallow(document.spec)
  document.spec = spec
  set(spec, "concurrencyPolicy", "Allow")
  set(spec, "suspend", false)
  set(spec, "successfulJobsHistoryLimit", 3)
  set(spec, "failedJobsHistoryLimit", 1)
  inside(spec, "jobTemplate", function(template)
    set(template, "metadata", json.object {})
    inside(template, "spec", function(job)
      if json.is_object(job.template) then job.template = pod_spec.template(job.template) end
    end)
  end)
  return document
end

local CONCURRENCY = { "Allow", "Forbid", "Replace" }

local DESCRIPTORS = { ["@yearly"] = true, ["@annually"] = true, ["@monthly"] = true, ["@weekly"] = true,
  ["@daily"] = true, ["@midnight"] = true, ["@hourly"] = true }

-- What is wrong with a schedule; the ranges of its fields are not looked at.
local function schedule_problem(schedule)
  if DESCRIPTORS[schedule] or schedule:find("^@every ") then return nil end
  if schedule:find("^@") then return "unrecognized descriptor: " .. schedule end
  local fields = {}
  for name in schedule:gmatch("%S+") do fields[#fields + 1] = name end
  if #fields == 5 then return nil end
  return ("expected exactly 5 fields, found %d: [%s]"):format(#fields, table.concat(fields, " "))
end

local function check_schedule(errors, schedule)
  if schedule == "" then
    errors[#errors + 1] = field.required("spec.schedule")
    return
  end
  local problem = schedule_problem(schedule)
  if problem then errors[#errors + 1] = field.invalid("spec.schedule", schedule, problem) end
end

local function validate_cron(_, new, _, errors)
  local spec = new.spec or json.object {}
  check_schedule(errors, spec.schedule or "")
  local known = false
  for _, name in ipairs(CONCURRENCY) do known = known or spec.concurrencyPolicy == name end
  if not known then
    errors[#errors + 1] = field.not_supported("spec.concurrencyPolicy", spec.concurrencyPolicy, CONCURRENCY)
  end
  check_template(errors, json.get(spec, "jobTemplate", "spec") or json.object {}, "spec.jobTemplate.spec.template")
end

function jobs.of(R)
  if R.kind == "CronJob" then
    return { default = default_cron, validate = validate_cron }
  end
  return { default = default_job, prepare_create = create_job, validate = validate_job, delete = delete_job }
end

return jobs
