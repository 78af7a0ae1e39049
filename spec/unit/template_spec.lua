-- Objects of one family are read and packed beside a template: faster, and with the same results.
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local MEMBERS = 8 -- that a family has before there is a template
local FILLERS = 256 -- objects before there are families

-- As an API server sends them: what differs between two pods of one Deployment differs.
local function pod(i, more)
  more = more or {}
  local time = ("2026-05-%02dT17:46:%02dZ"):format(i % 28 + 1, i % 60)
  return ('{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-%05d","namespace":"shop","uid":"u%d",'
    .. '"resourceVersion":"%d","labels":{"app":"web","tier":"fr\\u00f6nt"},"annotations":{"at":"%s"},'
    .. '"managedFields":[{"manager":"kubelet","time":"%s","fieldsV1":{"f:status":{"k:{\\"type\\":\\"Ready\\"}":{'
    .. '".":{},"f:type":{}},"f:podIP":{},"f:phase":{}},"f:spec":{"f:containers":{},"f:dnsPolicy":{}}}}]%s},'
    .. '"spec":{"nodeName":"%s","containers":[{"name":"a","image":"web:%d","args":["--x=%d",""],"ports":[{"port":%s}]'
    .. '}],"priority":%d,"on":%s,"ratio":-1.5e3,"none":null,"empty":{},"text":"\\u00e9\\n\\\\ \xc3\xa9\xe2\x82\xac'
    .. '%s"%s},"status":{"phase":"Running","podIP":"10.0.%d.%d","startTime":"%s","conditions":[{"type":"Ready",'
    .. '"status":"True","since":"%s"}]%s}}'):format(i, i, 1000 + i, time, time, more.metadata or "",
    more.node or "node-" .. i % 7, i % 3,
    i, more.port or 80 + i % 900, i % 2 * 7, more.on or tostring(i % 2 == 0), more.text or i, more.spec or "",
    i % 256, i * 7 % 256, time, time, more.status or "")
end

local rig

