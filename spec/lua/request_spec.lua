-- Requests that scripts make: kube.request and client:request, against a server that answers what the
-- spec says.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.script_rig"
local script_server = require "spec.support.script_server"

local function serve(script)
  local server = script_server.new(script)
  cleanup.later(function() server:close() end)
  return server
end

-- A script behind its load phase. failure(fn, ...): the error of a call that must fail, which is a table.
local prelude = [[
  kube.sleep(0)
  local function failure(fn, ...)
    local ok, err = pcall(fn, ...)
    assert(not ok, "it did not fail")
    return err
  end
]]

local function run(server, source) return rig.run(server, prelude .. source) end

local function status(code, reason, message, details)
  return { status = code, body = ('{"kind":"Status","apiVersion":"v1","status":"Failure","message":"%s","reason":"%s",'
    .. '"details":%s,"code":%d}'):format(message, reason, details or "{}", code) }
end

-- Turns the server until a condition holds.
local function pump(server, condition)
  local stop = os.time() + 15
  while not condition() do
    assert(os.time() < stop, "it did not come true")
    server.turn()
  end
end

describe("a request", function()
  cleanup.install()

  it("carries method, path, query, headers and body", function()
    local server = serve(function() return { body = "{}" } end)
    run(server, [[
      kube.new_client():request { method = "PUT", path = "/api/v1/x%20y", headers = { ["X-Trace"] = "7" },
        query = { b = { "one", "two" }, a = "p&q=r s/\195\164", n = 500, t = true,
          big = kube.int64("9007199254740993") },
        body = { list = kube.array {}, map = kube.object {}, none = kube.null, big = kube.int64("9007199254740993") } }
      kube.request { path = "/x?limit=1", query = { b = 2 }, accept = "text/plain" }
      kube.request { method = "POST", path = "/y", body = "a: 1\n", content_type = "application/yaml" }
      kube.request { method = "DELETE", path = "/z" }
    ]])
    local put, get, post, delete = unpack(server.requests)
    assert.are.equal("PUT", put.method)
    assert.are.equal("/api/v1/x%20y?a=p%26q%3Dr%20s%2F%C3%A4&b=one&b=two&big=9007199254740993&n=500&t=true", put.target)
    assert.are.same({ "7", "application/json", "application/json", "Bearer t" }, { put.headers["x-trace"],
      put.headers["content-type"], put.headers.accept, put.headers.authorization })
    for _, part in ipairs { '"list":[]', '"map":{}', '"none":null', '"big":9007199254740993' } do
      assert.is_truthy(put.body:find(part, 1, true), put.body)
    end
    assert.are.same({ "/x?limit=1&b=2", "text/plain", "" }, { get.target, get.headers.accept, get.body })
    assert.is_nil(get.headers["content-type"])
    assert.are.same({ "a: 1\n", "application/yaml" }, { post.body, post.headers["content-type"] })
    assert.are.same({ "DELETE", "/z", "" }, { delete.method, delete.target, delete.body })
  end)

  it("returns status, headers by lower-case name, the text, and the object when it is JSON", function()
    local answers = {
      ["/json"] = { status = 201, headers = { ["X-One"] = "a", ["WARNING"] = '299 - "old"' },
        body = '{"items":[],"n":9007199254740993}' },
      ["/broken"] = { body = '{"items":[' },
      ["/scalar"] = { body = '"ok"' },
      ["/chunks"] = { chunks = { '{"a"', 0.01, ":1}" } },
      ["/moved"] = { status = 302, headers = { Location = "/json" } },
    }
    run(serve(function(request) return answers[request.path] end), [[
      local r = kube.request { path = "/json" }
      same({ 201, "a", '299 - "old"', "application/json" },
        { r.status, r.headers["x-one"], r.headers.warning, r.headers["content-type"] })
      same('{"items":[],"n":9007199254740993}', r.body)
      assert(kube.json.encode(r.object):find('"items":[]', 1, true))
      same("9007199254740993LL", r.object.n)
      local broken = kube.request { path = "/broken" }
      same({ 200, '{"items":[' }, { broken.status, broken.body })
      assert(broken.object == nil)
      assert(kube.request({ path = "/scalar" }).object == nil)
      same(1, kube.request({ path = "/chunks" }).object.a)
      local moved = kube.request { path = "/moved" }
      same({ 302, "/json", "" }, { moved.status, moved.headers.location, moved.body })
    ]])
  end)

  it("that is refused raises the server's reason, message, status and details; its twin returns them", function()
    local long = ("pods is forbidden "):rep(10000)
    local answers = {
      ["/gone"] = status(404, "NotFound", 'pods \\"a\\" not found', '{"name":"a","kind":"pods"}'),
      ["/long"] = status(403, "Forbidden", long),
      ["/page"] = { status = 502, body = "<h1>Bad\r\n\tGateway</h1>" },
      ["/bare"] = { status = 500, body = '{"kind":"Status","apiVersion":"v1","message":null}' },
      ["/empty"] = { status = 400 },
    }
    run(serve(function(request) return answers[request.path] end), [[
      local client = kube.new_client()
      local err = failure(client.request, client, { path = "/gone" })
      same({ "not_found", "NotFound", 'pods "a" not found', 404, "pods", false },
        { err.code, err.reason, err.message, err.status, err.details.kind, err.retriable })
      assert(tostring(err):find('^[^\n]*script%.lua:%d+: pods "a" not found$'), tostring(err))
      local none, again = client:try_request { path = "/gone" }
      assert(none == nil)
      same({ "not_found", 'pods "a" not found', 404 }, { again.code, tostring(again), again.status })
      same(180000, #failure(kube.request, { path = "/long" }).message)
      local _, page = kube.try_request { path = "/page" }
      same({ "internal", "the server answered 502: <h1>Bad Gateway</h1>", 502, true },
        { page.code, page.message, page.status, page.retriable })
      assert(page.reason == nil)
      local _, bare = kube.try_request { path = "/bare" }
      same({ "internal", "the server answered 500", 500 }, { bare.code, bare.message, bare.status })
      local _, empty = kube.try_request { path = "/empty" }
      same({ "bad_request", "the server answered 400" }, { empty.code, empty.message })
    ]])
  end)

  it("that a server refuses because it does not know who asks names the user's kubeconfig", function()
    local server = serve(function(request)
      if request.path == "/proxy" then return { status = 401, body = "log in first" } end
      if request.path == "/odd" then return { status = 401, body = '{"error":"invalid_token"}' } end
      if request.path == "/long" then return status(401, "Unauthorized", ("ä"):rep(5000)) end
      return status(401, "Unauthorized", "Unauthorized")
    end)
    run(server, [[
      local _, err = kube.try_request { path = "/" }
      same({ "unauthorized", "Unauthorized", 401 }, { err.code, err.reason, err.status })
      assert(err.message:find("^127%.0%.0%.1:%d+: the server does not know who asks %(Unauthorized%): "
        .. "check the user of kubeconfig .+"), err.message)
      local _, proxied = kube.try_request { path = "/proxy" }
      local function says(text, failed)
        same({ "unauthorized", 401 }, { failed.code, failed.status })
        local said, rest = failed.message:match("^127%.0%.0%.1:%d+: the server does not know who asks (%b()): (.+)$")
        same("(" .. text .. ")", said)
        assert(rest:find('^check the user of kubeconfig .+, context ".+"$'), failed.message)
      end
      says("the server answered 401: log in first", proxied)
      says('the server answered 401: {"error":"invalid_token"}', select(2, kube.try_request { path = "/odd" }))
      says(("ä"):rep(100) .. "...", select(2, kube.try_request { path = "/long" }))
      local _, other = kube.http.try_get(kube.new_client():server() .. "/")
      same("Unauthorized", other.message)
      same(("ä"):rep(5000), select(2, kube.http.try_get(kube.new_client():server() .. "/long")).message)
    ]])
  end)

  it("that the transport fails raises a code and one sentence", function()
    local refusing = serve(function() return {} end)
    refusing:refuse()
    local config = rig.kubeconfig(refusing:url())
    local server = serve(function(request)
      if request.path == "/lost" then return { lost = true } end
      if request.path == "/silent" then return { silent = true } end
      if request.path == "/heads" then return { headers = { ["X-Much"] = ("x"):rep(70 * 1024) }, body = "{}" } end
      return { chunks = { '{"items":[' }, cut = true }
    end)
    run(server, ([[
      local function fails(code, text, client, opts)
        local err = failure(client.request, client, opts)
        same(code, err.code)
        assert(err.status == nil or code == "limit" or code == "eof", "a status")
        assert(err.message:find(text, 1, true) and not err.message:find("\n"), err.message)
        local none, twin = client:try_request(opts)
        assert(none == nil)
        same({ code, err.message }, { twin.code, twin.message })
      end
      local client = kube.new_client()
      fails("refused", "connection refused: is the API server running", kube.new_client { kubeconfig = %q },
        { path = "/" })
      fails("eof", "the connection ended early", client, { method = "POST", path = "/lost" })
      fails("eof", "the connection ended early", client, { path = "/lost", timeout = 0.5 })
      fails("eof", "the connection ended early", client, { path = "/cut" })
      fails("timeout", "GET /silent: not finished in time", client, { path = "/silent", timeout = 0.1 })
      fails("limit", "more than 64 KiB of headers", client, { path = "/heads" })
    ]]):format(config))
    local lost = 0
    for _, request in ipairs(server.requests) do lost = lost + (request.path == "/lost" and 1 or 0) end
    assert.are.equal(4, lost) -- once each: neither a POST nor what has no time left is sent again
  end)

  it("is sent again when the server asks for it, but not beyond its time", function()
    local count = 0
    local server = serve(function(request)
      local answer = status(429, "TooManyRequests", "slow down", '{"retryAfterSeconds":1}')
      if request.path == "/later" then
        answer.headers = { ["Retry-After"] = "60" }
        return answer
      end
      count = count + 1
      answer.headers = { ["Retry-After"] = "0" }
      return count == 1 and answer or { body = "{}" }
    end)
    run(server, [[
      same(200, kube.request({ method = "POST", path = "/soon" }).status)
      local err = failure(kube.request, { path = "/later" })
      same({ "too_many_requests", "TooManyRequests", "slow down", 429, 1 },
        { err.code, err.reason, err.message, err.status, err.details.retryAfterSeconds })
    ]])
    assert.are.equal(3, #server.requests)
  end)

  it("brings a large answer whole, and refuses one beyond the limit", function()
    local server = serve(function(request)
      return { body = ("0123456789abcdef"):rep(tonumber(request.query.mib) * 65536), headers = { ["X-Kind"] = "text" } }
    end)
    local proc = rig.start(server, prelude .. [[
      local r = kube.request { path = "/", query = { mib = 8 } }
      same({ 8 * 1048576, "0123456789abcdef" }, { #r.body, r.body:sub(-16) })
      local err = failure(kube.request, { path = "/", query = { mib = 65 }, timeout = 60 })
      same({ "limit", 200 }, { err.code, err.status })
      assert(err.message:find("the answer has more than 65536 KiB of body", 1, true), err.message)
    ]])
    proc:ends_within(60) -- the sanitizers take their time
    rig.finish(proc)
  end)

  it("waits beside fifty others and an informer, and each gets its own answer", function()
    local pods = rig.pods { a = {} }
    local server = serve(function() return { chunks = {}, open = true } end)
    local proc = rig.start(pods, ([[
      local other = kube.new_client { kubeconfig = %q }
      local seen = 0
      kube.informer("v1/pods"):add_event_handler { on_add = function(pod)
        seen = seen + 1
        same(pod.metadata.name, other:request({ path = "/pod/" .. pod.metadata.name }).object.path:sub(6))
        print("handled", pod.metadata.name)
      end }
      kube.sleep(0)
      local done = 0
      for i = 1, 50 do
        kube.background("r" .. i, function()
          same("/" .. i, other:request({ path = "/" .. i }).object.path)
          done = done + 1
        end)
      end
      eventually(function() return seen == 1 end)
      print("all sent")
      eventually(function() return done == 50 end)
      print("done")
      kube.sleep(60)
    ]]):format(rig.kubeconfig(server:url())))
    proc:wait_line("^all sent$")
    pump(server, function() return #server.streams == 51 end)
    for _, stream in ipairs(server.streams) do
      stream:send(('{"path":"%s"}'):format(stream.request.path))
      stream:finish()
    end
    proc:wait_line("^handled\ta$")
    proc:wait_line("^done$")
    rig.stop(proc)
  end)

  it("waits for its turn behind sixty-four others, in order, and not beyond its time", function()
    local server = serve(function() return { chunks = {}, open = true } end)
    local proc = rig.start(server, prelude .. [[
      local done = 0
      for i = 1, 70 do
        kube.background("r", function()
          kube.request { path = "/" .. i }
          done = done + 1
        end)
      end
      local _, err = kube.try_request { path = "/late", timeout = 0.1 }
      same("timeout", err.code)
      assert(err.message:find("GET /late: its turn did not come in time, behind 64 others$"), err.message)
      local gone = kube.background("gone", kube.request, { path = "/gone" })
      gone:cancel()
      print("full")
      eventually(function() return done == 70 end)
    ]])
    proc:wait_line("^full$")
    pump(server, function() return #server.streams >= 64 end)
    assert.are.equal(64, #server.streams)
    for i = 1, 3 do server.streams[i]:finish() end
    pump(server, function() return #server.streams >= 67 end)
    local later = {}
    for i = 65, 67 do later[server.streams[i].request.path] = true end
    assert.are.same({ ["/65"] = true, ["/66"] = true, ["/67"] = true }, later)
    pump(server, function()
      for _, stream in ipairs(server.streams) do stream:finish() end
      return #server.streams == 70
    end)
    for _, stream in ipairs(server.streams) do stream:finish() end
    rig.finish(proc)
    assert.are.equal(70, #server.requests)
  end)

  it("awaits inside coroutines", function()
    run(serve(function(request) return { body = ('{"path":"%s"}'):format(request.path) } end), [[
      local function pages() for i = 1, 3 do coroutine.yield(kube.request({ path = "/" .. i }).object.path) end end
      local got = {}
      for path in coroutine.wrap(pages) do got[#got + 1] = path end
      same({ "/1", "/2", "/3" }, got)
    ]])
  end)
end)

describe("the end of a task", function()
  cleanup.install()

  it("ends its transfer, and both forms raise it", function()
    local server = serve(function() return { chunks = { "{" }, open = true } end)
    local proc = rig.start(server, prelude .. [[
      local codes, tasks = {}, {}
      for _, name in ipairs { "request", "try_request" } do
        tasks[#tasks + 1] = kube.background(name, function()
          local ok, err = pcall(kube[name], { path = "/" .. name })
          codes[#codes + 1] = tostring(ok) .. " " .. err.code
          pcall(kube[name], { path = "/again" })
        end)
      end
      kube.request { path = "/until-both-are-there" }
      for _, t in ipairs(tasks) do t:cancel() end
      eventually(function() return tasks[1]:is_done() and tasks[2]:is_done() end)
      same({ "false cancelled", "false cancelled" }, codes)
      print("cancelled")
      kube.sleep(60)
    ]])
    local streams = {}
    pump(server, function()
      for _, stream in ipairs(server.streams) do streams[stream.request.path] = stream end
      return #server.streams == 3
    end)
    streams["/until-both-are-there"]:finish()
    proc:wait_line("^cancelled$")
    pump(server, function() return streams["/request"].gone and streams["/try_request"].gone end)
    assert.are.equal(3, #server.requests)
    rig.stop(proc)
  end)

  it("comes with that of the script, in order, while requests are under way", function()
    local server = serve(function() return { silent = true } end)
    local proc = rig.start(server, prelude .. [[
      for i = 1, 5 do kube.background("r", kube.request, { path = "/" .. i }) end
      kube.request { path = "/main" }
    ]])
    pump(server, function() return #server.requests == 6 end)
    rig.stop(proc)
  end)
end)

describe("a request that is written wrongly", function()
  cleanup.install()

  it("is refused where it stands, and not sent", function()
    local server = serve(function() return { body = "{}" } end)
    run(server, [[
      local client = kube.new_client()
      local function refused(text, opts)
        for _, name in ipairs { "request", "try_request" } do
          local err = failure(client[name], client, opts)
          assert(type(err) == "string" and err:find("script%.lua:%d+: client:" .. name), tostring(err))
          assert(err:find(text, 1, true), ("wanted %s\ngot %s"):format(text, err))
        end
      end
      refused("takes a table of options, not a string", "/api")
      refused('needs path = "/api/v1/..."', nil)
      refused('needs path = "/api/v1/..."', {})
      refused("has no option 'pth' (did you mean 'path'?)", { pth = "/" })
      refused("option 'path' must be a string, not a number", { path = 1 })
      refused("path must begin with '/', not be 'api'", { path = "api" })
      refused("path must be percent-encoded", { path = "/a b" })
      refused("path must be percent-encoded", { path = "/a#b" })
      refused("'get' is not a method (did you mean 'GET'?)", { method = "get", path = "/" })
      refused("option 'timeout' must be a number of seconds above 0, not 0", { path = "/", timeout = 0 })
      refused("option 'timeout' must be a number of seconds above 0", { path = "/", timeout = 0 / 0 })
      refused("query takes { name = value }, not a list", { path = "/", query = { "a" } })
      refused("query 'a' must be a string, a number", { path = "/", query = { a = { {} } } })
      refused("headers: not Accept: the option accept sets it", { path = "/", headers = { Accept = "x" } })
      refused("headers: not authorization: the client's kubeconfig", { path = "/", headers = { authorization = "x" } })
      refused("headers: 'a b' cannot be the name of a header", { path = "/", headers = { ["a b"] = "x" } })
      refused("headers: the value of A must be a string", { path = "/", headers = { A = "x\r\nB: y" } })
      refused("a PATCH needs content_type", { method = "PATCH", path = "/", body = {} })
      refused("body: ", { method = "POST", path = "/", body = { f = print } })
      local err = failure(client.request, { path = "/" })
      assert(err:find("call it with a colon: client:request(...), not client.request(...)", 1, true), err)
      err = failure(kube.request, kube, { path = "/" })
      assert(err:find("call it with a dot: kube.request(...), not kube:request(...)", 1, true), err)
      err = failure(function() client:requst {} end)
      assert(err:find("client has no 'requst' (did you mean 'request'?)", 1, true), err)
      err = failure(table.sort, { 1, 2, 3 }, function() kube.request { path = "/" } end)
      assert(err:find("kube.request awaits and cannot be used inside a table.sort comparator", 1, true), err)
    ]])
    assert.are.equal(0, #server.requests)
  end)

  it("in the load phase says where to write it instead, and there it works", function()
    local server = serve(function() return { body = "{}" } end)
    for _, name in ipairs { "request", "try_request" } do
      local proc = rig.start(server, ('kube.%s { path = "/" }'):format(name))
      assert.are.equal(1, proc:wait_exit(10))
      assert.is_truthy(proc.stderr:find("script%.lua:%d+: kube%." .. name .. " cannot be used while the script loads"),
        proc.stderr)
      assert.is_truthy(proc.stderr:find("kube.background(name, function)", 1, true))
    end
    assert.are.equal(0, #server.requests)
    rig.run(server, [[
      kube.background("first", function() kube.request { path = "/background" } end)
      assert(not pcall(kube.request, { path = "/" }))
      kube.sleep(0)
      kube.request { path = "/main" }
    ]])
    assert.are.same({ "/background", "/main" }, { server.requests[1].path, server.requests[2].path })
  end)
end)
