-- Network policies, ingresses and endpoints.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local pod_spec = require "kube.sandbox.strategies.pod_spec"

local network = {}

local function default_ports(t)
  pod_spec.each(t, "ports", function(port) pod_spec.set(port, "protocol", "TCP") end)
end

-- A policy is about what comes in, and about what goes out if it says something about it.
local function default_policy(_, document)
  local spec = json.shallow(document.spec)
  document.spec = spec
  for _, direction in ipairs { "ingress", "egress" } do pod_spec.each(spec, direction, default_ports) end
  if not spec.policyTypes then
    spec.policyTypes = json.array { "Ingress", json.get(spec, "egress") and "Egress" or nil }
  end
  return document
end

local function default_endpoints(_, document)
  pod_spec.each(document, "subsets", default_ports)
  return document
end

local function validate_path(errors, path, at)
  if (path.pathType or "") == "" then
    errors[#errors + 1] = field.required(at .. ".pathType", "pathType must be specified")
    return
  end
  if path.pathType ~= "ImplementationSpecific" and (path.path or ""):sub(1, 1) ~= "/" then
    errors[#errors + 1] = field.invalid(at .. ".path", path.path or "", "must be an absolute path")
  end
  if not json.get(path, "backend", "service") and not json.get(path, "backend", "resource") then
    errors[#errors + 1] = field.invalid(at .. ".backend", "", "resource or service backend is required")
  end
end

local function validate_ingress(_, new, _, errors)
  local rules = json.get(new, "spec", "rules") or {}
  if not rules[1] and not json.get(new, "spec", "defaultBackend") then
    errors[#errors + 1] = field.invalid("spec", nil, "either `defaultBackend` or `rules` must be specified")
  end
  for i, rule in ipairs(rules) do
    for j, path in ipairs(json.get(rule, "http", "paths") or {}) do
      validate_path(errors, path, ("spec.rules[%d].http.paths[%d]"):format(i - 1, j - 1))
    end
  end
end

local function validate_endpoints(_, new, _, errors)
  for i, subset in ipairs(json.get(new, "subsets") or {}) do
    local at = ("subsets[%d]"):format(i - 1)
    if not json.get(subset, "addresses", 1) and not json.get(subset, "notReadyAddresses", 1) then
      errors[#errors + 1] = field.required(at, "must specify `addresses` or `notReadyAddresses`")
    end
    for j, port in ipairs(json.get(subset, "ports") or {}) do
      if port.port < 1 or port.port > 65535 then
        errors[#errors + 1] = field.invalid(("%s.ports[%d].port"):format(at, j - 1), port.port,
          "must be between 1 and 65535, inclusive")
      end
    end
  end
end

function network.of(R)
  if R.kind == "Endpoints" then return { default = default_endpoints, validate = validate_endpoints } end
  if R.kind == "Ingress" then return { validate = validate_ingress } end
  return { default = default_policy }
end

return network
