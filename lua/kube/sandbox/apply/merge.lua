-- Merges an applied configuration into a live document: what the configuration has wins, the rest
-- stays, lists of type map and set are merged item by item.
local atom = require "kube.sandbox.apply.atom"
local item = require "kube.sandbox.apply.item"
local json = require "kube.sandbox.json"

local merge

local function is_empty(values) return values == nil or next(values) == nil end

-- Returns `live` itself when nothing changes, so that who compares the two sees it at once.
local function merge_members(map, live, config)
  local out
  for name, value in pairs(config) do
    local old = live[name]
    local merged = merge(old, value, atom.member(map, name))
    if merged ~= old then
      out = out or json.shallow(live)
      out[name] = merged
    end
  end
  return out or live
end

local function same_items(a, b)
  if #a ~= #b then return false end
  for i = 1, #a do
    if a[i] ~= b[i] then return false end
  end
  return true
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
  return same_items(out, live) and live or out
end

local NO_ITEMS, NO_MEMBERS = json.array {}, json.object {}

--- The merged value. What is the same is shared with the arguments, with `live` where both have it.
function merge(live, config, self)
  if live == nil or not self then return config end
  local kind = atom.kind(self, config)
  if kind == "scalar" or self[kind].atomic then return json.equal(live, config) and live or config end
  local read = kind == "list" and atom.array or atom.object
  local old, new = read(live), read(config)
  if is_empty(old) and is_empty(new) then return json.equal(live, config) and live or config end
  if kind == "list" then return merge_items(self.list, old or NO_ITEMS, new or NO_ITEMS) end
  return merge_members(self.map, old or NO_MEMBERS, new or NO_MEMBERS)
end

return merge
