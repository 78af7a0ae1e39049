-- The defaults of pod specs, wherever they stand: in pods and in the templates of workloads.
-- Documents are copied on the way down; nothing that was given is changed.
local json = require "kube.sandbox.json"

local pod_spec = {}

local FILE_MODE = 420

local function set(t, name, value)
  if t[name] == nil or t[name] == json.null then t[name] = value end
end

-- The same for fields that are no pointers in the server's structs: there 0 and "" are nothing.
local function fill(t, name, value)
  if t[name] == 0 or t[name] == "" then t[name] = nil end
  set(t, name, value)
end

-- Replaces t[name], an array, by one of copies that `change` was called on.
local function each(t, name, change)
  local list = t[name]
  if not json.is_array(list) then return end
  local copy = json.array {}
  for i, item in ipairs(list) do
    copy[i] = json.is_object(item) and json.shallow(item) or item
    if json.is_object(item) then change(copy[i]) end
  end
  t[name] = copy
end

-- Replaces t[name], an object, by a copy that `change` was called on.
local function inside(t, name, change)
  if not json.is_object(t[name]) then return end
  t[name] = json.shallow(t[name])
  change(t[name])
end

local function field_ref(t)
  inside(t, "fieldRef", function(ref) fill(ref, "apiVersion", "v1") end)
end

local function http_get(action)
  inside(action, "httpGet", function(get)
    fill(get, "path", "/")
    fill(get, "scheme", "HTTP")
  end)
end

local function probe(p)
  fill(p, "timeoutSeconds", 1)
  fill(p, "periodSeconds", 10)
  fill(p, "successThreshold", 1)
  fill(p, "failureThreshold", 3)
  http_get(p)
  inside(p, "grpc", function(grpc) set(grpc, "service", "") end)
end

-- "Always" for what has no tag or the tag latest; a digest is a tag of its own.
local function pull_policy(image)
  local name = image:match("[^/]*$")
  if name == "" or name:find("@", 1, true) then return "IfNotPresent" end
  local tag = name:match(":(.*)$")
  return (tag == nil or tag == "latest") and "Always" or "IfNotPresent"
end

local PROBES = { "livenessProbe", "readinessProbe", "startupProbe" }

local function container(c)
  fill(c, "imagePullPolicy", pull_policy(c.image or ""))
  fill(c, "terminationMessagePath", "/dev/termination-log")
  fill(c, "terminationMessagePolicy", "File")
  set(c, "resources", json.object {})
  each(c, "ports", function(port) fill(port, "protocol", "TCP") end)
  each(c, "env", function(variable) inside(variable, "valueFrom", field_ref) end)
  for _, name in ipairs(PROBES) do inside(c, name, probe) end
  inside(c, "lifecycle", function(lifecycle)
    inside(lifecycle, "postStart", http_get)
    inside(lifecycle, "preStop", http_get)
  end)
end

local function projection(source)
  inside(source, "serviceAccountToken", function(token) set(token, "expirationSeconds", 3600) end)
  inside(source, "downwardAPI", function(api) each(api, "items", field_ref) end)
end

local function file_mode(source) set(source, "defaultMode", FILE_MODE) end

local function volume(v)
  local sources = 0
  for name in pairs(v) do
    if name ~= "name" then sources = sources + 1 end
  end
  if sources == 0 then v.emptyDir = json.object {} end
  inside(v, "secret", file_mode)
  inside(v, "configMap", file_mode)
  inside(v, "hostPath", function(path) set(path, "type", "") end)
  inside(v, "downwardAPI", function(api)
    file_mode(api)
    each(api, "items", field_ref)
  end)
  inside(v, "projected", function(p)
    file_mode(p)
    each(p, "sources", projection)
  end)
end

--- Fills in the spec of a pod or of a template; returns the filled copy.
function pod_spec.default(spec)
  spec = json.shallow(spec)
  fill(spec, "restartPolicy", "Always")
  set(spec, "terminationGracePeriodSeconds", 30)
  fill(spec, "dnsPolicy", "ClusterFirst")
  set(spec, "securityContext", json.object {})
  fill(spec, "schedulerName", "default-scheduler")
  -- Two names of one field.
  set(spec, "serviceAccountName", spec.serviceAccount)
  set(spec, "serviceAccount", spec.serviceAccountName)
  each(spec, "containers", container)
  each(spec, "initContainers", container)
  each(spec, "ephemeralContainers", container)
  each(spec, "volumes", volume)
  if spec.hostNetwork == true then
    each(spec, "containers", function(c)
      each(c, "ports", function(port) set(port, "hostPort", port.containerPort) end)
    end)
  end
  return spec
end

--- Fills in the template of a workload.
function pod_spec.template(template)
  template = json.shallow(template)
  if json.is_object(template.metadata) then template.metadata = json.shallow(template.metadata) end
  set(template, "metadata", json.object {})
  if json.is_object(template.spec) then template.spec = pod_spec.default(template.spec) end
  return template
end

pod_spec.set, pod_spec.each, pod_spec.inside = set, each, inside

return pod_spec
