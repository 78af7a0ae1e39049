-- Continue tokens: where the next page of a list begins, and at which revision. A revision of -1
-- is an inconsistent continuation: from there on as it is now.
local go_json = require "kube.sandbox.go_json"
local host = require "kube._server"
local json = require "kube.sandbox.json"

local continue = {}

local VERSION = "meta.k8s.io/v1"

--- The token for what follows `key`, which is relative to the list's own prefix.
function continue.encode(revision, key)
  -- The server writes inconsistent ones without the slash.
  local start = (revision > 0 and "/" or "") .. key .. "\0"
  return host.base64url(('{"v":"%s","rv":%d,"start":%s}'):format(VERSION, revision, json.encode(start)))
end

local function illegal_base64(token)
  local at = token:find("[^%w_-]")
  return ("illegal base64 data at input byte %d"):format(at and at - 1 or #token - 1)
end

local FIELDS = { { "v", "string" }, { "rv", "int64" }, { "start", "string" } }

local function kind_of(value)
  if type(value) == "boolean" then return "bool" end
  if type(value) == "table" then return json.is_array(value) and "array" or "object" end
  return type(value) == "string" and "string" or "number"
end

-- What Go says of a member of another type; null is no member.
local function member_problem(token)
  for _, field in ipairs(FIELDS) do
    local name, wanted = field[1], field[2]
    local value = token[name]
    if value ~= nil and value ~= json.null then
      local found = kind_of(value)
      local fraction = found == "number" and type(value) == "number" and value % 1 ~= 0
      if fraction and wanted == "int64" then found = "number " .. json.encode(value) end
      if found ~= (wanted == "int64" and "number" or wanted) then
        return ("json: cannot unmarshal %s into Go struct field continueToken.%s of type %s")
          :format(found, name, wanted)
      end
    end
  end
end

-- The decoded token, or nil and what is wrong with its text.
local function read(token)
  local text = host.unbase64url(token)
  if not text or token:find("=", 1, true) then return nil, illegal_base64(token) end
  local value = json.decode(text)
  if value == nil then return nil, go_json.problem(text) end
  if value == json.null then return {} end
  if not json.is_object(value) then
    return nil, ("json: cannot unmarshal %s into Go value of type storage.continueToken"):format(kind_of(value))
  end
  local problem = member_problem(value)
  if problem then return nil, problem end
  return value
end

-- A path that a file system would spell differently could lead out of the list.
local function is_clean(key)
  if key == "" then return true end
  for part in (key .. "/"):gmatch("([^/]*)/") do
    if part == "" or part == "." or part == ".." then return false end
  end
  return true
end

local function checked(token)
  if token.v ~= VERSION then
    return nil, "server does not recognize this encoded version " .. (json.get(token, "v") or "")
  end
  local revision, start = json.get(token, "rv") or 0, json.get(token, "start") or ""
  if revision == 0 then return nil, ("incorrect encoded start resourceVersion (version %s)"):format(VERSION) end
  if start == "" then return nil, ("encoded start key empty (version %s)"):format(VERSION) end
  local key = start:gsub("^/", "")
  if not is_clean(key) then return nil, start end
  return tonumber(revision), key
end

--- The revision and the first key (relative) of a token; nil and the server's text.
function continue.decode(token)
  local value, problem = read(token)
  local revision, key
  if value then
    revision, key = checked(value)
    problem = key
  end
  if revision then return revision, key end
  return nil, "invalid continue token: continue key is not valid: " .. problem
end

return continue
