-- All groups of probes, in the order in which they run.
local names = { "http", "discovery", "create", "update", "patch", "strategic", "apply", "delete", "list", "selectors",
  "watch", "watch_errors", "formats", "fields", "crd", "custom", "pods", "kinds", "namespaces", "gc", "access",
  "limits", "races", "ownership", "directives", "endings", "matrix", "schemas", "rules", "expiry",
  "podrules", "services", "workloads", "jobs", "network", "storage",
  "policies", "statuses", "podfields" }

local all = {}
for i, name in ipairs(names) do
  all[i] = { group = name, probes = require("spec.probes." .. name .. "_probes") }
  for _, probe in ipairs(all[i].probes) do probe.full = name .. "/" .. probe.name end
end

return all
