local unit = require "spec.support.unit"
local objects = require "spec.support.objects"
local C, ffi, slice = unit.C, unit.ffi, objects.slice

local function new()
  local m = ffi.gc(ffi.new("struct mw_objmap"), C.mw_objmap_deinit)
  C.mw_objmap_init(m)
  return m
end

local function walk(m)
  local seen, cursor = {}, ffi.new("size_t[1]")
  while true do
    local o = C.mw_objmap_next(m, cursor)
    if o == nil then return seen end
    assert.is_nil(seen[objects.key(o)])
    seen[objects.key(o)] = unit.str(C.mw_object_rv(o))
  end
end

describe("objmap", function()
  unit.no_leaks()

  it("is empty at first and finds nothing", function()
    local m = new()
    assert.is_true(C.mw_objmap_get(m, slice "a") == nil)
    assert.is_true(C.mw_objmap_del(m, slice "a") == nil)
    assert.are.same({}, walk(m))
    assert.equal(0, tonumber(C.mw_objmap_memory(m)))
  end)

  it("hands back the object that a set replaced and the one that a del removed", function()
    local m = new()
    local one, two = objects.pod("a", "b", { rv = "1" }), objects.pod("a", "b", { rv = "2" })
    assert.is_nil(objects.own(C.mw_objmap_set(m, one)))
    assert.equal(one, objects.own(C.mw_objmap_set(m, two)))
    assert.equal(two, C.mw_objmap_get(m, slice "a/b"))
    assert.equal(1, tonumber(m.count))
    assert.equal(two, objects.own(C.mw_objmap_del(m, slice "a/b")))
    assert.equal(0, tonumber(m.count))
  end)

  it("may be set to the object that it already holds", function()
    local m = new()
    local o = objects.pod("a", "b")
    objects.own(C.mw_objmap_set(m, o))
    assert.equal(o, objects.own(C.mw_objmap_set(m, o)))
    assert.equal(1, tonumber(m.count))
  end)

  it("holds its objects until it is emptied", function()
    local m = new()
    for i = 1, 50 do objects.own(C.mw_objmap_set(m, objects.pod("a", "p" .. i))) end
    collectgarbage()
    collectgarbage()
    assert.equal(50, tonumber(m.count))
    assert.equal("a/p9", objects.key(C.mw_objmap_get(m, slice "a/p9")))
    C.mw_objmap_deinit(m)
    assert.are.same({}, walk(m))
  end)

  it("agrees with a plain table through random sets and dels, growing and shrinking", function()
    math.randomseed(7)
    local m, model, count = new(), {}, 0
    for step = 1, 20000 do
      local growing = step % 8000 < 4000
      local name = "p" .. math.random(1, 700)
      if math.random() < (growing and 0.7 or 0.2) then
        local o = objects.pod("", name, { rv = tostring(step) })
        local old = objects.own(C.mw_objmap_set(m, o))
        assert.equal(model[name], old and unit.str(C.mw_object_rv(old)))
        if not model[name] then count = count + 1 end
        model[name] = tostring(step)
      else
        local old = objects.own(C.mw_objmap_del(m, slice(name)))
        assert.equal(model[name], old and unit.str(C.mw_object_rv(old)))
        if model[name] then count = count - 1 end
        model[name] = nil
      end
      assert.equal(count, tonumber(m.count))
      if step % 1000 == 0 then assert.are.same(model, walk(m)) end
    end
    assert.are.same(model, walk(m))
  end)

  it("costs at most 23 bytes per object at any size and gives memory back", function()
    local m = new()
    for i = 1, 5000 do
      objects.own(C.mw_objmap_set(m, objects.pod("", "p" .. i)))
      local each = tonumber(C.mw_objmap_memory(m)) / i
      assert.is_true(i < 50 or each <= 23, i .. " objects: " .. each)
    end
    for i = 1, 4990 do objects.own(C.mw_objmap_del(m, slice("p" .. i))) end
    assert.is_true(C.mw_objmap_memory(m) < 1000)
    for i = 4991, 5000 do assert.equal("p" .. i, objects.key(C.mw_objmap_get(m, slice("p" .. i)))) end
  end)

  it("takes objects in the order of another map as fast as in any order", function()
    local from, all, ordered = new(), objects.list(), objects.list()
    for i = 1, 60000 do C.mw_object_list_add(all, objects.pod("", "p" .. i)) end
    local function fill_and_empty(list)
      local m, started = new(), os.clock()
      for i = 0, tonumber(list.n) - 1 do C.mw_object_unref(C.mw_objmap_set(m, list.v[i])) end
      for i = 0, tonumber(list.n) - 1 do C.mw_object_unref(C.mw_objmap_del(m, C.mw_object_key(list.v[i]))) end
      assert.equal(0, tonumber(m.count))
      return os.clock() - started
    end
    for i = 0, tonumber(all.n) - 1 do C.mw_object_unref(C.mw_objmap_set(from, all.v[i])) end
    local cursor = ffi.new("size_t[1]")
    for _ = 1, tonumber(all.n) do C.mw_object_list_add(ordered, C.mw_objmap_next(from, cursor)) end
    local any_order = fill_and_empty(all)
    assert.is_true(fill_and_empty(ordered) < 10 * any_order + 0.05)
  end)

  it("does not move when room was reserved", function()
    local m = new()
    C.mw_objmap_reserve(m, 1000)
    local slots = m.slots
    for i = 1, 1000 do objects.own(C.mw_objmap_set(m, objects.pod("", "p" .. i))) end
    assert.equal(slots, m.slots)
    C.mw_objmap_reserve(m, 10)
    assert.equal(slots, m.slots)
  end)

  it("can be walked over while it changes: what stays is visited, and once while the table stays", function()
    math.randomseed(11)
    local list = objects.list()
    local visit = ffi.cast("void (*)(void *, struct mw_object *)", C.mw_object_list_add)
    for round = 1, 20 do
      local m, stays, leaves = new(), {}, {}
      for i = 1, 400 do
        local o = objects.pod("a", ("p%d-%d"):format(round, i))
        objects.own(C.mw_objmap_set(m, o))
        if i % 2 == 0 then stays[objects.key(o)] = true else leaves[#leaves + 1] = objects.key(o) end
      end
      local w, seen, tables, cap = ffi.new("struct mw_objmap_walk"), {}, 1, m.cap
      while C.mw_objmap_step(m, w, visit, list) do
        for i = 0, tonumber(list.n) - 1 do
          local key = objects.key(list.v[i])
          seen[key] = (seen[key] or 0) + 1
        end
        C.mw_object_list_deinit(list)
        -- In odd rounds others come and go; in even ones so many go that the table shrinks.
        local gone = #leaves > 0 and table.remove(leaves, math.random(#leaves))
        if gone then objects.own(C.mw_objmap_del(m, slice(gone))) end
        if round % 2 == 1 then
          for i = 1, math.random(2) do
            objects.own(C.mw_objmap_set(m, objects.pod("b", ("p%d-%d-%d"):format(round, #leaves, i))))
          end
        end
        if m.cap ~= cap then tables, cap = tables + 1, m.cap end
      end
      for key in pairs(stays) do
        assert.is_true(seen[key] ~= nil and seen[key] <= tables, key)
      end
    end
  end)
end)
