-- Who may ask the sandbox, and what it says of names and watches that cannot be.
require "spec.support.sandbox_env"
local ip = require "kube.sandbox.ip"
local rig = require "spec.support.sandbox_rig"

local TABLE = { accept = "application/json;as=Table;v=v1;g=meta.k8s.io" }

describe("the sandbox", function()
  local box
  before_each(function() box = rig.new { seed = 9 } end)

  local function refusal(authorization, target)
    local code, document = box:request("GET", target, nil, { authorization = authorization })
    return code, document.message
  end

  it("knows nobody without a token, and no other token than its own", function()
    assert.same({ 403, 'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the '
      .. 'namespace "a"' }, { refusal("", "/api/v1/namespaces/a/pods") })
    assert.same({ 403, 'deployments.apps "d" is forbidden: User "system:anonymous" cannot get resource '
      .. '"deployments/scale" in API group "apps" in the namespace "a"' },
      { refusal("", "/apis/apps/v1/namespaces/a/deployments/d/scale") })
    assert.same({ 403, 'forbidden: User "system:anonymous" cannot get path "/api"' }, { refusal("", "/api") })
    assert.same({ 401, "Unauthorized" }, { refusal("Bearer other", "/api") })
    assert.equal(200, (box:request("GET", "/version", nil, { authorization = "" })))
  end)

  it("says which resources cannot be watched", function()
    local code, document, response = box:get "/api/v1/componentstatuses?watch=1"
    assert.equal(405, code)
    assert.equal('watch is not supported on resources of kind "componentstatuses"', document.message)
    local warned
    for _, header in ipairs(response.headers) do warned = warned or header[1] == "Warning" and header[2] end
    assert.equal('299 - "v1 ComponentStatus is deprecated in v1.19+"', warned)
  end)

  it("shows a bookmark as a row of nothing to who watches tables", function()
    local events = box:watch("/api/v1/namespaces/kube-public/secrets?watch=1&allowWatchBookmarks=true", TABLE)
    assert.equal("BOOKMARK", events[1].type)
    assert.same({ "", "", 0, "<unknown>" }, events[1].object.rows[1].cells)
  end)

  it("takes addresses for names only in the form in which they are written", function()
    for _, good in ipairs { "10.0.0.1", "::", "::1", "2001:db8::1", "1:2:3:4:5:6:7:8", "1:0:0:2::3" } do
      assert.is_nil(ip.problem(good), good)
    end
    for text, problem in pairs {
      ["010.0.0.1"] = "must not have leading 0s",
      ["2001:DB8:0::1"] = 'must be in canonical form ("2001:db8::1")',
      ["0:0:0:0:0:0:0:0"] = 'must be in canonical form ("::")',
      ["1:0:0:2:0:0:0:3"] = 'must be in canonical form ("1:0:0:2::3")',
      ["::ffff:10.0.0.1"] = "must not be an IPv4-mapped IPv6 address",
    } do
      assert.equal(problem, ip.problem(text), text)
    end
    for _, bad in ipairs { "", "nope", "1.2.3", "1.2.3.256", ":1", "1::2::3", "1:2:3:4:5:6:7::8", "12345::" } do
      assert.equal("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)", ip.problem(bad), bad)
    end
  end)
end)
