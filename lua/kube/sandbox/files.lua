-- Files: manifests that are applied, the state that is kept, the kubeconfig that clients need.
local host = require "kube._server"
local json = require "kube.sandbox.json"

local files = {}

local ENOENT = 2

local function read(path)
  local file, problem = io.open(path, "rb")
  if not file then error(("cannot read %s"):format(problem), 0) end
  local text = file:read("*a")
  file:close()
  if not text then error(("%s is a directory that cannot be read as a file"):format(path), 0) end
  return text
end

-- Manifests --------------------------------------------------------------------------------------

-- The objects of a manifest, in order; a List counts as its items.
local function flatten(documents, into)
  for _, document in ipairs(documents) do
    if json.is_object(document) and tostring(document.kind or ""):find("List$") and json.is_array(document.items) then
      flatten(document.items, into)
    elseif document ~= json.null then
      into[#into + 1] = document
    end
  end
  return into
end

-- A name as a part of a path, whatever stands in it.
local function part(name)
  return (tostring(name):gsub("[^%w%-._~:]", function(c) return ("%%%02X"):format(c:byte()) end))
end

local function target_of(S, document, where)
  local version, kind = document.apiVersion, document.kind
  local name = json.get(document, "metadata", "name")
  if type(version) ~= "string" or type(kind) ~= "string" then
    error(("%s: an object without apiVersion or kind"):format(where), 0)
  elseif type(name) ~= "string" then
    error(("%s: a %s without metadata.name"):format(where, kind), 0)
  end
  local R = S.kinds:by_kind(version, kind)
  if not R then
    error(("%s: nothing serves %s of %s here; if it is a custom resource, apply its definition first")
      :format(where, kind, version), 0)
  end
  local base = R.group == "" and "/api/" .. R.version or ("/apis/%s/%s"):format(R.group, R.version)
  if R.namespaced then
    base = ("%s/namespaces/%s"):format(base, part(json.get(document, "metadata", "namespace") or "default"))
  end
  return ("%s/%s/%s?fieldManager=sandbox&force=true"):format(base, R.plural, part(name))
end

local function apply_one(S, document, where)
  if not json.is_object(document) then error(("%s: not an object"):format(where), 0) end
  local target = target_of(S, document, where)
  local code, answer = S:call("sandbox", "PATCH", target, document, "application/apply-patch+yaml")
  if code >= 300 then
    error(("%s: %s %s: %s"):format(where, document.kind, document.metadata.name, answer.message), 0)
  end
  S:settle()
end

local MANIFEST = { yaml = true, yml = true, json = true }

--- Applies a manifest (YAML or JSON, many documents), or those of a directory in the order of their
--- names. Raises with the file and the object that was refused.
function files.apply(S, path)
  local entries = host.directory(path)
  if entries then
    table.sort(entries)
    for _, name in ipairs(entries) do
      if MANIFEST[name:match("%.(%w+)$") or ""] then files.apply(S, path .. "/" .. name) end
    end
    return
  end
  local documents, problem = host.yaml_decode(read(path))
  if not documents then error(("%s: %s"):format(path, problem), 0) end
  for i, document in ipairs(flatten(documents, {})) do
    apply_one(S, document, ("%s (object %d)"):format(path, i))
  end
end

-- State ------------------------------------------------------------------------------------------

--- Puts the whole state into a file, at once, with the token and the certificate that clients know
--- the sandbox by.
function files.save(path, S, identity)
  local state = json.with(S:snapshot(), "identity", json.object(identity))
  local ok, problem = host.write(path, json.encode(state))
  if not ok then error(("cannot write %s"):format(problem), 0) end
end

--- What a file that save() wrote has, { revision, storages, identity }; nil when there is no file.
--- A snapshot, which has no identity, will do too.
function files.load(path)
  local file, _, code = io.open(path, "rb")
  if not file and code == ENOENT then return nil end
  if file then file:close() end
  local state, problem = json.decode(read(path))
  local good = json.is_object(state) and type(state.revision) == "number" and json.is_object(state.storages)
  if good then return state end
  error(("%s holds no state of a sandbox: %s"):format(path, problem or "it is something else"), 0)
end

--- A kubeconfig for a server at `url`. Some clients refuse plain HTTP unless they are told that
--- nothing is verified.
function files.kubeconfig(S, url, ca)
  local trust = ca and "certificate-authority-data: " .. host.base64(ca) or "insecure-skip-tls-verify: true"
  local token = host.yaml_encode(S.token):gsub("\n$", "") -- in quotes where it looks like a number
  return ([[
apiVersion: v1
kind: Config
current-context: sandbox
clusters:
- name: sandbox
  cluster:
    server: %s
    %s
users:
- name: sandbox
  user:
    token: %s
contexts:
- name: sandbox
  context:
    cluster: sandbox
    user: sandbox
]]):format(url, trust, token)
end

return files
