-- kube.selector: label selectors, for labels that are not in a cache.
local core = require "kube._core"
local options = require "kube._options"

local M = {}

options.guard(core.selector.methods, "selector",
  { is = function(value) return getmetatable(value) == "kube.selector" end })

--- A selector of a text ("app=web,tier in (a,b),!old"), of a map of labels, of a LabelSelector as specs have
--- it ({ matchLabels =, matchExpressions = }), or of kube.null, which selects nothing. Raises with what is wrong.
---@param selector string|table
---@return kube.Selector
function M.parse(selector) return core.selector.new(selector) end

--- Whether a selector in any of these forms selects labels; nil has no labels.
---@param selector string|table|kube.Selector
---@param labels? table<string, string>
---@return boolean
function M.matches(selector, labels)
  if type(selector) ~= "userdata" or selector == core.codec.null then selector = M.parse(selector) end
  return selector:matches(labels)
end

return M
