-- Merges an applied configuration into a live document: what the configuration has wins, the rest
-- stays, lists of type map and set are merged item by item.
local atom = require "kube.sandbox.apply.atom"
local item = require "kube.sandbox.apply.item"
local json = require "kube.sandbox.json"

local merge

local function is_empty(values) return values == nil or next(values) == nil end

local function merge_members(map, live, config)
  local out = json.object {}
  for name, value in pairs(live) do
    local new = config[name]
    if new == nil then
      out[name] = value
    else
      out[name] = merge(value, new, atom.member(map, name))
    end
  end
  for name, value in pairs(config) do
    if live[name] == nil then out[name] = value end
  end
  return out
end

-- Items of the live list by path element. Of several with one path element none is merged with.
local function index(elements, values)
  local out = {}
  for i, pe in ipairs(elements) do
    if out[pe] == nil then out[pe] = values[i] else out[pe] = json.null end
  end
  return out
end

-- The merged list: items of both stand in the configuration's order; items that only the live list
-- has keep their place before the next item that both have.
local function merge_items(list, live, config)
  local of_item = atom.element(list)
  local live_elements, config_elements = item.elements(list, live), item.elements(list, config)
  local in_live, in_config = index(live_elements, live), index(config_elements, config)
  local out, done = json.array {}, {}
  local shared, next_shared = {}, 1
  for _, pe in ipairs(config_elements) do
    if in_live[pe] ~= nil then shared[#shared + 1] = pe end
  end
  local l, c = 1, 1
  local function take_config()
    local pe = config_elements[c]
    done[pe] = true
    if in_live[pe] == nil then
      out[#out + 1] = in_config[pe]
    else
      out[#out + 1] = merge(in_live[pe], in_config[pe], of_item)
    end
    c = c + 1
    if shared[next_shared] == pe then next_shared = next_shared + 1 end
  end
  while l <= #live_elements or c <= #config_elements do
    local pe, wanted = live_elements[l], config_elements[c]
    if pe and wanted and pe == wanted then
      l = l + 1
      take_config()
    elseif pe and wanted and in_config[pe] ~= nil and shared[next_shared] and shared[next_shared] ~= pe then
      -- It is in both, but another one is next: it comes with the configuration's items.
      l = l + 1
    elseif pe and in_config[pe] == nil then
      out[#out + 1] = live[l]
      l = l + 1
    else
      if pe and done[pe] then l = l + 1 end
      if wanted then take_config() end
    end
  end
  return out
end

--- The merged value. What is the same is shared with the arguments.
function merge(live, config, self)
  if live == nil or not self then return config end
  local kind = atom.kind(self, config)
  if kind == "scalar" or self[kind].atomic then return config end
  if kind == "list" then
    local old, new = atom.array(live), atom.array(config)
    if is_empty(old) and is_empty(new) then return config end
    return merge_items(self.list, old or {}, new or {})
  end
  local old, new = atom.object(live), atom.object(config)
  if is_empty(old) and is_empty(new) then return config end
  return merge_members(self.map, old or {}, new or {})
end

return merge
