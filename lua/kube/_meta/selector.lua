---@meta
-- Methods of selectors that C provides. Never loaded.

--- A selector that was read once, of kube.selector.parse.
---@class kube.Selector
local Selector = {}

--- Whether it selects labels; nil has no labels.
---@param labels? table<string, string>
---@return boolean
function Selector:matches(labels) end

--- The text as it is sent to the server.
---@return string
function Selector:text() end
