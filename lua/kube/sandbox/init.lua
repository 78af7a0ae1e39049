-- require "kube.sandbox": what a script can do to the sandbox that it runs against, and to no
-- cluster. Each call is one request to /sandbox/v1 (kube.sandbox.control answers it), awaits, and
-- takes a client as its last argument; without one it is the host's own.
--
-- The other modules in this directory are the server; they run in a state of their own, and scripts
-- do not get them.
local client_module = require "kube._client"
local core = require "kube._core"
local errors = require "kube._error"
local fields = require "kube._sandbox_fields"
local options = require "kube._options"

local sandbox = {}

local function raise(err)
  err.where = core.where()
  error(err, 0)
end

local function not_a_sandbox(client)
  raise(errors.new("nosandbox", ("%s is not a sandbox: it takes no calls at /sandbox/v1; start the script with "
    .. "--sandbox, or point it at `moonwatch sandbox`"):format(core.client.server(client or core.client.new {}))))
end

-- One call; what a sandbox answers is always a JSON object.
local function call(name, client, method, path, body, query)
  if client ~= nil and getmetatable(client) ~= "kube.client" then
    errors.misuse("sandbox.%s: the last argument must be what kube.new_client() returned, not a %s", name, type(client))
  end
  local response, err = client_module.try_request(client, { method = method, path = "/sandbox/v1/" .. path,
    query = query, body = body and core.codec.object(body) }, "sandbox." .. name)
  if response and response.object then return response.object end
  if not err or err.status == 404 or err.status == 403 then not_a_sandbox(client) end
  raise(err)
end

local function check_number(name, what, value)
  if type(value) ~= "number" then
    errors.misuse("sandbox.%s: %s must be a number, not a %s", name, what, type(value))
  end
end

--- Makes requests fail: which ones (verb, group, resource, subresource, namespace, name; nth and count of those)
--- and how (status with reason, message and retry_after; delay; cut; expired; for watches event_delay
--- and cut_after).
---@param fault table
---@param client? kube.Client
---@return string id
function sandbox.fault(fault, client)
  options.check("sandbox.fault", fault, fields.fault)
  return call("fault", client, "POST", "faults", fault or {}).id
end

--- Takes a fault away, or all of them.
---@param id? string
---@param client? kube.Client
function sandbox.clear_faults(id, client)
  if id ~= nil and (type(id) ~= "string" or not id:find("^%w+$")) then
    errors.misuse("sandbox.clear_faults: the id must be what sandbox.fault() returned, not %s", tostring(id))
  end
  call("clear_faults", client, "DELETE", id and "faults/" .. id or "faults")
end

---@class kube.sandbox.Request
---@field id integer
---@field time number the sandbox's time
---@field verb string get, list, watch, create, update, patch, delete or deletecollection
---@field path string with its query
---@field group? string where the path is a resource's
---@field version? string
---@field resource? string
---@field subresource? string
---@field namespace? string
---@field name? string of a create: the name that the object got
---@field user_agent? string
---@field status integer of the answer; 0 where a fault cut the connection
---@field fault? string the id of the fault that it ran into
---@field content_type? string of a write, as are the next two
---@field body? table what was sent; not what is longer than 64 KiB, nor protobuf
---@field changed? boolean whether anything was stored

---@class kube.sandbox.Requests
---@field last integer the id of the newest request: what came after it is `since` that id
---@field dropped integer how many are forgotten since the last clear_requests(); 4096 are kept
---@field counts { verb: string, group: string, version: string, resource: string, subresource?: string,
--- count: integer }[] of all since the last clear_requests(), whatever the filter says
---@field items kube.sandbox.Request[] those that the filter chooses, the oldest first

--- What the sandbox was asked, by everybody but this module and its own controllers.
---@param filter? { verb?: string, group?: string, resource?: string, subresource?: string, namespace?: string,
--- name?: string, since?: integer }
---@param client? kube.Client
---@return kube.sandbox.Requests
function sandbox.requests(filter, client)
  return call("requests", client, "GET", "requests", nil, options.check("sandbox.requests", filter, fields.requests))
end

--- Forgets the requests so far, and counts anew.
---@param client? kube.Client
function sandbox.clear_requests(client) call("clear_requests", client, "DELETE", "requests") end

--- Forgets all history: a list or watch that wants to go on from the past is told 410.
---@param client? kube.Client
function sandbox.expire(client) call("expire", client, "POST", "expire") end

local function watches(name, client, body) return call(name, client, "POST", "watches", body) end

---@class kube.sandbox.Watches
---@field paused boolean
---@field items { resource: string, namespace?: string, sent: integer, pending: integer }[]

--- Holds back the events of all watches.
---@param client? kube.Client
---@return kube.sandbox.Watches
function sandbox.pause_watches(client) return watches("pause_watches", client, { action = "pause" }) end

--- Lets so many of the held events go.
---@param n? integer 1
---@param client? kube.Client
---@return kube.sandbox.Watches
function sandbox.step_watches(n, client)
  if n ~= nil then check_number("step_watches", "the count", n) end
  return watches("step_watches", client, { action = "step", count = n })
end

--- Lets all events go, the held ones first.
---@param client? kube.Client
---@return kube.sandbox.Watches
function sandbox.resume_watches(client) return watches("resume_watches", client, { action = "resume" }) end

--- Sends a bookmark to all watches that want some: whoever has seen it has seen every change so far.
---@param client? kube.Client
---@return integer revision that the bookmark names
function sandbox.bookmark(client) return watches("bookmark", client, { action = "bookmark" }).revision end

--- Ends all watches as a broken connection does.
---@param client? kube.Client
---@return kube.sandbox.Watches
function sandbox.cut_watches(client) return watches("cut_watches", client, { action = "cut" }) end

local function clock(name, client, body) return call(name, client, body and "POST" or "GET", "clock", body).now end

--- Stops the sandbox's clock.
---@param t? number seconds since 1970; default: now
---@param client? kube.Client
---@return number now
function sandbox.freeze(t, client)
  if t ~= nil then check_number("freeze", "the time", t) end
  return clock("freeze", client, { freeze = t or true })
end

--- Moves a clock that is stopped on; what becomes due meanwhile happens, in its order.
---@param seconds number
---@param client? kube.Client
---@return number now
function sandbox.advance(seconds, client)
  check_number("advance", "the argument", seconds)
  return clock("advance", client, { advance = seconds })
end

--- Lets the clock run again, with the machine's time.
---@param client? kube.Client
---@return number now
function sandbox.thaw(client) return clock("thaw", client, { thaw = true }) end

--- The sandbox's time, in seconds since 1970.
---@param client? kube.Client
---@return number
function sandbox.now(client) return clock("now", client) end

--- Makes the names and uids that the sandbox gives from now on the same every time.
---@param n number
---@param client? kube.Client
function sandbox.seed(n, client)
  check_number("seed", "the seed", n)
  call("seed", client, "POST", "seed", { seed = n })
end

--- Everything that the sandbox holds, for restore().
---@param client? kube.Client
---@return table
function sandbox.snapshot(client) return call("snapshot", client, "GET", "snapshot") end

--- Goes back to a snapshot. Watches end, as they do when a server is restored from a backup.
---@param snapshot table
---@param client? kube.Client
function sandbox.restore(snapshot, client)
  if type(snapshot) ~= "table" then
    errors.misuse("sandbox.restore: the argument must be what sandbox.snapshot() returned, not a %s", type(snapshot))
  end
  call("restore", client, "PUT", "snapshot", snapshot)
end

return sandbox
