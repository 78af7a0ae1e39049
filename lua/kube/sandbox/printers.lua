-- The cells of built-in kinds in tables, as kube-apiserver fills them. Columns are data
-- (kube.sandbox.kinds); a kind without a printer shows its name and when it was made.
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

return printers
