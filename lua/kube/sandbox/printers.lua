-- The cells of built-in kinds in tables, as kube-apiserver fills them. Columns are data
-- (kube.sandbox.kinds); a kind without a printer shows its name and when it was made.
local json = require "kube.sandbox.json"
local pods = require "kube.sandbox.printers.pods"

local printers = {}

local by_kind

local function load()
  by_kind = {}
  for _, name in ipairs { "workloads", "network", "storage", "cluster" } do
    for kind, printer in pairs(require("kube.sandbox.printers." .. name)) do by_kind[kind] = printer end
  end
end

--- The function(document, now) -> cells of a resource, nil when it has no printer.
function printers.of(R)
  if not by_kind then load() end
  return by_kind[R.api_version .. "/" .. R.plural]
end

--- What a row of this resource says beside its cells, or nil.
function printers.conditions(R, document)
  if R.group == "" and R.plural == "pods" then return pods.conditions(document) end
end

local TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"

--- The metadata of a document as its row has them. The server prints its own structs, where what a
--- daemon set keeps in this annotation is a field.
function printers.metadata(R, document)
  local m = document.metadata
  if R.kind ~= "DaemonSet" or not R.builtin or not json.get(m, "annotations", TEMPLATE_GENERATION) then return m end
  local rest = json.with(m.annotations, TEMPLATE_GENERATION, nil)
  return json.with(m, "annotations", next(rest) and rest or nil)
end

return printers
