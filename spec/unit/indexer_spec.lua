local unit = require "spec.support.unit"
local objects = require "spec.support.objects"
local C, ffi, str, slice, own = unit.C, unit.ffi, unit.str, objects.slice, objects.own

-- Index functions in Lua are called back from C, which compiled code may not do.
jit.off()

local function new() return ffi.gc(C.mw_indexer_new(), C.mw_indexer_free) end

local function upsert(ix, o) return own(C.mw_indexer_upsert(ix, o)) end
local function remove(ix, key, rv) return own(C.mw_indexer_remove(ix, slice(key), slice(rv or ""))) end
local function rv(ix) return str(C.mw_indexer_rv(ix)) end
local function count(ix) return tonumber(C.mw_indexer_count(ix)) end

local function list(ix, ns, selector)
  local out, s = objects.list(), nil
  if selector then s = ffi.gc(C.mw_selector_parse(slice(selector), nil), C.mw_selector_free) end
  C.mw_indexer_list(ix, slice(ns or ""), s, objects.unpacker, out)
  return objects.keys(out)
end

-- Owners are told apart by address alone; without one it is the nil owner's index.
local function owner(n) return ffi.cast("void *", n) end

local function by_index(ix, index, value, whose)
  local out, err = objects.list(), unit.err()
  local rc = C.mw_indexer_by_index(ix, whose, slice(index), slice(value), out, err)
  if rc < 0 then return nil, ffi.string(err.message), rc end
  return objects.keys(out)
end

local function index_values(ix, index, whose)
  local out = objects.values()
  C.mw_indexer_index_values(ix, whose, slice(index), out)
  local values = objects.strings(out)
  table.sort(values)
  return values
end

local function stats(ix)
  local out = ffi.new("struct mw_indexer_stats")
  C.mw_indexer_stats(ix, out)
  return out
end

local function object_list(all)
  local l = objects.list()
  for _, o in ipairs(all) do C.mw_object_list_add(l, o) end
  return l
end

