-- A server that probes run against: how to reach it, its users, and how to make it forget.
local http_client = require "spec.support.http_client"
local kubectl = require "spec.support.kubectl"
local run = require "spec.support.run"

local target = {}
local Target = {}
Target.__index = Target

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

local function command(line, input)
  local result = run.sh(line, { stdin = input, timeout = 60 })
  assert(result.code == 0, line .. " failed\n" .. result.stderr)
  return result.stdout
end

-- The certificate that a kubeconfig holds, as a file; openssl takes nothing else.
local function write_ca(encoded)
  local path = os.tmpname()
  command("base64 -d > " .. path, encoded)
  return path
end

-- What a kubeconfig says, as far as the ones of scripts/kube and of the sandbox go.
local function parse(path)
  local text = read(path):gsub('"', "")
  local out = { tokens = {}, kubeconfig = path }
  out.url = text:match("server: (https?://[%w%.%-]+:%d+)")
  out.ca = text:match("certificate%-authority: ([^%s},]+)")
  local data = text:match("certificate%-authority%-data: ([%w+/=]+)")
  if not out.ca and data then
    out.ca = write_ca(data)
    out._scratch = out.ca
  end
  for name, token in text:gmatch("name: ([%w%-]+),?%s+user:%s+{?%s*token: ([^%s},]+)") do
    out.tokens[name] = token
  end
  -- The sandbox has one user.
  out.tokens.admin = out.tokens.admin or out.tokens.sandbox
  return out
end

-- `patience`: the seconds in which what must come has come.
local function new(kubeconfig, patience, expire)
  local self = setmetatable(parse(kubeconfig), Target)
  self.patience, self._expire = patience, expire
  self.client = http_client.new { url = self.url, ca = self.ca,
    headers = { { "Authorization", "Bearer " .. self:token "admin" } } }
  return self
end

--- The token of a user of the kubeconfig; any other text is the token itself.
function Target:token(user) return self.tokens[user] or user end

--- Makes the server forget all history before now.
function Target:expire()
  self._expire(self)
  self.client:close()
end

local programs = {
  debian = function() return (command "scripts/kubectl --path":gsub("%s+$", "")) end,
  built = function() return assert(os.getenv "MOONWATCH_KUBECTL", "MOONWATCH_KUBECTL is not set") end,
}

--- Gives the probes a kubectl: Debian's, or the one that scripts/kube built.
function Target:use_kubectl(version)
  if self.kubectl then self.kubectl:close() end
  self.kubectl = kubectl.new(assert(programs[version], version)(), self.kubeconfig)
end

function Target:close()
  self.client:close()
  if self.kubectl then self.kubectl:close() end
  if self._scratch then os.remove(self._scratch) end
end

--- The cluster of scripts/kube, by its environment.
function target.real()
  local cluster = require "spec.support.cluster"
  cluster.real()
  return new(cluster.kubeconfig, 60, cluster.forget)
end

--- A sandbox that spec/support/sandbox.lua started.
function target.sandbox(sandbox)
  return new(sandbox.kubeconfig, 5, function(self)
    local answer = self.client:request { method = "POST", path = "/sandbox/v1/expire" }
    assert(answer.status < 300, "expire: " .. answer.body)
  end)
end

return target
