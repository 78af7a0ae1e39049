local unit = require "spec.support.unit"
local objects = require "spec.support.objects"
local C, ffi, slice = unit.C, unit.ffi, objects.slice

local function parse(text)
  local r, err = ffi.new("struct mw_resource"), unit.err()
  if C.mw_resource_parse(slice(text), r, err) < 0 then return nil, ffi.string(err.message) end
  return r
end

local function name(r)
  local out = ffi.new("char[600]")
  C.mw_resource_name(r, out, 600)
  return ffi.string(out)
end

local function path(text, ns)
  local b = objects.buf()
  assert.equal(0, C.mw_resource_path(assert(parse(text)), slice(ns), b))
  return unit.str(ffi.new("struct mw_slice", { b.p, b.n }))
end

describe("resource", function()
  it("is read from its one name and gives it back", function()
    for _, text in ipairs { "v1/pods", "apps/v1/deployments", "coordination.k8s.io/v1/leases",
                            "example.com/v1alpha1/widgets", "a-b.c-d.example/v2beta10/my-things",
                            "example.com/stable/widgets" } do
      assert.equal(text, name(assert(parse(text))))
    end
    local r = parse "apps/v1/deployments"
    assert.equal("apps", ffi.string(r.group))
    assert.equal("v1", ffi.string(r.version))
    assert.equal("deployments", ffi.string(r.plural))
    assert.equal("", ffi.string(parse("v1/pods").group))
  end)

  it("is of a group of Kubernetes itself, or of one that has definitions", function()
    local groups = require "kube._groups"
    local function is_own(group) return C.mw_group_is_own(slice(group)) end
    for _, known in pairs(groups.groups) do assert.is_true(is_own(known.group), known.group) end
    for group in pairs(groups.removed) do assert.is_true(is_own(group), group) end
    for _, group in ipairs { "", "apps", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
                             "lifecycle.k8s.io" } do
      assert.is_true(is_own(group), group)
    end
    for _, group in ipairs { "example.com", "k8s.io", "gateway.networking.k8s.io", "snapshot.storage.k8s.io",
                             "metrics.k8s.io", "x.apps", "networking.k8s.i", "networking.k8s.io." } do
      assert.is_false(is_own(group), group)
    end
  end)

  it("is in a namespace that can be one, or in all", function()
    local function refusal(ns)
      local err = unit.err()
      return C.mw_namespace_check(slice(ns), err) < 0 and ffi.string(err.message) or nil
    end
    for _, ns in ipairs { "", "a", "1", "kube-system", "a--b", ("a"):rep(63) } do assert.is_nil(refusal(ns)) end
    for _, ns in ipairs { "A", "a/b", "a.b", "-a", "a-", "-", "a b", "ä", "a\0", ("a"):rep(64) } do
      assert.is_truthy(refusal(ns):find("cannot be a namespace: write at most 63 lower-case letters", 1, true))
    end
  end)

  it("has a path under /api for the core group and under /apis for the others", function()
    assert.equal("/api/v1/pods", path("v1/pods", ""))
    assert.equal("/api/v1/namespaces/prod/pods", path("v1/pods", "prod"))
    assert.equal("/apis/apps/v1/deployments", path("apps/v1/deployments", ""))
    assert.equal("/apis/apps/v1/namespaces/prod/deployments", path("apps/v1/deployments", "prod"))
  end)

  it("keeps a namespace inside its path segment", function()
    assert.equal("/api/v1/namespaces/a%2F..%3Fx/pods", path("v1/pods", "a/..?x"))
  end)

  it("tells what to write instead of a bare noun or a kind", function()
    local hints = {
      pods = "v1/pods", Pod = "v1/pods", POD = "v1/pods", deployment = "apps/v1/deployments",
      ["v1/Pod"] = "v1/pods", ["apps/deployments"] = "apps/v1/deployments",
      ["apps/v1/Deployment"] = "apps/v1/deployments", ["core/v1/pods"] = "v1/pods",
      ["v1/pods/status"] = "v1/pods", Ingress = "networking.k8s.io/v1/ingresses",
    }
    for text, hint in pairs(hints) do
      local r, message = parse(text)
      assert.is_nil(r, text)
      assert.is_truthy(message:find(('write "%s"'):format(hint), 1, true), text .. ": " .. message)
    end
  end)

  it("shows the form when it does not know the noun", function()
    local _, message = parse "widgets"
    assert.is_truthy(message:find('"widgets" is not a resource: it lacks a version', 1, true), message)
    assert.is_truthy(message:find('"apps/v1/deployments"', 1, true))
  end)

  it("refuses whatever could leave its place in a URL", function()
    for _, text in ipairs { "", "/", "v1/", "/pods", "v1//pods", "a/b/c/d", "v1/pods/x/y", "v1/po ds",
                            "v1/pods?x=1", "v1/..", "../v1/pods", "v1/pods#", "v1/pods%2F", "v1/-pods",
                            "v1/pods-", "ex_ample/v1/pods", ".com/v1/pods", "a..b/v1/pods", "a./v1/pods",
                            "a.-b/v1/pods", "apps/V1/deployments", "v1/p\0ds", "v1/pöds",
                            ("a"):rep(254) .. "/v1/pods", "a/" .. ("v"):rep(64) .. "/pods",
                            "v1/" .. ("p"):rep(254) } do
      local r, message = parse(text)
      assert.is_nil(r, text)
      assert.is_truthy(message:find("is not a resource", 1, true))
    end
  end)
end)

describe("query escaping", function()
  it("leaves only unreserved characters as they are", function()
    local b = objects.buf()
    assert.equal(0, C.mw_query_escape(slice "aZ09-_.~ =&,!/%+ä", b))
    assert.equal("aZ09-_.~%20%3D%26%2C%21%2F%25%2B%C3%A4", ffi.string(b.p))
  end)
end)
