-- Leader election: of all processes that declare the same Lease, one leads, and only that one writes.
local core = require("kube._core")
local declarations = require "kube._declared"
local errors = require "kube._error"
local events = require "kube._events"
local options = require "kube._options"
local task = require "kube._task"

local M = {}

local KNOWN = {
  name = "string", namespace = "string", identity = "string", lease_duration = "number", renew_deadline = "number",
  retry_period = "number", release = "boolean", labels = "table", on_started_leading = "function",
  on_stopped_leading = "function", on_new_leader = "function",
}

local NAME_MAX, LABEL_MAX = 253, 63

local function is_dns_label(text) return text:find("^[a-z0-9][a-z0-9%-]*$") and not text:find("%-$") end

local function is_subdomain(text)
  if #text > NAME_MAX then return false end
  for part in (text .. "."):gmatch("([^.]*)%.") do
    if not is_dns_label(part) then return false end
  end
  return true
end

local function is_label_text(text)
  return #text <= LABEL_MAX and (text == "" or (text:find("^%w[%w%-_.]*$") and text:find("%w$")))
end

-- A list of { key, value }, by key.
local function label_list(labels)
  local list = {}
  for key, value in pairs(labels or {}) do
    if type(key) ~= "string" or type(value) ~= "string" then
      errors.misuse("leader_election: labels takes { name = \"value\" }, both strings")
    end
    local prefix, name = key:match("^(.*)/(.*)$")
    if not is_label_text(name or key) or (name or key) == "" or (prefix and not is_subdomain(prefix)) then
      errors.misuse("leader_election: labels: '%s' cannot be the name of a label", key)
    elseif not is_label_text(value) then
      errors.misuse("leader_election: labels: '%s' cannot be the value of %s: it takes 63 letters, digits, '-', '_' "
        .. "and '.' at most", value, key)
    end
    list[#list + 1] = { key, value }
  end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  return list
end

local declared -- where, in this script

local function check(opts)
  opts = options.check("leader_election", opts, KNOWN)
  if not core.task.is_loading() then
    errors.misuse("leader_election is declared while the script loads: write it before the first await")
  elseif declared then
    errors.misuse("leader_election was declared at %s: a process has one", declared)
  elseif not opts.name then
    errors.misuse("leader_election needs name = \"...\", the name of its Lease, which all replicas share")
  elseif not is_subdomain(opts.name) then
    errors.misuse("leader_election: '%s' cannot be the name of a Lease: lower-case letters, digits, '-' and '.'",
      opts.name)
  elseif opts.namespace == "" then
    errors.misuse("leader_election: option 'namespace' is empty: a Lease is in one namespace")
  elseif opts.identity == "" then
    errors.misuse("leader_election: identity is empty: it must name this process and no other")
  end
  core.informer.check_namespace("leader_election: option 'namespace'", opts.namespace)
  return opts
end

--- Whether this process takes part in an election, or this script has declared one.
---@return boolean
function M.is_configured() return core.lease.is_configured() end

--- Whether this process may write: it leads, or there is no election.
---@return boolean
function M.is_leading() return core.lease.is_leading() end

--- Waits until this process leads; returns at once when there is no election.
---@param timeout? number seconds
---@return boolean leading false when the time was over first
function M.wait(timeout)
  options.check_timeout("leader:wait(timeout): timeout", timeout)
  if not M.is_configured() then return true end
  return task.wait_until(core.lease.is_leading, timeout, "leader:wait()")
end

local ended = false
core.task.on_stop(function() ended = true end)

--- The same for who works until the script ends: an election may be added by a reload, and a lease may not be
--- renewed in time.
---@return boolean leading false when the script ends first
function M.stand_by()
  if M.is_leading() then return true end
  task.wait_until(function() return ended or M.is_leading() end)
  return M.is_leading()
end

--- What kube.leader_election returns.
---@class kube.Leader
local Leader = {}
Leader.__index = Leader

function Leader.__tostring(self) return ("leader election %s/%s"):format(core.lease.namespace(), self._name) end

--- Whether this process leads now. A lease that could not be renewed in time says no before it is lost.
---@return boolean
function Leader.is_leading() return M.is_leading() end

--- Waits until this process leads.
---@param timeout? number seconds
---@return boolean leading false when the time was over first
function Leader:wait(timeout) return M.wait(timeout) end -- luacheck: ignore self

--- Who leads, as far as this process has seen; "" when nobody does.
---@return string
function Leader.holder()
  -- News of it may still be on their way.
  return core.lease.is_leading() and core.lease.identity() or core.lease.holder()
end

--- The name of this process in the election.
---@return string
function Leader.identity() return core.lease.identity() end

--- The namespace of the Lease.
---@return string
function Leader.namespace() return core.lease.namespace() end

options.guard(Leader, "leader")

-- Events of the Lease, each once: recorder(name) gives a function that takes what happened.
local function recorder(name)
  local recorded, seen = nil, {}
  return function(what)
    if seen[what] then return end
    seen[what] = true
    recorded = recorded or events.new { name = name }
    recorded:normal({ apiVersion = "coordination.k8s.io/v1", kind = "Lease",
      metadata = { name = name, namespace = core.lease.namespace() } }, "LeaderElection", "%s %s",
      core.lease.identity(), what)
  end
end

---@class kube.LeaderElectionOptions
---@field name string of the Lease, which all replicas share
---@field namespace? string default: the -n of the command line, the kubeconfig's or the pod's, "default"
---@field identity? string who this process is, default: host name and a uuid
---@field lease_duration? number whole seconds that others wait before they take the Lease, default: 15
---@field renew_deadline? number seconds without a renewal after which nothing is written any more, default: 10
---@field retry_period? number seconds between renewals and tries, default: 2
---@field release? boolean give the Lease up at the end, so that another leads at once, default: true
---@field labels? table<string, string> for the Lease
---@field on_started_leading? fun() runs as a task when this process leads for the first time
---@field on_stopped_leading? fun() runs at the end, also of a process that never led; must not await
---@field on_new_leader? fun(identity: string) runs as a task whenever the holder changes; "" for nobody

--- Declares the leader election of this process, while the script loads. Caches fill and informers run in
--- every replica; requests that write are refused with the code "not_leading" unless this process leads.
--- When the Lease is lost, the process ends with exit code 4.
---
--- Other scripts in the process may declare the same Lease, and not another one. A revision may add it: from
--- its take-over on nothing is written until the Lease is won, not even by what comes to its end on the code
--- before. One that leaves it out changes nothing: the Lease is kept until the process ends.
---@param opts kube.LeaderElectionOptions
---@return kube.Leader
function M.leader_election(opts)
  opts = check(opts)
  local place = errors.place()
  local record = recorder(opts.name)
  core.lease.declare({
    what = "leader_election",
    name = opts.name, namespace = opts.namespace, identity = opts.identity, lease_duration = opts.lease_duration,
    renew_deadline = opts.renew_deadline, retry_period = opts.retry_period, release = opts.release,
    labels = label_list(opts.labels), place = place,
  }, function(holder)
    if holder and opts.on_new_leader then task.start("on_new_leader", opts.on_new_leader, holder) end
    if core.lease.is_leading() and core.lease.is_first() then record("became leader") end
  end)
  declared = place
  declarations.add("leader_election", { name = opts.name, namespace = opts.namespace })
  -- One that has lost the Lease may not write any more, and the next one says so.
  core.task.on_stop(function(retiring)
    if retiring then return end
    if core.lease.is_leading() and core.lease.is_alone() then record("stopped leading") end
    if opts.on_stopped_leading then opts.on_stopped_leading() end
  end)
  if opts.on_started_leading then
    task.start("on_started_leading", function()
      if M.stand_by() and not ended then opts.on_started_leading() end
    end)
  end
  return setmetatable({ _name = opts.name }, Leader)
end

return M
