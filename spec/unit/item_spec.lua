local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local function projection(keep, drop)
  local function slices(list)
    local array = ffi.new("struct mw_slice[?]", #list + 1)
    for i, text in ipairs(list) do array[i - 1] = unit.slice(text) end
    return array
  end
  local err = unit.err()
  local p = C.mw_projection_new(slices(keep), #keep, slices(drop), #drop, err)
  if p == nil then error(ffi.string(err.message), 2) end
  return ffi.gc(p, C.mw_projection_free)
end

local all = C.mw_projection_all()
local scanner = ffi.gc(C.mw_item_scanner_new(nil), C.mw_item_scanner_free)

-- The item as a Lua table; on an error nil, the message, the code and the offset.
local function scan(text, p, defaults)
  local memory = ffi.gc(ffi.cast("char *", C.mw_xmalloc(math.max(#text, 1))), C.mw_free)
  ffi.copy(memory, text, #text)
  local c = ffi.new("struct mw_json", { memory, memory + #text })
  local raw, err = ffi.new("struct mw_item"), unit.err()
  local d
  if defaults then
    d = ffi.new("struct mw_item_defaults", { unit.slice(defaults[1]), unit.slice(defaults[2]) })
  end
  local rc = C.mw_item_scan(scanner, c, p or all, d, raw, err)
  local offset = tonumber(c.p - memory)
  if rc ~= 0 then return nil, ffi.string(err.message), rc, offset end
  local item = { offset = offset, labels = {}, label_count = tonumber(raw.label_count) }
  for _, field in ipairs { "json", "kind", "api_version", "name", "ns", "uid", "rv" } do
    item[field] = unit.str(raw[field])
  end
  for _, field in ipairs { "has_metadata", "deleting", "initial_events_end", "more_labels" } do
    item[field] = raw[field]
  end
  for i = 0, item.label_count - 1 do
    item.labels[unit.str(raw.labels[i].key)] = unit.str(raw.labels[i].value)
  end
  return item
end

local function copy(text, p, defaults)
  local item, message = scan(text, p, defaults)
  return item and item.json or error(message, 2)
end

describe("item", function()
  unit.no_leaks()

  it("reads the metadata", function()
    local item = scan([[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-1","namespace":"prod",
      "uid":"u-1","resourceVersion":"42","labels":{"app":"web","tier":"front"}}}  tail]])
    assert.equal("Pod", item.kind)
    assert.equal("v1", item.api_version)
    assert.equal("web-1", item.name)
    assert.equal("prod", item.ns)
    assert.equal("u-1", item.uid)
    assert.equal("42", item.rv)
    assert.are.same({ app = "web", tier = "front" }, item.labels)
    assert.is_true(item.has_metadata)
    assert.is_false(item.deleting)
    assert.is_false(item.initial_events_end)
  end)

  it("leaves the cursor behind the object", function()
    assert.equal(12, scan('  {"a":[{}]},{}').offset)
  end)

  it("unescapes keys and values that it notes", function()
    local item = scan([[{"k\u0069nd":"P\u006fd","metadata":{"n\u0061me":"a\"b","labels":{"x\ty":"\ud83d\ude00"}}}]])
    assert.equal("Pod", item.kind)
    assert.equal('a"b', item.name)
    assert.are.same({ ["x\ty"] = "😀" }, item.labels)
  end)

  it("looks for names in metadata only, and for metadata at the root only", function()
    local item = scan([[{"name":"no","spec":{"metadata":{"name":"no","labels":{"a":"b"}},"kind":"no"},
      "metadata":{"x":{"name":"no","uid":"no"},"name":"yes"}}]])
    assert.equal("yes", item.name)
    assert.equal("", item.uid)
    assert.equal("", item.kind)
    assert.equal(0, item.label_count)
  end)

  it("tells an object that is being deleted", function()
    assert.is_true(scan('{"metadata":{"deletionTimestamp":"2024-01-01T00:00:00Z"}}').deleting)
    assert.is_false(scan('{"metadata":{"deletionTimestamp":null}}').deleting)
  end)

  it("tells the end of the initial events only by the exact annotation", function()
    local function mark(annotations)
      return scan('{"metadata":{"annotations":' .. annotations .. "}}").initial_events_end
    end
    assert.is_true(mark '{"a":"b","k8s.io/initial-events-end":"true"}')
    assert.is_false(mark '{"k8s.io/initial-events-end":"True"}')
    assert.is_false(mark '{"k8s.io/initial-events-end":true}')
    assert.is_false(mark '{"initial-events-end":"true"}')
    assert.is_false(mark "null")
    assert.is_false(scan('{"metadata":{"labels":{"k8s.io/initial-events-end":"true"}}}').initial_events_end)
  end)

  it("has no metadata when it is absent, null or no object", function()
    for _, text in ipairs { "{}", '{"metadata":null}', '{"metadata":[]}', '{"metadata":"x"}' } do
      assert.is_false(scan(text).has_metadata)
    end
    assert.is_true(scan('{"metadata":{}}').has_metadata)
  end)

  it("lets the last of equal keys win and keeps the bytes as they are", function()
    local text = '{"metadata":{"name":"a","uid":"u","labels":{"x":"1","x":"2"}},"metadata":{"name":"b","name":"c"}}'
    local item = scan(text)
    assert.equal("c", item.name)
    assert.equal("", item.uid)
    assert.equal(0, item.label_count)
    assert.equal(text, item.json)
    assert.are.same({ x = "2" }, scan('{"metadata":{"labels":{"x":"1","x":"2"}}}').labels)
  end)

  it("reads null as absent where a string belongs", function()
    local item = scan('{"metadata":{"name":null,"labels":{"a":null}}}')
    assert.equal("", item.name)
    assert.are.same({ a = "" }, item.labels)
  end)

  describe("refuses", function()
    for text, expect in pairs {
      ['{"metadata":{"resourceVersion":7}}'] = { "metadata.resourceVersion is not a string", 31 },
      ['{"metadata":{"name":{}}}'] = { "metadata.name is not a string", 20 },
      ['{"metadata":{"namespace":[]}}'] = { "metadata.namespace is not a string", 25 },
      ['{"metadata":{"uid":true}}'] = { "metadata.uid is not a string", 19 },
      ['{"metadata":{"labels":[]}}'] = { "metadata.labels is not an object", 22 },
      ['{"metadata":{"labels":{"a":1}}}'] = { "a label is not a string", 27 },
      ['{"kind":1}'] = { "kind is not a string", 8 },
      ['{"a":1 "b":2}'] = { "expected ',' or '}'", 7 },
      ['{"a":"\255"}'] = { "invalid UTF-8", 6 },
      ['{"metadata":{"managedFields":[tru]}}'] = { "expected a value", 33 },
      ['{"metadata":{"name":"a",}}'] = { "expected a member name", 24 },
      ['{"a":1'] = { "unexpected end", 6 },
      ["[]"] = { "expected '{'", 0 },
      ["null"] = { "expected '{'", 0 },
      [""] = { "unexpected end", 0 },
    } do
      it(text:gsub("[^ -~]", "?") .. " and says why", function()
        local item, message, code, offset = scan(text, C.mw_projection_default())
        assert.is_nil(item)
        assert.equal(C.MW_EPARSE, code)
        assert.equal(expect[1], message)
        assert.equal(expect[2], offset)
      end)
    end

    it("nesting beyond the limit and objects above 16 MiB", function()
      assert.equal(C.MW_ELIMIT, select(3, scan('{"a":' .. ("["):rep(256) .. ("]"):rep(256) .. "}")))
      local big = ("x"):rep(C.MW_ITEM_SIZE_MAX - 8)
      assert.equal(C.MW_ITEM_SIZE_MAX, #copy('{"a":"' .. big .. '"}'))
      local _, message, code = scan('{"a":"' .. big .. 'x"}')
      assert.equal(C.MW_ELIMIT, code)
      assert.matches("16 MiB", message, 1, true)
    end)
  end)

  it("records as many labels as the limit, says when there are more, and copies them all", function()
    local labels = {}
    for i = 1, C.MW_ITEM_LABELS_MAX do labels[i] = ('"l%d":"v"'):format(i) end
    local text = '{"metadata":{"labels":{%s}}}'
    local item = scan(text:format(table.concat(labels, ",")))
    assert.equal(C.MW_ITEM_LABELS_MAX, item.label_count)
    assert.is_false(item.more_labels)
    labels[#labels + 1] = '"more":"v"'
    local longer = text:format(table.concat(labels, ","))
    item = scan(longer)
    assert.equal(C.MW_ITEM_LABELS_MAX, item.label_count)
    assert.is_true(item.more_labels)
    assert.equal(longer, item.json)
    assert.is_false(scan(longer:sub(1, -3) .. ',"labels":{"a":"b"}}}').more_labels)
  end)

  describe("between whose tokens there may be white space", function()
    local text = '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-1","namespace":"prod","uid":"u-1",' ..
      '"x":[1,{}],"resourceVersion":"42","creationTimestamp":null,' ..
      '"labels":{"app":"web","tier":"front","app":"other"},"annotations":{"a":"","b":"c"},' ..
      '"managedFields":[{"a":true}],"deletionTimestamp":"now"},"spec":{"n":-1.5e3}}'

    local function tokens(of)
      local list = {}
      for token in of:gsub('"[^"]*"', "\0%0\0"):gsub("[%[%]{},:]", "\0%0\0"):gmatch "%Z+" do list[#list + 1] = token end
      return list
    end

    it("reads the same, wherever a string lies in a block", function()
      for pad = 0, 130 do
        local tight = '{"pad":"' .. ("-"):rep(pad) .. '",' .. text:sub(2)
        local list = tokens(tight)
        assert.equal(tight, table.concat(list))
        for _, p in ipairs { all, C.mw_projection_default() } do
          local item, loose = scan(tight, p), scan(table.concat(list, " "), p)
          item.offset, loose.offset = nil, nil
          assert.are.same(item, loose)
          local kept = p == all and tight or tight:gsub(',"managedFields":%[{"a":true}%]', "")
          assert.equal(kept, item.json)
          assert.are.same({ app = "other", tier = "front" }, item.labels)
          assert.equal("42", item.rv)
        end
      end
    end)

    it("refuses the same, where it is cut and where it is damaged", function()
      local list = tokens(text)
      for i = 0, #list - 1 do
        local head, rest = table.concat(list, "", 1, i), table.concat(list, "", i + 2)
        local spaced = table.concat(list, " ", 1, i)
        local _, message, code, offset = scan(head)
        assert.equal("unexpected end", message)
        assert.are.same({ message, code, #spaced }, { select(2, scan(spaced)) })
        assert.equal(#head, offset)
        _, message, code, offset = scan(head .. "?" .. rest)
        assert.are.same({ message, code, #spaced + 1 }, { select(2, scan(spaced .. " ?" .. rest)) })
        assert.equal(#head, offset)
      end
    end)

    it("reads the same when names are escaped, as many as there are", function()
      local function escaped(name) return name:gsub(".", function(c) return ("\\u%04x"):format(c:byte()) end) end
      local labels = {}
      for i = 1, 500 do labels[i] = ('"%s":"%s"'):format(escaped("label-" .. i), escaped("value-" .. i)) end
      local item = scan('{"metadata":{"labels":{' .. table.concat(labels, ",") .. '},"name":"' .. escaped "a" .. '"}}')
      for i = 1, 500 do assert.equal("value-" .. i, item.labels["label-" .. i]) end
      assert.equal("a", item.name)
    end)
  end)

  describe("copy", function()
    it("is without insignificant white space", function()
      assert.equal('{"a":[1,{"b c":" d "},[]],"e":{},"metadata":{"name":"x","labels":{"l":"v"}}}', copy [[
        { "a" : [ 1 , { "b c" : " d " } , [ ] ] , "e" : { } ,
          "metadata" : { "name" : "x" , "labels" : { "l" : "v" } } } ]])
    end)

    it("equals the compact form for random documents with random white space", function()
      math.randomseed(7)
      local spaced
      local function blank() return spaced and (" \n\t\r "):sub(1, math.random(0, 3)) or "" end
      local function render(seed, depth)
        math.randomseed(seed)
        local kind = math.random(1, depth > 4 and 4 or 7)
        local function sub(i) return render(seed * 31 % 1000003 + i, depth + 1) end
        local keep = { blank = blank }
        if kind == 1 then return '"s\\"p a' .. ("é"):rep(seed % 40) .. '"' end
        if kind == 2 then return tostring(seed) end
        if kind == 3 then return "null" end
        if kind == 4 then return '"' .. ("w"):rep(seed % 90) .. '"' end
        local n, parts = seed % 5, {}
        for i = 1, n do
          local inner = sub(i)
          parts[i] = keep.blank() .. (kind < 6 and "" or ('"k%d"'):format(i) .. keep.blank() .. ":" .. keep.blank())
            .. inner .. keep.blank()
        end
        local body = table.concat(parts, ",")
        return kind < 6 and "[" .. body .. "]" or "{" .. body .. "}"
      end
      for seed = 1, 400 do
        spaced = false
        local compact = '{"metadata":{"x":' .. render(seed, 0) .. '},"y":' .. render(seed + 1000, 0) .. "}"
        spaced = true
        local loose = ' {\n"metadata" : {"x":' .. render(seed, 0) .. ' } ,"y":' .. render(seed + 1000, 0) .. "\n}\n"
        assert.equal(compact, copy(loose))
        assert.equal(compact, copy(compact))
      end
    end)

    it("drops managedFields by default, wherever it stands", function()
      local default = C.mw_projection_default()
      for _, text in ipairs {
        '{"metadata":{"managedFields":[{"a":1}],"name":"x"},"s":1}',
        '{"metadata":{"name":"x","managedFields":[{"a":1}]},"s":1}',
        '{ "metadata" : { "managedFields" : [ ] , "name" : "x" , "managedFields" : {} } , "s" : 1 }',
        '{"metadata":{"m\\u0061nagedFields":null,"name":"x"},"s":1}',
      } do
        assert.equal('{"metadata":{"name":"x"},"s":1}', copy(text, default))
      end
      assert.equal('{"metadata":{}}', copy('{"metadata":{"managedFields":[]}}', default))
      local elsewhere = '{"spec":{"managedFields":1},"managedFields":2}'
      assert.equal(elsewhere, copy(elsewhere, default))
    end)
  end)

  describe("projection", function()
    local pod = '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u",' ..
      '"resourceVersion":"1","labels":{"x":"y","z":"w"},"annotations":{"b":"c"}},' ..
      '"spec":{"nodeName":"n1","containers":[{"name":"c1","image":"i1"},7,{"image":"i2"}]},' ..
      '"status":{"phase":"Running"}}'
    local id = '"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"1"'

    -- keep, drop, what is left
    for _, case in ipairs {
      { { "spec.nodeName" }, {}, '{"kind":"Pod","apiVersion":"v1",' .. id .. '},"spec":{"nodeName":"n1"}}' },
      { { "metadata.labels" }, {}, '{"kind":"Pod","apiVersion":"v1",' .. id .. ',"labels":{"x":"y","z":"w"}}}' },
      { { "metadata.labels", "status" }, { "metadata.labels.x" },
        '{"kind":"Pod","apiVersion":"v1",' .. id .. ',"labels":{"z":"w"}},"status":{"phase":"Running"}}' },
      { { "spec.containers[*].image" }, {},
        '{"kind":"Pod","apiVersion":"v1",' .. id .. '},"spec":{"containers":[{"image":"i1"},{"image":"i2"}]}}' },
      { {}, { "spec", "metadata.annotations", "metadata.labels" },
        '{"kind":"Pod","apiVersion":"v1",' .. id .. '},"status":{"phase":"Running"}}' },
      { {}, { "spec.containers[*].name", "status", "metadata.labels", "metadata.annotations" },
        '{"kind":"Pod","apiVersion":"v1",' .. id ..
        '},"spec":{"nodeName":"n1","containers":[{"image":"i1"},7,{"image":"i2"}]}}' },
      { {}, { "spec.containers[*]", "status", "metadata.labels", "metadata.annotations" },
        '{"kind":"Pod","apiVersion":"v1",' .. id .. '},"spec":{"nodeName":"n1","containers":[]}}' },
      { {}, { "metadata", "kind", "apiVersion", "spec", "status" }, '{"kind":"Pod","apiVersion":"v1",' .. id .. "}}" },
      { { "spec.nodeName.deeper", "status.phase[*]" }, {},
        '{"kind":"Pod","apiVersion":"v1",' .. id .. '},"spec":{},"status":{}}' },
    } do
      it("keep " .. table.concat(case[1], ",") .. " drop " .. table.concat(case[2], ","), function()
        local p = projection(case[1], case[2])
        assert.equal(case[3], copy(pod, p))
        -- White space in the source makes no difference.
        local loose = pod:gsub("([%[%]{},:])", " %1\n ")
        assert.equal(case[3], copy(loose, p))
      end)
    end

    it("notes the metadata also where the copy drops it", function()
      local item = scan(pod, projection({ "status" }, {}))
      assert.are.same({ x = "y", z = "w" }, item.labels)
      assert.equal("a", item.name)
      item = scan('{"metadata":{"name":"a","deletionTimestamp":"t"}}', projection({}, { "metadata.deletionTimestamp" }))
      assert.is_true(item.deleting)
      assert.equal('{"metadata":{"name":"a"}}', item.json)
    end)

    it("still validates what it drops", function()
      assert.is_nil(scan('{"spec":{"a":tru}}', projection({}, { "spec" })))
    end)
  end)

  describe("defaults", function()
    it("go to the front where the object does not say", function()
      local item = scan('{ "metadata":{"name":"a"}}', all, { "Pod", "v1" })
      assert.equal('{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}', item.json)
      assert.equal("Pod", item.kind)
      assert.equal("v1", item.api_version)
    end)

    it("never replace what the object says", function()
      assert.equal('{"apiVersion":"v1","a":1,"kind":"Other"}', copy('{"a":1,"kind":"Other"}', all, { "Pod", "v1" }))
      assert.equal('{"kind":"A","apiVersion":"b"}', copy('{"kind":"A","apiVersion":"b"}', all, { "Pod", "v1" }))
    end)

    it("make an empty object one without a stray comma", function()
      assert.equal('{"kind":"Pod","apiVersion":"v1"}', copy("{ }", all, { "Pod", "v1" }))
      assert.equal('{"kind":"Pod"}', copy("{}", all, { "Pod", "" }))
      assert.equal('{"kind":"Pod"}', copy('{"x":1}', projection({ "y" }, {}), { "Pod", "" }))
    end)

    it("are quoted", function()
      assert.equal([[{"kind":"\"\\\u0001"}]], copy("{}", all, { '"\\\1', "" }))
    end)
  end)
end)
