-- kube.http: requests to servers that are no API servers.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.client_rig"
local sandbox = require "spec.support.sandbox"

-- Runs a script that knows two other servers by `url` and `second`; the API server is never asked.
local function run(source, script)
  local api, other, second = rig.serve(rig.echo), rig.serve(script), rig.serve(script)
  rig.run(api, ("local url, second = %q, %q\n"):format(other:url(), second:url()) .. source)
  assert.are.equal(0, #api.requests)
  return other, second
end

describe("kube.http", function()
  cleanup.install()

  it("sends method, path, headers and body, and never the cluster's credentials", function()
    local server = run([[
      local r = kube.http.get(url .. "/a?b=c%20d#fragment", { headers = { ["X-One"] = "1" } })
      same({ 200, "yes", true, url .. "/a?b=c%20d" }, { r.status, r.headers["x-answer"], r.object.ok, r.url })
      kube.http.get(url)
      kube.http.post(url .. "?q", { body = { a = 1 }, accept = "application/json" })
      kube.http.put(url .. "/p", { body = "text", content_type = "text/plain" })
      kube.http.delete(url .. "/d", { headers = { Authorization = "Basic eA==" } })
      same("{\"ok\":true}", kube.http.request("PATCH", url .. "/x", { body = "[]", content_type = "a/b" }).body)
    ]], function() return { body = '{"ok":true}', headers = { ["X-Answer"] = "yes" } } end)
    assert.are.same({ "GET /a?b=c%20d", "GET /", 'POST /?q {"a":1}', "PUT /p text", "DELETE /d", "PATCH /x []" },
      rig.lines(server, true))
    local get, _, post, put, delete = unpack(server.requests)
    assert.are.same({ "1", "*/*" }, { get.headers["x-one"], get.headers.accept })
    assert.is_nil(get.headers.authorization)
    assert.are.same({ "application/json", "application/json" }, { post.headers["content-type"], post.headers.accept })
    assert.are.equal("text/plain", put.headers["content-type"])
    assert.are.equal("Basic eA==", delete.headers.authorization)
  end)

  it("raises what is refused, with the answer; its twin returns it; nothing is tried again", function()
    local count = 0
    run([[
      local err = failure(kube.http.get, url .. "/refused")
      same({ "not_found", 404, "the server answered 404: no such thing", "no such thing" },
        { err.code, err.status, err.message, err.response.body })
      assert(tostring(err):find("script%.lua:%d+: the server answered 404"), tostring(err))
      local none, twin = kube.http.try_post(url .. "/busy")
      same({ "nil", "too_many_requests", "0" }, { tostring(none), twin.code, twin.response.headers["retry-after"] })
      same("eof", select(2, kube.http.try_post(url .. "/lost", { body = "x" })).code)
      same("timeout", select(2, kube.http.try_delete(url .. "/silent", { timeout = 0.1 })).code)
      same("timeout", select(2, kube.http.try_put(url .. "/silent", { timeout = 0.1 })).code)
      same("not_found", select(2, kube.http.try_request("GET", url .. "/refused")).code)
    ]], function(request)
      count = count + 1
      if request.path == "/refused" then return { status = 404, body = "no such thing" } end
      if request.path == "/busy" then return { status = 429, headers = { ["Retry-After"] = "0" } } end
      if request.path == "/lost" then return { lost = true } end
      return { silent = true }
    end)
    assert.are.equal(6, count)
  end)

  it("ends with its task's deadline", function()
    run([[
      local task = require "kube._task"
      local ok, err = task.run({ timeout = 0.2 }, function() kube.http.get(url, { timeout = 60 }) end)
      same({ "false", "timeout" }, { tostring(ok), err.code })
    ]], function() return { silent = true } end)
  end)

  it("takes answers of 4 MiB, or as much as it is told", function()
    local proc = run([[
      same(4194304, #kube.http.get(url .. "/4194304").body)
      local err = failure(kube.http.get, url .. "/4194305")
      same("limit", err.code)
      assert(err.message:find("the answer has more than 4096 KiB of body", 1, true), err.message)
      err = failure(kube.http.get, url .. "/11", { limit = 10 })
      assert(err.message:find("the answer has more than 10 bytes of body", 1, true), err.message)
      same(4194305, #kube.http.get(url .. "/4194305", { limit = 5000000 }).body)
    ]], function(request) return { body = ("x"):rep(tonumber(request.path:sub(2))) } end)
    assert.are.equal(4, #proc.requests)
  end)

  it("takes no answer in an encoding that it did not ask for", function()
    run([[
      for _, encoding in ipairs { "br", "zstd", "gzip", "unheard-of" } do
        local _, err = kube.http.try_get(url .. "/" .. encoding)
        same("eof", err.code)
        assert(err.message:find("encoding", 1, true) or err.message:find("Encoding", 1, true), err.message)
      end
    ]], function(request)
      return { headers = { ["Transfer-Encoding"] = request.path:sub(2) }, body = ("not that"):rep(100) }
    end)
  end)

  it("follows no redirect unless told to, and then as many as told", function()
    local answers = {
      ["/one"] = { status = 302, headers = { Location = "/two?x=1" } },
      ["/two"] = { status = 307, headers = { Location = "three" } },
      ["/three"] = { body = "there" },
      ["/loop"] = { status = 301, headers = { Location = "/loop" } },
      ["/file"] = { status = 302, headers = { Location = "file:///etc/passwd" } },
      ["/nowhere"] = { status = 304 },
      ["/deep/one"] = { status = 302, headers = { Location = "two" } },
      ["/deep/two"] = { status = 302, headers = { Location = "?again" } },
    }
    local server = run([[
      local r = kube.http.get(url .. "/one")
      same({ 302, "/two?x=1" }, { r.status, r.headers.location })
      r = kube.http.get(url .. "/one", { redirects = 5 })
      same({ 200, "there", url .. "/three" }, { r.status, r.body, r.url })
      same(307, kube.http.get(url .. "/one", { redirects = 1 }).status)
      same(301, kube.http.get(url .. "/loop", { redirects = 3 }).status)
      same(304, kube.http.get(url .. "/nowhere", { redirects = 3 }).status)
      same(url .. "/deep/two", kube.http.get(url .. "/deep/one?q=/x/y", { redirects = 1 }).url)
      same(url .. "/deep/two?again", kube.http.get(url .. "/deep/two", { redirects = 1 }).url)
      local err = failure(kube.http.get, url .. "/file", { redirects = 1 })
      same({ "redirect", 302 }, { err.code, err.status })
      assert(err.message:find("/file leads to 'file:///etc/passwd', which is not followed", 1, true), err.message)
      kube.http.post(url .. "/one", { redirects = 1, body = "text" })
      kube.http.put(url .. "/two", { redirects = 1, body = "text" })
    ]], function(request) return answers[request.path] end)
    local last = { unpack(rig.lines(server, true), #server.requests - 3) }
    assert.are.same({ "POST /one text", "GET /two?x=1", "PUT /two text", "PUT /three text" }, last)
  end)

  it("gives secrets to nobody that a redirect leads to", function()
    local server, second = run([[
      kube.http.get(url .. "/?" .. second, { redirects = 2, headers = { Authorization = "Bearer x", Cookie = "c",
        ["X-Mine"] = "1" } })
    ]], function(request)
      local there = request.target:match("%?(.*)")
      -- without its scheme, which stays
      return there and { status = 302, headers = { Location = there:gsub("^http:", "") .. "/there" } } or {}
    end)
    assert.are.equal("Bearer x", server.requests[1].headers.authorization)
    assert.are.equal(1, #second.requests)
    local headers = second.requests[1].headers
    assert.are.same({ nil, nil, "1" }, { headers.authorization, headers.cookie, headers["x-mine"] })
  end)

  it("verifies certificates against the system's, against those it is given, or not at all", function()
    local box = sandbox.start()
    cleanup.later(function() box:stop() end)
    local file = assert(io.open(box.kubeconfig))
    local config = file:read("*a")
    file:close()
    local server = config:match("server: (https://%S+)")
    local encoded = config:match("certificate%-authority%-data: (%S+)")
    rig.run(rig.serve(rig.echo), ([[
      local url, ca = %q, kube.base64.decode(%q)
      same("tls", select(2, kube.http.try_get(url .. "/version")).code)
      same(403, select(2, kube.http.try_get(url .. "/api", { insecure = true })).status) -- an anonymous user
      same(403, select(2, kube.http.try_get(url .. "/api", { ca = ca })).status)
      local err = failure(kube.http.get, url, { ca = "no certificate" })
      assert(err.code == "tls" or err.code == "connect", err.code .. err.message)
    ]]):format(server, encoded))
  end)

  it("is refused where it stands when it is written wrongly", function()
    run([[
      local function refused(text, name, ...)
        for _, form in ipairs { name, "try_" .. name } do
          local err = failure(kube.http[form], ...)
          assert(type(err) == "string" and err:find("script%.lua:%d+: kube%.http%." .. form), tostring(err))
          assert(err:find(text, 1, true), ("wanted %s\ngot %s"):format(text, err))
        end
      end
      refused("takes a URL, not a nil", "get")
      refused("'/api' is no URL for it: it must begin with http:// or https://", "get", "/api")
      refused("it must begin with http:// or https://", "get", "ftp://a")
      refused("it has no host", "get", "http:///x")
      refused("it must not hold a password", "get", "http://u:p@host/")
      refused("it must be percent-encoded", "get", "http://host/a b")
      refused("its host is not a name or an address", "get", "http://ho_st:x/")
      refused("nothing but ASCII", "get", "http://münchen.example/")
      refused("its host is not a name or an address", "get", "http://m%C3%BCnchen.example/")
      refused("has no option 'timout' (did you mean 'timeout'?)", "get", url, { timout = 1 })
      refused("option 'timeout' must be a number of seconds above 0", "get", url, { timeout = -1 })
      refused("option 'limit' must be a whole number from 1 to 67108864", "get", url, { limit = 2 ^ 40 })
      refused("option 'redirects' must be a whole number from 0 to 20", "get", url, { redirects = 0.5 })
      refused("headers: not Host: the URL sets it", "get", url, { headers = { Host = "x" } })
      refused("headers: the value of A must be a string", "get", url, { headers = { A = "x\r\nB: y" } })
      refused('takes a method such as "PATCH" first, not http:', "request", url)
      refused('takes a method such as "PATCH" first, not a table', "request", {}, url)
      refused("body: ", "post", url, { body = { print } })
    ]], function() return {} end)
  end)

  it("cannot be used while the script loads", function()
    local script_rig = require "spec.support.script_rig"
    local proc = script_rig.start(rig.serve(rig.echo), 'kube.http.get("http://127.0.0.1:1/")')
    assert.are.equal(1, proc:wait_exit(10))
    assert.is_truthy(proc.stderr:find("kube%.http%.get cannot be used while the script loads"), proc.stderr)
  end)
end)
