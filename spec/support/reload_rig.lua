-- A script in a directory of its own that specs edit while `moonwatch run` runs it against a sandbox.
--
--   local rig = reload_rig.start { ["main.lua"] = text, ["lib/util.lua"] = text }
--   rig:save("main.lua", text)          -- as an editor saves: a new file takes the place of the old one
--   rig:line("^two a$"), rig:stderr("reloaded")    -- wait for output
--   rig:create("a", { v = "1" }), rig:update(...), rig:delete(name)   -- ConfigMaps in the namespace "default"
--   rig:reads()                         -- lists and watches that the server was asked for
--   rig:stop()                          -- SIGTERM; it must end in order
--
-- All is taken down after the spec, whatever became of it.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local run = require "spec.support.run"
local sandbox = require "spec.support.sandbox"
local scrape = require "spec.support.scrape"
local uv = require "luv"

local reload_rig = {}
local Rig = {}
Rig.__index = Rig

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

--- options: args (more of the command line), more (further scripts), entry (what is run, default: main.lua; "" for
--- the directory), env, before (called with the sandbox before the script starts).
function reload_rig.start(files, options)
  options = options or {}
  local self = setmetatable({ directory = assert(uv.fs_mkdtemp("/tmp/mw-reload-XXXXXX")) }, Rig)
  cleanup.later(function() run.sh("rm -rf " .. self.directory) end)
  self.server = sandbox.start()
  cleanup.later(function() self.server:stop() end)
  if options.before then options.before(self.server) end
  for name, text in pairs(files) do self:save(name, text) end
  local entry = options.entry or "main.lua"
  local arguments = { "run", entry == "" and self.directory or self.directory .. "/" .. entry,
    "--kubeconfig", self.server.kubeconfig, unpack(scrape.args) }
  for _, name in ipairs(options.more or {}) do table.insert(arguments, 2, self.directory .. "/" .. name) end
  for _, argument in ipairs(options.args or {}) do arguments[#arguments + 1] = argument end
  self.process = run.start_command(arguments, options)
  cleanup.later(function()
    if not self.process.code then self.process:kill("sigkill") end
  end)
  return self
end

--- Saves a file by renaming, after making its directories.
function Rig:save(name, text)
  local path = self.directory .. "/" .. name
  local folder = path:match("^(.*)/")
  if not uv.fs_stat(folder) then assert(run.sh("mkdir -p " .. folder).code == 0) end
  write(path .. "~", text)
  assert(os.rename(path .. "~", path))
end

function Rig:line(pattern, timeout) return self.process:wait_line(pattern, timeout or 20) end

--- Waits until stderr, from where the last such wait ended, matches.
function Rig:stderr(pattern, timeout)
  local from = self._seen or 1
  local found, last
  uv.update_time()
  local deadline = uv.now() + (timeout or 20) * 1000
  repeat
    found, last = self.process.stderr:find(pattern, from)
    if not found then self.process:ends_within(0.02) end
    uv.update_time()
  until found or self.process.code or uv.now() > deadline
  if not found then error(("no %q on stderr:\n%s"):format(pattern, self.process.stderr:sub(from)), 2) end
  self._seen = last + 1
  return self.process.stderr:sub(found, last)
end

local function path_of(name) return "/api/v1/namespaces/default/configmaps" .. (name and "/" .. name or "") end

local function body(name, data)
  return cjson.encode { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, namespace = "default" },
    data = data }
end

function Rig:create(name, data) return self.server:ask("POST", path_of(), body(name, data or { v = "0" })) end
function Rig:update(name, data) return self.server:ask("PUT", path_of(name), body(name, data)) end
function Rig:delete(name) return self.server:ask("DELETE", path_of(name)) end

function Rig:metrics()
  self._scrape = self._scrape or scrape.of(self.process)
  return self._scrape:metrics()
end

--- Lists and watches that the server was asked for: { ["watch configmaps"] = 1 }.
function Rig:reads()
  local reads = {}
  for _, count in ipairs(cjson.decode(self.server:ask("GET", "/sandbox/v1/requests")).counts) do
    if count.verb == "list" or count.verb == "watch" then
      reads[count.verb .. " " .. count.resource] = count.count
    end
  end
  return reads
end

--- Asks it to stop, and the exit code.
function Rig:stop()
  self.process:kill("sigterm")
  return self.process:wait_exit(30)
end

return reload_rig
