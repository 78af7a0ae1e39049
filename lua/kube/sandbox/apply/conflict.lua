-- What an apply that meets the fields of others is told: the message and causes of a 409.
local field_set = require "kube.sandbox.apply.field_set"
local json = require "kube.sandbox.json"

local conflict = {}

local function quote(text) return '"' .. text:gsub('[\\"]', "\\%0") .. '"' end

local function name_of(entry, version)
  local text = quote(entry.manager)
  if entry.subresource then text = text .. " with subresource " .. quote(entry.subresource) end
  if entry.operation == "Update" then text = text .. " using " .. (version or entry.api_version) end
  return text
end

--- `found` is identifier -> { entry =, set = }: whose fields, and which. Returns
--- { kind = "conflict", message =, causes = array of { reason, message, field } }. `version` is the one
--- that all of them are seen in, where it is not their own.
function conflict.refusal(found, version)
  local ids = {}
  for id in pairs(found) do ids[#ids + 1] = id end
  table.sort(ids)
  local causes, lines = json.array {}, {}
  for _, id in ipairs(ids) do
    local name = name_of(found[id].entry, version)
    lines[#lines + 1] = ("conflicts with %s:"):format(name)
    for _, path in ipairs(field_set.paths(found[id].set)) do
      lines[#lines + 1] = "- " .. path
      causes[#causes + 1] = json.object {
        reason = "FieldManagerConflict",
        message = "conflict with " .. name,
        field = path,
      }
    end
  end
  local message
  if #causes == 1 then
    message = ("Apply failed with 1 conflict: %s: %s"):format(causes[1].message, causes[1].field)
  else
    message = ("Apply failed with %d conflicts: %s"):format(#causes, table.concat(lines, "\n"))
  end
  return { kind = "conflict", message = message, causes = causes }
end

return conflict
