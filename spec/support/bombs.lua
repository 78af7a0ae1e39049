-- What can go wrong in a script, each in a function of its own, and what is said of it: said[name] = { the line of
-- bombs.lua, the message, of a state with 16 MiB }.
local bombs = {}

bombs.source = [[
local bombs = {}
function bombs.loop()
  while true do end
end
function bombs.swallow()
  while true do pcall(function() while true do end end) end
end
function bombs.handler()
  xpcall(function() error("no") end, function() while true do end end)
end
function bombs.recursion()
  return 1 + bombs.recursion()
end
function bombs.branches()
  pcall(bombs.branches) pcall(bombs.branches)
end
function bombs.hoard()
  local held = {}
  while true do held[#held + 1] = { #held } end
end
function bombs.keep()
  local held = {}
  while true do pcall(function() while true do held[#held + 1] = { #held } end end) end
end
function bombs.double()
  local text = "x"
  while true do text = text .. text end
end
function bombs.replace()
  local text = ("x"):rep(1000000):gsub("x", ("y"):rep(1000))
end
function bombs.join()
  local parts, part = {}, ("x"):rep(1000000)
  for i = 1, 1000 do parts[i] = part end
  local text = table.concat(parts)
end
function bombs.repeated()
  local text = ("x"):rep(1e9)
end
function bombs.coroutines()
  local held = {}
  while true do held[#held + 1] = coroutine.create(function() end) end
end
function bombs.nested()
  coroutine.wrap(bombs.nested)()
end
function bombs.message()
  error(setmetatable({}, { __tostring = function() while true do end end }))
end
return bombs
]]

bombs.said = {
  loop = { 3, "cpu budget exceeded" },
  swallow = { 6, "cpu budget exceeded" },
  handler = { 10, "cpu budget exceeded" },
  recursion = { 12, "stack overflow" },
  branches = { 15, "cpu budget exceeded" },
  hoard = { 19, "memory limit of 16 MiB reached" },
  keep = { 23 },  -- of memory, or of time: whichever ends first
  double = { 27, "memory limit of 16 MiB reached" },
  replace = { 30, "memory limit of 16 MiB reached" },
  join = { 35, "memory limit of 16 MiB reached" },
  repeated = { 38, "string.rep would make a string of 1000000000 bytes" },
  coroutines = { 42, "memory limit of 16 MiB reached" },
  nested = { 45, "coroutines resume one another too deeply" },
  message = { 48, "(an error value of type table, whose __tostring failed)" },
}

-- Those that fill the stack, and the others. LuaJIT loses a finalizer that comes due while there is no room to call it.
bombs.deep = { "branches", "recursion" }
bombs.shallow = { "coroutines", "double", "handler", "hoard", "join", "keep", "loop", "message", "nested", "repeated",
                  "replace", "swallow" }

return bombs
