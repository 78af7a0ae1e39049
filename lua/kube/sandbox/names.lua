-- What may be a name, a label, an annotation, a finalizer: each check returns the server's own
-- sentences for what is wrong, as one result each, or nothing.
local ip = require "kube.sandbox.ip"

local names = {}

local SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
  .. "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
  .. "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
local LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
  .. "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
  .. "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
local DNS1035 = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
  .. "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
  .. "'[a-z]([-a-z0-9]*[a-z0-9])?')"
local QUALIFIED = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
  .. "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
  .. "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
local VALUE = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
  .. "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
  .. "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

local CONFIG_KEY = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
  .. "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"

local function too_long(max, unit) return ("must be no more than %d %s"):format(max, unit or "characters") end

local function is_label(text) return text:find("^[a-z0-9][-a-z0-9]*$") ~= nil and text:find("[a-z0-9]$") ~= nil end

local function is_subdomain(text)
  if text == "" or text:find("^%.") or text:find("%.$") or text:find("..", 1, true) then return false end
  for part in text:gmatch("[^.]+") do
    if not is_label(part) then return false end
  end
  return true
end

--- A DNS subdomain: the names of most objects.
function names.subdomain(text)
  if #text > 253 then return too_long(253) end
  if not is_subdomain(text) then return SUBDOMAIN end
end

--- A DNS label: namespaces, and parts of names.
function names.label(text)
  if #text > 63 then return too_long(63) end
  if is_label(text) then return nil end
  return is_subdomain(text) and "must not contain dots" or LABEL
end

--- The name of a port.
function names.port(text)
  if #text > 15 then return too_long(15) end
  local problems = {}
  if not text:find("^[-a-z0-9]+$") then
    problems[1] = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
  end
  if not text:find("[a-z]") then problems[#problems + 1] = "must contain at least one letter (a-z)" end
  if text:find("--", 1, true) then problems[#problems + 1] = "must not contain consecutive hyphens" end
  if text:find("^%-") or text:find("%-$") then problems[#problems + 1] = "must not begin or end with a hyphen" end
  return unpack(problems)
end

function names.dns1035(text)
  if #text > 63 then return too_long(63) end
  if not is_label(text) or not text:find("^[a-z]") then return DNS1035 end
end

--- A segment of a path: the names of RBAC objects.
function names.path(text)
  if text == "." then return "may not be '.'" end
  if text == ".." then return "may not be '..'" end
  if text:find("/", 1, true) then return "may not contain '/'" end
  if text:find("%", 1, true) then return "may not contain '%'" end
end

--- A key of the data of a config map or secret.
function names.config_key(text)
  local problems = {}
  if #text > 253 then problems[1] = too_long(253) end
  if not text:find("^[-._%w]+$") then problems[#problems + 1] = CONFIG_KEY end
  if text == "." or text == ".." then
    problems[#problems + 1] = ("must not be '%s'"):format(text)
  elseif text:find("^%.%.") then
    problems[#problems + 1] = "must not start with '..'"
  end
  return unpack(problems)
end

--- An IP address: the names of IPAddress objects.
names.ip = ip.problem

local function is_name_part(text)
  return text:find("^[%w][%w_.-]*$") ~= nil and text:find("[%w]$") ~= nil
end

--- [prefix/]name: the keys of labels and annotations, and finalizers. `what` is how a text with too
--- many parts is called.
function names.qualified(text, what)
  local prefix, name, rest = text:match("^([^/]*)/([^/]*)(.*)$")
  local problems = {}
  if not prefix then
    name = text
  elseif rest ~= "" then
    return (what or "a qualified name") .. " " .. QUALIFIED:gsub("^name part ", "")
      .. " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
  elseif prefix == "" then
    problems[1] = "prefix part must be non-empty"
  else
    if #prefix > 253 then problems[1] = "prefix part " .. too_long(253, "bytes") end
    if not is_subdomain(prefix) then problems[#problems + 1] = "prefix part " .. SUBDOMAIN end
  end
  if name == "" then
    problems[#problems + 1] = "name part must be non-empty"
  elseif #name > 63 then
    problems[#problems + 1] = "name part " .. too_long(63, "bytes")
  end
  if not is_name_part(name) then problems[#problems + 1] = QUALIFIED end
  return unpack(problems)
end

function names.label_value(text)
  if #text > 63 then return too_long(63, "bytes") end
  if text ~= "" and not is_name_part(text) then return VALUE end
end

return names
