-- What a script declares while it loads: collected for `moonwatch check` and `moonwatch rbac`, which load it and let
-- nothing of it run.
local core = require "kube._core"
local errors = require "kube._error"

local M = {}

local KINDS = { "controllers", "informers", "timers", "leader_election", "recorders", "metrics", "queues", "handlers",
  "tasks" }

local lists = {}
for _, kind in ipairs(KINDS) do lists[kind] = core.codec.array {} end

--- Notes a declaration; after the load phase nothing is noted.
---@param kind string
---@param entry table plain data
---@return table entry with its place in the script, "file:line"
function M.add(kind, entry)
  if not core.task.is_loading() then return entry end
  entry.place = entry.place or errors.place()
  table.insert(lists[kind], entry)
  return entry
end

--- All that was declared, as JSON.
---@return string
function M.text() return core.codec.encode(lists) end

return M
