-- The commands that operate a running process, while it works against an API server (see spec/support/cluster.lua).
local cleanup = require "spec.support.cleanup"
local cluster = require "spec.support.cluster"
local control_rig = require "spec.support.control_rig"
local uv = require "luv"

-- Answers each ConfigMap that has a question with another one.
local function script(namespace, word)
  return ([[
kube.controller {
  name = "answers", resource = "v1/configmaps", namespaces = { "%s" }, workers = 2,
  retry = { base = 3600, max = 3600 },
  reconcile = function(ctx, map)
    local question = map and kube.get(map, "data.question")
    if question == "why" then error("nobody knows") end
    if not question then return end
    ctx.client:apply { apiVersion = "v1", kind = "ConfigMap", data = { answer = "%s" },
      metadata = { name = "to-" .. ctx.name, namespace = ctx.namespace } }
  end,
}
]]):format(namespace, word)
end

describe("a process that works against an API server", function()
  cluster.install()
  cleanup.install()
  local rig, namespace

  -- Repeats until what ask() returns matches; that.
  local function wait_for(pattern, ask)
    local last
    for _ = 1, 300 do
      last = ask()
      if last:find(pattern) then return last end
      uv.sleep(100)
    end
    error(("no %q in:\n%s"):format(pattern, last), 2)
  end

  local function ask_question(name, question)
    cluster.kubectl(("create configmap %s -n %s --from-literal=question=%s"):format(name, namespace, question))
  end

  local function answer_is(word)
    local command = "get configmap to-web --ignore-not-found -o jsonpath={.data.answer} -n " .. namespace
    wait_for("^" .. word .. "$", function() return cluster.kubectl(command) end)
  end

  -- What a command prints; it must succeed.
  local function says(...)
    local out, err, code = rig:moonwatch(...)
    assert.equal("", err)
    assert.equal(0, code)
    return out
  end

  before_each(function()
    namespace = cluster.namespace()
    rig = control_rig.new()
    rig:run({ ["main.lua"] = script(namespace, "one") }, { rig.scripts, "--no-reload", "--kubeconfig",
      cluster.kubeconfig })
    rig:status_when(function(s)
      local controller = (s.scripts[1].controllers or {})[1]
      return controller and controller.state == "running"
    end)
    ask_question("web", "what")
    answer_is "one"
  end)

  it("tells what it does, and what became of an object", function()
    local status = says "status"
    assert.matches("\n  answers +v1/configmaps +running +2 ", status)
    assert.matches("\nv1/configmaps in " .. namespace .. " +yes +%d", status)

    local web = namespace .. "/web"
    local version = cluster.kubectl("get configmap web -o jsonpath={.metadata.resourceVersion} -n " .. namespace)
    local why = says("why", web)
    assert.matches("answers, for v1/configmaps %(.-main%.lua:1, revision %x+%)", why)
    assert.matches("object  in the cache, resourceVersion " .. version, why, 1, true)
    assert.matches("%d%d:%d%d:%d%d  success +1 ", why)
    assert.matches("wrote: apply v1/configmaps " .. namespace .. "/to-web\n", why, 1, true)

    ask_question("strange", "why")
    local strange = namespace .. "/strange"
    why = wait_for("nobody knows", function() return (rig:moonwatch("why", strange)) end)
    assert.matches("%d%d:%d%d:%d%d  error +1 .*main%.lua:6: nobody knows", why)
    local top = says("top", "--once")
    assert.matches("\nFAILING +CONTROLLER +TRIES +AGO +ERROR\n" .. strange:gsub("%-", "%%-")
      .. " +answers +1 +%S+ +%S*main%.lua:6: nobody knows", top)

    local _, err, code = rig:moonwatch("why", namespace .. "/nobody")
    assert.equal(1, code)
    assert.matches("no controller knows '" .. namespace .. "/nobody'", err, 1, true)
  end)

  it("reconciles an object when it is told to", function()
    cluster.kubectl(("delete configmap to-web -n %s"):format(namespace))
    -- The cache must have seen that. What was written less than half a second ago may count as vanished, and then
    -- be written again before anybody asks for it.
    rig:until_json(function(answer)
      for _, run in ipairs(answer.scripts[1].controllers[1].runs) do
        if run.reasons[1] == "delete v1/configmaps" then return true end
      end
    end, "why", namespace .. "/to-web")
    assert.matches("is queued for answers\n", says("enqueue", "answers", namespace .. "/web"), 1, true)
    wait_for("success +1 [^\n]* enqueue\n", function() return says("why", namespace .. "/web") end)
    answer_is "one"
    local _, err, code = rig:moonwatch("enqueue", "answer", namespace .. "/web")
    assert.equal(1, code)
    assert.matches("there is no controller 'answer' (did you mean 'answers'?)", err, 1, true)
  end)

  it("takes another revision, refuses a broken one, and goes back", function()
    local first = rig:json("status").scripts[1].revision
    rig:write("main.lua", script(namespace, "two"))
    assert.matches("is active, in place of " .. first .. "\n", says "reload", 1, true)
    answer_is "two"
    local second = rig:json("status").scripts[1].revision

    rig:write("main.lua", (script(namespace, "three"):gsub("workers", "workres")))
    local _, err, code = rig:moonwatch("reload")
    assert.equal(1, code)
    assert.matches("failed, and " .. second .. " goes on:\n", err, 1, true)
    assert.matches("main%.lua:1: kube%.controller has no option 'workres' %(did you mean 'workers'%?%)", err)
    local pending = says "status"
    assert.matches("revision  " .. second .. ", active for ", pending, 1, true)
    assert.matches("not active because it failed [^\n]* ago:\n +%S*main%.lua:1: kube%.controller has no", pending)

    assert.matches("revision " .. first .. " is active, in place of " .. second .. "\n", says "rollback", 1, true)
    answer_is "one"
    -- What became of a key is told of all revisions that worked on it.
    local why = says("why", namespace .. "/web")
    assert.matches("revision " .. first, why, 1, true)
    assert.matches(second, why, 1, true)
  end)
end)
