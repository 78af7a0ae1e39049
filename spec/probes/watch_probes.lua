-- Watches: replay, initial events, bookmarks, selectors.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local secret = samples.secret

local function make(p, label, metadata)
  return p:setup("POST", p:core "secrets", secret(p:name(label), metadata)).json
end

local function version(object) return object.metadata.resourceVersion end

return {
  { name = "changes arrive as they are made", run = function(p)
    local path = p:core "secrets"
    local start = version(make(p, "z"))
    local watch = p:watch(path .. "?resourceVersion=" .. start)
    make(p, "a")
    watch:take(1)
    p:patch("merge", path .. "/" .. p:name "a", { metadata = { labels = { l = "1" } } })
    watch:take(1)
    p:delete(path .. "/" .. p:name "a")
    watch:take(1)
  end },
  { name = "history is played again from a version on", run = function(p)
    local path = p:core "secrets"
    local first = make(p, "a")
    make(p, "b")
    p:patch("merge", path .. "/" .. p:name "a", { metadata = { labels = { l = "1" } } }, { quiet = true })
    p:setup("DELETE", path .. "/" .. p:name "b")
    make(p, "b")
    local watch = p:watch(path .. "?resourceVersion=" .. version(first) .. "&timeoutSeconds=1")
    watch:take(4)
    watch:finish()
  end },
  { name = "from any version the present comes first", run = function(p)
    local path = p:core "secrets"
    make(p, "a")
    make(p, "b")
    for _, query in ipairs { "", "resourceVersion=0&" } do
      p:watch(path .. "?" .. query .. "timeoutSeconds=1"):finish()
      p:watch(path .. "?" .. query .. "allowWatchBookmarks=true"):take(3)
    end
  end },
  { name = "a streaming list", run = function(p)
    local path = p:core "secrets"
    make(p, "a")
    local second = make(p, "b")
    local base = path .. "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    for _, query in ipairs { "", "&resourceVersion=", "&resourceVersion=0", "&resourceVersion=" .. version(second) } do
      local watch = p:watch(base .. query)
      watch:take(3)
      watch:close()
    end
    local watch = p:watch(base)
    watch:take(3)
    make(p, "c")
    watch:take(1)
  end },
  { name = "a streaming list of nothing", run = function(p)
    local watch = p:watch(p:core "secrets" .. "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
      .. "&allowWatchBookmarks=true")
    watch:take(1)
  end },
  { name = "without initial events when asked so", run = function(p)
    local path = p:core "secrets"
    make(p, "a")
    local watch = p:watch(path .. "?sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0")
    make(p, "b")
    watch:take(1)
  end },
  { name = "bookmarks come before the end", run = function(p)
    local path = p:core "secrets"
    local start = version(make(p, "a"))
    local watch = p:watch(path .. "?allowWatchBookmarks=true&timeoutSeconds=4&resourceVersion=" .. start)
    -- A server has nothing to mark while nothing happens.
    make(p, "b")
    watch:finish(8)
  end },
  { name = "a timeout ends the stream properly", run = function(p)
    local start = version(make(p, "a"))
    local began = os.time()
    p:watch(p:core "secrets" .. "?timeoutSeconds=2&resourceVersion=" .. start):finish(6)
    local took = os.time() - began
    p:note("about two seconds", took >= 1 and took <= 3)
  end },
  { name = "objects enter and leave a label selector", run = function(p)
    local path, key = p:core "secrets", p:name "key"
    local start = version(make(p, "z"))
    local watch = p:watch(path .. "?labelSelector=" .. key .. "%3Don&resourceVersion=" .. start)
    make(p, "a")
    local item = path .. "/" .. p:name "a"
    local function label(value)
      p:patch("merge", item, { metadata = { labels = { [key] = value } } }, { quiet = true })
    end
    label "on"
    p:patch("merge", item, { metadata = { annotations = { note = "x" } } }, { quiet = true })
    label "off"
    p:patch("merge", item, { metadata = { annotations = { note = "y" } } }, { quiet = true })
    label "on"
    p:setup("DELETE", item)
    make(p, "b", { labels = { [key] = "on" } })
    watch:take(6)
  end },
  { name = "the same from history", run = function(p)
    local path, key = p:core "secrets", p:name "key"
    local start = version(make(p, "z"))
    make(p, "a", { labels = { [key] = "on" } })
    local item = path .. "/" .. p:name "a"
    p:patch("merge", item, { metadata = { labels = { [key] = json.null } } }, { quiet = true })
    p:setup("DELETE", item)
    make(p, "b", { labels = { [key] = "on" } })
    local watch = p:watch(path .. "?labelSelector=" .. key .. "&resourceVersion=" .. start)
    watch:take(3)
  end },
  { name = "objects enter and leave a field selector", run = function(p)
    local path = p:core "pods"
    p:poll(p:core("serviceaccounts", "default"), function(a) return a.status == 200 end, { quiet = true })
    local start = version(p:setup("POST", path, samples.pod(p:name "a")).json)
    local watch = p:watch(path .. "?fieldSelector=status.phase%3DRunning&resourceVersion=" .. start)
    local function phase(value)
      p:patch("merge", path .. "/" .. p:name "a" .. "/status", { status = { phase = value } }, { quiet = true })
    end
    phase "Running"
    phase "Succeeded"
    phase "Running"
    watch:take(3)
  end },
  { name = "one object by name", run = function(p)
    local path = p:core "secrets"
    make(p, "a")
    make(p, "b")
    local watch = p:watch(path .. "?fieldSelector=metadata.name%3D" .. p:name "a")
    watch:take(1)
    p:setup("DELETE", path .. "/" .. p:name "b")
    p:setup("DELETE", path .. "/" .. p:name "a")
    watch:take(1)
  end },
  { name = "the old prefix", run = function(p)
    local start = version(make(p, "a"))
    make(p, "b")
    local base = "/api/v1/watch/namespaces/" .. p:namespace() .. "/secrets"
    p:watch(base .. "?resourceVersion=" .. start):take(1)
    p:watch(base .. "/" .. p:name "a"):take(1)
  end },
  { name = "all namespaces", run = function(p)
    local start = version(make(p, "a"))
    local watch = p:watch("/api/v1/secrets?fieldSelector=metadata.namespace%3D" .. p:namespace()
      .. "&resourceVersion=" .. start)
    make(p, "b")
    watch:take(1)
  end },
  { name = "deletions carry the last state", run = function(p)
    local path = p:core "secrets"
    local start = version(make(p, "a", { finalizers = { "example.com/f" } }))
    local watch = p:watch(path .. "?resourceVersion=" .. start)
    p:delete(path .. "/" .. p:name "a")
    p:patch("merge", path .. "/" .. p:name "a", { metadata = { finalizers = json.null, labels = { l = "1" } } })
    watch:take(2)
  end },
}
