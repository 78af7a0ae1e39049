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
    .. '}],"alike":"' .. ("a"):rep(400) .. '","priority":%d,"on":%s,"ratio":-1.5e3,"none":null,"empty":{},'
    .. '"text":"\\u00e9\\n\\\\ \xc3\xa9\xe2\x82\xac'
    .. '%s","a":%d,"k":%d%s},"status":{"phase":"Running","podIP":"10.0.%d.%d","startTime":"%s",'
    .. '"conditions":[{"type":"Ready","status":"True","since":"%s"}],"p":%d,"q":%d%s}}'):format(i, i, 1000 + i,
    time, time, more.metadata or "", more.node or "node-" .. i % 7, i % 3,
    i, more.port or 80 + i % 900, i % 2 * 7, more.on or tostring(i % 2 == 0), more.text or i, i % 9, i % 8,
    more.spec or "",
    i % 256, i * 7 % 256, time, time, i % 9, i % 8, more.status or "")
end

local rig

-- The item of a text as plain values, or the error and where it is. beside: with the packer's templates.
local function scan(text, beside)
  local memory = ffi.gc(ffi.cast("char *", C.mw_xmalloc(#text + 1)), C.mw_free)
  ffi.copy(memory, text, #text)
  rig.scanned = memory  -- the item is of it
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

-- The bytes of the member `key` of the object that begins at `at` in a text, and where they begin; nil: it has none.
local function member_of(text, at, key)
  local from = ffi.cast("const char *", text)
  local c = ffi.new("struct mw_json", { from + at, from + #text })
  if C.mw_json_find(c, unit.slice(key)) ~= 1 then return nil end
  local value = c.p
  assert.equal(0, C.mw_json_pass(c))
  return ffi.string(value, c.p - value), tonumber(value - from)
end

local KEYS = { "nodeName", "containers", "alike", "priority", "on", "ratio", "none", "empty", "text", "more", "phase",
  "podIP", "startTime", "conditions", "a", "k", "p", "q", "name", "" }

-- What is read of an object without unpacking it is what its JSON has. How many members were.
local function read_members(o, json)
  local m, n = ffi.new "struct mw_packed_member", 0
  for _, name in ipairs { "spec", "status", "metadata", "kind", "none" } do
    local at = tonumber(C.mw_object_section(o, unit.slice(name)))
    local _, where = member_of(json, 0, name)
    if at > 0 then assert.equal(where, at) end
    for _, key in ipairs(at > 0 and KEYS or {}) do
      local found = C.mw_object_member(o, at, unit.slice(key), m)
      if found >= 0 then assert.equal(member_of(json, at, key), found == 1 and unit.str(m.value) or nil) end
      if found == 1 then n = n + 1 end
    end
  end
  assert.is_true(C.mw_object_member(o, 1, unit.slice "name", m) < 0)
  return n
end

-- What an index finds in an object at a path, as one text.
local function extracted(o, path)
  local x, v = C.mw_extract_new(C.MW_EXTRACT_PATH, unit.slice(path), unit.err()), ffi.new "struct mw_values"
  C.mw_values_init(v)
  assert.equal(0, C.mw_extract_values(x, o, rig.unpacker, v))
  local found = {}
  for i = 1, tonumber(v.count) do found[i] = unit.str(C.mw_values_get(v, i - 1)) end
  C.mw_values_deinit(v)
  C.mw_extract_free(x)
  return table.concat(found, "\n")
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
  return o, read_members(o, json)
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

-- Beside the template and alone it reads the same; the item, or nil where it is refused, and how many members were
-- read from the middle of what is packed.
local function check(text)
  local alone = scan(text)
  local beside, item = scan(text, true)
  assert.are.same(alone, beside)
  if item then return item, select(2, store(item, alone.json, false)) end
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

  it("what stands behind a section that is alike is packed beside the template all the same", function()
    local noise = {}
    for i = 1, 200 do noise[i] = ("%08x"):format(i * 2654435761 % 2 ^ 32) end
    local function text(i, more)
      return ('{"metadata":{"name":"db-%d"},"spec":{"nodeName":"%d","alike":"%s"},'
        .. '"status":{"phase":"%d","long":"%s"%s}}')
        :format(i, i, ("a"):rep(100), i, table.concat(noise), more or "")
    end
    local function memory(i, more)
      local seen, item = scan(text(i, more), true)
      return tonumber(C.mw_object_memory((store(item, seen.json, true))))
    end
    for i = 1, 2 * MEMBERS do memory(i) end
    assert.is_true(memory(50) < 300)
    assert.is_true(memory(51, ',"more":1') < memory(52) + 40)
  end)

  it("a section that comes once more behind another name, of another family, is not the first", function()
    local function spec(i) return '"spec":{"nodeName":"' .. i .. '","alike":"' .. ("a"):rep(1500) .. '"}' end
    local function status(i) return '"status":{"phase":"' .. i .. '","alike":"' .. ("b"):rep(1500) .. '"}' end
    local function object(...) return "{" .. table.concat({ ... }, ",") .. "}" end
    local function metadata(name) return '"metadata":{"name":"' .. name .. '"}' end
    for i = 1, 2 * MEMBERS do
      for _, text in ipairs { object(metadata("a-" .. i), spec(i), status(i)),
        object(metadata("b-" .. i), status(i), spec(i)) } do
        local seen, item = scan(text, true)
        store(item, seen.json, true)
      end
    end
    local _, found = check(object(metadata "b-50", status(50), spec(50)))
    assert.is_true(found > 0)
    check(object(metadata "a-50", '"spec":{"nodeName":"first"}', metadata "b-50", spec(50)))
    assert.equal("first", extracted(rig.objects[#rig.objects], "spec.nodeName"))
  end)

  it("another value in place of a number or a literal is no other shape", function()
    local whole = covered(check(pod(500)))
    for _, more in ipairs {
      { port = "0" }, { port = "-1.25e+3" }, { port = "null" }, { port = '"http"' }, { on = "12" },
    } do
      assert.is_true(covered(check(pod(500, more))) > 0.9 * whole)
    end
  end)

  it("strings and scalars are read without unpacking, where only values differ", function()
    for i = 100, 200 do
      local _, n = check(pod(i))
      assert.is_true(n >= 9, n)
    end
    -- Sections with other members, or twice, are not.
    for _, other in ipairs {
      pod(500, { spec = ',"more":1', status = ',"more":1' }),
      (pod(500, { status = ',"more":1' }):gsub('"priority"', '"Priority"')),
      (pod(500, { status = ',"more":1' }):gsub('"args"', '"argv"')),
      pod(500):sub(1, -2) .. ',"spec":{},"status":{}}',
      pod(500):sub(1, -2) .. pod(501):match ',"spec":.*',
      '{"spec":{},"status":{},' .. pod(500):sub(2),
    } do
      assert.equal(0, select(2, check(other)))
    end
    local _, n = check((pod(500):gsub('"priority"', '"Priority"')))
    assert.is_true(n >= 3, n)
  end)

  it("nothing is taken for managedFields that is neither a list nor an object", function()
    local digits = ("1234567890"):rep(8)
    local function text(i, managed)
      return ('{"metadata":{"name":"odd-%d","managedFields":%s},"spec":{"nodeName":"n%d","alike":"%s"}}')
        :format(i, managed, i, ("a"):rep(600))
    end
    for i = 1, 2 * MEMBERS do
      local seen, item = scan(text(i, digits), true)
      store(item, seen.json, true)
    end
    local _, n = check(text(50, digits))
    assert.is_true(n > 0)
    for _, other in ipairs {
      digits .. "5", "9" .. digits:sub(2), "-" .. digits, '"' .. digits .. '"', digits .. ",", "[]",
    } do
      check(text(50, other))
    end
  end)

  it("custom resources, whose managedFields stand before their name, have sections that are found, too", function()
    local function text(i)
      return ('{"apiVersion":"example.com/v1","kind":"Site","metadata":{"annotations":{"at":"%d"},"managedFields":[{'
        .. '"manager":"kubectl","fieldsV1":{"f:spec":{"f:nodeName":{},"f:alike":{},"f:replicas":{}}}}],'
        .. '"name":"site-%d","namespace":"shop"},"spec":{"alike":"%s","nodeName":"n%d"}}')
        :format(i, i, ("a"):rep(600), i)
    end
    for i = 1, 2 * MEMBERS do
      local seen, item = scan(text(i), true)
      store(item, seen.json, true)
    end
    local _, n = check(text(50))
    assert.equal(1, n)
    assert.equal("n50", extracted(rig.objects[#rig.objects], "spec.nodeName"))
  end)

  it("an index finds the same in them", function()
    local alone = C.mw_packer_new()
    for i = 100, 130 do
      local item = check(pod(i))
      local one, other = rig.objects[#rig.objects], C.mw_object_new(item, alone, true, unit.err())
      for _, key in ipairs(KEYS) do
        for _, path in ipairs(key ~= "" and { "spec." .. key, "status." .. key } or {}) do
          assert.equal(extracted(other, path), extracted(one, path))
        end
      end
      assert.equal("node-" .. i % 7, extracted(one, "spec.nodeName"))
      C.mw_object_unref(other)
    end
    C.mw_packer_free(alone)
  end)

  it("a value that is too long to be read so is read all the same", function()
    local _, all = check(pod(500))
    for n = 30, 60 do assert.equal(all, select(2, check(pod(500, { node = ("x"):rep(n) })))) end
    for _, n in ipairs { 490, 495, 500, 505, 509, 510, 511, 512, 515, 2000 } do
      local item = check(pod(500, { node = ("x"):rep(n) }))
      assert.is_true(unit.str(item.json):find(("x"):rep(n), 1, true) ~= nil)
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

  it("what stands between and behind sections is not taken for a part of one", function()
    math.randomseed(9)
    local read = 0
    for _ = 1, 3000 do
      local text, i = pod(math.random(9999)), math.random(99)
      local members = { '"a":%d', '"k":%d', '"on":true', '"text":"%d"', '"none":null,"empty":{}',
        '"nodeName":"node-%d"',
        '"ratio":-1.5e3', '"phase":"Running"', '"podIP":"10.0.%d.1"' }
      local more = { "x" }
      for k = 1, math.random(4) do more[k] = members[math.random(#members)]:format(i) end
      more = ('"x":{%s}'):format(table.concat(more, ","))
      local head, spec, status = text:match '^(.-)("spec":.*),("status":{.*)}$'
      local orders = {
        { head, spec, ",", more, ",", status, "}" }, { head, spec, ",", status, ",", more, "}" },
        { head, status, ",", spec, ",", more, "}" }, { head, status, ",", more, ",", spec, "}" },
        { head, more, ",", spec, ",", status, "}" },
      }
      local _, n = check(table.concat(orders[math.random(#orders)]))
      read = read + (n or 0)
    end
    assert.is_true(read > 100, read)
  end)

  it("what the template has in a section is not taken for that of the object when it stands elsewhere", function()
    local head, spec, status = pod(500):match '^(.-)("spec":.*),("status":{.*)}$'
    local templates = pod(MEMBERS):match ',"status":({.*)}$'
    local text = table.concat { head, status, ",", spec, ',"x":', templates, ',"y":"', ("y"):rep(20), '"}' }
    assert.is_true(select(2, check(text)) > 5)
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
