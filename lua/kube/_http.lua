-- kube.http: requests to other servers than the API server. They go over the same thread as all others, with
-- connections that are kept per server, but never with the credentials of the cluster.
local client = require "kube._client"
local core = require "kube._core"
local errors = require "kube._error"
local options = require "kube._options"

local M = {}

---@class kube.HttpOptions
---@field headers? table<string, string>
---@field body? string|table a table is sent as JSON
---@field content_type? string default with a body: "application/json"
---@field accept? string default: "*/*"
---@field timeout? number seconds for all of it, default: 10
---@field limit? integer bytes that the answer's body may have, default: 4 MiB, at most 64 MiB
---@field redirects? integer so many are followed; default: none, and an answer of 3xx is returned
---@field ca? string certificates in PEM that are trusted in place of the system's
---@field insecure? boolean certificates are not verified

local KNOWN = { headers = "table", body = "table|string", content_type = "string", accept = "string",
  timeout = "number", limit = "number", redirects = "number", ca = "string", insecure = "boolean" }

local DEFAULT_TIMEOUT, DEFAULT_LIMIT, LIMIT_MAX, REDIRECTS_MAX = 10, 4 * 1024 * 1024, 64 * 1024 * 1024, 20
local SERVERS_MAX = 64 -- remembered with their connections; with more, all are made anew

-- Clients without credentials, by what makes them differ.
local servers, count = {}, 0

local function server_of(origin, opts)
  local name = table.concat({ origin, opts.insecure and "insecure" or "", opts.ca or "" }, "\n")
  local server = servers[name]
  if server then return server end
  if count == SERVERS_MAX then servers, count = {}, 0 end
  server = core.client.anonymous { server = origin, ca = opts.ca, insecure = opts.insecure }
  servers[name], count = server, count + 1
  return server
end

-- Origin and path of a URL, or nil and what is wrong with it.
local function split(url)
  local scheme, rest = url:match("^(%a+)://(.+)$")
  scheme = scheme and scheme:lower()
  if scheme ~= "http" and scheme ~= "https" then return nil, "it must begin with http:// or https://" end
  local authority, path = rest:match("^([^/?#]+)([^#]*)")
  if not authority then return nil, "it has no host" end
  if authority:find("@", 1, true) then
    return nil, "it must not hold a password: use headers = { Authorization = ... }"
  end
  if url:find("[^!-~]") then return nil, "it must be percent-encoded: no blanks, nothing but ASCII" end
  if not authority:find("^[%w.-]+:?%d*$") and not authority:find("^%[[%x:.]+%]:?%d*$") then
    return nil, "its host is not a name or an address"
  end
  if path:find("^%?") then path = "/" .. path end
  return scheme .. "://" .. authority:lower(), path == "" and "/" or path
end

local function whole(what, opts, name, least, most)
  local value = opts[name]
  if value == nil or (value >= least and value <= most and value % 1 == 0) then return end
  errors.misuse("%s: option '%s' must be a whole number from %d to %d, not %s", what, name, least, most,
    tostring(value))
end

-- Another host does not get what was meant for the first one.
local PRIVATE = { authorization = true, cookie = true, ["proxy-authorization"] = true }

