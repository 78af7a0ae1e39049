-- What the spec of a job must be, in a job and in the template of a cron job.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local job_policies = require "kube.sandbox.strategies.job_policies"
local label_selector = require "kube.sandbox.label_selector"
local names = require "kube.sandbox.names"
local pod_rules = require "kube.sandbox.strategies.pod_rules"

local job_rules = {}

local function add(errors, e) errors[#errors + 1] = e end

local COUNTS = { "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
  "backoffLimitPerIndex", "maxFailedIndexes" }

local MANY, MOST_PARALLEL, MOST_FAILED, MOST_AT_MANY = 100000, 100000, 100000, 10000
local MANAGER_LENGTH = 63
local PATH = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"

local function check_counts(errors, spec, path)
  for _, name in ipairs(COUNTS) do
    if (tonumber(spec[name]) or 0) < 0 then
      add(errors, field.invalid(path .. "." .. name, spec[name], "must be greater than or equal to 0"))
    end
  end
  if json.get(spec, "maxFailedIndexes") and not json.get(spec, "backoffLimitPerIndex") then
    add(errors, field.required(path .. ".backoffLimitPerIndex", "when maxFailedIndexes is specified"))
  end
end

local function check_manager(errors, manager, path)
  if not manager then return end
  local host, rest = manager:match("^([^/]+)/(.+)$")
  if manager == "" then
    add(errors, field.required(path))
  elseif not host then
    add(errors, field.invalid(path, manager, 'must be a domain-prefixed path (such as "acme.io/foo")'))
  else
    for _, problem in ipairs { names.subdomain(host) } do add(errors, field.invalid(path, host, problem)) end
    if not rest:find("^[%w/%-._~%%!$&'()*+,;=:]+$") then add(errors, field.invalid(path, rest, PATH)) end
  end
  if #manager > MANAGER_LENGTH then add(errors, field.too_long(path, MANAGER_LENGTH)) end
end

-- ---- indexes ----

local AT_MANY = "must be less than or equal to %d when completions are above %d and used with backoff limit per index"

local function check_many(errors, spec, path)
  local failed = json.get(spec, "maxFailedIndexes")
  if (json.get(spec, "completions") or 0) <= MANY or not json.get(spec, "backoffLimitPerIndex") then return end
  if not failed then
    add(errors, field.required(path .. ".maxFailedIndexes",
      ("must be specified when completions is above %d"):format(MANY)))
  end
  for _, name in ipairs { "parallelism", "maxFailedIndexes" } do
    local value = json.get(spec, name) or 0
    if value > MOST_AT_MANY then
      add(errors, field.invalid(path .. "." .. name, value, AT_MANY:format(MOST_AT_MANY, MANY)))
    end
  end
end

local function check_indexed(errors, spec, path)
  local completions, failed = json.get(spec, "completions"), json.get(spec, "maxFailedIndexes")
  if not completions then
    add(errors, field.required(path .. ".completions", "when completion mode is Indexed"))
  end
  if (json.get(spec, "parallelism") or 0) > MOST_PARALLEL then
    add(errors, field.invalid(path .. ".parallelism", spec.parallelism,
      ("must be less than or equal to %d when completion mode is Indexed"):format(MOST_PARALLEL)))
  end
  if completions and failed and failed > completions then
    add(errors, field.invalid(path .. ".maxFailedIndexes", failed, "must be less than or equal to completions"))
  end
  if failed and failed > MOST_FAILED then
    add(errors, field.invalid(path .. ".maxFailedIndexes", failed,
      ("must be less than or equal to %d"):format(MOST_FAILED)))
  end
  check_many(errors, spec, path)
end

local function check_mode(errors, spec, path)
  local mode = json.get(spec, "completionMode")
  if mode == "Indexed" then return check_indexed(errors, spec, path) end
  if mode and mode ~= "NonIndexed" then
    add(errors, field.not_supported(path .. ".completionMode", mode, { "NonIndexed", "Indexed" }))
    return
  end
  for _, name in ipairs { "backoffLimitPerIndex", "maxFailedIndexes" } do
    if json.get(spec, name) then
      add(errors, field.invalid(path .. "." .. name, spec[name], "requires indexed completion mode"))
    end
  end
end

-- ---- pods ----

local RESTARTS = { "OnFailure", "Never" }

local function check_template(errors, spec, path)
  local pods = json.get(spec, "template", "spec") or json.object {}
  path = path .. ".template.spec"
  pod_rules.check(errors, pods, path)
  local policy = pods.restartPolicy
  path = path .. ".restartPolicy"
  if policy == "Always" then
    add(errors, field.required(path, 'valid values: "OnFailure", "Never"'))
  elseif policy ~= "OnFailure" and policy ~= "Never" then
    add(errors, field.not_supported(path, policy or "", RESTARTS))
  elseif json.get(spec, "podFailurePolicy") and policy ~= "Never" then
    add(errors, field.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified'))
  end
end

--- Adds what is wrong with the spec of a job at `path`; its selector is for others.
function job_rules.check(errors, spec, path)
  check_counts(errors, spec, path)
  check_manager(errors, json.get(spec, "managedBy"), path .. ".managedBy")
  check_mode(errors, spec, path)
  job_policies.check(errors, spec, path)
  check_template(errors, spec, path)
end

-- ---- selectors ----

local PREFIX = "batch.kubernetes.io/"

-- The labels by which a job knows its pods; a user may have got in the way.
local function check_generated(errors, new)
  local spec, m = new.spec, new.metadata
  if spec.manualSelector == true or not json.get(spec, "selector") then return end
  local labels, expected = json.get(spec, "template", "metadata", "labels") or json.object {}, {}
  for _, prefix in ipairs { "", PREFIX } do
    for _, pair in ipairs { { "controller-uid", m.uid }, { "job-name", m.name } } do
      local name, value = prefix .. pair[1], pair[2]
      local path = ("spec.template.metadata.labels[%s]"):format(name)
      expected[name] = value
      if labels[name] == nil then
        add(errors, field.required(path, ("must be '%s'"):format(value)))
      elseif labels[name] ~= value then
        add(errors, field.invalid(path, labels, ("must be '%s'"):format(value)))
      end
    end
  end
  local problems = {}
  label_selector.check(problems, spec.selector, "spec.selector")
  if not problems[1] and not label_selector.matches(spec.selector, expected) then
    add(errors, field.invalid("spec.selector", spec.selector, "`selector` not auto-generated"))
  end
end

local function check_selector(errors, spec)
  local selector, labels = json.get(spec, "selector"), json.get(spec, "template", "metadata", "labels")
  local before = #errors
  if selector then
    label_selector.check(errors, selector, "spec.selector")
  else
    add(errors, field.required("spec.selector"))
  end
  if selector and #errors > before then return end
  if not selector or not label_selector.matches(selector, labels) then
    add(errors, field.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"))
  end
end

-- ---- changes ----

local FIXED = { "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy" }

local function is_true(status, kind)
  for _, condition in ipairs(json.get(status, "conditions") or {}) do
    if condition.type == kind then return condition.status == "True" end
  end
  return false
end

-- Where its pods will run, and what they need, can be changed before they are there.
local function without_places(template, given)
  template = json.shallow(template)
  template.metadata = json.shallow(template.metadata or json.object {})
  template.metadata.labels, template.metadata.annotations = nil, nil
  local spec = json.shallow(template.spec)
  spec.nodeSelector, spec.tolerations, spec.schedulingGates = nil, nil, nil
  if json.get(spec, "affinity") then
    spec.affinity = json.with(spec.affinity, "nodeAffinity", nil)
    if next(spec.affinity) == nil then spec.affinity = nil end
  end
  for _, name in ipairs { "containers", "initContainers" } do
    local list = json.array {}
    for i, c in ipairs(json.get(spec, name) or {}) do
      local twin = json.get(given, "spec", name, i)
      list[i] = twin and twin.name == c.name and json.with(c, "resources", nil) or c
    end
    spec[name] = list
  end
  template.spec = spec
  return template
end

local function check_template_change(errors, new, old)
  local now, before = new.spec.template, old.spec.template
  if json.equal(now, before) then return end
  local free = old.spec.suspend == true and (json.get(old, "status", "active") or 0) == 0
    and (not json.get(old, "status", "startTime") or is_true(old.status, "Suspended"))
  if free and json.equal(without_places(now, before), without_places(before, now)) then return end
  add(errors, field.immutable("spec.template", now))
end

local function check_change(errors, new, old)
  local spec, before = new.spec, old.spec
  if not json.equal(spec.completions, before.completions) then
    if spec.completionMode ~= "Indexed" then
      add(errors, field.immutable("spec.completions", spec.completions))
    elseif json.get(spec, "completions") and spec.completions ~= spec.parallelism then
      add(errors, field.invalid("spec.completions", spec.completions,
        "can only be modified in tandem with spec.parallelism"))
    end
  end
  if not json.equal(spec.selector, before.selector) then
    add(errors, field.immutable("spec.selector", spec.selector))
  end
  check_template_change(errors, new, old)
  for _, name in ipairs(FIXED) do
    if not json.equal(spec[name], before[name]) then
      local shown = job_policies.show(name, spec[name])
      add(errors, shown and field.shown("spec." .. name, shown, "field is immutable")
        or field.immutable("spec." .. name, spec[name]))
    end
  end
end

-- The name of the last pod of a job with indexes.
local function check_last_name(errors, new)
  local completions, name = json.get(new.spec, "completions") or 0, new.metadata.name or ""
  if new.spec.completionMode ~= "Indexed" or completions <= 0 then return end
  local last = ("%s-%d"):format(name, completions - 1)
  if names.label(last) then
    add(errors, field.invalid("metadata.name", name, "will not able to create pod with invalid DNS label: " .. last))
  end
end

--- Adds what is wrong with a job.
function job_rules.validate(errors, new, old)
  check_generated(errors, new)
  job_rules.check(errors, new.spec, "spec")
  check_selector(errors, new.spec)
  check_last_name(errors, new)
  if not old then return end
  -- The server looks at the spec once more.
  job_rules.check(errors, new.spec, "spec")
  check_selector(errors, new.spec)
  check_change(errors, new, old)
end

return job_rules
