-- Requests to an API server: the methods of clients that are written in Lua, which await.
local core = require "kube._core"
local errors = require "kube._error"
local options = require "kube._options"
local rate = require "kube._rate"
local task = require "kube._task"

local M = {}

---@class kube.RequestOptions
---@field method? string default: "GET"
---@field path string "/api/v1/namespaces/default/pods"; percent-encoded where it must be
---@field query? table<string, string|number|boolean|(string|number|boolean)[]>
---@field body? table|string a table is sent as JSON
---@field content_type? string default: "application/json"; a PATCH must say which kind it is
---@field accept? string default: "application/json"
---@field timeout? number seconds for all of it, default: 30
---@field headers? table<string, string> further ones

---@class kube.Response
---@field status integer
---@field headers table<string, string> by lower-case name
---@field body string
---@field object? table the body, when it is JSON

local DEFAULT_TIMEOUT = 30
local SHOWN_MAX = 300

local KNOWN = {
  method = "string", path = "string", query = "table", body = "table|string", content_type = "string",
  accept = "string", timeout = "number", headers = "table",
}

local METHODS = { GET = true, HEAD = true, POST = true, PUT = true, PATCH = true, DELETE = true, OPTIONS = true }

-- Headers that are not for the option `headers`, and where they come from.
local TAKEN = {
  accept = "the option accept sets it", ["content-type"] = "the option content_type sets it",
  authorization = "the client's kubeconfig sets it", host = "the client's kubeconfig sets it",
  ["content-length"] = "it follows from the body", ["transfer-encoding"] = "it follows from the body",
  connection = "connections are shared", expect = "it is never sent",
}

local SCALARS = { string = true, number = true, boolean = true, cdata = true }

--- Percent-encodes text for a path or a query.
function M.escape(text)
  return (text:gsub("[^%w%-._~]", function(c) return ("%%%02X"):format(c:byte()) end))
end

local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  return keys
end

local function query_value(what, name, value)
  if not SCALARS[type(value)] then
    errors.misuse("%s: query '%s' must be a string, a number, a boolean or a list of those, not a %s", what, name,
      type(value))
  end
  return M.escape(type(value) == "string" and value or core.codec.encode(value))
end

