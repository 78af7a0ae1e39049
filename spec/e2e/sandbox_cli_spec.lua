-- `moonwatch sandbox` and `moonwatch run --sandbox`: arguments, what is printed, beginning and end.
-- What the sandbox answers is the business of other specs.
local cleanup = require "spec.support.cleanup"
local http_client = require "spec.support.http_client"
local host = require "spec.support.sandbox_env"
local run = require "spec.support.run"
local uv = require "luv"

local function start(...)
  local proc = run.start_command { "sandbox", ... }
  cleanup.later(function() proc:kill("sigkill") end)
  local url = proc:wait_line("^The sandbox serves ", 30):match("(http.*)$")
  local path = proc:wait_line("^Its kubeconfig is "):match("is (.*)$")
  assert.equal(("Try: kubectl --kubeconfig %s get namespaces"):format(path), proc:wait_line("^Try: "))
  return proc, url, path
end

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

-- A client that trusts what the kubeconfig says, and has its token.
local function client_of(path)
  local text = read(path)
  local data = text:match("certificate%-authority%-data: (%S+)")
  local ca = data and os.tmpname()
  if ca then
    cleanup.later(function() os.remove(ca) end)
    local file = assert(io.open(ca, "w"))
    file:write((assert(host.unbase64(data))))
    file:close()
  end
  local client = http_client.new { url = text:match("server: (%S+)"), ca = ca,
    headers = { { "Authorization", "Bearer " .. text:match("token: (%S+)") } } }
  cleanup.later(function() client:close() end)
  return client
end

local function status_of(client, path) return client:request({ path = path }).status end

local function is_there(path) return uv.fs_stat(path) ~= nil end

local function directory()
  local path = assert(uv.fs_mkdtemp("/tmp/mw-XXXXXX"))
  cleanup.later(function()
    for name in uv.fs_scandir_next, assert(uv.fs_scandir(path)) do os.remove(path .. "/" .. name) end
    uv.fs_rmdir(path)
  end)
  return path
end

local function create(client, name)
  local made = client:request { method = "POST", path = "/api/v1/namespaces/default/configmaps",
    headers = { { "Content-Type", "application/json" } }, body = ('{"metadata":{"name":"%s"}}'):format(name) }
  assert.equal(201, made.status)
end

local function stop(proc)
  proc:kill("sigterm")
  assert.equal(0, proc:wait_exit(20), proc.stderr)
end

local function refused(code, pattern, ...)
  local result = run.run_command { ... }
  assert.same({ code, "" }, { result.code, result.stdout })
  assert.truthy(result.stderr:find(pattern), result.stderr)
  assert.equal(1, select(2, result.stderr:gsub("\n", "")))
end

