-- What /version answers: the release whose behaviour the sandbox follows.
local host = require "kube._server"
local json = require "kube.sandbox.json"

local version = {}

-- In the order of the server, which writes this one document indented.
local ORDER = {
  "major", "minor", "emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor",
  "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform",
}

local info, text

--- The document: major, minor, gitVersion, ...
function version.info()
  info = info or assert(json.decode(assert(host.data("version.json"), "version.json is not embedded")))
  return info
end

--- The document as the server writes it.
function version.text()
  if text then return text end
  local lines = {}
  for _, key in ipairs(ORDER) do
    local value = version.info()[key]
    if value ~= nil then lines[#lines + 1] = ("  %s: %s"):format(json.encode(key), json.encode(value)) end
  end
  text = "{\n" .. table.concat(lines, ",\n") .. "\n}"
  return text
end

return version
