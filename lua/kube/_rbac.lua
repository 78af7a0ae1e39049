-- The roles that scripts need, from what they declared (kube._declared): no more than that. What is in known
-- namespaces goes into a Role for each, the rest into a ClusterRole.
local codec = require("kube._core").codec
local groups = require "kube._groups"
local writes = require "kube._writes"

local M = {}

local EVERYWHERE = ""  -- in all namespaces, or in none
local HERE = "."       -- the namespace of whoever runs the script
local READ = { "get", "list", "watch" }

-- Group and plural (perhaps with subresource) of "apps/v1/deployments/status".
local function names_of(name)
  local rest = name:match("^v%d[%l%d]*/(.+)$")
  if rest then return "", rest end
  return name:match("^([^/]+)/[^/]+/(.+)$")
end

local function resource_of(name) return name:match("^(v%d[%l%d]*/[^/]+)") or name:match("^([^/]+/[^/]+/[^/]+)") end

local function is_cluster_scoped(name) return groups.is_cluster_scoped(resource_of(name)) end

-- needs[scope]["group\nplural\nname"] = { group =, resource =, name =, verbs = set }
local function need(needs, scope, name, verbs, object)
  if is_cluster_scoped(name) then scope = EVERYWHERE end
  local group, resource = names_of(name)
  local id = table.concat({ group, resource, object or "" }, "\n")
  needs[scope] = needs[scope] or {}
  local entry = needs[scope][id] or { group = group, resource = resource, object = object, verbs = {} }
  needs[scope][id] = entry
  for _, verb in ipairs(verbs) do entry.verbs[verb] = true end
end

local function need_controller(needs, controller, namespace)
  for _, scope in ipairs(controller.namespaces or { namespace }) do
    for name, verbs in pairs(controller.writes or {}) do need(needs, scope, name, verbs) end
    if controller.finalizer then need(needs, scope, controller.resource, { "patch" }) end
  end
end

local function need_lease(needs, election, namespace)
  local scope = election.namespace or (namespace ~= "" and namespace) or HERE
  need(needs, scope, "coordination.k8s.io/v1/leases", { "create" })
  need(needs, scope, "coordination.k8s.io/v1/leases", { "get", "update" }, election.name)
  need(needs, scope, "v1/events", { "create", "patch" })
end

-- What a ClusterRole allows needs no Role.
local function drop_covered(needs)
  local all = needs[EVERYWHERE] or {}
  for scope, entries in pairs(needs) do
    for _, entry in pairs(scope ~= EVERYWHERE and entries or {}) do
      local covered = all[table.concat({ entry.group, entry.resource, "" }, "\n")]
      for verb in pairs(covered and covered.verbs or {}) do entry.verbs[verb] = nil end
    end
  end
end

-- Entries of one group with the same verbs share a rule.
local function rules_of(entries)
  local by_id, rules = {}, codec.array {}
  for _, entry in pairs(entries) do
    local verbs = writes.sorted(entry.verbs)
    local id = table.concat({ entry.group, table.concat(verbs, ","), entry.object or "" }, "\n")
    local rule = by_id[id]
    if not rule and #verbs > 0 then
      rule = { apiGroups = codec.array { entry.group }, resources = codec.array {}, verbs = codec.array(verbs),
        resourceNames = entry.object and codec.array { entry.object } or nil, _id = id }
      by_id[id] = rule
      table.insert(rules, rule)
    end
    if rule then table.insert(rule.resources, entry.resource) end
  end
  for _, rule in ipairs(rules) do table.sort(rule.resources) end
  table.sort(rules, function(a, b)
    if a.apiGroups[1] ~= b.apiGroups[1] then return a.apiGroups[1] < b.apiGroups[1] end
    if a.resources[1] ~= b.resources[1] then return a.resources[1] < b.resources[1] end
    return a._id < b._id
  end)
  for _, rule in ipairs(rules) do rule._id = nil end
  return rules
end

--- The roles, as objects: first the one for all namespaces, then those for one. A Role without a namespace is for
--- the one that the script will run in.
---@param declared table[] what scripts declared
---@param name string of the roles
---@param namespace string where things are that name no namespace; "" for everywhere
---@return table[]
function M.roles(declared, name, namespace)
  local needs, roles, scopes = {}, codec.array {}, {}
  for _, one in ipairs(declared) do
    for _, informer in ipairs(one.informers) do need(needs, informer.namespace, informer.resource, READ) end
    for _, controller in ipairs(one.controllers) do need_controller(needs, controller, namespace) end
    for _, recorder in ipairs(one.recorders) do need(needs, namespace, recorder.resource, { "create", "patch" }) end
    for _, election in ipairs(one.leader_election) do need_lease(needs, election, namespace) end
  end
  drop_covered(needs)
  for scope in pairs(needs) do scopes[#scopes + 1] = scope end
  table.sort(scopes)
  for _, scope in ipairs(scopes) do
    local rules = rules_of(needs[scope])
    if #rules > 0 then
      table.insert(roles, { apiVersion = "rbac.authorization.k8s.io/v1",
        kind = scope == EVERYWHERE and "ClusterRole" or "Role",
        metadata = { name = name, namespace = scope ~= EVERYWHERE and scope ~= HERE and scope or nil },
        rules = rules })
    end
  end
  return roles
end

-- Who else may write: "timer clean (a.lua:3)".
local function others_of(one)
  local others = {}
  for _, timer in ipairs(one.timers) do others[#others + 1] = ("timer %s (%s)"):format(timer.name, timer.place) end
  for _, task in ipairs(one.tasks) do others[#others + 1] = ("task %s (%s)"):format(task.name, task.place) end
  for _, informer in ipairs(one.informers) do
    if informer.handlers > 0 then
      others[#others + 1] = ("handler of %s (%s)"):format(informer.resource, informer.place)
    end
  end
  return others
end

--- What no declaration tells, a sentence for each.
---@param declared table[] what scripts declared
---@return string[]
function M.unknown(declared)
  local notes = codec.array {}
  for _, one in ipairs(declared) do
    for _, controller in ipairs(one.controllers) do
      if not controller.writes then
        table.insert(notes, ("what controller %s (%s) writes: it has no writes = { \"%s\", ... }"):format(
          controller.name, controller.place, (controller.owns[1] or "v1/configmaps") .. ":create,patch"))
      end
    end
    local others = others_of(one)
    if #others > 0 then
      table.insert(notes, ("what is written with kube.client, if anything, by %s"):format(table.concat(others, ", ")))
    end
  end
  return notes
end

return M
