-- Label and field selectors: what they select, and what is said of those that are none. The texts
-- are those of kube-apiserver 1.36.
require "spec.support.sandbox_env"
local field_selector = require "kube.sandbox.field_selector"
local kinds = require "kube.sandbox.kinds"
local selector = require "kube.sandbox.selector"

local function selects(text, labels) return assert(selector.parse(text)):matches(labels) end

local function refusal(text)
  local found, problem = selector.parse(text)
  assert.is_nil(found, text)
  return problem
end

local VALUE = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
  .. "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
  .. "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
local NAME = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
  .. "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
  .. "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

describe("a label selector", function()
  it("selects by value, set, presence and size", function()
    for text, expected in pairs {
      ["a=1"] = true, ["a==1"] = true, ["a=2"] = false, ["a!=1"] = false, ["a!=2"] = true, ["b!=2"] = true,
      ["a in (1,2)"] = true, ["a in(2)"] = false, ["a notin (1)"] = false, ["b notin (1)"] = true,
      ["a"] = true, ["!a"] = false, ["b"] = false, ["! b"] = true, ["a>0"] = true, ["a>1"] = false, ["a<2"] = true,
      ["a<10"] = true, ["b>0"] = false, ["a=1,c"] = true, ["a=1,a=2"] = false, [""] = true, ["  "] = true,
      ["e="] = true, ["e in ()"] = true, ["e in (x,)"] = true, ["a in (1,,2)"] = true, ["a in (,1)"] = true,
      ["a\t=\n1"] = true, ["in=x"] = false, ["ex.io/k=v"] = true, ["a = 1 , ex.io/k notin (w , x)"] = true,
    } do
      assert.equal(expected, selects(text, { a = "1", c = "x", e = "", ["ex.io/k"] = "v" }), text)
    end
  end)

  it("takes in and notin for words where no operator can be", function()
    assert.is_true(selects("in in (in, notin)", { ["in"] = "notin" }))
    assert.is_true(selects("notin", { notin = "" }))
    assert.is_true(selects("a=in", { a = "in" }))
  end)

  it("compares integers of any length, and nothing else", function()
    assert.is_true(selects("a>9007199254740992", { a = "9007199254740993" }))
    assert.is_false(selects("a>1", { a = "x" }))
    assert.is_true(selects("a<3", { a = "002" }))
  end)

  it("matches objects without labels", function()
    assert.is_true(selects("!a", nil))
    assert.is_false(selects("a", nil))
  end)

  it("refuses what is not in the grammar, in the server's words", function()
    for text, expected in pairs {
      ["="] = "found '=', expected: !, identifier, or 'end of string'",
      [",a"] = "found ',', expected: !, identifier, or 'end of string'",
      ["a=b=c"] = "found '=', expected: ',' or 'end of string'",
      ["!a=b"] = "found '=', expected: ',' or 'end of string'",
      ["a=b c"] = "found 'c', expected: ',' or 'end of string'",
      ["a,"] = "found '', expected: identifier after ','",
      ["a,,b"] = "found ',', expected: identifier after ','",
      ["a b"] = "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
      ["ain(1)"] = "unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt",
      ["a in"] = "unable to parse requirement: found '' expected: '('",
      ["a notin b"] = "unable to parse requirement: found 'b' expected: '('",
      ["a in ("] = "unable to parse requirement: found '', expected: ',', ')' or identifier",
      ["a in (b"] = "unable to parse requirement: found '', expected: ',' or ')'",
      ["a in (b c)"] = "unable to parse requirement: found 'c', expected: ',' or ')'",
      ["a in (b,(c))"] = "unable to parse requirement: found '(', expected: ',', or identifier",
      ["!"] = "unable to parse requirement: found '', expected: identifier",
      ["a=("] = "unable to parse requirement: found '(', expected: identifier",
      ["a=!b"] = "unable to parse requirement: found '!', expected: identifier",
      ["a>=1"] = "unable to parse requirement: found '=', expected: identifier",
      ["a==="] = "unable to parse requirement: found '=', expected: identifier",
    } do
      assert.equal(expected, refusal(text), text)
    end
  end)

  it("refuses keys and values that no label can have", function()
    local head = "unable to parse requirement: "
    assert.equal(head .. '<nil>: Invalid value: "*": ' .. NAME, refusal("*=b"))
    assert.equal(head .. '<nil>: Invalid value: "/b": prefix part must be non-empty', refusal("/b=c"))
    assert.equal(head .. '<nil>: Invalid value: "a/": name part must be non-empty; ' .. NAME, refusal("a/=b"))
    assert.equal(head .. 'values[0][a]: Invalid value: "-b": ' .. VALUE, refusal("a=-b"))
    assert.equal(head .. ('[values[0][a]: Invalid value: "*": %s, values[1][a]: Invalid value: "-b": %s]')
      :format(VALUE, VALUE), refusal("a in (-b,*)"))
    for _, value in ipairs { "x", "1.5", "", "99999999999999999999" } do
      local detail = "for 'Gt', 'Lt' operators, the value must be an integer"
      assert.equal(head .. ('values[0]: Invalid value: "%s": %s'):format(value, detail), refusal("a>" .. value))
    end
  end)
end)

