-- A Lua program on a thread of its own, and what kube._server gives it. The program is
-- spec/support/worker_program.lua; the spec talks HTTP to it from this thread.
local http_client = require "spec.support.http_client"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local open = ffi.cast("void (*)(struct lua_State *)", C.mw_bind_server_open)
local keep = {} -- what C borrows

local function option(name, value)
  if type(value) == "string" then return { name = name, kind = C.MW_WORKER_TEXT, text = value } end
  if type(value) == "number" then return { name = name, kind = C.MW_WORKER_NUMBER, number = value } end
  if type(value) == "boolean" then return { name = name, kind = C.MW_WORKER_FLAG, number = value and 1 or 0 } end
  local list = ffi.new("const char *[?]", #value, value)
  keep[#keep + 1] = list
  return { name = name, kind = C.MW_WORKER_LIST, list = list, count = #value }
end

local function start(options, config)
  local given = {}
  for name, value in pairs(options or {}) do
    keep[#keep + 1] = { name, value }
    given[#given + 1] = option(name, value)
  end
  local array = ffi.new("struct mw_worker_option[?]", #given + 1, given)
  keep[#keep + 1] = array
  config = config or {}
  config.module = config.module or "spec.support.worker_program"
  config.open, config.options, config.option_count = open, array, #given
  local err = unit.err()
  local worker = C.mw_worker_start(ffi.new("struct mw_worker_config", config), err)
  if worker == nil then return nil, ffi.string(err.message) end
  return worker
end

local function info(worker, name)
  local text = C.mw_worker_info(worker, name)
  return text ~= nil and ffi.string(text) or nil
end

describe("a worker", function()
  local worker, client

  local function run(options)
    worker = assert(start(options))
    client = http_client.new { url = info(worker, "url"), headers = { { "X-Ask", "this" } } }
  end

  local function get(path) return client:request { path = path, timeout = 10 } end

  local function seen() return get("/seen").body end

  -- The program fails on purpose, and says so.
  setup(function() C.mw_log_set_level(ffi.cast("enum mw_log_level", -1)) end)
  teardown(function() C.mw_log_set_level(C.MW_LOG_INFO) end)
  after_each(function()
    if client then client:close() end
    if worker then C.mw_worker_stop(worker) end
    worker, client, keep = nil, nil, {}
  end)
  unit.no_leaks() -- after it has stopped

  it("tells what its program told when it got ready", function()
    run()
    assert.truthy(info(worker, "url"):find("^http://127%.0%.0%.1:%d+$"))
    assert.is_nil(info(worker, "nothing"))
  end)

  it("tells why its program did not start, in the program's words", function()
    local none, message = start { fail = "there is no such thing" }
    assert.is_nil(none)
    assert.equal("there is no such thing", message)
    none, message = start { fail = "where" .. ("."):rep(1000) .. "why" }
    assert.is_nil(none)
    assert.truthy(#message < 512 and message:find("^where.* %.%.%. .*why$"), message)
    none, message = start({}, { module = "spec.support.no_such_program" })
    assert.is_nil(none)
    assert.truthy(message:find("module 'spec.support.no_such_program' not found", 1, true))
  end)

  it("gives up on a program that does not get ready in time", function()
    local none, message = start({ hang = true }, { ready_seconds = 0.05 })
    assert.is_nil(none)
    assert.equal("spec.support.worker_program did not get ready within 0.05 seconds", message)
  end)

  it("hands its options to the program", function()
    run { text = "a", number = 1.5, yes = true, no = false, list = { "x", "y" } }
    assert.equal('{"list":["x","y"],"no":false,"number":1.5,"text":"a","yes":true}', get("/options").body)
  end)

  it("does at the end what the program wants done, and tells when that fails", function()
    local path = os.tmpname()
    run { at_end = path, fail_at_end = true }
    client:close()
    assert.equal(C.MW_ESCRIPT, C.mw_worker_stop(worker))
    worker = nil
    local file = assert(io.open(path))
    assert.equal("the end", file:read("*a"))
    file:close()
    os.remove(path)
  end)

  it("stops when the program has closed its server itself", function() run { close = true } end)

  it("stops with streams open, timers running and a port that could not be had", function()
    run { again = true }
    local stream = client:send { path = "/stream" }
    assert.is_true(http_client.wait(function() return stream.body == "hello world" end, 10))
    client:close()
    C.mw_worker_stop(worker)
    worker = nil
    assert.is_true(http_client.wait(function() return stream.done end, 10))
  end)

  it("embeds the data files", function()
    run()
    local file = io.open("lua/kube/sandbox/data/version.json", "rb")
    local text = file and file:read("*a") or "nil"
    if file then file:close() end
    assert.equal(text, info(worker, "data"))
  end)

  describe("answers", function()
    it("with what the request was", function()
      run()
      local answer = client:request { method = "POST", path = "/echo?a=b%20c", body = "some\0thing", timeout = 10 }
      assert.equal(200, answer.status)
      assert.equal("POST /echo?a=b%20c some\0thing", answer.body)
      assert.equal("text/plain", answer:header("content-type"))
      assert.equal("this", answer:header("x-asked"))
    end)

    it("later, from a timer", function()
      run()
      assert.equal("late", get("/later").body)
      assert.equal("later", seen())
    end)

    it("with 500 and a Status when the program fails, and goes on", function()
      run()
      for _ = 1, 3 do
        local answer = get("/fail")
        assert.equal(500, answer.status)
        assert.equal("application/json", answer:header("content-type"))
        assert.truthy(answer.body:find('"reason":"InternalError"', 1, true))
      end
      assert.equal(200, get("/fail_in_timer").status)
      assert.equal("", seen())
    end)

    it("with a cut when the program fails in the middle of a stream", function()
      run()
      local stream = client:send { path = "/fail_late" }
      assert.is_true(http_client.wait(function() return stream.done end, 10))
      assert.truthy(stream.failure)
      stream = client:send { path = "/reset" }
      assert.is_true(http_client.wait(function() return stream.done end, 10))
      assert.truthy(stream.failure)
      assert.equal(200, get("/echo").status)
    end)

    it("with the program's own text when the body is too large", function()
      run()
      local answer = client:request { method = "POST", path = "/echo", body = ("x"):rep(1001), timeout = 10 }
      assert.equal(413, answer.status)
      assert.equal("too much", answer.body)
      assert.equal("text/x-oversize", answer:header("content-type"))
    end)

    it("with a stream that is written as the client takes it", function()
      run()
      assert.equal(8 * 1024 * 1024, #get("/drain").body)
    end)

    it("over TLS with a certificate of its own", function()
      worker = assert(start { tls = true })
      local ca = os.tmpname()
      local file = assert(io.open(ca, "w"))
      file:write(info(worker, "ca"))
      file:close()
      client = http_client.new { url = info(worker, "url"):gsub("^http:", "https:"), ca = ca }
      assert.equal("GET /echo ", get("/echo").body)
      os.remove(ca)
    end)
  end)

  it("tells the program once when a client has left, after which writing is in vain", function()
    run()
    local stream = client:send { path = "/stream" }
    assert.is_true(http_client.wait(function() return stream.body == "hello world" end, 10))
    stream:close()
    assert.is_true(http_client.wait(function() return seen() == "gone:false,false,false" end, 10))
  end)

  it("lets go of an exchange that is over", function()
    run()
    assert.equal("a", get("/finish").body)
    assert.equal("finished:false,false,false,nil,false", seen())
  end)

  it("refuses misuse of an exchange with a sentence", function()
    run()
    assert.equal(200, get("/misuse").status)
    local text = seen()
    assert.truthy(text:find("write:false:start() comes first", 1, true), text)
    assert.truthy(text:find("header:false:not a header: 'A'", 1, true), text)
    assert.truthy(text:find("own:false:the header 'content-length' is the server's own", 1, true), text)
    assert.truthy(text:find("a status from 200 to 599", 1, true), text)
    assert.truthy(text:find("twice:false:there is a reply already", 1, true), text)
    assert.truthy(text:find("other:false:", 1, true), text)
  end)

  it("runs timers once, whether or not the program holds them, and not when cancelled", function()
    run()
    assert.equal("done", get("/cancel").body)
    assert.equal("", seen())
    assert.equal("50", get("/garbage").body)
  end)
end)
