-- What an object of a built-in kind has before anybody wrote anything: the parts that Go always
-- writes. They stand there empty, so nobody comes to own them by leaving them so.
local always = require "kube.sandbox.always"
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"

local skeleton = {}

local function gvk_of(node) return json.get(node, "x-kubernetes-group-version-kind", 1) end

--- Whether the node describes a built-in kind.
function skeleton.is_builtin(node) return gvk_of(node) ~= nil end

--- The empty object of the kind that the node describes; a custom one has nothing at all.
function skeleton.of(node)
  local gvk = gvk_of(node)
  if not gvk then return json.object {} end
  return always.empty(kinds.definition(kinds.api_version(gvk.group, gvk.version), gvk.kind))
end

return skeleton
