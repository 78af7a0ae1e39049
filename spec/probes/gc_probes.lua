-- Garbage collection.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local config = samples.config

-- An owner and a dependent, and a watch that sees what becomes of both.
local function family(p, more)
  local path, label = p:core "configmaps", p:name "family"
  local owner = p:setup("POST", path, config(p:name "owner", { labels = { [label] = "1" } })).json
  local reference = samples.owner("ConfigMap", { apiVersion = "v1", metadata = owner.metadata }, more)
  local dependent = p:setup("POST", path, config(p:name "dependent", { labels = { [label] = "1" },
    ownerReferences = { reference } })).json
  local watch = p:watch(path .. "?labelSelector=" .. label .. "&resourceVersion="
    .. dependent.metadata.resourceVersion, { pick = function(event)
      local metadata = event.object.metadata
      return json.object { type = event.type, name = metadata.name, finalizers = metadata.finalizers,
        owners = metadata.ownerReferences and #metadata.ownerReferences }
    end })
  return path, watch
end

local function gone(answer) return answer.status == 404 end

return {
  { name = "in the background the dependents follow", run = function(p)
    local path, watch = family(p)
    p:delete(path .. "/" .. p:name "owner", { propagationPolicy = "Background" })
    watch:take(2, 20)
    p:poll(path .. "/" .. p:name "dependent", gone)
  end },
  { name = "without a policy it is the background", run = function(p)
    local path, watch = family(p)
    p:delete(path .. "/" .. p:name "owner")
    watch:take(2, 20)
  end },
  { name = "in the foreground the dependents go first", run = function(p)
    local path, watch = family(p, { blockOwnerDeletion = true })
    p:delete(path .. "/" .. p:name "owner", { propagationPolicy = "Foreground" }, { pick = function(v)
      return v.metadata.finalizers or v
    end })
    watch:take(3, 20)
    p:poll(path .. "/" .. p:name "owner", gone)
  end },
  { name = "orphans stay, without their owner", run = function(p)
    local path, watch = family(p)
    p:delete(path .. "/" .. p:name "owner", { propagationPolicy = "Orphan" }, { pick = function(v)
      return v.metadata.finalizers or v
    end })
    watch:take(3, 20)
    p:poll(path .. "/" .. p:name "owner", gone)
    p:get(path .. "/" .. p:name "dependent")
  end },
  { name = "an owner that never was takes the object along", run = function(p)
    local path = p:core "configmaps"
    p:setup("POST", path, config(p:name "a", { ownerReferences = { { apiVersion = "v1", kind = "ConfigMap",
      name = p:name "nobody", uid = "11111111-0000-0000-0000-000000000000" } } }))
    p:poll(path .. "/" .. p:name "a", gone)
  end },
  { name = "two owners must both go", run = function(p)
    local path = p:core "configmaps"
    local one = p:setup("POST", path, config(p:name "one")).json
    local two = p:setup("POST", path, config(p:name "two")).json
    p:setup("POST", path, config(p:name "a", { ownerReferences = { samples.owner("ConfigMap", one),
      samples.owner("ConfigMap", two) } }))
    p:setup("DELETE", path .. "/" .. p:name "one")
    p:poll(path .. "/" .. p:name "a", function(a)
      return #(json.get(a.json, "metadata", "ownerReferences") or {}) == 1
    end, { pick = function(v) return v.metadata.ownerReferences end })
    p:setup("DELETE", path .. "/" .. p:name "two")
    p:poll(path .. "/" .. p:name "a", gone)
  end },
  { name = "chains go to the end", run = function(p)
    local path = p:core "configmaps"
    local last
    for _, label in ipairs { "c1", "c2", "c3", "c4" } do
      local metadata = last and { ownerReferences = { { apiVersion = "v1", kind = "ConfigMap", name = last.name,
        uid = last.uid } } }
      last = p:setup("POST", path, config(p:name(label), metadata)).json.metadata
    end
    p:setup("DELETE", path .. "/" .. p:name "c1")
    p:poll(path .. "/" .. p:name "c4", gone)
    p:poll(path .. "/" .. p:name "c2", gone)
  end },
  { name = "a dependent's own finalizer holds up the foreground", run = function(p)
    local path, watch = family(p, { blockOwnerDeletion = true })
    p:patch("merge", path .. "/" .. p:name "dependent", { metadata = { finalizers = { "example.com/f" } } })
    p:delete(path .. "/" .. p:name "owner", { propagationPolicy = "Foreground" }, { quiet = true })
    watch:take(3, 20)
    p:get(path .. "/" .. p:name "owner", { pick = function(v) return v.metadata.finalizers end })
    p:patch("merge", path .. "/" .. p:name "dependent", { metadata = { finalizers = json.null } }, { quiet = true })
    watch:take(2, 20)
  end },
  { name = "custom resources own and are owned", run = function(p)
    local w = samples.widgets(p)
    local owner = p:setup("POST", w.list, w.object(p:name "owner")).json
    p:setup("POST", p:core "configmaps", config(p:name "dependent", { ownerReferences = {
      samples.owner(w.kind, owner, { controller = true }) } }))
    p:setup("DELETE", w.path(p:name "owner"))
    p:poll(p:core("configmaps", p:name "dependent"), gone)
  end },
}
