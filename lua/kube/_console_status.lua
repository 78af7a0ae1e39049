-- `moonwatch status`, for people.
local text = require "kube._console_text"

local M = {}

local function line(out, name, fmt, ...) out[#out + 1] = ("  %-10s" .. fmt):format(name, ...) end

local function age(status, at) return text.duration(status.time - at) end

local function put_revision(out, status, script)
  local bytes, files = 0, script.files or {}
  for _, file in ipairs(files) do bytes = bytes + file.bytes end
  if script.revision then
    line(out, "revision", "%s, active for %s (%s, %s)%s", script.revision, age(status, script.active_since),
      text.count(#files, "file"), text.size(bytes), script.probation and ", on probation" or "")
  end
  -- What runs is as it was; what is wrong stands below.
  local state = script.state == "failed" and script.revision and "active, and not what was offered last" or script.state
  line(out, "state", "%s%s", state, script.held_since and (" (reloads held for %s)"):format(
    age(status, script.held_since)) or "")
end

local function put_pending(out, status, script)
  local pending = script.pending
  if not pending then return end
  local failed = script.failure and script.failure.revision == pending.revision
  if pending.revision == "" then
    line(out, "pending", "what is there now cannot be read, %s ago:", age(status, script.failure.at))
  else
    line(out, "pending", "%s, not active because %s", pending.revision, failed
      and ("it failed %s ago:"):format(age(status, script.failure.at)) or pending.why)
  end
  if failed then out[#out + 1] = text.indent(script.failure.report, "    ") end
end

local function put_history(out, script)
  line(out, "reloads", "%d, %d failed%s", script.reloads, script.failures,
    script.watched and "" or "; files that change are left alone")
  if script.history[1] then line(out, "before", "%s", table.concat(script.history, ", ")) end
  if script.bad[1] then line(out, "bad", "%s", table.concat(script.bad, ", ")) end
  if script.retiring[1] then line(out, "ending", "%s", table.concat(script.retiring, ", ")) end
end

local function put_controllers(out, script)
  if script.controllers_error then line(out, "controllers", "%s", script.controllers_error) end
  local rows, notes = {}, {}
  for i, c in ipairs(script.controllers or {}) do
    rows[i] = { c.name, c.resource, c.state, tostring(c.workers), tostring(c.queue.ready), tostring(c.queue.waiting),
      tostring(c.queue.processing), tostring(c.queue.failing) }
    if c.missing then notes[#notes + 1] = ("  %s waits for %s"):format(c.name, c.missing) end
  end
  if not rows[1] then return end
  out[#out + 1] = ""
  for _, row in ipairs(text.table({ "CONTROLLER", "RESOURCE", "STATE", ">WORKERS", ">QUEUED", ">WAITING", ">RUNNING",
    ">FAILING" }, rows, "  ")) do out[#out + 1] = row end
  for _, note in ipairs(notes) do out[#out + 1] = note end
end

local function put_script(out, status, script)
  out[#out + 1] = ""
  out[#out + 1] = script.script
  put_revision(out, status, script)
  put_pending(out, status, script)
  put_history(out, script)
  if script.memory_bytes then
    line(out, "memory", "%s%s, %s", text.size(script.memory_bytes), script.memory_limit_bytes > 0
      and " of " .. text.size(script.memory_limit_bytes) or "", text.count(script.tasks, "task"))
  end
  put_controllers(out, script)
end

--- The lines of a status.
---@param status table what GET /status answered
---@return string[]
function M.lines(status)
  local out = { ("moonwatch %s, process %d"):format(status.version, status.pid) }
  for _, script in ipairs(status.scripts) do put_script(out, status, script) end
  for _, row in ipairs(text.informers(status.informers)) do out[#out + 1] = row end
  local lease = status.lease
  if lease then
    out[#out + 1] = ""
    out[#out + 1] = ("lease %s/%s: %s"):format(lease.namespace, lease.name, lease.leading and "this process leads"
      or lease.holder ~= "" and lease.holder .. " leads" or "nobody leads")
  end
  return out
end

return M
