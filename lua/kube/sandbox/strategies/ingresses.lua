-- Ingresses: hosts, paths, and one place to go for each.
local field = require "kube.sandbox.field"
local ip = require "kube.sandbox.ip"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"

local ingresses = {}

local CLASS = "kubernetes.io/ingress.class"
local PATH_TYPES = { "Exact", "ImplementationSpecific", "Prefix" }
local ODD_PARTS, ODD_ENDS = { "//", "/./", "/../", "%2f", "%2F" }, { "/..", "/." }

local WILDCARD = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must "
  .. "consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. "
  .. "'*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*"
  .. "[a-z0-9])?)*')"

local function add(errors, e) errors[#errors + 1] = e end

local function check_text(errors, value, path, ...)
  for _, problem in ipairs { ... } do add(errors, field.invalid(path, value, problem)) end
end

-- ---- backends ----

local function check_reference(errors, reference, path)
  local group = json.get(reference, "apiGroup")
  if group then check_text(errors, group, path .. ".apiGroup", names.subdomain(group)) end
  for _, name in ipairs { "kind", "name" } do
    local value = json.get(reference, name) or ""
    if value == "" then
      add(errors, field.required(path .. "." .. name))
    else
      check_text(errors, value, path .. "." .. name, names.path(value))
    end
  end
end

local function check_port(errors, port, path)
  local name, number = json.get(port, "name") or "", json.get(port, "number") or 0
  if name ~= "" and number ~= 0 then
    add(errors, field.invalid(path, "", "cannot set both port name & port number"))
  elseif name ~= "" then
    check_text(errors, name, path .. ".service.port.name", names.port(name))
  elseif number == 0 then
    add(errors, field.required(path, "port name or number is required"))
  elseif number < 1 or number > 65535 then
    add(errors, field.invalid(path .. ".service.port.number", number, "must be between 1 and 65535, inclusive"))
  end
end

local function check_backend(errors, backend, path)
  local service, resource = json.get(backend, "service"), json.get(backend, "resource")
  if service and resource then
    add(errors, field.invalid(path, "", "cannot set both resource and service backends"))
  elseif resource then
    check_reference(errors, resource, path .. ".resource")
  elseif service then
    local name = service.name or ""
    if name == "" then
      add(errors, field.required(path .. ".service.name"))
    else
      check_text(errors, name, path .. ".service.name", names.label(name))
    end
    check_port(errors, json.get(service, "port"), path)
  else
    add(errors, field.invalid(path, "", "resource or service backend is required"))
  end
end

-- ---- rules ----

local function check_plain(errors, text, path)
  if text:sub(1, 1) ~= "/" then add(errors, field.invalid(path, text, "must be an absolute path")) end
  for _, odd in ipairs(ODD_PARTS) do
    if text:find(odd, 1, true) then add(errors, field.invalid(path, text, ("must not contain '%s'"):format(odd))) end
  end
  for _, odd in ipairs(ODD_ENDS) do
    if text:sub(-#odd) == odd then add(errors, field.invalid(path, text, ("cannot end with '%s'"):format(odd))) end
  end
end

local function check_path(errors, entry, at)
  local kind, text = json.get(entry, "pathType"), json.get(entry, "path") or ""
  if kind == nil or kind == "" then
    add(errors, field.required(at .. ".pathType", "pathType must be specified"))
    return
  end
  if kind == "Exact" or kind == "Prefix" then
    check_plain(errors, text, at .. ".path")
  elseif kind ~= "ImplementationSpecific" then
    add(errors, field.not_supported(at .. ".pathType", kind, PATH_TYPES))
  elseif text ~= "" and text:sub(1, 1) ~= "/" then
    add(errors, field.invalid(at .. ".path", text, "must be an absolute path"))
  end
  check_backend(errors, json.get(entry, "backend"), at .. ".backend")
end

local function check_host(errors, host, path)
  if not host:find("*", 1, true) then
    check_text(errors, host, path, names.subdomain(host))
  elseif not host:find("^%*%.") or names.subdomain(host:sub(3)) then
    add(errors, field.invalid(path, host, WILDCARD))
  end
end

local function check_rule(errors, rule, at)
  local host, http = json.get(rule, "host") or "", json.get(rule, "http")
  if host ~= "" then
    if ip.family(host) then
      add(errors, field.invalid(at .. ".host", host, "must be a DNS name, not an IP address"))
    end
    check_host(errors, host, at .. ".host")
  end
  if not http then return end
  local paths = json.get(http, "paths") or {}
  if not paths[1] then add(errors, field.required(at .. ".http.paths")) end
  for i, entry in ipairs(paths) do check_path(errors, entry, ("%s.http.paths[%d]"):format(at, i - 1)) end
end

local function check_tls(errors, tls, at)
  for i, host in ipairs(json.get(tls, "hosts") or {}) do
    check_host(errors, host, ("%s.hosts[%d]"):format(at, i - 1))
  end
  local secret = json.get(tls, "secretName") or ""
  if secret ~= "" then check_text(errors, secret, at .. ".secretName", names.subdomain(secret)) end
end

-- ---- the whole ----

local function check_status(errors, status)
  for i, entry in ipairs(json.get(status, "loadBalancer", "ingress") or {}) do
    local at = ("status.loadBalancer.ingress[%d]"):format(i - 1)
    local address, host = json.get(entry, "ip") or "", json.get(entry, "hostname") or ""
    if address ~= "" then check_text(errors, address, at .. ".ip", ip.problem(address)) end
    if host ~= "" then
      check_text(errors, host, at .. ".hostname", names.subdomain(host))
      if ip.family(host) then
        add(errors, field.invalid(at .. ".hostname", host, "must be a DNS name, not an IP address"))
      end
    end
  end
end

-- A class has two places; who creates one with both means the same by them.
local function check_class(ctx, errors, new, old)
  local note, class = json.get(new.metadata, "annotations", CLASS), json.get(new.spec, "ingressClassName")
  if class then check_text(errors, class, "spec.ingressClassName", names.subdomain(class)) end
  if old or not note then return end
  if class and class ~= note then
    add(errors, field.invalid("annotations." .. CLASS, note, "must match `ingressClassName` when both are specified"))
  elseif not class then
    ctx:warn(("annotation %q is deprecated, please use 'spec.ingressClassName' instead"):format(CLASS))
  end
end

local function validate(ctx, new, old, errors, subresource)
  if subresource == "status" then return check_status(errors, new.status) end
  local spec = new.spec or json.object {}
  local rules, backend = json.get(spec, "rules") or {}, json.get(spec, "defaultBackend")
  if not rules[1] and not backend then
    add(errors, field.invalid("spec", nil, "either `defaultBackend` or `rules` must be specified"))
  end
  if backend then check_backend(errors, backend, "spec.defaultBackend") end
  for i, rule in ipairs(rules) do check_rule(errors, rule, ("spec.rules[%d]"):format(i - 1)) end
  for i, tls in ipairs(json.get(spec, "tls") or {}) do check_tls(errors, tls, ("spec.tls[%d]"):format(i - 1)) end
  check_class(ctx, errors, new, old)
end

local DEFAULT = "ingressclass.kubernetes.io/is-default-class"

-- The class that an ingress gets which names none.
local function prepare_create(ctx, document)
  if json.get(document.spec, "ingressClassName") or json.get(document.metadata, "annotations", CLASS) then
    return document
  end
  local found
  for _, class in ipairs((ctx.S.store:scan("networking.k8s.io/ingressclasses"))) do
    local m = class.metadata
    if json.get(m, "annotations", DEFAULT) == "true"
      and (not found or m.creationTimestamp > found.creationTimestamp
        or m.creationTimestamp == found.creationTimestamp and m.name < found.name) then
      found = m
    end
  end
  if found then document.spec = json.with(document.spec, "ingressClassName", found.name) end
  return document
end

function ingresses.of() return { prepare_create = prepare_create, validate = validate } end

return ingresses
