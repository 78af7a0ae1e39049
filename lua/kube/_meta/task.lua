---@meta
-- Methods of tasks that C provides. Never loaded.

---@class kube.Task
local Task = {}

--- Stops the task and what belongs to it: it ends at its next await.
function Task:cancel() end

--- Whether it has ended.
---@return boolean
function Task:is_done() end

--- Its name in logs and reports.
---@return string
function Task:name() end
