-- Sizes.
local samples = require "spec.probes.samples"

return {
  { name = "bodies have a limit", run = function(p)
    local path = p:core "configmaps"
    p:post(path, samples.config(p:name "a", nil, { k = ("x"):rep(4 * 1024 * 1024) }))
    p:patch("merge", path .. "/" .. p:name "a", { data = { k = ("x"):rep(4 * 1024 * 1024) } })
  end },
  { name = "config maps and secrets have a limit", run = function(p)
    p:post(p:core "configmaps", samples.config(p:name "a", nil, { k = ("x"):rep(1200 * 1024) }))
    p:post(p:core "secrets", samples.secret(p:name "a", nil, { k = ("x"):rep(1200 * 1024) }))
  end },
  { name = "annotations have a limit", run = function(p)
    p:post(p:core "configmaps", samples.config(p:name "a", { annotations = { k = ("x"):rep(300 * 1024) } }))
    p:setup("POST", p:core "configmaps", samples.config(p:name "b"))
    p:patch("merge", p:core("configmaps", p:name "b"), { metadata = { annotations = { k = ("x"):rep(300 * 1024) } } })
  end },
  { name = "JSON patches have a limit", run = function(p)
    p:setup("POST", p:core "configmaps", samples.config(p:name "a"))
    local operations = {}
    for i = 1, 10001 do operations[i] = '{"op":"test","path":"/kind","value":"ConfigMap"}' end
    p:patch("json", p:core("configmaps", p:name "a"), "[" .. table.concat(operations, ",") .. "]")
  end },
}
