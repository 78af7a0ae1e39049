-- The sandbox's store against a model that keeps every state it ever had.
require "spec.support.sandbox_env"
local json = require "kube.sandbox.json"
local ordered = require "kube.sandbox.ordered"
local store = require "kube.sandbox.store"
local support = require "spec.support.codec"

local CONFIG_MAPS = { storage = "configmaps" }
local NODES = { storage = "nodes" }

local function document(name, value)
  return json.object { metadata = json.object { name = name }, value = value }
end

local function values(docs)
  local out = {}
  for i, doc in ipairs(docs) do out[i] = doc.metadata.name .. "=" .. tostring(doc.value) end
  return table.concat(out, " ")
end

describe("the store", function()
  it("numbers writes through all storages and puts the number into the document", function()
    local s = store.new { first_revision = 5 }
    assert.equal("6", s:create(CONFIG_MAPS, "a/x", document "x").metadata.resourceVersion)
    assert.equal("7", s:create(NODES, "n", document "n").metadata.resourceVersion)
    assert.equal("8", s:update(CONFIG_MAPS, "a/x", document "x").metadata.resourceVersion)
    local gone = s:delete(CONFIG_MAPS, "a/x")
    assert.equal("9", gone.metadata.resourceVersion)
    assert.equal(9, s.revision)
    assert.is_nil(s:get("configmaps", "a/x"))
    assert.equal("7", s:get("nodes", "n").metadata.resourceVersion)
  end)

  it("leaves the caller's tables and the older documents as they were", function()
    local s = store.new()
    local doc = document("x", 1)
    local first = s:create(CONFIG_MAPS, "a/x", doc)
    assert.is_nil(doc.metadata.resourceVersion)
    s:update(CONFIG_MAPS, "a/x", first)
    assert.equal("2", first.metadata.resourceVersion)
  end)

  it("keeps numbers beyond a double's short form whole", function()
    local s = store.new { first_revision = 123456789012345 }
    assert.equal("123456789012346", s:create(NODES, "n", document "n").metadata.resourceVersion)
  end)

  it("lists in byte order of namespace/name, and one namespace only when asked", function()
    local s = store.new()
    for _, key in ipairs { "a/z", "a-b/x", "ab/x", "a/b", "a0/x" } do
      s:create(CONFIG_MAPS, key, document(key))
    end
    assert.equal("a-b/x=nil a/b=nil a/z=nil a0/x=nil ab/x=nil", values(s:scan("configmaps")))
    assert.equal("a/b=nil a/z=nil", values(s:scan("configmaps", "a")))
    assert.equal("", values(s:scan("configmaps", "b")))
  end)

  it("tells subscribers of changes in order, also of those that a subscriber makes", function()
    local s, seen = store.new(), {}
    s:subscribe("configmaps", function(change)
      if change.type == "ADDED" then s:update(CONFIG_MAPS, change.key, document("x", 2)) end
    end)
    local second = s:subscribe("configmaps", function(change) table.insert(seen, change.type .. change.rev) end)
    s:subscribe_all(function(change, name) table.insert(seen, name .. change.rev) end)
    s:create(CONFIG_MAPS, "a/x", document "x")
    second:cancel()
    s:create(NODES, "n", document "n")
    s:delete(CONFIG_MAPS, "a/x")
    assert.equal("ADDED2 configmaps2 MODIFIED3 configmaps3 nodes4 configmaps5", table.concat(seen, " "))
  end)

  it("says what a change was before and after", function()
    local s, changes = store.new(), {}
    s:subscribe("nodes", function(change) table.insert(changes, change) end)
    local first = s:create(NODES, "n", document("n", 1))
    local second = s:update(NODES, "n", document("n", 2))
    s:delete(NODES, "n", document("n", 3))
    assert.equal(first, changes[2].old)
    assert.equal(second, changes[3].old)
    assert.equal(3, changes[3].new.value)
    assert.equal("4", changes[3].new.metadata.resourceVersion)
    assert.equal(second, s:scan_at("nodes", nil, 3)[1])
  end)

  it("forgets the oldest changes when there are too many, each storage for itself", function()
    local s = store.new { history = 3 }
    s:create(NODES, "n", document "n")
    for i = 1, 5 do s:create(CONFIG_MAPS, "a/" .. i, document(tostring(i), i)) end
    assert.equal(4, s:oldest("configmaps"))
    assert.equal(3, #s:changes("configmaps", 4))
    assert.same({ nil, "expired" }, { s:changes("configmaps", 3) })
    assert.same({ nil, "expired" }, { s:scan_at("configmaps", nil, 3) })
    assert.same({ nil, "future" }, { s:scan_at("configmaps", nil, 8) })
    assert.equal("1=1 2=2", values(s:scan_at("configmaps", nil, 4)))
    assert.equal(1, #s:changes("nodes", 1))
  end)

  it("forgets old changes when the states they hold grow too large", function()
    local s = store.new { history_bytes = 100000 }
    local big = ("x"):rep(10000)
    s:create(CONFIG_MAPS, "a/x", document("x", big))
    for i = 1, 50 do s:update(CONFIG_MAPS, "a/x", document("x", big .. i)) end
    local kept = s.revision - s:oldest("configmaps")
    assert.is_true(kept >= 5 and kept <= 10, kept)
  end)

  it("expires history on demand, also of storages that nobody used yet", function()
    local s = store.new()
    for i = 1, 3 do s:create(CONFIG_MAPS, "a/" .. i, document(tostring(i), i)) end
    s:expire()
    assert.equal(4, s:oldest("configmaps"))
    assert.equal(4, s:oldest("nodes"))
    assert.is_nil(s:changes("configmaps", 3))
    assert.same({}, s:changes("configmaps", 4))
    assert.equal("1=1 2=2 3=3", values(s:scan_at("configmaps", nil, 4)))
  end)

  it("restores a snapshot, through JSON too, and makes what clients knew expire", function()
    local s, restored = store.new(), 0
    s:create(CONFIG_MAPS, "a/x", document("x", 1))
    s:create(NODES, "n", document("n", 1))
    local snapshot = json.decode(json.encode(s:snapshot()))
    s:update(CONFIG_MAPS, "a/x", document("x", 2))
    s:create(CONFIG_MAPS, "a/y", document("y", 2))
    s:on_restore(function() restored = restored + 1 end)
    s:restore(snapshot)
    assert.equal("x=1", values(s:scan("configmaps")))
    assert.equal("n=1", values(s:scan("nodes")))
    assert.equal(6, s.revision)
    assert.is_nil(s:changes("configmaps", 5))
    assert.equal(1, restored)

    local fresh = store.new()
    fresh:restore(snapshot)
    assert.equal(3, fresh.revision)
    assert.equal("2", fresh:get("configmaps", "a/x").metadata.resourceVersion)
  end)

  it("forgets the past of a storage that is dropped", function()
    local s = store.new()
    s:create(NODES, "n", document "n")
    s:delete(NODES, "n")
    s:drop("nodes")
    assert.equal(3, s:oldest("nodes"))
    s:create(NODES, "n", document "n")
    assert.has_error(function() s:drop("nodes") end)
  end)
end)

-- Random writes, each followed by a copy of the whole state.
local function random_run(random, s, writes)
  local state, states = {}, { [s.revision] = "" }
  local function render()
    local keys, out = {}, {}
    for key in pairs(state) do keys[#keys + 1] = key end
    table.sort(keys)
    for i, key in ipairs(keys) do out[i] = key .. "=" .. state[key] end
    return table.concat(out, " ")
  end
  for i = 1, writes do
    local key = ("%s/%d"):format(({ "a", "a-b", "b" })[random(3)], random(12))
    if not state[key] then
      s:create(CONFIG_MAPS, key, document(key, i))
      state[key] = i
    elseif random(3) == 1 then
      s:delete(CONFIG_MAPS, key)
      state[key] = nil
    else
      s:update(CONFIG_MAPS, key, document(key, i))
      state[key] = i
    end
    states[s.revision] = render()
    if random(4) == 1 then
      s:create(NODES, "n" .. i, document "n")
      states[s.revision] = states[s.revision - 1]
    end
  end
  return states
end

local function of_namespace(text, namespace)
  local out = {}
  for word in text:gmatch("%S+") do
    if word:match("^[^/]+") == namespace then out[#out + 1] = word end
  end
  return table.concat(out, " ")
end

describe("the store's past", function()
  it("is what it was, at every revision that is still known", function()
    for seed = 1, 15 do
      local random = support.random(seed)
      local s = store.new { history = 60 }
      local states = random_run(random, s, 150)
      local oldest = s:oldest("configmaps")
      for revision = 1, s.revision do
        local docs, why = s:scan_at("configmaps", nil, revision)
        if revision < oldest then
          assert.equal("expired", why)
        else
          assert.equal(states[revision], values(docs))
          assert.equal(of_namespace(states[revision], "a"), values(s:scan_at("configmaps", "a", revision)))
          local view = s:view("configmaps", revision)
          assert.equal(#docs, view:count())
          assert.equal(#s:scan_at("configmaps", "b", revision), view:count(store.bounds("b")))
        end
      end
    end
  end)

  it("is reached again by replaying the changes since", function()
    local s = store.new { history = 80 }
    local states = random_run(support.random(77), s, 200)
    for since = s:oldest("configmaps"), s.revision do
      local state, out = {}, {}
      for _, doc in ipairs(s:scan_at("configmaps", nil, since)) do state[doc.metadata.name] = doc.value end
      for _, change in ipairs(s:changes("configmaps", since)) do
        state[change.key] = change.type ~= "DELETED" and change.new.value or nil
      end
      for key, value in pairs(state) do out[#out + 1] = key .. "=" .. value end
      table.sort(out, function(a, b) return a:match("^[^=]+") < b:match("^[^=]+") end)
      assert.equal(states[s.revision], table.concat(out, " "))
    end
  end)
end)

describe("a sorted set", function()
  it("can be emptied from either end and filled again", function()
    local set = ordered.new()
    for round = 1, 3 do
      for i = 1, 2000 do set:insert(("%05d"):format(i * round)) end
      for i = 1, 1999 do
        set:remove(("%05d"):format((round == 1 and i or 2001 - i) * round))
        if i % 100 == 0 then
          assert.equal(2000 - i, set:count("0"))
          set:insert("0")
          assert.equal("0", set:each()())
          set:remove("0")
        end
      end
      set:remove(("%05d"):format((round == 1 and 2000 or 1) * round))
      assert.equal(0, set:count())
      assert.is_nil(set:each()())
    end
  end)

  it("walks and counts like a sorted array, whatever comes and goes", function()
    local random = support.random(3)
    local set, model = ordered.new(), {}
    for round = 1, 4000 do
      local key = tostring(random(1, 1500))
      if model[key] then set:remove(key) else set:insert(key) end
      model[key] = not model[key] or nil
      if round % 400 == 0 then
        local keys, first, stop = {}, tostring(random(1, 1500)), tostring(random(1, 1500))
        for k in pairs(model) do keys[#keys + 1] = k end
        table.sort(keys)
        local between, walked = {}, {}
        for _, k in ipairs(keys) do
          if k >= first and k < stop then between[#between + 1] = k end
        end
        for k in set:each(first, stop) do walked[#walked + 1] = k end
        assert.same(between, walked)
        assert.equal(#between, set:count(first, stop))
        assert.equal(#keys, set:count())
        assert.equal(#keys, set.size)
      end
    end
  end)
end)
