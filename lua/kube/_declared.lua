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

-- Stands for what could not be declared; the load fails at its end.
local nothing = setmetatable({}, { __index = function() return function() end end })

--- Of a function that declares: one that does not end the load when it is misused, so that all that is wrong with a
--- script is told at once. An error that the script itself would catch is raised.
---@param fn function
---@return function
function M.patient(fn)
  return function(...)
    if not core.task.is_loading() or core.task.is_caught() then return fn(...) end
    local ok, result = pcall(fn, ...)
    if ok then return result end
    if type(result) ~= "string" then error(result, 0) end
    core.task.complain(tostring(result))
    return nothing
  end
end

--- All that was declared, as JSON.
---@return string
function M.text() return core.codec.encode(lists) end

return M
