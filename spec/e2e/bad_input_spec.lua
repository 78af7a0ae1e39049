-- Bad input gets one clear message, the right exit code, and leaves nothing alive
-- (MOONWATCH_LEAK_CHECK is on for every run).
local run = require "spec.support.run"
local cleanup = require "spec.support.cleanup"

local function temp_file(text)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  cleanup.later(function() os.remove(path) end)
  return path
end

local function config_for(server)
  return temp_file(([[
apiVersion: v1
kind: Config
current-context: c
contexts: [{ name: c, context: { cluster: s, user: u } }]
clusters: [{ name: s, cluster: { server: "%s" } }]
users: [{ name: u, user: { token: secret-token } }]
]]):format(server))
end

-- Runs a script and checks exit code and message; returns the result.
local function expect(code, pattern, source, options)
  options = options or {}
  options.timeout = options.timeout or 20
  local result = run.run_script(source, options)
  assert.are.equal(code, result.code, result.stderr)
  assert.is_truthy(result.stderr:find(pattern), "wanted " .. pattern .. " in:\n" .. result.stderr)
  assert.is_nil(result.stderr:find("secret-token", 1, true))
  return result
end

local informer = [[
  local kube = require "kube"
  local factory = kube.shared_informer_factory { backoff = { duration = 0.01, cap = 0.05 } }
  factory:core():v1():pods():informer()
  factory:start()
  print("synced", (factory:wait_for_cache_sync(1)))
]]

