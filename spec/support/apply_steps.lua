-- Random writes on one object: what a client would send, given the kind and the live document.
local json = require "kube.sandbox.json"

local steps = {}

local MANAGERS = { "alpha", "beta", "gamma" }

local function overlay(random, live, fresh)
  local out = json.shallow(live)
  for name, value in pairs(fresh) do
    if json.is_object(value) and json.is_object(out[name]) then
      out[name] = overlay(random, out[name], value)
    elseif random(3) > 1 then
      out[name] = value
    end
  end
  return out
end

-- A merge patch out of a fresh configuration: parts of it, some of them null.
local function patch_of(random, fresh, depth)
  local out = json.object {}
  for name, value in pairs(fresh) do
    local pick = random(6)
    if json.is_object(value) and pick > 1 then
      out[name] = patch_of(random, value, depth + 1)
    elseif pick > 2 then
      out[name] = value
    elseif pick == 2 and depth > 1 then
      out[name] = json.null
    end
  end
  return out
end

local function shuffled(random, names)
  local out = {}
  for _, name in ipairs(names) do table.insert(out, random(#out + 1), name) end
  return out
end

-- Gives a list of objects directives: elements to delete, sometimes a replace.
local function direct(random, elements, key)
  for i, element in ipairs(elements) do
    if random(4) == 1 then
      elements[i] = json.object { [key] = element[key], ["$patch"] = "delete" }
    end
  end
  if random(8) == 1 then elements[#elements + 1] = json.object { ["$patch"] = "replace" } end
end

local function ordered(random, holder, name, key, known)
  local order, seen = json.array {}, {}
  for _, element in ipairs(holder[name] or {}) do
    if element[key] and element["$patch"] == nil then
      order[#order + 1] = json.object { [key] = element[key] }
      seen[element[key]] = true
    end
  end
  for _, value in ipairs(shuffled(random, known)) do
    if not seen[value] and random(2) == 1 then
      table.insert(order, random(#order + 1), json.object { [key] = value })
    end
  end
  if #order > 0 then holder["$setElementOrder/" .. name] = order end
end

local function direct_containers(random, spec)
  local containers = spec.containers
  if not json.is_array(containers) then return end
  for _, c in ipairs(containers) do
    if json.is_array(c.env) then
      direct(random, c.env, "name")
      if random(3) == 1 then ordered(random, c, "env", "name", { "E1", "E2", "E3" }) end
    end
    if json.is_array(c.ports) then direct(random, c.ports, "containerPort") end
  end
  if random(2) == 1 then table.remove(containers, random(#containers)) end
  direct(random, containers, "name")
  if random(2) == 1 then ordered(random, spec, "containers", "name", { "c1", "c2", "c3" }) end
end

local function strategic_of(random, fresh)
  fresh = patch_of(random, json.copy(fresh), 0)
  local m = fresh.metadata
  -- Not beside the list itself: which of the two the server takes first is chance.
  if m and not m.finalizers and random(3) == 1 then
    m["$deleteFromPrimitiveList/finalizers"] = json.array { "f.io/a" }
  end
  if m and m.labels and m.labels ~= json.null and random(6) == 1 then m.labels["$patch"] = "replace" end
  local spec = json.get(fresh, "spec", "template", "spec")
  if spec then direct_containers(random, spec) end
  local ports = json.get(fresh, "spec", "ports")
  if ports then direct(random, ports, "port") end
  return fresh
end

local METADATA = { "/metadata/labels/l1", "/metadata/labels/l2", "/metadata/labels", "/metadata/annotations/a1" }
local POINTERS = {
  ConfigMap = { "/data/k1", "/data/k2", "/data" },
  Deployment = {
    "/spec/replicas", "/spec/template/spec/containers/0/image", "/spec/template/spec/containers/1/image",
    "/spec/template/spec/containers/-1/image",
  },
  Service = { "/spec/selector/s1", "/spec/selector" },
  Gadget = { "/spec/tags/0", "/spec/tags/-", "/spec/parts/x", "/spec/parts", "/spec/row", "/spec/n", "/spec/obj/a" },
}
local MAPS = { labels = true, data = true, parts = true, selector = true }
local NUMBERS = { replicas = true, n = true }

local function value_for(random, pointer)
  local name = pointer:match("[^/]+$")
  if MAPS[name] then return json.object { z = tostring(random(3)) } end
  if NUMBERS[name] then return random(3) end
  if name == "row" then return json.array { "r1" } end
  return tostring(random(3))
end

local function json_patch_of(random, kind_name)
  local own, out = POINTERS[kind_name], json.array {}
  local function pointer() return random(3) == 1 and METADATA[random(#METADATA)] or own[random(#own)] end
  for i = 1, random(3) do
    local path = pointer()
    local op = ({ "add", "replace", "remove", "copy", "move", "test" })[random(6)]
    out[i] = json.object { op = op, path = path, value = value_for(random, path), from = pointer() }
  end
  return out
end

-- Doubles an element of a list that is merged by key: allowed, except in an apply.
local function double(random, body)
  for _, c in ipairs(json.get(body, "spec", "template", "spec", "containers") or {}) do
    for _, name in ipairs { "env", "ports" } do
      local elements = c[name]
      if json.is_array(elements) and #elements > 0 and random(3) == 1 then
        local again = json.shallow(elements[random(#elements)])
        if name == "env" then again.value = "again" else again.name = nil end
        elements[#elements + 1] = again
      end
    end
  end
  return body
end

local function named(document, kind_name, kind, name)
  document.apiVersion, document.kind = kind.api_version, kind_name
  document.metadata = document.metadata or json.object {}
  document.metadata.name = name
  return document
end

local ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"

--- The next write of kubectl, which goes from client-side to server-side apply.
function steps.migration(random, kind_name, kind, name, live)
  local body = named(kind.make(random), kind_name, kind, name)
  if live then return { op = "apply", manager = "kubectl", body = body, force = random(4) == 1 } end
  local annotated = json.with(body, "metadata", json.with(body.metadata, "annotations",
    json.object { [ANNOTATION] = json.encode(body) .. "\n" }))
  return { op = "create", manager = "kubectl-client-side-apply", body = annotated }
end

--- The next write of one of many managers.
function steps.crowd(random, kind_name, kind, name, live)
  local step = steps.next(random, kind_name, kind, name, live)
  step.manager = "m" .. random(30)
  if live then step.op, step.body, step.subresource = "merge", patch_of(random, kind.make(random), 0), nil end
  return step
end

--- The next write: { op =, manager =, force =, subresource =, body = }. `live` is nil for the first.
function steps.next(random, kind_name, kind, name, live)
  local step = { manager = MANAGERS[random(#MANAGERS)] }
  local pick = random(100)
  local fresh = kind.make(random)
  if not live then
    step.op = random(2) == 1 and "create" or "apply"
    step.body = named(step.op == "create" and double(random, fresh) or fresh, kind_name, kind, name)
  elseif pick <= 45 then
    step.op, step.force = "apply", random(2) == 1
    step.body = named(fresh, kind_name, kind, name)
  elseif pick <= 55 and kind.make_status then
    step.op, step.force, step.subresource = random(3) == 1 and "merge" or "apply", random(2) == 1, "status"
    step.body = kind.make_status(random)
    if step.op == "apply" then named(step.body, kind_name, kind, name) end
  elseif pick <= 67 then
    step.op, step.body = "update", double(random, overlay(random, json.copy(live), fresh))
    if random(8) == 1 then
      step.body.metadata = json.with(step.body.metadata, "managedFields",
        random(2) == 1 and json.array {} or json.array { json.object {} })
    end
  elseif pick <= 80 then
    step.op, step.body = "merge", patch_of(random, double(random, fresh), 0)
  elseif pick <= 90 and kind_name ~= "Gadget" then
    step.op, step.body = "strategic", strategic_of(random, fresh)
  else
    step.op, step.body = "json", json_patch_of(random, kind_name)
  end
  return step
end

return steps
