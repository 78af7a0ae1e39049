-- `moonwatch check` and `moonwatch rbac`: loads scripts, lets nothing of them run, and tells what they declared. The
-- main task of a host without a cluster; here is all of Lua, and kube._core.check.
local core = require "kube._core"
local task = require "kube._task"

local codec, check = core.codec, core.check

-- What one script declared, or nil and the report of why it does not load.
local function look_at(path)
  local script, problem = check.script(path)
  if not script then return nil, problem end
  local ok, declared
  ok, problem = script:load()
  if ok then declared = script:declared() end
  script:stop()
  task.wait_until(function() return script:has_ended() end, nil, "moonwatch check")
  check.forget()
  if not ok then return nil, problem end
  return declared and codec.decode(declared) or {}
end

local function main(_, output, _, ...)
  local code, all = 0, codec.array {}
  for i, path in ipairs { ... } do
    local declared, problem = look_at(path)
    if not declared then code = 1 end
    all[i] = { file = path, ok = declared ~= nil, error = problem, declared = declared }
  end
  if output == "json" then
    print(codec.encode(all))
  else
    for _, one in ipairs(all) do
      print(one.file, one.ok and "ok" or one.error)
      for _, controller in ipairs(one.ok and one.declared.controllers or {}) do
        print(("  controller %s (%s)"):format(controller.name, controller.place))
        print("    reconciles", controller.resource)
      end
    end
  end
  return code
end

task.park("moonwatch check")
core.task.shutdown(main(unpack(check.arguments())))