describe("bad input", function()
  cleanup.install()

  it("in a kubeconfig is named with file, line and column", function()
    local path = temp_file("apiVersion: v1\nclusters: [\n  - {broken\n")
    expect(3, "kubeconfig.*" .. path:gsub("%p", "%%%0") .. ".*%d", informer, { kubeconfig = path })
  end)

  it("a kubeconfig that does not exist is an error that says where it looked", function()
    expect(3, "/nonexistent/config", informer, { kubeconfig = "/nonexistent/config" })
  end)

  it("a kubeconfig that cannot be used is one line, without the script, which is not at fault", function()
    local broken = temp_file("apiVersion: v1\nclusters: [\n")
    local sentence = ("kubeconfig %s:3:1: not valid YAML: "):format(broken)
    local function said(source, options)
      local result = expect(3, sentence:gsub("%p", "%%%0"), source, options)
      assert.are.equal(1, select(2, result.stderr:gsub("\n", "")), result.stderr)
      assert.is_nil(result.stderr:find(".lua", 1, true), result.stderr)
      return result.stderr
    end
    assert.are.equal(1, said(informer, { kubeconfig = broken }):find("moonwatch: " .. sentence, 1, true))
    local later = 'local kube = require "kube"\nkube.sleep(0)\nkube.request { path = "/api" }'
    assert.is_truthy(said(later, { kubeconfig = broken }):find('"msg":"' .. sentence, 1, true))
    -- Here the script names the file.
    expect(1, "script%.lua:2: " .. sentence:gsub("%p", "%%%0"),
      ('local kube = require "kube"\nkube.new_client { kubeconfig = %q }'):format(broken))
  end)

  it("an unknown context is answered with the ones that exist", function()
    local path = config_for("http://127.0.0.1:1")
    expect(3, 'context "nope".*c', informer, { kubeconfig = path, args = { "--context", "nope" } })
  end)

  it("an unreachable server is a state that is retried, not a crash", function()
    local path = config_for("http://127.0.0.1:1")
    local result = run.run_script(informer .. "\n os.exit = nil", { kubeconfig = path, timeout = 5, sigterm_after = 2 })
    assert.is_truthy(result.stdout:find("synced\tfalse"), result.stdout .. result.stderr)
    assert.is_truthy(result.stderr:find("127.0.0.1"), result.stderr)
    assert.are.equal(0, result.code, result.stderr)
  end)

  it("a host name that does not resolve is named", function()
    local path = config_for("https://no-such-host.invalid:6443")
    local result = run.run_script(informer, { kubeconfig = path, timeout = 10, sigterm_after = 2 })
    assert.is_truthy(result.stderr:find("no%-such%-host%.invalid"), result.stderr)
    assert.are.equal(0, result.code, result.stderr)
  end)

  it("a host name of other letters is refused as long as it is not in ASCII", function()
    expect(3, "server must be ASCII", informer, { kubeconfig = config_for("https://münchen.example") })
    expect(3, "server must not be percent%-encoded: a name of other letters has a form with xn%-%-", informer,
      { kubeconfig = config_for("https://m%C3%BCnchen.example") })
    local result = run.run_script(informer, { kubeconfig = config_for("https://a.invalid"),
      env = { HTTPS_PROXY = "http://münchen:1" }, timeout = 10, sigterm_after = 2 })
    assert.matches("a%.invalid: not a valid address, or the proxy's is none %(.+%): check also HTTPS_PROXY",
      result.stderr)
    assert.are.equal(0, result.code, result.stderr)
  end)

  it("a proxy of the environment is not asked for a server on this machine, and is named elsewhere", function()
    local proxy = "http://127.0.0.1:1"
    local env = { HTTPS_PROXY = proxy, http_proxy = proxy, ALL_PROXY = proxy }
    for server, says in pairs {
      ["http://127.1.2.3:2"] = "127.1.2.3:2: connection refused: is the API server running",
      ["http://LocalHost:2"] = "LocalHost:2: connection refused: is the API server running",
      ["https://[::1]:2"] = "%[::1%]:2: connection refused: is the API server running",
      ["https://localhost.example:2"] = "localhost.example:2: the proxy, 127.0.0.1 port 1, cannot be reached "
        .. "%(Connection refused%): check HTTPS_PROXY",
    } do
      local result = run.run_script(informer, { kubeconfig = config_for(server), env = env, timeout = 10,
        sigterm_after = 2 })
      assert.matches('"error":"' .. says, result.stderr)
      assert.are.equal(0, result.code, result.stderr)
    end
  end)

  it("a misspelt option is answered with the right one and the line of the script", function()
    expect(1, "script[^\n]*:2: shared_informer_factory has no option 'resinc' %(did you mean 'resync'%?%)",
      'local kube = require "kube"\nkube.shared_informer_factory { resinc = 1 }')
  end)

  it("an option of the wrong type says what it must be", function()
    expect(1, "option 'resync' must be a number, not a string",
      'local kube = require "kube"\nkube.shared_informer_factory { resync = "1m" }')
  end)

  it("an unknown kind is answered with the nearest one", function()
    expect(1, "no kind 'podz' %(did you mean 'pods'%?%)",
      'local kube = require "kube"\nkube.shared_informer_factory{}:core():v1():podz()')
  end)

  it("a removed group says what to use instead", function()
    expect(1, "extensions was removed.*apps%(%):v1%(%)",
      'local kube = require "kube"\nkube.shared_informer_factory{}:extensions()')
  end)

  it("a group that only for_resource has says how to ask for it", function()
    for group, resource in pairs {
      apiextensions = "apiextensions.k8s.io/v1/customresourcedefinitions",
      apiregistration = "apiregistration.k8s.io/v1/apiservices",
    } do
      local message = ('script.lua:2: factory:%s(): write factory:for_resource("%s")'):format(group, resource)
      expect(1, message:gsub("%p", "%%%0"),
        ('local kube = require "kube"\nkube.shared_informer_factory{}:%s()'):format(group))
    end
  end)

  it("a resource that is not group/version/plural shows the form", function()
    local path = config_for("http://127.0.0.1:1")
    expect(1, "v1/pods", 'local kube = require "kube"\nkube.shared_informer_factory{}:for_resource("pods"):informer()',
      { kubeconfig = path })
  end)

  it("a bad label selector of a lister names the column", function()
    local path = config_for("http://127.0.0.1:1")
    expect(1, "column", [[
      local kube = require "kube"
      kube.shared_informer_factory {}:core():v1():pods():lister():list("a in b")
    ]], { kubeconfig = path })
  end)

  it("a syntax error names file and line", function()
    expect(1, "script[^\n]*:2:", "local a = 1\nlocal b = = 2")
  end)

  it("a runtime error in the main part names file and line and ends the run", function()
    expect(1, "script[^\n]*:1: attempt to", "local a = nil + 1")
  end)

  it("a script that does not exist is one line", function()
    expect(1, "no%-such%-script%.lua", "/nonexistent/no-such-script.lua")
  end)

  it("an unknown command or flag says what there is", function()
    local result = run.run_command({ "rnu", "x.lua" }, { timeout = 10 })
    assert.are.equal(2, result.code)
    assert.is_truthy(result.stderr:find("run"), result.stderr)
    result = run.run_command({ "run", "--kubeconfg", "x", "x.lua" }, { timeout = 10 })
    assert.are.equal(2, result.code)
    assert.is_truthy(result.stderr:find("--kubeconfig", 1, true), result.stderr)
  end)

  it("a namespace that cannot be one is no place to look for objects", function()
    for _, command in ipairs { "run", "check", "rbac" } do
      local result = run.run_command({ command, "-n", "A/B", "x.lua" }, { timeout = 10 })
      assert.are.equal(2, result.code)
      assert.is_truthy(result.stderr:find("^moonwatch: %-%-namespace: 'A/B' cannot be a namespace: write "),
        result.stderr)
    end
  end)
end)
