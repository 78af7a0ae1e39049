-- What a real server would do because of other objects, and the sandbox does not, it says.
require "spec.support.sandbox_env"
local coverage_status = require "kube.sandbox.coverage_status"
local rig = require "spec.support.sandbox_rig"

local CORE = "/api/v1/namespaces/default/"
local ADMISSION = "/apis/admissionregistration.k8s.io/v1/"

local function warnings(response)
  local found = {}
  for _, header in ipairs(response.headers) do
    if header[1] == "Warning" then found[#found + 1] = header[2]:match('^299 %- "(.*)"$') end
  end
  return found
end

describe("the sandbox says what it does not enforce", function()
  local box
  before_each(function() box = rig.new { seed = 3 } end)

  local function post(path, body)
    local code, document, response = box:post(path, body)
    assert.equal(201, code, document.message)
    return warnings(response)
  end

  local function pod(name) return { metadata = { name = name }, spec = { containers = { { name = "a",
    image = "i" } } } } end

  it("to who writes something that restrains others", function()
    assert.same({ "sandbox: Role.rbac.authorization.k8s.io is stored, not enforced" },
      post("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", { metadata = { name = "a" } }))
    assert.same({ "sandbox: LimitRange is checked against its schema only",
      "sandbox: LimitRange is stored, not enforced" },
      post(CORE .. "limitranges", { metadata = { name = "a" }, spec = { limits = { { type = "Pod",
        max = { cpu = "1" } } } } }))
    assert.same({ "sandbox: checked against its schema only: spec.hard",
      "sandbox: ResourceQuota is stored, not enforced" },
      post(CORE .. "resourcequotas", { metadata = { name = "a" }, spec = { hard = { pods = "1" } } }))
  end)

  it("of quotas, to who creates what they count", function()
    post(CORE .. "resourcequotas", { metadata = { name = "few" }, spec = { hard = { ["requests.cpu"] = "1",
      ["count/deployments.apps"] = "1", services = "1" } } })
    assert.same({ "sandbox: not enforced: the quota few" }, post(CORE .. "pods", pod "a"))
    assert.same({ "sandbox: not enforced: the quota few" },
      post(CORE .. "services", { metadata = { name = "a" }, spec = { ports = { { port = 80 } } } }))
    assert.same({ "sandbox: not enforced: the quota few" }, post("/apis/apps/v1/namespaces/default/deployments", {
      metadata = { name = "a" }, spec = { selector = { matchLabels = { a = "b" } }, template = { metadata = {
        labels = { a = "b" } }, spec = pod("a").spec } } }))
    assert.same({}, post(CORE .. "configmaps", { metadata = { name = "a" } }))
    post("/api/v1/namespaces", { metadata = { name = "other" } })
    assert.same({}, post("/api/v1/namespaces/other/pods", pod "a"))
    local _, _, changed = box:merge(CORE .. "pods/a", { metadata = { labels = { l = "1" } } })
    assert.same({}, warnings(changed))
  end)

  it("of limits and levels of security, to who creates pods and claims", function()
    post(CORE .. "limitranges", { metadata = { name = "small" }, spec = { limits = { { type = "Container",
      max = { cpu = "1" } } } } })
    box:merge("/api/v1/namespaces/default", { metadata = { labels = {
      ["pod-security.kubernetes.io/enforce"] = "restricted" } } })
    assert.same({ "sandbox: not enforced: the limit range small, the pod security level restricted" },
      post(CORE .. "pods", pod "a"))
    assert.same({}, post(CORE .. "persistentvolumeclaims", { metadata = { name = "a" }, spec = {
      accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } } } }))
  end)

  local function webhook(rule, more)
    local one = { name = "w.example.com", sideEffects = "None", admissionReviewVersions = { "v1" },
      clientConfig = { url = "https://127.0.0.1/" }, rules = { rule } }
    for key, value in pairs(more or {}) do one[key] = value end
    return { metadata = { name = "w" }, webhooks = { one } }
  end

  it("of webhooks, to whose writes they would be asked about", function()
    post(ADMISSION .. "validatingwebhookconfigurations", webhook({ apiGroups = { "" }, apiVersions = { "v1" },
      operations = { "CREATE", "DELETE" }, resources = { "configmaps" } },
      { objectSelector = { matchLabels = { watched = "yes" } } }))
    assert.same({}, post(CORE .. "configmaps", { metadata = { name = "a" } }))
    assert.same({}, post(CORE .. "secrets", { metadata = { name = "a", labels = { watched = "yes" } } }))
    local told = { "sandbox: not enforced: the webhook w.example.com" }
    assert.same(told, post(CORE .. "configmaps", { metadata = { name = "b", labels = { watched = "yes" } } }))
    local _, _, changed = box:merge(CORE .. "configmaps/b", { data = { k = "v" } })
    assert.same({}, warnings(changed))
    local _, _, deleted = box:delete(CORE .. "configmaps/b")
    assert.same(told, warnings(deleted))
  end)

  it("of webhooks for parts of objects", function()
    post(ADMISSION .. "mutatingwebhookconfigurations", webhook { apiGroups = { "*" }, apiVersions = { "*" },
      operations = { "*" }, resources = { "*/status" } })
    assert.same({}, post(CORE .. "pods", pod "a"))
    local _, _, status = box:merge(CORE .. "pods/a/status", { status = { phase = "Running" } })
    assert.same({ "sandbox: not enforced: the webhook w.example.com" }, warnings(status))
  end)

  it("of policies that are bound", function()
    post(ADMISSION .. "validatingadmissionpolicies", { metadata = { name = "p" }, spec = {
      matchConstraints = { resourceRules = { { apiGroups = { "" }, apiVersions = { "v1" }, operations = { "CREATE" },
        resources = { "configmaps" } } } }, validations = { { expression = "false" } } } })
    assert.same({}, post(CORE .. "configmaps", { metadata = { name = "a" } }))
    post(ADMISSION .. "validatingadmissionpolicybindings", { metadata = { name = "b" }, spec = { policyName = "p",
      validationActions = { "Deny" } } })
    assert.same({ "sandbox: not enforced: the policy p" }, post(CORE .. "configmaps", { metadata = { name = "b" } }))
  end)

  it("and what of a status had its schema only", function()
    post(CORE .. "pods", pod "a")
    local _, _, known = box:merge(CORE .. "pods/a/status", { status = { phase = "Running", podIP = "10.0.0.1" } })
    assert.same({}, warnings(known))
    local _, _, unknown = box:merge(CORE .. "pods/a/status", { status = { resourceClaimStatuses = { { name = "x",
      resourceClaimName = "y" } } } })
    assert.same({ "sandbox: checked against its schema only: status.resourceClaimStatuses" }, warnings(unknown))
  end)

  it("for every built-in kind that has rules and a status", function()
    local count = 0
    for _, R in ipairs(box.S.kinds:all()) do
      local plain = require("kube.sandbox.strategies.unchecked").of(R)
      local ruled = R.builtin and R.subresources.status and R.strategy and R.strategy.validate
        and string.dump(R.strategy.validate) ~= string.dump(plain.validate)
      if ruled then
        count = count + 1
        assert.is_truthy(coverage_status[R.storage], R.storage)
      end
    end
    assert.is_true(count > 12)
  end)
end)
