-- What a running script tells of itself to those who operate it (core/script/operate.h): each function takes texts and
-- returns JSON, or nil and a sentence. None awaits.
local controllers = require "kube._controller"
local core = require "kube._core"

local codec = core.codec
local M = {}

-- The controllers of this script, by name.
local function each()
  local names = {}
  for name in pairs(controllers.by_name) do names[#names + 1] = name end
  table.sort(names)
  local i = 0
  return function()
    i = i + 1
    return controllers.by_name[names[i]]
  end
end

-- What a controller is doing as a whole, and what it waits for before it starts.
local function state_of(controller)
  if controller.started then return "running" end
  local missing = controllers.missing(controller)
  if missing[1] then return "syncing", table.concat(missing, ", ") end
  return "standby"
end

local function queue_of(controller)
  local stats = controller.queue:stats()
  return { ready = stats.ready, waiting = stats.waiting, processing = stats.processing, failing = stats.failing }
end

--- The controllers, for `moonwatch status`.
---@return string
function M.controllers()
  local list = codec.array {}
  for controller in each() do
    local state, missing = state_of(controller)
    list[#list + 1] = { name = controller.name, resource = controller.resource, place = controller.place, state = state,
      missing = missing, workers = controller.workers, queue = queue_of(controller) }
  end
  return codec.encode(list)
end

return M