-- Replaces the store; returns olds (rv or false per item) and the sorted keys of what is gone.
local function replace(ix, all, version)
  local olds, gone = objects.list(), objects.list()
  C.mw_indexer_replace(ix, object_list(all), slice(version or ""), olds, gone)
  local old_rvs = {}
  assert.equal(#all, tonumber(olds.n))
  for i = 1, #all do
    old_rvs[i] = olds.v[i - 1] ~= nil and str(C.mw_object_rv(olds.v[i - 1]))
  end
  return old_rvs, objects.keys(gone)
end

-- Adds indexes given as { name = function(object) -> list of values }; Lua's errors are failures.
local function add_indexes(ix, functions, whose)
  local names, callbacks = {}, {}
  for name in pairs(functions) do names[#names + 1] = name end
  local specs = ffi.new("struct mw_index_spec[?]", #names)
  for i, name in ipairs(names) do
    callbacks[i] = ffi.cast("mw_index_cb", function(_, o, out, err)
      local ok, found = pcall(functions[name], o)
      if not ok then return C.mw_err_set(err, C.MW_ESCRIPT, "%s", tostring(found)) end
      for _, value in ipairs(found) do
        if C.mw_values_add(out, slice(value)) < 0 then return C.MW_ELIMIT end
      end
      return 0
    end)
    specs[i - 1].name = slice(name).p
    specs[i - 1].values = callbacks[i]
  end
  local err = unit.err()
  local rc = C.mw_indexer_add_indexes(ix, whose, specs, #names, err)
  local free = function() for _, cb in ipairs(callbacks) do cb:free() end end
  return rc, ffi.string(err.message), free
end

local function add_extract(ix, name, kind, argument, whose, identity)
  local spec, err = ffi.new("struct mw_index_spec"), unit.err()
  if identity then spec.identity = slice(identity) end
  spec.name, spec.values, spec.free_ctx = slice(name).p, C.mw_index_extract, C.mw_index_extract_free
  spec.ctx = C.mw_extract_new(kind, slice(argument), err)
  assert(spec.ctx ~= nil, ffi.string(err.message))
  return C.mw_indexer_add_indexes(ix, whose, spec, 1, err), ffi.string(err.message)
end

local function index_names(ix, whose)
  local out = objects.values()
  -- mw_values_push has the shape of the callback.
  C.mw_indexer_each_index(ix, whose, ffi.cast("void (*)(void *, struct mw_slice)", C.mw_values_push), out)
  return objects.strings(out)
end

local function on_node(ns, name, node, version)
  return objects.pod(ns, name, { rv = version, rest = ('"spec":{"nodeName":"%s"}'):format(node) })
end

-- What fn writes to stderr.
local captured = require "spec.support.captured"

describe("indexer", function()
  unit.no_leaks()

  it("upserts, gets and removes by key", function()
    local ix = new()
    local one, two = objects.pod("a", "x", { rv = "1" }), objects.pod("a", "x", { rv = "2" })
    assert.is_nil(upsert(ix, one))
    assert.equal(one, C.mw_indexer_get(ix, slice "a/x"))
    assert.equal(one, upsert(ix, two))
    assert.equal(two, C.mw_indexer_get(ix, slice "a/x"))
    assert.equal(1, count(ix))
    assert.is_true(C.mw_indexer_get(ix, slice "x") == nil)
    assert.equal(two, remove(ix, "a/x"))
    assert.is_nil(remove(ix, "a/x"))
    assert.equal(0, count(ix))
  end)

  it("looks up raw keys: the name alone finds cluster-scoped objects only", function() -- row 83
    local ix = new()
    upsert(ix, objects.pod("", "node"))
    upsert(ix, objects.pod("ns", "pod"))
    assert.is_true(C.mw_indexer_get(ix, slice "node") ~= nil)
    assert.is_true(C.mw_indexer_get(ix, slice "ns/pod") ~= nil)
    assert.is_true(C.mw_indexer_get(ix, slice "pod") == nil)
    assert.is_true(C.mw_indexer_get(ix, slice "/node") == nil)
    assert.is_true(C.mw_indexer_get(ix, slice "") == nil)
  end)

  it("remembers the version of the latest thing applied, without comparing", function() -- row 59
    local ix = new()
    assert.equal("", rv(ix))
    upsert(ix, objects.pod("a", "x", { rv = "10" }))
    assert.equal("10", rv(ix))
    upsert(ix, objects.pod("a", "x", { rv = "9" }))
    assert.equal("9", rv(ix))
    upsert(ix, objects.pod("a", "y"))
    assert.equal("9", rv(ix))
    remove(ix, "a/x", "")
    assert.equal("9", rv(ix))
    remove(ix, "a/unknown", "12")
    assert.equal("12", rv(ix))
    replace(ix, { objects.pod("a", "z", { rv = "5" }) }, "20")
    assert.equal("20", rv(ix))
    C.mw_indexer_set_rv(ix, slice "30")
    assert.equal("30", rv(ix))
    C.mw_indexer_set_rv(ix, slice(("1"):rep(129)))
    assert.equal("30", rv(ix))
  end)

  it("counts objects and their bytes", function()
    local ix = new()
    local a, b = objects.pod("a", "x"), objects.pod("a", "y", { labels = { k = "v" } })
    upsert(ix, a)
    upsert(ix, b)
    assert.equal(2, tonumber(stats(ix).objects))
    assert.equal(C.mw_object_memory(a) + C.mw_object_memory(b), stats(ix).object_bytes)
    remove(ix, "a/y")
    assert.equal(C.mw_object_memory(a), stats(ix).object_bytes)
    remove(ix, "a/x")
    assert.equal(0, tonumber(stats(ix).object_bytes))
  end)

  describe("list", function()
    local function filled()
      local ix = new()
      upsert(ix, objects.pod("a", "1", { labels = { app = "web" } }))
      upsert(ix, objects.pod("a", "2", { labels = { app = "db" } }))
      upsert(ix, objects.pod("b", "1", { labels = { app = "web" } }))
      upsert(ix, objects.pod("", "cluster"))
      return ix
    end

    it("gives everything, a namespace, or what a selector matches", function() -- row 81
      local ix = filled()
      assert.are.same({ "a/1", "a/2", "b/1", "cluster" }, list(ix))
      assert.are.same({ "a/1", "a/2" }, list(ix, "a"))
      assert.are.same({}, list(ix, "c"))
      assert.are.same({ "a/1", "b/1" }, list(ix, "", "app=web"))
      assert.are.same({ "b/1" }, list(ix, "b", "app=web"))
      assert.are.same({}, list(ix, "b", "app=db"))
      assert.are.same({ "cluster" }, list(ix, "", "!app"))
      assert.are.same({ "a/1", "a/2" }, list(ix, "a", ""))
    end)

    it("with a selector that selects nothing is empty", function() -- row 81
      local out, nothing = objects.list(), ffi.gc(C.mw_selector_nothing(), C.mw_selector_free)
      C.mw_indexer_list(filled(), slice "", nothing, objects.unpacker, out)
      assert.equal(0, tonumber(out.n))
    end)

    it("reads no labels when everything is asked for", function()
      local out, all = objects.list(), ffi.gc(C.mw_selector_new(), C.mw_selector_free)
      C.mw_indexer_list(filled(), slice "", all, nil, out)
      assert.equal(4, tonumber(out.n))
    end)

    it("works on an empty store", function()
      assert.are.same({}, list(new()))
    end)

    it("outlives the store", function()
      local out, ix = objects.list(), C.mw_indexer_new()
      upsert(ix, objects.pod("a", "1"))
      C.mw_indexer_list(ix, slice "", nil, nil, out)
      C.mw_indexer_free(ix)
      assert.are.same({ "a/1" }, objects.keys(out))
    end)
  end)

  describe("replace", function()
    it("makes the store exactly the list and says what was there before", function()
      local ix = new()
      for _, name in ipairs { "1", "2", "3" } do upsert(ix, objects.pod("a", name, { rv = name })) end
      local olds, gone = replace(ix, { objects.pod("a", "2", { rv = "20" }), objects.pod("b", "9", { rv = "21" }) })
      assert.are.same({ "2", false }, olds)
      assert.are.same({ "a/1", "a/3" }, gone)
      assert.are.same({ "a/2", "b/9" }, list(ix))
      assert.are.same({ "a", "b" }, index_values(ix, "namespace"))
      assert.are.same({ "a/2" }, list(ix, "a"))
    end)

    it("lets the last of equal keys win; its old is the earlier one", function()
      local ix = new()
      upsert(ix, objects.pod("a", "1", { rv = "1" }))
      local olds, gone = replace(ix, { objects.pod("a", "1", { rv = "2" }), objects.pod("a", "1", { rv = "3" }) })
      assert.are.same({ "1", "2" }, olds)
      assert.are.same({}, gone)
      assert.equal("3", str(C.mw_object_rv(C.mw_indexer_get(ix, slice "a/1"))))
      olds = replace(new(), { objects.pod("a", "1", { rv = "2" }), objects.pod("a", "1", { rv = "3" }) })
      assert.are.same({ false, "2" }, olds)
    end)

    it("finds what is gone although the list has duplicates", function()
      local ix = new()
      for _, name in ipairs { "1", "2" } do upsert(ix, objects.pod("a", name)) end
      local one = objects.pod("a", "1")
      local _, gone = replace(ix, { one, one, one })
      assert.are.same({ "a/2" }, gone)
    end)

    it("with nothing empties the store", function()
      local ix = new()
      upsert(ix, objects.pod("a", "1"))
      local olds, gone = replace(ix, {}, "7")
      assert.are.same({}, olds)
      assert.are.same({ "a/1" }, gone)
      assert.equal(0, count(ix))
      assert.are.same({}, index_values(ix, "namespace"))
      assert.equal("7", rv(ix))
    end)

    it("with the very objects that are stored keeps them and hands them back as the old ones", function()
      local ix = new()
      local o = objects.pod("a", "1", { rv = "1" })
      upsert(ix, o)
      local olds, gone = replace(ix, { o }, "2")
      assert.are.same({ "1" }, olds)
      assert.are.same({}, gone)
      assert.equal(o, C.mw_indexer_get(ix, slice "a/1"))
    end)

    it("does not hold the old objects any longer than the caller does", function()
      local ix, before = new(), tonumber(C.mw_live_get(C.MW_LIVE_OBJECT))
      for round = 1, 3 do
        local all = {}
        for i = 1, 200 do all[i] = objects.pod("a", "p" .. i + round * 100) end
        replace(ix, all)
        all = nil -- luacheck: ignore
        collectgarbage()
        collectgarbage()
        assert.equal(before + 200, tonumber(C.mw_live_get(C.MW_LIVE_OBJECT)))
      end
    end)
  end)

  describe("index function", function()
    it("cannot add or remove an index, and nothing has changed when it tries", function()
      local ix = new()
      upsert(ix, objects.pod("a", "x", { rv = "1" }))
      local told = {}
      local function meddle(o)
        local err = unit.err()
        assert(C.mw_indexer_remove_index(ix, nil, slice "meddling", err) == C.MW_ESTATE)
        told[#told + 1] = ffi.string(err.message)
        told[#told + 1] = select(2, add_extract(ix, "more", C.MW_EXTRACT_PATH, "spec.nodeName"))
        return { str(C.mw_object_name(o)) }
      end
      local rc, _, free = add_indexes(ix, { meddling = meddle })
      assert.equal(0, rc)
      upsert(ix, objects.pod("a", "y", { rv = "2" }))
      local out = objects.list()
      assert.equal(0, C.mw_indexer_index(ix, nil, slice "meddling", C.mw_indexer_get(ix, slice "a/y"), out, nil))
      assert.equal(6, #told)
      for _, message in ipairs(told) do
        assert.equal("indexes cannot change inside an index function", message)
      end
      assert.are.same({ "namespace", "meddling" }, index_names(ix))
      assert.are.same({ "a/y" }, by_index(ix, "meddling", "y"))
      assert.equal(0, C.mw_indexer_remove_index(ix, nil, slice "meddling", nil))
      free()
    end)

    it("is named when a replace took it more than two seconds", function()
      local ix = new()
      local until_then
      local _, _, free = add_indexes(ix, { quick = function() return {} end, slow = function()
        while os.clock() < until_then do end
        return {}
      end })
      C.mw_log_set_level(C.MW_LOG_WARN)
      until_then = os.clock() + 2.05
      local text = captured(function() replace(ix, { objects.pod("a", "x"), objects.pod("a", "y") }) end)
      -- Wall time, which is more than the loop's own where the machine is busy.
      local seconds = text:match("an index function is slow.*index\"?[=:]\"?slow.*seconds\"?[=:]([%d.]+)")
      assert.is_truthy(seconds and tonumber(seconds) >= 2, text)
      assert.equal("", captured(function() replace(ix, { objects.pod("a", "z") }) end))
      free()
    end)
  end)

  describe("index", function()
    it("namespace is always there, also for objects that have none", function()
      local ix = new()
      upsert(ix, objects.pod("a", "1"))
      upsert(ix, objects.pod("", "2"))
      assert.are.same({ "namespace" }, index_names(ix))
      assert.are.same({ "", "a" }, index_values(ix, "namespace"))
      assert.are.same({ "2" }, by_index(ix, "namespace", ""))
      assert.are.same({ "a/1" }, by_index(ix, "namespace", "a"))
    end)

    it("follows adds, updates and removals", function() -- row 60
      local ix = new()
      assert.equal(0, add_extract(ix, "node", C.MW_EXTRACT_PATH, "spec.nodeName"))
      upsert(ix, on_node("a", "1", "n1"))
      upsert(ix, on_node("a", "2", "n1"))
      upsert(ix, on_node("b", "1", "n2"))
      assert.are.same({ "a/1", "a/2" }, by_index(ix, "node", "n1"))
      upsert(ix, on_node("a", "1", "n2"))
      assert.are.same({ "a/2" }, by_index(ix, "node", "n1"))
      assert.are.same({ "a/1", "b/1" }, by_index(ix, "node", "n2"))
      remove(ix, "b/1")
      assert.are.same({ "a/1" }, by_index(ix, "node", "n2"))
      upsert(ix, objects.pod("a", "1"))
      assert.are.same({ "n1" }, index_values(ix, "node"))
      assert.are.same({}, by_index(ix, "node", "n2"))
      assert.are.same({}, by_index(ix, "node", "never"))
    end)

    it("forgets a value with its last object", function() -- row 57
      local ix = new()
      assert.equal(0, add_extract(ix, "node", C.MW_EXTRACT_PATH, "spec.nodeName"))
      local empty = stats(ix).map_bytes
      for i = 1, 5 do upsert(ix, on_node("ns" .. i, "p", "n" .. i)) end
      assert.equal(5, #index_values(ix, "node"))
      for i = 1, 5 do remove(ix, ("ns%d/p"):format(i)) end
      assert.are.same({}, index_values(ix, "node"))
      assert.are.same({}, index_values(ix, "namespace"))
      -- What stays are the small tables themselves.
      assert.is_true(stats(ix).map_bytes - empty < 1500, tostring(stats(ix).map_bytes))
    end)

    it("holds several values per object, each once", function() -- row 58
      local ix = new()
      assert.equal(0, add_extract(ix, "image", C.MW_EXTRACT_PATH, "images[*]"))
      local function with(name, images) return objects.pod("", name, { rest = '"images":' .. images }) end
      upsert(ix, with("e1", '["red","blue","red"]'))
      upsert(ix, with("e2", '["blue","green"]'))
      assert.are.same({ "e1" }, by_index(ix, "image", "red"))
      assert.are.same({ "e1", "e2" }, by_index(ix, "image", "blue"))
      upsert(ix, with("e1", '["green","blue"]'))
      assert.are.same({}, by_index(ix, "image", "red"))
      assert.are.same({ "blue", "green" }, index_values(ix, "image"))
      upsert(ix, with("e1", '["blue","green","green"]'))
      assert.are.same({ "e1", "e2" }, by_index(ix, "image", "green"))
      remove(ix, "e2")
      assert.are.same({ "e1" }, by_index(ix, "image", "blue"))
      upsert(ix, with("e1", "[]"))
      assert.are.same({}, index_values(ix, "image"))
    end)

    it("always holds the newest object, also when its values stay the same", function()
      local ix = new()
      assert.equal(0, add_extract(ix, "node", C.MW_EXTRACT_PATH, "spec.nodeName"))
      upsert(ix, on_node("a", "1", "n1", "1"))
      upsert(ix, on_node("a", "1", "n1", "2"))
      for _, at in ipairs { { "node", "n1" }, { "namespace", "a" } } do
        local out = objects.list()
        assert.equal(0, C.mw_indexer_by_index(ix, nil, slice(at[1]), slice(at[2]), out, nil))
        assert.equal(1, tonumber(out.n))
        assert.equal("2", str(C.mw_object_rv(out.v[0])))
      end
    end)

    it("by label and by owner needs no function", function()
      local ix = new()
      assert.equal(0, add_extract(ix, "app", C.MW_EXTRACT_LABEL, "app"))
      assert.equal(0, add_extract(ix, "owner", C.MW_EXTRACT_OWNER, "controller"))
      upsert(ix, objects.pod("a", "1", { labels = { app = "web" },
        metadata = '"ownerReferences":[{"uid":"u1","controller":true},{"uid":"u2"}]' }))
      assert.are.same({ "a/1" }, by_index(ix, "app", "web"))
      assert.are.same({ "u1" }, index_values(ix, "owner"))
    end)

    it("gives the keys under a value in ascending order, however many", function() -- row 60
      local ix, expected = new(), {}
      for i = 1, 5000 do
        upsert(ix, objects.pod("a", "p" .. i))
        expected[i] = "a/p" .. i
      end
      table.sort(expected)
      local out = objects.values()
      assert.equal(0, C.mw_indexer_index_keys(ix, nil, slice "namespace", slice "a", out, nil))
      assert.are.same(expected, objects.strings(out))
    end)

    it("finds the objects that share a value with an object, each once", function()
      local ix = new()
      assert.equal(0, add_extract(ix, "image", C.MW_EXTRACT_PATH, "images[*]"))
      local function with(name, images) return objects.pod("", name, { rest = '"images":' .. images }) end
      upsert(ix, with("1", '["red","blue"]'))
      upsert(ix, with("2", '["blue"]'))
      upsert(ix, with("3", '["green"]'))
      local function sharing(images)
        local out = objects.list()
        assert.equal(0, C.mw_indexer_index(ix, nil, slice "image", with("other", images), out, nil))
        return objects.keys(out)
      end
      assert.are.same({ "1", "2" }, sharing '["red","blue","blue"]')
      assert.are.same({ "3" }, sharing '["green"]')
      assert.are.same({}, sharing '["grey"]')
      assert.are.same({}, sharing "[]")
    end)

    it("that is unknown is an error, but has no values", function() -- row 60
      local ix, out, err = new(), objects.list(), unit.err()
      local _, message, code = by_index(ix, "nope", "x")
      assert.equal(C.MW_ENOTFOUND, code)
      assert.matches('"nope"', message)
      assert.equal(C.MW_ENOTFOUND, C.mw_indexer_index(ix, nil, slice "nope", objects.pod("a", "b"), out, err))
      assert.equal(C.MW_ENOTFOUND, C.mw_indexer_index_keys(ix, nil, slice "nope", slice "x", objects.values(), err))
      assert.are.same({}, index_values(ix, "nope"))
    end)

    it("added later knows the objects that are there at once", function() -- row 62
      local ix = new()
      for i = 1, 100 do upsert(ix, on_node("a", "p" .. i, "n" .. i % 10)) end
      assert.equal(0, add_extract(ix, "node", C.MW_EXTRACT_PATH, "spec.nodeName"))
      assert.equal(10, #index_values(ix, "node"))
      assert.equal(10, #by_index(ix, "node", "n3"))
      remove(ix, "a/p3")
      assert.equal(9, #by_index(ix, "node", "n3"))
    end)

    it("whose name is taken is refused with all that were added with it", function()
      local ix = new()
      assert.equal(0, add_extract(ix, "node", C.MW_EXTRACT_PATH, "spec.nodeName"))
      local rc, message = add_extract(ix, "node", C.MW_EXTRACT_PATH, "spec.x")
      assert.equal(C.MW_EEXIST, rc)
      assert.matches('"node"', message)
      rc, message = add_extract(ix, "namespace", C.MW_EXTRACT_PATH, "spec.x")
      assert.equal(C.MW_EEXIST, rc)
      assert.equal('the index "namespace" is always there, by metadata.namespace: leave it out, or give yours another '
        .. 'name', message)
      local code, _, free = add_indexes(ix, { fresh = function() return {} end, node = function() return {} end })
      assert.equal(C.MW_EEXIST, code)
      assert.are.same({ "namespace", "node" }, index_names(ix))
      free()
    end)

    it("twice in one addition is refused", function()
      local ix, err = new(), unit.err()
      local specs = ffi.new("struct mw_index_spec[2]")
      for i = 0, 1 do
        specs[i].name, specs[i].values = slice("same").p, C.mw_index_extract
        specs[i].free_ctx = C.mw_index_extract_free
        specs[i].ctx = C.mw_extract_new(C.MW_EXTRACT_LABEL, slice "app", nil)
      end
      assert.equal(C.MW_EEXIST, C.mw_indexer_add_indexes(ix, nil, specs, 2, err))
      assert.are.same({ "namespace" }, index_names(ix))
    end)

    it("whose function fails on an object that is there is refused, and names both", function()
      local ix = new()
      upsert(ix, objects.pod("a", "good"))
      upsert(ix, objects.pod("a", "bad"))
      local rc, message, free = add_indexes(ix, {
        broken = function(o)
          if objects.key(o) == "a/bad" then error("boom") end
          return { "x" }
        end,
        fine = function() return { "y" } end,
      })
      assert.equal(C.MW_ESCRIPT, rc)
      assert.matches('"broken" fails on "a/bad": .*boom', message)
      assert.are.same({ "namespace" }, index_names(ix))
      assert.are.same({}, index_values(ix, "fine"))
      free()
    end)

    it("whose function fails on a write leaves the write whole and the object out", function() -- row 61
      local ix, fail = new(), false
      C.mw_log_set_level(C.MW_LOG_ERROR)
      local rc, _, free = add_indexes(ix, {
        moody = function()
          if fail then error("boom") end
          return { "x", "y" }
        end,
        fine = function() return { "z" } end,
      })
      assert.equal(0, rc)
      upsert(ix, objects.pod("a", "1"))
      assert.are.same({ "a/1" }, by_index(ix, "moody", "x"))
      fail = true
      upsert(ix, objects.pod("a", "1", { rv = "2" }))
      upsert(ix, objects.pod("a", "2"))
      assert.are.same({ "a/1", "a/2" }, list(ix))
      assert.are.same({}, index_values(ix, "moody"))
      assert.are.same({ "a/1", "a/2" }, by_index(ix, "fine", "z"))
      assert.equal(2, tonumber(stats(ix).index_failures))
      fail = false
      upsert(ix, objects.pod("a", "1", { rv = "3" }))
      assert.are.same({ "a/1" }, by_index(ix, "moody", "y"))
      remove(ix, "a/1")
      remove(ix, "a/2")
      assert.equal(2, tonumber(stats(ix).index_failures))
      assert.are.same({}, index_values(ix, "moody"))
      C.mw_log_set_level(C.MW_LOG_INFO)
      C.mw_indexer_remove_index(ix, nil, slice "moody", nil)
      free()
    end)

    it("whose function changes its mind strands no entry", function()
      local ix, answer, calls = new(), "x", 0
      local rc, _, free = add_indexes(ix, { mind = function() calls = calls + 1 return { answer } end })
      assert.equal(0, rc)
      upsert(ix, objects.pod("a", "1"))
      answer = "y"
      remove(ix, "a/1")
      assert.are.same({}, index_values(ix, "mind"))
      assert.equal(1, calls)
      free()
    end)

    it("that fails when asked about an object returns the error", function()
      local ix = new()
      local rc, _, free = add_indexes(ix, { broken = function() error("boom") end })
      assert.equal(0, rc)
      local out, err = objects.list(), unit.err()
      assert.equal(C.MW_ESCRIPT, C.mw_indexer_index(ix, nil, slice "broken", objects.pod("a", "b"), out, err))
      assert.matches("boom", ffi.string(err.message))
      free()
    end)

    it("can be removed, all but namespace", function()
      local ix, err = new(), unit.err()
      upsert(ix, on_node("a", "1", "n1"))
      for _, name in ipairs { "x", "y", "z" } do
        assert.equal(0, add_extract(ix, name, C.MW_EXTRACT_PATH, "spec.nodeName"))
      end
      assert.equal(0, C.mw_indexer_remove_index(ix, nil, slice "y", err))
      assert.are.same({ "namespace", "x", "z" }, index_names(ix))
      assert.equal(C.MW_ENOTFOUND, C.mw_indexer_remove_index(ix, nil, slice "y", err))
      assert.equal(C.MW_EINVAL, C.mw_indexer_remove_index(ix, nil, slice "namespace", err))
      upsert(ix, on_node("a", "1", "n2"))
      assert.are.same({ "a/1" }, by_index(ix, "z", "n2"))
      assert.equal(0, add_extract(ix, "y", C.MW_EXTRACT_PATH, "spec.nodeName"))
      assert.are.same({ "a/1" }, by_index(ix, "y", "n2"))
    end)
  end)

  describe("shared by two owners", function()
    local a, b = owner(1), owner(2)

    it("keeps their names apart", function()
      local ix = new()
      upsert(ix, on_node("a", "1", "n1"))
      assert.equal(0, add_extract(ix, "by", C.MW_EXTRACT_PATH, "spec.nodeName", a))
      assert.equal(0, add_extract(ix, "by", C.MW_EXTRACT_PATH, "metadata.name", b))
      assert.equal(0, add_extract(ix, "only_b", C.MW_EXTRACT_PATH, "metadata.name", b))
      assert.equal(C.MW_EEXIST, (add_extract(ix, "by", C.MW_EXTRACT_PATH, "spec.x", a)))
      assert.are.same({ "a/1" }, by_index(ix, "by", "n1", a))
      assert.are.same({ "a/1" }, by_index(ix, "by", "1", b))
      assert.are.same({ "n1" }, index_values(ix, "by", a))
      assert.are.same({ "namespace", "by" }, index_names(ix, a))
      assert.are.same({ "namespace", "by", "only_b" }, index_names(ix, b))
      assert.are.same({ "a/1" }, by_index(ix, "namespace", "a", a))
      assert.equal(C.MW_ENOTFOUND, select(3, by_index(ix, "only_b", "1", a)))
      assert.equal(C.MW_ENOTFOUND, C.mw_indexer_remove_index(ix, a, slice "only_b", nil))
      C.mw_indexer_drop_owner(ix, a)
      assert.are.same({ "namespace" }, index_names(ix, a))
      assert.are.same({ "a/1" }, by_index(ix, "by", "1", b))
    end)

    it("builds what computes the same once, for both, and keeps it until both have left", function()
      local ix = new()
      for i = 1, 100 do upsert(ix, on_node("a", "p" .. i, "n" .. i % 10)) end
      local empty = tonumber(stats(ix).map_bytes)
      assert.equal(0, add_extract(ix, "node", C.MW_EXTRACT_PATH, "spec.nodeName", a, "path:spec.nodeName"))
      local one = tonumber(stats(ix).map_bytes)
      assert.is_true(one > empty)
      assert.equal(0, add_extract(ix, "by_node", C.MW_EXTRACT_PATH, "spec.nodeName", b, "path:spec.nodeName"))
      assert.equal(0, add_extract(ix, "again", C.MW_EXTRACT_PATH, "spec.nodeName", b, "path:spec.nodeName"))
      assert.equal(one, tonumber(stats(ix).map_bytes))
      C.mw_indexer_drop_owner(ix, a)
      upsert(ix, on_node("a", "late", "n3"))
      assert.equal(11, #by_index(ix, "by_node", "n3", b))
      assert.equal(11, #by_index(ix, "again", "n3", b))
      local both = tonumber(stats(ix).map_bytes)
      assert.equal(0, C.mw_indexer_remove_index(ix, b, slice "again", nil))
      assert.equal(both, tonumber(stats(ix).map_bytes))
      C.mw_indexer_drop_owner(ix, b)
      assert.is_true(tonumber(stats(ix).map_bytes) < both)
    end)

    it("calls each one's own function, and never again once its owner has left", function()
      local ix, calls = new(), { a = 0, b = 0 }
      local function counting(who)
        return { by = function(o) calls[who] = calls[who] + 1 return { who .. objects.key(o) } end }
      end
      local _, _, free_a = add_indexes(ix, counting("a"), a)
      local _, _, free_b = add_indexes(ix, counting("b"), b)
      upsert(ix, objects.pod("a", "1"))
      assert.are.same({ a = 1, b = 1 }, calls)
      assert.are.same({ "a/1" }, by_index(ix, "by", "ba/1", b))
      C.mw_indexer_drop_owner(ix, a)
      upsert(ix, objects.pod("a", "1", { rv = "2" }))
      assert.are.same({ a = 1, b = 2 }, calls)
      assert.are.same({ "a/1" }, by_index(ix, "by", "ba/1", b))
      free_a()
      free_b()
    end)

    it("lets an owner leave inside an index function, its own included", function()
      local ix, leave = new(), false
      local _, _, free_a = add_indexes(ix, { first = function() return { "x" } end }, a)
      local _, _, free_b = add_indexes(ix, { second = function()
        if leave then C.mw_indexer_drop_owner(ix, a) C.mw_indexer_drop_owner(ix, b) end
        return { "y" }
      end }, b)
      upsert(ix, objects.pod("a", "1"))
      leave = true
      replace(ix, { objects.pod("a", "1", { rv = "2" }), objects.pod("a", "2") })
      assert.are.same({ "namespace" }, index_names(ix, a))
      assert.are.same({ "namespace" }, index_names(ix, b))
      assert.are.same({ "a/1", "a/2" }, list(ix))
      free_a()
      free_b()
    end)
  end)

  it("costs at most 46 bytes per object for the store and its namespaces", function()
    local ix = new()
    local item = '{"metadata":{"name":"p%d","namespace":"ns%d"}}'
    for i = 1, 20000 do upsert(ix, objects.make(item:format(i, i % 10))) end
    local each = tonumber(stats(ix).map_bytes) / 20000
    assert.is_true(each <= 46, tostring(each))
  end)

  it("agrees with a plain table through random upserts, removals and replaces", function()
    math.randomseed(5)
    local ix, model, version = new(), {}, 0
    assert.equal(0, add_extract(ix, "tag", C.MW_EXTRACT_PATH, "tags[*]"))
    assert.equal(0, add_extract(ix, "node", C.MW_EXTRACT_PATH, "spec.nodeName"))

    local function random_object()
      version = version + 1
      local ns, tags = "ns" .. math.random(3), {}
      for i = 1, math.random(0, 4) do tags[i] = "t" .. math.random(6) end
      local node = math.random() < 0.8 and "n" .. math.random(4) or nil
      local name = "p" .. math.random(40)
      local rest = ('"tags":[%s]%s'):format(
        #tags > 0 and '"' .. table.concat(tags, '","') .. '"' or "",
        node and (',"spec":{"nodeName":"%s"}'):format(node) or "")
      local o = objects.pod(ns, name, { rv = tostring(version), rest = rest })
      return o, ns .. "/" .. name, { rv = tostring(version), ns = ns, tags = tags, node = node }
    end

    local function expected_index(values_of)
      local index = {}
      for key, m in pairs(model) do
        for _, value in ipairs(values_of(m)) do
          index[value] = index[value] or {}
          index[value][key] = m.rv
        end
      end
      return index
    end

    local function actual_index(name)
      local index = {}
      for _, value in ipairs(index_values(ix, name)) do
        index[value] = {}
        local out = objects.list()
        assert.equal(0, C.mw_indexer_by_index(ix, nil, slice(name), slice(value), out, nil))
        for i = 0, tonumber(out.n) - 1 do
          assert.is_nil(index[value][objects.key(out.v[i])])
          index[value][objects.key(out.v[i])] = str(C.mw_object_rv(out.v[i]))
        end
      end
      return index
    end

    local function check()
      local all, bytes = {}, 0
      local out = objects.list()
      C.mw_indexer_list(ix, slice "", nil, nil, out)
      for i = 0, tonumber(out.n) - 1 do
        all[objects.key(out.v[i])] = str(C.mw_object_rv(out.v[i]))
        bytes = bytes + tonumber(C.mw_object_memory(out.v[i]))
      end
      local expected = {}
      for key, m in pairs(model) do expected[key] = m.rv end
      assert.are.same(expected, all)
      assert.equal(bytes, tonumber(stats(ix).object_bytes))
      assert.are.same(expected_index(function(m) return m.tags end), actual_index("tag"))
      assert.are.same(expected_index(function(m) return { m.node } end), actual_index("node"))
      assert.are.same(expected_index(function(m) return { m.ns } end), actual_index("namespace"))
    end

    for step = 1, 3000 do
      local dice = math.random()
      if dice < 0.6 then
        local o, key, m = random_object()
        local old = upsert(ix, o)
        assert.equal(model[key] and model[key].rv, old and str(C.mw_object_rv(old)))
        model[key] = m
      elseif dice < 0.98 then
        local key = ("ns%d/p%d"):format(math.random(3), math.random(40))
        local old = remove(ix, key)
        assert.equal(model[key] and model[key].rv, old and str(C.mw_object_rv(old)))
        model[key] = nil
      else
        local all, fresh, gone, olds = {}, {}, {}, {}
        for i = 1, math.random(0, 60) do
          local o, key, m = random_object()
          all[i] = o
          olds[i] = (fresh[key] or model[key] or { rv = false }).rv
          fresh[key] = m
        end
        for key in pairs(model) do if not fresh[key] then gone[#gone + 1] = key end end
        table.sort(gone)
        local actual_olds, actual_gone = replace(ix, all, tostring(version))
        assert.are.same(olds, actual_olds)
        assert.are.same(gone, actual_gone)
        model = fresh
      end
      if step % 20 == 0 then check() end
    end
    check()
  end)
end)
