-- Jobs and cron jobs: defaults, the labels by which a job knows its pods, what is set for good.
local cron_schedule = require "kube.sandbox.strategies.cron_schedule"
local field = require "kube.sandbox.field"
local job_rules = require "kube.sandbox.strategies.job_rules"
local job_status = require "kube.sandbox.strategies.job_status"
local json = require "kube.sandbox.json"
local pod_spec = require "kube.sandbox.strategies.pod_spec"
local pod_warnings = require "kube.sandbox.strategies.pod_warnings"

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
  set(spec, "selector", json.object {})
  inside(spec, "selector", function(selector)
    set(selector, "matchLabels", json.object {})
    inside(selector, "matchLabels", function(labels) set(labels, PREFIX .. "controller-uid", m.uid) end)
  end)
  return document
end

-- Only of what is new: `path` leads from the spec to that of a pod.
local function warn(ctx, new, old, ...)
  if old and json.equal(new.spec, old.spec) then return end
  if not old then pod_warnings.warn_name(ctx, new.metadata.name) end
  pod_warnings.warn(ctx, json.get(new.spec, ...), "spec." .. table.concat({ ... }, "."))
end

local function validate_job(ctx, new, old, errors, subresource)
  if subresource == "status" then return job_status.check(errors, new, old) end
  job_rules.validate(errors, new, old)
  if not errors[1] then warn(ctx, new, old, "template", "spec") end
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

local function check_schedule(errors, spec, old)
  local schedule, zone, path = spec.schedule or "", json.get(spec, "timeZone"), "spec.schedule"
  if schedule == "" then
    errors[#errors + 1] = field.required(path)
    return
  end
  local problem = cron_schedule.problem(schedule)
  if problem then errors[#errors + 1] = field.invalid(path, schedule, problem) end
  if not schedule:find("TZ", 1, true) then return end
  if not (json.get(old, "schedule") or ""):find("TZ", 1, true) then
    errors[#errors + 1] = field.invalid(path, schedule,
      "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
  elseif zone then
    errors[#errors + 1] = field.invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")
  end
end

local function zone_problem(zone)
  if zone == "" then return "timeZone must be nil or non-empty string" end
  for part in (zone .. "/"):gmatch("([^/]*)/") do
    local odd = part == "." or part == ".." or part:find("^%-") or not part:find("^[%w.+_-]+$") or #part > 14
    if odd then return "unknown time zone " .. zone end
  end
  if zone:lower() == "local" then
    return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
  end
end

local COUNTS = { "startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit" }
local NAME_LENGTH = 52

local function check_job_template(errors, spec)
  local job, path = json.get(spec, "jobTemplate", "spec") or json.object {}, "spec.jobTemplate.spec"
  job_rules.check(errors, job, path)
  if json.get(job, "selector") then
    errors[#errors + 1] = field.invalid(path .. ".selector", job.selector, "`selector` will be auto-generated")
  end
  if job.manualSelector == true then
    errors[#errors + 1] = field.not_supported(path .. ".manualSelector", true, { "nil", "false" })
  end
end

local function validate_cron(ctx, new, old, errors, subresource)
  if subresource == "status" then return end
  local spec, before = new.spec or json.object {}, old and old.spec
  check_schedule(errors, spec, before)
  local zone = json.get(spec, "timeZone")
  local problem = zone and zone ~= json.get(before, "timeZone") and zone_problem(zone)
  if problem then errors[#errors + 1] = field.invalid("spec.timeZone", zone, problem) end
  local known = false
  for _, name in ipairs(CONCURRENCY) do known = known or spec.concurrencyPolicy == name end
  if not known then
    errors[#errors + 1] = field.not_supported("spec.concurrencyPolicy", spec.concurrencyPolicy, CONCURRENCY)
  end
  check_job_template(errors, spec)
  for _, name in ipairs(COUNTS) do
    if (tonumber(spec[name]) or 0) < 0 then
      errors[#errors + 1] = field.invalid("spec." .. name, spec[name], "must be greater than or equal to 0")
    end
  end
  if not old and #(new.metadata.name or "") > NAME_LENGTH then
    errors[#errors + 1] = field.invalid("metadata.name", new.metadata.name,
      ("must be no more than %d characters"):format(NAME_LENGTH))
  end
  if not errors[1] then warn(ctx, new, old, "jobTemplate", "spec", "template", "spec") end
end

function jobs.of(R)
  if R.kind == "CronJob" then
    return { default = default_cron, validate = validate_cron }
  end
  return { default = default_job, prepare_create = create_job, validate = validate_job, delete = delete_job }
end

return jobs