describe("moonwatch sandbox", function()
  cleanup.install()

  it("serves until it is told to stop, by any such signal, and leaves nothing behind", function()
    for _, signal in ipairs { "sigint", "sigterm", "sighup" } do
      local proc, url, path = start()
      assert.truthy(url:find("^https://127%.0%.0%.1:%d+$"))
      assert.equal(tonumber("600", 8), uv.fs_stat(path).mode % 512)
      assert.equal(200, status_of(client_of(path), "/api/v1/namespaces/default"))
      proc:kill(signal)
      assert.equal(0, proc:wait_exit(20))
      assert.is_false(is_there(path))
    end
  end)

  it("takes a signal that comes twice, to it and to its group, for one", function()
    local proc, _, path = start()
    proc:kill("sigint")
    proc:ends_within(0.01)
    proc:kill("sigint")
    assert.equal(0, proc:wait_exit(20))
    assert.is_false(is_there(path))
  end)

  it("stops in order while clients wait", function()
    local proc, _, path = start()
    local client = client_of(path)
    local stream = client:send { path = "/api/v1/namespaces?watch=true" }
    http_client.wait(function() return stream.status ~= nil end, 10)
    assert.equal(200, stream.status)
    stop(proc)
    stream:close()
  end)

  it("speaks plain HTTP when it is told to, and asks for the token all the same", function()
    local proc, url, path = start("--plain-http", "--token", "sesame")
    assert.truthy(url:find("^http://127%.0%.0%.1:%d+$"))
    local client = client_of(path)
    assert.equal(200, status_of(client, "/api/v1/namespaces"))
    for token, status in pairs { ["Bearer open"] = 401, [false] = 403 } do
      assert.equal(status,
        client:request({ path = "/api/v1/namespaces", headers = { { "Authorization", token } } }).status)
    end
    assert.truthy(read(path):find("token: sesame", 1, true))
    stop(proc)
  end)

  it("keeps its objects in a file, and is known by the same token and certificate again", function()
    local data = directory() .. "/state"
    local proc, url, path = start("--data", data)
    local client, kubeconfig = client_of(path), read(path)
    create(client, "kept")
    stop(proc)
    assert.equal(tonumber("600", 8), uv.fs_stat(data).mode % 512)
    local again
    proc, again, path = start("--data", data, "--listen", url:match("//(.*)$"))
    assert.same({ url, kubeconfig }, { again, read(path) })
    assert.equal(200, status_of(client, "/api/v1/namespaces/default/configmaps/kept"))
    stop(proc)
  end)

  it("does not begin with a file that it could not keep its objects in", function()
    refused(1, "^moonwatch: the sandbox did not start: cannot write /no%-such%-directory/state: No such file",
      "sandbox", "--data", "/no-such-directory/state")
    refused(1, "^moonwatch: the sandbox did not start: cannot read /dev/null/state: Not a directory",
      "sandbox", "--data", "/dev/null/state")
  end)

  it("goes on trying to write its file, and fails in the end when that was in vain", function()
    local inner = directory() .. "/inner"
    local data, hidden = inner .. "/state", inner .. ".hidden"
    assert(uv.fs_mkdir(inner, tonumber("700", 8)))
    local proc, _, path = start("--data", data)
    local client = client_of(path)
    assert(uv.fs_rename(inner, hidden))
    create(client, "first")
    proc:wait_stderr("cannot write " .. data:gsub("%p", "%%%0"))
    assert(uv.fs_rename(hidden, inner))
    assert.is_false(proc:ends_within(1.5)) -- it tries every second
    assert.truthy(read(data):find('"first"', 1, true))
    os.remove(data)
    assert(uv.fs_rmdir(inner))
    create(client, "second")
    proc:kill("sigterm")
    assert.equal(1, proc:wait_exit(20))
  end)

  it("does not begin with a file that holds something else", function()
    local path = os.tmpname()
    cleanup.later(function() os.remove(path) end)
    for _, text in ipairs { "", "{", "[]", '{"revision":1}', '{"revision":1,"storages":{"pods":1}}' } do
      local file = assert(io.open(path, "w"))
      file:write(text)
      file:close()
      refused(1, "^moonwatch: the sandbox did not start: " .. path, "sandbox", "--data", path)
    end
  end)

  it("writes its kubeconfig where it is told to, and listens where it is told to", function()
    local path = os.tmpname()
    cleanup.later(function() os.remove(path) end)
    local proc, url, told = start("--kubeconfig-out", path, "--listen", "127.0.0.2:0", "--seed=7")
    assert.equal(path, told)
    assert.truthy(url:find("^https://127%.0%.0%.2:%d+$"))
    assert.truthy(read(path):find(url, 1, true))
    assert.equal(200, status_of(client_of(path), "/version"))
    refused(1, "^moonwatch: the sandbox did not start: cannot listen on 127%.0%.0%.2 port %d+: Address already in use",
      "sandbox", "--listen", url:match("//(.*)$"))
    stop(proc)
    assert.is_true(is_there(path))
  end)

  it("takes a name in a manifest for a name, whatever it would mean in a URL", function()
    local path = os.tmpname()
    cleanup.later(function() os.remove(path) end)
    local file = assert(io.open(path, "w"))
    file:write('{apiVersion: v1, kind: ConfigMap, metadata: {name: "a/b?c"}}')
    file:close()
    refused(1, 'ConfigMap a/b%?c: ConfigMap "a/b%?c" is invalid: metadata%.name', "sandbox", "--apply", path)
  end)

  it("makes a kubeconfig that was there before its owner's alone", function()
    local path = os.tmpname()
    cleanup.later(function() os.remove(path) end)
    assert(uv.fs_chmod(path, tonumber("644", 8)))
    local proc = start("--kubeconfig-out", path)
    assert.equal(tonumber("600", 8), uv.fs_stat(path).mode % 512)
    stop(proc)
  end)

  it("writes a token that looks like a number as a text", function()
    local proc, _, path = start("--plain-http", "--token", "1e3")
    assert.truthy(read(path):find('token: "1e3"\n', 1, true))
    stop(proc)
  end)

  it("serves without standard input, output and error", function()
    local path = directory() .. "/config"
    local result = run.sh(([[
      %s sandbox --kubeconfig-out %s <&- >&- 2>&- &
      until [ -s %s ] || ! kill -0 $!; do sleep 0.05; done
      kill -TERM $!
      wait $!
    ]]):format(run.binary, path, path), { timeout = 30 })
    assert.equal(0, result.code)
    assert.truthy(read(path):find("^apiVersion"))
  end)

  it("says what is wrong with the arguments", function()
    local listen = "^moonwatch: %-%-listen takes a numeric ADDRESS:PORT such as 127%.0%.0%.1:8001, not "
    for _, wrong in ipairs { "localhost:1", "8001", "127.0.0.1", "127.0.0.1:65536", "::1:1", "[127.0.0.1]:1" } do
      refused(2, listen .. wrong:gsub("%p", "%%%0"), "sandbox", "--allow-remote", "--listen", wrong)
    end
    refused(2, "^moonwatch: nothing is given after %-%-data; see moonwatch help sandbox", "sandbox", "--data=")
    refused(2, "^moonwatch: %-%-token takes ASCII without spaces", "sandbox", "--token", "a\nb")
    refused(2, "^moonwatch: unknown option '%-%-data'; see moonwatch help run", "run", "x.lua", "--data", "y")
    refused(2, "^moonwatch: %-%-kubeconfig%-out belongs to %-%-sandbox", "run", "x.lua", "--kubeconfig-out", "y")
    refused(1, "^moonwatch: cannot write /nowhere/y: No such file", "run", "x.lua", "--sandbox", "--kubeconfig-out",
      "/nowhere/y")
    refused(2, "^moonwatch: whoever reaches 0%.0%.0%.0:1 owns the sandbox", "sandbox", "--listen", "0.0.0.0:1")
    refused(2, "%-%-allow%-remote", "sandbox", "--listen", "[::]:1")
    refused(2, "%-%-allow%-remote", "sandbox", "--listen=10.0.0.1:1")
    refused(2, "^moonwatch: unknown option '%-%-lisen'; did you mean '%-%-listen'%?", "sandbox", "--lisen", "x")
    refused(2, "^moonwatch: a value is missing after %-%-token; see moonwatch help sandbox", "sandbox", "--token")
    refused(2, "^moonwatch: %-%-seed takes a whole number, not 1%.5", "sandbox", "--seed", "1.5")
    refused(2, "^moonwatch: what is to be done with x%.yaml", "sandbox", "x.yaml")
    refused(2, "^moonwatch: %-%-apply belongs to %-%-sandbox", "run", "x.lua", "--apply", "y")
    refused(2, "^moonwatch: %-%-sandbox is the cluster", "run", "x.lua", "--sandbox", "--context", "y")
    refused(1, "^moonwatch: the sandbox did not start: .*no%-such%-file", "sandbox", "--apply", "/no-such-file")
  end)

  it("explains itself", function()
    for _, arguments in ipairs { { "help", "sandbox" }, { "sandbox", "--help" } } do
      local result = run.run_command(arguments)
      assert.equal(0, result.code)
      assert.truthy(result.stdout:find("Usage: moonwatch sandbox", 1, true))
    end
  end)
end)

