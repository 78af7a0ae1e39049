-- The queue between the ingest thread and the store.
jit.off(true, true)
local kit = require "spec.support.cache_kit"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local names = { [0] = "added", "updated", "deleted", "replaced", "sync", "bookmark" }

local function say(d)
  local parts = { names[tonumber(d.type)] }
  if d.object ~= nil then parts[#parts + 1] = kit.text(d.object) end
  for i = 0, tonumber(d.all.n) - 1 do parts[#parts + 1] = kit.text(d.all.v[i]) end
  if d.rv ~= nil then parts[#parts + 1] = "rv=" .. ffi.string(d.rv) end
  return table.concat(parts, " ")
end

describe("delta fifo", function()
  local fifo, batch, wakes, wake

  local function new(bound)
    fifo = C.mw_delta_fifo_new(bound or 0, wake, nil)
  end

  setup(function()
    wake = ffi.cast("mw_fifo_wake_cb", function() wakes = wakes + 1 end)
    batch = ffi.new("struct mw_delta_batch")
  end)
  teardown(function() wake:free() end)
  before_each(function() wakes = 0 new() end)
  after_each(function() C.mw_delta_fifo_free(fifo) end)
  unit.no_leaks()

  local function renew(bound)
    C.mw_delta_fifo_free(fifo)
    new(bound)
  end

  local function add(...) C.mw_delta_fifo_add(fifo, kit.object(...)) end
  local function update(...) C.mw_delta_fifo_update(fifo, kit.object(...)) end
  local function delete(...) C.mw_delta_fifo_delete(fifo, kit.object(...)) end
  local function replace(rv, ...)
    local objects = {}
    for i, spec in ipairs { ... } do objects[i] = kit.object(unpack(spec)) end
    local list = kit.list(objects)
    C.mw_delta_fifo_replace(fifo, list, unit.slice(rv))
    assert.are.equal(0, tonumber(list.n))
  end
  local function bookmark(rv) C.mw_delta_fifo_bookmark(fifo, unit.slice(rv)) end
  local function depth() return tonumber(C.mw_delta_fifo_depth(fifo)) end
  local function coalesced() return tonumber(C.mw_delta_fifo_coalesced(fifo)) end
  local function synced() return C.mw_delta_fifo_has_synced(fifo) end

  -- The batch as text; it stays open until done().
  local function pop()
    local texts = {}
    for i = 0, tonumber(C.mw_delta_fifo_pop(fifo, batch)) - 1 do
      texts[#texts + 1] = say(batch.deltas[i])
    end
    return texts
  end
  local function done() C.mw_delta_fifo_done(fifo, batch) end
  local function take()
    local texts = pop()
    done()
    return texts
  end
  local function take_all()
    local all = {}
    while true do
      local texts = take()
      if #texts == 0 then return all end
      for _, text in ipairs(texts) do all[#all + 1] = text end
    end
  end

  describe("while it keeps up", function()
    it("hands deltas out in strict arrival order without merging, a re-add at the tail", -- row 33
      function()
        add("a", 1) add("b", 2) update("a", 3) add("c", 4) delete("b", 5) add("b", 6)
        assert.are.same({ "added a@1", "added b@2" }, take())
        assert.are.same({ "updated a@3", "added c@4", "deleted b@5" }, take())
        assert.are.same({ "added b@6" }, take())
        assert.are.same({}, take())
        assert.are.equal(0, coalesced())
      end)

    it("queues deletions of keys that nobody knows", function() -- row 34
      delete("ghost", 9)
      assert.are.same({ "deleted ghost@9" }, take())
    end)

    it("keeps a queued deletion in front of a snapshot that has the key again", function() -- row 35
      add("a", 1) delete("a", 2)
      replace("5", { "a", 4 })
      assert.are.same({ "added a@1", "deleted a@2", "replaced a@4 rv=5" }, take_all())
    end)

    it("makes no deletions of a snapshot, which is one delta", function() -- row 36
      add("gone", 1) add("kept", 2)
      replace("5", { "kept", 2 })
      assert.are.equal(3, depth())
      assert.are.same({ "added gone@1", "added kept@2", "replaced kept@2 rv=5" }, take_all())
    end)

    it("keeps each snapshot and each bookmark apart and alone in its batch", function() -- row 43
      add("a", 1)
      replace("5", { "b", 2 }, { "c", 3 })
      add("d", 6)
      bookmark("7")
      bookmark("8")
      replace("9")
      assert.are.same({ "added a@1" }, take())
      assert.are.same({ "replaced b@2 c@3 rv=5" }, take())
      assert.are.same({ "added d@6" }, take())
      assert.are.same({ "bookmark rv=7" }, take())
      assert.are.same({ "bookmark rv=8" }, take())
      assert.are.same({ "replaced rv=9" }, take())
    end)

    it("queues each resync as one delta behind what is pending", function() -- rows 39, 44
      add("a", 1)
      C.mw_delta_fifo_resync(fifo)
      update("a", 2)
      assert.are.same({ "added a@1", "sync", "updated a@2" }, take_all())
      C.mw_delta_fifo_resync(fifo)
      update("a", 3)
      C.mw_delta_fifo_resync(fifo)  -- nobody needs a second before the first
      assert.are.same({ "sync", "updated a@3" }, take_all())
      C.mw_delta_fifo_resync(fifo)
      assert.are.same({ "sync" }, take_all())
      assert.are.equal(1, tonumber(C.mw_delta_fifo_coalesced(fifo)))
    end)

    it("splits batches before a key that is in the batch and after 256 deltas", function() -- row 41
      for i = 1, 300 do add("p" .. i, i) end
      add("p300", 301)
      assert.are.equal(256, #take())
      assert.are.equal(44, #take())
      assert.are.same({ "added p300@301" }, take())
    end)

    it("drops what is still queued when it is freed", function()
      add("a", 1)
      replace("5", { "b", 2 })
      bookmark("6")
    end)
  end)

  describe("synced state", function()
    it("is false while nothing came, and bookmarks and resyncs do not count", function() -- row 38
      assert.is_false(synced())
      bookmark("1")
      C.mw_delta_fifo_resync(fifo)
      take_all()
      assert.is_false(synced())
    end)

    it("is true at once when a plain delta comes before any snapshot", function() -- row 38
      add("a", 1)
      assert.is_true(synced())
      pop()
      assert.is_false(batch.initial)
      done()
      replace("5", { "a", 1 })
      assert.is_true(synced())
    end)

    it("waits until the first snapshot has been applied, not just taken", function() -- rows 37, 38
      replace("5", { "a", 1 }, { "b", 2 })
      assert.is_false(synced())
      assert.are.equal(1, #pop())
      assert.is_true(batch.initial)
      assert.is_false(synced())
      done()
      assert.is_true(synced())
    end)

    it("waits for an empty snapshot too", function() -- row 38
      replace("5")
      assert.is_false(synced())
      take()
      assert.is_true(synced())
    end)

    it("counts what was queued before the first snapshot as initial", function() -- row 37
      bookmark("1")
      replace("5", { "a", 1 })
      add("b", 6)
      pop()
      assert.is_true(batch.initial)
      done()
      assert.is_false(synced())
      pop()
      assert.is_true(batch.initial)
      done()
      assert.is_true(synced())
      pop()
      assert.is_false(batch.initial)
      done()
    end)

    it("is not confused by a batch that was taken before the first snapshot came", function()
      bookmark("1")
      pop()
      replace("5", { "a", 1 })
      done()
      assert.is_false(synced())
      take()
      assert.is_true(synced())
    end)

    it("never reverts", function() -- row 38
      replace("5", { "a", 1 })
      take()
      replace("6", { "b", 1 })
      assert.is_true(synced())
      pop()
      assert.is_false(batch.initial)
      done()
    end)
  end)

  describe("waking", function()
    it("happens when an empty queue gets its first delta, not for the ones behind it", function()
      add("a", 1) add("b", 2)
      assert.are.equal(1, wakes)
      take()
      assert.are.equal(1, wakes)
      bookmark("3")
      assert.are.equal(2, wakes)
    end)

    it("happens once on close, and what is queued can still be taken", function() -- row 45
      add("a", 1)
      C.mw_delta_fifo_close(fifo)
      C.mw_delta_fifo_close(fifo)
      assert.are.equal(2, wakes)
      assert.are.same({ "added a@1" }, take())
      assert.are.same({}, take())
    end)
  end)

  describe("past its bound", function()
    it("keeps the newest upsert of a key at the place of the oldest", function()
      renew(3)
      add("a", 1) add("b", 2) add("c", 3) update("a", 4) update("b", 5) update("a", 6)
      assert.are.equal(3, depth())
      assert.are.equal(3, coalesced())
      assert.are.same({ "updated a@6 rv=1", "updated b@5 rv=2", "added c@3" }, take())
    end)

    it("does not merge before the bound is passed, and stops at half of it", function()
      renew(4)
      add("a", 1) update("a", 2) update("a", 3) update("a", 4)
      assert.are.equal(4, depth())
      update("a", 5)
      assert.are.equal(1, depth())
      assert.are.equal(4, coalesced())
      take()
      add("a", 6) update("a", 7)
      assert.are.equal(2, depth())
      assert.are.equal(4, coalesced())
    end)

    it("keeps a deletion and the upsert behind it", function()
      renew(2)
      update("a", 1) add("x", 2) add("y", 3)
      delete("a", 4) add("a", 5, { uid = "new" }) update("a", 6, { uid = "new" })
      assert.are.same({ "deleted a@4 rv=1", "added x@2", "added y@3" }, take())
      assert.are.same({ "updated a@6 rv=5" }, take())
    end)

    it("forgets what came and went behind a queued deletion", function()
      renew(2)
      delete("a", 1, { uid = "known" }) add("x", 2) add("y", 3)
      add("a", 4) delete("a", 5)
      assert.are.equal(3, depth())
      add("a", 6)
      assert.are.equal(4, depth())
      assert.are.same({ "deleted a@1", "added x@2", "added y@3" }, take())
      assert.are.same({ "added a@6 rv=4" }, take())
      assert.are.equal(0, depth())
    end)

    it("skips the holes that merging left, also at the end", function()
      renew(2)
      delete("a", 1) add("x", 2) add("y", 3) add("a", 4) delete("a", 5)
      assert.are.same({ "deleted a@1", "added x@2", "added y@3" }, take())
      assert.are.same({}, take())
      add("a", 6)
      assert.are.same({ "added a@6" }, take())
    end)

    it("merges nothing across a snapshot or a resync", function()
      renew(2)
      add("a", 1) add("b", 2) update("a", 3) update("a", 4)
      replace("5", { "a", 4 })
      update("a", 6) update("a", 7)
      C.mw_delta_fifo_resync(fifo)
      update("a", 8) update("a", 9)
      assert.are.same({ "updated a@4 rv=1", "added b@2", "replaced a@4 rv=5", "updated a@7 rv=6",
        "sync", "updated a@9 rv=8" }, take_all())
    end)

    it("lets a queued resync stand for the next, as young as that", function()
      for _, bound in ipairs { 2, 100 } do
        renew(bound)
        add("a", 1) add("b", 2) add("c", 3)
        C.mw_delta_fifo_resync(fifo)
        local before = C.mw_clock_now()
        C.mw_delta_fifo_resync(fifo)
        assert.are.same({ "added a@1", "added b@2", "added c@3" }, pop())
        done()
        assert.are.same({ "sync" }, pop())
        assert.is_true(batch.deltas[0].queued_at >= before)
        done()
        assert.are.equal(0, depth())
        C.mw_delta_fifo_resync(fifo)
        assert.are.same({ "sync" }, take_all())
      end
    end)

    it("tells with the last batch which version was reached", function()
      renew(2)
      add("a", 1) add("b", 2) add("c", 3) update("a", 4)
      bookmark("9")
      pop()
      assert.are.equal("9", ffi.string(batch.rv))
      done()
      add("a", 10)
      pop()
      assert.are.equal("", ffi.string(batch.rv))
      done()
    end)

    it("does not claim a version while a delta behind the merge is queued", function()
      renew(2)
      add("a", 1) add("b", 2) add("c", 3) update("a", 4) add("d", 5)
      pop()
      assert.are.equal("", ffi.string(batch.rv))
      done()
    end)

    it("stays in proportion to the keys, whatever churns", function()
      renew(64)
      math.randomseed(7)
      for i = 1, 20000 do
        local name = "p" .. math.random(1, 100)
        if math.random() < 0.4 then delete(name, i) else update(name, i) end
        if i % 500 == 0 then bookmark(tostring(i)) end
      end
      assert.is_true(depth() <= 264, depth())
      assert.are.equal(20040, depth() + coalesced())
    end)

    it("keeps at most two snapshots, the first and the newest", function()
      replace("1", { "a", 1 })
      add("b", 2)
      replace("3", { "a", 1 }, { "b", 2 })
      add("c", 4)
      C.mw_delta_fifo_resync(fifo)
      replace("5", { "c", 4 })
      assert.are.equal(3, coalesced())
      assert.are.same({ "replaced a@1 rv=1", "added b@2", "replaced c@4 rv=5" }, take_all())
      assert.is_true(synced())
    end)
  end)

  it("ends in the same store as an unbounded queue, for any sequence", function() -- row 53
    math.randomseed(42)
    for round = 1, 30 do
      renew(1 + round % 7)
      local model, store, version = {}, {}, 0
      local function drain_some(all)
        repeat
          local n = tonumber(C.mw_delta_fifo_pop(fifo, batch))
          for i = 0, n - 1 do
            local d = batch.deltas[i]
            local kind = names[tonumber(d.type)]
            if kind == "replaced" then
              store = {}
              for j = 0, tonumber(d.all.n) - 1 do
                store[kit.key(d.all.v[j])] = kit.rv(d.all.v[j])
              end
            elseif kind == "deleted" then
              store[kit.key(d.object)] = nil
            elseif d.object ~= nil then
              store[kit.key(d.object)] = kit.rv(d.object)
            end
          end
          done()
        until n == 0 or not all
      end
      for _ = 1, 200 do
        version = version + 1
        local name, dice = "p" .. math.random(1, 6), math.random()
        if dice < 0.35 then
          delete(name, version)
          model["default/" .. name] = nil
        elseif dice < 0.85 then
          update(name, version)
          model["default/" .. name] = tostring(version)
        elseif dice < 0.88 then
          model = { ["default/p1"] = tostring(version) }
          replace(tostring(version), { "p1", version })
        elseif dice < 0.9 then
          bookmark(tostring(version))
        elseif dice < 0.95 then
          drain_some(false)
        end
      end
      drain_some(true)
      assert.are.same(model, store)
      assert.are.equal(0, depth())
    end
  end)
end)
