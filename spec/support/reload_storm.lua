-- A script that is reloaded without a pause while pods change all the time.
--
--   local storm = reload_storm.start { keys = 60 }
--   storm:reload()                  -- writes the next revision, asks for it, and waits until it is active
--   storm:status()                  -- what the control socket says
--   storm:settle()                  -- no more changes; waits until the last of them were handled
--   storm:stop()                    -- it must end in order; that it was slow is all that it may complain of
--   storm.ledger                    -- of what the revisions wrote, N counting them from 1 (reload_ledger.lua)
--
-- Whatever waits for something raises as soon as the ledger is wrong, or anything is logged that should not be.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local http_client = require "spec.support.http_client"
local list_watch_server = require "spec.support.list_watch_server"
local reload_ledger = require "spec.support.reload_ledger"
local run = require "spec.support.run"
local script_rig = require "spec.support.script_rig"
local uv = require "luv"

local reload_storm = {}
local Storm = {}
Storm.__index = Storm

local RATE = 5000 -- changes per second, as long as the script keeps up
local AHEAD = 2000 -- so many that it has not written of yet: then the server waits for it
local LIMIT = 120 -- seconds that anything may take
local COMPLAINTS = 200 -- lines on stderr that are kept

local SOURCE = [[
local kube = require "kube"
local N = %d

local pods = kube.informer "v1/pods"
pods:add_event_handler {
  on_add = function(pod, initial)
    local meta = pod.metadata
    print((initial and "replay %%d %%s %%s" or "event %%d ADDED %%s %%s"):format(N, meta.name, meta.resourceVersion))
  end,
  on_update = function(_, pod)
    print(("event %%d MODIFIED %%s %%s"):format(N, pod.metadata.name, pod.metadata.resourceVersion))
  end,
  on_delete = function(pod)
    print(("event %%d DELETED %%s %%s"):format(N, pod.metadata.name, pod.metadata.resourceVersion))
  end,
}

kube.controller {
  name = "storm", resource = "v1/pods", workers = 4,
  reconcile = function(ctx, pod)
    print(("begin %%d %%s %%s"):format(N, ctx.name, pod and pod.metadata.resourceVersion or "gone"))
    kube.sleep(ctx.name:find("^pod%%-%%d$") and 0.05 or 0.002) -- the slow ones let revisions pile up
    print(("end %%d %%s"):format(N, ctx.name))
  end,
}
]]

function Storm:_write(n)
  local file = assert(io.open(self.path .. "~", "w"))
  file:write(SOURCE:format(n))
  file:close()
  assert(os.rename(self.path .. "~", self.path))
end

