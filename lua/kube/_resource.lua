-- Resources by their one name ("v1/pods", "apps/v1/deployments"), keys, and the paths of both.
local client = require "kube._client"
local errors = require "kube._error"
local groups = require "kube._groups"
local options = require "kube._options"

local M = {}

local TYPO = 3 -- letters of which a misspelt name differs, at most: a "configmap", an "ingress", a "networkpolicy"

-- plural -> resources that have it; group/version -> set of plurals. Made when first asked for.
local by_plural, by_version

local function build_index()
  by_plural, by_version = {}, {}
  for _, group in pairs(groups.groups) do
    for version, names in pairs(group) do
      if version ~= "group" then
        local prefix = group.group == "" and version or group.group .. "/" .. version
        by_version[prefix] = {}
        for name in names:gmatch("%S+") do
          local plural = name:gsub("_", "")
          by_version[prefix][plural] = true
          by_plural[plural] = by_plural[plural] or {}
          table.insert(by_plural[plural], prefix .. "/" .. plural)
        end
      end
    end
  end
  for _, list in pairs(by_plural) do table.sort(list) end
end

-- What the plural of a kind can be, the likeliest first.
local function plurals_of(kind)
  local word = kind:lower()
  if word:find("y$") then return { (word:gsub("y$", "ies")), word .. "s" } end
  if word:find("s$") then return { word .. "es", word } end
  return { word .. "s" }
end

--- The resource of a built-in kind, or nil for what only the server knows.
---@param api_version string "apps/v1"
---@param kind string "Deployment"
---@return string?
function M.builtin(api_version, kind)
  if not by_version then build_index() end
  local known = by_version[api_version]
  if not known or not kind:find("^%u") then return nil end
  for _, plural in ipairs(plurals_of(kind)) do
    if known[plural] then return api_version .. "/" .. plural end
  end
end

--- The resource of Kubernetes' own that a name in one of its groups is a misspelling of, or nil: it is one, it is in
--- another group, or nothing is like it.
---@param resource string
---@return string?
local function near(resource)
  if not by_version then build_index() end
  local prefix, plural = resource:match("^(.+)/([^/]+)$")
  local known = by_version[prefix]
  if not known or known[plural] then return nil end
  local found = options.nearest(plural, known, TYPO)
  return found and prefix .. "/" .. found
end

--- The resource that somebody means by a kind or a plural alone ("Deployment", "deployments"), or nil.
---@param word string
---@return string?
function M.meant(word)
  if not by_plural then build_index() end
  local candidates = plurals_of(word)
  table.insert(candidates, 1, word:lower())
  for _, plural in ipairs(candidates) do
    local found = by_plural[plural]
    if found then
      local best = found[#found]
      for _, resource in ipairs(found) do
        if not resource:find("/v%d+%l") and not resource:find("^v%d+%l") then best = resource end
      end
      return best
    end
  end
end

-- The resource that has, in another group of Kubernetes' own, the plural that is not in this one; or nil. Another
-- version of this group does not count: what it has, a later server may have in this one.
local function elsewhere(resource)
  if not by_version then build_index() end
  local prefix, plural = resource:match("^(.+)/([^/]+)$")
  local known = by_version[prefix]
  if not known or known[plural] then return nil end
  local meant = M.meant(plural)
  return meant and groups.group_of(meant) ~= groups.group_of(resource) and meant or nil
end

--- Raises for what no server has in a group of Kubernetes' own, when it is clear what is meant: it would be asked for
--- for ever. What is like nothing there may be of a later version; custom resources are in other groups.
---@param what string the name of the function in messages
---@param resource string
function M.check_own(what, resource)
  local removed = groups.removed[groups.group_of(resource)]
  if removed then errors.misuse("%s: %s", what, removed) end
  local meant = near(resource) or elsewhere(resource)
  if meant then errors.misuse("%s: there is no '%s' (did you mean '%s'?)", what, resource, meant) end
end

local function parts_of(resource)
  local group, version, plural = resource:match("^([%l%d][%l%d.-]*)/(v%d[%l%d]*)/([%l%d][%l%d.-]*)$")
  if group then return group, version, plural end
  version, plural = resource:match("^(v%d[%l%d]*)/([%l%d][%l%d.-]*)$")
  return version and "", version, plural
end

--- Raises unless it is a resource; says which one may be meant.
---@param what string the name of the function in messages
function M.check(what, resource)
  if type(resource) ~= "string" then
    errors.misuse("%s takes a resource such as \"apps/v1/deployments\" first, not a %s", what, type(resource))
  end
  if parts_of(resource) then return resource end
  local meant = M.meant(resource:match("[^/]*$"))
  errors.misuse("%s: '%s' is not a resource: write version/plural or group/version/plural%s", what, resource,
    meant and (", as in \"%s\""):format(meant) or ", as in \"v1/pods\" or \"apps/v1/deployments\"")
end

--- The same for one that is to be cached.
function M.check_cached(what, resource)
  M.check_own(what, M.check(what, resource))
  return resource
end

--- "apps/v1" of "apps/v1/deployments".
function M.api_version(resource) return (resource:match("^(.+)/[^/]+$")) end

--- Namespace (nil for none) and name of a key, which is checked.
---@param what string the name of the function in messages
---@param key string "ns/name" or "name"
---@param namespace? string of the options
function M.split_key(what, key, namespace)
  if type(key) ~= "string" then
    errors.misuse("%s takes a key such as \"default/web\" second, not a %s", what, type(key))
  end
  local ns, name = key:match("^([^/]+)/([^/]+)$")
  if not ns then name = key:match("^[^/]+$") end
  if not name or name == "." or name == ".." then
    errors.misuse("%s: '%s' is not a key: write \"namespace/name\", or \"name\" for what is in no namespace", what, key)
  end
  if ns and namespace and namespace ~= ns then
    errors.misuse("%s: the key '%s' and namespace = '%s' are of two namespaces", what, key, namespace)
  end
  return ns or namespace, name
end

--- "ns/name", or "name" without a namespace.
function M.join_key(namespace, name)
  return namespace and namespace ~= "" and namespace .. "/" .. name or name
end

--- The path of a resource, or of one object of it.
---@param resource string
---@param namespace? string
---@param name? string
---@param subresource? string
---@return string
function M.path(resource, namespace, name, subresource)
  local group, version, plural = parts_of(resource)
  local path = group == "" and "/api/" .. version or "/apis/" .. group .. "/" .. version
  if namespace and namespace ~= "" then path = path .. "/namespaces/" .. client.escape(namespace) end
  path = path .. "/" .. plural
  if name then path = path .. "/" .. client.escape(name) end
  if subresource then path = path .. "/" .. subresource end
  return path
end

return M
