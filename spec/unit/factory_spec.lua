-- The registry of informers.
jit.off(true, true)
local informer_rig = require "spec.support.informer_rig"
local kit = require "spec.support.cache_kit"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

describe("factory", function()
  unit.no_leaks()
  describe("of informers", function()
    local rig, server, factory

    before_each(function()
      rig = informer_rig.new()
      server = rig.server
      factory = C.mw_factory_new(rig.runtime)
    end)

    local function pump(condition) rig:pump(condition) end

    local function close()
      local done = 0
      local call, ctx = kit.callback("call", function() done = done + 1 end)
      C.mw_factory_close(factory, call, ctx)
      assert.are.equal(0, done)
      pump(function() return done > 0 end)
      rig:settle()
      assert.are.equal(1, done)
    end

    after_each(function()
      close()
      C.mw_factory_free(factory)
      rig:close()
    end)

    local function get(options)
      local err = unit.err()
      local ptr = C.mw_factory_get(factory, rig:config(options), err)
      if ptr == nil then return nil, ffi.string(C.mw_err_name(err.code)) end
      return rig:adopt(ptr)
    end

    local function each()
      local names = {}
      local visit = ffi.cast("void (*)(void *, struct mw_informer *)", function(_, inf)
        names[#names + 1] = ffi.string(C.mw_informer_name(inf))
      end)
      C.mw_factory_each(factory, visit, nil)
      visit:free()
      table.sort(names)
      return names
    end

    local function projection(drop)
      local text = unit.slice(drop)
      local p = C.mw_projection_new(nil, 0, text, 1, nil)
      assert(p ~= nil)
      return p
    end

    it("gives the same informer for the same options and another for others", function() -- row 82
      local pods = get()
      assert.are.equal(pods.ptr, get().ptr)
      assert.are.equal(pods.ptr, get { ns = "" }.ptr)
      assert.are.equal(pods.ptr, get { resync = 30 }.ptr)
      local others = { get { ns = "blue" }, get { query = "labelSelector=app%3Dweb" },
        get { resource = "apps/v1/deployments" }, get { metadata_only = true },
        get { keep_managed_fields = true }, get { variant = "t1" }, get { variant = "t2" },
        get { projection = projection("status") } }
      for i, a in ipairs(others) do
        assert.are_not.equal(pods.ptr, a.ptr)
        for j = i + 1, #others do assert.are_not.equal(a.ptr, others[j].ptr) end
      end
      assert.are.equal(others[8].ptr, get { projection = projection("status") }.ptr)
      assert.are.equal(9, #each())
    end)

    it("lets go of an informer that never ran with the last who holds it, handlers or not", function()
      local one, two = get(), get()
      local l = one:listen()
      one:unref()
      rig:settle()
      assert.are.same({ "v1/pods" }, each())
      assert.are.equal(0, l.closes)
      two:unref()
      assert.are_not.equal(two.ptr, get().ptr)
      pump(function() return l.closes == 1 and #each() == 1 end)
    end)

    it("keeps one that runs, whoever holds it", function()
      local inf = get()
      inf:start()
      local ptr = inf.ptr
      inf:unref()
      rig:settle()
      assert.are.equal(ptr, get().ptr)
    end)

    it("does not find one that was hidden, and closes it all the same", function()
      local inf = get()
      C.mw_factory_hide(factory, inf.ptr)
      assert.are_not.equal(inf.ptr, get().ptr)
      assert.are.same({ "v1/pods", "v1/pods" }, each())
    end)

    it("shares one watch and one store among its users", function() -- row 82
      server:put("a")
      local one, two = get(), get()
      one:start()
      two:start()
      local l = two:listen()
      pump(function() return l:synced() end)
      assert.are.equal(1, server.count.stream)
      one:stop()
      server:put("b")
      pump(function() return #l.log == 2 end)
      assert.are.same({ "add a@101 initial", "add b@102" }, l.log)
    end)

    it("follows adds, updates and deletes of any resource by its name", function() -- row 82
      local inf = get { resource = "v1/pods" }
      local l = inf:listen()
      inf:start()
      pump(function() return inf:synced() and server:open_watches() == 1 end)
      server:put("a")
      server:put("a")
      server:remove("a")
      pump(function() return #l.log == 3 end)
      assert.are.same({ "add a@101", "update a@101 a@102", "delete a@103" }, l.log)
      assert.are.equal("v1/pods", ffi.string(C.mw_informer_name(inf.ptr)))
    end)

    it("keeps to a namespace and to fixed parameters", function() -- row 82
      server:put("a", { ns = "blue" })
      server:put("b", { ns = "red" })
      server:put("c", { ns = "red", app = "db" })
      local blue, db = get { ns = "blue" }, get { query = "labelSelector=app%3Ddb" }
      local in_blue, in_db = blue:listen(), db:listen()
      blue:start()
      db:start()
      pump(function() return in_blue:synced() and in_db:synced() end)
      pump(function() return server:open_watches() == 2 end)
      server:put("d", { ns = "blue" })
      server:put("e", { ns = "green", app = "db" })
      pump(function() return #in_blue.log == 2 and #in_db.log == 2 end)
      assert.are.same({ "add blue/a@101 initial", "add blue/d@104" }, in_blue.log)
      assert.are.same({ "add red/c@103 initial", "add green/e@105" }, in_db.log)
    end)

    it("keeps an informer whose handles are gone, with its store warm", function()
      server:put("a")
      local inf = get()
      inf:start()
      pump(function() return inf:synced() end)
      inf:unref()
      rig:settle()
      local again = get()
      assert.is_true(again:synced())
      assert.are.same({ "a@101" }, again:store())
      assert.are.equal(1, server.count.stream)
    end)

    it("forgets one that is stopping and makes a new one beside it", function()
      server:put("a")
      local inf = get()
      local l = inf:listen { deliver = function() return 1 end }
      inf:start()
      pump(function() return #l.log == 1 end)
      inf:stop()
      local again = get()
      assert.are_not.equal(inf.ptr, again.ptr)
      assert.is_true(again:start())
      pump(function() return again:synced() end)
      assert.is_false(inf:stopped())
      l:finish()
      pump(function() return inf:stopped() end)
      assert.are.equal(again.ptr, get().ptr)
      assert.are.same({ "v1/pods" }, each())
    end)

    it("lets go of a stopped informer", function() -- row 75
      local inf = get()
      inf:start()
      inf:stop()
      inf:unref()
      pump(function() return unit.live().informer == nil end)
      assert.are.same({}, each())
    end)

    it("closes what runs, never ran or is stopping, and then refuses", function() -- row 75
      local idle, running, stopping = get(), get { ns = "blue" }, get { ns = "red" }
      local l = idle:listen()
      running:start()
      running:start()
      stopping:start()
      stopping:stop()
      close()
      assert.are.equal(1, l.closes)
      for _, inf in ipairs { idle, running, stopping } do assert.is_true(inf:stopped()) end
      local none, code = get { projection = projection("status") }
      assert.is_nil(none)
      assert.are.equal("ESTATE", code)
    end)

    it("closes at once when there is nothing", function() -- row 75
      assert.are.same({}, each())
    end)
  end)
end)
