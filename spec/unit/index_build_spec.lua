-- Indexes that are added to a store which is full already: built in slices, while it changes.
local kit = require "spec.support.cache_kit"
local objects = require "spec.support.objects"
local unit = require "spec.support.unit"
local C, ffi, slice, own = unit.C, unit.ffi, objects.slice, objects.own

-- Index functions in Lua are called back from C, which compiled code may not do.
jit.off()

local AT_ONCE = tonumber(C.MW_INDEX_AT_ONCE)
local a, b = ffi.cast("void *", 1), ffi.cast("void *", 2)

local function new() return ffi.gc(C.mw_indexer_new(), C.mw_indexer_free) end
local function upsert(ix, o) own(C.mw_indexer_upsert(ix, o)) end
local function remove(ix, key) own(C.mw_indexer_remove(ix, slice(key), slice "")) end

local function on_node(name, node)
  return objects.pod("a", name, { rest = ('"spec":{"nodeName":"%s"}'):format(node) })
end

local function node_of(o)
  return unit.str(C.mw_object_json(o, objects.unpacker)):match('"nodeName":"(.-)"')
end

local function full(count)
  local ix = new()
  for i = 1, count do upsert(ix, on_node("p" .. i, "n" .. i % 10)) end
  return ix
end

-- fn(object) returns the values; what it raises is its failure.
local function add(ix, whose, name, fn)
  local cb, ctx = kit.callback("index", function(o, values, err)
    local ok, found = pcall(fn, o)
    if not ok then return C.mw_err_set(err, C.MW_ESCRIPT, "%s", tostring(found)) end
    for _, value in ipairs(found) do assert(C.mw_values_add(values, slice(value)) == 0) end
    return 0
  end)
  local spec, err = ffi.new("struct mw_index_spec[1]", { { name = slice(name).p, values = cb, ctx = ctx } }), unit.err()
  return C.mw_indexer_add_indexes(ix, whose, spec, 1, err), ffi.string(err.message)
end

local function by_index(ix, whose, name, value)
  local out = objects.list()
  assert.equal(0, C.mw_indexer_by_index(ix, whose, slice(name), slice(value), out, nil))
  return objects.keys(out)
end

local function is_built(ix, whose) return C.mw_indexer_is_built(ix, whose) end
-- One object or none.
local function build_a_little(ix) return C.mw_indexer_build(ix, C.mw_clock_now() + 1000) end
local function failures(ix)
  local out = ffi.new("struct mw_indexer_stats")
  C.mw_indexer_stats(ix, out)
  return tonumber(out.index_failures)
end

