-- Replicas of which one leads, by the Lease "web", and writes ConfigMaps that say who wrote them.
--
--   replicas.lease(ns).holderIdentity
--   replicas.writes(ns, "writer=a")                       -- the versions of the server in which it wrote, growing
--   replicas.assert_apart(ns, "writer=a", "writer=b", 20) -- each at least so often, all of a before all of b
local cjson = require "cjson"
local cluster = require "spec.support.cluster"

local replicas = {}

function replicas.lease(ns)
  return cjson.decode(cluster.kubectl(("-n %s get lease web -o json"):format(ns))).spec
end

function replicas.writes(ns, selector)
  local list = cjson.decode(cluster.kubectl(("-n %s get configmaps -l %s -o json"):format(ns, selector)))
  local versions = {}
  for i, item in ipairs(list.items) do versions[i] = tonumber(item.metadata.resourceVersion) end
  table.sort(versions)
  return versions
end

function replicas.assert_apart(ns, old, new, least)
  local olds, news = replicas.writes(ns, old), replicas.writes(ns, new)
  assert(#olds >= least and #news >= least, ("%d of %s, %d of %s"):format(#olds, old, #news, new))
  assert(olds[#olds] < news[1], ("%s wrote at %d, %s since %d"):format(old, olds[#olds], new, news[1]))
end

return replicas
