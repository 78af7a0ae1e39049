-- The tables under the work queue: entries by key, and those that wait by their time.
jit.off(true, true)
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

ffi.cdef "struct spec_key_entry { struct mw_key_node node; char key[16]; };"

describe("a key table", function()
  local table_, entries, made

  before_each(function()
    table_, entries, made = ffi.new("struct mw_key_table"), {}, {}
    C.mw_key_table_init(table_, ffi.offsetof("struct spec_key_entry", "key"))
  end)
  after_each(function() C.mw_key_table_deinit(table_) end)

  local function add(key)
    local e = ffi.new("struct spec_key_entry")
    ffi.copy(e.key, key, #key)
    e.node.len, e.node.hash = #key, C.mw_hash(unit.slice(key))
    C.mw_key_table_add(table_, e.node)
    entries[key], made[#made + 1] = e, e
  end

  local function get(key) return C.mw_key_table_get(table_, unit.slice(key), C.mw_hash(unit.slice(key))) end

  local function del(key)
    C.mw_key_table_del(table_, entries[key].node)
    entries[key] = nil
  end

  -- Every entry is found, and is the one that was added.
  local function check()
    local n = 0
    for key, e in pairs(entries) do
      n = n + 1
      assert(get(key) == e.node, key)
      assert(unit.str(C.mw_key_table_key(table_, e.node)) == key, key)
    end
    assert.are.equal(n, tonumber(table_.count))
  end

  it("finds what was added and not what was removed, at any size", function()
    assert.is_true(get("k1") == nil)
    for i = 1, 3000 do
      add("k" .. i)
      if i % 97 == 0 or i < 20 then check() end
    end
    assert.is_true(get("k3001") == nil)
    for i = 1, 3000, 2 do del("k" .. i) end
    check()
    assert.is_true(get("k1") == nil)
    for i = 2, 3000, 2 do
      del("k" .. i)
      if i % 97 == 0 or i > 2980 then check() end
    end
    assert.are.equal(0, tonumber(table_.count))
    add("k1")
    check()
  end)

  it("grows by one bucket at a time, and gives its memory back", function()
    local before
    for i = 1, 20000 do
      add("k" .. i)
      assert(tonumber(table_.buckets) == i)
      if i == 10000 then before = tonumber(C.mw_key_table_memory(table_)) end
    end
    local full = tonumber(C.mw_key_table_memory(table_))
    assert.is_true(full < 2.5 * before, full .. " after " .. before)
    assert.is_true(full < 20000 * 10)
    for i = 1, 20000 do
      local buckets = tonumber(table_.buckets)
      del("k" .. i)
      assert(buckets - tonumber(table_.buckets) <= 2)
    end
    assert.is_true(tonumber(C.mw_key_table_memory(table_)) < full / 10)
  end)

  it("gives out all that it holds, one after another", function()
    for i = 1, 1000 do add("k" .. i) end
    local seen = {}
    for _ = 1, 1000 do seen[unit.str(C.mw_key_table_key(table_, C.mw_key_table_pop(table_)))] = true end
    for i = 1, 1000 do assert(seen["k" .. i]) end
    assert.is_true(C.mw_key_table_pop(table_) == nil)
  end)
end)

describe("a delay queue", function()
  local queue

  before_each(function()
    queue = ffi.new("struct mw_delay_queue")
    C.mw_delay_queue_init(queue)
  end)
  after_each(function() C.mw_delay_queue_deinit(queue) end)

  it("has the earliest first, and of equals the one that came first", function() -- row 87
    local nodes = {}
    for i, at in ipairs { 5, 3, 9, 3, 1, 5 } do
      nodes[i] = ffi.new("struct mw_delay_node")
      C.mw_delay_queue_add(queue, nodes[i], at)
    end
    for _, i in ipairs { 5, 2, 4, 1, 6, 3 } do
      assert.is_true(C.mw_delay_queue_first(queue) == nodes[i])
      C.mw_delay_queue_del(queue, nodes[i])
    end
    assert.is_true(C.mw_delay_queue_first(queue) == nil)
  end)

  it("stays in order however nodes come, move ahead and go", function() -- row 87
    math.randomseed(7)
    local waiting = {}
    for i = 1, 5000 do
      local what = math.random(4)
      if what <= 2 or #waiting == 0 then
        local n = ffi.new("struct mw_delay_node")
        C.mw_delay_queue_add(queue, n, math.random(1000))
        waiting[#waiting + 1] = n
      elseif what == 3 then
        local n = waiting[math.random(#waiting)]
        local at, to = tonumber(n.at), math.random(1000)
        C.mw_delay_queue_advance(queue, n, to)
        assert(tonumber(n.at) == math.min(at, to))
      else
        C.mw_delay_queue_del(queue, table.remove(waiting, math.random(#waiting)))
      end
      if i % 50 == 0 then
        local least = math.huge
        for _, n in ipairs(waiting) do least = math.min(least, tonumber(n.at)) end
        local first = C.mw_delay_queue_first(queue)
        assert(first == nil and least == math.huge or tonumber(first.at) == least)
      end
    end
    local last = 0
    while queue.count > 0 do
      local first = C.mw_delay_queue_first(queue)
      assert(tonumber(first.at) >= last)
      last = tonumber(first.at)
      C.mw_delay_queue_del(queue, first)
    end
    assert.is_true(tonumber(queue.cap) <= 16)
  end)
end)