describe("indexer", function()
  unit.no_leaks()

  describe("an index that is added to a full store", function()
    after_each(function()
      kit.forget_all()
      kit.check()
    end)

    it("is built at once when the store is small", function()
      local ix = full(AT_ONCE / 2)
      assert.equal(0, (add(ix, a, "node", function(o) return { node_of(o) } end)))
      assert.is_true(is_built(ix, a))
      assert.is_true(C.mw_indexer_build(ix, 0))
    end)

    it("is built little by little when it is large, and visits each object once", function()
      local ix, calls = full(2000), 0
      assert.equal(0, (add(ix, a, "node", function(o) calls = calls + 1 return { node_of(o) } end)))
      assert.is_true(calls >= AT_ONCE and calls < AT_ONCE + 20, tostring(calls))
      assert.is_false(is_built(ix, a))
      assert.is_true(is_built(ix, b))
      assert.is_false(C.mw_indexer_build(ix, 0))
      assert.is_true(calls < AT_ONCE + 20)
      local slices = 0
      while not build_a_little(ix) do slices = slices + 1 end
      assert.is_true(slices > 100, tostring(slices))
      assert.is_true(is_built(ix, a))
      assert.equal(2000, calls)
      assert.equal(200, #by_index(ix, a, "node", "n3"))
      assert.equal(2000, calls)
    end)

    it("is whole for whoever reads it before, in every way", function()
      local ix = full(2000)
      local function fn(o) return { node_of(o) } end
      local values, keys, like = objects.values(), objects.values(), objects.list()
      assert.equal(0, (add(ix, a, "one", fn)))
      assert.equal(200, #by_index(ix, a, "one", "n3"))
      assert.equal(0, (add(ix, a, "two", fn)))
      C.mw_indexer_index_values(ix, a, slice "two", values)
      assert.equal(10, #objects.strings(values))
      assert.equal(0, (add(ix, a, "three", fn)))
      assert.equal(0, C.mw_indexer_index_keys(ix, a, slice "three", slice "n3", keys, nil))
      assert.equal(200, #objects.strings(keys))
      assert.equal(0, (add(ix, a, "four", fn)))
      assert.equal(0, C.mw_indexer_index(ix, a, slice "four", on_node("x", "n3"), like, nil))
      assert.equal(200, #objects.keys(like))
      assert.is_true(is_built(ix, a))
    end)

    it("agrees with the store however that changes meanwhile", function()
      math.randomseed(7)
      local ix, model = full(1500), {}
      for i = 1, 1500 do model["a/p" .. i] = "n" .. i % 10 end
      local sizes = {}
      for round = 1, 6 do
        local whose = ffi.cast("void *", round)
        assert.equal(0, (add(ix, whose, "node", function(o)
          local node = node_of(o)
          return node ~= "n0" and { node } or {}
        end)))
        -- Growing and shrinking by turns, far enough for the table to be made anew.
        local growing = round % 2 == 1
        while not build_a_little(ix) do
          for _ = 1, 3 do
            local name = "p" .. math.random(growing and 6000 or 1500)
            if math.random() < (growing and 0.2 or 0.8) then
              remove(ix, "a/" .. name)
              model["a/" .. name] = nil
            else
              model["a/" .. name] = "n" .. math.random(0, 9)
              upsert(ix, on_node(name, model["a/" .. name]))
            end
          end
        end
        sizes[round] = tonumber(C.mw_indexer_count(ix))
        local wanted = {}
        for key, node in pairs(model) do
          wanted[node] = wanted[node] or {}
          table.insert(wanted[node], key)
        end
        for i = 1, 9 do
          table.sort(wanted["n" .. i] or {})
          assert.are.same(wanted["n" .. i] or {}, by_index(ix, whose, "node", "n" .. i))
        end
        assert.are.same({}, by_index(ix, whose, "node", "n0"))
      end
      assert.is_true(sizes[1] > 1800, tostring(sizes[1]))
    end)

    it("takes over a replace of all objects in between", function()
      local ix = full(1000)
      assert.equal(0, (add(ix, a, "node", function(o) return { node_of(o) } end)))
      build_a_little(ix)
      local all, olds, gone = objects.list(), objects.list(), objects.list()
      for i = 501, 1500 do C.mw_object_list_add(all, on_node("p" .. i, "m" .. i % 10)) end
      C.mw_indexer_replace(ix, all, slice "9", olds, gone)
      while not build_a_little(ix) do end
      assert.are.same({}, by_index(ix, a, "node", "n3"))
      assert.equal(100, #by_index(ix, a, "node", "m3"))
    end)

    it("may be read by index functions, the half one by its own", function()
      local ix, own_sizes, other_sizes = full(1000), {}, {}
      assert.equal(0, (add(ix, a, "first", function(o)
        own_sizes[#own_sizes + 1] = #by_index(ix, a, "first", "n3")
        return { node_of(o) }
      end)))
      assert.equal(0, (add(ix, a, "second", function(o)
        other_sizes[#other_sizes + 1] = #by_index(ix, a, "first", "n3")
        return { node_of(o) }
      end)))
      assert.equal(100, other_sizes[1]) -- the first read has built it
      assert.is_true(own_sizes[1] == 0 and own_sizes[#own_sizes] >= 99)
      -- A write, in which the first is changed before the second.
      assert.is_false(is_built(ix, a))
      upsert(ix, on_node("late", "n3"))
      assert.equal(101, other_sizes[#other_sizes])
      assert.equal(101, #by_index(ix, a, "second", "n3"))
      assert.equal(1001, #own_sizes)
      remove(ix, "a/late")
      assert.equal(100, #by_index(ix, a, "second", "n3"))
      assert.equal(100, #by_index(ix, a, "first", "n3"))
    end)

    it("holds the object that is just being written once, though a read builds it meanwhile", function()
      local ix, read, calls = full(1000), false, 0
      assert.equal(0, (add(ix, a, "reader", function()
        if read then by_index(ix, a, "late", "n3") end
        return {}
      end)))
      while not C.mw_indexer_build(ix, C.mw_clock_now() + 1e9) do end
      assert.equal(0, (add(ix, a, "late", function(o)
        if objects.key(o) == "a/new" then calls = calls + 1 end
        return { node_of(o) }
      end)))
      read = true
      upsert(ix, on_node("new", "n3"))
      assert.is_true(is_built(ix, a))
      assert.equal(1, calls)
      assert.equal(101, #by_index(ix, a, "late", "n3"))
      upsert(ix, on_node("new", "n4"))
      assert.equal(100, #by_index(ix, a, "late", "n3"))
      assert.equal(101, #by_index(ix, a, "late", "n4"))
      remove(ix, "a/new")
      assert.equal(100, #by_index(ix, a, "late", "n4"))
    end)

    it("contains the failures of what is built later, and refuses a function that fails at once", function()
      C.mw_log_set_level(C.MW_LOG_ERROR)
      local ix, calls = full(1000), 0
      assert.equal(0, (add(ix, a, "node", function(o)
        calls = calls + 1
        if calls > AT_ONCE + 20 then error("boom") end
        return { node_of(o) }
      end)))
      while not build_a_little(ix) do end
      assert.equal(1000, calls)
      assert.equal(1000 - AT_ONCE - 20, failures(ix))
      local rc, message = add(ix, b, "broken", function() error("boom") end)
      assert.equal(C.MW_ESCRIPT, rc)
      assert.matches('"broken" fails on "a/p%d+": .*boom', message)
      assert.is_true(is_built(ix, b))
      C.mw_log_set_level(C.MW_LOG_INFO)
    end)

    it("is given up when its owner leaves, also from inside its function", function()
      local ix, calls, leave = full(1000), 0, false
      local function fn(o)
        calls = calls + 1
        if leave then C.mw_indexer_drop_owner(ix, a) end
        return { node_of(o) }
      end
      assert.equal(0, (add(ix, a, "node", fn)))
      C.mw_indexer_drop_owner(ix, a)
      assert.is_true(C.mw_indexer_build(ix, 0))
      assert.equal(0, (add(ix, a, "node", fn)))
      calls, leave = 0, true
      assert.is_true(C.mw_indexer_build(ix, C.mw_clock_now() + 1e12))
      assert.is_true(calls >= 1 and calls < 20, tostring(calls))
      assert.equal(0, (add(ix, b, "node", function(o) return { node_of(o) } end)))
      assert.equal(100, #by_index(ix, b, "node", "n3"))
    end)

    it("that is half built is shared as it is, and built once", function()
      local ix = full(1000)
      local function add_extract(whose)
        local spec = ffi.new("struct mw_index_spec", { name = slice("node").p, values = C.mw_index_extract,
          free_ctx = C.mw_index_extract_free, ctx = C.mw_extract_new(C.MW_EXTRACT_PATH, slice "spec.nodeName", nil),
          identity = slice "path:spec.nodeName" })
        return C.mw_indexer_add_indexes(ix, whose, spec, 1, nil)
      end
      assert.equal(0, add_extract(a))
      assert.equal(0, add_extract(b))
      assert.is_false(is_built(ix, a))
      assert.is_false(is_built(ix, b))
      C.mw_indexer_drop_owner(ix, a)
      assert.is_false(is_built(ix, b))
      assert.equal(100, #by_index(ix, b, "node", "n3"))
      assert.equal(0, add_extract(a))
      assert.is_true(is_built(ix, a))
    end)
  end)

  describe("an informer", function()
    local rig
    before_each(function() rig = require("spec.support.informer_rig").new() end)
    after_each(function()
      rig:close()
      kit.check()
    end)

    local function filled(count)
      for i = 1, count do rig.server:put("p" .. i) end
      local inf = rig:informer()
      inf:start()
      rig:pump(function() return inf:synced() and rig.server:open_watches() == 1 end)
      return inf
    end

    local function ready(inf) return C.mw_informer_indexes_ready(inf.ptr, nil) end

    it("builds an index from the loop and says when it is ready", function()
      local inf = filled(AT_ONCE * 2)
      local changes = inf.changes
      assert.is_true(inf:add_index("all", function() return { "x" } end))
      assert.is_false(ready(inf))
      assert.is_true(C.mw_informer_indexes_ready(inf.ptr, ffi.cast("void *", 1)), "another's are")
      assert.are.equal(changes, inf.changes)
      rig:pump(function() return inf.changes > changes end)
      assert.is_true(ready(inf))
      assert.are.equal(AT_ONCE * 2, #inf:by_index("all", "x"))
    end)

    it("goes on with events while a slow function is at work", function()
      local inf, slow = filled(AT_ONCE * 3), false
      local l = inf:listen { replay = false }
      assert.is_true(inf:add_index("all", function()
        -- More than a slice: each turn of the loop has time for one object.
        local over = os.clock() + (slow and 0.003 or 0)
        while os.clock() < over do end
        return { "x" }
      end))
      slow = true
      rig.server:put("late")
      rig:pump(function() return #l.log == 1 end)
      assert.matches("^add late@", l.log[1])
      assert.is_false(ready(inf))
      slow = false
      assert.are.equal(AT_ONCE * 3 + 1, #inf:by_index("all", "x"))
      assert.is_true(ready(inf))
    end)

    it("that is let go of or stopped does not go on building", function()
      local inf, calls = filled(AT_ONCE * 3), 0
      assert.is_true(inf:add_index("all", function() calls = calls + 1 return { "x" } end))
      inf:stop()
      rig:pump(function() return inf:stopped() end)
      assert.is_true(calls < AT_ONCE * 3, tostring(calls))
      assert.is_true(ready(inf))
      assert.are.equal(AT_ONCE * 3, #inf:by_index("all", "x"))
    end)
  end)
end)