--- "a=1&b=x&b=y", by name.
function M.query_text(what, query)
  local parts = {}
  for _, name in ipairs(sorted_keys(query)) do
    if type(name) ~= "string" then errors.misuse("%s: query takes { name = value }, not a list", what) end
    local values = query[name]
    for _, value in ipairs(type(values) == "table" and values or { values }) do
      parts[#parts + 1] = M.escape(name) .. "=" .. query_value(what, name, value)
    end
  end
  return table.concat(parts, "&")
end

local function target(what, opts)
  local path = opts.path
  if not path then errors.misuse("%s needs path = \"/api/v1/...\"", what) end
  if not path:find("^/") then errors.misuse("%s: path must begin with '/', not be '%s'", what, path) end
  if path:find("[^!-~]") or path:find("#", 1, true) then
    errors.misuse("%s: path must be percent-encoded: no blanks, no '#', nothing but ASCII", what)
  end
  local query = opts.query and M.query_text(what, opts.query) or ""
  if query == "" then return path end
  return path .. (path:find("?", 1, true) and "&" or "?") .. query
end

-- The same for servers that are no API servers, which know nothing of kubeconfigs.
local TAKEN_ELSEWHERE = { host = "the URL sets it", authorization = false }
for name, why in pairs(TAKEN) do
  if TAKEN_ELSEWHERE[name] == nil then TAKEN_ELSEWHERE[name] = why end
end

--- A list of { name, value } of the option `headers`, checked.
---@param what string the name of the function in messages
---@param given? table<string, string>
---@param elsewhere? boolean they go to a server that is no API server
function M.header_list(what, given, elsewhere)
  local taken = elsewhere and TAKEN_ELSEWHERE or TAKEN
  local list = {}
  for _, name in ipairs(sorted_keys(given or {})) do
    local value = given[name]
    if type(name) ~= "string" or not name:find("^[%w!#$%%&'*+%-.^_`|~]+$") then
      errors.misuse("%s: headers: '%s' cannot be the name of a header", what, tostring(name))
    elseif taken[name:lower()] then
      errors.misuse("%s: headers: not %s: %s", what, name, taken[name:lower()])
    elseif type(value) ~= "string" or value:find("%c") then
      errors.misuse("%s: headers: the value of %s must be a string without control characters", what, name)
    end
    list[#list + 1] = { name, value }
  end
  return list
end

--- The text of a body: JSON when it is a table.
---@param what string the name of the function in messages
function M.encoded(what, body)
  if type(body) ~= "table" then return body end
  local ok, text = pcall(core.codec.encode, body)
  if ok then return text end
  errors.misuse("%s: body: %s", what, (tostring(text):gsub("^.-kube%.json%.encode%(%): ", "")))
end

--- The seconds that a request may take, of the option `timeout`.
---@param what string the name of the function in messages
---@param seconds? number
---@return number
function M.timeout(what, seconds)
  seconds = seconds or DEFAULT_TIMEOUT
  if seconds > 0 and seconds < math.huge then return seconds end
  errors.misuse("%s: option 'timeout' must be a number of seconds above 0, not %s", what, tostring(seconds))
end

-- What the core sends, from what a script wrote.
local function checked(what, opts)
  opts = options.check(what, opts, KNOWN)
  local method = opts.method or "GET"
  if not METHODS[method] then
    errors.misuse("%s: '%s' is not a method%s", what, method, options.hint(method:upper(), METHODS))
  end
  if method == "PATCH" and not opts.content_type then
    errors.misuse("%s: a PATCH needs content_type = \"application/merge-patch+json\", "
      .. "\"application/json-patch+json\", \"application/strategic-merge-patch+json\" or "
      .. "\"application/apply-patch+yaml\"", what)
  end
  return {
    what = what,
    method = method,
    path = target(what, opts),
    accept = opts.accept,
    content_type = opts.content_type or "application/json",
    body = M.encoded(what, opts.body),
    timeout = M.timeout(what, opts.timeout),
    headers = M.header_list(what, opts.headers),
    unfenced = opts.path:find("^/sandbox/v1/") ~= nil, -- the door of the sandbox, not the API
  }
end

local function decoded(headers, body)
  if not (headers["content-type"] or ""):find("json", 1, true) then return nil end
  local ok, value = pcall(core.codec.decode, body)
  return ok and type(value) == "table" and value or nil
end

local function text_of(value) return type(value) == "string" and value ~= "" and value or nil end

-- The beginning of a body that is no Status, as one line.
local function shown(body)
  local line = body:sub(1, SHOWN_MAX):gsub("[%c%s]+", " "):gsub("^ ", ""):gsub(" $", "")
  return line ~= "" and ": " .. line or ""
end

local function refusal(client, response)
  local status, given = response.status, response.object
  local function fails(reason, message, details)
    -- Whoever answered: what authenticates in front of an API server knows nothing of Status.
    if status == 401 then message = core.client.unknown(client, message) end
    return errors.refusal(status, reason, message, details)
  end
  if not given or given.kind ~= "Status" then
    return fails(nil, ("the server answered %d%s"):format(status, shown(response.body)))
  end
  local reason = text_of(given.reason)
  local message = text_of(given.message)
    or ("the server answered %d%s"):format(status, reason and " (" .. reason .. ")" or "")
  local err = fails(reason, message, type(given.details) == "table" and given.details or nil)
  err.continue = type(given.metadata) == "table" and text_of(given.metadata.continue) or nil
  return err
end

local send = task.awaiting("a request", function(call, client, wire) return call:send(client, wire) end)

--- Raises in the load phase. what is the name of the function in messages.
function M.check_loaded(what)
  if not core.task.is_loading() then return end
  errors.misuse("%s cannot be used while the script loads, which declares things and does none: write it behind "
    .. "the first await (factory:wait_for_cache_sync(), kube.sleep(0)), in a handler, or in "
    .. "kube.background(name, function)", what)
end

--- Sends what is known to be right with a client (nil: the host's own) and waits for the whole answer. The end of
--- the task is raised; what else goes wrong is returned as nil and the error.
---@param client? kube.Client
---@param wire table what the core takes: what, method, path, accept, content_type, body, timeout, headers, unfenced,
--- limit, retries; and keeps_response: a refusal brings the answer along
---@return kube.Response?
---@return kube.Error?
function M.exchange(client, wire)
  local left = task.remaining()
  local cut = left and left < wire.timeout
  wire.timeout = math.max(cut and left or wire.timeout, 0.001)
  local late = rate.wait(client, wire)
  if late then return nil, late end
  local call = core.request.new()
  send(call, client, wire)
  local status, headers, body = call:result()
  if not status then
    local err = errors.of_transport(headers)
    if cut and err.code == "timeout" then err.message = err.message .. " (that was the deadline of the task)" end
    return nil, err
  end
  local response = { status = status, headers = headers, body = body, object = decoded(headers, body) }
  if status < 400 then return response end
  local err = refusal(client, response)
  err.response = wire.keeps_response and response or nil
  return nil, err
end

--- Sends a request with a client (nil: the host's own) and waits for the whole answer. Misuse and the
--- end of the task are raised; what else goes wrong is returned as nil and the error.
---@param client? kube.Client
---@param opts kube.RequestOptions
---@param what string the name of the function in messages
---@return kube.Response?
---@return kube.Error?
function M.try_request(client, opts, what)
  M.check_loaded(what)
  return M.exchange(client, checked(what, opts))
end

--- The same, but everything that goes wrong is raised.
function M.request(client, opts, what)
  local response, err = M.try_request(client, opts, what)
  if response then return response end
  errors.raise(err)
end

---@class kube.Client
local Client = core.client.methods

--- Sends a request and waits for the answer; raises a kube.Error when it is 400 or above, or none.
---@param opts kube.RequestOptions
---@return kube.Response
function Client:request(opts) return M.request(self, opts, "client:request") end

--- The same, but returns nil and the error.
---@param opts kube.RequestOptions
---@return kube.Response?
---@return kube.Error?
function Client:try_request(opts) return M.try_request(self, opts, "client:try_request") end

return M
