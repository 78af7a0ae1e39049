-- Why a patch was refused, as a Status: by the kind of refusal that the patch's module names.
local status = require "kube.sandbox.status"

return {
  bad_request = function(message) return status.bad_request("%s", message) end,
  unprocessable = status.unprocessable,
  unclassified = status.unclassified,
  too_large = function(message)
    return status.new { code = 413, reason = "RequestEntityTooLarge", message = message }
  end,
  conflict = function(message, causes)
    return status.new { code = 409, reason = "Conflict", message = message, details = { causes = causes } }
  end,
}
