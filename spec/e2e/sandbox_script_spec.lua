-- Scripts that play with their sandbox: `moonwatch run --sandbox`, objects by kube.request, an informer
-- that sees them, and everything that require "kube.sandbox" can do to the server meanwhile.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.script_rig"
local run = require "spec.support.run"
local script_server = require "spec.support.script_server"

-- watched(): an informer on ConfigMaps of the namespace "play", synced; what it saw is in `seen`, and
-- what went wrong in `troubles`. create, delete: of one of them.
local prelude = [[
  local kube = require "kube"
  local sandbox = require "kube.sandbox"
  local PLAY = "/api/v1/namespaces/play/configmaps"
  local seen, troubles = {}, {}

  local function eventually(condition)
    for _ = 1, 3000 do
      if condition() then return end
      kube.sleep(0.005)
    end
    error("it did not come true; seen: " .. table.concat(seen, " ") .. "; troubles: "
      .. table.concat(troubles, "; "), 2)
  end
  local function same(wanted, got)
    if tostring(wanted) ~= tostring(got) then
      error(("wanted: %s\ngot: %s"):format(tostring(wanted), tostring(got)), 2)
    end
  end
  local function saw(...)
    local wanted = table.concat({ ... }, " ")
    eventually(function() return table.concat(seen, " ") == wanted end)
  end
  local function create(name)
    return kube.request({ method = "POST", path = PLAY, body = { metadata = { name = name } } }).object
  end
  local function delete(name) kube.request { method = "DELETE", path = PLAY .. "/" .. name } end
  local function troubled(text)
    eventually(function() return table.concat(troubles, "; "):find(text, 1, true) end)
  end

  local stop = kube.stop_channel()
  local function watched()
    local informer = kube.shared_informer_factory({ namespace = "play" }):core():v1():config_maps():informer()
    informer:set_watch_error_handler(function(err) troubles[#troubles + 1] = tostring(err) end)
    local function note(sign)
      return function(object)
        if object.metadata.name ~= "kube-root-ca.crt" then seen[#seen + 1] = sign .. object.metadata.name end
      end
    end
    informer:add_event_handler { on_add = note "+", on_delete = note "-" }
    kube.background("informer", function() informer:run(stop) end)
    assert(kube.wait_for_cache_sync(stop, informer))
    return informer
  end

  kube.sleep(0)
  kube.request { method = "POST", path = "/api/v1/namespaces", body = { metadata = { name = "play" } } }
]]

local function play(source)
  local result = run.run_script(prelude .. source .. "\nstop:close()\n", { args = { "--sandbox" }, timeout = 40 })
  assert.are.equal(0, result.code, result.stdout .. result.stderr)
  return result.stdout
end

describe("a script in its sandbox", function()
  cleanup.install()

  it("creates objects, and its informer sees them come and go", function()
    play [[
      create "early"
      local informer = watched()
      create "late"
      saw("+early", "+late")
      same("late", informer:get_indexer():get("play/late").metadata.name)
      local err = select(2, pcall(create, "late"))
      same("already_exists 409", err.code .. " " .. err.status)
      same('configmaps "late" already exists', err.message)
      delete "early"
      saw("+early", "+late", "-early")
      local _, gone = kube.try_request { path = PLAY .. "/early" }
      same("not_found", gone.code)
    ]]
  end)

  it("forgets history: a watch that comes back is told 410, and its informer reads all again", function()
    play [[
      local informer = watched()
      create "a"
      saw "+a"
      sandbox.pause_watches()
      create "b"
      delete "a"
      sandbox.expire()
      sandbox.cut_watches()
      sandbox.resume_watches()
      eventually(function() return #seen == 3 end)
      table.sort(seen)
      saw("+a", "+b", "-a")
      same(1, #informer:get_indexer():index_keys("namespace", "play") - 1) -- and kube-root-ca.crt
      troubled "too old resource version"
    ]]
  end)

  it("cuts watches, at once or after some events, and its informer misses nothing", function()
    play [[
      local informer = watched()
      sandbox.cut_watches()
      create "a"
      saw "+a"
      sandbox.fault { verb = "watch", resource = "configmaps", cut_after = 2 }
      sandbox.cut_watches()
      for _, name in ipairs { "b", "c", "d", "e" } do create(name) end
      saw("+a", "+b", "+c", "+d", "+e")
    ]]
  end)

  it("makes requests fail as it likes, and takes that back", function()
    play [[
      local id = sandbox.fault { verb = "get", resource = "configmaps", status = 503, message = "not now", count = 0 }
      local _, err = kube.try_request { path = PLAY .. "/x" }
      same("unavailable 503 not now", ("%s %d %s"):format(err.code, err.status, err.message))
      sandbox.clear_faults(id)
      same("not_found", select(2, kube.try_request { path = PLAY .. "/x" }).code)
      sandbox.fault { verb = "get", delay = 30, count = 0 }
      same("timeout", select(2, kube.try_request { path = PLAY .. "/x", timeout = 0.1 }).code)
      sandbox.clear_faults()
      sandbox.fault { verb = "create", cut = true }
      same("eof", select(2, pcall(create, "x")).code)
      same("x", create("x").metadata.name)
    ]]
  end)

  it("asks what the sandbox was asked, and counts it", function()
    play [[
      watched()
      sandbox.clear_requests()
      create "a"
      local _, refused = pcall(create, "a")
      same(409, refused.status)
      local seen = sandbox.requests { verb = "create", resource = "configmaps" }
      same("a 201 true, a 409 false", ("%s %d %s, %s %d %s"):format(seen.items[1].body.metadata.name,
        seen.items[1].status, seen.items[1].changed, seen.items[2].body.metadata.name, seen.items[2].status,
        seen.items[2].changed))
      same("play moonwatch", seen.items[1].namespace .. " " .. seen.items[1].user_agent:match("^%w+"))
      same("1 create 2", ("%d %s %d"):format(#seen.counts, seen.counts[1].verb, seen.counts[1].count))
      delete "a"
      same(1, #sandbox.requests({ since = seen.last }).items)
      sandbox.clear_requests()
      same(0, #sandbox.requests().items + #sandbox.requests().counts)
    ]]
  end)

  it("throttles with Retry-After, which requests and the informer wait for", function()
    play [[
      local started = os.time()
      sandbox.fault { verb = "watch", resource = "configmaps", status = 429, retry_after = 1 }
      sandbox.fault { verb = "create", resource = "configmaps", status = 429, retry_after = 1 }
      watched()
      create "a"
      saw "+a"
      assert(os.time() - started >= 1, "nobody waited")
      sandbox.fault { verb = "get", resource = "configmaps", status = 429, retry_after = 60, count = 0 }
      local _, err = kube.try_request { path = PLAY .. "/a" }
      same("too_many_requests 429 60", ("%s %d %d"):format(err.code, err.status, err.details.retryAfterSeconds))
    ]]
  end)

  it("holds the events of watches back and lets them go one by one", function()
    play [[
      watched()
      assert(sandbox.pause_watches().paused)
      for _, name in ipairs { "a", "b", "c", "d" } do create(name) end
      sandbox.step_watches()
      saw "+a"
      sandbox.step_watches(2)
      saw("+a", "+b", "+c")
      same(1, sandbox.step_watches(0).items[1].pending)
      assert(not sandbox.resume_watches().paused)
      saw("+a", "+b", "+c", "+d")
    ]]
  end)

  it("tells informers by a bookmark that they have seen everything", function()
    play [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory { namespace = "elsewhere" }
      local informer = factory:core():v1():configmaps():informer()
      factory:start(stop)
      factory:wait_for_cache_sync(stop)
      create "a"
      local revision = tostring(sandbox.bookmark())
      kube.timeout(10, function()
        while informer:last_sync_resource_version() ~= revision do kube.sleep(0.01) end
      end)
      stop:close()
    ]]
  end)

  it("goes back to a snapshot, and its informer with it", function()
    play [[
      watched()
      create "a"
      local snapshot = sandbox.snapshot()
      delete "a"
      create "b"
      saw("+a", "-a", "+b")
      sandbox.restore(snapshot)
      same("not_found", select(2, kube.try_request { path = PLAY .. "/b" }).code)
      same(200, kube.request({ path = PLAY .. "/a" }).status)
      eventually(function() return #seen == 5 end)
      table.sort(seen)
      saw("+a", "+a", "+b", "-a", "-b")
    ]]
  end)

  it("stops the clock, moves it and lets it run", function()
    play [[
      local EVENTS = "/api/v1/namespaces/play/events"
      same(1000, sandbox.freeze(1000))
      local event = kube.request({ method = "POST", path = EVENTS, body = { metadata = { name = "e" }, type = "Normal",
        involvedObject = { kind = "Pod", namespace = "play", name = "p" } } }).object
      same("1970-01-01T00:16:40Z", event.metadata.creationTimestamp)
      same(4599, sandbox.advance(3599))
      same(200, kube.request({ path = EVENTS .. "/e" }).status)
      same(4601, sandbox.advance(2))
      same("not_found", select(2, kube.try_request { path = EVENTS .. "/e" }).code)
      same(4601, sandbox.now())
      assert(math.abs(sandbox.thaw() - os.time()) < 5)
      local now = sandbox.freeze()
      same(now, sandbox.now())
    ]]
  end)

  it("gets the same names and uids for the same seed", function()
    play [[
      local function made()
        sandbox.seed(42)
        local made = kube.request { method = "POST", path = PLAY, body = { metadata = { generateName = "gen-" } } }
        delete(made.object.metadata.name)
        return made.object.metadata.name .. " " .. made.object.metadata.uid
      end
      same(made(), made())
    ]]
  end)

  it("does what README.md shows", function()
    local file = assert(io.open("README.md"))
    local text = file:read("*a")
    file:close()
    local source = assert(text:match('```lua\n(local kube[^`]-require "kube%.sandbox".-)```'))
    local proc = run.start_script(source, { args = { "--sandbox" } })
    cleanup.later(function() proc:kill("sigkill") end)
    for _, line in ipairs { "^refused\t503\tnot now$", "^created\tgreeting$", "^added\tdefault/greeting$" } do
      proc:wait_line(line, 20)
    end
    proc:wait_stderr('"msg":"watch failed"')
    rig.stop(proc)
  end)

  it("says what is wrong with a call", function()
    play [[
      local function refused(text, fn, ...)
        local ok, err = pcall(fn, ...)
        err = tostring(err)
        assert(not ok and err:find(text, 1, true) and err:find("^[^\n]*script%.lua:%d+: "), err)
      end
      refused("sandbox.fault has no option 'stauts' (did you mean 'status'?)", sandbox.fault, { stauts = 500 })
      refused("option 'status' must be a number, not a string", sandbox.fault, { status = "500" })
      refused("sandbox: a fault needs one of status, delay", sandbox.fault, { verb = "get" })
      refused("sandbox: a fault needs one of status, delay", sandbox.fault, {})
      refused("sandbox: a fault needs one of status, delay", sandbox.fault)
      refused("sandbox.requests has no option 'verbs' (did you mean 'verb'?)", sandbox.requests, { verbs = "get" })
      refused("sandbox: there is no fault 77", sandbox.clear_faults, "77")
      refused("the id must be what sandbox.fault() returned, not 7", sandbox.clear_faults, 7)
      refused("sandbox: only a frozen clock can be advanced", sandbox.advance, 1)
      refused("sandbox.advance: the argument must be a number, not a string", sandbox.advance, "1")
      refused("sandbox.freeze: the time must be a number", sandbox.freeze, "now")
      refused("sandbox.seed: the seed must be a number, not a nil", sandbox.seed)
      refused("sandbox.step_watches: the count must be a number", sandbox.step_watches, {})
      refused("must be what sandbox.snapshot() returned, not a string", sandbox.restore, "{}")
      refused("the last argument must be what kube.new_client() returned, not a table", sandbox.expire, {})
      refused("kube.sandbox.store is part of the sandbox's server and not for scripts", function()
        require "kube.sandbox.store"
      end)
      same("number", type(sandbox.now(kube.new_client())))
    ]]
  end)
end)

describe("a script that has no sandbox", function()
  cleanup.install()

  it("is told so in one sentence", function()
    local not_found = '{"kind":"Status","apiVersion":"v1","message":"the server could not find the requested resource",'
      .. '"reason":"NotFound","code":404}'
    local answers = { { status = 404, body = "404 page not found\n" }, { status = 404, body = not_found },
      { status = 403, body = "{}" }, { body = "<html>" } }
    local server = script_server.new(function(_, s) return answers[#s.requests] end)
    cleanup.later(function() server:close() end)
    rig.run(server, ([[
      local sandbox = require "kube.sandbox"
      kube.sleep(0)
      for _ = 1, 4 do
        local ok, err = pcall(sandbox.expire)
        assert(not ok)
        same({ "nosandbox", "%s is not a sandbox: it takes no calls at /sandbox/v1; start the script with --sandbox, "
          .. "or point it at `moonwatch sandbox`" }, { err.code, err.message })
      end
    ]]):format(server:url()))
    assert.are.equal(4, #server.requests)
    assert.are.same({ "POST", "/sandbox/v1/expire" }, { server.requests[1].method, server.requests[1].path })
  end)
end)
