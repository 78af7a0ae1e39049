-- What `moonwatch check` and `moonwatch rbac` print.
local codec = require("kube._core").codec

local M = {}

local WIDTH = 100

-- Adds words to lines, the first behind a title, and wraps them below each other.
local function wrapped(lines, indent, title, words)
  local head = ("%s%-12s"):format(indent, title)
  local line, blank = head, (" "):rep(#head)
  for i, word in ipairs(words) do
    word = word .. (i < #words and "," or "")
    if #line + #word > WIDTH and line ~= head and line ~= blank then
      lines[#lines + 1] = line
      line = blank
    end
    line = line .. " " .. word
  end
  lines[#lines + 1] = line
end

local function listed(lines, title, words)
  if words and #words > 0 then wrapped(lines, "    ", title, words) end
end

local function written(controller)
  if not controller.writes then return { "anything (it has no writes)" } end
  local names, words = {}, {}
  for name in pairs(controller.writes) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do words[i] = ("%s (%s)"):format(name, table.concat(controller.writes[name], " ")) end
  return words
end

local function tell_controller(lines, controller)
  lines[#lines + 1] = ("  controller %s (%s)"):format(controller.name, controller.place)
  listed(lines, "reconciles", { controller.resource })
  listed(lines, "namespaces", controller.namespaces)
  listed(lines, "owns", controller.owns)
  listed(lines, "watches", controller.watches)
  listed(lines, "reads", controller.reads)
  listed(lines, "writes", written(controller))
  if controller.finalizer then listed(lines, "finalizer", { controller.finalizer }) end
  if controller.workers > 1 then listed(lines, "workers", { tostring(controller.workers) }) end
end

local function informer_text(informer)
  local more = {}
  if informer.selector then more[#more + 1] = informer.selector end
  if informer.metadata_only then more[#more + 1] = "metadata only" end
  if #informer.indexers > 0 then more[#more + 1] = "indexes " .. table.concat(informer.indexers, " ") end
  local handlers = informer.handlers
  if handlers > 0 then more[#more + 1] = handlers == 1 and "1 handler" or ("%d handlers"):format(handlers) end
  local name = informer.resource .. (informer.namespace == "" and "" or " in " .. informer.namespace)
  return #more > 0 and name .. ": " .. table.concat(more, ", ") or name
end

-- One line for each of a kind, behind its title.
local function section(lines, title, entries, text)
  for i, entry in ipairs(entries) do
    if i == 1 then lines[#lines + 1] = "  " .. title end
    lines[#lines + 1] = ("    %s (%s)"):format(text(entry), entry.place)
  end
end

-- "deployments.apps, deployments.apps/status: get patch"
local function rule_text(rule)
  local group = rule.apiGroups[1] ~= "" and "." .. rule.apiGroups[1] or ""
  local object = rule.resourceNames and " " .. rule.resourceNames[1] or ""
  local words = {}
  for i, resource in ipairs(rule.resources) do words[i] = resource:gsub("^[^/]+", "%0" .. group) .. object end
  return ("%s: %s"):format(table.concat(words, ", "), table.concat(rule.verbs, " "))
end

local function tell_roles(lines, roles)
  for _, role in ipairs(roles) do
    local namespace = role.metadata.namespace or "its own namespace"
    lines[#lines + 1] = role.kind == "ClusterRole" and "  needs" or "  needs in " .. namespace
    for _, rule in ipairs(role.rules) do lines[#lines + 1] = "    " .. rule_text(rule) end
  end
end

local function tell_declared(lines, one)
  local declared = one.declared
  for _, controller in ipairs(declared.controllers) do tell_controller(lines, controller) end
  section(lines, "informers", declared.informers, informer_text)
  section(lines, "work queues", declared.queues, function(queue) return queue.name or "(no name)" end)
  section(lines, "timers", declared.timers, function(timer)
    return ("%s every %g s%s"):format(timer.name, timer.interval, timer.leader_only and " while leading" or "")
  end)
  section(lines, "tasks", declared.tasks, function(task) return task.name end)
  section(lines, "recorders of events", declared.recorders, function(recorder) return recorder.name end)
  section(lines, "metrics", declared.metrics, function(metric) return metric.name end)
  section(lines, "leader election", declared.leader_election, function(election)
    return ("lease %s"):format((election.namespace and election.namespace .. "/" or "") .. election.name)
  end)
  tell_roles(lines, one.roles)
  for i, note in ipairs(one.unknown) do
    if i == 1 then lines[#lines + 1] = "  cannot be known" end
    lines[#lines + 1] = "    " .. note
  end
end

local function tell_problem(lines, problem)
  lines[#lines + 1] = "  " .. problem.message:gsub("\n", "\n  ")
  for _, line in ipairs(problem.excerpt or {}) do lines[#lines + 1] = "    " .. line end
  for _, place in ipairs(problem.called_from or {}) do lines[#lines + 1] = "    called from " .. place end
end

--- What was found out about scripts, for a person.
---@param all table[]
---@return string
function M.text(all)
  local lines = {}
  for _, one in ipairs(all) do
    lines[#lines + 1] = ("%s: %s"):format(one.file, one.ok and "ok" or "does not load")
    if one.ok then tell_declared(lines, one) end
    for _, problem in ipairs(one.errors) do tell_problem(lines, problem) end
  end
  return table.concat(lines, "\n") .. "\n"
end

--- The errors alone.
---@param all table[]
---@return string
function M.problems(all)
  local failed = {}
  for _, one in ipairs(all) do
    if not one.ok then failed[#failed + 1] = one end
  end
  return #failed > 0 and M.text(failed) or ""
end

local function flow(list)
  local words = {}
  for i, word in ipairs(list) do words[i] = codec.encode(word) end
  return "[" .. table.concat(words, ", ") .. "]"
end

local function yaml_role(lines, role)
  lines[#lines + 1] = "apiVersion: " .. role.apiVersion
  lines[#lines + 1] = "kind: " .. role.kind
  lines[#lines + 1] = "metadata:\n  name: " .. codec.encode(role.metadata.name)
  if role.metadata.namespace then lines[#lines + 1] = "  namespace: " .. codec.encode(role.metadata.namespace) end
  lines[#lines + 1] = "rules:"
  for _, rule in ipairs(role.rules) do
    lines[#lines + 1] = "  - apiGroups: " .. flow(rule.apiGroups)
    lines[#lines + 1] = "    resources: " .. flow(rule.resources)
    if rule.resourceNames then lines[#lines + 1] = "    resourceNames: " .. flow(rule.resourceNames) end
    lines[#lines + 1] = "    verbs: " .. flow(rule.verbs)
  end
end

--- Roles as YAML, with what is not known as comments.
---@param roles table[]
---@param unknown string[]
---@return string
function M.yaml(roles, unknown)
  local lines = {}
  for _, note in ipairs(unknown) do lines[#lines + 1] = "# Cannot be known, add rules for it: " .. note end
  for i, role in ipairs(roles) do
    if i > 1 then lines[#lines + 1] = "---" end
    if role.kind == "Role" and not role.metadata.namespace then
      lines[#lines + 1] = "# For the namespace that the script runs in: kubectl apply -n NAMESPACE"
    end
    yaml_role(lines, role)
  end
  return table.concat(lines, "\n") .. "\n"
end

return M
