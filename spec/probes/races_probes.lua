-- Many at the same time.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local function count(answers)
  local counts = {}
  for _, answer in ipairs(answers) do
    local key = tostring(answer.status)
    counts[key] = (counts[key] or 0) + 1
  end
  return json.object(counts)
end

return {
  { name = "one of twenty updates of one version wins", run = function(p)
    local path = p:core("configmaps", p:name "a")
    local object = p:setup("POST", p:core "configmaps", samples.config(p:name "a", nil, { k = "0" })).json
    local requests = {}
    for i = 1, 20 do
      object.data.k = tostring(i)
      requests[i] = { "PUT", path, json.encode(object) }
    end
    p:note("answers", count(p:parallel(requests)))
  end },
  { name = "twenty patches of different keys all count", run = function(p)
    local path = p:core("configmaps", p:name "a")
    local start = p:setup("POST", p:core "configmaps", samples.config(p:name "a")).json
    local watch = p:watch(p:core "configmaps" .. "?fieldSelector=metadata.name%3D" .. p:name "a"
      .. "&resourceVersion=" .. start.metadata.resourceVersion, { pick = function(event) return event.type end })
    local requests = {}
    for i = 1, 20 do
      requests[i] = { "PATCH", path, { data = { [("k%02d"):format(i)] = "x" } },
        { type = "application/merge-patch+json" } }
    end
    p:note("answers", count(p:parallel(requests)))
    p:get(path, { pick = function(v) return v.data end })
    local events = watch:take(20)
    local ordered = true
    for i = 2, #events do
      ordered = ordered and tonumber(events[i].object.metadata.resourceVersion)
        > tonumber(events[i - 1].object.metadata.resourceVersion)
    end
    p:note("in order", ordered)
  end },
  { name = "one of twenty creations of one name wins", run = function(p)
    local requests = {}
    for i = 1, 20 do
      requests[i] = { "POST", p:core "configmaps", samples.config(p:name "a", nil, { k = tostring(i) }) }
    end
    p:note("answers", count(p:parallel(requests)))
  end },
  { name = "two watchers see the same order", run = function(p)
    local path = p:core "secrets"
    local start = p:setup("POST", path, samples.secret(p:name "z")).json.metadata.resourceVersion
    local function pick(event) return event.type end
    local one = p:watch(path .. "?resourceVersion=" .. start, { pick = pick })
    local two = p:watch(path .. "?resourceVersion=" .. start, { pick = pick })
    local requests = {}
    for i = 1, 20 do requests[i] = { "POST", path, samples.secret(p:name("p" .. i)) } end
    p:note("answers", count(p:parallel(requests)))
    local a, b = one:take(20), two:take(20)
    local same = #a == 20
    for i = 1, #a do same = same and a[i].object.metadata.name == json.get(b[i], "object", "metadata", "name") end
    p:note("the same", same)
  end },
}
