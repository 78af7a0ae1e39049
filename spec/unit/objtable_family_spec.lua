-- The tables of objects that are packed beside a template: what is read of them without unpacking is the same.
local support = require "spec.support.codec"
local unit = require "spec.support.unit"
local codec, difference = support.codec, support.difference

local FAMILY = 8 + 256 -- objects until there is a template

local random

-- Reading is what counts.
local function touch() end

local function text()
  return ({ '"%d"', '"node-%d"', '"\\u00e9 \\"%d\\""', '"10.0.0.%d"', '""' })[random(5)]:format(random(0, 99999))
end

local function scalar()
  return ({ "%d", "-%d.5", "true", "null" })[random(4)]:format(random(0, 99999))
end

-- Pods of one application, most of which have the same members.
local function pod()
  local more = random(8) == 1 and (',"more%d":1'):format(random(3)) or ""
  local phase = random(8) == 1 and scalar() or text()
  return ('{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-%d","namespace":"shop","uid":"u%d",'
    .. '"labels":{"app":"web"}},"spec":{"nodeName":%s,"replicas":%s,"containers":[{"name":"c","image":%s,'
    .. '"args":["%s"]}],"f1":%s,"f2":%s,"note":"%s"%s},"status":{"phase":%s,"ip":%s,'
    .. '"conditions":[{"type":"Ready","since":%s}],"note":"%s"}%s}'):format(random(0, 99999),
    random(0, 99999), text(), scalar(), text(), ("x"):rep(100), scalar(), text(),
    ("y"):rep(200), more, phase, text(), text(), ("z"):rep(200), random(8) == 1 and ',"data":{"a":1}' or "")
end

local function family()
  random = support.random(77)
  for _ = 1, FAMILY do codec.object_from_json(pod()) end
end

-- A pod whose sections are both found without unpacking, and its JSON.
local function marked()
  for _ = 1, 100 do
    local json = pod()
    local o = codec.object_from_json(json)
    if codec.is_marked(o, "spec") and codec.is_marked(o, "status") then return o, json end
  end
  error "no pod is like its template"
end

describe("the table of an object that is like others", function()
  unit.no_leaks()
  setup(family)

  it("has the values that its JSON has, read in any order", function()
    local names = { "kind", "metadata", "spec", "status", "data", "none" }
    local fields = { "nodeName", "replicas", "containers", "f1", "f2", "note", "phase", "ip", "conditions", "more1",
      "none" }
    local seen = 0
    for n = 1, 2000 do
      local json = pod()
      local o, expected = codec.object_from_json(json), codec.decode(json)
      if codec.is_marked(o, "spec") then seen = seen + 1 end
      for _ = 1, random(0, 12) do
        local name, field = names[random(#names)], fields[random(#fields)]
        local section, wanted = o[name], expected[name]
        if type(wanted) == "table" then
          local found = difference(wanted[field], section[field])
          assert.is_nil(found, ("%d, %s.%s of %s: %s"):format(n, name, field, json, tostring(found)))
          if random(10) == 1 then pairs(section) end
        else
          assert.equal(wanted, section)
        end
        if random(20) == 1 then pairs(o) end
      end
      local found = difference(expected, o) or difference(expected, codec.decode(codec.encode(o)))
      assert.is_nil(found, ("%d, %s: %s"):format(n, json, tostring(found)))
    end
    assert.is_true(seen > 1000, seen)
  end)

  it("stays lazy, and gives the same section and values each time", function()
    local o, json = marked()
    local expected = codec.decode(json)
    local spec = o.spec
    assert.equal(spec, o.spec)
    assert.equal(expected.spec.nodeName, o.spec.nodeName)
    assert.equal(expected.spec.nodeName, rawget(o.spec, "nodeName"))
    assert.is_true(codec.is_lazy(o))
    assert.equal(expected.kind, o.kind)
    assert.equal(spec, o.spec)
    assert.is_nil(difference(expected, o))
    assert.equal(spec, o.spec)
  end)

  it("does not bring back what was read and set to nil", function()
    local o, json = marked()
    local expected = codec.decode(json)
    assert.equal(expected.spec.f1, o.spec.f1)
    o.spec.f1 = nil
    assert.is_nil(o.spec.f1)
    assert.equal(expected.status.phase, o.status.phase)
    o.status = nil
    assert.is_nil(o.status)
    assert.equal(expected.kind, o.kind)
    assert.is_nil(o.status)
    expected.spec.f1, expected.status = nil, nil
    assert.is_nil(difference(expected, o))
  end)

  it("knows a section that was read before its object was unpacked, and after", function()
    local before, json = marked()
    local spec = before.spec
    assert.equal(codec.decode(json).metadata.name, before.metadata.name)
    assert.equal(spec, before.spec)
    assert.is_nil(difference(codec.decode(json), before))
    local after
    after, json = marked()
    assert.equal(codec.decode(json).metadata.name, after.metadata.name)
    local status = after.status
    assert.equal(status, after.status)
    assert.is_nil(difference(codec.decode(json), after))
  end)

  it("is whole again after running out of memory at any point", function()
    jit.off()
    local n, done = 0, false
    while not done do
      local o, json = marked()
      done = codec.starve(n, function()
        touch(o.spec.nodeName, o.status.phase, o.spec.none, o.metadata.name)
        pairs(o)
      end)
      assert.is_nil(difference(codec.decode(json), o))
      n = n + 1
    end
    assert.is_true(n > 2)
    jit.on()
  end)

  it("is read by kube.get, before and after one field was", function()
    for _ = 1, 200 do
      local json = pod()
      local expected = codec.decode(json)
      for _, section in ipairs { "spec", "status" } do
        for _, key in ipairs { "nodeName", "f1", "phase", "none", "more1", "conditions" } do
          local wanted, path = expected[section][key], section .. "." .. key
          if wanted == codec.null then wanted = nil end
          local found = difference(wanted, codec.get(codec.object_from_json(json), path))
          assert.is_nil(found, ("%s of %s: %s"):format(path, json, tostring(found)))
        end
      end
    end
    local o, json = marked()
    local expected = codec.decode(json)
    assert.equal(expected.spec.note, codec.get(o, "spec.note"))
    assert.equal(expected.spec.nodeName, o.spec.nodeName)
    o.spec.f2 = "mine"
    assert.equal("mine", codec.get(o, "spec.f2"))
  end)
end)
