-- Real elections on the real transport against a server that keeps one Lease as an API server does.
--
--   local r = rig.new { holder = "other", duration = 1, transitions = 3 }   -- or nil: there is none
--   local e = r:elect { identity = "me" }          -- starts; more options as in mw_lease_config
--   r:pump(function() return e:is_leading() end)
--   r.log            -- "GET 404", "POST 201", ...
--   r.answers[3] = { status = 500, body = "" }     -- instead of the server's own third answer
--   r:close()
--
-- All of it runs on the spec's thread: both loops of the runtime are one.
jit.off(true, true)
local cjson = require "cjson"
local uv = require "luv"
local script_server = require "spec.support.script_server"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local rig = {}
local Rig, Election = {}, {}
Rig.__index, Election.__index = Rig, Election

local PATH = "/apis/coordination.k8s.io/v1/namespaces/ops/leases"

-- The server.

local function failure(code, reason)
  return { status = code, body = cjson.encode { kind = "Status", apiVersion = "v1", status = "Failure",
    reason = reason, message = "the spec says " .. reason, code = code } }
end

rig.failure = failure

-- The n-th version of the Lease is what the server has now.
function Rig:put(lease)
  self.version = self.version + 1
  lease.metadata.resourceVersion = tostring(self.version)
  self.lease = lease
  return lease
end

--- What is in the Lease, as another one would write it: fields of spec.
function Rig:set(spec)
  self:put { apiVersion = "coordination.k8s.io/v1", kind = "Lease",
    metadata = { name = "web", namespace = "ops", uid = "u-1", labels = self.labels },
    spec = spec }
end

local function answer(self, request)
  if request.method == "GET" then
    return self.lease and { body = cjson.encode(self.lease) } or failure(404, "NotFound")
  elseif request.method == "POST" then
    if self.lease then return failure(409, "AlreadyExists") end
    return { status = 201, body = cjson.encode(self:put(cjson.decode(request.body))) }
  end
  local sent = cjson.decode(request.body)
  if not self.lease then return failure(404, "NotFound") end
  if sent.metadata.resourceVersion ~= self.lease.metadata.resourceVersion then return failure(409, "Conflict") end
  return { body = cjson.encode(self:put(sent)) }
end

local function serve(self, request)
  local n = #self.log + 1
  assert(request.path == (request.method == "POST" and PATH or PATH .. "/web"), request.path)
  local given = self.answers[n]
  if type(given) == "function" then given = given(request) end
  local reply = given or answer(self, request)
  self.log[n] = request.method .. " " .. (reply.silent and "silent" or reply.lost and "lost" or reply.status or 200)
  return reply
end

-- Callbacks. LuaJIT makes one C function of each; ctx is the number of the election.

local elections = {}
local function election_of(ctx) return elections[tonumber(ffi.cast("intptr_t", ctx))] end

local callbacks = ffi.new("struct mw_lease_callbacks", {
  on_change = ffi.cast("void (*)(void *)", function(ctx)
    local e = election_of(ctx)
    e.changes[#e.changes + 1] = e:is_leading()
  end),
  on_new_leader = ffi.cast("void (*)(void *, const char *)", function(ctx, holder)
    local e = election_of(ctx)
    e.leaders[#e.leaders + 1] = ffi.string(holder)
  end),
  on_lost = ffi.cast("void (*)(void *, const char *)", function(ctx, why)
    local e = election_of(ctx)
    assert(not e.lost, "told twice")
    e.lost = ffi.string(why)
  end),
})

local stopped = ffi.cast("mw_loop_cb", function(ctx) election_of(ctx).stopped = true end)

function Election:is_leading() return C.mw_lease_is_leading(self.lease) end
function Election:holder() return ffi.string(C.mw_lease_holder(self.lease)) end
function Election:stop() C.mw_lease_stop(self.lease, stopped, ffi.cast("void *", self.number)) end

--- 0, or the sentence of the health check.
function Election:check(tolerance)
  local err = unit.err()
  return C.mw_lease_check(self.lease, tolerance, err) == 0 and 0 or ffi.string(err.message)
end

--- A struct mw_lease_config and what keeps its strings alive.
function rig.config(options)
  local config = ffi.new("struct mw_lease_config")
  local values = { ns = "ops", name = "web", identity = "me", lease_duration = 2, renew_deadline = 1.5,
    retry_period = 0.05, release = true }
  for name, value in pairs(options or {}) do values[name] = value end
  local labels = ffi.new("struct mw_lease_label[?]", #(values.labels or {}) + 1)
  for i, pair in ipairs(values.labels or {}) do labels[i - 1].key, labels[i - 1].value = pair[1], pair[2] end
  config.labels, config.label_count = labels, #(values.labels or {})
  values.labels = nil
  for name, value in pairs(values) do config[name] = value end
  return config, { values, labels, options }
end

--- Starts to contend.
function Rig:elect(options)
  local config, keep = rig.config(options)
  local err = unit.err()
  assert(C.mw_lease_config_check(config, err) == 0, ffi.string(err.message))
  local e = setmetatable({ changes = {}, leaders = {}, number = #elections + 1, keep = keep }, Election)
  elections[e.number] = e
  e.fence = C.mw_fence_new()
  e.lease = C.mw_lease_new(self.runtime, self.endpoint, e.fence, config, callbacks, ffi.cast("void *", e.number))
  self.elections[#self.elections + 1] = e
  C.mw_lease_start(e.lease)
  return e
end

function Rig:turn()
  C.mw_loop_turn(self.loop, 1)
  self.server.turn()
end

--- Runs both loops until the condition holds; fails the spec after 8 seconds.
function Rig:pump(condition)
  local deadline = uv.hrtime() + 8e9
  while not condition() do
    self:turn()
    if uv.hrtime() > deadline then error("timed out; requests: " .. table.concat(self.log, ", "), 2) end
  end
end

--- Runs both loops for a while, to show that nothing (more) happens.
function Rig:idle(seconds)
  local deadline = uv.hrtime() + seconds * 1e9
  while uv.hrtime() < deadline do self:turn() end
end

--- Waits for the n-th request.
function Rig:wait_requests(n) self:pump(function() return #self.log >= n end) end

--- Stops an election and waits for the end.
function Rig:stop(e)
  if not e.stopped then e:stop() end
  self:pump(function() return e.stopped end)
end

function Rig:close()
  for _, e in ipairs(self.elections) do
    self:stop(e)
    C.mw_lease_free(e.lease)
    C.mw_fence_unref(e.fence)
  end
  C.mw_endpoint_unref(self.endpoint)
  C.mw_http_free(self.http)
  C.mw_loop_free(self.loop)
  self.server:close()
  elections = {}
  C.mw_log_set_level(C.MW_LOG_INFO)
end

--- spec: what the Lease holds at the start; nil: there is no Lease.
function rig.new(spec, labels)
  C.mw_log_set_level(os.getenv("SPEC_LOG") and C.MW_LOG_DEBUG or -1)
  local self = setmetatable({ log = {}, answers = {}, elections = {}, version = 100, labels = labels }, Rig)
  self.server = script_server.new(function(request) return serve(self, request) end)
  self.loop = C.mw_loop_new("spec")
  self.http = C.mw_http_new(self.loop, nil)
  self.runtime = ffi.new("struct mw_runtime", { self.loop, self.loop, self.http })
  self.endpoint = unit.endpoint(self.server:url())
  if spec then self:set(spec) end
  return self
end

return rig
