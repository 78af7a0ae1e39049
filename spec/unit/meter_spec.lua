-- What is counted of requests: by the names of client-go.
jit.off(true, true)
local exposition = require "spec.support.exposition"
local transport = require "spec.support.transport"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local OK = { ["Content-Type"] = "application/json" }

local function families()
  local out = ffi.new("struct mw_buf")
  C.mw_buf_init(out, 1e6)
  assert(C.mw_metric_write(out) == 0)
  local text = out.n > 0 and ffi.string(out.p, out.n) or ""
  C.mw_buf_deinit(out)
  return exposition.parse(text)
end

describe("the meter", function()
  unit.no_leaks()

  describe("of requests", function()
    local client, peer

    before_each(function() client = transport.client {} end)
    after_each(function()
      if client then client:close() end
      if peer then peer:close() end
      client, peer = nil, nil
    end)

    local function total(code, method)
      return exposition.value(families(), "rest_client_requests_total",
        { code = code, method = method, host = "127.0.0.1:" .. peer.port })
    end

    local function seconds(method, part)
      return exposition.value(families(), "rest_client_request_duration_seconds_" .. part,
        { verb = method, host = "127.0.0.1:" .. peer.port })
    end

    it("counts every attempt by code, method and host, and the time it took by verb and host", function()
      local count = 0
      peer = transport.peer(function(request, connection)
        count = count + 1
        if request.target == "/lost" then return connection:reset() end
        if request.target == "/busy" and count < 5 then
          return connection:answer(429, { ["Retry-After"] = "0" }, "")
        end
        connection:answer(request.method == "GET" and 200 or 201, OK, "fine")
      end)
      local e = client:endpoint(peer:cluster(), '"token": "t0ken"')
      client:fetch(e)
      client:fetch(e)
      client:fetch(e, { method = "POST", body = "{}" })
      client:fetch(e, { path = "/busy" })
      client:fetch(e, { method = "POST", path = "/lost", body = "{}" })
      assert.are.equal(3, total("200", "GET"))
      assert.are.equal(1, total("429", "GET"))
      assert.are.equal(1, total("201", "POST"))
      assert.are.equal(1, total("<error>", "POST"))
      assert.are.equal(4, seconds("GET", "count"))
      assert.are.equal(2, seconds("POST", "count"))
      assert.is_true(seconds("GET", "sum") < 5)
    end)

    it("counts a watch when it is answered, and forgets all when the pool goes", function()
      peer = transport.peer(function(_, connection)
        connection:send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
      end)
      local e = client:endpoint(peer:cluster(), '"token": "t0ken"')
      local r = client:start(e, { is_watch = true, path = "/watch" })
      assert.is_true(client:pump(function() return r.status == 200 end))
      assert.are.equal(1, total("200", "GET"))
      assert.are.equal(1, seconds("GET", "count"))
      transport.cancel(r)
      assert.are.equal(1, total("200", "GET"))
      client:close()
      client = nil
      assert.is_nil(families().rest_client_requests_total)
    end)
  end)
end)
