-- What a request asks for: its path taken apart, its query decoded, its options checked.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local status = require "kube.sandbox.status"
local utf8 = require "kube.sandbox.utf8"

local request = {}

local function unescape(text)
  return (text:gsub("+", " "):gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

local function unescape_path(text)
  if not text:find("%", 1, true) then return text end
  return (text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

--- Splits a target into its path and its query: name -> array of values.
function request.target(target)
  local path, text = target:match("^([^?#]*)%??([^#]*)")
  local query = {}
  for pair in text:gmatch("[^&;]+") do
    local name, value = pair:match("^([^=]*)=?(.*)$")
    name, value = unescape(name), unescape(value)
    query[name] = query[name] or {}
    table.insert(query[name], value)
  end
  return path, query
end

local VERBS = { POST = "create", GET = "get", HEAD = "get", PUT = "update", PATCH = "patch", DELETE = "delete" }

local FALSE = { ["0"] = true, ["false"] = true }

--- The first value of a query parameter, or nil.
function request.value(info, name)
  local values = info.query[name]
  return values and values[1]
end

--- A boolean parameter as metav1's conversion reads it: empty counts as true ("?watch"), and so
--- does anything that is not a way to write false.
function request.flag(info, name)
  local text = request.value(info, name)
  if text == nil then return nil end
  return not FALSE[text:lower()]
end

local INT64_MAX, UINT64_MAX = "9223372036854775807", "18446744073709551615"

local function in_range(digits, max)
  digits = digits:gsub("^0+(.)", "%1")
  return #digits < #max or #digits == #max and digits <= max
end

local function go_number(call, text, pattern, max)
  local digits = text:match(pattern)
  if not digits then return nil, ("strconv.%s: parsing %s: invalid syntax"):format(call, field.show(text)) end
  if not in_range(digits, max) then
    return nil, ("strconv.%s: parsing %s: value out of range"):format(call, field.show(text))
  end
  return tonumber((text:gsub("^%+", "")))
end

--- The number that Go's strconv.ParseUint reads; nil and what it says of any other text.
function request.unsigned(text) return go_number("ParseUint", text, "^(%d+)$", UINT64_MAX) end

--- The first value of a query parameter as valid UTF-8, or nil.
function request.text(info, name)
  local text = request.value(info, name)
  return text and utf8.valid(text)
end

--- An integer parameter, or nil; a wrong one is refused in Go's words.
function request.integer(info, name)
  local text = request.text(info, name)
  if not text then return nil end
  local number, problem = go_number("ParseInt", text, "^[+-]?(%d+)$", INT64_MAX)
  return number or error(status.bad_request("%s", problem))
end

local function segments(path)
  local parts = {}
  for part in path:gmatch("[^/]+") do parts[#parts + 1] = unescape_path(part) end
  return parts
end

-- Subresources of a namespace that look like resources inside it.
local NAMESPACE_SUBRESOURCES = { status = true, finalize = true }

-- Everything after the group and version: [namespaces NS] resource [name [subresource]].
local function place(info, parts, i)
  if parts[i] == "namespaces" and parts[i + 1] then
    if parts[i + 2] and not NAMESPACE_SUBRESOURCES[parts[i + 2]] then
      info.namespace = parts[i + 1]
      i = i + 2
    else
      info.resource, info.name, info.subresource = "namespaces", parts[i + 1], parts[i + 2]
      info.extra = parts[i + 3]
      return
    end
  end
  info.resource, info.name, info.subresource, info.extra = parts[i], parts[i + 1], parts[i + 2], parts[i + 3]
end

-- The name that a field selector pins, which makes a collection request a named one.
local function selected_name(info)
  local selector = request.value(info, "fieldSelector")
  return selector and ("," .. selector .. ","):match(",metadata%.name==?([^,=!]+),")
end

local function collection_verb(info, method)
  if method == "GET" or method == "HEAD" then
    info.selected_name = selected_name(info)
    if info.watch_prefix or request.flag(info, "watch") then return "watch" end
    return "list"
  end
  if method == "DELETE" then return "deletecollection" end
  return VERBS[method]
end

--- The parts of a request. `info.group` is nil when the path is not one of a resource.
function request.parse(method, target)
  local path, query = request.target(target)
  local info = { method = method, path = path, query = query }
  local parts = path:find("//", 1, true) and {} or segments(path)
  local i
  if parts[1] == "api" and parts[2] == "v1" then
    info.group, info.version, i = "", "v1", 3
  elseif parts[1] == "apis" and parts[2] and parts[3] then
    info.group, info.version, i = parts[2], parts[3], 4
  end
  if not i or not parts[i] then
    info.verb = VERBS[method]
    return info
  end
  if parts[i] == "watch" and parts[i + 1] then
    info.watch_prefix, i = true, i + 1
  end
  place(info, parts, i)
  if info.watch_prefix and info.name then
    -- /watch/.../NAME follows one object of the collection.
    info.query.fieldSelector = { "metadata.name=" .. info.name }
    info.name = nil
  end
  info.verb = info.name and VERBS[method] or collection_verb(info, method)
  return info
end

-- Options of writes ------------------------------------------------------------------------------

local function check_dry_run(errors, values)
  for _, value in ipairs(values or {}) do
    if value ~= "All" then
      errors[#errors + 1] = field.not_supported("dryRun", json.array(values), { "All" })
      return
    end
  end
end

local VALIDATIONS = { "", "Ignore", "Strict", "Warn" }

local function check_field_validation(errors, value)
  for _, known in ipairs(VALIDATIONS) do
    if value == known then return end
  end
  errors[#errors + 1] = field.not_supported("fieldValidation", value, VALIDATIONS)
end

local function check_manager(errors, manager)
  if #manager > 128 then errors[#errors + 1] = field.too_long("fieldManager", 128) end
  local at = manager:find("%c")
  if at then
    local text = ("invalid character U+%04X (at position %d)"):format(manager:byte(at), at - 1)
    errors[#errors + 1] = field.invalid("fieldManager", manager, text)
  end
end

--- The options that create, update and patch share: { dry_run, field_manager, field_validation,
--- force }. `kind` names them in errors: CreateOptions, UpdateOptions, PatchOptions.
function request.write_options(info, kind, is_apply)
  local errors = {}
  local options = {
    dry_run = info.query.dryRun ~= nil,
    field_manager = request.text(info, "fieldManager") or "",
    field_validation = request.value(info, "fieldValidation") or "",
    force = request.flag(info, "force"),
  }
  if kind == "PatchOptions" then
    if is_apply and options.field_manager == "" then
      errors[#errors + 1] = field.required("fieldManager", "is required for apply patch")
    elseif not is_apply and options.force ~= nil then
      errors[#errors + 1] = field.forbidden("force", "may not be specified for non-apply patch")
    end
  end
  check_manager(errors, options.field_manager)
  if options.dry_run then check_dry_run(errors, info.query.dryRun) end
  check_field_validation(errors, options.field_validation)
  if errors[1] then error(status.invalid({ kind = kind, group = "meta.k8s.io" }, "", errors)) end
  if options.field_validation == "" then options.field_validation = "Warn" end
  return options
end

return request
