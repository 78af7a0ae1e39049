local unit = require "spec.support.unit"
local objects = require "spec.support.objects"
local C, ffi, str, slice = unit.C, unit.ffi, unit.str, objects.slice

local function own(s) return s ~= nil and ffi.gc(s, C.mw_selector_free) or nil end

local function parse(text)
  local err = unit.err()
  local s = own(C.mw_selector_parse(slice(text), err))
  if s then return s end
  assert.is_true(err.code < 0)
  return nil, ffi.string(err.message), err.code
end

local function format(s)
  local b = objects.buf()
  assert.equal(0, C.mw_selector_format(s, b))
  return ffi.string(b.p)
end

-- Whether a selector matches labels: asked label by label and as a cached object.
local function matches(text, labels)
  local s = assert(parse(text))
  local get = ffi.cast("mw_label_cb", function(_, key, value)
    local found = labels[str(key[0])]
    if not found then return false end
    value[0] = slice(found)
    return true
  end)
  local direct = C.mw_selector_matches(s, get, nil)
  get:free()
  local cached = C.mw_selector_matches_object(s, objects.pod("a", "b", { labels = labels }), objects.unpacker)
  assert.equal(direct, cached, text)
  return direct
end

describe("label selector", function()
  unit.no_leaks()

  -- text -> canonical text
  local accepted = {
    { "", "" }, { "  \t\r\n", "" }, { "x", "x" }, { "!x", "!x" }, { " ! x ", "!x" },
    { "x=a", "x=a" }, { "x==a", "x==a" }, { "x!=a", "x!=a" }, { "x = a", "x=a" },
    { "x=", "x=" }, { "x= ", "x=" }, { "x=,z= ", "x=,z=" }, { "x==,y", "x==,y" }, { "x!=", "x!=" },
    { "x=a,y=b,z=c", "x=a,y=b,z=c" }, { "z=c,x=a", "x=a,z=c" }, { "!x,y", "!x,y" }, { "y,!x", "!x,y" },
    { "x in (a)", "x in (a)" }, { "x in(a)", "x in (a)" }, { "x in (b,a)", "x in (a,b)" },
    { "x in (a,a,b,a)", "x in (a,b)" }, { "x notin (b , a)", "x notin (a,b)" }, { "x in ()", "x in ()" },
    { "x in (,a)", "x in (,a)" }, { "x in (a,)", "x in (,a)" }, { "x in (a,,b)", "x in (,a,b)" },
    { "x in (,)", "x in ()" }, { "x notin ()", "x notin ()" }, { "x\tin\n(a)\r,y", "x in (a),y" },
    { "in in (in)", "in in (in)" }, { "notin notin (notin)", "notin notin (notin)" }, { "in", "in" },
    { "!in", "!in" }, { "in=in", "in=in" }, { "in,notin", "in,notin" }, { "x=notin", "x=notin" },
    { "x>1", "x>1" }, { "x < 10", "x<10" }, { "x>007", "x>007" }, { "x>9223372036854775807", "x>9223372036854775807" },
    { "example.com/name=v", "example.com/name=v" }, { "a-b.c/D_e.f-G=H_i.j-K", "a-b.c/D_e.f-G=H_i.j-K" },
    { "k=" .. ("v"):rep(63), "k=" .. ("v"):rep(63) }, { ("k"):rep(63), ("k"):rep(63) },
    { ("p"):rep(253) .. "/k", ("p"):rep(253) .. "/k" }, { "x=a\0=b", "x=a" },
    { "a,b=c,a=b,a", "a,a,a=b,b=c" },
  }

  it("accepts the whole grammar and prints it in its canonical form", function()
    for _, case in ipairs(accepted) do
      local s, message = parse(case[1])
      assert.is_truthy(s, case[1] .. ": " .. tostring(message))
      assert.equal(case[2], format(s))
    end
  end)

  it("prints a text that it reads back as the same", function()
    for _, case in ipairs(accepted) do
      assert.equal(case[2], format(assert(parse(case[2]))))
    end
  end)

  it("prints equal selectors equally, whatever order they were written in", function()
    local texts = { "a=1,a=2,a!=3,a in (x,y),a", "a,a in (y,x),a!=3,a=2,a=1", "a=2,a,a in (x,y,x),a=1,a!=3" }
    for _, text in ipairs(texts) do assert.equal(format(parse(texts[1])), format(parse(text))) end
  end)

  -- text, column, what the message says
  local refused = {
    { ",", 1, 'expected a key or "!", found ","' }, { ",x", 1, "expected a key" },
    { "x,", 3, 'expected a key or "!", found the end' }, { "x,,y", 3, 'found ","' },
    { "x=a,,y=b", 5, 'found ","' }, { "x ,\0y", 4, "found the end" },
    { "!x=v", 3, 'expected "," or the end, found "="' }, { "!x in (a)", 4, 'found "in"' },
    { "x!", 2, 'expected one of = == != in notin > <, "," or the end, found "!"' },
    { "!", 2, 'expected a key after "!", found the end' }, { "!!x", 2, 'found "!"' },
    { "!=v", 1, 'found "!="' }, { "=v", 1, 'found "="' }, { "=", 1, 'found "="' }, { "(a)", 1, 'found "("' },
    { "x=a=b", 4, 'expected "," or the end, found "="' }, { "x=a b", 5, 'found "b"' },
    { "x y", 3, 'found "y"' }, { "x===v", 4, 'expected a value, found "="' }, { "x=!v", 3, "expected a value" },
    { "x==!=v", 4, 'found "!="' }, { "x=(a)", 3, 'found "("' }, { "x=)", 3, 'found ")"' },
    { "x in a", 6, 'expected "(", found "a"' }, { "x in", 5, 'expected "(", found the end' },
    { "x in,y", 5, 'expected "("' }, { "x in (a b)", 9, 'expected "," or ")", found "b"' },
    { "x in (a", 8, "found the end" }, { "x in (", 7, "found the end" }, { "x in (a=b)", 8, 'found "="' },
    { "x in ((a))", 7, 'found "("' }, { "x in (a))", 9, 'found ")"' }, { "x in (a) y", 10, 'found "y"' },
    { "x IN (a)", 3, 'found "IN"' }, { "x in (a)(b)", 9, 'found "("' },
    { "x>", 1, "64-bit integer" }, { "x>,y", 1, "64-bit integer" }, { "y,x>a", 3, "64-bit integer" },
    { "x>1.5", 1, "64-bit integer" }, { "x<1e3", 1, "64-bit integer" }, { "x>>1", 3, "expected a value" },
    { "x>=1", 3, 'found "="' }, { "x<9223372036854775808", 1, "64-bit integer" }, { "x>-1", 1, "not a label value" },
    { "x>+1", 1, "not a label value" }, { "-x=a", 1, "not a label key" }, { "x-", 1, "not a label key" },
    { "x@y", 1, "not a label key" }, { "a/b/c", 1, "not a label key" }, { "/x", 1, "not a label key" },
    { "a/", 1, "not a label key" }, { "A/x", 1, "not a label key" }, { "a..b/x", 1, "not a label key" },
    { "-a/x", 1, "not a label key" }, { "a-/x", 1, "not a label key" }, { "a.-b/x", 1, "not a label key" },
    { "a-.b/x", 1, "not a label key" }, { ".a/x", 1, "not a label key" }, { "a./x", 1, "not a label key" },
    { "a_b/x", 1, "not a label key" }, { ("k"):rep(64), 1, "not a label key" },
    { ("p"):rep(254) .. "/k", 1, "not a label key" }, { "größe=1", 1, "not a label key" },
    { "x=-a", 1, "not a label value" }, { "x=a-", 1, "not a label value" }, { "x=a/b", 1, "not a label value" },
    { "x=a:b", 1, "not a label value" }, { "y,x in (a,b.)", 3, "not a label value" },
    { "x=" .. ("v"):rep(64), 1, "not a label value" },
  }

  it("refuses everything else, with the column and what was expected", function()
    for _, case in ipairs(refused) do
      local s, message = parse(case[1])
      assert.is_nil(s, case[1])
      assert.is_truthy(message:find(("column %d: "):format(case[2]), 1, true), case[1] .. " -> " .. message)
      assert.is_truthy(message:find(case[3], 1, true), case[1] .. " -> " .. message)
    end
  end)

  it("refuses a text beyond its limit of length", function()
    local _, _, code = parse(("x"):rep(C.MW_SELECTOR_LENGTH_MAX + 1))
    assert.equal(C.MW_ELIMIT, code)
  end)

  it("bears thousands of requirements and values", function()
    local names = {}
    for i = 1, 9000 do names[i] = "v" .. (i * 7919 % 9001) end
    assert.is_true(matches("x in (" .. table.concat(names, ",") .. ")", { x = "v17" }))
    assert.is_false(matches("x in (" .. table.concat(names, ",") .. ")", { x = "v9001" }))
    local s = assert(parse(table.concat(names, ",")))
    assert.is_truthy(format(s))
  end)

  -- selector, labels, whether they match
  local matching = {
    { "", {}, true }, { "", { x = "a" }, true },
    { "x=a", { x = "a" }, true }, { "x=a", { x = "b" }, false }, { "x=a", {}, false }, { "x==a", { x = "a" }, true },
    { "x=", { x = "" }, true }, { "x=", { x = "a" }, false }, { "x=", {}, false },
    { "x!=a", { x = "b" }, true }, { "x!=a", { x = "a" }, false }, { "x!=a", {}, true }, { "x!=a", { y = "a" }, true },
    { "x!=", { x = "" }, false }, { "x!=", {}, true },
    { "x", { x = "a" }, true }, { "x", { x = "" }, true }, { "x", { y = "x" }, false },
    { "!x", { x = "a" }, false }, { "!x", {}, true }, { "!x", { y = "x" }, true },
    { "x in (a,b)", { x = "b" }, true }, { "x in (a,b)", { x = "c" }, false }, { "x in (a,b)", {}, false },
    { "x in (,a)", { x = "" }, true }, { "x in ()", { x = "" }, true }, { "x in ()", { x = "a" }, false },
    { "x notin (a,b)", { x = "c" }, true }, { "x notin (a,b)", { x = "a" }, false }, { "x notin (a,b)", {}, true },
    { "x>5", { x = "6" }, true }, { "x>5", { x = "5" }, false }, { "x>5", { x = "40" }, true }, { "x>5", {}, false },
    { "x>5", { x = "six" }, false }, { "x<5", { x = "4" }, true }, { "x<5", { x = "5" }, false },
    { "x<5", { x = "-7" }, true }, { "x<5", { x = "" }, false }, { "x<5", { x = "4.0" }, false },
    { "x>5", { x = "9223372036854775807" }, true }, { "x>5", { x = "9223372036854775808" }, false },
    { "x<5", { x = "-9223372036854775808" }, true }, { "x<5", { x = "-9223372036854775809" }, false },
    { "x>0006", { x = "007" }, true },
    { "x=a,y=b", { x = "a", y = "b" }, true }, { "x=a,y=b", { x = "a" }, false }, { "x=a,x=b", { x = "a" }, false },
    { "x in (a,b),x!=a", { x = "b" }, true }, { "x,!y,z>1", { x = "q", z = "2" }, true },
    { "x,!y,z>1", { x = "q", z = "2", y = "" }, false },
    { "x in (a,b,c,d,e,f,g,h,i)", { x = "i" }, true }, { "x notin (a,b,c,d,e,f,g,h,i)", { x = "j" }, true },
    { "x notin (a,b,c,d,e,f,g,h,i)", { x = "i" }, false }, { "foo=bar", { Foo = "bar" }, false },
  }

  it("matches labels as the API server does, from fingerprints or bytes", function()
    for _, case in ipairs(matching) do
      assert.equal(case[3], matches(case[1], case[2]), case[1])
    end
  end)

  it("decides by fingerprints alone wherever they suffice", function()
    -- Without an unpacker, reading a label would crash.
    local o = objects.pod("a", "b", { labels = { app = "web", tier = "front" } })
    local surely = { ["zone"] = false, ["!zone"] = true, ["app=db"] = false, ["app!=db"] = true,
                     ["app in (x,y)"] = false, ["app notin (x,y)"] = true, ["zone>1"] = false,
                     ["zone in (a,b,c,d,e,f,g,h,i,j)"] = false, ["!zone,app!=db"] = true,
                     ["app=web,tier=back"] = false, ["app,zone"] = false, [""] = true }
    for text, expected in pairs(surely) do
      assert.equal(expected, C.mw_selector_matches_object(assert(parse(text)), o, nil), text)
    end
  end)

  it("agrees with a plain model on random labels and requirements", function()
    math.randomseed(11)
    local keys, values = { "a", "b", "c" }, { "", "1", "2", "30", "x" }
    local function pick(t) return t[math.random(#t)] end
    for _ = 1, 2000 do
      local labels, reqs, expected = {}, {}, true
      for _, k in ipairs(keys) do if math.random() < 0.6 then labels[k] = pick(values) end end
      for i = 1, math.random(0, 3) do
        local k, v, w, kind = pick(keys), pick(values), pick(values), math.random(6)
        local has = labels[k]
        local is
        if kind == 1 then reqs[i], is = k, has ~= nil
        elseif kind == 2 then reqs[i], is = "!" .. k, has == nil
        elseif kind == 3 then reqs[i], is = k .. "=" .. v, has == v
        elseif kind == 4 then reqs[i], is = k .. "!=" .. v, has ~= v
        elseif kind == 5 then reqs[i], is = ("%s in (%s,%s)"):format(k, v, w), has == v or has == w
        else reqs[i], is = k .. ">1", (tonumber(has or "") or 0) > 1 end
        expected = expected and is
      end
      local text = table.concat(reqs, ",")
      assert.equal(expected, matches(text, labels), text)
    end
  end)

  it("that selects nothing matches no object, and is not the one that selects everything", function()
    local nothing, everything = own(C.mw_selector_nothing()), own(C.mw_selector_new())
    local o = objects.pod("a", "b", { labels = { app = "web" } })
    assert.is_false(C.mw_selector_matches_object(nothing, o, nil))
    assert.is_true(C.mw_selector_matches_object(everything, o, nil))
    assert.is_true(C.mw_selector_is_nothing(nothing))
    assert.is_false(C.mw_selector_is_everything(nothing))
    assert.is_true(C.mw_selector_is_everything(everything))
    assert.is_true(C.mw_selector_is_everything(parse " "))
    assert.is_false(C.mw_selector_is_everything(parse "x"))
    assert.is_false(C.mw_selector_is_nothing(everything))
    assert.equal("", format(everything))
  end)

  describe("built by hand", function()
    local function require_(s, key, op, values, check)
      local v = ffi.new("struct mw_slice[?]", #values + 1)
      for i, text in ipairs(values) do v[i - 1] = slice(text) end
      local err = unit.err()
      local rc = C.mw_selector_require(s, slice(key), op, v, #values, check, err)
      return rc == 0 and true or ffi.string(err.message)
    end

    it("checks how many values each operator takes", function()
      local s = own(C.mw_selector_new())
      assert.matches("no values", require_(s, "x", C.MW_SEL_EXISTS, { "a" }, true))
      assert.matches("no values", require_(s, "x", C.MW_SEL_NOT_EXISTS, { "a" }, true))
      assert.matches("at least one", require_(s, "x", C.MW_SEL_IN, {}, true))
      assert.matches("at least one", require_(s, "x", C.MW_SEL_NOT_IN, {}, false))
      assert.matches("exactly one", require_(s, "x", C.MW_SEL_EQUALS, {}, true))
      assert.matches("exactly one", require_(s, "x", C.MW_SEL_NOT_EQUALS, { "a", "b" }, true))
      assert.matches("integer", require_(s, "x", C.MW_SEL_LESS, { "a" }, false))
      assert.is_true(C.mw_selector_is_everything(s))
    end)

    it("checks keys and values unless told not to", function()
      local s = own(C.mw_selector_new())
      assert.matches("not a label key", require_(s, "a b", C.MW_SEL_EXISTS, {}, true))
      assert.matches("not a label value", require_(s, "a", C.MW_SEL_EQUALS, { "a b" }, true))
      assert.is_true(require_(s, "a b", C.MW_SEL_EQUALS, { "c d" }, false))
      assert.equal("a b=c d", format(s))
    end)

    it("requires all of its parts", function()
      local s = own(C.mw_selector_new())
      assert.is_true(require_(s, "tier", C.MW_SEL_NOT_IN, { "back", "db" }, true))
      assert.is_true(require_(s, "app", C.MW_SEL_EQUALS, { "web" }, true))
      assert.equal("app=web,tier notin (back,db)", format(s))
      local function test(labels)
        return C.mw_selector_matches_object(s, objects.pod("a", "b", { labels = labels }), objects.unpacker)
      end
      assert.is_true(test { app = "web" })
      assert.is_false(test { app = "web", tier = "db" })
      assert.is_false(test {})
    end)
  end)
end)

describe("field selector", function()
  local function check(text)
    local b, err = objects.buf(), unit.err()
    if C.mw_field_selector_check(slice(text), b, err) == 0 then return ffi.string(b.p) end
    return nil, ffi.string(err.message)
  end

  it("is checked and brought into one form", function()
    for text, canonical in pairs {
      [""] = "", [","] = "", ["a=b"] = "a=b", ["a==b"] = "a=b", ["a!=b"] = "a!=b", ["a="] = "a=", ["a!="] = "a!=",
      ["a==" ] = "a=", ["spec.nodeName=n1,status.phase!=Running"] = "spec.nodeName=n1,status.phase!=Running",
      ["b=2,a=1"] = "a=1,b=2", ["a!=2,a=1"] = "a=1,a!=2", [",a=b,,c=d,"] = "a=b,c=d",
      ["a=x\\,y"] = "a=x\\,y", ["a=x\\=y"] = "a=x\\=y", ["a=x\\\\"] = "a=x\\\\", ["a=x\\\\,b=1"] = "a=x\\\\,b=1",
      ["a=x y!"] = "a=x y!", ["a=1,a=1"] = "a=1,a=1",
    } do
      assert.equal(canonical, check(text), text)
    end
  end)

  it("is refused with the column where it is wrong", function()
    for text, where in pairs {
      ["a"] = 1, ["a=b,c"] = 5, ["=b"] = 1, ["!=b"] = 1, ["a=b=c"] = 4, ["a===b"] = 4, ["a=x\\y"] = 4,
      ["a=x\\"] = 4, ["a!b"] = 1, ["c=d,a=x\\n"] = 8, ["a=x\\\0"] = 4,
    } do
      local canonical, message = check(text)
      assert.is_nil(canonical, text)
      assert.is_truthy(message:find(("column %d:"):format(where), 1, true), text .. " -> " .. message)
    end
    assert.is_nil(check("a=" .. ("x"):rep(C.MW_SELECTOR_LENGTH_MAX)))
  end)
end)