describe("a field selector", function()
  local registry = kinds.new()
  local config_maps = registry:find("", "v1", "configmaps")
  local pods = registry:find("", "v1", "pods")
  local jobs = registry:find("batch", "v1", "jobs")
  local nodes = registry:find("", "v1", "nodes")

  local function refused(R, text)
    local found, problem = field_selector.parse(text)
    if found then found, problem = found:resolve(R) end
    assert.is_nil(found, text)
    return problem
  end

  local function matches(R, text, doc) return assert(assert(field_selector.parse(text)):resolve(R)):matches(doc) end

  it("selects by the fields that the kind knows", function()
    local m = { name = "p", namespace = "n" }
    local pod = { metadata = m, spec = { nodeName = "w" }, status = { phase = "Running" } }
    assert.is_true(matches(pods, "metadata.name=p,status.phase==Running", pod))
    assert.is_false(matches(pods, "metadata.name!=p", pod))
    assert.is_true(matches(pods, "spec.host=w", pod))
    assert.is_true(matches(pods, "status.podIP=", pod))
    assert.is_true(matches(pods, ",metadata.namespace=n,,", pod))
    assert.is_true(matches(pods, "=", pod))
  end)

  it("reads flags and numbers as text, with the value that absence means", function()
    assert.is_true(matches(nodes, "spec.unschedulable=true", { spec = { unschedulable = true } }))
    assert.is_true(matches(nodes, "spec.unschedulable=false", { spec = {} }))
    local rc = registry:find("", "v1", "replicationcontrollers")
    assert.is_true(matches(rc, "status.replicas=3", { status = { replicas = 3 } }))
    assert.is_true(matches(rc, "status.replicas=0", { status = {} }))
  end)

  it("understands escaped commas, equals signs and backslashes", function()
    assert.is_true(matches(config_maps, [[metadata.name=a\,b\=c\\d]], { metadata = { name = [[a,b=c\d]] } }))
    assert.equal([[invalid field selector: invalid escape sequence: \b]], refused(config_maps, [[metadata.name=a\b]]))
    assert.equal([[invalid field selector: invalid escape sequence: \]], refused(config_maps, [[metadata.name=a\]]))
    assert.equal("invalid field selector: unescaped character in value: 61", refused(config_maps, "metadata.name=a=b"))
  end)

  it("refuses what it cannot understand, and fields in the words of the kind", function()
    assert.equal("invalid selector: 'bogus'; can't understand 'bogus'", refused(config_maps, "bogus"))
    assert.equal("invalid selector: 'a=b,c'; can't understand 'c'", refused(config_maps, "a=b,c"))
    assert.equal('"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
      refused(config_maps, "data.x=1"))
    assert.equal("field label not supported: spec.bogus", refused(pods, "spec.bogus=1"))
    assert.equal('field label "status.x" not supported for Job', refused(jobs, "status.x=1"))
  end)
end)
