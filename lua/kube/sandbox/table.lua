-- Tables: objects as rows of cells, for clients that print.
local json = require "kube.sandbox.json"
local jsonpath = require "kube.sandbox.crd.jsonpath"
local kinds = require "kube.sandbox.kinds"
local printers = require "kube.sandbox.printers"
local text = require "kube.sandbox.printers.text"
local values = require "kube.sandbox.validate.value"

local tables = {}

-- ---- columns ----

-- The texts about names and ages are the same for all kinds; configmaps have both.
local function common()
  local columns = kinds.columns { builtin = true, api_version = "v1", plural = "configmaps" }
  return columns[1], columns[3]
end

local function custom_columns(R)
  local name, age = common()
  local given = R.columns or {}
  if #given == 0 then
    given = { { name = "Age", type = "date", jsonPath = ".metadata.creationTimestamp", description = age.description } }
  end
  local columns, paths = json.array { name }, {}
  for _, column in ipairs(given) do
    local steps = jsonpath.compile(column.jsonPath)
    if not steps then break end
    paths[#paths + 1] = steps
    columns[#columns + 1] = json.object {
      name = column.name,
      type = column.type,
      format = column.format or "",
      priority = column.priority or 0,
      description = text.either(column.description,
        "Custom resource definition column (in JSONPath format): " .. column.jsonPath),
    }
  end
  return columns, paths
end

local known = setmetatable({}, { __mode = "k" })

-- The columns of a resource, and for a custom one the paths of all but the first.
local function columns_of(R)
  if R.builtin then return kinds.columns(R), nil end
  if not known[R] then
    local columns, paths = custom_columns(R)
    known[R] = { columns = columns, paths = paths }
  end
  return known[R].columns, known[R].paths
end

-- ---- cells of custom resources ----

local function as_text(value)
  if type(value) == "string" then return value end
  local kind = values.kind(value)
  if kind == "null" then return "<no value>" end
  if kind == "number" then return values.float_text(values.double(value)) end
  return json.encode(value)
end

local CELLS = {
  string = as_text,
  integer = function(value)
    local kind = values.kind(value)
    if kind == "integer" then return value end
    if kind ~= "number" then return nil end
    local double = values.double(value)
    return double < 0 and math.ceil(double) or math.floor(double)
  end,
  number = function(value)
    local kind = values.kind(value)
    if kind == "integer" or kind == "number" then return value end
  end,
  boolean = function(value) if type(value) == "boolean" then return value end end,
  date = function(value, now)
    if type(value) ~= "string" then return nil end
    if value == "" then return "<unknown>" end
    local seconds = text.seconds(value)
    return seconds and text.human(now - seconds) or "<invalid>"
  end,
}

local function custom_cells(columns, paths, document, now)
  local cells = json.array { document.metadata.name or "" }
  for i, steps in ipairs(paths) do
    local value = jsonpath.first(steps, document)
    local cell
    if value ~= nil then cell = CELLS[columns[i + 1].type](value, now) end
    cells[i + 1] = cell == nil and json.null or cell
  end
  return cells
end

-- ---- rows ----

local function cells_of(R, columns, paths, document, now)
  if paths then return custom_cells(columns, paths, document, now) end
  local printer = printers.of(R)
  if printer then
    local cells = printer(document, now)
    -- A bookmark has nothing to show.
    for i = 1, #columns do
      if cells[i] == nil then cells[i] = "" end
    end
    return json.array(cells)
  end
  return json.array { document.metadata.name or "", document.metadata.creationTimestamp or json.null }
end

-- What a row carries of its object: nothing, its metadata or all of it.
local function object_of(R, document, include, version)
  if include == "None" then return json.null end
  if include == "Object" then return document end
  return json.object {
    kind = "PartialObjectMetadata",
    apiVersion = "meta.k8s.io/" .. version,
    metadata = printers.metadata(R, document),
  }
end

--- The Table of documents of resource R. Options: include (None, Metadata, Object; default Metadata),
--- version (of meta.k8s.io, default v1), metadata (of the table), now (seconds, for ages).
function tables.of(R, documents, options)
  local version = options.version or "v1"
  local columns, paths = columns_of(R)
  local rows = json.array {}
  for i, document in ipairs(documents) do
    local conditions = R.builtin and printers.conditions(R, document) or nil
    rows[i] = json.object {
      cells = cells_of(R, columns, paths, document, options.now),
      conditions = conditions,
      object = object_of(R, document, options.include, version),
    }
  end
  return json.object {
    kind = "Table",
    apiVersion = "meta.k8s.io/" .. version,
    metadata = options.metadata or json.object {},
    columnDefinitions = columns or json.array { common(), json.object { name = "Created At", type = "date", format = "",
      priority = 0, description = select(2, common()).description } },
    -- The default printer leaves an empty list out, the others do not.
    rows = (rows[1] or paths or printers.of(R)) and rows or json.null,
  }
end

return tables
