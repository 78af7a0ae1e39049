-- The ports that services have on every node.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local service_pool = require "kube.sandbox.strategies.service_pool"
local status = require "kube.sandbox.status"

local service_ports = {}

local refuse, taken, FULL = service_pool.refuse, service_pool.taken, service_pool.FULL

local FIRST_PORT, LAST_PORT = 30000, 32767
-- Below it are those that people choose: the server gives them out last.
local FIRST_GIVEN = 30086

local OUTSIDE = ("provided port is not in the valid range. The range of valid ports is %d-%d"):format(FIRST_PORT,
  LAST_PORT)

local function taken_ports(S)
  return taken(S, function(spec, set)
    for _, port in ipairs(json.get(spec, "ports") or {}) do
      if port.nodePort then set[port.nodePort] = true end
    end
    if spec.healthCheckNodePort then set[spec.healthCheckNodePort] = true end
  end)
end

local function free_port(used)
  for i = 0, LAST_PORT - FIRST_PORT do
    local port = FIRST_PORT + (FIRST_GIVEN - FIRST_PORT + i) % (LAST_PORT - FIRST_PORT + 1)
    if not used[port] then
      used[port] = true
      return port
    end
  end
  error(status.internal("failed to allocate a nodePort: " .. FULL))
end

-- Takes a port that somebody asked for; returns what speaks against it.
local function take_port(used, port)
  if port < FIRST_PORT or port > LAST_PORT then return OUTSIDE end
  if used[port] then return "provided port is already allocated" end
  used[port] = true
end

--- Whether a service gets ports of nodes that it does not ask for.
function service_ports.given(spec)
  return spec.type == "NodePort" or spec.type == "LoadBalancer" and spec.allocateLoadBalancerNodePorts ~= false
end

--- Whether it may have any.
function service_ports.possible(spec) return spec.type == "NodePort" or spec.type == "LoadBalancer" end

local function asked_port(number, ports)
  for _, port in ipairs(ports) do
    if port.port == number and (port.nodePort or 0) ~= 0 then return port.nodePort end
  end
end

local function refuse_port(ctx, name, i, number, problem)
  if problem then refuse(ctx, name, { field.invalid(("spec.ports[%d].nodePort"):format(i - 1), number, problem) }) end
end

-- One port of a node carries all protocols of a service's port.
local function give_new(ctx, name, spec, used)
  local given = {}
  for i, port in ipairs(spec.ports or {}) do
    local own, before, problem = port.nodePort or 0, given[port.port], nil
    if own == 0 and not service_ports.given(spec) then
      own = nil
    elseif not before then
      local asked = asked_port(port.port, spec.ports)
      if asked then problem = take_port(used, asked) end
      own = asked or free_port(used)
      port.nodePort, given[port.port] = own, own
    elseif own == 0 then
      port.nodePort = before
    elseif own ~= before then
      problem = take_port(used, own)
    end
    refuse_port(ctx, name, i, own, problem)
  end
end

local function numbers_of(spec)
  local numbers = {}
  for _, port in ipairs(json.get(spec, "ports") or {}) do
    if (port.nodePort or 0) ~= 0 then numbers[port.nodePort] = true end
  end
  return numbers
end

--- Whether all ports of nodes that a service has were those of the old one.
function service_ports.has_no_others(spec, old)
  local before = numbers_of(old)
  for number in pairs(numbers_of(spec)) do
    if not before[number] then return false end
  end
  return true
end

-- Ports of the same name keep what they had.
local function keep_ports(spec, old)
  local before, now, by_name = numbers_of(old), numbers_of(spec), {}
  for _, port in ipairs(json.get(old, "ports") or {}) do by_name[port.name or ""] = port.nodePort end
  for _, port in ipairs(spec.ports or {}) do
    local number = by_name[port.name or ""]
    if (port.nodePort or 0) == 0 and number and not (before[number] and now[number]) then port.nodePort = number end
  end
end

local function give_changed(ctx, name, spec, old, used)
  if service_ports.given(old) and service_ports.given(spec) then keep_ports(spec, old) end
  local own, seen = numbers_of(old), {}
  for i, port in ipairs(spec.ports or {}) do
    local number = port.nodePort or 0
    if number == 0 and service_ports.given(spec) then
      port.nodePort = free_port(used)
    elseif number ~= 0 then
      local problem = not own[number] and take_port(used, number)
      own[number] = true
      refuse_port(ctx, name, i, number, problem)
      local text = ("{%s %d}"):format(port.protocol, number)
      if seen[text] then error(status.unclassified("duplicate nodePort: " .. text)) end
      seen[text] = true
    end
  end
end

--- Whether somebody has to be able to ask a node of a service.
function service_ports.needs_health_check(spec)
  return spec.type == "LoadBalancer" and spec.externalTrafficPolicy == "Local"
end

local function give_health_port(spec, used)
  local asked = spec.healthCheckNodePort or 0
  if asked == 0 then
    spec.healthCheckNodePort = free_port(used)
    return
  end
  local problem = take_port(used, asked)
  if problem then
    error(status.internal(("failed to allocate requested HealthCheck NodePort %d: %s"):format(asked, problem)))
  end
end

--- Gives a service the ports that it asks for, and free ones; its ports are copies that may be changed.
--- `old` is the spec before.
function service_ports.give(ctx, name, spec, old)
  local used = taken_ports(ctx.S)
  if service_ports.possible(spec) then
    if old then
      give_changed(ctx, name, spec, old, used)
    else
      give_new(ctx, name, spec, used)
    end
  end
  local needed, needs = old ~= nil and service_ports.needs_health_check(old), service_ports.needs_health_check(spec)
  if needs and needed and (spec.healthCheckNodePort or 0) == 0 then
    spec.healthCheckNodePort = old.healthCheckNodePort
  elseif needs and not needed then
    give_health_port(spec, used)
  end
end

return service_ports
