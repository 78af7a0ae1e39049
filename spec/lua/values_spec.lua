-- What kube has for values: reading, copying, JSON, and logs, in the real binary.
local run = require "spec.support.run"

local function passes(source, options)
  local result = run.run_script('local kube = require "kube"\n' .. source, options)
  assert.are.equal(0, result.code, result.stdout .. result.stderr)
  return result
end

describe("kube", function()
  it("keeps arrays, objects, null and 64-bit integers apart in JSON", function()
    passes [[
      local text = '{"a":[],"n":null,"o":{}}'
      local value = kube.json.decode(text)
      assert(value.n == kube.null and #value.a == 0)
      assert(kube.json.encode(value.a) == "[]" and kube.json.encode(value.o) == "{}")
      assert(kube.json.encode(kube.array()) == "[]" and kube.json.encode(kube.object()) == "{}")
      assert(kube.json.encode(kube.array { "x" }) == '["x"]')
      assert(kube.json.encode(kube.null) == "null")
      local big = "9223372036854775807"
      assert(kube.json.encode(kube.int64(big)) == big)
      assert(kube.json.encode(kube.json.decode(big)) == big)
      assert(kube.int64(5) == kube.int64("5"))
      for _, bad in ipairs { 1.5, "x", {} } do assert(not pcall(kube.int64, bad)) end
      assert(not pcall(kube.json.decode, '{"a":'))
      assert(not pcall(kube.json.encode, { f = print }))
    ]]
  end)

  it("reads a path without tripping over what is not there", function()
    passes [[
      local pod = { spec = { containers = { { image = "a" }, { image = "b" } }, node = kube.null } }
      assert(kube.get(pod, "spec.containers[0].image") == "a")
      assert(kube.get(pod, "spec", "containers", 2, "image") == "b")
      assert(table.concat(kube.get(pod, "spec.containers[*].image"), ",") == "a,b")
      assert(kube.get(pod, "status.phase") == nil and kube.get(pod, "spec.node") == nil)
    ]]
  end)

  it("copies so deeply that nothing is shared", function()
    passes [[
      local original = { list = kube.array(), map = { x = { y = 1 } } }
      local copy = kube.copy(original)
      copy.map.x.y = 2
      assert(original.map.x.y == 1 and copy.map ~= original.map)
      assert(kube.json.encode(copy.list) == "[]")
      assert(kube.copy("text") == "text" and kube.copy(5) == 5)
    ]]
  end)

  it("logs at four levels, with fields in the order of their names", function()
    local result = passes([[
      kube.log.error("e", { b = 1, a = "x", c = { 1, 2 }, d = true })
      kube.log.warn("w")
      kube.log.info("i")
      kube.log.debug("d")
      log.info("without kube")
    ]], { args = { "--log-level", "debug" } })
    assert.truthy(result.stderr:find('"level":"error","msg":"e","a":"x","b":1,"c":%[1,2%],"d":true'),
      result.stderr)
    for level, text in pairs { warn = "w", info = "i", debug = "d" } do
      assert.truthy(result.stderr:find(('"level":"%s","msg":"%s"'):format(level, text), 1, true),
        result.stderr)
    end
    assert.truthy(result.stderr:find("without kube", 1, true))
  end)
end)
