-- Every public name of the Lua API is used by some spec or example. The names come from the binary
-- itself, so a function that is added without a spec fails here.
local run = require "spec.support.run"
local uv = require "luv"

-- Prints "kube name" for a field of kube, "method class:name" for a method.
local names_of_api = [[
  local kube = require "kube"
  local groups = require("kube._groups")
  local function public(name)
    return type(name) == "string" and not name:find("^_") and not groups.groups[name]
      and not groups.refused[name]
  end
  local function fields(prefix, t)
    for name, value in pairs(t) do
      if public(name) then
        print("field", prefix .. "." .. name)
        if type(value) == "table" then fields(prefix .. "." .. name, value) end
      end
    end
  end
  local function methods(class, t)
    for name, value in pairs(t) do
      if public(name) and type(value) == "function" then print("method", class, name) end
    end
  end
  fields("kube", kube)
  fields("sandbox", require "kube.sandbox")
  local factory = kube.shared_informer_factory {}
  local pair = factory:core():v1():pods()
  local informer = pair:informer()
  methods("factory", getmetatable(factory))
  methods("pair", getmetatable(pair))
  methods("informer", getmetatable(informer))
  methods("registration", getmetatable(informer:add_event_handler {}))
  methods("controller", getmetatable(informer:get_controller()))
  methods("reader", require "kube._indexer")
]]

-- What the binary hides behind a metatable, from the sources that define it.
local hidden = { { "lua/kube/_task.lua", "function Stop:([%w_]+)", "stop channel" },
  { "lua/kube/_client.lua", "function Client:([%w_]+)", "client" },
  { "lua/kube/_verbs.lua", "function Session:([%w_]+)", "client" },
  { "core/bind/bind_task.c", '{"([%w_]+)", handle_', "task" } }

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

-- The text of every Lua file below a directory but this one.
local function sources(directory, into)
  for name, kind in uv.fs_scandir_next, assert(uv.fs_scandir(directory)) do
    local path = directory .. "/" .. name
    if kind == "directory" then
      sources(path, into)
    elseif name:find("%.lua$") and name ~= "api_spec.lua" then
      into[#into + 1] = read(path)
    end
  end
  return into
end

describe("the Lua API", function()
  local text = {}
  for _, directory in ipairs { "spec/lua", "spec/helpers", "spec/server", "spec/e2e", "spec/cluster", "examples" } do
    sources(directory, text)
  end
  text = table.concat(text, "\n")

  local function is_used(pattern) return text:find(pattern .. "%f[^%w_]") ~= nil end

  it("has no function that no spec and no example uses", function()
    local config = os.tmpname()
    local file = assert(io.open(config, "w"))
    file:write('{"current-context":"c","contexts":[{"name":"c","context":{"cluster":"s"}}],' ..
      '"clusters":[{"name":"s","cluster":{"server":"http://127.0.0.1:1"}}]}')
    file:close()
    local result = run.run_script(names_of_api, { kubeconfig = config })
    os.remove(config)
    assert.are.equal(0, result.code, result.stderr)

    local count, unused = 0, {}
    for line in result.stdout:gmatch("[^\n]+") do
      local field = line:match("^field\t(.+)$")
      local class, method = line:match("^method\t(.+)\t(.+)$")
      -- Helpers are called without a process, too, where there is no kube before their names.
      local pattern = field and field:gsub("^kube%.(%w+%.)", "%1"):gsub("%.", "%%.") or ":" .. method
      count = count + 1
      if not is_used(pattern) then unused[#unused + 1] = field or class .. ":" .. method end
    end
    for _, place in ipairs(hidden) do
      for method in read(place[1]):gmatch(place[2]) do
        count = count + 1
        if not is_used(":" .. method) then unused[#unused + 1] = place[3] .. ":" .. method end
      end
    end
    assert.are.same({}, unused)
    assert.is_true(count > 60, "only " .. count .. " names were found")
  end)

  it("is looked for by whole names", function()
    assert.is_true(is_used(":wait_for_cache_sync"))
    assert.is_false(is_used(":wait_for_cache_syn"))
    assert.is_false(is_used(":no_such_" .. "method"))
  end)
end)
