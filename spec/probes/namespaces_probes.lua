-- Namespaces and their end.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local base = "/api/v1/namespaces"

local function make(p, label, metadata)
  local object = { metadata = metadata or {} }
  object.metadata.name = p:name(label)
  return p:post(base, object)
end

-- The outcome of the end without what depends on the moment it is looked at.
local function conditions(v)
  local list = json.get(v, "status", "conditions")
  if not list then return v end
  table.sort(list, function(a, b) return a.type < b.type end)
  for _, condition in ipairs(list) do
    -- How many of which kinds are told is a matter of what other controllers put there.
    if condition.message:find("has %d+ resource instances") then condition.message = "<some>" end
  end
  return json.object { phase = v.status.phase, conditions = list, finalizers = v.spec.finalizers }
end

local function gone(answer) return answer.status == 404 end

return {
  { name = "a namespace is made and changed", run = function(p)
    make(p, "a", { labels = { l = "1" } })
    local path = base .. "/" .. p:name "a"
    p:post(base, { metadata = { name = p:name "a" } })
    p:get(path)
    p:patch("merge", path, { metadata = { labels = { ["kubernetes.io/metadata.name"] = json.null } } })
    p:patch("merge", path, { metadata = { labels = { ["kubernetes.io/metadata.name"] = "other" } } })
    p:patch("merge", path, { spec = { finalizers = json.array {} } })
    p:patch("merge", path, { status = { phase = "Terminating" } })
    p:get(path .. "/status")
    p:quiet("DELETE", path)
  end },
  { name = "the first namespaces cannot go", run = function(p)
    p:delete(base .. "/default")
    p:delete(base .. "/kube-system")
    p:delete(base .. "/kube-public")
    p:get(base .. "/kube-node-lease", { pick = function(v)
      return json.object { spec = v.spec, status = v.status }
    end })
  end },
  { name = "an account and the certificate come by themselves", run = function(p)
    make(p, "a")
    local inside = base .. "/" .. p:name "a"
    p:poll(inside .. "/serviceaccounts/default", function(a) return a.status == 200 end)
    p:quiet("DELETE", inside)
  end },
  { name = "nothing is made in a namespace that ends", run = function(p)
    make(p, "a")
    local path = base .. "/" .. p:name "a"
    p:release(path .. "/configmaps/" .. p:name "c")
    p:setup("POST", path .. "/configmaps", samples.config(p:name "c", { finalizers = { "example.com/f" } }))
    local deleted = p:delete(path, nil, { pick = function(v)
      return json.object { kind = v.kind, phase = json.get(v, "status", "phase"), spec = v.spec,
        deleted = v.metadata.deletionTimestamp, grace = v.metadata.deletionGracePeriodSeconds }
    end })
    p:note("the uid stays", deleted.json.metadata.uid ~= nil)
    p:post(path .. "/configmaps", samples.config(p:name "d"))
    p:post(path .. "/configmaps?dryRun=All", samples.config(p:name "d"))
    p:patch("merge", path .. "/configmaps/" .. p:name "c", { data = { k = "v" } },
      { pick = function(v) return v.data end })
    p:post(base, { metadata = { name = p:name "a" } })
    p:delete(path, nil, { pick = function(v) return json.get(v, "status", "phase") or v end })
    p:poll(path, function(a)
      for _, c in ipairs(json.get(a.json, "status", "conditions") or {}) do
        if c.type == "NamespaceFinalizersRemaining" and c.status == "True" then return true end
      end
    end, { pick = conditions })
    p:patch("merge", path .. "/configmaps/" .. p:name "c", { metadata = { finalizers = json.null } },
      { quiet = "unseen" })
    p:poll(path, gone)
    p:get(path .. "/configmaps")
  end },
  { name = "content goes with the namespace", run = function(p)
    make(p, "a")
    local path = base .. "/" .. p:name "a"
    local first = p:setup("POST", path .. "/secrets", samples.secret(p:name "s")).json
    p:setup("POST", path .. "/services", { metadata = { name = p:name "v" }, spec = { clusterIP = "None" } })
    local watch = p:watch(path .. "/secrets?resourceVersion=" .. first.metadata.resourceVersion, { pick = function(e)
      return json.object { type = e.type, name = e.object.metadata.name }
    end })
    p:quiet("DELETE", path)
    watch:take(1, 20)
    p:poll(path, gone)
    p:get(path .. "/services")
    make(p, "a")
    p:quiet("DELETE", path)
  end },
  { name = "a watcher sees the phases", run = function(p)
    make(p, "a")
    local watch = p:watch(base .. "?fieldSelector=metadata.name%3D" .. p:name "a", { pick = function(e)
      return json.object { type = e.type, phase = json.get(e.object, "status", "phase"),
        finalizers = e.object.spec.finalizers }
    end })
    watch:take(1)
    p:quiet("DELETE", base .. "/" .. p:name "a")
    local kinds, last = {}
    -- The states in between depend on how many steps a server makes of it.
    repeat
      local events = watch:_events(1, 20)
      last = events[1]
      if last then kinds[#kinds + 1] = last.type end
    until not last or last.type == "DELETED"
    p:note("it ends with", kinds[#kinds])
    p:note("and ended as", json.get(last, "object", "status", "phase"))
  end },
  { name = "finalize", run = function(p)
    local made = make(p, "a", { finalizers = { "example.com/f" } }).json
    local path = base .. "/" .. p:name "a"
    made.spec.finalizers = { "kubernetes", "example.com/own" }
    p:put(path .. "/finalize", made)
    p:get(path)
    p:quiet("DELETE", path)
    p:patch("merge", path, { metadata = { finalizers = json.null } }, { quiet = "unseen" })
    local now = p:get(path, { quiet = "unseen" }).json
    now.spec.finalizers = { "kubernetes" }
    now.metadata.resourceVersion = nil
    p:put(path .. "/finalize", now, { quiet = "unseen" })
    p:poll(path, gone)
  end },
}
