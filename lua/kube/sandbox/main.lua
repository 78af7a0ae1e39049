-- The sandbox as a server: listens, says where, applies what it was given, and lives until told.
local files = require "kube.sandbox.files"
local host = require "kube._server"
local instance = require "kube.sandbox.instance"
local server = require "kube.sandbox.server"

local main = {}

local SAVE_EVERY = 1
local CERTIFICATE_AGE_MAX = 300 * 24 * 3600 -- they are good for a year

-- ADDRESS:PORT or [ADDRESS]:PORT, which core/options.c has checked.
local function split_address(text)
  local address, port = text:match("^%[?([%x:.]*)%]?:(%d+)$")
  return address == "" and "0.0.0.0" or address, tonumber(port)
end

-- What an exchange of the HTTP server looks like to a stream.
local function writer(x)
  return {
    write = function(_, bytes) return x:write(bytes) end,
    backlog = function() return x:backlog() end,
    finish = function() x:finish() end,
    reset = function() x:reset() end,
    on_gone = function(_, fn) x:on_gone(fn) end,
    on_drain = function(_, fn) x:on_drain(fn) end,
  }
end

local function send(x, response)
  if response.reset then return x:reset() end
  if not response.stream then return x:reply(response.status, response.headers, response.body or "") end
  x:start(response.status, response.headers)
  response.stream(writer(x))
end

local function answer(S, x)
  local response = S:handle {
    method = x.method,
    target = x.target,
    header = function(name) return x:header(name) end,
    body = x.body,
  }
  if response.delay then
    local gone
    x:on_gone(function() gone = true end)
    S.clock:after(response.delay, function()
      if not gone then send(x, response) end
    end)
  else
    send(x, response)
  end
  S:settle()
end

-- Token and certificate: those of the last time while they still fit, so that clients who knew the
-- sandbox then know it again; new ones otherwise.
local function identify(options, address, kept)
  local known = kept and kept.identity or {}
  local now = host.now()
  local identity = { token = options.token or known.token or host.hex(host.random(16)) }
  if options.plain_http then return identity end
  local fits = known.certificate and known.address == address and now < known.made + CERTIFICATE_AGE_MAX
  local tls = fits and known or host.certificate { "127.0.0.1", "::1", "localhost", address }
  identity.ca, identity.certificate, identity.key = tls.ca, tls.certificate, tls.key
  identity.address, identity.made = address, fits and known.made or now
  return identity
end

local function listen(S, address, port, tls)
  local listener = host.listen {
    host = address,
    port = port,
    tls = tls,
    oversize_body = server.oversize(),
    oversize_type = "application/json",
    on_request = function(x) answer(S, x) end,
  }
  local shown = address:find(":") and "[" .. address .. "]" or address
  return listener, ("%s://%s:%d"):format(tls and "https" or "http", shown, listener:port())
end

-- Writes the state to its file: now, so that a file that cannot be written is known at once,
-- whenever it has changed, and once more at the end. What could not be written is tried again.
local function keep(S, path, identity)
  local saved
  local function save()
    local revision = S.store.revision
    if revision == saved then return end
    files.save(path, S, identity)
    saved = revision
  end
  local function again()
    host.after(SAVE_EVERY, again)
    save()
  end
  again()
  return save
end

--- Starts it with host.options; returns what to do at the end.
function main.run()
  local options = host.options
  local address, port = split_address(options.listen or "127.0.0.1:0")
  local kept = options.data and files.load(options.data)
  local identity = identify(options, address, kept)
  local S = instance.new { token = identity.token, seed = options.seed, ca = identity.ca }
  if kept then
    local ok, problem = S:restore(kept)
    if not ok then error(("%s: %s"):format(options.data, problem), 0) end
  end
  for _, path in ipairs(options.apply or {}) do files.apply(S, path) end
  local tls = identity.certificate and { certificate = identity.certificate, key = identity.key }
  local listener, url = listen(S, address, port, tls)
  local save = options.data and keep(S, options.data, identity)
  host.ready { url = url, kubeconfig = files.kubeconfig(S, url, identity.ca) }
  return function()
    if save then save() end
    S.watches:close()
    listener:close(1)
  end
end

return main
