-- A program for a worker (spec/unit/worker_spec.lua), in the worker's own state and thread. What it
-- does is said by its options; what it saw can be asked for over HTTP.
local host = require "kube._server"

local program = {}
local seen = {}

local routes = {}

function routes.echo(x)
  x:reply(200, { { "Content-Type", "text/plain" }, { "X-Asked", x:header("x-ask") or "none" } },
    x.method .. " " .. x.target .. " " .. x.body)
end

function routes.seen(x) x:reply(200, nil, table.concat(seen, ",")) end

function routes.options(x) x:reply(200, {}, host.codec.encode_sorted(host.options)) end

function routes.fail() error("as asked") end

function routes.fail_late(x)
  x:start(200)
  x:write("part")
  error("in the middle")
end

function routes.later(x)
  host.after(0.01, function()
    seen[#seen + 1] = "later"
    x:reply(200, {}, "late")
  end)
end

function routes.fail_in_timer(x)
  host.after(0, function() error("in a timer") end)
  x:reply(200, {}, "")
end

function routes.stream(x)
  x:on_gone(function()
    seen[#seen + 1] = ("gone:%s,%s,%s"):format(tostring(x:write("x")), tostring(x:finish()), tostring(x:reply(200)))
    error("also in on_gone")
  end)
  x:start(200, { { "Content-Type", "text/plain" } })
  x:write("hello ")
  x:write("")
  x:write("world")
end

function routes.finish(x)
  x:start(200)
  assert(x:write("a"))
  assert(x:finish())
  seen[#seen + 1] = ("finished:%s,%s,%s"):format(tostring(x:write("b")), tostring(x:finish()), tostring(x:reset()))
  seen[#seen + 1] = tostring(x:header("x-ask"))
  seen[#seen + 1] = tostring(x:on_gone(function() end))
end

function routes.reset(x) x:reset() end

-- A megabyte at a time, whenever the last one is gone.
function routes.drain(x)
  local left = 8
  local function more()
    if left == 0 then return x:finish() end
    left = left - 1
    x:write(("x"):rep(1024 * 1024))
  end
  x:start(200)
  x:on_drain(more)
  more()
end

function routes.misuse(x)
  local function try(name, f, ...)
    local ok, message = pcall(f, ...)
    seen[#seen + 1] = name .. ":" .. tostring(ok) .. ":" .. tostring(message):gsub("^.-:%d+: ", "")
  end
  try("write", x.write, x, "early")
  try("header", x.reply, x, 200, { { "A", "b\r\nC: d" } }, "")
  try("own", x.reply, x, 200, { { "content-length", "5" } }, "")
  try("status", x.reply, x, 99, {}, "")
  x:reply(200, {}, "")
  try("twice", x.reply, x, 200, {}, "")
  try("other", x.write, "not an exchange")
end

function routes.cancel(x)
  local timer = host.after(0.01, function() seen[#seen + 1] = "not cancelled" end)
  timer:cancel()
  timer:cancel()
  host.after(0.03, function() x:reply(200, {}, "done") end)
end

function routes.garbage(x)
  for _ = 1, 50 do host.after(0, function() seen[#seen + 1] = "t" end) end
  collectgarbage()
  host.after(0.02, function() x:reply(200, {}, tostring(#seen)) end)
end

function routes.log(x)
  host.log("info", "from the program", { field = 1 })
  x:reply(200, {}, "")
end

local function serve(tls)
  return host.listen {
    tls = tls,
    body_max = 1000,
    oversize_body = "too much",
    oversize_type = "text/x-oversize",
    on_request = function(x)
      local route = routes[x.target:match("^/([%w_]*)")]
      if not route then return x:reply(404, {}, "") end
      route(x)
    end,
  }
end

function program.run()
  local options = host.options
  if options.fail then error(options.fail, 0) end
  if options.hang then
    host.after(3600, function() end)
    return nil
  end
  local certificate = options.tls and host.certificate { "127.0.0.1" }
  local server = serve(certificate)
  if options.again then pcall(host.listen, { port = server:port(), on_request = print }) end
  host.after(3600, function() end)
  host.ready { url = ("http://127.0.0.1:%d"):format(server:port()), ca = certificate and certificate.ca or "",
    data = tostring(host.data("version.json")) }
  return function()
    if options.at_end then
      local file = assert(io.open(options.at_end, "w"))
      file:write("the end")
      file:close()
    end
    if options.fail_at_end then error("at the end") end
    if options.close then server:close(0) end
  end
end

return program
