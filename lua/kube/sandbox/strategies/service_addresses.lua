-- The addresses of services, of one family and from one pool.
local field = require "kube.sandbox.field"
local ip = require "kube.sandbox.ip"
local json = require "kube.sandbox.json"
local service_pool = require "kube.sandbox.strategies.service_pool"
local status = require "kube.sandbox.status"

local service_addresses = {}

local refuse, taken, FULL = service_pool.refuse, service_pool.taken, service_pool.FULL

local function family_of(address) return address:find(":", 1, true) and "IPv6" or "IPv4" end

local function is_headless(spec) return spec.clusterIP == "None" end

local function is_free(spec) return is_headless(spec) and next(json.get(spec, "selector") or {}) == nil end

local FAMILIES, POLICIES = { "IPv4", "IPv6" }, { "PreferDualStack", "RequireDualStack", "SingleStack" }

local function check_both_names(errors, spec)
  local path = "spec.clusterIPs"
  if (spec.clusterIP or "") ~= "" then
    if not spec.clusterIPs[1] then
      errors[#errors + 1] = field.required(path)
    elseif spec.clusterIPs[1] ~= spec.clusterIP then
      errors[#errors + 1] = field.invalid(path, spec.clusterIPs, "first value must match `clusterIP`")
    end
  elseif spec.clusterIPs[1] then
    errors[#errors + 1] = field.invalid(path, spec.clusterIPs, "must be empty when `clusterIP` is not specified")
  end
end

local function check_families(errors, spec)
  local seen = {}
  for i, family in ipairs(spec.ipFamilies) do
    local path = ("spec.ipFamilies[%d]"):format(i - 1)
    if not field.is_one_of(family, FAMILIES) then errors[#errors + 1] = field.not_supported(path, family, FAMILIES) end
    if seen[family] then errors[#errors + 1] = field.duplicate(path, family) end
    seen[family] = true
  end
  if not field.is_one_of(spec.ipFamilyPolicy, POLICIES) then
    errors[#errors + 1] = field.not_supported("spec.ipFamilyPolicy", spec.ipFamilyPolicy, POLICIES)
  end
end

-- True when each address can be read.
local function check_addresses(errors, addresses)
  local before, path = #errors, "spec.clusterIPs"
  for i, address in ipairs(addresses) do
    local problem = ip.problem(address)
    if i == 1 and address == "None" then
      if addresses[2] then
        errors[#errors + 1] = field.invalid(path, addresses, "'None' must be the first and only value")
      end
    elseif problem then
      errors[#errors + 1] = field.invalid(("%s[%d]"):format(path, i - 1), address, problem)
    end
  end
  local good = #errors == before
  if #addresses > 2 then errors[#errors + 1] = field.invalid(path, addresses, "may only hold up to 2 values") end
  return good
end

local function check_pairs(errors, spec)
  local addresses, path = spec.clusterIPs, "spec.clusterIPs"
  if #addresses > 1 then
    local count = { IPv4 = 0, IPv6 = 0 }
    for _, address in ipairs(addresses) do count[family_of(address)] = count[family_of(address)] + 1 end
    if count.IPv4 == 0 or count.IPv6 == 0 then
      errors[#errors + 1] = field.invalid(path, addresses, "may specify no more than one IP for each IP family")
    end
  end
  if is_headless(spec) then return end
  for i, address in ipairs(addresses) do
    local family = spec.ipFamilies[i]
    if field.is_one_of(family, FAMILIES) and family_of(address) ~= family then
      errors[#errors + 1] = field.invalid(("%s[%d]"):format(path, i - 1), address,
        ("expected an %s value as indicated by `ipFamilies[%d]`"):format(family, i - 1))
    end
  end
end

-- Who takes something away from two has to say that one is enough.
local function settle_change(errors, spec, old)
  local policy = spec.ipFamilyPolicy
  local function settle(name, what)
    local now, before = spec[name], json.get(old, name) or {}
    if policy == "SingleStack" then
      if json.equal(now, before) and #now > 1 then spec[name] = json.array { now[1] } end
    elseif #now < #before then
      errors[#errors + 1] = field.invalid("spec.ipFamilyPolicy", policy,
        ("must be 'SingleStack' to release the secondary %s"):format(what))
    end
  end
  settle("clusterIPs", "cluster IP")
  settle("ipFamilies", "IP family")
end

local function check_single(errors, spec)
  if spec.ipFamilyPolicy ~= "SingleStack" then return end
  for name, what in pairs { clusterIPs = "cluster IPs", ipFamilies = "IP families" } do
    if #spec[name] == 2 then
      errors[#errors + 1] = field.invalid("spec.ipFamilyPolicy", spec.ipFamilyPolicy,
        ("must be 'RequireDualStack' or 'PreferDualStack' when multiple %s are specified"):format(what))
    end
  end
end

local function infer_families(errors, spec)
  local families = json.shallow(spec.ipFamilies)
  for i, address in ipairs(is_headless(spec) and {} or spec.clusterIPs) do
    if not families[i] then
      if family_of(address) == "IPv6" then
        errors[#errors + 1] = field.invalid(("spec.clusterIPs[%d]"):format(i - 1), spec.clusterIPs,
          "IPv6 is not configured on this cluster")
      end
      families[i] = family_of(address)
    end
  end
  spec.ipFamilies = families
end

local function check_configured(errors, spec)
  if spec.ipFamilyPolicy == "RequireDualStack" then
    errors[#errors + 1] = field.invalid("spec.ipFamilyPolicy", spec.ipFamilyPolicy,
      "this cluster is not configured for dual-stack services")
  end
  for i, family in ipairs(spec.ipFamilies) do
    if family == "IPv6" then
      errors[#errors + 1] = field.invalid(("spec.ipFamilies[%d]"):format(i - 1), family,
        "not configured on this cluster")
    end
  end
end

--- Settles the families of a service that has an address or could have one; `old` is the spec before.
function service_addresses.settle(ctx, name, spec, old)
  local errors = {}
  for _, list in ipairs { "clusterIPs", "ipFamilies" } do spec[list] = json.get(spec, list) or json.array {} end
  spec.ipFamilyPolicy = json.get(spec, "ipFamilyPolicy") or json.get(old, "ipFamilyPolicy")
    or (is_free(spec) and "RequireDualStack" or "SingleStack")
  check_both_names(errors, spec)
  check_families(errors, spec)
  if check_addresses(errors, spec.clusterIPs) then check_pairs(errors, spec) end
  refuse(ctx, name, errors)
  if old then settle_change(errors, spec, old) end
  check_single(errors, spec)
  infer_families(errors, spec)
  refuse(ctx, name, errors)
  if not is_free(spec) then
    check_configured(errors, spec)
    refuse(ctx, name, errors)
  end
  if not spec.ipFamilies[1] then spec.ipFamilies[1] = "IPv4" end
  -- Nobody looks for pods of both families, so it may have both.
  if is_free(spec) and spec.ipFamilyPolicy ~= "SingleStack" then
    spec.ipFamilies[2] = spec.ipFamilies[2] or (spec.ipFamilies[1] == "IPv4" and "IPv6" or "IPv4")
  end
end

-- ---- addresses ----

-- Nobody has these networks. The second is where a test with many services ends up.
local NETWORKS = { { "192.0.2", 0, 0 }, { "198.18", 0, 255 } }

local function each_address(visit)
  for _, network in ipairs(NETWORKS) do
    for third = network[2], network[3] do
      local head = network[1]:find("%..*%.") and network[1] or network[1] .. "." .. third
      for last = 1, 254 do
        local address = head .. "." .. last
        if visit(address) then return address end
      end
    end
  end
end

local function is_ours(address)
  local head, last = address:match("^(.*)%.(%d+)$")
  last = tonumber(last)
  return (head == "192.0.2" or head:find("^198%.18%.") ~= nil) and last > 0 and last < 255
end

-- The first one of the server is its own service's.
local OWN = "192.0.2.1"

local function taken_addresses(S)
  local used = taken(S, function(spec, set)
    for _, address in ipairs(json.get(spec, "clusterIPs") or {}) do set[address] = true end
  end)
  used[OWN] = true
  return used
end

--- Gives a service the address that it asks for, or a free one.
function service_addresses.give(ctx, name, spec)
  if is_headless(spec) then return end
  local used, address = taken_addresses(ctx.S), spec.clusterIPs[1]
  if not address then
    address = each_address(function(candidate) return not used[candidate] end)
    if not address then
      error(status.internal(('failed to allocate a serviceIP for Service "%s": %s'):format(name, FULL)))
    end
  else
    local problem = not is_ours(address) and "the provided network does not match the current range"
      or used[address] and "provided IP is already allocated"
    refuse(ctx, name, { problem and field.invalid("spec.clusterIPs", spec.clusterIPs,
      ("failed to allocate IP %s: %s"):format(address, problem)) or nil })
  end
  spec.clusterIP, spec.clusterIPs = address, json.array { address }
end

return service_addresses
