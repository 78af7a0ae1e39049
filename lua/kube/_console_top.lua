-- `moonwatch top`: what a process does, every second.
local console = require "kube._console"
local text = require "kube._console_text"

local M = {}

local INTERVAL = 1

local function rate(value) return (("%.1f"):format(value):gsub("%.0$", "")) end

local function put_table(out, columns, rows)
  if not rows[1] then return end
  out[#out + 1] = ""
  for _, line in ipairs(text.table(columns, rows, "")) do out[#out + 1] = line end
end

local function put_script(out, script)
  local pending = script.pending and script.pending.revision
  out[#out + 1] = ("%s  %s%s%s"):format(script.script, script.revision and script.revision .. " " or "", script.state,
    pending and pending ~= script.revision and ", pending " .. (pending ~= "" and pending or "unread") or "")
  if not script.memory_bytes then return end
  out[#out] = ("%s  memory %s%s  %s"):format(out[#out], text.size(script.memory_bytes), script.memory_limit_bytes > 0
    and " of " .. text.size(script.memory_limit_bytes) or "", text.count(script.tasks, "task"))
end

local function controller_row(c)
  return { c.name, c.state, rate(c.rates.reconciles), rate(c.rates.errors),
    c.rates.reconciles > 0 and text.duration(c.rates.mean) or "", c.rates.reconciles > 0
    and text.duration(c.rates.longest) or "", tostring(c.queue.ready), tostring(c.queue.waiting),
    ("%d/%d"):format(c.queue.processing, c.workers), tostring(c.queue.failing) }
end

-- The tables about keys: of all controllers, with the name of theirs.
local function put_keys(out, controllers, now)
  local running, failing, slow = {}, {}, {}
  for _, c in ipairs(controllers) do
    for _, one in ipairs(c.running) do
      running[#running + 1] = { text.clean(one.key), c.name, text.duration(one.seconds) }
    end
    for _, one in ipairs(c.failing) do
      failing[#failing + 1] = { text.clean(one.key), c.name, tostring(one.attempt), text.duration(now - one.time),
        text.clean(one.error or one.result) }
    end
    for _, one in ipairs(c.slow) do
      slow[#slow + 1] = { text.clean(one.key), c.name, text.duration(one.duration), text.duration(now - one.time) }
    end
  end
  put_table(out, { "RUNNING", "CONTROLLER", ">FOR" }, running)
  put_table(out, { "FAILING", "CONTROLLER", ">TRIES", ">AGO", "ERROR" }, failing)
  put_table(out, { "SLOWEST", "CONTROLLER", ">TOOK", ">AGO" }, slow)
end

--- The lines of an answer of GET /top.
---@param answer table
---@return string[]
function M.lines(answer)
  local out = { ("moonwatch %s, process %d, %s"):format(answer.version, answer.pid,
    os.date("%H:%M:%S", answer.time)) }
  local controllers, rows = {}, {}
  for _, script in ipairs(answer.scripts) do
    put_script(out, script)
    for _, controller in ipairs(script.controllers or {}) do
      controllers[#controllers + 1] = controller
      rows[#rows + 1] = controller_row(controller)
    end
  end
  put_table(out, { "CONTROLLER", "STATE", ">RUNS/S", ">ERRORS/S", ">MEAN", ">LONGEST", ">QUEUED", ">WAITING",
    ">RUNNING", ">FAILING" }, rows)
  put_keys(out, controllers, answer.time)
  for _, line in ipairs(text.informers(answer.informers)) do out[#out + 1] = line end
  return out
end

-- What fits the window, over what was there before.
local function draw(lines)
  local rows, columns = console.size()
  local out = { "\27[H" }
  for i = 1, math.min(#lines, rows - 1) do out[#out + 1] = text.cut(lines[i], columns) .. "\27[K\r\n" end
  out[#out + 1] = text.cut(#lines > rows - 1 and "the window is too low for all of it; q ends" or "q ends", columns)
    .. "\27[K\27[J"
  io.write(table.concat(out))
  io.flush()
end

--- Redraws until q or Ctrl-C; returns a sentence when there is no answer any more.
---@param look fun(): table?, string
---@return string? problem
function M.run(look)
  console.take()
  io.write("\27[?1049h\27[?25l")
  local ok, problem = pcall(function()
    while true do
      local answer, why = look()
      if not answer then return why end
      draw(M.lines(answer))
      local key = console.key(INTERVAL)
      if key == nil or key == "q" or key == "\3" then return nil end
    end
  end)
  io.write("\27[?25h\27[?1049l")
  io.flush()
  console.give_back()
  if not ok then error(problem, 0) end
  return problem
end

return M
