-- luajit spec/support/bundle_source_child.lua DIR: runs a source of a directory until it has reported a change that
-- it makes itself; prints how many directories were watched. For specs that take inotify away from a process.
local files = require "spec.support.files"
local source_rig = require "spec.support.bundle_source_rig"

local path = arg[1]
local dir = files.at(path)
local rig = source_rig.new(path, { interval = 0.05 }):ready()
print("watches", rig:stats().watches)
for round = 1, 2 do
  dir:write("lib/a.lua", "return " .. round)
  assert(rig:next()["lib.a"] == "return " .. round)
end
print("reports", #rig.reports)
rig:close()
