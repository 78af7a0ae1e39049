-- Hostile clients of the real sandbox, over sockets: whatever they send, they get a response or are
-- hung up on, others are served meanwhile, memory stays bounded, and the end is an orderly one with
-- nothing alive.
--
--   MOONWATCH_SEED=n      the seed of the random requests (1)
--   MOONWATCH_OBJECTS=n   objects of 10 KB that a watch begins with (3000)
jit.off(true, true)
local cleanup = require "spec.support.cleanup"
local hostile = require "spec.support.hostile"
local http_client = require "spec.support.http_client"
local sandbox = require "spec.support.sandbox"
local uv = require "luv"

local SEED = tonumber(os.getenv("MOONWATCH_SEED")) or 1
local OBJECTS = tonumber(os.getenv("MOONWATCH_OBJECTS")) or 3000
local RANDOM, WIDTH = 1500, 8
-- MB; ThreadSanitizer has some bytes of its own for each.
local LIMIT = os.getenv("TSAN_OPTIONS") and 1000 or 250
local MAPS = "/api/v1/namespaces/default/configmaps"

local wait = http_client.wait

local function rss_of(pid)
  local file = assert(io.open(("/proc/%d/status"):format(pid)))
  local text = file:read("*a")
  file:close()
  return tonumber(text:match("VmRSS:%s+(%d+)")) / 1024
end

-- A connection without manners: what was sent goes out as it is, what comes is kept.
local function raw(box, text)
  local host, port = box.url:match("//([^:]+):(%d+)")
  local self = { input = "", size = 0 }
  local socket = uv.new_tcp()
  socket:connect(host, tonumber(port), function(err)
    if err then self.over = err return end
    self.connected = true
    if text then socket:write(text) end
    if not self.lazy then self.read() end
  end)
  function self.read()
    socket:read_start(function(err, data)
      if not data then self.over = err or "end" return end
      self.size = self.size + #data
      if self.on_data then self.on_data(data) else self.input = self.input .. data end
    end)
  end
  function self.write(more) if not self.over then socket:write(more) end end
  function self.close() if not socket:is_closing() then socket:close() end end
  cleanup.later(self.close)
  return self
end

local function head(box, method, path, extra)
  return ("%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s\r\n")
    :format(method, path, box.token, extra or "")
end

-- A stream counts as soon as it begins.
local function all_answered(exchanges)
  for _, e in ipairs(exchanges) do
    if not e.done and not (e.status and e.chunked) then return false end
  end
  return true
end

