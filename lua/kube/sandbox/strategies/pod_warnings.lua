-- What the server warns about in pods and in templates of them: valid, and rarely meant.
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"
local quantity = require "kube.sandbox.quantity"

local pod_warnings = {}

local OLD_LABELS = {
  ["beta.kubernetes.io/arch"] = { "v1.14", "kubernetes.io/arch" },
  ["beta.kubernetes.io/os"] = { "v1.14", "kubernetes.io/os" },
  ["beta.kubernetes.io/instance-type"] = { "v1.17", "node.kubernetes.io/instance-type" },
  ["failure-domain.beta.kubernetes.io/region"] = { "v1.17", "topology.kubernetes.io/region" },
  ["failure-domain.beta.kubernetes.io/zone"] = { "v1.17", "topology.kubernetes.io/zone" },
}

local function warn_selector(ctx, selector, path)
  for key in pairs(selector or {}) do
    local old = OLD_LABELS[key]
    if old then ctx:warn(('%s[%s]: deprecated since %s; use "%s" instead'):format(path, key, old[1], old[2])) end
  end
end

local function warn_secrets(ctx, secrets, path)
  local seen = {}
  for i, secret in ipairs(secrets or {}) do
    local at, name = ("%s[%d].name"):format(path, i - 1), json.get(secret, "name") or ""
    if seen[name] then ctx:warn(('%s: duplicate name "%s"'):format(at, name)) end
    seen[name] = true
  end
  for i, secret in ipairs(secrets or {}) do
    if (json.get(secret, "name") or "") == "" then
      ctx:warn(('%s[%d].name: invalid empty name ""'):format(path, i - 1))
    end
  end
end

-- Calls visit(container, path) for each of them, those that come first first.
local function each_container(spec, path, visit)
  for _, list in ipairs { "initContainers", "containers", "ephemeralContainers" } do
    for i, c in ipairs(json.get(spec, list) or {}) do visit(c, ("%s.%s[%d]"):format(path, list, i - 1)) end
  end
end

local function warn_fractions(ctx, resources, path)
  for _, name in ipairs { "memory", "ephemeral-storage" } do
    for _, part in ipairs { "limits", "requests" } do
      local amount = json.get(resources, part, name)
      if amount and (quantity.number(amount) or 0) % 1 ~= 0 then
        ctx:warn(('%s.%s[%s]: fractional byte value "%s" is invalid, must be an integer'):format(path, part, name,
          quantity.canonical(amount)))
      end
    end
  end
end

-- A variable may build on an earlier one of its name.
local function warn_variables(ctx, variables, path)
  local seen = {}
  for i, variable in ipairs(variables or {}) do
    local name, value = variable.name or "", json.get(variable, "value") or ""
    local reference = "$(" .. name .. ")"
    local builds = value ~= reference and value:find(reference, 1, true) and not json.get(variable, "valueFrom")
    if seen[name] and not builds then
      ctx:warn(('%s[%d]: hides previous definition of "%s", which may be dropped when using apply'):format(path, i - 1,
        name))
    end
    seen[name] = true
  end
end

-- How two ports with one number and protocol get in each other's way, or nil.
local function overlap(a, b)
  local host, other = a.hostPort or 0, b.hostPort or 0
  if (a.hostIP or "") == (b.hostIP or "") and host == other then return "duplicate" end
  if host == 0 or other == 0 then return "overlapping" end
  if host == other and ((a.hostIP or "") == "") ~= ((b.hostIP or "") == "") then return "dangerously ambiguous" end
end

local function warn_ports(ctx, spec, path)
  local known = {}
  each_container(spec, path, function(c, at)
    for i, port in ipairs(json.get(c, "ports") or {}) do
      local here, key = ("%s.ports[%d]"):format(at, i - 1), ("%d/%s"):format(port.containerPort or 0, port.protocol)
      known[key] = known[key] or {}
      for _, other in ipairs(known[key]) do
        local how = overlap(port, other.port)
        if how then ctx:warn(("%s: %s port definition with %s"):format(here, how, other.path)) end
      end
      table.insert(known[key], { port = port, path = here })
    end
  end)
end

local function warn_port_names(ctx, spec, path)
  local known = {}
  each_container(spec, path, function(c, at)
    for i, port in ipairs(json.get(c, "ports") or {}) do
      local here, name = ("%s.ports[%d]"):format(at, i - 1), json.get(port, "name") or ""
      local other = known[name]
      if name ~= "" and other then
        ctx:warn(('%s: duplicate port name "%s" with %s, services and probes that select ports by name will use %s')
          :format(here, name, other, other))
      end
      known[name] = other or here
    end
  end)
end

--- Warns about the spec of a pod at `path`.
function pod_warnings.warn(ctx, spec, path)
  warn_selector(ctx, json.get(spec, "nodeSelector"), path .. ".nodeSelector")
  warn_secrets(ctx, json.get(spec, "imagePullSecrets"), path .. ".imagePullSecrets")
  each_container(spec, path, function(c, at)
    warn_fractions(ctx, c.resources, at .. ".resources")
    warn_variables(ctx, json.get(c, "env"), at .. ".env")
  end)
  warn_ports(ctx, spec, path)
  warn_port_names(ctx, spec, path)
  if (json.get(spec, "terminationGracePeriodSeconds") or 0) < 0 then
    ctx:warn(path .. ".terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated "
      .. "as 1")
  end
end

--- Warns about the name of a pod, or of something that names pods.
function pod_warnings.warn_name(ctx, name)
  local problem = names.label(name or "")
  if not problem then return end
  ctx:warn(("metadata.name: this is used in %s, which can result in surprising behavior; a DNS label is "
    .. "recommended: [%s]"):format(ctx.R.kind == "Pod" and "the Pod's hostname" or "Pod names and hostnames", problem))
end

return pod_warnings