local function without_secrets(headers)
  local kept = {}
  for _, header in ipairs(headers) do
    if not PRIVATE[header[1]:lower()] then kept[#kept + 1] = header end
  end
  return kept
end

local REDIRECTS = { [301] = true, [302] = true, [303] = true, [307] = true, [308] = true }

-- The URL that a Location means, seen from where it was read.
local function resolve(state, location)
  if location:find("^%a[%w+.-]*:") then return location end
  if location:find("^//") then return state.origin:match("^%a+:") .. location end
  if location:find("^/") then return state.origin .. location end
  local path = state.path:match("^[^?]*")
  if location:find("^%?") then return state.origin .. path .. location end
  return state.origin .. path:gsub("[^/]*$", "") .. location
end

-- What a redirect leads to: changes the request. nil and an error when it must not be followed.
local function follow(state, response)
  local location = response.headers.location
  local origin, path = split(resolve(state, location))
  if not origin or (state.origin:find("^https:") and not origin:find("^https:")) then
    return nil, errors.new("redirect", ("%s%s leads to '%s', which is not followed"):format(state.origin, state.path,
      location), { status = response.status, response = response, retriable = false })
  end
  local wire = state.wire
  if response.status == 303 or (response.status < 303 and wire.method == "POST") then
    wire.method, wire.body = wire.method == "HEAD" and "HEAD" or "GET", nil
  end
  if origin ~= state.origin then wire.headers = without_secrets(wire.headers) end
  state.origin, state.path = origin, path
  return true
end

local function exchange(state, opts)
  local ends = core.task.now() + state.wire.timeout
  for left = opts.redirects or 0, 0, -1 do
    state.wire.path = state.path
    state.wire.timeout = math.max(ends - core.task.now(), 0.001)
    local response, err = client.exchange(server_of(state.origin, opts), state.wire)
    if not response then return nil, err end
    response.url = state.origin .. state.path
    if left == 0 or not REDIRECTS[response.status] or not response.headers.location then return response end
    local ok
    ok, err = follow(state, response)
    if not ok then return nil, err end
  end
end

-- What client.exchange takes, of a request as a script wrote it.
local function checked(what, method, url, opts)
  if type(method) ~= "string" or not method:find("^%u+$") then
    errors.misuse("%s takes a method such as \"PATCH\" first, not %s", what,
      type(method) == "string" and method or options.shown(method))
  end
  if type(url) ~= "string" then errors.misuse("%s takes a URL, not a %s", what, type(url)) end
  local origin, path = split(url)
  if not origin then errors.misuse("%s: '%s' is no URL for it: %s", what, url, path) end
  whole(what, opts, "limit", 1, LIMIT_MAX)
  whole(what, opts, "redirects", 0, REDIRECTS_MAX)
  return { origin = origin, path = path, wire = {
    what = what, method = method, accept = opts.accept or "*/*",
    content_type = opts.content_type or "application/json",
    body = client.encoded(what, opts.body), timeout = client.timeout(what, opts.timeout or DEFAULT_TIMEOUT),
    headers = client.header_list(what, opts.headers, true), limit = opts.limit or DEFAULT_LIMIT, retries = -1,
    keeps_response = true, unfenced = true,
  } }
end

local function try(what, method, url, opts)
  client.check_loaded(what)
  opts = options.check(what, opts, KNOWN)
  return exchange(checked(what, method, url, opts), opts)
end

local function raised(response, err)
  if response then return response end
  errors.raise(err)
end

--- Sends a request and waits for the whole answer: { status, headers, body, object, url }. Raises when the status is
--- 400 or above (the error's `response` has the answer), and when there is no answer.
---@param method string "GET", "PATCH"...
---@param url string
---@param opts? kube.HttpOptions
---@return kube.Response
function M.request(method, url, opts) return raised(try("kube.http.request", method, url, opts)) end

--- The same, but returns nil and the error.
---@param method string
---@param url string
---@param opts? kube.HttpOptions
---@return kube.Response?
---@return kube.Error?
function M.try_request(method, url, opts) return try("kube.http.try_request", method, url, opts) end

--- Reads what is at a URL.
---@param url string
---@param opts? kube.HttpOptions
---@return kube.Response
function M.get(url, opts) return raised(try("kube.http.get", "GET", url, opts)) end

--- The same, but returns nil and the error.
---@param url string
---@param opts? kube.HttpOptions
---@return kube.Response?
---@return kube.Error?
function M.try_get(url, opts) return try("kube.http.try_get", "GET", url, opts) end

--- Sends a POST, with opts.body.
---@param url string
---@param opts? kube.HttpOptions
---@return kube.Response
function M.post(url, opts) return raised(try("kube.http.post", "POST", url, opts)) end

--- The same, but returns nil and the error.
---@param url string
---@param opts? kube.HttpOptions
---@return kube.Response?
---@return kube.Error?
function M.try_post(url, opts) return try("kube.http.try_post", "POST", url, opts) end

--- Sends a PUT, with opts.body.
---@param url string
---@param opts? kube.HttpOptions
---@return kube.Response
function M.put(url, opts) return raised(try("kube.http.put", "PUT", url, opts)) end

--- The same, but returns nil and the error.
---@param url string
---@param opts? kube.HttpOptions
---@return kube.Response?
---@return kube.Error?
function M.try_put(url, opts) return try("kube.http.try_put", "PUT", url, opts) end

--- Sends a DELETE.
---@param url string
---@param opts? kube.HttpOptions
---@return kube.Response
function M.delete(url, opts) return raised(try("kube.http.delete", "DELETE", url, opts)) end

--- The same, but returns nil and the error.
---@param url string
---@param opts? kube.HttpOptions
---@return kube.Response?
---@return kube.Error?
function M.try_delete(url, opts) return try("kube.http.try_delete", "DELETE", url, opts) end

return M
