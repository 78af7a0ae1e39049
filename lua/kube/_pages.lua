-- Lists in pages.
local core = require "kube._core"
local errors = require "kube._error"

local M = {}

local PAGE_SIZE = 500

-- The parameters of the first page. A limit is the script's own business: one page of that size.
local function first_query(opts)
  local size = opts.limit or opts.page_size or PAGE_SIZE
  return {
    limit = size > 0 and size or nil, continue = opts.continue,
    resourceVersion = opts.resource_version, resourceVersionMatch = opts.resource_version_match,
  }
end

local function next_token(list)
  local token = type(list.metadata) == "table" and list.metadata.continue
  return type(token) == "string" and token ~= "" and token or nil
end

-- All pages together have the time of one call.
local function clock(call)
  local ends = core.task.now() + call.timeout
  return function() call.timeout = math.max(ends - core.task.now(), 0.001) end
end

local function is_expired(err) return errors.predicates.is_resource_expired(err) end

--- Everything, in pages; with a limit one page. A page that has expired means that all is read anew in one piece,
--- so that what is returned was there at one moment.
---@param call table
---@param page fun(call: table, query: table): table?, kube.Error?
---@return table[]? items
---@return table|kube.Error metadata of the first page; its `continue` is set only with a limit
function M.all(call, page)
  local opts, tick = call.opts, clock(call)
  local query = first_query(opts)
  local list, err = page(call, query)
  if not list then return nil, err end
  local items, metadata = list.items, list.metadata or {}
  if opts.limit then return items, metadata end
  local token = next_token(list)
  while token do
    tick()
    list, err = page(call, { limit = query.limit, continue = token })
    if not list and is_expired(err) then
      tick()
      list, err = page(call,
        { resourceVersion = opts.resource_version, resourceVersionMatch = opts.resource_version_match })
      if not list then return nil, err end
      return list.items, list.metadata
    end
    if not list then return nil, err end
    for _, item in ipairs(list.items) do items[#items + 1] = item end
    token = next_token(list)
  end
  metadata.continue, metadata.remainingItemCount = nil, nil
  return items, metadata
end

--- An iterator that reads a page when the one before is used up.
---@param call table
---@param page fun(call: table, query: table): table?, kube.Error?
---@return fun(): table?
function M.each(call, page)
  local query = first_query(call.opts)
  local items, at, token = {}, 0, nil
  local timeout, started, over = call.timeout, false, false
  local function turn()
    call.timeout = timeout
    local list, err = page(call, started and { limit = query.limit, continue = token } or query)
    if not list and started and is_expired(err) and err.continue then
      list, err = page(call, { limit = query.limit, continue = err.continue })
    end
    if not list then errors.raise(err) end
    started, items, at, token = true, list.items, 0, next_token(list)
    over = token == nil
  end
  return function()
    while at >= #items and not over do turn() end
    at = at + 1
    return items[at]
  end
end

return M
