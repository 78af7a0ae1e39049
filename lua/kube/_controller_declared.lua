-- What `moonwatch check` and `moonwatch rbac` hear of a controller that a script declares.
local codec = require("kube._core").codec
local declared = require "kube._declared"
local writes = require "kube._writes"

local function list_of(given) return codec.array(codec.copy(given or {})) end

--- Tells of a controller.
---@param state table of kube._controller
---@param opts kube.ControllerOptions
return function(state, opts)
  local owns, watches = codec.array {}, codec.array {}
  for _, source in ipairs(state.sources) do
    if source.map ~= "self" then table.insert(source.map == "owner" and owns or watches, source.resource) end
  end
  declared.add("controllers", {
    name = state.name, place = state.place, resource = state.resource, owns = owns, watches = watches,
    reads = list_of(opts.reads), namespaces = opts.namespaces and list_of(opts.namespaces), workers = state.workers,
    finalizer = state.finalizer, writes = state.writes and codec.object(writes.listed(state.writes.allowed)),
  })
end
