local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local function parse(text)
  local status = ffi.new("struct mw_status")
  return C.mw_status_parse(unit.slice(text), status), status
end

local function classify(text, http)
  local ok, status = parse(text)
  assert.is_true(ok)
  local err = unit.err()
  local code = C.mw_status_classify(status, http or 0, err)
  assert.equal(code, err.code)
  return ffi.string(C.mw_err_name(code)), ffi.string(err.message), err.http_status
end

local function failure(members) return '{"kind":"Status","apiVersion":"v1",' .. members .. "}" end

describe("status", function()
  it("reads what a server says", function()
    local ok, s = parse(failure [["status":"Failure","message":"pods \"a\" not found","reason":"NotFound",
      "details":{"name":"a","kind":"pods","retryAfterSeconds":7},"code":404]])
    assert.is_true(ok)
    assert.equal(404, s.code)
    assert.equal(7, s.retry_after)
    assert.equal("NotFound", ffi.string(s.reason))
    assert.equal('pods "a" not found', ffi.string(s.message))
    assert.is_false(s.too_large_rv)
  end)

  it("is also a Status under meta.k8s.io/v1, and with its members in any order", function()
    assert.is_true((parse '{"code":500,"apiVersion":"meta.k8s.io/v1","kind":"Status"}'))
  end)

  it("is none when kind or apiVersion differ or the text is not JSON", function()
    for _, text in ipairs { "", "null", "[]", "{}", '{"kind":"Status"}', '{"kind":"Pod","apiVersion":"v1"}',
      '{"kind":"Status","apiVersion":"v2"}', '{"kind":"Status","apiVersion":"v1",}', "<html>" } do
      local ok, s = parse(text)
      assert.is_false(ok)
      assert.equal(0, s.code)
    end
  end)

  it("bears members of the wrong kind", function()
    local ok, s = parse(failure [["code":"x","message":{},"reason":[],
      "details":{"retryAfterSeconds":"1","causes":[1,{"reason":2}]}]])
    assert.is_true(ok)
    assert.equal(0, s.code)
    assert.equal(-1, s.retry_after)
  end)

  it("cuts a long message at a character", function()
    local _, s = parse(failure('"message":"' .. ("é"):rep(300) .. '"'))
    local message = ffi.string(s.message)
    assert.equal(("é"):rep(199), message)
  end)

  describe("classification", function()
    for _, case in ipairs {
      { "EEXPIRED", '"code":410,"reason":"Expired"' },
      { "EEXPIRED", '"code":410,"reason":"Gone"' },
      { "EEXPIRED", '"code":410' },
      { "EEXPIRED", '"code":410,"reason":"SomethingNew"' },
      { "EHTTP", '"code":410,"reason":"NotFound"' },
      { "ETHROTTLED", '"code":429,"reason":"TooManyRequests"' },
      { "ETHROTTLED", '"code":429,"reason":"Forbidden"' },
      { "ETHROTTLED", '"reason":"TooManyRequests"' },
      { "EINTERNAL", '"code":500,"reason":"InternalError"' },
      { "EINTERNAL", '"code":500' },
      { "EHTTP", '"code":500,"reason":"ServerTimeout"' },
      { "EHTTP", '"code":403,"reason":"Forbidden"' },
      { "ETOOLARGERV", '"code":504,"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}' },
      { "ETOOLARGERV", '"reason":"Timeout","details":{"causes":[{"message":"Too large resource version"}]}' },
      { "ETOOLARGERV", '"code":504,"reason":"Timeout","message":"Timeout: Too large resource version: 9, current: 2"' },
      { "ETOOLARGERV", '"code":504,"message":"Too large resource version: 9"' },
      { "EHTTP", '"code":404,"reason":"NotFound","message":"Too large resource version"' },
      { "EHTTP", '"code":504,"reason":"Timeout","message":"it took too long"' },
      { "EHTTP", '"message":"Too large resource version: 9"' },
      { "EHTTP", '"code":422,"reason":"SomethingNew","message":"Too large resource version: 9"' },
      { "EHTTP", '"code":504,"reason":"NotFound","message":"Too large resource version: 9"' },
    } do
      it(case[2]:sub(1, 90) .. " is " .. case[1], function()
        assert.equal(case[1], (classify(failure(case[2]))))
      end)
    end

    it("takes the code of the response when the Status has none", function()
      local name, message, http = classify(failure '"message":"gone"', 410)
      assert.equal("EEXPIRED", name)
      assert.equal("gone", message)
      assert.equal(410, http)
    end)

    it("takes a version for too large by its message only where the response is a timeout", function()
      local said = failure '"reason":"SomethingNew","message":"Too large resource version: 9"'
      assert.equal("ETOOLARGERV", (classify(said, 504)))
      assert.equal("EHTTP", (classify(said, 400)))
      assert.equal("EHTTP", (classify(said, 0)))
    end)

    it("says something also without a message", function()
      local _, message = classify(failure '"code":409,"reason":"Conflict"')
      assert.equal("the server answered 409 (Conflict)", message)
    end)
  end)

  describe("from a body", function()
    local function from_body(body, http)
      local err = unit.err()
      local code = C.mw_status_from_body(unit.slice(body), http, err)
      return ffi.string(C.mw_err_name(code)), ffi.string(err.message), err.http_status
    end

    it("uses the Status when it is one", function()
      local body = failure '"code":403,"reason":"Forbidden","message":"pods is forbidden"'
      assert.are.same({ "EHTTP", "pods is forbidden", 403 }, { from_body(body, 403) })
    end)

    it("shows the beginning of any other body in one line", function()
      local name, message, http = from_body("<html>\n  bad\tgateway\r\n</html>\n", 502)
      assert.are.same({ "EHTTP", "the server answered 502: <html> bad gateway </html>", 502 }, { name, message, http })
    end)

    it("goes by the code alone when there is nothing to show", function()
      assert.are.same({ "ETHROTTLED", "the server answered 429", 429 }, { from_body("", 429) })
      assert.are.same({ "EINTERNAL", "the server answered 500", 500 }, { from_body("\255\254", 500) })
      assert.equal("EEXPIRED", (from_body("gone", 410)))
    end)
  end)
end)
