-- Requests to an API server: the methods of clients that are written in Lua, which await.
local core = require "kube._core"
local errors = require "kube._error"
local options = require "kube._options"
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

---@class kube.Error
---@field code string the server's reason ("NotFound", "Conflict"; "HTTP" when it gave none), or what
--- became of the connection: "timeout", "refused", "eof", "connect", "tls", "auth", "limit"
---@field message string
---@field status? integer of the answer
---@field details? table of the server's Status

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

local function escape(text)
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
  return escape(type(value) == "string" and value or core.codec.encode(value))
end

-- "a=1&b=x&b=y", by name.
local function query_text(what, query)
  local parts = {}
  for _, name in ipairs(sorted_keys(query)) do
    if type(name) ~= "string" then errors.misuse("%s: query takes { name = value }, not a list", what) end
    local values = query[name]
    for _, value in ipairs(type(values) == "table" and values or { values }) do
      parts[#parts + 1] = escape(name) .. "=" .. query_value(what, name, value)
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
  local query = opts.query and query_text(what, opts.query) or ""
  if query == "" then return path end
  return path .. (path:find("?", 1, true) and "&" or "?") .. query
end

local function header_list(what, given)
  local list = {}
  for _, name in ipairs(sorted_keys(given or {})) do
    local value = given[name]
    if type(name) ~= "string" or not name:find("^[%w!#$%%&'*+%-.^_`|~]+$") then
      errors.misuse("%s: headers: '%s' cannot be the name of a header", what, tostring(name))
    elseif TAKEN[name:lower()] then
      errors.misuse("%s: headers: not %s: %s", what, name, TAKEN[name:lower()])
    elseif type(value) ~= "string" or value:find("%c") then
      errors.misuse("%s: headers: the value of %s must be a string without control characters", what, name)
    end
    list[#list + 1] = { name, value }
  end
  return list
end

local function encoded(what, body)
  if type(body) ~= "table" then return body end
  local ok, text = pcall(core.codec.encode, body)
  if ok then return text end
  errors.misuse("%s: body: %s", what, (tostring(text):gsub("^.-kube%.json%.encode%(%): ", "")))
end

-- What the core sends, from what a script wrote.
local function checked(what, opts)
  opts = options.check(what, opts, KNOWN)
  local method = opts.method or "GET"
  if not METHODS[method] then
    errors.misuse("%s: '%s' is not a method%s", what, method, options.hint(method:upper(), METHODS))
  end
  local timeout = opts.timeout or DEFAULT_TIMEOUT
  if not (timeout > 0 and timeout < math.huge) then
    errors.misuse("%s: option 'timeout' must be a number of seconds above 0, not %s", what, tostring(timeout))
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
    body = encoded(what, opts.body),
    timeout = timeout,
    headers = header_list(what, opts.headers),
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

local function refusal(response)
  local given = response.object
  if not given or given.kind ~= "Status" then
    return errors.new("HTTP", ("the server answered %d%s"):format(response.status, shown(response.body)),
      { status = response.status })
  end
  local reason = text_of(given.reason)
  local message = text_of(given.message)
    or ("the server answered %d%s"):format(response.status, reason and " (" .. reason .. ")" or "")
  return errors.new(reason or "HTTP", message,
    { status = response.status, details = type(given.details) == "table" and given.details or nil })
end

local send = task.awaiting("a request", function(call, client, wire) return call:send(client, wire) end)

--- Sends a request with a client (nil: the host's own) and waits for the whole answer. Misuse and the
--- end of the task are raised; what else goes wrong is returned as nil and the error.
---@param client? kube.Client
---@param opts kube.RequestOptions
---@param what string the name of the function in messages
---@return kube.Response?
---@return kube.Error?
function M.try_request(client, opts, what)
  if core.task.is_loading() then
    errors.misuse("%s cannot be used while the script loads, which declares things and does none: write it behind "
      .. "the first await (factory:wait_for_cache_sync(), kube.sleep(0)), in a handler, or in "
      .. "kube.background(name, function)", what)
  end
  local call = core.request.new()
  send(call, client, checked(what, opts))
  local status, headers, body = call:result()
  if not status then return nil, headers end
  local response = { status = status, headers = headers, body = body, object = decoded(headers, body) }
  if status >= 400 then return nil, refusal(response) end
  return response
end

--- The same, but everything that goes wrong is raised.
function M.request(client, opts, what)
  local response, err = M.try_request(client, opts, what)
  if response then return response end
  err.where = core.where()
  error(err, 0)
end

---@class kube.Client
---@field server fun(self: kube.Client): string
---@field context fun(self: kube.Client): string
---@field namespace fun(self: kube.Client): string
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

options.guard(Client, "client", { is = function(value) return getmetatable(value) == "kube.client" end })

return M
