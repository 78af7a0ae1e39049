-- What a script under test wrote, from the sandbox's log of requests.
local core = require "kube._core"
local sandbox = require "kube.sandbox"

local M = {}

local READS = { get = true, list = true, watch = true, head = true, options = true }
local APPLY = "application/apply-patch"

-- By resource, whatever its group: the option of settle that includes them.
local LEFT_OUT = { events = "events", leases = "leases" }

---@class kube.TestWrite
---@field verb string create, update, patch, apply, delete or delete_collection
---@field resource string "apps/v1/deployments"
---@field key string
---@field subresource? string
---@field status integer of the answer; 0 when the connection broke
---@field object? table what was sent

local function verb_of(entry)
  if entry.verb == "patch" and (entry.content_type or ""):find(APPLY, 1, true) then return "apply" end
  return entry.verb == "deletecollection" and "delete_collection" or entry.verb
end

local function write_of(entry)
  local group = entry.group ~= "" and entry.group or nil
  return {
    verb = verb_of(entry),
    resource = (group and group .. "/" or "") .. entry.version .. "/" .. entry.resource,
    key = (entry.namespace and entry.namespace .. "/" or "") .. (entry.name or ""),
    subresource = entry.subresource,
    status = entry.status,
    object = entry.body,
  }
end

--- The writes behind a request, but those of the spec itself; and the request that is the last now.
---@param id integer
---@param include { events?: boolean, leases?: boolean }
---@return kube.TestWrite[]
---@return integer
function M.since(id, include)
  local log, list = sandbox.requests { since = id }, {}
  for _, entry in ipairs(log.items) do
    local option = LEFT_OUT[entry.resource]
    local wanted = not option or include[option]
    if entry.resource and not READS[entry.verb] and wanted and entry.user_agent ~= core.test.agent() then
      list[#list + 1] = write_of(entry)
    end
  end
  return list, log.last
end

--- Writes as lines, in their order.
---@param writes kube.TestWrite[]
---@return string[]
function M.summary(writes)
  local lines = {}
  for i, write in ipairs(writes) do
    local what = write.subresource and write.resource .. "/" .. write.subresource or write.resource
    local refused = write.status < 200 or write.status >= 400
    lines[i] = ("%s %s %s%s"):format(write.verb, what, write.key, refused and (" (%d)"):format(write.status) or "")
  end
  return lines
end

return M