describe("a hostile client of the sandbox", function()
  cleanup.install()
  local box, client

  -- AddressSanitizer keeps what was freed, 256 MB of it unless told otherwise, and memory is measured here.
  local sanitizer = { ASAN_OPTIONS = (os.getenv("ASAN_OPTIONS") or "") .. ":quarantine_size_mb=16" }

  before_each(function()
    box = sandbox.start { args = { "--plain-http" }, env = sanitizer }
    client = http_client.new { url = box.url, headers = {
      { "Authorization", "Bearer " .. box.token }, { "Content-Type", "application/json" },
    } }
    -- Last: it must have served to the end, and leave in order.
    cleanup.later(function()
      local answer = client:request { path = MAPS .. "?limit=1" }
      client:close()
      box:stop()
      assert.equal(200, answer.status)
      assert.is_nil(box.process.stderr:find("failed", 1, true), box.process.stderr)
    end)
  end)

  local function put(name, size)
    local body = ('{"metadata":{"name":"%s"},"data":{"k":"%s"}}'):format(name, ("x"):rep(size))
    return client:send { method = "POST", path = MAPS, body = body }
  end

  -- Creates objects, several at a time.
  local function fill(count, size)
    local under_way = {}
    for i = 1, count do
      under_way[#under_way + 1] = put("o" .. i, size)
      if #under_way == WIDTH or i == count then
        for _, exchange in ipairs(under_way) do assert.equal(201, exchange:finish().status) end
        under_way = {}
      end
    end
  end

  it(("gets an answer to every random request (seed %d)"):format(SEED), function()
    local source = hostile.new(SEED, 10000, 100000)
    local under_way, before = {}, rss_of(box.process._handle:get_pid())
    for i = 1, RANDOM do
      local request = source:next()
      local headers = {}
      for name, value in pairs(request.headers) do headers[#headers + 1] = { name, value } end
      local exchange = client:send { method = request.method, path = request.target, headers = headers,
        body = request.body }
      under_way[#under_way + 1] = exchange
      if #under_way == WIDTH or i == RANDOM then
        assert.is_true(wait(function() return all_answered(under_way) end, 30), "no answer")
        for _, e in ipairs(under_way) do
          assert.is_nil((e.body or ""):find("the sandbox failed", 1, true), e.body)
          if e.status then assert.is_true(e.status >= 200 and e.status < 600) end
          if not e.done then e:close() end
        end
        under_way = {}
      end
    end
    assert.is_true(rss_of(box.process._handle:get_pid()) < before + 150)
  end)

  it("keeps numbers that no double holds", function()
    local answer = client:request { method = "POST", path = "/apis/coordination.k8s.io/v1/namespaces/default/leases",
      body = '{"metadata":{"name":"a"},"spec":{"leaseDurationSeconds":9223372036854775807}}' }
    assert.truthy(answer.body:find("cannot unmarshal number 9223372036854775807 into", 1, true), answer.body)
  end)

  it("is told that its body is too large, too deep or not there, and hangs nobody else", function()
    local large = client:request { method = "POST", path = MAPS, body = ("x"):rep(3 * 1024 * 1024 + 1) }
    assert.equal(413, large.status)
    assert.truthy(large.body:find('"reason":"RequestEntityTooLarge"', 1, true))
    for _, body in ipairs { ("["):rep(10000), ('{"a":'):rep(10000) .. "1" .. ("}"):rep(10000) } do
      assert.equal(400, client:request({ method = "POST", path = MAPS, body = body }).status)
    end
    local torn = raw(box, head(box, "POST", MAPS, "Content-Length: 100\r\n") .. "{")
    local slow = raw(box, "GET / HTTP/1.1\r\nX: ")
    wait(function() return torn.connected and slow.connected end, 10)
    assert.equal(200, client:request({ path = "/version" }).status)
    torn.close()
    slow.close()
  end)

  it("may send many requests at once and gets the answers in order", function()
    local requests = {}
    for i = 1, 200 do requests[i] = head(box, "GET", "/api/v1/namespaces/" .. (i % 2 == 0 and "default" or "none")) end
    local pipe = raw(box, table.concat(requests))
    assert.is_true(wait(function() return select(2, pipe.input:gsub("HTTP/1.1 ", "")) == 200 end, 20))
    local codes = {}
    for code in pipe.input:gmatch("HTTP/1.1 (%d+)") do codes[#codes + 1] = code end
    for i = 1, 200 do assert.equal(i % 2 == 0 and "200" or "404", codes[i]) end
  end)

  it("may open more connections than there are, while one that is open goes on", function()
    local many = {}
    -- In flights that the kernel holds until the server accepts them: of a connection that overflows its queue, and
    -- says nothing, it may tell the client only (SYN cookies), and the server never hears of that one.
    for flight = 1, 1100, 50 do
      for i = flight, flight + 49 do many[i] = raw(box) end
      assert.is_true(wait(function()
        for i = flight, flight + 49 do
          if not (many[i].connected or many[i].over) then return false end
        end
        return true
      end, 30))
      assert.equal(200, client:request({ path = "/version" }).status)
    end
    assert.is_true(wait(function()
      local refused = 0
      for _, one in ipairs(many) do
        if one.over or one.input:find("^HTTP/1.1 503") then refused = refused + 1 end
      end
      return refused >= 1100 - 1024
    end, 30))
    assert.equal(200, client:request({ path = "/version" }).status)
    for _, one in ipairs(many) do one.close() end
    uv.run("nowait")
  end)

  it("that is a healthy watch gets all of a large state", function()
    fill(OBJECTS, 10000)
    local events, last = 0, ""
    local watch = raw(box)
    watch.on_data = function(data)
      events = events + select(2, (last .. data):gsub("}\n", ""))
      last = data:sub(-1)
    end
    wait(function() return watch.connected end, 10)
    watch.write(head(box, "GET", MAPS .. "?watch=1"))
    wait(function() return events > OBJECTS or watch.over end, 60)
    assert.equal(OBJECTS + 1, events) -- kube-root-ca.crt is there as well
    assert.is_nil(watch.over)
  end)

  it("that watches and does not read is cut, the others are not, and memory stays bounded", function()
    local deaf, keen = raw(box), raw(box)
    deaf.lazy = true
    local seen = 0
    keen.on_data = function(data) seen = seen + select(2, data:gsub('"resourceVersion"', "")) end
    wait(function() return deaf.connected and keen.connected end, 10)
    for _, watch in ipairs { deaf, keen } do watch.write(head(box, "GET", MAPS .. "?watch=1&resourceVersion=1")) end
    assert.equal(201, put("o", 10):finish().status)
    local body = ('{"data":{"k":"%s"}}'):format(("x"):rep(500000))
    local patch = { method = "PATCH", path = MAPS .. "/o", headers = { { "Content-Type",
      "application/merge-patch+json" } } }
    local function watching() return select(2, box:ask("GET", "/sandbox/v1/watches"):gsub('"resource"', "")) end
    local writes = 0
    repeat
      writes = writes + 1
      patch.body = body:gsub("xx", ("%02d"):format(writes % 100), 1)
      assert.equal(200, client:request(patch).status)
    until writes % 20 == 0 and watching() == 1 or writes == 400
    assert.equal(1, watching())
    assert.is_true(rss_of(box.process._handle:get_pid()) < LIMIT, rss_of(box.process._handle:get_pid()))
    assert.is_true(wait(function() return seen >= writes end, 20))
    deaf.read()
    assert.is_true(wait(function() return deaf.over ~= nil end, 10))
    assert.is_nil(keen.over)
  end)
end)
