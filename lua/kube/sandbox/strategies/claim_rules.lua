-- What a claim of a volume must be, on its own and in the templates of stateful sets.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local label_selector = require "kube.sandbox.label_selector"
local names = require "kube.sandbox.names"
local quantity = require "kube.sandbox.quantity"

local claim_rules = {}

local MODES = { "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod" }
local VOLUME_MODES = { "Block", "Filesystem" }

local function add(errors, e) errors[#errors + 1] = e end

--- Adds what is wrong with access modes; how many there are is for others to say.
function claim_rules.check_modes(errors, modes, path)
  local alone, others = false, false
  for _, mode in ipairs(modes) do
    if not field.is_one_of(mode, MODES) then
      add(errors, field.not_supported(path, mode, MODES))
    elseif mode == "ReadWriteOncePod" then
      alone = true
    else
      others = true
    end
  end
  if alone and others then
    add(errors, field.forbidden(path, "may not use ReadWriteOncePod with other access modes"))
  end
end

local function check_size(errors, spec, path)
  local size = json.get(spec, "resources", "requests", "storage")
  path = path .. ".resources[storage]"
  if size == nil then
    add(errors, field.required(path))
  elseif (quantity.number(size) or 0) <= 0 then
    add(errors, field.invalid(path, size, "must be greater than zero"))
  end
end

local function check_class(errors, spec, path, name)
  local class = json.get(spec, name) or ""
  if class == "" then return end
  for _, problem in ipairs { names.subdomain(class) } do
    add(errors, field.invalid(path .. "." .. name, class, problem))
  end
end

--- Adds what is wrong with the spec of a claim at `path`.
function claim_rules.check(errors, spec, path)
  local modes = json.get(spec, "accessModes") or {}
  if not modes[1] then add(errors, field.required(path .. ".accessModes", "at least 1 access mode is required")) end
  if json.get(spec, "selector") then label_selector.check(errors, spec.selector, path .. ".selector") end
  claim_rules.check_modes(errors, modes, path .. ".accessModes")
  check_size(errors, spec, path)
  check_class(errors, spec, path, "storageClassName")
  local mode = json.get(spec, "volumeMode")
  if mode and not field.is_one_of(mode, VOLUME_MODES) then
    add(errors, field.not_supported(path .. ".volumeMode", mode, VOLUME_MODES))
  end
  check_class(errors, spec, path, "volumeAttributesClassName")
end

return claim_rules
