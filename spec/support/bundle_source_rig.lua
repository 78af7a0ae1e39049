-- A source on a loop of its own that records what it reports. Callbacks from C run on this thread only.
jit.off(true, true)
local unit = require "spec.support.unit"
local uv = require "luv"
local C, ffi = unit.C, unit.ffi

local rig = {}
rig.__index = rig

-- One C callback for all; ctx is the number of the rig.
local rigs, last = {}, 0
local on_report = ffi.cast("mw_bundle_source_cb", function(ctx, bundle, err)
  local self = rigs[tonumber(ffi.cast("intptr_t", ctx))]
  local report = {}
  if bundle == nil then
    report.error = ffi.string(err.message)
  else
    report.revision = ffi.string(C.mw_bundle_revision(bundle))
    for i = 0, tonumber(C.mw_bundle_count(bundle)) - 1 do
      local file = C.mw_bundle_at(bundle, i)
      report[ffi.string(file.name)] = ffi.string(file.text, file.size)
    end
  end
  self.reports[#self.reports + 1] = report
  if self.on_report then self.on_report(report) end
end)

--- A source of path that knows what is there, unless known = false. options: fields of the config.
function rig.new(path, options)
  last = last + 1
  local self = setmetatable({ reports = {}, loop = C.mw_loop_new("spec") }, rig)
  rigs[last] = self
  local config = ffi.new("struct mw_bundle_source_config", { path = path })
  local known
  options = options or {}
  if options.known ~= false then
    local err = unit.err()
    known = C.mw_bundle_read(path, err)
    assert(known ~= nil, ffi.string(err.message))
    config.known = known
  end
  for name, value in pairs(options) do if name ~= "known" then config[name] = value end end
  self.source = C.mw_bundle_source_new(self.loop, config, on_report, ffi.cast("void *", last))
  C.mw_bundle_unref(known)
  return self
end

--- Turns the loop until done() is true; fails after a very long time.
function rig:until_true(done, what)
  local stop = uv.hrtime() + 60e9
  while not done() do
    assert(uv.hrtime() < stop, what or "it does not come")
    C.mw_loop_turn(self.loop, 10)
  end
end

function rig:stats()
  local stats = ffi.new("struct mw_bundle_source_stats")
  C.mw_bundle_source_stats(self.source, stats)
  return { watches = tonumber(stats.watches), readings = tonumber(stats.readings) }
end

--- Waits for so many readings more than there were.
function rig:read_again(count)
  local before = self:stats().readings
  self:until_true(function() return self:stats().readings >= before + (count or 1) end, "it does not read")
end

--- Waits until the source has read for the first time, and so watches.
function rig:ready()
  self:until_true(function() return self:stats().readings > 0 end, "it does not read")
  return self
end

--- The next report.
function rig:next(what)
  local seen = self.seen or 0
  self:until_true(function() return #self.reports > seen end, what or "it reports nothing")
  self.seen = seen + 1
  return self.reports[self.seen]
end

function rig:close()
  C.mw_bundle_source_free(self.source)
  C.mw_loop_free(self.loop)
end

return rig
