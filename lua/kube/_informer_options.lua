-- What an informer can be made with: checked where it is written, and turned into what the core takes.
local core = require "kube._core"
local errors = require "kube._error"
local fingerprint = require "kube._fingerprint"
local groups = require "kube._groups"
local options = require "kube._options"
local verb_options = require "kube._verb_options"

local informer_options = {}

--- The options of every informer; factories add their own.
informer_options.known = {
  client = "client", namespace = "string", resync = "number",
  label_selector = "string|table", field_selector = "string|table",
  tweak_list_options = "function", transform = "function|table",
  metadata_only = "boolean", keep_managed_fields = "boolean",
  page_size = "number", streaming = "boolean", backoff = "table",
  min_watch_timeout = "number", internal_error_budget = "number",
  short_watch = "number", min_resync = "number", queue_bound = "number",
}

local transform_options = { keep = "table", drop = "table" }
local backoff_options = { duration = "number", factor = "number", jitter = "number", cap = "number",
  steps = "number", reset = "number" }

-- managedFields go whatever else is kept or dropped, unless they were asked for.
local function dropped(opts)
  local drop = opts.transform.drop
  if opts.keep_managed_fields then return drop end
  local all = { "metadata.managedFields" }
  for i, path in ipairs(drop or {}) do all[i + 1] = path end
  return all
end

-- A copy of options that says in messages what they were given to, and others in place of some.
local function named(what, opts, others)
  local copy = { what = what }
  for name, value in pairs(opts) do copy[name] = value end
  for name, value in pairs(others or {}) do copy[name] = value end
  return copy
end

--- A checked copy of the options that a script gave to `what`.
function informer_options.check(what, given, known)
  local opts = {}
  for name, value in pairs(options.check(what, given, known)) do opts[name] = value end
  core.informer.check_namespace(what .. ": option 'namespace'", opts.namespace)
  verb_options.canonical_selectors(opts)
  if type(opts.transform) == "table" then
    options.check(what .. ": transform", opts.transform, transform_options)
    core.informer.check_paths { what = what .. ": transform", keep = opts.transform.keep, drop = dropped(opts) }
  end
  options.check(what .. ": backoff", opts.backoff, backoff_options)
  core.informer.check_tuning(named(what, opts, { backoff = opts.backoff and named(what .. ": backoff", opts.backoff) }))
  return opts
end

--- Raises unless there can be an informer of this resource; says which one may be meant.
---@param what string the name of the function in messages
function informer_options.check_resource(what, resource)
  if type(resource) ~= "string" then
    errors.misuse("%s takes \"group/version/plural\" (or \"version/plural\" for core)", what)
  end
  core.informer.check_resource(what, resource)
  if groups.is_known(resource) or not core.informer.is_own_group(groups.group_of(resource)) then return end
  require("kube._resource").check_own(what, resource)  -- of no use to most scripts
end

local function escape(value)
  return (tostring(value):gsub("[^%w%-._~]", function(c) return ("%%%02X"):format(c:byte()) end))
end

local parameters = { label_selector = "labelSelector", field_selector = "fieldSelector",
  shard_selector = "shardSelector" }
local list_options_known = { label_selector = "string|table", field_selector = "string|table",
  shard_selector = "string" }

--- Runs tweak_list_options of checked options, which have it no longer then: what it leaves in the table is what is
--- sent, whatever becomes of the informer.
function informer_options.tweak(opts)
  if not opts.tweak_list_options then return end
  local list_options = { label_selector = opts.label_selector, field_selector = opts.field_selector }
  local changed = opts.tweak_list_options(list_options)
  list_options = type(changed) == "table" and changed or list_options
  options.check("what tweak_list_options leaves", list_options, list_options_known)
  verb_options.canonical_selectors(list_options)
  for key in pairs(parameters) do opts[key] = list_options[key] end
  opts.tweak_list_options = nil
end

-- The fixed query parameters of every list and watch.
local function query_of(opts)
  local parts = {}
  for key, parameter in pairs(parameters) do
    local value = opts[key]
    if value and value ~= "" then parts[#parts + 1] = parameter .. "=" .. escape(value) end
  end
  table.sort(parts)
  return #parts > 0 and table.concat(parts, "&") or nil
end

local copied = { "client", "namespace", "metadata_only", "keep_managed_fields", "page_size",
  "streaming", "backoff", "min_watch_timeout", "internal_error_budget", "short_watch",
  "min_resync", "queue_bound", "resync" }

-- Options that change how an informer works and are no part of what it is otherwise known by.
local tuning = { "backoff", "internal_error_budget", "min_resync", "min_watch_timeout", "page_size",
  "queue_bound", "short_watch", "streaming" }

-- The fields of a flat table in a stable order.
local function flat_text(fields)
  local parts = {}
  for name, value in pairs(fields) do parts[#parts + 1] = name .. "=" .. tostring(value) end
  table.sort(parts)
  return table.concat(parts, ",")
end

local function variant_of(opts)
  local parts = {}
  for _, name in ipairs(tuning) do
    local value = opts[name]
    if type(value) == "table" then value = flat_text(value) end
    if value ~= nil then parts[#parts + 1] = name .. "=" .. tostring(value) end
  end
  if type(opts.transform) == "function" then parts[#parts + 1] = "transform=" .. fingerprint(opts.transform) end
  return #parts > 0 and table.concat(parts, ";") or nil
end

--- What core.informer.new takes, from checked options.
function informer_options.spec(resource, opts)
  local spec = { resource = resource, query = query_of(opts), variant = variant_of(opts) }
  for _, name in ipairs(copied) do spec[name] = opts[name] end
  if type(opts.transform) == "table" then
    spec.keep, spec.drop = opts.transform.keep, dropped(opts)
  end
  return spec
end

local function path_of(spec)
  if spec.label then return ('metadata.labels["%s"]'):format(spec.label) end
  return spec.owner and "metadata.ownerReferences" or spec.path
end

local function why_unstored(inf, path)
  if path:find("^metadata%.managedFields") and not inf._opts.keep_managed_fields then
    return "the informer has no keep_managed_fields"
  end
  return inf._opts.metadata_only and "the informer has metadata_only"
    or "the transform of the informer does not keep it"
end

--- Warns of an index or a predicate that looks at what is never stored.
---@param what string which index or predicate
---@param inf kube.Informer
---@param spec { path?: string, label?: string, owner?: string }
function informer_options.warn_unstored(what, inf, spec)
  local path = path_of(spec)
  if not path or inf._handle:may_have(path) then return end
  core.log.write("warn", ("%s looks at %s, which is never there: %s"):format(what, path, why_unstored(inf, path)),
    { at = errors.place() })
end

return informer_options