-- Changes one pod: most changes are updates, some take a pod away that comes back later.
function Storm:_change()
  local name = self.names[self.random(#self.names)]
  local type, version
  if not self.present[name] then
    type, version = "ADDED", self.server:put(name)
  elseif self.random(20) == 1 then
    type, version = "DELETED", self.server:remove(name)
  else
    type, version = "MODIFIED", self.server:put(name)
  end
  self.present[name] = type ~= "DELETED"
  self.ledger:sent(name, type, version)
  self.changes = self.changes + 1
  if self.changes % 1000 == 0 then self.server:expire() end -- no watch is to begin anew
end

-- Whether a line of the log says no more than that the machine is busy.
local function is_slowness(line)
  return line:find('"msg":"slow handler', 1, true) or line:find('"msg":"script ran long', 1, true)
    or line:find('"msg":"applying events is slow', 1, true)
end

-- Calls take with each whole line that was written to a pipe since the last look.
function Storm:_lines(pipe, take)
  local text = self.process[pipe]
  local whole = text:match("^.*\n") or ""
  self.process[pipe] = text:sub(#whole + 1)
  for line in whole:gmatch("[^\n]+") do take(line) end
end

-- Takes what was written since the last look. After the first line that is wrong nothing counts any more.
function Storm:_read()
  self:_lines("stderr", function(line)
    if line:find('"level":"info"', 1, true) then return end
    if #self.complaints < COMPLAINTS then table.insert(self.complaints, line) end
    if not is_slowness(line) then self.wrong = self.wrong or "it complained" end
  end)
  local ok, why = pcall(self._lines, self, "stdout", function(line)
    if not self.wrong then self.ledger:line(line) end
  end)
  if not ok then self.wrong = why end
end

function Storm:_tick()
  self:_read()
  if not self.changing then return end
  local due = (uv.hrtime() - self.since) / 1e9 * RATE - self.changes
  local room = AHEAD - (self.changes - self.ledger.events)
  if due > AHEAD then self.since = uv.hrtime() - (self.changes + AHEAD) / RATE * 1e9 end -- it had to wait
  for _ = 1, math.min(due, room, 200) do self:_change() end
end

function Storm:_fail(why)
  http_client.wait(function() return self.process.code ~= nil end, 1) -- there may be more to read
  self:_read()
  error(("%s, at revision %d, event %d\n%s"):format(why, self.revision, self.ledger.events,
    table.concat(self.complaints, "\n")), 3)
end

--- Turns the loop until condition() holds.
function Storm:wait(condition, what)
  local ok = http_client.wait(function()
    return self.wrong ~= nil or self.process.code ~= nil or condition()
  end, LIMIT)
  if self.wrong then self:_fail(self.wrong) end
  if self.process.code then
    self:_fail(("%s: the process has ended with %d, by signal %d"):format(what, self.process.code, self.process.signal))
  end
  if not ok then self:_fail(what .. ": it did not come true") end
end

-- A linear congruential generator: the same storm each time.
local function generator(seed)
  return function(n)
    seed = (seed * 1103515245 + 12345) % 2147483648
    return math.floor(seed / 65536) % n + 1
  end
end

local function start_process(self)
  self.process = run.start_command({ "run", self.path, "--no-reload", "--control", self.socket, "--kubeconfig",
    script_rig.kubeconfig(self.server:url()), "--log-format", "json" },
    { env = { MOONWATCH_HANDLER_HOLD = tostring(LIMIT) } }) -- order is not a matter of how busy the machine is
  cleanup.later(function()
    if not self.process.code then self.process:kill("sigkill") end
  end)
  self:wait(function() return uv.fs_stat(self.socket) ~= nil end, "the control socket")
  self.control = http_client.new { socket = self.socket }
  cleanup.later(function() self.control:close() end)
end

--- options.keys: how many pods there are.
function reload_storm.start(options)
  local directory = assert(uv.fs_mkdtemp("/tmp/mw-storm-XXXXXX"))
  cleanup.later(function() run.sh("rm -rf " .. directory) end)
  local self = setmetatable({ path = directory .. "/main.lua", socket = directory .. "/control", revision = 1,
    names = {}, present = {}, complaints = {}, changes = 0, random = generator(7) }, Storm)
  self.server = list_watch_server.new()
  cleanup.later(function() self.server:close() end)
  local versions = {}
  for i = 1, options.keys do
    local name = "pod-" .. i
    self.names[i], self.present[name] = name, true
    versions[name] = self.server:put(name)
  end
  self.ledger = reload_ledger.new(versions)
  self:_write(1)
  start_process(self)
  local timer = uv.new_timer()
  cleanup.later(function() timer:close() end)
  self.since = uv.hrtime()
  timer:start(5, 5, function() self:_tick() end)
  self:wait(function() return self.ledger.revision > 0 end, "the first lines")
  self.pid = self:status().pid
  self.since, self.changing = uv.hrtime(), true
  return self
end

function Storm:_ask(method, path)
  local exchange = self.control:send { method = method, path = path }
  self:wait(function() return exchange.done end, method .. " " .. path)
  assert(exchange.status == 200, exchange.body)
  return cjson.decode(exchange.body)
end

function Storm:reload()
  self.revision = self.revision + 1
  self:_write(self.revision)
  local answer = self:_ask("POST", "/reload").scripts[1]
  if answer.result ~= "active" then self:_fail(cjson.encode(answer)) end
end

function Storm:status() return self:_ask("GET", "/status") end

--- How many files the process has open.
function Storm:descriptors()
  local count = 0
  for _ in uv.fs_scandir_next, (assert(uv.fs_scandir(("/proc/%d/fd"):format(self.pid)))) do
    count = count + 1
  end
  return count
end

function Storm:_proc_status(field)
  local file = assert(io.open(("/proc/%d/status"):format(self.pid)))
  local text = file:read("*a")
  file:close()
  return tonumber(text:match("\n" .. field .. ":%s*(%d+)"))
end

--- Its resident memory in KiB.
function Storm:memory() return self:_proc_status("VmRSS") end

function Storm:threads() return self:_proc_status("Threads") end

--- The version that a key has at last: "gone" when there is no such pod.
function Storm:version_of(name)
  return self.present[name] and tostring(self.server.objects["default/" .. name].rv) or "gone"
end

--- Ends the changes and waits until all were handled: each key has been reconciled as it is, and no revision but the
--- last is left.
function Storm:settle()
  self.changing = false
  self:wait(function() return self.ledger.events >= self.changes end, "the last events")
  self:wait(function()
    for _, name in ipairs(self.names) do
      if self.ledger.reconciled[name] ~= self:version_of(name) then return false end
    end
    return true
  end, "the last reconciles")
  repeat until #self:status().scripts[1].retiring == 0
end

function Storm:stop()
  self.process:kill("sigterm")
  local code = self.process:wait_exit(LIMIT)
  self:_read()
  if self.wrong then self:_fail(self.wrong) end
  if code ~= 0 then self:_fail(("it ended with %d"):format(code)) end
end

return reload_storm
