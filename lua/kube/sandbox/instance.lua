-- One sandbox: its memory, its clock, its kinds, and the controllers that run beside the API.
local accounts = require "kube.sandbox.controllers.accounts"
local clock = require "kube.sandbox.clock"
local definitions = require "kube.sandbox.controllers.definitions"
local garbage = require "kube.sandbox.controllers.garbage"
local host = require "kube._server"
local ids = require "kube.sandbox.ids"
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"
local namespaces = require "kube.sandbox.controllers.namespaces"
local requests = require "kube.sandbox.requests"
local server = require "kube.sandbox.server"
local store = require "kube.sandbox.store"
local strategies = require "kube.sandbox.strategies"
local watch = require "kube.sandbox.watch"

local instance = {}
instance.__index = instance

-- As many turns as controllers may give each other work before somebody is told that they fight.
local SETTLE_MAX = 100000

--- { token, seed, history, ca (PEM for kube-root-ca.crt), server (what kubeconfigs name) }.
function instance.new(options)
  local self = setmetatable({
    store = store.new { history = options.history },
    kinds = kinds.new(),
    clock = clock.new(),
    ids = ids.new(options.seed),
    audit_ids = ids.new(), -- reads must not disturb what the seed gives
    token = options.token,
    ca = options.ca or "",
    queue = {},
    faults = {},
    requests = requests.new(),
  }, instance)
  self.watches = watch.new(self)
  strategies.install(self.kinds)
  for _, controller in ipairs { definitions, namespaces, accounts, garbage } do controller.start(self) end
  self:bootstrap()
  return self
end

--- Calls fn soon, after the request that is being answered. Controllers work in such calls.
function instance:later(fn) self.queue[#self.queue + 1] = fn end

--- Does what was put off, until nothing is left.
function instance:settle()
  if self.settling then return end
  self.settling = true
  local i = 0
  while self.queue[i + 1] do
    i = i + 1
    local ok, problem = xpcall(self.queue[i], debug.traceback)
    self.queue[i] = false
    if not ok then host.log("error", "a controller of the sandbox failed", { why = problem }) end
    if i == SETTLE_MAX then
      host.log("error", "the sandbox's controllers do not come to rest; what is left to do is dropped", {})
      break
    end
  end
  self.queue, self.settling = {}, false
end

--- Answers a request (see server.handle).
function instance:handle(req) return server.handle(self, req) end

local function no_headers() return nil end

--- A request by one of the sandbox's own controllers: code and document. `agent` is who it says it
--- is, and so the manager of the fields that it writes.
function instance:call(agent, method, target, document, media_type)
  local headers = { ["user-agent"] = agent, ["content-type"] = media_type or "application/json" }
  local response = self:handle {
    method = method,
    target = target,
    internal = true,
    header = function(name) return headers[name] or no_headers() end,
    body = document and json.encode(document) or "",
  }
  return response.status, response.body and json.decode(response.body)
end

--- Everything that a later restore() needs, as one document.
function instance:snapshot() return self.store:snapshot() end

--- Back to a snapshot. Watches end, as they do when a server is restored from a backup.
function instance:restore(snapshot)
  local ok, problem = pcall(self.store.restore, self.store, snapshot)
  if not ok then return nil, tostring(problem) end
  self.watches:cut()
  self:settle()
  return true
end

local NAMESPACES = { "kube-system", "kube-public", "kube-node-lease", "default" }

-- What every cluster has from its first moment.
function instance:bootstrap()
  for _, name in ipairs(NAMESPACES) do
    self:call("kube-apiserver", "POST", "/api/v1/namespaces", json.object { metadata = json.object { name = name } })
  end
  self:call("kube-apiserver", "POST", "/api/v1/namespaces/default/services", json.object {
    metadata = json.object {
      name = "kubernetes",
      labels = json.object { component = "apiserver", provider = "kubernetes" },
    },
    spec = json.object {
      ports = json.array { json.object { name = "https", port = 443, targetPort = 6443, protocol = "TCP" } },
    },
  })
  self:settle()
end

return instance
