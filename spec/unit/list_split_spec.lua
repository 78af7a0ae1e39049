local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

-- Feeds the document in chunks. Returns the items' JSON and what the list says, or rc and message.
local function split(text, chunk, options)
  options = options or {}
  local items, names, refused = {}, {}, {}
  local cb = ffi.cast("mw_list_item_cb", function(_, item)
    items[#items + 1] = unit.str(item.json)
    names[#names + 1] = unit.str(item.name)
    if item.refused ~= nil then refused[#items] = ffi.string(item.refused) end
    return #items == options.stop_after and options.stop_with or 0
  end)
  local err = unit.err()
  local s = C.mw_list_split_new(options.projection or C.mw_projection_default(), nil, cb, nil)
  local rc, at = 0, 1
  chunk = chunk or #text
  while rc == 0 and at <= #text do
    local piece = text:sub(at, at + chunk - 1)
    local memory = ffi.cast("char *", C.mw_xmalloc(#piece))
    ffi.copy(memory, piece, #piece)
    rc = C.mw_list_split_feed(s, memory, #piece, err)
    C.mw_free(memory)
    at = at + chunk
  end
  if rc == 0 then rc = C.mw_list_split_finish(s, err) end
  local info = C.mw_list_split_info(s)
  local result = {
    rc = rc, message = ffi.string(err.message), items = items, names = names, refused = refused,
    count = tonumber(info.items),
    kind = ffi.string(info.kind), api_version = ffi.string(info.api_version), rv = ffi.string(info.rv),
    continue = info.continue_token ~= nil and ffi.string(info.continue_token) or nil,
    remaining = tonumber(info.remaining),
  }
  if options.again then result.again = C.mw_list_split_feed(s, "x", 1, err) end
  C.mw_list_split_free(s)
  cb:free()
  return result
end
jit.off(split)

local pods = '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"42","continue":"next\\u002b",' ..
  '"remainingItemCount":7},"items":[{"metadata":{"name":"a","managedFields":[{"x":"}]"}]}},' ..
  '{"metadata":{"name":"b"},"spec":{"s":"quote \\" brace } \\\\"}}]}\n'

describe("list splitter", function()
  unit.no_leaks()

  it("hands out the items and reads the list's own fields", function()
    local r = split(pods)
    assert.equal(0, r.rc)
    assert.are.same({
      '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}',
      '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b"},"spec":{"s":"quote \\" brace } \\\\"}}',
    }, r.items)
    assert.are.same({ "a", "b" }, r.names)
    assert.equal("PodList", r.kind)
    assert.equal("v1", r.api_version)
    assert.equal("42", r.rv)
    assert.equal("next+", r.continue)
    assert.equal(7, r.remaining)
    assert.equal(2, r.count)
  end)

  it("gives the same for every size of chunks", function()
    local whole = split(pods)
    for chunk = 1, #pods do assert.are.same(whole, split(pods, chunk)) end
  end)

  it("finds the end of long items with strings of brackets and backslashes, however they are cut", function()
    local tricky = {}
    for i = 1, 40 do
      tricky[i] = ('{"metadata":{"name":"n%d"},"v":"%s","w":[{"x":"%s"},{"y":[[]]}]}'):format(i,
        ("\\\\"):rep(i), ("}]\\\"{["):rep(i))
    end
    local text = '{"items":[' .. table.concat(tricky, ",") .. "]}"
    local whole = split(text, nil, { projection = C.mw_projection_all() })
    assert.equal(0, whole.rc)
    assert.are.same(tricky, whole.items)
    for _, chunk in ipairs { 1, 2, 3, 63, 64, 65, 127, 128, 200, 1000 } do
      assert.are.same(whole, split(text, chunk, { projection = C.mw_projection_all() }))
    end
  end)

  it("reads the list's fields also behind the items", function()
    local r = split '{ "items" : [ { "a" : 1 } ] , "metadata" : { "resourceVersion" : "9" } , "kind" : "PodList" }'
    assert.equal(0, r.rc)
    assert.equal("9", r.rv)
    assert.equal("PodList", r.kind)
    assert.are.same({ '{"a":1}' }, r.items)
  end)

  it("knows what is in the list by its kind, when that comes first", function()
    local function first(kind)
      return split('{"kind":"' .. kind .. '","apiVersion":"g/v1","items":[{"a":1}]}').items[1]
    end
    assert.equal('{"kind":"Deployment","apiVersion":"g/v1","a":1}', first "DeploymentList")
    assert.equal('{"kind":"PartialObjectMetadata","apiVersion":"g/v1","a":1}', first "PartialObjectMetadataList")
    assert.equal('{"a":1}', first "List")
    assert.equal('{"a":1}', first "Pods")
    assert.equal('{"kind":"Pod","a":1}', split('{"kind":"PodList","items":[{"a":1}]}').items[1])
  end)

  it("takes null for an empty list", function()
    local r = split '{"kind":"PodList","items":null,"metadata":null}'
    assert.equal(0, r.rc)
    assert.equal(0, r.count)
    assert.is_nil(r.continue)
    assert.equal(-1, r.remaining)
    assert.equal(0, split('{"items":[]}').rc)
  end)

  it("has no continue token when it is empty", function()
    assert.is_nil(split('{"metadata":{"continue":""},"items":[]}').continue)
  end)

  it("validates unknown members without holding them", function()
    local long = '{"x":[' .. ('{"y":"z","n":-1.5e3,"l":[true,false,null]},'):rep(50000) .. '1],"items":[]}'
    assert.equal(0, split(long, 65536).rc)
    local r = split('{"x":{"a":[1,2}],"items":[]}')
    assert.equal(C.MW_EPARSE, r.rc)
    assert.equal("malformed JSON at byte 14: expected ',' or ']'", r.message)
  end)

  it("hands out an item that is too deep as refused, with what it saw of it, and goes on", function()
    local deep = ("["):rep(300) .. ("]"):rep(300)
    local text = ('{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b","namespace":"n"},"x":%s,"y":"]}"},' ..
      '{"x":%s,"metadata":{"name":"c"}},{"metadata":{"name":"d"}}],"metadata":{"resourceVersion":"7"}}')
      :format(deep, deep)
    local r = split(text)
    assert.equal(0, r.rc)
    assert.are.same({ "a", "b", "", "d" }, r.names)
    assert.are.same({ '{"metadata":{"name":"a"}}', "", "", '{"metadata":{"name":"d"}}' }, r.items)
    assert.are.same({ [2] = "nested deeper than 256 levels", [3] = "nested deeper than 256 levels" }, r.refused)
    assert.equal("7", r.rv)
    for _, chunk in ipairs { 1, 7, 64, 650, 1000 } do assert.are.same(r, split(text, chunk)) end
  end)

  it("passes over an item above 16 MiB and hands it out as refused, with its name", function()
    local text = '{"items":[{"metadata":{"name":"big"},"a":"' .. ("x}"):rep(C.MW_ITEM_SIZE_MAX) ..
      '"},{"metadata":{"name":"b"}}]}'
    for _, chunk in ipairs { #text, 1000000 } do
      local r = split(text, chunk)
      assert.equal(0, r.rc)
      assert.are.same({ "big", "b" }, r.names)
      assert.are.same({ "the object is larger than 16 MiB" }, r.refused)
      assert.are.same({ "", '{"metadata":{"name":"b"}}' }, r.items)
    end
    local r = split(text:sub(1, -32), 1000000)
    assert.equal(C.MW_EPARSE, r.rc)
    assert.matches("unexpected end$", r.message)
  end)

  it("lets the callback stop it", function()
    local r = split(pods, nil, { stop_after = 1, stop_with = 77, again = true })
    assert.equal(77, r.rc)
    assert.equal(1, r.count)
    assert.equal(77, r.again)
  end)

  describe("refuses", function()
    -- document, code, message
    for _, case in ipairs {
      { "", "EPARSE", "malformed JSON at byte 0: unexpected end" },
      { "[]", "EPARSE", "malformed JSON at byte 0: expected '{'" },
      { "{}", "EINVAL", "expected a list but the server sent an object without items" },
      { '{"kind":"Pod"}', "EINVAL", "expected a list but the server sent Pod without items" },
      { '{"items":[]', "EPARSE", "malformed JSON at byte 11: unexpected end" },
      { '{"items":[]} x', "EPARSE", "malformed JSON at byte 13: the document has ended" },
      { '{"items":[]}{', "EPARSE", "malformed JSON at byte 12: the document has ended" },
      { '{"items":{}}', "EPARSE", "unexpected content at byte 9: items is not an array" },
      { '{"items":[],"items":[]}', "EPARSE", "unexpected content at byte 20: a second member 'items'" },
      { '{"items":[1]}', "EPARSE", "malformed JSON at byte 10: expected '{'" },
      { '{"items":[{},]}', "EPARSE", "malformed JSON at byte 13: expected '{'" },
      { '{"items":[{} {}]}', "EPARSE", "malformed JSON at byte 13: expected ',' or ']'" },
      { '{"items":[{"a":1 "b":2}]}', "EPARSE", "malformed JSON at byte 17: expected ',' or '}'" },
      { '{"items":[{"a":[}]}]}', "EPARSE", "malformed JSON at byte 16: expected a value" },
      { '{"items":[{"a":"\255"}]}', "EPARSE", "invalid UTF-8 at byte 16" },
      { '{"items":[{"a":"b}]}', "EPARSE", "malformed JSON at byte 20: unexpected end" },
      { '{"items":[{"a":tru,"b":', "EPARSE", "malformed JSON at byte 18: expected a value" },
      { '{"items":nul', "EPARSE", "malformed JSON at byte 12: unexpected end" },
      { '{"k\226\130":1,"items":[]}', "EPARSE", "invalid UTF-8 at byte 3" },
      { '{"items":[{"metadata":{"resourceVersion":1}}]}', "EPARSE",
        "unexpected content at byte 41: metadata.resourceVersion is not a string" },
      { '{"metadata":{"resourceVersion":1},"items":[]}', "EPARSE",
        "unexpected content at byte 12: metadata.resourceVersion is not a string" },
      { '{"metadata":7,"items":[]}', "EPARSE", "unexpected content at byte 12: metadata is not an object" },
      { '{"kind":"Status","apiVersion":"v1","message":"no way","code":403}', "EINVAL",
        "expected a list but the server sent a Status: no way" },
      { '{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}', "EINVAL",
        "expected a list but the server sent a Table: the request must accept application/json without as=Table" },
      { '{"apiVersion":"meta.k8s.io/v1beta1","rows":[{}],"kind":"Table"}', "EINVAL",
        "expected a list but the server sent a Table: the request must accept application/json without as=Table" },
      { '{"kind":"' .. ("x"):rep(128) .. '","items":[]}', "ELIMIT", "limit exceeded at byte 8: the value is too long" },
      { '{"items":[{"a":' .. ("["):rep(300), "ELIMIT", "limit exceeded at byte 270: nested deeper than 256 levels" },
    } do
      it(case[1]:sub(1, 60):gsub("[^ -~]", "?"), function()
        local r = split(case[1])
        assert.equal(case[2], ffi.string(C.mw_err_name(r.rc)))
        assert.equal(case[3], r.message)
        assert.are.same(r, split(case[1], 1))
      end)
    end

    it("a member above 1 MiB, and names where it began", function()
      local member = '{"metadata":"' .. ("x"):rep(1024 * 1024) .. '"}'
      for _, chunk in ipairs { #member, 1000 } do
        local r = split(member, chunk)
        assert.equal(C.MW_ELIMIT, r.rc)
        assert.equal("limit exceeded at byte 12: a member of the list is larger than 1 MiB", r.message)
      end
    end)

    it("to go on after an error", function()
      local r = split("[]", nil, { again = true })
      assert.equal(C.MW_EPARSE, r.again)
    end)
  end)
end)
