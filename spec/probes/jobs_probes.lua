-- Jobs and cron jobs: rules between the fields of one, and between it and what it was. Somebody else
-- manages the jobs that are kept, so that no controller writes their status.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local function refusal(v) return v.kind == "Status" and samples.sorted_causes(v) or "accepted" end

local function template(more, labels)
  local spec = { restartPolicy = "Never", containers = { samples.container "main" } }
  for key, value in pairs(more or {}) do spec[key] = value end
  return { metadata = labels and { labels = labels } or nil, spec = spec }
end

local function tries(p)
  return function(spec, metadata)
    metadata = metadata or { name = p:name "a" }
    spec.template = spec.template or template()
    p:post(p:path("/apis/batch/v1", "jobs") .. "?dryRun=All", { metadata = metadata, spec = spec }, { pick = refusal })
  end
end

-- Creates a job and returns change(patch, subresource, for_good).
local function made(p, label, spec)
  spec = spec or {}
  spec.template, spec.managedBy = spec.template or template(), "example.com/probe"
  local path = p:path("/apis/batch/v1", "jobs")
  p:setup("POST", path, { metadata = { name = p:name(label) }, spec = spec })
  return function(patch, subresource, for_good)
    p:patch("merge", path .. "/" .. p:name(label) .. (subresource and "/" .. subresource or "")
      .. (for_good and "" or "?dryRun=All"), patch, { pick = refusal })
  end
end

local function condition(kind, status)
  return { type = kind, status = status or "True", lastTransitionTime = "2001-01-01T00:00:00Z" }
end

local BEGIN, END = "2001-01-01T00:00:00Z", "2001-01-01T00:01:00Z"

