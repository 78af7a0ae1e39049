local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local types = { [0] = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "UNKNOWN" }

-- Feeds the stream in chunks: the events, the code (0 at the end) and the message.
local function watch(text, chunk, options)
  options = options or {}
  local events = {}
  local cb = ffi.cast("mw_watch_event_cb", function(_, event)
    events[#events + 1] = {
      type = types[tonumber(event.type)], text = unit.str(event.type_text), json = unit.str(event.item.json),
      name = unit.str(event.item.name), rv = unit.str(event.item.rv), has_metadata = event.item.has_metadata,
      initial_events_end = event.item.initial_events_end, is_status = event.is_status,
      code = event.status.code, message = ffi.string(event.status.message),
      refused = event.item.refused ~= nil and ffi.string(event.item.refused) or nil,
    }
    return #events == options.stop_after and options.stop_with or 0
  end)
  local err = unit.err()
  local s = C.mw_watch_split_new(C.mw_projection_default(), nil, cb, nil)
  local result = { rc = 0, events = events }
  local at = 1
  chunk = chunk or math.max(#text, 1)
  while result.rc == 0 and at <= #text do
    local piece = text:sub(at, at + chunk - 1)
    local memory = ffi.cast("char *", C.mw_xmalloc(#piece))
    ffi.copy(memory, piece, #piece)
    result.rc = C.mw_watch_split_feed(s, memory, #piece, err)
    C.mw_free(memory)
    at = at + chunk
  end
  if result.rc == 0 then result.rc = C.mw_watch_split_finish(s, err) end
  result.message = ffi.string(err.message)
  if options.again then result.again = C.mw_watch_split_feed(s, "{}", 2, err) end
  C.mw_watch_split_free(s)
  cb:free()
  return result
end
jit.off(watch)

local function failing(text, chunk)
  local r = watch(text, chunk)
  return ffi.string(C.mw_err_name(r.rc)), r.message
end

local stream = '{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a",' ..
  '"resourceVersion":"5","managedFields":[]}}}\n{"object":{"metadata":{"name":"b"},"s":"}\\""},"type":"MODIFIED"}' ..
  '{"type":"DELETED","object":{"metadata":{"name":"c"}}}\r\n\n ' ..
  '{ "type" : "BOOKMARK" , "object" : { "metadata" : { "resourceVersion" : "9" , "annotations" : ' ..
  '{ "k8s.io/initial-events-end" : "true" } } } }\n'

describe("watch splitter", function()
  unit.no_leaks()

  it("hands out events in both orders of members, with or without white space", function()
    local r = watch(stream)
    assert.equal(0, r.rc)
    assert.equal(4, #r.events)
    assert.equal("ADDED", r.events[1].type)
    assert.equal('{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"5"}}', r.events[1].json)
    assert.equal("MODIFIED", r.events[2].type)
    assert.equal('{"metadata":{"name":"b"},"s":"}\\""}', r.events[2].json)
    assert.equal("DELETED", r.events[3].type)
    assert.equal("c", r.events[3].name)
    assert.equal("BOOKMARK", r.events[4].type)
    assert.equal("9", r.events[4].rv)
    assert.is_true(r.events[4].initial_events_end)
  end)

  it("gives the same for every size of chunks", function()
    local whole = watch(stream)
    for chunk = 1, #stream do assert.are.same(whole, watch(stream, chunk)) end
  end)

  it("hands out an event that ends with its chunk though its line does not", function()
    local event = '{"type":"ADDED","object":{"metadata":{"name":"a"}}}'
    for cut = 1, #event do
      local seen = 0
      local cb = ffi.cast("mw_watch_event_cb", function() seen = seen + 1 return 0 end)
      local s = C.mw_watch_split_new(C.mw_projection_default(), nil, cb, nil)
      assert.equal(0, C.mw_watch_split_feed(s, event:sub(1, cut), cut, nil))
      assert.equal(0, C.mw_watch_split_feed(s, event:sub(cut + 1), #event - cut, nil))
      assert.equal(1, seen)
      C.mw_watch_split_free(s)
      cb:free()
    end
  end)

  it("reads the Status of an ERROR, whichever member comes first", function()
    local status = '{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired","message":"too old"}'
    for _, form in ipairs { '{"type":"ERROR","object":%s}', '{"object":%s,"type":"ERROR"}' } do
      local text = form:format(status)
      local event = watch(text).events[1]
      assert.equal("ERROR", event.type)
      assert.is_true(event.is_status)
      assert.equal(410, event.code)
      assert.equal("too old", event.message)
      assert.equal("", event.json)
    end
  end)

  it("says when the object of an ERROR is no Status", function()
    for _, object in ipairs { '{"kind":"Pod"}', "null", '"text"' } do
      local r = watch('{"type":"ERROR","object":' .. object .. "}")
      assert.equal(0, r.rc)
      assert.equal("ERROR", r.events[1].type)
      assert.is_false(r.events[1].is_status)
    end
  end)

  it("hands out a type it does not know, with its name", function()
    local event = watch('{"type":"RENAM\\u0045D","object":{"metadata":{"name":"a"}}}').events[1]
    assert.equal("UNKNOWN", event.type)
    assert.equal("RENAMED", event.text)
    assert.equal("a", event.name)
  end)

  it("reads a type that is escaped, and counts what it stands for", function()
    local function read(type) return watch('{"type":"' .. type .. '","object":{"metadata":{"name":"a"}}}') end
    assert.equal("DELETED", read("DELET\\u0045D").events[1].type)
    assert.equal(("x"):rep(1024), read(("\\u0078"):rep(1024)).events[1].text)
    assert.equal(C.MW_ELIMIT, read(("\\u0078"):rep(1025)).rc)
  end)

  it("hands out an object without metadata and says so", function()
    local event = watch('{"type":"ADDED","object":{}}').events[1]
    assert.is_false(event.has_metadata)
  end)

  it("lets the last of equal members win and ignores unknown ones", function()
    local r = watch('{"type":"ERROR","x":[1],"object":{"a":1},"object":{"a":2},"type":"ADDED"}')
    assert.equal(0, r.rc)
    assert.equal("ADDED", r.events[1].type)
    assert.equal('{"a":2}', r.events[1].json)
  end)

  it("lets the callback stop it", function()
    local r = watch(stream, nil, { stop_after = 2, stop_with = 9, again = true })
    assert.equal(9, r.rc)
    assert.equal(9, r.again)
    assert.equal(2, #r.events)
  end)

  it("ends well between events and with MW_EEOF inside one", function()
    assert.equal(0, watch("").rc)
    assert.equal(0, watch(" \n").rc)
    for cut = 1, 27 do
      local name, message = failing(('{"type":"ADDED","object":{}}'):sub(1, cut), 100)
      assert.equal("EEOF", name)
      assert.equal("the watch was cut inside an event at byte " .. cut, message)
    end
  end)

  describe("refuses", function()
    for _, case in ipairs {
      { "x", "EPARSE", "malformed JSON at byte 0: expected '{'" },
      { '{"type":"ADDED","object":{}}\n]', "EPARSE", "malformed JSON at byte 29: expected '{'" },
      { '{"type":"ADDED"}', "EPARSE", "unexpected content at byte 0: an event without an object" },
      { '{"object":{}}', "EPARSE", "unexpected content at byte 0: an event without a type" },
      { '{"type":1,"object":{}}', "EPARSE", "unexpected content at byte 8: the type is not a string" },
      { '{"type":"ADDED","object":[]}', "EPARSE", "malformed JSON at byte 25: expected '{'" },
      { '{"object":[],"type":"ADDED"}', "EPARSE", "malformed JSON at byte 10: expected '{'" },
      { '{"type":"ADDED","object":{"a":tru}}', "EPARSE", "malformed JSON at byte 33: expected a value" },
      { ' {"type":"ADDED","object":{"a":"\255"}}', "EPARSE", "invalid UTF-8 at byte 32" },
      { '{"object":{"metadata":{"name":1}},"type":"ADDED"}', "EPARSE",
        "unexpected content at byte 30: metadata.name is not a string" },
      { '{"type":"ADDED","object":{}]', "EPARSE", "malformed JSON at byte 27: expected ',' or '}'" },
      { '{"type":"' .. ("x"):rep(1025) .. '","object":{}}', "ELIMIT",
        "limit exceeded at byte 8: the type is longer than 1 KiB" },
    } do
      it(case[1]:sub(1, 60):gsub("[^ -~]", "?"), function()
        for _, chunk in ipairs { #case[1], 1 } do
          local name, message = failing(case[1], chunk)
          assert.equal(case[2], name)
          assert.equal(case[3], message)
        end
      end)
    end

    it("to go on after an error", function()
      assert.equal(C.MW_EPARSE, watch("x", nil, { again = true }).again)
    end)

  end)

  it("hands out an object that is too deep as refused, whichever member comes first, and goes on", function()
    local deep = '{"metadata":{"name":"a","resourceVersion":"7"},"x":' .. ("["):rep(300) .. ("]"):rep(300) .. "}"
    local text = ('{"type":"MODIFIED","object":%s}{"object":%s,"type":"DELETED"}'):format(deep, deep) ..
      ('{"type":"ERROR","object":%s}{"type":"ADDED","object":{"metadata":{"name":"b"}}}'):format(deep)
    local r = watch(text)
    assert.equal(0, r.rc)
    assert.equal(4, #r.events)
    for i, type in ipairs { "MODIFIED", "DELETED" } do
      assert.equal(type, r.events[i].type)
      assert.equal("a", r.events[i].name)
      assert.equal("7", r.events[i].rv)
      assert.equal("", r.events[i].json)
      assert.equal("nested deeper than 256 levels", r.events[i].refused)
    end
    assert.equal("ERROR", r.events[3].type)
    assert.is_false(r.events[3].is_status)
    assert.equal("b", r.events[4].name)
    assert.is_nil(r.events[4].refused)
    for _, chunk in ipairs { 1, 7, 64, 700, 1000 } do assert.are.same(r, watch(text, chunk)) end
  end)

  it("takes an object as deep as the limit, whichever member comes first", function()
    local object = '{"x":' .. ("["):rep(255) .. ("]"):rep(255) .. "}"
    for _, form in ipairs { '{"type":"ADDED","object":%s}', '{"object":%s,"type":"ADDED"}' } do
      local event = watch(form:format(object)).events[1]
      assert.equal(object, event.json)
      assert.is_nil(event.refused)
    end
  end)

  it("passes over an event above 16 MiB and hands it out as refused, with its name", function()
    local large = '{"metadata":{"name":"big"},"a":"' .. ("x}"):rep(C.MW_ITEM_SIZE_MAX) .. '"}'
    local text = ('{"type":"DELETED","object":%s}{"object":%s,"type":"DELETED"}'):format(large, large) ..
      '{"type":"ADDED","object":{"metadata":{"name":"b"}}}'
    for _, chunk in ipairs { #text, 1000000 } do
      local r = watch(text, chunk)
      assert.equal(0, r.rc)
      assert.equal(3, #r.events)
      assert.equal("DELETED", r.events[1].type)
      assert.equal("big", r.events[1].name)
      assert.equal("the event is larger than 16 MiB", r.events[1].refused)
      assert.equal("UNKNOWN", r.events[2].type)
      assert.equal("", r.events[2].text)
      assert.equal("the event is larger than 16 MiB", r.events[2].refused)
      assert.equal("b", r.events[3].name)
    end
  end)
end)
