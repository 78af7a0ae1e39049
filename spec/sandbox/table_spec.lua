-- Tables, against rows recorded from kube-apiserver 1.36.3.
require "spec.support.sandbox_env"
local json = require "kube.sandbox.json"
local descriptor = require "kube.sandbox.crd.descriptor"
local kinds = require "kube.sandbox.kinds"
local tables = require "kube.sandbox.table"
local text = require "kube.sandbox.printers.text"
local recorded = require "spec.support.recorded"

-- Ages of a few seconds depend on when the server printed.
local function without_young_ages(cells)
  return (json.encode(cells):gsub('"%d+s"', '"young"'):gsub('"%dm%d*s?"', '"young"'))
end

describe("tables", function()
  local registry = kinds.new()

  it("have the cells of every built-in kind as the server prints them", function()
    local answers = recorded.read "rows.json"
    for _, row in ipairs(answers.rows) do
      local api_version, plural = row.kind:match("^(.*)/([^/]*)$")
      local group, version = api_version:match("^(.*)/(.*)$")
      local R = registry:find(group or "", version or api_version, plural)
      if R then
        local got = tables.of(R, { row.object }, { now = answers.now }).rows[1]
        assert.equal(without_young_ages(row.cells), without_young_ages(got.cells), row.kind)
        assert.same(row.conditions and json.encode(row.conditions), got.conditions and json.encode(got.conditions))
      end
    end
  end)

  it("have the columns that a definition gives, found by their paths", function()
    local answers = recorded.read "custom_table.json"
    local R, plain = unpack(descriptor.of(answers.crd))
    local got = tables.of(R, answers.items, { now = answers.now })
    assert.equal(json.encode(answers.columns), json.encode(got.columnDefinitions))
    for i, cells in ipairs(answers.rows) do
      assert.equal(without_young_ages(cells), without_young_ages(got.rows[i].cells))
    end
    local default = tables.of(plain, answers.items, { now = answers.now })
    assert.equal("Age", default.columnDefinitions[2].name)
    assert.equal(2, #default.rows[1].cells)
  end)

  it("carry as much of the object as was asked for", function()
    local R = registry:find("", "v1", "configmaps")
    local document = json.object { kind = "ConfigMap", apiVersion = "v1", metadata = json.object { name = "a" } }
    local function object(include) return tables.of(R, { document }, { include = include, now = 0 }).rows[1].object end
    assert.equal(json.null, object "None")
    assert.equal(document, object "Object")
    assert.equal("PartialObjectMetadata", object().kind)
    assert.equal("meta.k8s.io/v1", object().apiVersion)
    assert.equal(document.metadata, object().metadata)
  end)

  it("tell ages as people read them", function()
    local ages = { [0] = "0s", [119] = "119s", [120] = "2m", [121] = "2m1s", [600] = "10m", [10799] = "179m",
      [10800] = "3h", [10860] = "3h1m", [172799] = "47h", [172800] = "2d", [176400] = "2d1h", [691200] = "8d",
      [63072000] = "2y", [63158400] = "2y1d", [-5] = "<invalid>" }
    for seconds, expected in pairs(ages) do assert.equal(expected, text.human(seconds)) end
    assert.equal("<unknown>", text.since(nil, 0))
    assert.equal("10s", text.since("1970-01-01T01:00:00+01:00", 10))
  end)
end)
