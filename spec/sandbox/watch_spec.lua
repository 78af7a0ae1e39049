-- Watches of the sandbox: where they begin, what they show, when they end, and how they are held.
require "spec.support.sandbox_env"
local json = require "kube.sandbox.json"
local reads = require "spec.support.sandbox_reads"
local support = require "spec.support.codec"

local ALL = "/api/v1/configmaps?watch=1"
local CM = "/api/v1/namespaces/default/configmaps?watch=1"
local INITIAL = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"

local function put(rig, name, labels) return rig:put(rig.config_maps, "default", name, { labels = labels }) end

describe("a watch", function()
  local rig

  before_each(function()
    rig = reads.new()
    put(rig, "a", { x = "1" })
    put(rig, "b")
  end)

  it("answers with a stream of JSON lines", function()
    local stream = rig:watch(CM .. "&resourceVersion=2")
    assert.equal(200, stream.response.status)
    assert.same({ "Content-Type", "application/json" }, stream.response.headers[2])
    assert.equal('{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":'
      .. '{"name":"b","namespace":"default","resourceVersion":"3"}}}\n', stream.text)
  end)

  it("whose events cannot be written ends alone", function()
    local broken, whole = rig:watch(CM .. "&resourceVersion=3"), rig:watch(CM .. "&resourceVersion=3")
    local first = rig.S.watches.storages.configmaps[1]
    first.event = function() error("a mistake") end
    put(rig, "c")
    rig.turn()
    assert.is_true(broken.cut)
    assert.equal("ADDED c/4", whole:short())
    assert.equal(1, rig.S.watches.count)
  end)

  it("begins with the state when no version is named, and says where that ends if bookmarks may be sent", function()
    for _, query in ipairs { "", "&resourceVersion=0", INITIAL, INITIAL .. "&resourceVersion=2" } do
      assert.equal("ADDED a/2 ADDED b/3", rig:watch(CM .. query):short())
      local events = rig:watch(CM .. query .. "&allowWatchBookmarks=true"):events()
      assert.equal(3, #events)
      assert.equal("BOOKMARK", events[3].type)
      assert.same({ kind = "ConfigMap", apiVersion = "v1", metadata = {
        resourceVersion = "3", annotations = { ["k8s.io/initial-events-end"] = "true" },
      } }, events[3].object)
    end
  end)

  it("replays what happened since a version, then goes on live", function()
    put(rig, "a")
    rig:delete(rig.config_maps, "default", "b")
    local stream = rig:watch(CM .. "&resourceVersion=2")
    assert.equal("ADDED b/3 MODIFIED a/4 DELETED b/5", stream:short())
    put(rig, "c")
    assert.equal("", stream.text)
    rig.turn()
    assert.equal("ADDED c/6", stream:short())
  end)

  it("begins with nothing when no initial events are wanted", function()
    local query = "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
    local stream, any = rig:watch(CM .. query), rig:watch(CM .. query .. "&resourceVersion=0")
    put(rig, "c")
    rig.turn()
    assert.equal("ADDED c/4", stream:short())
    assert.equal("ADDED c/4", any:short())
  end)

  it("sees its own namespace and kind only", function()
    local one, all = rig:watch(CM .. "&resourceVersion=3"), rig:watch(ALL .. "&resourceVersion=3")
    put(rig, "c")
    rig:put(rig.config_maps, "default0", "d")
    rig:put(rig.widgets, "default", "w")
    rig.turn()
    assert.equal("ADDED c/4", one:short())
    assert.equal("ADDED c/4 ADDED d/5", all:short())
  end)

  it("waits in silence for a version of the future", function()
    local stream = rig:watch(CM .. "&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=200")
    rig:advance(61)
    put(rig, "c")
    put(rig, "c")
    rig.turn()
    assert.equal("", stream:short())
    rig:advance(61)
    rig.turn()
    assert.equal("BOOKMARK -/5", stream:short())
    put(rig, "c")
    rig.turn()
    assert.equal("MODIFIED c/6", stream:short())
  end)

  it("ends with one ERROR event when its version is forgotten, or is the future of a state", function()
    put(rig, "c")
    rig.store:expire()
    local stream = rig:watch(CM .. "&resourceVersion=2")
    local events = stream:events()
    assert.equal(1, #events)
    assert.equal("ERROR", events[1].type)
    assert.same({ kind = "Status", apiVersion = "v1", metadata = {}, status = "Failure", reason = "Expired",
      code = 410, message = "too old resource version: 2 (4)" }, events[1].object)
    assert.is_true(stream.finished)
    assert.equal(0, rig.S.watches.count)

    stream = rig:watch(CM .. INITIAL .. "&resourceVersion=99")
    events = stream:events()
    assert.equal("ERROR", events[1].type)
    assert.equal("Timeout: Too large resource version: 99, current: 4", events[1].object.message)
    assert.is_true(stream.finished)
  end)

  it("shows objects that come into and go out of a selection as created and deleted", function()
    local stream = rig:watch(CM .. "&resourceVersion=3&labelSelector=x%3D1")
    put(rig, "b", { x = "1" })
    put(rig, "b", { x = "1", y = "2" })
    put(rig, "b", { x = "2" })
    put(rig, "b", { x = "3" })
    rig:delete(rig.config_maps, "default", "b")
    rig:delete(rig.config_maps, "default", "a")
    rig.turn()
    local events = stream:events()
    local out = {}
    for i, e in ipairs(events) do out[i] = e.type .. " " .. e.object.metadata.resourceVersion end
    assert.equal("ADDED 4 MODIFIED 5 DELETED 6 DELETED 9", table.concat(out, " "))
    assert.same({ x = "1", y = "2" }, events[3].object.metadata.labels)
    assert.same({ x = "1" }, events[4].object.metadata.labels)
  end)

  it("replays such transitions as it shows them live", function()
    put(rig, "a", { x = "2" })
    put(rig, "a", { x = "1" })
    assert.equal("DELETED a/4 ADDED a/5", rig:watch(CM .. "&resourceVersion=3&labelSelector=x%3D1"):short())
  end)

  it("follows one object by a field selector", function()
    local stream = rig:watch(CM .. "&fieldSelector=metadata.name%3Da")
    put(rig, "b")
    put(rig, "a")
    rig.turn()
    assert.equal("ADDED a/2 MODIFIED a/5", stream:short())
  end)

  it("sends a bookmark each minute and two seconds before its end, if it may", function()
    local quiet = rig:watch(CM .. "&resourceVersion=3&timeoutSeconds=70")
    local stream = rig:watch(CM .. "&resourceVersion=3&timeoutSeconds=70&allowWatchBookmarks=true")
    rig:advance(59)
    rig.turn()
    assert.equal("", stream:short())
    rig:put(rig.widgets, "default", "w")
    rig:advance(1)
    rig.turn()
    local events = stream:events()
    assert.same({ kind = "ConfigMap", apiVersion = "v1", metadata = { resourceVersion = "4" } }, events[1].object)
    rig:advance(8)
    rig.turn()
    assert.equal("BOOKMARK -/4", stream:short())
    assert.is_nil(stream.finished)
    rig:advance(2)
    assert.is_true(stream.finished)
    assert.equal("", quiet:short())
    assert.equal(0, rig.S.watches.count)
    assert.same({}, rig.S.clock.timers)
  end)

  it("ends after timeoutSeconds, at once if that is negative, else between half an hour and an hour", function()
    assert.is_true(rig:watch(CM .. "&timeoutSeconds=-1").finished)
    local stream = rig:watch(CM .. "&timeoutSeconds=0")
    rig:advance(1799)
    assert.is_nil(stream.finished)
    rig:advance(1802)
    assert.is_true(stream.finished)
  end)

  it("refuses options that do not go together, and versions that are none", function()
    local head = 'ListOptions.meta.k8s.io "" is invalid: '
    local requires = "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to "
      .. "NotOlderThan"
    local unless = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless "
      .. "sendInitialEvents is provided"
    local unsupported = 'resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"'
    for query, text in pairs {
      ["&sendInitialEvents=true"] = requires,
      ["&sendInitialEvents=false"] = requires,
      ["&sendInitialEvents=true&resourceVersionMatch=Exact"] = ("[%s, %s]"):format(requires, unsupported),
      ["&resourceVersionMatch=NotOlderThan"] = unless,
      ["&resourceVersionMatch=Exact"] = ("[%s, %s]"):format(unless, unsupported),
      ["&continue=abc"] =
        "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
    } do
      local stream, code, document = rig:watch(CM .. query)
      assert.is_nil(stream)
      assert.equal(422, code)
      assert.equal(head .. text, document.message)
    end
    local _, code, document = rig:watch(CM .. "&resourceVersion=abc")
    assert.equal(500, code)
    assert.is_nil(document.reason)
    assert.equal('resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
      document.message)
  end)

  it("shows metadata only when asked, errors always as they are", function()
    local accept = { accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io" }
    local events = rig:watch(CM .. "&allowWatchBookmarks=1", accept):events()
    assert.equal("PartialObjectMetadata", events[1].object.kind)
    assert.equal("meta.k8s.io/v1", events[1].object.apiVersion)
    assert.equal("PartialObjectMetadata", events[3].object.kind)
    rig.store:expire()
    for _, as in ipairs { "PartialObjectMetadata", "Table" } do
      accept = { accept = ("application/json;as=%s;v=v1;g=meta.k8s.io"):format(as) }
      local object = rig:watch("/apis/ex.io/v1/widgets?watch=1&resourceVersion=1", accept):events()[1].object
      assert.equal("Status", object.kind)
      assert.equal("v1", object.apiVersion)
    end
  end)
end)

describe("the watchers", function()
  local rig

  before_each(function() rig = reads.new() end)

  it("share one encoding of each change, and get a burst in one write", function()
    local streams = {}
    for i = 1, 50 do streams[i] = rig:watch(ALL .. "&resourceVersion=1") end
    for i = 1, 20 do put(rig, "o" .. i) end
    rig.turn()
    assert.equal(20, rig.S.watches.texts.count)
    for _, stream in ipairs(streams) do
      assert.equal(1, stream.writes)
      assert.equal(20, #stream:events())
    end
  end)

  it("are forgotten when their client leaves or takes no more", function()
    local leaving, refusing, staying = rig:watch(ALL), rig:watch(ALL), rig:watch(ALL)
    leaving.leave()
    refusing.refuses = true
    put(rig, "a")
    rig.turn()
    assert.equal(1, rig.S.watches.count)
    assert.equal("ADDED a/2", staying:short())
    assert.equal("", leaving.text)
  end)

  -- A client that takes nothing until drain() is called.
  local function slow_client(target)
    local response = rig:call(require("kube.sandbox.watch").run, target)
    local client = { sent = "", waiting = 0 }
    response.stream {
      write = function(_, bytes)
        client.sent, client.waiting = client.sent .. bytes, client.waiting + #bytes
        return true
      end,
      backlog = function() return client.waiting end,
      on_drain = function(_, fn) client.drained = fn end,
      on_gone = function() end,
      finish = function() client.over = "finished" end,
      reset = function() client.over = "reset" end,
    }
    function client.drain()
      client.waiting = 0
      client.drained()
      return client.waiting > 0
    end
    return client
  end

  local function put_big(name) rig:put(rig.config_maps, "default", name, { data = { big = ("x"):rep(50000) } }) end

  it("wait while the socket of their client is full, and go on when it is empty", function()
    for i = 1, 30 do put_big("o" .. i) end
    local client = slow_client(ALL)
    for i = 31, 60 do put_big("o" .. i) end
    rig.turn()
    repeat assert.is_true(client.waiting < 200000, client.waiting) until not client.drain()
    assert.equal(60, select(2, client.sent:gsub("\n", "")))
    assert.is_nil(client.over)
  end)

  it("are cut when what waits for them is more than the store remembers; the others go on", function()
    rig = reads.new { history = 20 }
    put_big("first")
    put_big("second")
    local slow, other, brisk = slow_client(ALL), slow_client(ALL), rig:watch(ALL .. "&resourceVersion=3")
    for i = 1, 40 do
      put_big("o" .. i)
      rig.turn()
      while other.drain() do end
    end
    assert.equal("reset", slow.over)
    assert.equal(2, select(2, slow.sent:gsub("\n", "")))
    assert.is_nil(other.over)
    assert.equal(42, select(2, other.sent:gsub("\n", "")))
    assert.equal(40, #brisk:events())
    assert.equal(2, rig.S.watches.count)
  end)

  it("are not cut by a burst in one turn, however long", function()
    rig = reads.new { history = 20 }
    local stream = rig:watch(ALL)
    for i = 1, 100 do put(rig, "o" .. i) end
    rig.turn()
    assert.equal(100, #stream:events())
    assert.is_nil(stream.cut)
  end)

  it("are dropped when too much is held back from them", function()
    rig.S.watches.pending_max = 10
    local stream = rig:watch(ALL)
    rig.S.watches:pause()
    for i = 1, 11 do put(rig, "o" .. i) end
    assert.is_true(stream.finished)
    assert.equal("", stream.text)
    assert.equal(0, rig.S.watches.count)
  end)

  it("can be held back, led step by step, and let go", function()
    local hub = rig.S.watches
    local early = rig:watch(ALL)
    hub:pause()
    for i = 1, 4 do put(rig, "o" .. i) end
    rig.turn()
    local late = rig:watch(ALL .. "&resourceVersion=3")
    assert.equal("", early:short() .. late:short())
    hub:step()
    assert.equal("ADDED o1/2", early:short())
    assert.equal("ADDED o3/4", late:short())
    hub:step(2)
    assert.equal("ADDED o2/3 ADDED o3/4", early:short())
    assert.equal("ADDED o4/5", late:short())
    local state = hub:state()
    assert.is_true(state.paused)
    assert.same({ resource = "configmaps", sent = 3, pending = 1 }, state.items[1])
    hub:resume()
    assert.equal("ADDED o4/5", early:short())
    put(rig, "o5")
    rig.turn()
    assert.equal("ADDED o5/6", late:short())
  end)

  it("end when the kind goes away, when a snapshot is restored and at shutdown", function()
    local maps, widgets = rig:watch(ALL), rig:watch("/apis/ex.io/v1/widgets?watch=1")
    rig:put(rig.widgets, "default", "w")
    rig.S.watches:finish("ex.io/widgets")
    assert.equal("ADDED w/2", widgets:short())
    assert.is_true(widgets.finished)
    assert.is_nil(maps.finished)
    rig.store:restore(rig.store:snapshot())
    assert.is_true(maps.finished)
    local last = rig:watch(ALL)
    rig.S.watches:close()
    assert.is_true(last.finished)
    put(rig, "late")
    assert.equal(0, rig.S.watches.count)
  end)

  it("can be cut like a broken connection", function()
    local stream = rig:watch(ALL)
    rig.S.watches:cut()
    assert.is_true(stream.cut)
    assert.is_nil(stream.finished)
    assert.equal(0, rig.S.watches.count)
  end)

  it("may leave while others are served", function()
    local first, second = rig:watch(ALL), rig:watch(ALL)
    first.write = function()
      second.leave()
      return true
    end
    put(rig, "a")
    rig.turn()
    assert.equal(1, rig.S.watches.count)
    assert.equal("", second.text)
  end)
end)

describe("remembered texts", function()
  local encoded = require "kube.sandbox.encoded"

  it("are made once per document and form, and again only after much else", function()
    local texts = encoded.new(100)
    local function encode() return ("x"):rep(40) end
    local docs = {}
    for i = 1, 8 do docs[i] = {} end
    texts:get(docs[1], "a", encode)
    texts:get(docs[1], "a", encode)
    assert.equal(1, texts.count)
    texts:get(docs[1], "b", encode)
    assert.equal(2, texts.count)
    for i = 2, 8 do texts:get(docs[i], "a", encode) end
    assert.equal(9, texts.count)
    texts:get(docs[8], "a", encode)
    texts:get(docs[1], "a", encode)
    assert.equal(10, texts.count)
  end)

  it("keep no document alive", function()
    local texts = encoded.new()
    local seen = setmetatable({}, { __mode = "k" })
    local doc = {}
    seen[doc] = true
    texts:get(doc, "a", function() return "text" end)
    doc = nil -- luacheck: ignore 311
    collectgarbage()
    collectgarbage()
    assert.is_nil(next(seen))
  end)
end)

describe("list and watch together", function()
  -- What a client knows after a list and a watch from its version is what is there.
  it("never miss and never repeat a change, whatever the selector", function()
    for seed = 1, 10 do
      local random = support.random(seed)
      local rig = reads.new { history = 40 }
      local clients = {}
      local function connect(selector)
        local _, document = rig:list("/api/v1/configmaps?labelSelector=" .. selector)
        local known = {}
        for _, item in ipairs(document.items) do known[item.metadata.name] = item.metadata.resourceVersion end
        local version = tonumber(document.metadata.resourceVersion)
        clients[#clients + 1] = { known = known, selector = selector, version = version }
      end
      for _ = 1, 120 do
        local name = "o" .. random(8)
        if rig.store:get("configmaps", "default/" .. name) and random(4) == 1 then
          rig:delete(rig.config_maps, "default", name)
        else
          put(rig, name, { x = tostring(random(3)) })
        end
        if random(10) == 1 then connect(({ "x%3D1", "x!%3D1", "" })[random(3)]) end
        if random(3) == 1 then rig.turn() end
        for _, client in ipairs(clients) do
          if not client.stream and random(5) == 1 then
            client.stream = rig:watch(("/api/v1/configmaps?watch=1&resourceVersion=%d&labelSelector=%s")
              :format(client.version, client.selector))
          end
        end
      end
      rig.turn()
      for _, client in ipairs(clients) do
        local events = client.stream and client.stream:events() or {}
        local expired = events[1] and events[1].type == "ERROR"
        for _, e in ipairs(expired and {} or events) do
          local m = e.object.metadata
          local before = client.known[m.name]
          assert.equal(e.type == "ADDED", before == nil)
          assert.is_true(tonumber(m.resourceVersion) > client.version)
          client.version = tonumber(m.resourceVersion)
          client.known[m.name] = e.type ~= "DELETED" and m.resourceVersion or nil
        end
        if client.stream and not expired then
          local _, document = rig:list("/api/v1/configmaps?labelSelector=" .. client.selector)
          local now = {}
          for _, item in ipairs(document.items) do now[item.metadata.name] = item.metadata.resourceVersion end
          assert.same(now, client.known)
        end
      end
    end
  end)

  it("keep the documents of the store as they are", function()
    local rig = reads.new()
    put(rig, "a", { x = "1" })
    local before = json.encode(rig.store:get("configmaps", "default/a"))
    rig:list("/api/v1/configmaps")
    rig:watch(ALL .. "&labelSelector=x")
    put(rig, "a")
    rig.turn()
    assert.equal(before, json.encode(rig.store:changes("configmaps", 2)[1].old))
  end)
end)
