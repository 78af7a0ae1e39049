-- Kubeconfig files: what is read from them, and what is said when they are wrong.
jit.off(true, true)
local unit = require "spec.support.unit"
local uv = require "luv"
local C, ffi = unit.C, unit.ffi

local PEM_BASE64 = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="  -- "-----BEGIN CERTIFICATE-----\n"
local PEM = "-----BEGIN CERTIFICATE-----\n"

local function str(p) return p ~= nil and ffi.string(p) or nil end

local function parse(yaml, context, dir)
  local err = unit.err()
  local k = C.mw_kubeconfig_parse(yaml, #yaml, context, "test.yaml", dir, err)
  if k == nil then return nil, ffi.string(err.message), ffi.string(C.mw_err_name(err.code)) end
  return ffi.gc(k, C.mw_kubeconfig_free)
end

local BASE = [[
apiVersion: v1
kind: Config
current-context: dev
contexts:
- name: dev
  context: {cluster: here, user: me, namespace: shop}
- name: other
  context: {cluster: there, user: nobody}
- name: broken
  context: {cluster: gone, user: me}
clusters:
- name: here
  cluster:
%s
- name: there
  cluster: {server: "https://there.example"}
users:
- name: me
  user:
%s
]]

local function config(cluster, user)
  local function indent(text) return "    " .. text:gsub("\n", "\n    ") end
  return BASE:format(indent(cluster or "server: https://127.0.0.1:6443"), indent(user or "{}"))
end

describe("kubeconfig", function()
  unit.no_leaks()

  it("takes server, namespace and token of the current context", function()
    local k = assert(parse(config(nil, "token: abc")))
    assert.are.equal("dev", str(k.context))
    assert.are.equal("https://127.0.0.1:6443", str(k.server))
    assert.are.equal("shop", str(k.namespace_))
    assert.are.equal("abc", str(k.token))
    assert.are.equal('kubeconfig test.yaml, context "dev"', str(k.origin))
    assert.is_true(k.exec == nil)
  end)

  it("reads JSON as well, as every JSON is YAML", function()
    local k = assert(parse([[{"current-context":"a","contexts":[{"name":"a","context":
      {"cluster":"c","user":"u"}}],"clusters":[{"name":"c","cluster":{"server":"https://h:1/p//"}}],
      "users":[{"name":"u","user":{"username":"joe","password":"p"}}]}]]))
    assert.are.equal("https://h:1/p", str(k.server))
    assert.are.equal("joe", str(k.username))
    assert.are.equal("p", str(k.password))
  end)

  it("reads every field of a cluster", function()
    local k = assert(parse(config(table.concat({
      "server: https://[::1]:6443/prefix/",
      "proxy-url: socks5://localhost:1080",
      "tls-server-name: api.internal",
      "certificate-authority: pki/ca.crt",
      "certificate-authority-data: " .. PEM_BASE64,
    }, "\n")), nil, "/etc/k"))
    assert.are.equal("https://[::1]:6443/prefix", str(k.server))
    assert.are.equal("socks5://localhost:1080", str(k.proxy_url))
    assert.are.equal("api.internal", str(k.tls_server_name))
    assert.are.equal("/etc/k/pki/ca.crt", str(k.ca_file))
    assert.are.equal(PEM, str(k.ca_data))
    assert.is_false(k.insecure_skip_tls_verify)
    k = assert(parse(config("server: http://h\ninsecure-skip-tls-verify: true")))
    assert.is_true(k.insecure_skip_tls_verify)
  end)

  it("reads every field of a user, with paths relative to the file", function()
    local k = assert(parse(config(nil, table.concat({
      "client-certificate: /abs/cert",
      "client-certificate-data: " .. PEM_BASE64,
      "client-key: key.pem",
      "client-key-data: " .. PEM_BASE64,
      "tokenFile: ../token",
      "as: boss",
      "as-uid: '42'",
      "as-groups: [admins, others]",
      "as-user-extra: {scopes: [read, write], reason: [test]}",
    }, "\n")), nil, "/etc/k"))
    assert.are.equal("/abs/cert", str(k.cert_file))
    assert.are.equal("/etc/k/key.pem", str(k.key_file))
    assert.are.equal(PEM, str(k.cert_data))
    assert.are.equal(PEM, str(k.key_data))
    assert.are.equal("/etc/k/../token", str(k.token_file))
    assert.are.equal("boss", str(k.impersonate))
    assert.are.equal("42", str(k.impersonate_uid))
    assert.are.equal(2, tonumber(k.impersonate_group_count))
    assert.are.equal("others", str(k.impersonate_groups[1]))
    local extra = {}
    for i = 0, tonumber(k.impersonate_extra_count) - 1 do
      extra[i + 1] = str(k.impersonate_extra[i].name) .. "=" .. str(k.impersonate_extra[i].value)
    end
    assert.are.same({ "scopes=read", "scopes=write", "reason=test" }, extra)
  end)

  it("reads an exec plugin, whose path is relative only when it has a slash", function()
    local exec = [[
exec:
  apiVersion: client.authentication.k8s.io/v1
  command: %s
  args: [get-token, --cluster, "1"]
  env: [{name: A, value: b}, {name: EMPTY, value: ""}]
  installHint: get it at example.com
  interactiveMode: IfAvailable
  provideClusterInfo: true]]
    local k = assert(parse(config(nil, exec:format("bin/plugin")), nil, "/etc/k"))
    assert.are.equal("/etc/k/bin/plugin", str(k.exec.command))
    assert.are.equal(3, tonumber(k.exec.arg_count))
    assert.are.equal("1", str(k.exec.args[2]))
    assert.are.equal(2, tonumber(k.exec.env_count))
    assert.are.equal("b", str(k.exec.env[0].value))
    assert.are.equal("", str(k.exec.env[1].value))
    assert.are.equal("get it at example.com", str(k.exec.install_hint))
    assert.is_true(k.exec.provide_cluster_info)
    k = assert(parse(config(nil, exec:format("plugin")), nil, "/etc/k"))
    assert.are.equal("plugin", str(k.exec.command))
  end)

  it("takes IfAvailable for granted with v1beta1", function()
    for _, mode in ipairs { "", ", interactiveMode: ''", ", interactiveMode: Never" } do
      assert(parse(config(nil, "exec: {apiVersion: client.authentication.k8s.io/v1beta1, "
        .. "command: x" .. mode .. "}")))
    end
  end)

  describe("reads what a cluster has for plugins", function()
    local CLUSTER = "server: https://h\nextensions:\n- {name: other, extension: [no]}\n"
      .. "- name: client.authentication.k8s.io/exec\n  extension: %s"
    local EXEC = "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, "
      .. "interactiveMode: Never, provideClusterInfo: %s}"

    local function plugin_config(extension, provide)
      local k, message, code = parse(config(CLUSTER:format(extension), EXEC:format(provide or "true")))
      if not k then return nil, message, code end
      return str(k.exec.cluster_config)
    end

    it("as JSON, with scalars typed as kubectl types them", function()
      for yaml, json in pairs {
        ["{a: 1, b: -0x1F, c: 1.50, d: 1e3, e: 18446744073709551615}"] =
          '{"a":1,"b":-31,"c":1.5,"d":1000,"e":18446744073709551615}',
        ["[true, False, yes, off, ~, null, ]"] = "[true,false,true,false,null,null]",
        ["['true', \"1\", 2026-01-02, 1.2.3, '']"] = '["true","1","2026-01-02","1.2.3",""]',
        ["{1: a, 1.5: b, true: c, 'x y': d, .nan: e}"] =
          '{"1":"a","1.5":"b","true":"c","x y":"d",".nan":"e"}',
        ['"\\"\\\\\\n\\0é"'] = [["\"\\\u000a\u0000é"]],
        ["{a: &a [1, {}], b: *a}"] = '{"a":[1,{}],"b":[1,{}]}',
        ["plain"] = '"plain"',
        ["false"] = "false",
      } do
        assert.are.equal(json, plugin_config(yaml))
      end
    end)

    it("only for one that is to be told about the cluster", function()
      assert.is_nil(plugin_config("{a: 1}", "false"))
      assert.is_nil(select(2, plugin_config("[.inf]", "false")))
      assert.is_nil(select(2, plugin_config("null")))
    end)

    it("and says what is wrong with it", function()
      local function says(expected, code, extension)
        local json, message, got = plugin_config(extension)
        assert.is_nil(json)
        assert.are.equal('kubeconfig test.yaml: cluster "here": extension '
          .. "client.authentication.k8s.io/exec " .. expected, message)
        assert.are.equal(code, got)
      end
      says("has a number that JSON has not: NaN or infinity", "EINVAL", "[.inf]")
      says("has a key that is not a text", "EINVAL", "{[a]: b}")
      says("has a key that is not a text", "EINVAL", "{~: b}")
      says("has a merge key (<<): write out what it merges", "EINVAL", "{a: &a {}, b: {<<: *a}}")
      says("is nested deeper than 64 levels", "ELIMIT", ("["):rep(65) .. ("]"):rep(65))
      says("is nested deeper than 64 levels", "ELIMIT", "&a [*a]")
      says("is larger than 65536 bytes as JSON", "ELIMIT", ("x"):rep(65535))
      local lists = {}
      for i = 1, 20 do lists[i] = ("&l%d [*l%d, *l%d]"):format(i, i - 1, i - 1) end
      says("is larger than 65536 bytes as JSON", "ELIMIT",
        "[&l0 x, " .. table.concat(lists, ", ") .. "]")
      assert.are.equal(66, #plugin_config(("["):rep(33) .. ("]"):rep(33)))
      assert.are.equal(65536, #plugin_config(("x"):rep(65534)))
    end)
  end)

  it("takes a context by name, and null for not given", function()
    local k = assert(parse(config(nil, "token: null\nusername: ~\npassword:\nas-groups: null\nas-user-extra:\n"
      .. "exec: ~")))
    assert.is_nil(str(k.token))
    assert.is_nil(str(k.username))
    assert.is_true(k.exec == nil)
    k = assert(parse(config("server: https://h\nproxy-url:\nextensions:", "as: me\nas-user-extra: {a: , b: [c]}\n"
      .. "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: x, args: , env: null, "
      .. "provideClusterInfo: true}")))
    assert.are.equal(1, tonumber(k.impersonate_extra_count))
    assert.are.equal(0, tonumber(k.exec.arg_count + k.exec.env_count))
    local text = config():gsub("user: nobody", "user: ''")
    k = assert(parse(text, "other"))
    assert.are.equal("https://there.example", str(k.server))
    assert.is_nil(str(k.namespace_))
  end)

  it("leaves alone what it does not know", function()
    assert(parse("preferences: {colors: true}\nfuture: [1]\n" .. config("server: https://h\nfuture: [1]\n"
      .. "extensions: {a: b}", "future: {a: [b]}")))
  end)

  describe("says what is wrong:", function()
    local function says(expected, code, yaml, context)
      local k, message, got = parse(yaml, context)
      assert.is_nil(k)
      assert.are.equal(expected, message)
      assert.are.equal(code, got)
    end

    local function user_says(expected, user)
      says('kubeconfig test.yaml: user "me": ' .. expected, "EINVAL", config(nil, user))
    end

    local function cluster_says(expected, cluster)
      says('kubeconfig test.yaml: cluster "here": ' .. expected, "EINVAL", config(cluster))
    end

    it("an unknown context, with the names there are", function()
      says('kubeconfig test.yaml: context "foo" does not exist; it has: dev, other, broken',
        "ENOTFOUND", config(), "foo")
    end)

    it("what is no map, and so another file", function()
      for _, text in ipairs { "[1, 2]", "- name: a", "hello", "42" } do
        says("kubeconfig test.yaml: this is not a kubeconfig, which is a map with clusters, users and contexts; name "
          .. "another file", "EINVAL", text)
      end
    end)

    it("an unknown cluster or user", function()
      says('kubeconfig test.yaml: context "broken" names the cluster "gone", which does not exist;'
        .. ' it has: here, there', "ENOTFOUND", config(), "broken")
      says('kubeconfig test.yaml: context "other" names the user "nobody", which does not exist;'
        .. ' it has: me', "ENOTFOUND", config(), "other")
    end)

    it("no current-context", function()
      says("kubeconfig test.yaml: there is no current-context, choose one with --context; it has:"
        .. " a", "ENOTFOUND", "contexts: [{name: a, context: {}}]")
      says("kubeconfig test.yaml: there is no current-context, choose one with --context; it has:"
        .. " none", "ENOTFOUND", "")
      says("kubeconfig test.yaml: there is no current-context, choose one with --context; it has:"
        .. " none", "ENOTFOUND", "current-context:\ncontexts: null\nclusters: [~]\nusers: ~")
      says('kubeconfig test.yaml: context "a" names no cluster', "EINVAL",
        "current-context: a\ncontexts: [{name: a, context: {}}]")
    end)

    it("bad YAML, with line and column", function()
      local k, message, code = parse("a: b\nc: [d\ne: f")
      assert.is_nil(k)
      assert.are.equal("EPARSE", code)
      assert.matches("^kubeconfig test%.yaml:%d+:%d+: not valid YAML: ", message)
    end)

    it("a file that is too large", function()
      says("kubeconfig test.yaml: larger than 1048576 bytes", "ELIMIT", ("#"):rep(1024 * 1024 + 1))
    end)

    it("servers that are none", function()
      cluster_says("it has no server; add `server: https://host:port`", "proxy-url: http://p")
      cluster_says("server must begin with https:// or http://", "server: localhost:6443")
      cluster_says("server is not an address such as https://host:6443", "server: https://")
      cluster_says("server is not an address such as https://host:6443", "server: https://a b")
      cluster_says("server is not an address such as https://host:6443", "server: https://u:p@host")
      cluster_says("server must be ASCII: a name of other letters has a form with xn--",
        "server: https://münchen.example")
      for _, host in ipairs { "m%C3%BCnchen.example:6443/p", "h%6Fst", "[::1]%41:1" } do
        cluster_says("server must not be percent-encoded: a name of other letters has a form with xn--",
          'server: "https://' .. host .. '"')
      end
      for _, server in ipairs { "https://[fe80::1%25eth0]:6443", "https://[fe80::1%eth0]", "https://h/a%20b" } do
        assert.are.equal(server, str(assert(parse(config(('server: "%s"'):format(server)))).server))
      end
    end)

    it("proxies whose host is written in a way that no name is", function()
      cluster_says("proxy-url must be ASCII: a name of other letters has a form with xn--",
        "server: https://h\nproxy-url: http://pröxy.example:1")
      for _, proxy in ipairs { "http://b%C3%BCcher:1", "socks5://joe:s3%40cret@h%6Fst" } do
        cluster_says("proxy-url must not be percent-encoded: a name of other letters has a form with xn--",
          ('server: https://h\nproxy-url: "%s"'):format(proxy))
      end
      for _, proxy in ipairs { "http://joe:s3%40cret@h:1", "https://[fe80::1%25eth0]:1/%41" } do
        local k = assert(parse(config(('server: https://h\nproxy-url: "%s"'):format(proxy))))
        assert.are.equal(proxy, str(k.proxy_url))
      end
    end)

    it("clusters that contradict themselves", function()
      cluster_says("insecure-skip-tls-verify and a certificate authority exclude each other",
        "server: https://h\ninsecure-skip-tls-verify: true\ncertificate-authority: x")
      cluster_says("insecure-skip-tls-verify must be true or false",
        "server: https://h\ninsecure-skip-tls-verify: maybe")
      cluster_says("proxy-url must be an http://, https:// or socks5:// address",
        "server: https://h\nproxy-url: localhost:3128")
      cluster_says("tls-server-name must be a host name",
        "server: https://h\ntls-server-name: a:1")
      cluster_says("server must be a text", "server: [1]")
    end)

    describe("a field of another kind than kubectl takes,", function()
      local USER = "{user: {exec: {command: x}}}"  -- what is no text, and no list either

      it("of the file", function()
        local function file_says(expected, ...)
          for _, yaml in ipairs { ... } do says("kubeconfig test.yaml: " .. expected, "EINVAL", yaml, "dev") end
        end
        file_says("current-context must be a text", "current-context: [dev]", "current-context: {dev: true}",
          (config():gsub("dev\n", "[dev]\n", 1)))
        for _, section in ipairs { "contexts", "clusters", "users" } do
          file_says(section .. " must be a list of maps, each with a name", section .. ": {dev: {}}",
            section .. ": dev", section .. ": [dev]", section .. ": [[dev]]", section .. ": [{name: [dev]}]",
            section .. ": [{name: a}, {name: {b: c}}]")
        end
      end)

      it("of a context", function()
        local function context_says(expected, context)
          says('kubeconfig test.yaml: context "dev": ' .. expected, "EINVAL", (config():gsub(
            "{cluster: here, user: me, namespace: shop}", function() return context end)))
        end
        for _, bad in ipairs { "[dev]", "dev" } do context_says("it must be a map", bad) end
        for _, bad in ipairs { "[me]", USER } do
          context_says("user must be a text", "{cluster: here, user: " .. bad .. "}")
          context_says("cluster must be a text", "{user: me, cluster: " .. bad .. "}")
          context_says("namespace must be a text", "{cluster: here, user: me, namespace: " .. bad .. "}")
        end
      end)

      it("of a cluster", function()
        for _, bad in ipairs { "[server]", "server" } do cluster_says("it must be a map", bad) end
        for _, field in ipairs { "server", "proxy-url", "tls-server-name", "certificate-authority",
          "certificate-authority-data" } do
          for _, bad in ipairs { "[a]", USER } do cluster_says(field .. " must be a text", field .. ": " .. bad) end
        end
        for _, bad in ipairs { "[true]", "{}", "'true'" } do
          cluster_says("insecure-skip-tls-verify must be true or false", "insecure-skip-tls-verify: " .. bad)
        end
      end)

      it("of a user", function()
        for _, bad in ipairs { "[token]", "token" } do user_says("it must be a map", bad) end
        for _, field in ipairs { "client-certificate", "client-certificate-data", "client-key", "client-key-data",
          "token", "tokenFile", "username", "password", "as", "as-uid" } do
          for _, bad in ipairs { "[a]", USER } do user_says(field .. " must be a text", field .. ": " .. bad) end
        end
        for _, bad in ipairs { "'system:masters'", "{a: b}", "[[a]]", "[{a: b}]", "[null]", "['']" } do
          user_says("as-groups must be a list of texts", "as: me\nas-groups: " .. bad)
        end
        for _, bad in ipairs { "scopes", "[scopes]", "{scopes: view}", "{scopes: {view: true}}", "{scopes: [[view]]}",
          "{[scopes]: [view]}", "{'': [view]}" } do
          user_says("as-user-extra must be a map of lists of texts", "as: me\nas-user-extra: " .. bad)
        end
      end)

      it("of an exec plugin", function()
        local function exec_says(expected, field)
          user_says(expected, "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: x, " .. field .. "}")
        end
        for _, bad in ipairs { "[x]", "plugin" } do user_says("exec must be a map", "exec: " .. bad) end
        for _, field in ipairs { "apiVersion", "command", "installHint", "interactiveMode" } do
          for _, bad in ipairs { "[a]", USER } do
            user_says(("exec.%s must be a text"):format(field), ("exec: {%s: %s}"):format(field, bad))
          end
        end
        exec_says("exec.provideClusterInfo must be true or false", "provideClusterInfo: [true]")
        for _, bad in ipairs { "--x", "{a: b}", "[[a]]", "[{a: b}]" } do
          exec_says("exec.args must be a list of texts", "args: " .. bad)
        end
        for _, bad in ipairs { "A=b", "{A: b}", "[A=b]", "[[A, b]]", "[{A: b}]", "[{name: 'A=b'}]" } do
          exec_says("exec.env must be a list of name and value", "env: " .. bad)
        end
        exec_says("exec.env.name must be a text", "env: [{name: [A], value: b}]")
        exec_says("exec.env.value must be a text", "env: [{name: A, value: {b: c}}]")
        says('kubeconfig test.yaml: cluster "here": extensions must be a list of maps, each with a name', "EINVAL",
          config("server: https://h\nextensions: {client.authentication.k8s.io/exec: {a: b}}", "exec: {apiVersion: "
          .. "client.authentication.k8s.io/v1beta1, command: x, provideClusterInfo: true}"))
      end)
    end)

    it("lists that are longer than what is kept of them", function()
      local function many(item, n) return "[" .. (item .. ", "):rep(n - 1) .. item .. "]" end
      for form, key in pairs { ["as: me\nas-groups: %s"] = "as-groups", ["as: me\nas-user-extra: {k: %s}"] =
        "as-user-extra", ["exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: x, args: %s}"] =
        "exec.args" } do
        assert(parse(config(nil, form:format(many("a", 1024)))))
        says(('kubeconfig test.yaml: user "me": %s has more than 1024 items'):format(key), "ELIMIT",
          config(nil, form:format(many("a", 1025))))
      end
      local env = "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: x, env: %s}"
      assert(parse(config(nil, env:format(many("{name: A}", 1024)))))
      says('kubeconfig test.yaml: user "me": exec.env has more than 1024 items', "ELIMIT",
        config(nil, env:format(many("{name: A}", 1025))))
      says('kubeconfig test.yaml: user "me": as-user-extra has more than 1024 items', "ELIMIT", config(nil,
        ("as: me\nas-user-extra: {a: %s, b: %s}"):format(many("x", 1000), many("y", 25))))
    end)

    it("data that is not base64, or not PEM", function()
      says('kubeconfig test.yaml: user "me": client-key-data is not valid base64', "EPARSE",
        config(nil, "client-key-data: '!!!!'"))
      says('kubeconfig test.yaml: user "me": client-key-data is not valid base64', "EPARSE",
        config(nil, "client-key-data: abcde"))
      says('kubeconfig test.yaml: user "me": client-key-data is not the base64 of a PEM file',
        "EPARSE", config(nil, "client-key-data: aGVsbG8="))
    end)

    it("users that cannot work", function()
      user_says("it has a client-certificate but no client-key", "client-certificate: x")
      user_says("it has a client-key but no client-certificate", "client-key: x")
      user_says("token and username exclude each other; remove one", "token: a\nusername: b")
      user_says("token has control characters", 'token: "a\\nInjected: b"')
      user_says("token contains a NUL", 'token: "a\\0b"')
      user_says("as-groups has control characters", 'as: me\nas-groups: ["a\\rb"]')
      user_says("as-uid, as-groups and as-user-extra need `as`, the user", "as-groups: [a]")
      user_says("auth-provider is not supported; use the exec plugin of your provider", "auth-provider: {name: gcp}")
    end)

    it("exec plugins that cannot work", function()
      user_says("exec has no command", "exec: {apiVersion: client.authentication.k8s.io/v1}")
      user_says("exec.apiVersion must be client.authentication.k8s.io/v1 or "
        .. "client.authentication.k8s.io/v1beta1",
        "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}")
      user_says("exec.interactiveMode is Always, but the plugin will run without a terminal; use "
        .. "IfAvailable or Never", "exec: {apiVersion: client.authentication.k8s.io/v1, command: x,"
        .. " interactiveMode: Always}")
      user_says("exec.interactiveMode must be IfAvailable or Never", "exec: {apiVersion: "
        .. "client.authentication.k8s.io/v1beta1, command: x, interactiveMode: never}")
      user_says("exec.interactiveMode is missing, and client.authentication.k8s.io/v1 needs it; add "
        .. "IfAvailable or Never", "exec: {apiVersion: client.authentication.k8s.io/v1, command: x}")
      user_says("exec.args must be a list of texts",
        "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, args: [[a]]}")
      user_says("exec.env must be a list of name and value",
        "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, env: [{value: a}]}")
    end)

    it("nothing about secrets", function()
      local _, message = parse(config(nil, 'token: "s3cret\\n x"'))
      assert.not_matches("s3cret", message)
    end)
  end)

  it("follows merge keys, as kubectl does: what a map has itself comes first", function()
    local function token_of(user)
      local k = assert(parse(config(nil, user)))
      return k.token ~= nil and str(k.token) or nil
    end
    assert.are.equal("a", token_of "x: &x {token: a}\n<<: *x")
    assert.are.equal("b", token_of "x: &x {token: a}\n<<: *x\ntoken: b")
    assert.are.equal("c", token_of "x: &x {token: c}\ny: &y {token: d}\n<<: [*x, *y]")
    assert.are.equal("e", token_of "x: &x {token: e}\ny: &y {<<: *x}\n<<: [{a: 1}, *y]")
    assert.is_nil(token_of "x: &x {a: b, <<: *x}\n<<: [*x, *x, *x]")
    assert.is_nil(token_of "<<: text")
  end)

  it("survives aliases that refer to their own parent", function()
    parse("&a {current-context: x, contexts: [*a], clusters: &b [*b, *a], users: *b}")
    parse("current-context: x\ncontexts: &c [{name: x, context: *c}]")
    parse("&a [*a]")
  end)

  describe("files", function()
    local dir, saved

    local function write(name, text)
      local file = assert(io.open(dir .. "/" .. name, "w"))
      file:write(text)
      file:close()
      return dir .. "/" .. name
    end

    local function load(source)
      local err = unit.err()
      local k = C.mw_kubeconfig_load(ffi.new("struct mw_kubeconfig_source", source or {}), err)
      if k == nil then return nil, ffi.string(err.message), ffi.string(C.mw_err_name(err.code)) end
      return ffi.gc(k, C.mw_kubeconfig_free)
    end

    local function setenv(name, value)
      if value then uv.os_setenv(name, value) else uv.os_unsetenv(name) end
    end

    local names = { "KUBECONFIG", "HOME", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT" }

    before_each(function()
      dir = assert(uv.fs_mkdtemp("/tmp/mw-kubeconfig-XXXXXX"))
      saved = {}
      for _, name in ipairs(names) do
        saved[name] = os.getenv(name)
        setenv(name, nil)
      end
      setenv("HOME", dir)
    end)

    after_each(function()
      for _, name in ipairs(names) do setenv(name, saved[name]) end
      os.execute("rm -r " .. dir)
    end)

    it("are named with ~ for the home directory", function()
      local path = write("x.yaml", config())
      local _, message = load { path = path, context = "foo" }
      assert.are.equal('kubeconfig ~/x.yaml: context "foo" does not exist; it has: dev, other, '
        .. "broken", message)
      assert.are.equal('kubeconfig ~/x.yaml, context "dev"', str(load { path = path }.origin))
    end)

    it("must exist when they are asked for by name", function()
      local path = dir .. "/missing.yaml"
      local k, message, code = load { path = path }
      assert.is_nil(k)
      assert.are.equal("kubeconfig " .. path .. ": No such file or directory", message)
      assert.are.equal("ENOTFOUND", code)
    end)

    it("are looked for in ~/.kube/config", function()
      os.execute("mkdir " .. dir .. "/.kube")
      write(".kube/config", config("server: https://home"))
      assert.are.equal("https://home", str(load().server))
    end)

    it("of KUBECONFIG merge: the first entry of a name and the first current-context win, missing "
      .. "files do not matter", function()
      os.execute("mkdir " .. dir .. "/two")
      local one = write("one.yaml", [[
contexts: [{name: dev, context: {cluster: c, user: u, namespace: first}}]
users: [{name: u, user: {token: from-one}}]
]])
      local two = write("two/two.yaml", [[
current-context: dev
contexts: [{name: dev, context: {cluster: wrong, user: wrong, namespace: second}}]
clusters: [{name: c, cluster: {server: "https://two", certificate-authority: ca.pem}}]
users: [{name: u, user: {token: from-two, as: from-two}}]
]])
      write("two/ca.pem", PEM)
      setenv("KUBECONFIG", ":" .. one .. ":" .. dir .. "/missing::" .. two)
      local k = assert(load())
      assert.are.equal("first", str(k.namespace_))
      assert.are.equal("https://two", str(k.server))
      assert.are.equal("from-one", str(k.token))
      assert.is_nil(str(k.impersonate))
      assert.are.equal(dir .. "/two/ca.pem", str(k.ca_file))
      local _, message = load { context = "x" }
      assert.are.equal('kubeconfig ~/one.yaml:~/two/two.yaml: context "x" does not exist; it has: '
        .. "dev, dev", message)
    end)

    it("that the chosen entries name must be readable", function()
      local path = write("x.yaml", config("server: https://h\ncertificate-authority: ca.pem"))
      local _, message, code = load { path = path }
      assert.are.equal('kubeconfig ~/x.yaml, context "dev": certificate-authority ' .. dir
        .. "/ca.pem: No such file or directory", message)
      assert.are.equal("ENOTFOUND", code)
    end)

    it("of tokens need not be there beside a token", function()
      local path = write("x.yaml", config(nil, "tokenFile: token"))
      assert.are.equal('kubeconfig ~/x.yaml, context "dev": tokenFile ' .. dir
        .. "/token: No such file or directory", select(2, load { path = path }))
      local k = assert(load { path = write("x.yaml", config(nil, "tokenFile: token\ntoken: given")) })
      assert.are.equal("given", str(k.token))
      assert.are.equal(dir .. "/token", str(k.token_file))
      assert.is_nil((load { path = write("x.yaml", config(nil, "tokenFile: token\ntoken: '  '")) }))
    end)

    it("that are bad YAML are named with line and column", function()
      local path = write("x.yaml", "a: [")
      local _, message = load { path = path }
      assert.matches("^kubeconfig ~/x%.yaml:%d+:%d+: not valid YAML", message)
    end)

    it("that are missing everywhere lead to one sentence with the three ways", function()
      local _, message, code = load()
      assert.are.equal("no cluster is configured: name a file with --kubeconfig or KUBECONFIG "
        .. "(there is no ~/.kube/config), or run inside a cluster; --sandbox needs none", message)
      assert.are.equal("ENOTFOUND", code)
      setenv("KUBECONFIG", "/dev/null")
      _, message = load()
      assert.are.equal("no cluster is configured: KUBECONFIG names /dev/null, which does not exist "
        .. "or is empty; name a file with --kubeconfig or KUBECONFIG, or run inside a cluster; --sandbox needs none",
        message)
    end)

    it("of a pod give server, token, CA and namespace", function()
      setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
      setenv("KUBERNETES_SERVICE_PORT", "443")
      write("token", "t\n")
      write("ca.crt", PEM)
      write("namespace", "shop\n")
      local k = C.mw_kubeconfig_pod(dir, unit.err())
      assert.are.equal("https://[fd00::1]:443", str(k.server))
      assert.are.equal(dir .. "/token", str(k.token_file))
      assert.are.equal(dir .. "/ca.crt", str(k.ca_file))
      assert.are.equal("shop", str(k.namespace_))
      assert.are.equal("in-cluster", str(k.origin))
      C.mw_kubeconfig_free(k)
    end)

    it("of a pod that are missing are told apart from being outside of a cluster", function()
      local err = unit.err()
      assert.is_true(C.mw_kubeconfig_in_cluster(err) == nil)
      assert.are.equal(C.MW_ENOTFOUND, err.code)
      setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
      setenv("KUBERNETES_SERVICE_PORT", "443")
      assert.is_true(C.mw_kubeconfig_pod(dir, err) == nil)
      assert.are.equal(C.MW_EAUTH, err.code)
      assert.matches("automountServiceAccountToken", ffi.string(err.message))
    end)
  end)

  describe("as an endpoint", function()
    local function identity(yaml)
      local err = unit.err()
      local e = C.mw_endpoint_new(C.mw_kubeconfig_parse(yaml, #yaml, nil, "test.yaml", nil, err))
      local id = ffi.string(C.mw_endpoint_identity(e))
      C.mw_endpoint_unref(e)
      return id
    end

    it("has the same identity for equal configs, another one for another user, and shows no secret",
      function()
        local a = identity(config(nil, "token: s3cret"))
        assert.are.equal(a, identity(config(nil, "token: s3cret")))
        assert.are_not.equal(a, identity(config(nil, "token: other")))
        assert.are_not.equal(a, identity(config(nil, "token: s3cret\nas: x")))
        assert.are_not.equal(a, identity(config("server: https://h", "token: s3cret")))
        assert.matches("^https://127.0.0.1:6443 as %x+$", a)
      end)

    it("has another identity where a plugin is told something else of the cluster", function()
      local function of(tenant)
        return identity(config("server: https://h\nextensions: [{name: "
          .. "client.authentication.k8s.io/exec, extension: {tenant: " .. tenant .. "}}]",
          "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Never, "
          .. "provideClusterInfo: true}"))
      end
      assert.are.equal(of("a"), of("a"))
      assert.are_not.equal(of("a"), of("b"))
    end)
  end)
end)
