-- The sandbox's own door, /sandbox/v1: faults on demand, the requests that came, forgotten history,
-- held watches, a clock that stands still, ids from a seed, snapshots. Everything here is also a Lua
-- call on the instance.
local faults = require "kube.sandbox.faults"
local json = require "kube.sandbox.json"
local requests = require "kube.sandbox.requests"
local status = require "kube.sandbox.status"

local control = {}

local function answer(code, document)
  return {
    status = code,
    headers = { { "Content-Type", "application/json" } },
    body = json.encode(json.object(document or {})) .. "\n",
  }
end

local function bad(message, ...) error(status.bad_request("sandbox: " .. message, ...)) end

-- The body as a table whose fields are all known; `known` maps a name to its Lua type.
local function arguments(ctx, known)
  local text = ctx.request.body or ""
  local given, problem = json.object {}, nil
  if text ~= "" then given, problem = json.decode(text) end
  if not json.is_object(given) then bad("the body must be a JSON object%s", problem and ": " .. problem or "") end
  for name, value in pairs(given) do
    if not known[name] then
      local names = {}
      for k in pairs(known) do names[#names + 1] = k end
      table.sort(names)
      bad("unknown field '%s'; this call takes %s", name, table.concat(names, ", "))
    elseif type(value) ~= known[name] and known[name] ~= "any" then
      bad("'%s' must be a %s", name, known[name])
    end
  end
  return given
end

local function clock_state(S)
  return { now = S.clock:now(), frozen = S.clock.frozen ~= nil }
end

local actions = {}

actions["GET faults"] = function(ctx) return answer(200, { items = faults.list(ctx.S) }) end

actions["POST faults"] = function(ctx)
  local fault, problem = faults.add(ctx.S, arguments(ctx, faults.FIELDS))
  if not fault then bad("%s", problem) end
  return answer(201, fault)
end

actions["DELETE faults"] = function(ctx, id)
  if not faults.clear(ctx.S, id) then bad("there is no fault %s", id) end
  return answer(200)
end

actions["GET requests"] = function(ctx)
  local filter, problem = requests.filter(ctx.info)
  if not filter then bad("%s", problem) end
  return answer(200, ctx.S.requests:list(filter))
end

actions["DELETE requests"] = function(ctx)
  ctx.S.requests:clear()
  return answer(200)
end

--- Forgets all history: lists and watches from the past get 410, running watches go on.
actions["POST expire"] = function(ctx)
  ctx.S.store:expire()
  return answer(200, { revision = ctx.S.store.revision })
end

actions["GET watches"] = function(ctx) return answer(200, ctx.S.watches:state()) end

actions["POST watches"] = function(ctx)
  local given = arguments(ctx, { action = "string", count = "number" })
  local watches = ctx.S.watches
  if given.action == "pause" then
    watches:pause()
  elseif given.action == "resume" then
    watches:resume()
  elseif given.action == "step" then
    watches:step(given.count or 1)
  elseif given.action == "cut" then
    watches:cut()
  elseif given.action == "bookmark" then
    watches:bookmark()
  else
    bad("'action' must be pause, step, resume, bookmark or cut")
  end
  local state = watches:state()
  state.revision = ctx.S.store.revision
  return answer(200, state)
end

actions["GET clock"] = function(ctx) return answer(200, clock_state(ctx.S)) end

actions["POST clock"] = function(ctx)
  local given = arguments(ctx, { freeze = "any", advance = "number", thaw = "boolean" })
  local clock = ctx.S.clock
  if given.freeze then clock:freeze(type(given.freeze) == "number" and given.freeze or nil) end
  if given.advance then
    if not clock.frozen then bad("only a frozen clock can be advanced; freeze it first") end
    if given.advance < 0 then bad("'advance' must not be negative") end
    clock:advance(given.advance)
  end
  if given.thaw then clock:thaw() end
  return answer(200, clock_state(ctx.S))
end

actions["POST seed"] = function(ctx)
  ctx.S.ids:reseed(arguments(ctx, { seed = "number" }).seed)
  return answer(200)
end

actions["GET snapshot"] = function(ctx) return answer(200, ctx.S:snapshot()) end

actions["PUT snapshot"] = function(ctx)
  local snapshot = json.decode(ctx.request.body or "")
  if not json.is_object(snapshot) then bad("the body must be a snapshot as GET gave it") end
  local ok, problem = ctx.S:restore(snapshot)
  if not ok then bad("%s", problem) end
  return answer(200, { revision = ctx.S.store.revision })
end

--- Answers a request under /sandbox/v1; nil when there is no such call.
function control.handle(ctx)
  local name, id = ctx.info.path:match("^/sandbox/v1/(%w+)/?(%w*)$")
  local action = name and actions[ctx.info.method .. " " .. name]
  if not action then return nil end
  return action(ctx, id ~= "" and id or nil)
end

return control