-- The item of a text as plain values, or the error and where it is. beside: with the packer's templates.
local function scan(text, beside)
  local memory = ffi.gc(ffi.cast("char *", C.mw_xmalloc(#text + 1)), C.mw_free)
  ffi.copy(memory, text, #text)
  local c = ffi.new("struct mw_json", { memory, memory + #text })
  local item, err = ffi.new("struct mw_item"), unit.err()
  local rc = C.mw_item_scan(beside and rig.beside or rig.alone, c, C.mw_projection_default(), nil, item, err)
  local seen = { rc = rc, offset = tonumber(c.p - memory), message = ffi.string(err.message) }
  if rc ~= 0 then return seen end
  for _, field in ipairs { "json", "kind", "name", "ns", "uid", "rv" } do seen[field] = unit.str(item[field]) end
  for i = 0, tonumber(item.label_count) - 1 do
    seen["label " .. unit.str(item.labels[i].key)] = unit.str(item.labels[i].value)
  end
  return seen, item
end

-- Packs it, and checks that it comes back.
local function store(item, json, is_new)
  local err = unit.err()
  local o = C.mw_object_new(item, rig.packer, is_new, err)
  assert(o ~= nil, ffi.string(err.message))
  rig.objects[#rig.objects + 1] = o
  local back = C.mw_object_json(o, rig.unpacker)
  assert.is_true(back.p ~= nil)
  assert.equal(json, unit.str(back))
  return o
end

-- How many bytes of the JSON are the template's, by what the scanner noted. Each note is checked.
local function covered(item)
  local sum, last = 0, 0
  for i = 0, tonumber(item.beside.run_count) - 1 do
    local run = item.beside.runs[i]
    assert.is_true(run.at >= last)
    last = run.at + run.n
    sum = sum + run.n
  end
  assert.is_true(last <= item.json.n)
  return sum
end

-- Beside the template and alone it reads the same; the item, or nil where it is refused.
local function check(text)
  local alone = scan(text)
  local beside, item = scan(text, true)
  assert.are.same(alone, beside)
  if item then store(item, alone.json, false) end
  return item
end

describe("beside a template", function()
  after_each(function()
    for _, o in ipairs(rig.objects) do C.mw_object_unref(o) end
    C.mw_item_scanner_free(rig.alone)
    C.mw_item_scanner_free(rig.beside)
    C.mw_packer_free(rig.packer)
    C.mw_unpacker_free(rig.unpacker)
  end)
  unit.no_leaks()
  before_each(function()
    local packer = C.mw_packer_new()
    rig = {
      packer = packer,
      unpacker = C.mw_unpacker_new(),
      alone = C.mw_item_scanner_new(nil),
      beside = C.mw_item_scanner_new(packer),
      objects = {},
    }
    for i = 1, FILLERS do
      local seen, item = scan(('{"metadata":{"name":"filler","uid":"%d"}}'):format(i), true)
      store(item, seen.json, true)
    end
    for i = 1, MEMBERS do
      local seen, item = scan(pod(i), true)
      assert.equal(0, tonumber(item.beside.run_count))
      store(item, seen.json, true)
    end
  end)
  it("most of an object is found there, and need not be looked at twice", function()
    for i = 100, 200 do
      local text = pod(i)
      local item = check(text)
      assert.is_true(covered(item) > 0.5 * tonumber(item.json.n))
      assert.is_true(tonumber(C.mw_object_memory(rig.objects[#rig.objects])) < #text / 3)
    end
  end)

  it("a section that has another shape is read as without, and the others are not", function()
    local whole = covered(check(pod(500)))
    for _, more in ipairs {
      { spec = ',"more":1' }, { spec = ', "volumes" : [ ]' }, { port = "[80]" }, { port = '{"a":1}' }, { on = "{}" },
    } do
      local n = covered(check(pod(500, more)))
      assert.is_true(n > 0 and n < whole)
    end
    assert.is_true(covered(check(pod(500, { metadata = ',"more":{"a":1}' }))) >= whole)
    assert.equal(0, covered(check(pod(500, { spec = ',"more":1', status = ',"more":{}' }))))
  end)

  it("another value in place of a number or a literal is no other shape", function()
    local whole = covered(check(pod(500)))
    for _, more in ipairs {
      { port = "0" }, { port = "-1.25e+3" }, { port = "null" }, { port = '"http"' }, { on = "12" },
    } do
      assert.is_true(covered(check(pod(500, more))) > 0.9 * whole)
    end
  end)

  it("characters and escapes that differ in their middle are validated whole", function()
    for _, text in ipairs {
      "\xc3\xa8", "\xe2\x82\xad", "\xe2\x83\xac", "\\u00e8", "\\u00E9", '\\"', "\\\\", "", ("x"):rep(300),
    } do
      assert.is_not_nil(check(pod(500, { text = text })))
      assert.is_not_nil(check((pod(500):gsub("\\u00e9\\n\\\\ ", text))))
    end
    for _, text in ipairs { "\xc3", "\xe2\x82", "\xed\xa0\x80", "\\u00", "\\u00g9", "\\x", "\1", "\xff" } do
      assert.is_nil(check(pod(500, { text = text })))
      assert.is_nil(check((pod(500):gsub("\xc3\xa9", function() return text end))))
    end
  end)

  it("every byte may be any other, and is taken or refused as without", function()
    local text = pod(500)
    for _, c in ipairs {
      '"', "\\", "{", "}", "[", "]", ",", ":", " ", "\1", "\x80", "\xc3", "1", "-", ".", "e", "t", "z",
    } do
      for at = text:find('"managedFields"', 1, true), #text do
        check(text:sub(1, at - 1) .. c .. text:sub(at + 1))
      end
    end
  end)

  it("an object that ends early is refused where it ends", function()
    local text = pod(500)
    for n = text:find('"managedFields"', 1, true), #text - 1 do check(text:sub(1, n)) end
  end)

  it("parts may be missing, doubled or moved", function()
    math.randomseed(7)
    for _ = 1, 3000 do
      local text = pod(math.random(9999))
      local from = math.random(text:find('"managedFields"', 1, true), #text)
      local to = math.min(#text, from + math.random(0, 40))
      local to_where = math.random(from, #text)
      local cut, kind = text:sub(from, to), math.random(3)
      check(text:sub(1, from - 1) .. (kind == 1 and "" or kind == 2 and cut .. cut or text:sub(to_where, to_where + 9))
        .. text:sub(to + 1))
    end
  end)

  it("two metadata, the second with another name, change nothing", function()
    local text = pod(500)
    check(text:sub(1, -2) .. ',"metadata":{"name":"other-1"}}')
    check(text:sub(1, -2) .. ',"metadata":{"name":"web-2"},"spec":{"nodeName":"node-1","containers":[],"a":"'
      .. ("x"):rep(80) .. '"}}')
  end)

  it("the bytes of strings are found, wherever quotes and backslashes lie", function()
    math.randomseed(11)
    local parts = { '\\"', "\\\\", "a", ("b"):rep(40) }
    for _ = 1, 2000 do
      local text, inside = {}, {}
      -- Strings of random parts, with a comma between them, until there is enough.
      while #inside < 300 do
        local string = {}
        for i = 1, math.random(0, 6) do string[i] = parts[math.random(#parts)] end
        local piece = '"' .. table.concat(string) .. '",'
        for i = 1, #piece do inside[#inside + 1] = i > 1 and i < #piece end
        text[#text + 1] = piece
      end
      text = table.concat(text)
      local bits = ffi.new("uint64_t[?]", math.floor(#text / 64) + 1)
      C.mw_frame_strings(unit.slice(text), bits)
      for i = 0, #text - 1 do
        local is_set = bit.band(bit.rshift(bits[math.floor(i / 64)], i % 64), 1ULL) == 1ULL
        if is_set ~= inside[i + 1] then error(("byte %d of %s"):format(i, text)) end
      end
    end
  end)
end)
