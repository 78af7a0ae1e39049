-- Lists: order, pages and versions.
local samples = require "spec.probes.samples"

local secret = samples.secret

-- Secrets p1 to pN; the path, and what POST answered.
local function many(p, count)
  local path, made = p:core "secrets", {}
  for i = 1, count do
    made[i] = p:setup("POST", path, secret(p:name("p" .. i), { labels = { odd = tostring(i % 2) } })).json
  end
  return path, made
end

local names = samples.names

local function list(p, path) return p:get(path, { pick = names }) end

-- Reads at any version come from a cache that may be behind: waits until it has what was written.
local function catch_up(p, path)
  local unseen = { quiet = "unseen" }
  local version = p:request("GET", path .. "?limit=1", nil, unseen).json.metadata.resourceVersion
  p:request("GET", path .. "?resourceVersion=" .. version, nil, unseen)
end

local function escape(text)
  return (text:gsub("[^%w%-_%.]", function(c) return ("%%%02X"):format(c:byte()) end))
end

return {
  { name = "items are in the order of their keys", run = function(p)
    local path = p:core "secrets"
    p:get(path)
    p:setup("POST", path, secret(p:name "b"))
    p:setup("POST", path, secret(p:name "c"))
    p:setup("POST", path, secret(p:name "a"))
    p:get(path)
    p:get(path, { raw = true, quiet = true })
  end },
  { name = "lists of what does not exist are empty", run = function(p)
    p:get("/api/v1/namespaces/" .. p:name "missing" .. "/configmaps")
    p:get(p:path("/apis/apps/v1", "deployments"))
    p:get("/api/v1/replicationcontrollers")
    p:get("/apis/storage.k8s.io/v1/storageclasses")
  end },
  { name = "all namespaces", run = function(p)
    many(p, 2)
    p:get("/api/v1/secrets?labelSelector=odd%3D1&fieldSelector=metadata.namespace%3D" .. p:namespace())
  end },
  { name = "pages", run = function(p)
    local path = many(p, 6)
    local first = list(p, path .. "?limit=2")
    -- Later pages show the state of the first.
    p:setup("POST", path, secret(p:name "p35"))
    p:setup("DELETE", path .. "/" .. p:name "p5")
    local second = list(p, path .. "?limit=2&continue=" .. first.json.metadata.continue)
    list(p, path .. "?limit=2&continue=" .. second.json.metadata.continue)
    list(p, path .. "?continue=" .. first.json.metadata.continue)
    list(p, path .. "?limit=2")
    list(p, path .. "?limit=6")
    list(p, path .. "?limit=7")
  end },
  { name = "pages of a selection", run = function(p)
    local path = many(p, 6)
    local first = list(p, path .. "?limit=2&labelSelector=odd%3D1")
    list(p, path .. "?limit=2&labelSelector=odd%3D1&continue=" .. first.json.metadata.continue)
    list(p, path .. "?limit=1&fieldSelector=metadata.name%3D" .. p:name "p2")
  end },
  { name = "pages over all namespaces", run = function(p)
    many(p, 3)
    local answer = list(p, "/api/v1/secrets?limit=1&labelSelector=odd%3D1&fieldSelector=metadata.namespace%3D"
      .. p:namespace())
    p:get("/api/v1/secrets?limit=1&labelSelector=odd%3D1&fieldSelector=metadata.namespace%3D" .. p:namespace()
      .. "&continue=" .. answer.json.metadata.continue, { pick = names })
  end },
  { name = "options of pages that are refused or ignored", run = function(p)
    local path, made = many(p, 3)
    local first = list(p, path .. "?limit=1")
    local token = first.json.metadata.continue
    list(p, path .. "?limit=1&continue=" .. token .. "&resourceVersion=" .. made[1].metadata.resourceVersion)
    list(p, path .. "?limit=1&continue=" .. token .. "&resourceVersion=0")
    list(p, path .. "?limit=1&continue=" .. token .. "&resourceVersion="
      .. made[1].metadata.resourceVersion .. "&resourceVersionMatch=Exact")
    list(p, path .. "?limit=1&continue=garbage")
    list(p, path .. "?limit=1&continue=e30")
    list(p, path .. "?limit=1&continue=" .. escape("!!"))
    list(p, path .. "?limit=abc")
    list(p, path .. "?limit=1.5")
    list(p, path .. "?limit=-1")
    list(p, path .. "?limit=0")
    list(p, path .. "?limit=")
    list(p, path .. "?limit=99999999999999999999")
  end },
  { name = "versions that lists can be asked for", run = function(p)
    local path, made = many(p, 4)
    local version = made[2].metadata.resourceVersion
    p:setup("DELETE", path .. "/" .. p:name "p1")
    catch_up(p, path)
    list(p, path .. "?resourceVersion=0")
    list(p, path .. "?resourceVersion=0&limit=2")
    list(p, path .. "?resourceVersion=0&resourceVersionMatch=NotOlderThan&limit=2")
    list(p, path .. "?resourceVersion=" .. version)
    list(p, path .. "?resourceVersion=" .. version .. "&resourceVersionMatch=NotOlderThan")
    list(p, path .. "?resourceVersion=" .. version .. "&resourceVersionMatch=Exact")
    list(p, path .. "?resourceVersion=" .. version .. "&resourceVersionMatch=Exact&limit=1")
    list(p, path .. "?resourceVersion=" .. version .. "&limit=1")
    list(p, path .. "?resourceVersion=" .. version .. "&limit=10")
    list(p, path .. "?resourceVersion=" .. version .. "&labelSelector=odd%3D1&resourceVersionMatch=Exact")
  end },
  { name = "versions of lists that are refused", run = function(p)
    local path = many(p, 1)
    list(p, path .. "?resourceVersion=abc")
    list(p, path .. "?resourceVersion=-1")
    list(p, path .. "?resourceVersion=1.5")
    list(p, path .. "?resourceVersionMatch=Exact")
    list(p, path .. "?resourceVersionMatch=NotOlderThan")
    list(p, path .. "?resourceVersion=0&resourceVersionMatch=Exact")
    list(p, path .. "?resourceVersion=1&resourceVersionMatch=Bogus")
    list(p, path .. "?resourceVersionMatch=Bogus")
    list(p, path .. "?sendInitialEvents=true")
    list(p, path .. "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
    list(p, path .. "?sendInitialEvents=abc")
  end },
  { name = "a version of the future is waited for in vain", run = function(p)
    local path = many(p, 1)
    list(p, path .. "?resourceVersion=999999999")
    p:get(path .. "/" .. p:name "p1" .. "?resourceVersion=999999999")
    list(p, path .. "?resourceVersion=999999999&resourceVersionMatch=NotOlderThan")
    list(p, path .. "?resourceVersion=999999999&resourceVersionMatch=Exact")
  end },
  { name = "versions of a single object", run = function(p)
    local path, made = many(p, 1)
    local item = path .. "/" .. p:name "p1"
    p:patch("merge", item, { metadata = { labels = { new = "1" } } }, { quiet = true })
    catch_up(p, path)
    p:get(item .. "?resourceVersion=0")
    p:get(item .. "?resourceVersion=" .. made[1].metadata.resourceVersion)
    p:get(item .. "?resourceVersion=abc")
    p:get(item .. "?watch=1")
  end },
}
