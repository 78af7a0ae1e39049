-- The volumes of pods: one source each, and what the commonest sources need.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"
local quantity = require "kube.sandbox.quantity"

local pod_volumes = {}

local function add(errors, e) errors[#errors + 1] = e end

local LAST_MODE = tonumber("777", 8)

local function check_mode(errors, mode, path)
  if mode and (mode < 0 or mode > LAST_MODE) then
    add(errors, field.invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive"))
  end
end

local function has_backsteps(path)
  for part in (path .. "/"):gmatch("([^/]*)/") do
    if part == ".." then return true end
  end
  return false
end

local function check_no_backsteps(errors, value, path)
  if has_backsteps(value) then add(errors, field.invalid(path, value, "must not contain '..'")) end
end

-- A path within the volume that is none of the kubelet's own.
local function check_local(errors, value, path)
  if value:sub(1, 1) == "/" then add(errors, field.invalid(path, value, "must be a relative path")) end
  check_no_backsteps(errors, value, path)
  if value:find("^%.%.") and not value:find("^%.%./") then
    add(errors, field.invalid(path, value, "must not start with '..'"))
  end
end

local function check_files(errors, source, path)
  check_mode(errors, json.get(source, "defaultMode"), path .. ".defaultMode")
  for i, item in ipairs(json.get(source, "items") or {}) do
    local at = ("%s.items[%d]"):format(path, i - 1)
    if (item.key or "") == "" then add(errors, field.required(at .. ".key")) end
    if (item.path or "") == "" then add(errors, field.required(at .. ".path")) end
    check_local(errors, item.path or "", at .. ".path")
    check_mode(errors, json.get(item, "mode"), at .. ".mode")
  end
end

local checks = {}
pod_volumes.checks, pod_volumes.check_no_backsteps = checks, check_no_backsteps

local function needs(name)
  return function(errors, source, path)
    if (json.get(source, name) or "") == "" then add(errors, field.required(path .. "." .. name)) end
  end
end

checks.persistentVolumeClaim = needs "claimName"

function checks.configMap(errors, source, path)
  needs "name"(errors, source, path)
  check_files(errors, source, path)
end

function checks.secret(errors, source, path)
  needs "secretName"(errors, source, path)
  check_files(errors, source, path)
end

function checks.emptyDir(errors, source, path)
  local limit = json.get(source, "sizeLimit")
  if limit and (quantity.number(limit) or 0) < 0 then
    add(errors, field.forbidden(path .. ".sizeLimit", "SizeLimit field must be a valid resource quantity"))
  end
end

local PATH_TYPES = { "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate",
  "Socket" }

function checks.hostPath(errors, source, path)
  if (source.path or "") == "" then
    add(errors, field.required(path .. ".path"))
    return
  end
  check_no_backsteps(errors, source.path, path .. ".path")
  for _, known in ipairs(PATH_TYPES) do
    if source.type == known then return end
  end
  add(errors, field.not_supported(path .. ".type", source.type, PATH_TYPES))
end

-- In the order in which the server looks for them.
local SOURCES = { "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs",
  "iscsi", "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "downwardAPI", "fc",
  "azureFile", "configMap", "vsphereVolume", "quobyte", "azureDisk", "storageos", "portworxVolume",
  "photonPersistentDisk", "projected", "scaleIO", "csi", "ephemeral", "image" }

local function check_source(errors, volume, path)
  local found = false
  for _, name in ipairs(SOURCES) do
    local source = json.get(volume, name)
    if source and found then
      add(errors, field.forbidden(path .. "." .. name, "may not specify more than 1 volume type"))
    elseif source then
      found = true
      if checks[name] then checks[name](errors, source, path .. "." .. name) end
    end
  end
end

--- Adds what is wrong with the volumes at `path`; returns the set of the names that can be mounted.
function pod_volumes.check(errors, volumes, path)
  local known = {}
  for i, volume in ipairs(volumes or {}) do
    local before = #errors
    local at, name = ("%s[%d]"):format(path, i - 1), volume.name or ""
    check_source(errors, volume, at)
    local problem = name ~= "" and names.label(name)
    if name == "" then
      add(errors, field.required(at .. ".name"))
    elseif problem then
      add(errors, field.invalid(at .. ".name", name, problem))
    end
    if known[name] then add(errors, field.duplicate(at .. ".name", name)) end
    if #errors == before then known[name] = true end
  end
  return known
end

return pod_volumes
