-- The options of verbs: which verb has which, and what becomes of them in a request.
local core = require "kube._core"
local errors = require "kube._error"
local options = require "kube._options"

local M = {}

---@class kube.VerbOptions
---@field namespace? string where the key or the object names none
---@field timeout? number seconds for all of it, default: 30
---@field subresource? string "status", "scale", "eviction", "log"...
---@field resource? string for objects: where they go, when their kind does not tell ("v1/pods" of an Eviction)
---@field dry_run? boolean the server does everything but store it
---@field field_manager? string default: the controller's name
---@field field_validation? "Strict"|"Warn"|"Ignore" what becomes of unknown fields; the server's default is "Warn"
---@field force? boolean of an apply: takes fields from other managers; default: true in controllers, else false
---@field type? "merge"|"json"|"strategic" of a patch; default: "merge"
---@field resource_version? string of a read: not older than that; of a delete: only that one
---@field resource_version_match? "Exact"|"NotOlderThan" of a list
---@field uid? string of a delete: only that one
---@field propagation? "Background"|"Foreground"|"Orphan" of a delete: what becomes of dependents
---@field grace? number of a delete: seconds
---@field label_selector? string|table
---@field field_selector? string|table
---@field limit? number of a list: at most so many; the metadata's `continue` leads on
---@field continue? string of a list: where the one with a limit ended
---@field page_size? number of a list without a limit: how many are read at once; default: 500
---@field all? boolean of delete_collection: yes, all of them
---@field query? table further parameters: of a log { container = "main", tailLines = 100 }

local TYPES = {
  namespace = "string", timeout = "number", subresource = "string", resource = "string", dry_run = "boolean",
  field_manager = "string", field_validation = "string", force = "boolean", type = "string",
  resource_version = "string", resource_version_match = "string", uid = "string", propagation = "string",
  grace = "number", label_selector = "string|table", field_selector = "string|table", limit = "number",
  continue = "string", page_size = "number", all = "boolean", query = "table",
}

local VERBS = {
  get = "namespace subresource resource_version timeout query",
  list = "namespace label_selector field_selector limit continue page_size resource_version resource_version_match "
    .. "timeout query",
  create = "namespace resource subresource dry_run field_manager field_validation timeout query",
  update = "namespace resource subresource dry_run field_manager field_validation timeout query",
  update_status = "namespace resource dry_run field_manager field_validation timeout query",
  patch = "namespace subresource type dry_run field_manager field_validation timeout query",
  apply = "namespace resource subresource dry_run field_manager force field_validation timeout query",
  delete = "namespace propagation grace uid resource_version dry_run timeout query",
  delete_collection = "namespace label_selector field_selector all propagation grace dry_run timeout query",
}
VERBS.each = VERBS.list:gsub("limit continue ", "")

local known = {}
for verb, names in pairs(VERBS) do
  known[verb] = {}
  for name in names:gmatch("%S+") do known[verb][name] = TYPES[name] end
end

local VALUES = {
  propagation = { Background = true, Foreground = true, Orphan = true },
  field_validation = { Strict = true, Warn = true, Ignore = true },
  resource_version_match = { Exact = true, NotOlderThan = true },
  type = { merge = true, json = true, strategic = true },
}

local function whole(what, opts, name, least)
  local value = opts[name]
  if value == nil or (value >= least and value % 1 == 0 and value < 2 ^ 31) then return end
  errors.misuse("%s: option '%s' must be a whole number from %d on, not %s", what, name, least, tostring(value))
end

--- The options that a script gave to a verb, checked.
---@param verb string
---@param what string the name of the function in messages
---@param given? table
---@return kube.VerbOptions
function M.check(verb, what, given)
  local opts = options.check(what, given, known[verb])
  for name, values in pairs(VALUES) do
    local value = opts[name]
    if value ~= nil and not values[value] then
      errors.misuse("%s: option '%s' cannot be '%s'%s", what, name, value, options.hint(value, values))
    end
  end
  core.informer.check_namespace(what .. ": option 'namespace'", opts.namespace)
  whole(what, opts, "limit", 1)
  whole(what, opts, "page_size", 0)
  whole(what, opts, "grace", 0)
  if opts.subresource and not opts.subresource:find("^[%l%d][%w/-]*$") then
    errors.misuse("%s: '%s' cannot be a subresource, such as \"status\" or \"scale\"", what, opts.subresource)
  end
  return opts
end

-- The canonical text of a field selector: text, or a table of equalities.
local function fields_text(selector)
  if type(selector) ~= "table" then return core.selector.fields(selector) end
  local parts = {}
  for name, value in pairs(selector) do
    if type(name) ~= "string" or type(value) == "table" then
      errors.misuse("a field selector as a table maps fields to values, as in "
        .. "{ [\"spec.nodeName\"] = \"n1\" }")
    end
    parts[#parts + 1] = name .. "=" .. tostring(value):gsub("[\\,=]", "\\%0")
  end
  table.sort(parts)
  return core.selector.fields(table.concat(parts, ","))
end

--- The selectors of a table of options as canonical text, in place.
function M.canonical_selectors(opts)
  if opts.label_selector then opts.label_selector = core.selector.labels(opts.label_selector) end
  if opts.field_selector then opts.field_selector = fields_text(opts.field_selector) end
end

local function not_empty(text) return text ~= "" and text or nil end

--- The parameters of a request that the options make, without those of paging.
---@param opts kube.VerbOptions
---@param method string
---@return table<string, any>
function M.query(opts, method)
  local selectors = { label_selector = opts.label_selector, field_selector = opts.field_selector }
  M.canonical_selectors(selectors)
  local query = {
    labelSelector = not_empty(selectors.label_selector), fieldSelector = not_empty(selectors.field_selector),
    dryRun = opts.dry_run and method ~= "DELETE" and "All" or nil, fieldValidation = opts.field_validation,
  }
  for name, value in pairs(opts.query or {}) do query[name] = value end
  return query
end

return M
