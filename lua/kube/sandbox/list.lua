-- Lists: at the present, at a revision of the past, or page by page.
local continue = require "kube.sandbox.continue"
local json = require "kube.sandbox.json"
local list_options = require "kube.sandbox.list_options"
local object = require "kube.sandbox.object"
local status = require "kube.sandbox.status"
local store = require "kube.sandbox.store"

local list = {}

local TOO_OLD = "The resourceVersion for the provided list is too old."
local TOKEN_TOO_OLD = "The provided continue parameter is too old to display a consistent list result. You can start a "
  .. "new list without the continue parameter, or use the continue token in this response to retrieve the remainder "
  .. "of the results. Continuing with the provided token results in an inconsistent list - objects that were created, "
  .. "modified, or deleted between the time the first chunk was returned and now may show up in the list."

local function future(ctx, wanted) error(status.too_large_resource_version(wanted, ctx.S.store.revision)) end

-- The view that a continue token asks for, and its first key.
local function continued(ctx, options)
  local revision, key = continue.decode(options.continue)
  if not revision then error(status.bad_request("%s", key)) end
  if options.version ~= "" and options.version ~= "0" then
    error(status.bad_request("specifying resource version is not allowed when using continue"))
  end
  local view, why = ctx.S.store:view(ctx.R.storage, revision > 0 and revision or nil)
  if why == "future" then future(ctx, ("%d"):format(revision)) end
  if why == "expired" then
    error(status.expired(TOKEN_TOO_OLD, continue.encode(-1, (key:gsub("%z$", "")))))
  end
  return view, key
end

-- The view that resourceVersion and resourceVersionMatch ask for.
local function versioned(ctx, options)
  local revision, problem = list_options.revision(options.version)
  if problem then error(status.bad_request("invalid resource version: %s", problem)) end
  if revision and revision > ctx.S.store.revision then future(ctx, options.version) end
  -- Without a match, a limit makes it exact: older clients page that way.
  local exact = options.match == "Exact" or options.match == "" and options.limit > 0
  if not exact or not revision or revision == 0 then revision = nil end
  local view = ctx.S.store:view(ctx.R.storage, revision)
  return view or error(status.expired(TOO_OLD))
end

-- One page: the documents, and the key of the last one if more keys follow it.
local function page(view, options, first, stop)
  local docs, n = {}, 0
  local limit = options.limit > 0 and options.limit or math.huge
  local selective = not options.labels:empty() or not options.fields:empty()
  local last
  for key, doc in view:each(first, stop) do
    if n == limit then return docs, last end
    if not selective or list_options.selects(options, doc) then
      n = n + 1
      docs[n], last = doc, key
    end
  end
  return docs
end

-- Items of built-in kinds do not say what they are; the list does.
local function item(R, doc)
  local shown = object.view(R, doc)
  if not R.builtin then return shown end
  local copy = json.shallow(shown)
  copy.kind, copy.apiVersion = nil, nil
  return copy
end

local function metadata(R, view)
  return json.object { resourceVersion = ("%d"):format(view.revision), continue = not R.builtin and "" or nil }
end

-- Where to look: a first page looks only where its field selector can find something, later ones
-- go on wherever the token points.
local function scope(ctx, options)
  local namespace = ctx.info.namespace
  if options.continue ~= "" then return namespace end
  if ctx.R.namespaced and not namespace then namespace = options.fields:exactly("metadata.namespace") end
  -- What is one object at most has no pages.
  local placed = namespace ~= nil or not ctx.R.namespaced
  if placed and options.fields:exactly("metadata.name") then options.limit = 0 end
  return namespace
end

--- Handles a list: 200 and the list.
function list.run(ctx)
  local R = ctx.R
  local options = list_options.parse(ctx)
  local first, stop = store.bounds(scope(ctx, options))
  local prefix = first or ""
  local view
  if options.continue ~= "" then
    local key
    view, key = continued(ctx, options)
    first = prefix .. key
  else
    view = versioned(ctx, options)
  end
  -- Any version will do: the server answers from its cache, which knows no pages.
  if options.version == "0" and not R.rules.uncached then options.limit = 0 end
  local docs, last = page(view, options, first, stop)
  local items = json.array {}
  for i, doc in ipairs(docs) do items[i] = item(R, doc) end
  local meta = metadata(R, view)
  if last then
    meta.continue = continue.encode(view.revision, last:sub(#prefix + 1))
    if options.labels:empty() and options.fields:empty() then
      meta.remainingItemCount = view:count(last .. "\0", stop)
    end
  end
  return 200, json.object { kind = R.list_kind, apiVersion = R.api_version, metadata = meta, items = items }
end

return list
