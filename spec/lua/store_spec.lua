-- kube.store, within one revision; spec/e2e/reload_state_spec.lua has what it is for.
local outcome = require "spec.support.outcome"

describe("kube.store", function()
  it("keeps plain data, gives copies, counts and forgets", function()
    outcome.prints("", [[
      local value = { list = kube.array { 1, 2 }, deep = { text = "x" } }
      kube.store.set("a", value)
      value.deep.text = "changed"
      local got = kube.store.get("a")
      assert(got.deep.text == "x" and #got.list == 2)
      got.deep.text = "mine"
      assert(kube.store.get("a").deep.text == "x")
      assert(kube.store.incr("n") == 1 and kube.store.incr("n", 2.5) == 3.5)
      assert(kube.store.get("nobody") == nil)
      assert(table.concat(kube.store.names(), " ") == "a n")
      kube.store.set("a", nil)
      kube.store.set("soon", true, 0.01)
      kube.sleep(0.05)
      assert(kube.store.get("soon") == nil)
      assert(table.concat(kube.store.names(), " ") == "n")
    ]])
  end)

  it("is bounded, and makes room for what comes by what is over", function()
    outcome.prints("", [[
      local big = ("x"):rep(1024 * 1024)
      for i = 1, 3 do kube.store.set("big" .. i, big, i == 1 and 0.01 or nil) end
      local ok, err = pcall(kube.store.set, "big4", big .. big)
      assert(not ok and err:find("no room for 'big4'", 1, true), err)
      kube.sleep(0.05)
      kube.store.set("big4", big)
      assert(#kube.store.get("big4") == #big and kube.store.get("big1") == nil)
    ]])
  end)

  it("says what cannot be kept", function()
    for call, message in pairs {
      ['kube.store.set("f", print)'] = "the value of 'f' is not plain data",
      ["kube.store.set(1, 2)"] = "the name must be a text, not a number",
      ['kube.store.set("a\\0", 2)'] = "no control characters",
      ['kube.store.set("a", 1) kube.store.incr("a", "b")'] = "by must be a number",
      ['kube.store.set("a", "text") kube.store.incr("a")'] = "is a string, not a number",
      ['kube.store.get()'] = "the name must be a text, not a nil",
      ["kube.on_load(1)"] = "kube.on_load takes a function, not a number",
      ["kube.on_unload(print) kube.on_unload(print)"] = "kube.on_unload was called at",
      ["kube.sleep(0) kube.on_load(print)"] = "is for the load phase",
    } do
      outcome.fails((message:gsub("%p", "%%%0")), call)
    end
  end)
end)
