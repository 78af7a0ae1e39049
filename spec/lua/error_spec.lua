-- Errors of API servers: their codes, and the predicates.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.client_rig"

describe("an error of the server", function()
  cleanup.install()

  it("has a code in snake_case, the server's reason, and says whether it is worth another try", function() -- S-REST-09
    local server = rig.serve(function(request)
      local reason, code = request.query.reason, tonumber(request.query.code)
      if reason == "" then return { status = code, body = "no Status" } end
      return rig.status(code, reason, "the message")
    end)
    rig.run(server, [[
      local function is(wanted, code, reason, retriable, ...)
        local _, err = kube.try_request { path = "/", query = { code = code, reason = reason } }
        same({ wanted, reason, code, tostring(retriable) },
          { err.code, err.reason or "", err.status, tostring(err.retriable) })
        for i, predicate in ipairs { ... } do assert(predicate(err), "predicate " .. i .. " of " .. wanted) end
        local count = 0
        for _, predicate in pairs(require("kube._error").predicates) do
          if predicate(err) then count = count + 1 end
        end
        same(select("#", ...), count)
      end
      is("bad_request", 400, "BadRequest", false, kube.is_bad_request)
      is("unauthorized", 401, "Unauthorized", false, kube.is_unauthorized)
      is("forbidden", 403, "Forbidden", false, kube.is_forbidden)
      is("not_found", 404, "NotFound", false, kube.is_not_found)
      is("method_not_allowed", 405, "MethodNotAllowed", false, kube.is_method_not_allowed)
      is("already_exists", 409, "AlreadyExists", false, kube.is_already_exists)
      is("conflict", 409, "Conflict", true, kube.is_conflict)
      is("expired", 410, "Expired", false, kube.is_resource_expired)
      is("gone", 410, "Gone", false, kube.is_gone, kube.is_resource_expired)
      is("invalid", 422, "Invalid", false, kube.is_invalid)
      is("too_many_requests", 429, "TooManyRequests", true, kube.is_too_many_requests)
      is("internal", 500, "InternalError", true, kube.is_internal_error)
      is("server_timeout", 500, "ServerTimeout", true, kube.is_server_timeout)
      is("unavailable", 503, "ServiceUnavailable", true, kube.is_service_unavailable)
      is("timeout", 504, "Timeout", true, kube.is_timeout)
      is("store_read_error", 500, "StoreReadError", false)
      is("conflict", 409, "", true, kube.is_conflict)
      is("gone", 410, "", false, kube.is_gone, kube.is_resource_expired)
      is("too_many_requests", 429, "", true, kube.is_too_many_requests)
      is("internal", 502, "", true, kube.is_internal_error)
      is("http", 418, "", false)
    ]])
  end)

  it("is told from what is none", function()
    rig.run(rig.serve(rig.echo), [[
      for _, value in ipairs { "text", 7, false, {}, kube.null } do assert(not kube.is_not_found(value)) end
      assert(not kube.is_not_found(nil))
      local t = kube.background("t", function()
        local err = failure(kube.sleep, 60)
        assert(kube.is_cancelled(err) and not kube.is_timeout(err))
        print("cancelled")
      end)
      kube.sleep(0)
      t:cancel()
      eventually(function() return t:is_done() end)
    ]])
  end)
end)