describe("moonwatch run --sandbox", function()
  cleanup.install()

  local script = [[
    local kube = require "kube"
    local stop = kube.stop_channel()
    local factory = kube.shared_informer_factory {}
    local informer = factory:core():v1():pods():informer()
    factory:start(stop)
    assert(kube.wait_for_cache_sync(stop, informer))
    print("synced")
  ]]

  it("runs a script against a sandbox of its own and ends both", function()
    local result = run.run_script(script .. " stop:close()", { args = { "--sandbox" }, timeout = 30 })
    assert.same({ 0, "synced\n" }, { result.code, result.stdout }, result.stderr)
  end)

  it("stops both when it is told to", function()
    local proc = run.start_script(script, { args = { "--sandbox" } })
    cleanup.later(function() proc:kill("sigkill") end)
    proc:wait_line("^synced$", 30)
    proc:kill("sigterm")
    assert.equal(0, proc:wait_exit(20))
  end)

  it("does not run the script when the sandbox does not start", function()
    local result = run.run_script([[print "ran"]], { args = { "--sandbox", "--apply", "/no-such-file" } })
    assert.same({ 1, "" }, { result.code, result.stdout })
    assert.truthy(result.stderr:find("moonwatch: the sandbox did not start: ", 1, true))
  end)
end)
