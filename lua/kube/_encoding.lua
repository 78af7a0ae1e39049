-- kube.base64, kube.sha256, kube.yaml: bytes and texts.
local core = require "kube._core"
local errors = require "kube._error"

local tools = core.tools

local M = { base64 = {}, yaml = {} }

local function check_text(what, text)
  if type(text) ~= "string" then errors.misuse("%s takes a string, not a %s", what, type(text)) end
end

--- The text in base64, as in .data of a Secret.
---@param text string any bytes
---@return string
function M.base64.encode(text)
  check_text("base64.encode()", text)
  return tools.base64(text)
end

--- What a text in base64 stands for; line breaks in it do not count. Raises for what is not base64.
---@param text string
---@return string
function M.base64.decode(text)
  check_text("base64.decode()", text)
  local bytes = tools.unbase64(text)
  if not bytes then errors.misuse("base64.decode(): the text is not base64") end
  return bytes
end

--- The SHA-256 of a text, as 64 hexadecimal digits.
---@param text string any bytes
---@return string
function M.sha256(text)
  check_text("sha256()", text)
  return tools.hex(tools.sha256(text))
end

--- All documents of a YAML text, without those that are empty. Arrays, null and 64-bit integers are kept as
--- kube.json keeps them. Raises with the line for what is not YAML.
---@param text string
---@return any[]
function M.yaml.decode_all(text)
  check_text("yaml.decode_all()", text)
  local documents, problem = tools.yaml_decode(text)
  if not documents then errors.misuse("yaml.decode_all(): %s", problem) end
  return documents
end

--- The document of a YAML text, or nil when it is empty. Raises for what is not YAML, and for more than one.
---@param text string
---@return any
function M.yaml.decode(text)
  check_text("yaml.decode()", text)
  local documents, problem = tools.yaml_decode(text)
  if not documents then errors.misuse("yaml.decode(): %s", problem) end
  if #documents > 1 then
    errors.misuse("yaml.decode(): the text has %d documents; kube.yaml.decode_all() reads them all", #documents)
  end
  return documents[1]
end

--- A value as one YAML document, with its keys in order.
---@param value any
---@return string
function M.yaml.encode(value)
  if value == nil then errors.misuse("yaml.encode() takes a value; kube.null is null") end
  local ok, text = pcall(tools.yaml_encode, value)
  if ok then return text end
  errors.misuse("yaml.encode(): %s", (tostring(text):gsub("^.-yaml_encode%(%): ", "")))
end

return M
