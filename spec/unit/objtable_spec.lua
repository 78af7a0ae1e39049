local support = require "spec.support.codec"
local unit = require "spec.support.unit"
local cjson = require "cjson"
local codec, difference = support.codec, support.difference

local JSON = [[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"prod","uid":"u1",
  "resourceVersion":"7","labels":{"app":"web","tier":"front"},"finalizers":[]},
  "spec":{"nodeName":"node-1","replicas":3,"containers":[{"name":"c","image":"i:1"}],"empty":{},"none":null},
  "status":{"phase":"Running","big":9223372036854775807},"data":{},"flag":true}]]

local function pod()
  return codec.object_from_json(JSON)
end

local function same(o, expected)
  local found = difference(expected or codec.decode(JSON), o)
  assert.is_nil(found, found)
end

-- Reading is what counts.
local function touch() end

local function keys(t)
  local names = {}
  for k in pairs(t) do names[#names + 1] = k end
  table.sort(names)
  return names
end

-- What makes objects keeps a dictionary from some of them on: from before the first spec.
for _ = 1, 500 do pod() end

describe("object table", function()
  unit.no_leaks()
  local before
  before_each(function() before = unit.live().object end)

  describe("reading", function()
    it("decodes only what is read", function()
      local o = pod()
      assert.equal("node-1", o.spec.nodeName)
      assert.is_true(codec.is_lazy(o))
      assert.is_true(codec.is_lazy(o.spec))
      assert.equal("Pod", o.kind)
      assert.is_true(o.flag)
      assert.equal("i:1", o.spec.containers[1].image)
      assert.equal("web", o.metadata.labels.app)
      same(o)
    end)

    it("gives the same section and the same values each time", function()
      local o = pod()
      assert.equal(o.spec, o.spec)
      assert.equal(o.spec.containers, o.spec.containers)
    end)

    it("gives nil for what is absent and kube.null for null", function()
      local o = pod()
      assert.is_nil(o.nothing)
      assert.is_nil(o.spec.nothing)
      assert.is_nil(o.metadata.deletionTimestamp)
      assert.is_nil(o[1])
      assert.is_nil(o[true])
      assert.equal(codec.null, o.spec.none)
    end)

    it("gives deletionTimestamp when it is there", function()
      local o = codec.object_from_json(
        '{"metadata":{"name":"a","uid":"u","deletionTimestamp":"2024-01-01T00:00:00Z"}}')
      assert.equal("2024-01-01T00:00:00Z", o.metadata.deletionTimestamp)
    end)

    it("is still right after many misses, which complete the table", function()
      local o = pod()
      for i = 1, 20 do assert.is_nil(o.spec["missing" .. i]) end
      assert.is_false(codec.is_lazy(o.spec))
      assert.equal(3, o.spec.replicas)
      for i = 1, 20 do assert.is_nil(o["missing" .. i]) end
      assert.is_false(codec.is_lazy(o))
      same(o)
    end)

    it("finds members of large sections and members with escapes in their names", function()
      local members = {}
      for i = 1, 200 do members[i] = ('"k%d":"v%d"'):format(i, i) end
      members[201] = '"a\\"b":1'
      local json = '{"metadata":{"name":"cm","uid":"u"},"data":{' .. table.concat(members, ",") .. "}}"
      for _, probe in ipairs { "k1", "k64", "k65", "k200", 'a"b' } do
        local o = codec.object_from_json(json)
        assert.equal(codec.decode(json).data[probe], o.data[probe])
        same(o, codec.decode(json))
      end
    end)

    -- As much of an object is unpacked as reading takes: values of every kind have to lie across where that ends.
    it("reads values wherever the unpacked part of them ends", function()
      local shapes = { "%d", '"%d"', '["%d"]', '{"n":%d}', "-%d.5", "[]", "true", "null" }
      for shift = 1, 40 do
        local members, expected = {}, {}
        for i = 1, 200 do
          local text = shapes[(i + shift) % #shapes + 1]:format(1e14 + i)
          members[i], expected["f" .. i] = ('"f%d":%s'):format(i, text), codec.decode(text)
        end
        local o = codec.object_from_json(('{"kind":"Pod","metadata":{"name":"a","labels":{"x":"%s"}},"spec":{%s}}')
          :format(("y"):rep(shift), table.concat(members, ",")))
        for i = shift, 200, 23 do
          local found = difference(expected["f" .. i], o.spec["f" .. i])
          assert.is_nil(found, found)
        end
        assert.equal("a", o.metadata.name)
        local found = difference(expected, o.spec)
        assert.is_nil(found, found)
      end
    end)

    it("takes objects with more sections than it keeps lazy", function()
      local parts = {}
      for i = 1, 20 do parts[i] = ('"s%d":{"v":%d}'):format(i, i) end
      local json = '{"metadata":{"name":"x","uid":"u"},' .. table.concat(parts, ",") .. "}"
      local o = codec.object_from_json(json)
      for i = 20, 1, -1 do assert.equal(i, o["s" .. i].v) end
      assert.equal("x", o.metadata.name)
      same(o, codec.decode(json))
    end)

    it("keeps sections readable when their root is gone", function()
      local spec = pod().spec
      collectgarbage()
      collectgarbage()
      assert.equal("node-1", spec.nodeName)
    end)

    it("reads many objects in turns without mixing them up", function()
      local all = {}
      for i = 1, 50 do
        all[i] = codec.object_from_json(
          ('{"metadata":{"name":"o%d","uid":"u%d"},"spec":{"a":"a%d","b":"b%d"},"status":{"c":"c%d"}}')
          :format(i, i, i, i, i))
      end
      for i = 1, 50 do assert.equal("a" .. i, all[i].spec.a) end
      for i = 50, 1, -1 do
        assert.equal("c" .. i, all[i].status.c)
        assert.equal("b" .. i, all[51 - i].spec.b:gsub("%d+", i))
        assert.equal("o" .. i, all[i].metadata.name)
      end
    end)
  end)

  describe("iteration", function()
    it("completes the table for pairs", function()
      local o = pod()
      assert.are.same({ "apiVersion", "data", "flag", "kind", "metadata", "spec", "status" }, keys(o))
      assert.are.same({ "containers", "empty", "nodeName", "none", "replicas" }, keys(o.spec))
      assert.are.same({ "app", "tier" }, keys(o.metadata.labels))
      assert.are.same({}, keys(o.data))
      same(o)
    end)

    it("completes the table for next, also as an iterator", function()
      local o = pod()
      assert.is_nil(next(o.data))
      assert.is_string((next(o.spec)))
      local n = 0
      for _ in next, pod() do n = n + 1 end
      assert.equal(7, n)
    end)

    it("completes the table for table.foreach", function()
      local seen = {}
      table.foreach(pod().status, function(k) seen[#seen + 1] = k end)
      table.sort(seen)
      assert.are.same({ "big", "phase" }, seen)
      assert.equal("phase", table.foreach(pod().status, function(k) return k == "phase" and k or nil end))
    end)

    it("iterates after some fields were read", function()
      local o = pod()
      touch(o.spec.replicas, o.kind)
      assert.equal(5, #keys(o.spec))
      assert.equal(7, #keys(o))
      same(o)
    end)

    it("allows fields to be set to nil on the way, as for any table", function()
      local o = pod()
      for k in pairs(o.spec) do o.spec[k] = nil end
      assert.is_nil(next(o.spec))
    end)
  end)

  describe("writing", function()
    it("does not bring back a field that was read and set to nil", function()
      local o = pod()
      assert.equal("Running", o.status.phase)
      o.status = nil
      assert.is_nil(o.status)
      assert.are.same({ "apiVersion", "data", "flag", "kind", "metadata", "spec" }, keys(o))
      local spec = o.spec
      assert.equal(3, spec.replicas)
      spec.replicas = nil
      assert.is_nil(spec.replicas)
      assert.are.same({ "containers", "empty", "nodeName", "none" }, keys(spec))
    end)

    it("does not bring back a field that was set to nil unread", function()
      local o = pod()
      o.status = nil
      o.spec.nodeName = nil
      assert.is_nil(o.status)
      assert.is_nil(o.spec.nodeName)
      assert.equal(3, o.spec.replicas)
    end)

    it("keeps what is written over or beside what is there", function()
      local o = pod()
      o.extra = { a = 1 }
      o.spec.replicas = 9
      o.metadata.labels.new = "x"
      local expected = codec.decode(JSON)
      expected.extra = { a = 1 }
      expected.spec.replicas = 9
      expected.metadata.labels.new = "x"
      same(o, expected)
    end)

    it("takes rawset and rawget as any table does", function()
      local o = pod()
      assert.equal("Pod", rawget(o, "kind"))
      assert.equal("node-1", rawget(o.spec, "nodeName"))
      assert.is_nil(rawget(o, "nothing"))
      assert.equal(o, rawset(o, "kind", "Other"))
      assert.equal("Other", o.kind)
      assert.equal("web", o.metadata.name)
    end)

    it("completes the table before its metatable is seen or changed", function()
      local o = pod()
      assert.equal(getmetatable(codec.object()), getmetatable(o))
      assert.is_false(codec.is_lazy(o))
      local spec = setmetatable(o.spec, { __index = function(_, k) return "default " .. k end })
      assert.equal("node-1", spec.nodeName)
      assert.equal("default x", spec.x)
    end)

    it("gives a copy that can be changed and leaves the cached object alone", function()
      local o = pod()
      local copy = codec.copy(o)
      same(copy)
      assert.is_false(codec.is_cached(copy))
      copy.spec.containers[1].image = "i:2"
      copy.status = nil
      same(o)
      local spec = codec.copy(o.spec)
      assert.is_nil(difference(codec.decode(JSON).spec, spec))
      spec.replicas = 1
      assert.equal(3, o.spec.replicas)
    end)

    it("copies what the server sent, whatever became of the table", function()
      local o = pod()
      o.spec.replicas = 100
      assert.equal(3, codec.copy(o).spec.replicas)
    end)
  end)

  describe("encoding", function()
    it("writes what it read, untouched, touched and completed", function()
      local o = pod()
      same(codec.decode(codec.encode(o)))
      touch(o.spec.nodeName)
      same(codec.decode(codec.encode(o)))
      keys(o)
      same(codec.decode(codec.encode(o)))
      same(codec.decode(codec.encode(pod().spec)), codec.decode(JSON).spec)
    end)

    it("writes objects inside of other tables", function()
      local list = codec.decode(codec.encode { items = { pod(), pod() }, spec = pod().spec })
      same(list.items[1])
      same(list.items[2])
      same(list.spec, codec.decode(JSON).spec)
    end)

    it("writes changes", function()
      local o = pod()
      o.spec.replicas = 4
      assert.equal(4, codec.decode(codec.encode(o)).spec.replicas)
    end)

    it("is complete for cjson.encode, at the top and inside", function()
      local json = '{"metadata":{"name":"x","uid":"u"},"spec":{"a":[1,2],"b":{"c":"d"}}}'
      local o = codec.object_from_json(json)
      assert.are.same(cjson.decode(json), cjson.decode(cjson.encode(o)))
      local shared = { codec.object_from_json(json) }
      shared.self = nil
      local inside = cjson.decode(cjson.encode { items = shared, again = shared })
      assert.are.same(cjson.decode(json), inside.items[1])
      assert.are.same(cjson.decode(json), inside.again[1])
      local loop = {}
      loop.loop = loop
      assert.is_false(pcall(cjson.encode, loop))
    end)
  end)

  describe("reading by path", function()
    it("makes no table for a cached object that was not read", function()
      local o = pod()
      assert.equal("node-1", codec.get(o, "spec.nodeName"))
      assert.equal("i:1", codec.get(o, "spec", "containers", 1, "image"))
      assert.are.same({ "i:1" }, codec.get(o, "spec.containers[*].image"))
      assert.is_nil(codec.get(o, "spec.none"))
      assert.is_nil(codec.get(o, "spec", "none"))
      assert.is_nil(codec.get(o, "spec.nothing.at.all"))
      assert.is_nil(codec.get(o, "spec", "containers", 2, "image"))
      assert.is_nil(codec.get(o, "spec", "nodeName", "x"))
      assert.equal("prod/web", codec.object_key(o))
      local n = 0
      debug.setmetatable(o, nil)
      for _ in pairs(o) do n = n + 1 end
      assert.equal(1, n) -- the hidden key alone
    end)

    it("reads the same from one that was read, completed or copied", function()
      for _, prepare in ipairs { function(o) touch(o.spec) end, keys, function(o) return codec.copy(o) end } do
        local o = pod()
        o = prepare(o) and codec.copy(o) or o
        assert.equal("node-1", codec.get(o, "spec.nodeName"))
        assert.equal("i:1", codec.get(o, "spec", "containers", 1, "image"))
        assert.are.same({ "i:1" }, codec.get(o, "spec.containers[*].image"))
        assert.is_nil(codec.get(o, "spec.none"))
        assert.equal("prod/web", codec.object_key(o))
      end
    end)

    it("sees what a script changed", function()
      local o = pod()
      o.spec.nodeName = "other"
      assert.equal("other", codec.get(o, "spec.nodeName"))
    end)

    it("makes keys of any table with a name, and refuses others", function() -- row 46
      assert.equal("a/b", codec.object_key { metadata = { namespace = "a", name = "b" } })
      assert.equal("b", codec.object_key { metadata = { name = "b" } })
      assert.equal("b", codec.object_key { metadata = { name = "b", namespace = "" } })
      assert.is_false(pcall(codec.object_key, {}))
      assert.is_false(pcall(codec.object_key, { metadata = {} }))
      assert.is_false(pcall(codec.object_key, "a/b"))
    end)
  end)

  describe("identity", function()
    it("is one table per object, as long as somebody holds it", function()
      local o = pod()
      assert.equal(o, codec.push_again(o))
      keys(o)
      assert.equal(o, codec.push_again(o))
      assert.are_not.equal(o, pod())
    end)

    it("is known for roots, lazy or completed, and for nothing else", function()
      local o = pod()
      assert.is_true(codec.is_cached(o))
      keys(o)
      assert.is_true(codec.is_cached(o))
      for _, other in ipairs { o.spec, o.metadata, {}, codec.copy(o), "x", 1, codec.null } do
        assert.is_false(codec.is_cached(other))
      end
    end)

    it("lets go of objects that nobody holds any more", function()
      local held = {} -- luacheck: ignore
      for i = 1, 100 do
        local o = pod()
        if i % 2 == 0 then keys(o) end
        held[i] = i % 3 == 0 and o.spec or o
      end
      collectgarbage()
      collectgarbage()
      assert.equal((before or 0) + 100, unit.live().object)
      held = nil -- luacheck: ignore
      collectgarbage()
      collectgarbage()
      assert.equal(before, unit.live().object)
    end)

    it("lets go of those between others that are held, and gives their places to new ones", function()
      local held, size = {}, nil
      for round = 1, 5 do
        for i = 1, 2000 do
          local o = pod()
          if i % 100 == 0 then held[i] = o end
        end
        collectgarbage()
        collectgarbage()
        assert.equal((before or 0) + 20, unit.live().object)
        size = size or collectgarbage "count"
        assert.is_true(collectgarbage "count" < size + 64, "it grows in round " .. round)
      end
      for _, o in pairs(held) do assert.equal("node-1", o.spec.nodeName) end
    end)

    it("keeps a section's object as long as the section, also when its root was completed", function()
      local section
      do
        local o = pod()
        section = o.spec
        keys(o)
      end
      for _ = 1, 3 do collectgarbage() end
      for _ = 1, 200 do pod() end
      assert.equal((before or 0) + 201, unit.live().object)
      assert.equal("node-1", section.nodeName)
      assert.are.same({ "containers", "empty", "nodeName", "none", "replicas" }, keys(section))
    end)

    it("makes a table again for an object whose first one went a moment ago", function()
      jit.off() -- a trace would hold the function
      local get = codec.hold(pod())
      for steps = 1, 200 do
        get()
        collectgarbage("step", 0)
        local seen = setmetatable({ get() }, { __mode = "v" })
        touch(seen[1].status.phase)
        while seen[1] do collectgarbage("step", 0) end -- the cycle is not over yet
        local again = get()
        assert.equal("node-1", again.spec.nodeName)
        assert.equal(again, get())
        for _ = 1, steps do collectgarbage("step", 0) end
        assert.equal(again, get())
        same(again)
      end
      jit.on()
      assert.equal((before or 0) + 1, unit.live().object)
    end)

    it("holds nothing for a table that there was no memory for", function()
      local getters, n = {}, 0
      local enough
      jit.off()
      repeat
        for i = 1, 100 do getters[i] = codec.hold(pod()) end
        collectgarbage()
        enough = codec.starve(n, function() for i = 1, 100 do getters[i]() end end)
        for i = 1, 100 do same(getters[i]()) end
        n = n + (n < 8 and 1 or 37)
      until enough
      jit.on()
      assert.is_true(n > 200)
    end)

    it("notices the end of cycles again after one that ended without memory", function()
      jit.off()
      assert.is_false(codec.starve(0, collectgarbage))
      jit.on()
      for _ = 1, 200 do pod() end
      collectgarbage()
      collectgarbage()
      assert.equal(before, unit.live().object)
    end)

    it("stays right while the collector runs at every chance", function()
      collectgarbage("setpause", 1)
      collectgarbage("setstepmul", 10000)
      local random = support.random(99)
      for n = 1, 25 do
        local json = support.object(random, n)
        local o = codec.object_from_json(json)
        touch(o.metadata.name, o.spec, o.status)
        same(o, codec.decode(json))
      end
      collectgarbage("setpause", 200)
      collectgarbage("setstepmul", 200)
    end)
  end)

  it("is whole again after running out of memory at any point", function()
    local work = {
      function(o) return o.spec.containers end,
      function(o) pairs(o) pairs(o.spec) end,
      function(o) o.status.new = 1 o.status.new = nil end,
      function(o) return codec.encode { o } end,
      codec.copy,
    }
    jit.off()
    for _, f in ipairs(work) do
      local n, enough = 0, false
      while not enough do
        local o = pod()
        enough = codec.starve(n, function() f(o) end)
        same(o)
        same(codec.decode(codec.encode(o)))
        n = n + 1
      end
      assert.is_true(n > 2)
    end
    jit.on()
  end)

  it("equals an eager decode after random partial reads, 2000 times", function()
    local random = support.random(424242)
    local function read(t)
      for _ = 1, random(0, 6) do
        local name = ({ "metadata", "thing", "spec", "status", "data", "extra", "roleRef", "none" })[random(8)]
        local section = t[name]
        if type(section) == "table" then
          for _ = 1, random(0, 4) do
            touch(section["f" .. random(0, 100)], section.name)
          end
          if random(6) == 1 then pairs(section) end
        end
        if random(12) == 1 then pairs(t) end
      end
    end
    local previous
    for n = 1, 2000 do
      local json = support.object(random, n)
      local o = codec.object_from_json(json)
      read(o)
      if previous then read(previous) end
      previous = o
      local expected = codec.decode(json)
      local encoded = random(2) == 1 and codec.decode(codec.encode(o)) or expected
      local found = difference(expected, o) or difference(expected, encoded)
      assert.is_nil(found, ("object %d: %s\n%s"):format(n, tostring(found), json))
    end
  end)

  describe("the builtins", function()
    it("work as before on all other values", function()
      local t = { 1, 2, a = 3 }
      assert.equal(3, #keys { a = 1, b = 2, c = 3 })
      assert.equal(1, rawget(t, 1))
      assert.equal(t, rawset(t, "b", 4))
      assert.equal(4, t.b)
      assert.is_nil(getmetatable(t))
      assert.is_nil(getmetatable(nil))
      assert.equal("table", type(getmetatable "string"))
      local locked = setmetatable({}, { __metatable = "locked" })
      assert.equal("locked", getmetatable(locked))
      assert.is_false(pcall(setmetatable, locked, {}))
      assert.is_nil(getmetatable(setmetatable(setmetatable({}, {}), nil)))
      assert.is_nil(next {})
      assert.equal(1, (next { 5 }))
    end)

    it("name themselves and what they expect in errors", function()
      local function message(text)
        local _, err = pcall(loadstring(text))
        return err
      end
      assert.truthy(message("for k in pairs(nil) do end")
        :find("bad argument #1 to 'pairs' (table expected, got nil)", 1, true))
      assert.truthy(message("next()"):find("bad argument #1 to 'next'", 1, true))
      assert.truthy(message("rawset({}, nil, 1)"):find("index is nil", 1, true))
      assert.truthy(message("setmetatable({}, 1)"):find("nil or table expected", 1, true))
      assert.truthy(message("getmetatable()"):find("bad argument #1 to 'getmetatable'", 1, true))
    end)
  end)

  describe("the mutation detector", function()
    before_each(function() codec.mutation_detector(true) end)
    after_each(function()
      codec.mutation_detector(false)
      codec.mutations()
      codec.mutations()
    end)

    local function mutations()
      local list = {}
      for i, finding in ipairs(codec.mutations()) do list[i] = finding.key .. ": " .. finding.path end
      return list
    end

    it("finds nothing when objects are only read", function()
      local o = pod()
      touch(o.spec.nodeName, keys(o.metadata))
      assert.are.same({}, mutations())
    end)

    it("names the object and the place of each change", function() -- row 78
      local o = pod()
      o.spec.containers[1].image = "i:2"
      o.spec.replicas = nil
      o.metadata.labels.new = "x"
      o.metadata.finalizers[1] = "f"
      o.status.big = codec.int64 "9223372036854775806"
      o.data = "gone"
      local found = mutations()
      table.sort(found)
      assert.are.same({
        "prod/web: data",
        "prod/web: metadata.finalizers[1]",
        "prod/web: metadata.labels.new",
        "prod/web: spec.containers[1].image",
        "prod/web: spec.replicas",
        "prod/web: status.big",
      }, found)
    end)

    it("reports a table once, and keeps an eye on clean ones as long as they live", function()
      local o = pod()
      assert.are.same({}, mutations())
      o.kind = "Other"
      assert.are.same({ "prod/web: kind" }, mutations())
      assert.are.same({}, mutations())
    end)

    it("finds a change in an object that nobody holds any more", function()
      pod().spec.replicas = 5
      collectgarbage()
      collectgarbage()
      assert.are.same({ "prod/web: spec.replicas" }, mutations())
    end)
  end)
end)
