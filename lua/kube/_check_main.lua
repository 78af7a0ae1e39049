-- `moonwatch check` and `moonwatch rbac`: loads scripts, lets nothing of them run, and tells what they declared. The
-- main task of a host without a cluster; here is all of Lua, and kube._core.check.
local core = require "kube._core"
local problem = require "kube._check_problem"
local rbac = require "kube._rbac"
local report = require "kube._check_report"
local task = require "kube._task"

local codec, check = core.codec, core.check

local EMPTY = "declares nothing: no kube.controller, no informer, no timer, no task; a script that only defines things "
  .. "is checked with the one that requires it"

-- Loads a script and lets go of it. What it declared, or nil and why it does not load: a list.
local function load_script(path)
  local script, failure = check.script(path)
  if not script then return nil, problem.read(failure) end
  local ok, text
  ok, failure = script:load()
  if ok then text = script:declared() end
  script:stop()
  task.wait_until(function() return script:has_ended() end, nil, "moonwatch check")
  check.forget()
  if not ok then return nil, problem.read(failure) end
  return text and codec.decode(text) or {}
end

-- Queues that a controller has need no mention of their own.
local function drop_controllers_queues(declared)
  local names, kept = {}, codec.array {}
  for _, controller in ipairs(declared.controllers) do names[controller.name] = true end
  for _, queue in ipairs(declared.queues) do
    if not names[queue.name] then table.insert(kept, queue) end
  end
  declared.queues = kept
end

local function is_empty(declared)
  for _, list in pairs(declared) do
    if #list > 0 then return false end
  end
  return true
end

local function look_at(path)
  local declared, problems = load_script(path)
  if declared and is_empty(declared) then
    declared, problems = nil, codec.array { { message = ("%s %s"):format(path, EMPTY) } }
  end
  if not declared then return { file = path, ok = false, errors = problems } end
  drop_controllers_queues(declared)
  return { file = path, ok = true, errors = codec.array {}, declared = declared }
end

-- The name of a role: that of the first script.
local function name_of(path)
  local name = path:gsub("/+$", ""):gsub("%.lua$", "")
  local folder, base = name:match("([^/]*)/([^/]*)$")
  if base == "init" or base == "main" then name = folder end
  name = name:match("[^/]*$"):lower():gsub("[^a-z0-9.-]+", "-"):gsub("^[^a-z0-9]+", ""):gsub("[^a-z0-9]+$", "")
  return name ~= "" and name or "moonwatch"
end

local function write(text)
  local ok, failure = io.stdout:write(text)
  if ok then ok, failure = io.stdout:flush() end
  if not ok then io.stderr:write("moonwatch: cannot print: ", failure, "\n") end
  return ok
end

local function tell_checked(all, name, namespace, output)
  for _, one in ipairs(all) do
    if one.ok then
      one.roles = rbac.roles({ one.declared }, name or name_of(one.file), namespace)
      one.unknown = rbac.unknown { one.declared }
    end
  end
  return write(output == "json" and codec.encode(all) .. "\n" or report.text(all))
end

local function tell_roles(all, name, namespace, output)
  local declared = {}
  for _, one in ipairs(all) do declared[#declared + 1] = one.declared end
  local roles, unknown = rbac.roles(declared, name or name_of(all[1].file), namespace), rbac.unknown(declared)
  if output ~= "json" then return write(report.yaml(roles, unknown)) end
  for _, note in ipairs(unknown) do io.stderr:write("moonwatch: cannot be known, add rules for it: ", note, "\n") end
  return write(codec.encode({ apiVersion = "v1", kind = "List", items = roles }) .. "\n")
end

local function main(command, output, name, ...)
  local all, ok = codec.array {}, true
  for i, path in ipairs { ... } do
    all[i] = look_at(path)
    ok = ok and all[i].ok
  end
  name = name ~= "" and name or nil
  local namespace = core.informer.default_namespace()
  if command == "rbac" and not ok then
    io.stderr:write((report.problems(all)))
  else
    ok = (command == "rbac" and tell_roles or tell_checked)(all, name, namespace, output) and ok
  end
  return ok and 0 or 1
end

task.park("moonwatch check")
core.task.shutdown(main(unpack(check.arguments())))
