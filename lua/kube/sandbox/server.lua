-- One request, from its first byte to its answer: who asks, for what, which room answers, and how
-- the answer is written. Pure: it knows neither sockets nor threads, so specs call it directly.
local access = require "kube.sandbox.access"
local body = require "kube.sandbox.body"
local control = require "kube.sandbox.control"
local create = require "kube.sandbox.create"
local delete = require "kube.sandbox.delete"
local discovery = require "kube.sandbox.discovery"
local faults = require "kube.sandbox.faults"
local host = require "kube._server"
local json = require "kube.sandbox.json"
local list = require "kube.sandbox.list"
local list_options = require "kube.sandbox.list_options"
local negotiate = require "kube.sandbox.negotiate"
local object = require "kube.sandbox.object"
local openapi = require "kube.sandbox.openapi"
local patch = require "kube.sandbox.patch"
local request = require "kube.sandbox.request"
local status = require "kube.sandbox.status"
local subresource = require "kube.sandbox.subresource"
local update = require "kube.sandbox.update"
local watch = require "kube.sandbox.watch"

local server = {}

local Context = {}
Context.__index = Context

--- Adds a warning to the answer, once.
function Context:warn(text)
  for _, known in ipairs(self.warnings) do
    if known == text then return end
  end
  self.warnings[#self.warnings + 1] = text
end

local function text_response(code, text, headers)
  headers = headers or { { "Content-Type", "text/plain; charset=utf-8" } }
  return { status = code, headers = headers, body = text }
end

local function not_found_page()
  return text_response(404, "404 page not found\n",
    { { "Content-Type", "text/plain; charset=utf-8" }, { "X-Content-Type-Options", "nosniff" } })
end

local function quoted(text) return '"' .. text:gsub('[\\"]', "\\%0"):gsub("%c", " ") .. '"' end

local function add_common(ctx, response)
  local headers = response.headers
  for _, warning in ipairs(ctx.warnings) do headers[#headers + 1] = { "Warning", "299 - " .. quoted(warning) } end
  headers[#headers + 1] = { "Audit-Id", ctx.S.audit_ids:uid() }
  local cached = false
  for _, header in ipairs(headers) do cached = cached or header[1] == "Cache-Control" end
  if not cached then headers[#headers + 1] = { "Cache-Control", "no-cache, private" } end
  return response
end

local function failure(ctx, e)
  local response = negotiate.status(ctx, e)
  for _, header in ipairs(e.headers) do table.insert(response.headers, header) end
  return response
end

-- Which room answers -----------------------------------------------------------------------------

local COLLECTION = {
  list = list.run,
  watch = watch.run,
  create = create.run,
  deletecollection = delete.collection,
}

local function read(ctx)
  list_options.check_get(ctx)
  return 200, object.get(ctx)
end

local ITEM = { get = read, update = update.run, patch = patch.run, delete = delete.run }

local function find_resource(S, ctx)
  local info = ctx.info
  if not S.kinds:version_exists(info.group, info.version) then
    if S.kinds:is_builtin(info.group) then error(status.no_resource()) end
    return nil
  end
  local R = S.kinds:find(info.group, info.version, info.resource)
  local misplaced = R and (R.namespaced and info.name and not info.namespace
    or not R.namespaced and info.namespace)
  if not R and not S.kinds:is_builtin(info.group) then return nil end
  if not R or misplaced or info.extra then error(status.no_resource()) end
  return R
end

-- What cannot be done in all namespaces at once.
local UNPLACED = { create = true, deletecollection = true }

local function resource(S, ctx)
  local info = ctx.info
  local R = find_resource(S, ctx)
  if not R then return not_found_page() end
  ctx.R = R
  if info.subresource then return subresource.run(ctx) end
  local handler = (info.name and ITEM or COLLECTION)[info.verb]
  local unplaced = UNPLACED[info.verb] and R.namespaced and not info.namespace
  if unplaced and not R.verbs.list then error(status.no_resource()) end
  if R.deprecation_warning then ctx:warn(R.deprecation_warning) end
  if info.verb == "watch" and R.verbs.list and not R.verbs.watch then error(status.not_supported(R, "watch")) end
  if not handler or not R.verbs[info.verb] or unplaced or info.method == "HEAD" then
    error(status.method_not_allowed())
  end
  negotiate.check(ctx)
  return handler(ctx)
end

local function health() return text_response(200, "ok") end

local PAGES = {
  ["/healthz"] = health,
  ["/healthz/ping"] = health,
  ["/livez"] = health,
  ["/livez/ping"] = health,
  ["/readyz"] = health,
  ["/readyz/ping"] = health,
  ["/version"] = discovery.version,
  ["/.well-known/openid-configuration"] = discovery.openid_configuration,
  ["/openid/v1/jwks"] = discovery.openid_keys,
  ["/"] = discovery.root,
}

local function route(S, ctx)
  local info = ctx.info
  local path = info.path
  if info.resource then return resource(S, ctx) end
  if PAGES[path] then return PAGES[path](ctx) end
  if path:find("^/apis?/?$") or path:find("^/apis?/") then
    return discovery.handle(ctx) or not_found_page()
  end
  if path:find("^/openapi/") then return openapi.handle(ctx) or not_found_page() end
  if path:find("^/sandbox/") then return control.handle(ctx) or not_found_page() end
  return not_found_page()
end

-- The answer -------------------------------------------------------------------------------------

local function traced(e)
  if status.is(e) then return e end
  return debug.traceback(tostring(e), 2)
end

-- The sandbox's own controllers and its own door are never disturbed, nor counted.
local function is_foreign(ctx) return not ctx.request.internal and not ctx.info.path:find("^/sandbox/") end

local function answer(S, ctx)
  local ok, code, document = xpcall(function()
    ctx.user = access.user(S, ctx)
    ctx.fault = is_foreign(ctx) and faults.find(S, ctx.info) or nil
    local refused = ctx.fault and faults.before(ctx.fault, ctx.info)
    if refused then return refused end
    local first, second = route(S, ctx)
    if type(first) == "table" then return first end
    ctx.document = second
    return negotiate.response(ctx, first, second)
  end, traced)
  if ok then return code, document end
  if status.is(code) then return failure(ctx, code) end
  host.log("error", "the sandbox failed on a request", { method = ctx.info.method, path = ctx.info.path, why = code })
  return failure(ctx, status.internal("the sandbox failed: " .. code:match("^[^\n]*")))
end

--- Answers a request: { method, target, header = function(name), body }. The answer is { status,
--- headers, body } or { status, headers, stream = function(writer) }.
function server.handle(S, req)
  local ctx = setmetatable({
    S = S,
    request = req,
    info = request.parse(req.method, req.target),
    warnings = {},
  }, Context)
  local revision = S.store.revision
  local response = add_common(ctx, (answer(S, ctx)))
  if is_foreign(ctx) then S.requests:add(ctx, response, revision) end
  return ctx.fault and faults.after(S, ctx.fault, response) or response
end

--- The Status for a body over the limit, which the HTTP server refuses by itself.
function server.oversize() return json.encode(status.too_large(body.LIMIT).document) .. "\n" end

return server
