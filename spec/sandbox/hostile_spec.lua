-- Hostile requests straight to the instance: every one gets an answer that can be sent, none an error
-- of the sandbox itself.
--
--   MOONWATCH_SEED=n       the seed (1)
--   MOONWATCH_REQUESTS=n   how many requests (20000)
local host = require "spec.support.sandbox_env"
local hostile = require "spec.support.hostile"
local json = require "kube.sandbox.json"
local rig = require "spec.support.sandbox_rig"

local SEED = tonumber(os.getenv("MOONWATCH_SEED")) or 1
local COUNT = tonumber(os.getenv("MOONWATCH_REQUESTS")) or 20000
-- State is as hostile as requests are, so it must not grow without end.
local REQUESTS_PER_BOX = 1000
-- Instructions of the interpreter that one request may take: some seconds.
local PATIENCE = 1e8

local function show(request)
  return ("%s %s\n%s\n%q"):format(request.method, request.target, json.encode(json.object(request.headers)),
    request.body:sub(1, 3000))
end

-- What is wrong with a response, or nil.
local function problem_of(response)
  if response.status < 200 or response.status > 599 then return "status " .. response.status end
  for _, header in ipairs(response.headers) do
    if header[1]:find("[^%w-]") or header[2]:find("[%z\1-\8\10-\31\127]") then
      return ("header %q: %q"):format(header[1], header[2])
    end
  end
  if response.stream then return nil end
  if type(response.body) ~= "string" then return "a body of type " .. type(response.body) end
  if response.body:find("the sandbox failed", 1, true) then return response.body end
end

-- Reads a stream for one turn, then leaves.
local function drain(box, response)
  local leave
  response.stream {
    write = function() return true end,
    finish = function() end,
    reset = function() end,
    on_gone = function(_, fn) leave = fn end,
  }
  box:settle()
  leave()
end

describe("hostile requests", function()
  local log, logged = host.log, nil

  before_each(function()
    logged = nil
    host.log = function(level, message, fields)
      if level == "error" then logged = message .. ": " .. tostring(fields.why) end
    end
  end)
  after_each(function() host.log = log end)

  -- What is wrong with the answer to a request, or nil.
  local function send(box, request)
    debug.sethook(function()
      debug.sethook()
      error("it does not come to an end")
    end, "", PATIENCE)
    local _, problem = xpcall(function()
      local headers = { authorization = "Bearer token" }
      for name, value in pairs(request.headers) do headers[name] = value end
      local response = box.S:handle {
        method = request.method,
        target = request.target,
        header = function(name) return headers[name] end,
        body = request.body,
      }
      local wrong = problem_of(response)
      if response.stream then drain(box, response) else box:settle() end
      return wrong
    end, debug.traceback)
    debug.sethook()
    return logged or problem
  end

  it(("are all answered (seed %d)"):format(SEED), function()
    local source, box = hostile.new(SEED), nil
    for i = 1, COUNT do
      if i % REQUESTS_PER_BOX == 1 then
        host.timers = {}
        box = rig.new { seed = SEED }
      end
      local request = source:next()
      local problem = send(box, request)
      if problem then error(("request %d of seed %d: %s\n%s"):format(i, SEED, problem, show(request)), 0) end
    end
  end)

  it("that once were too much are answered", function()
    local cases = {
      { "POST", "/api/v1/namespaces", '{"apiVersion":{"a":1}}', 400 },
      { "POST", "/api/v1/namespaces", '{"kind":1e999}', 400 },
      { "POST", "/api/v1/namespaces/default/configmaps", '{"metadata":{"name":"a"}}', 201,
        { ["user-agent"] = "\255" } },
      { "PATCH", "/api/v1/namespaces/default/configmaps/b?fieldManager=m", '{"apiVersion":1}', 400,
        { ["content-type"] = "application/apply-patch+yaml" } },
      { "GET", "/apis/apps/v1", "", 406, { accept = "application/json;as=Table;v=v1;g=meta.k8s.io" } },
      { "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "{}", 422 },
      { "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        '{"metadata":{"name":"a.b"},"spec":{"group":"b","scope":"Cluster","names":{"plural":"a","kind":"A"},"versions":'
        .. '[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",'
        .. '"additionalProperties":{"properties":"x"}}}}]}}', 400 },
      { "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        '{"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}', 201,
        { accept = "application/json;as=Table;v=v1;g=meta.k8s.io" } },
    }
    local box = rig.new()
    for _, case in ipairs(cases) do
      local code, document = box:request(case[1], case[2], case[3], case[5])
      assert.equal(case[4], code, ("%s %s: %s"):format(case[1], case[2], json.encode(document)))
      assert.is_nil(logged)
    end
  end)

  it("do not make a definition that somebody else holds go in circles", function()
    local box = rig.new()
    local path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    local schema = { type = "object" }
    box:create(path, { metadata = { name = "as.b.c", finalizers = { "x.y/z" } }, spec = {
      group = "b.c", scope = "Cluster", names = { plural = "as", kind = "A" },
      versions = { { name = "v1", served = true, storage = true, schema = { openAPIV3Schema = schema } } },
    } })
    local before = box.S.store.revision
    assert.equal(200, (box:delete(path .. "/as.b.c")))
    assert.is_true(box.S.store.revision < before + 10)
    assert.same({ "x.y/z" }, select(2, box:get(path .. "/as.b.c")).metadata.finalizers)
  end)
end)
