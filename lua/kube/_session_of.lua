-- What helpers that write take first: the ctx of a controller, its client, or any other client.
local errors = require "kube._error"
local verbs = require "kube._verbs"

local M = {}

-- A field, or nil where the value does not even answer.
local function field(value, name)
  local ok, found = pcall(function() return value[name] end)
  if ok then return found end
end

--- Who has the verbs: ctx.client of a ctx, or a client or session itself. what names the function in messages.
---@param what string
---@param value any
---@return kube.Session|kube.Client
function M.find(what, value)
  local session = value
  if type(value) == "table" then session = field(value, "client") or value end
  if field(session, "try_patch") then return session end
  errors.misuse("%s takes the ctx of a controller or a client first, not a %s", what, type(value))
end

--- The resource of an object, as that session's server has it. Awaits; raises.
---@param session kube.Session|kube.Client
---@param object table
---@return string
function M.resource_of(session, object)
  local client = type(session) == "userdata" and session or rawget(session, "_client")
  return (verbs.resource_of(client, object))
end

return M