return {
  { name = "indexes are counted", run = function(p)
    local try = tries(p)
    try { completionMode = "Bogus" }
    try { completionMode = "Indexed" }
    try { completionMode = "Indexed", parallelism = 1 }
    try { completionMode = "Indexed", completions = 3 }
    try { completionMode = "Indexed", completions = 3, parallelism = 100001 }
    try({ completionMode = "Indexed", completions = 100 }, { name = ("n"):rep(61) })
    try { maxFailedIndexes = 1 }
    try { backoffLimitPerIndex = 1 }
    try { completionMode = "Indexed", completions = 3, maxFailedIndexes = 1 }
    try { completionMode = "Indexed", completions = 3, backoffLimitPerIndex = 1, maxFailedIndexes = 4 }
    try { completionMode = "Indexed", completions = 3, backoffLimitPerIndex = -1, maxFailedIndexes = -1 }
    try { completionMode = "Indexed", completions = 200000, backoffLimitPerIndex = 1 }
    try { completionMode = "Indexed", completions = 200000, backoffLimitPerIndex = 1, parallelism = 20000,
      maxFailedIndexes = 20000 }
    try { completionMode = "Indexed", completions = 3, backoffLimitPerIndex = 1, maxFailedIndexes = 2 }
  end },
  { name = "selectors are generated", run = function(p)
    local try = tries(p)
    try { selector = { matchLabels = { a = "b" } } }
    try { selector = { matchLabels = { a = "b" } }, template = template(nil, { a = "b" }) }
    try { template = template(nil, { ["job-name"] = "other" }) }
    try { template = template(nil, { ["controller-uid"] = "other" }) }
    try { template = template(nil, { ["batch.kubernetes.io/job-name"] = "other" }) }
    try { manualSelector = true, selector = { matchLabels = { a = "b" } } }
    try { manualSelector = true, selector = { matchLabels = { a = "b" } }, template = template(nil, { a = "b" }) }
    try { manualSelector = true, selector = { matchExpressions = { { key = "a", operator = "Bogus" } } } }
  end },
  { name = "policies about failure and success", run = function(p)
    local try = tries(p)
    local function failure(rule, more)
      local spec = { podFailurePolicy = { rules = { rule } } }
      for key, value in pairs(more or {}) do spec[key] = value end
      try(spec)
    end
    local exit = { operator = "In", values = { 1, 2 } }
    failure { action = "FailJob", onExitCodes = exit }
    failure({ action = "FailJob", onExitCodes = exit }, { template = template { restartPolicy = "OnFailure" } })
    failure({ action = "FailJob", onExitCodes = exit }, { podReplacementPolicy = "TerminatingOrFailed" })
    failure { action = "FailJob" }
    failure { action = "Bogus", onPodConditions = { { type = "Ready", status = "Bogus" } } }
    failure { action = "FailIndex", onExitCodes = exit }
    failure { action = "Count", onExitCodes = { operator = "In", values = { 2, 0, 2 }, containerName = "other" } }
    failure { action = "Ignore", onExitCodes = { operator = "Bogus", values = json.array {} } }
    failure { action = "Ignore", onExitCodes = exit, onPodConditions = { { type = "Ready", status = "True" } } }
    try { podReplacementPolicy = "Bogus" }
    local function success(rules, mode) try { completionMode = mode or "Indexed", completions = 3,
      successPolicy = { rules = rules } } end
    success({ { succeededCount = 1 } }, "NonIndexed")
    success { { succeededCount = 1 } }
    success(json.array {})
    success { json.object {} }
    success { { succeededCount = 4 } }
    success { { succeededIndexes = "0-1", succeededCount = 3 } }
    for _, indexes in ipairs { "0-2", "0,2", "3", "x", "1-", "2-1", "1,1", "0-1-2" } do
      success { { succeededIndexes = indexes } }
    end
    try { managedBy = "not a path" }
    try { managedBy = "example.com/x" }
  end },
  { name = "jobs and how they change", run = function(p)
    local change = made(p, "b")
    change { spec = { completions = 2 } }
    change { spec = { parallelism = 5, backoffLimit = 1, activeDeadlineSeconds = 5, ttlSecondsAfterFinished = 5 } }
    change { spec = { completionMode = "Indexed" } }
    change { spec = { podFailurePolicy = { rules = json.array {} } } }
    change { spec = { backoffLimitPerIndex = 1 } }
    change { spec = { managedBy = "example.com/other" } }
    change { spec = { suspend = true } }
    change { spec = { parallelism = -1 } }
    local indexed = made(p, "i", { completionMode = "Indexed", completions = 2, parallelism = 2 })
    indexed { spec = { completions = 3 } }
    indexed { spec = { completions = 3, parallelism = 3 } }
    local waiting = made(p, "w", { suspend = true })
    waiting { spec = { template = { spec = { nodeSelector = { a = "b" }, tolerations = { { operator = "Exists" } } },
      metadata = { labels = { l = "1" }, annotations = { l = "1" } } } } }
    waiting { spec = { template = { spec = { containers = { { name = "main", image = "example.com/main:1",
      resources = { requests = { cpu = "1" } } } } } } } }
  end },
  { name = "what jobs say of themselves adds up", run = function(p)
    local change = made(p, "b")
    local function status(s) change({ status = s }, "status") end
    status { conditions = { condition "Complete" } }
    status { conditions = { condition "Complete" }, startTime = BEGIN, completionTime = END }
    status { conditions = { condition "SuccessCriteriaMet", condition "Complete" }, startTime = BEGIN }
    status { conditions = { condition "SuccessCriteriaMet", condition "Complete" }, completionTime = END }
    status { conditions = { condition "SuccessCriteriaMet", condition "Complete" }, startTime = END,
      completionTime = BEGIN }
    status { conditions = { condition "SuccessCriteriaMet", condition "Complete" }, startTime = BEGIN,
      completionTime = END, active = 1, terminating = 1, uncountedTerminatedPods = { succeeded = { "a" } } }
    status { conditions = { condition "SuccessCriteriaMet", condition "Complete" }, startTime = BEGIN,
      completionTime = END, succeeded = 1 }
    status { conditions = { condition "Failed" }, startTime = BEGIN }
    status { conditions = { condition "FailureTarget", condition "Failed" }, startTime = BEGIN, completionTime = END }
    status { conditions = { condition "FailureTarget", condition "Failed" }, startTime = BEGIN }
    status { conditions = { condition "Failed", condition "Complete", condition "SuccessCriteriaMet",
      condition "FailureTarget" }, startTime = BEGIN, completionTime = END }
    status { active = -1, succeeded = -1, failed = -1, ready = -1, terminating = -1 }
    status { active = 1, ready = 2 }
    status { active = 2, ready = 1, startTime = BEGIN }
    status { completedIndexes = "0", failedIndexes = "1" }
    status { uncountedTerminatedPods = { succeeded = { "a", "a", "" }, failed = { "a" } } }
  end },
  { name = "what jobs have said stays said", run = function(p)
    local change = made(p, "b")
    change({ status = { startTime = BEGIN, active = 1, failed = 2, succeeded = 2 } }, "status", true)
    change({ status = { startTime = END } }, "status")
    change({ status = { failed = 1 } }, "status")
    change({ status = { succeeded = 1 } }, "status")
    change({ status = { active = 0, completionTime = END, conditions = { condition "SuccessCriteriaMet",
      condition "Complete" } } }, "status", true)
    change({ status = { conditions = { condition "SuccessCriteriaMet" } } }, "status")
    change({ status = { conditions = { condition "Complete" } } }, "status")
    change({ status = { completionTime = "2001-01-01T00:02:00Z" } }, "status")
    change({ status = { active = 1 } }, "status")
    change({ status = { completionTime = json.null } }, "status")
    local indexed = made(p, "i", { completionMode = "Indexed", completions = 3, backoffLimitPerIndex = 1 })
    for _, pair in ipairs { { "0", "1" }, { "0-1", "1" }, { "3", "x" }, { "2,1", "2-1" }, { "0,2", "1" } } do
      indexed({ status = { completedIndexes = pair[1], failedIndexes = pair[2] } }, "status")
    end
  end },
  { name = "cron jobs", run = function(p)
    local path = p:path("/apis/batch/v1", "cronjobs")
    local function try(spec, name, job)
      spec.schedule = spec.schedule or "* * * * *"
      job = job or {}
      job.template = job.template or template()
      spec.jobTemplate = { spec = job }
      p:post(path .. "?dryRun=All", { metadata = { name = name or p:name "a" }, spec = spec }, { pick = refusal })
    end
    try({}, ("n"):rep(53))
    try({}, ("n"):rep(52))
    try({}, nil, { selector = { matchLabels = { a = "b" } } })
    try({}, nil, { manualSelector = true })
    try({}, nil, { completions = -1, parallelism = -1, backoffLimit = -1 })
    try({}, nil, { completionMode = "Indexed" })
    try { concurrencyPolicy = "Bogus" }
    try { successfulJobsHistoryLimit = -1, failedJobsHistoryLimit = -1, startingDeadlineSeconds = -1 }
    try { schedule = "TZ=UTC * * * * *" }
    try { schedule = "CRON_TZ=UTC 0 0 * * *", timeZone = "Etc/UTC" }
    try { timeZone = "Etc/UTC" }
    try { timeZone = "" }
    try { timeZone = "Local" }
    try { timeZone = "../etc" }
    for _, schedule in ipairs { "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 7", "*/5 * * * *",
      "*/0 * * * *", "5-1 * * * *", "1,2 * * * *", "0 0 * JAN MON", "a * * * *", "1-5/2 * * * *", "? * * * *",
      "@every 5m", "@every x", "@often", "* * * *", "1-2-3 * * * *", "1/2/3 * * * *", "-1 * * * *",
      "0 0 * * SUN-MON" } do
      try { schedule = schedule }
    end
  end },
}
