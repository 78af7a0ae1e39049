-- What a kind does differently: defaults, what a write may change, what is valid. A kind's own part
-- is a module under strategies/ (built-in kinds) or follows from its definition (custom ones); all
-- of its functions are optional:
--
--   default(ctx, document)                 what is filled in as soon as a document is read: its
--                                          author owns those fields, as if they had been written
--   prepare_create(ctx, document)          before a create is validated; may change `document`
--   prepare_update(ctx, new, old, subresource)   before an update is validated; may change `new`
--   validate(ctx, new, old, errors, subresource)   adds field errors; old is nil on create
--   after_create(ctx, stored)              once it is stored
--   generation_changed(new, old)           true when the change counts as one of the spec
--   delete(ctx, document, options)         takes a deletion over: code, document; nil for the usual
--   grace(ctx, document, given)            seconds between a deletion and the end
--   holds(document)                        true while something other than finalizers keeps it
--   answer(ctx, document)                  the kind is a question: fills in the answer, nothing is stored
--   status_keeps                           metadata that a write of /status cannot change
local always = require "kube.sandbox.always"
local coverage = require "kube.sandbox.coverage"
local json = require "kube.sandbox.json"
local unenforced = require "kube.sandbox.unenforced"

local strategy = {}

local function of(R) return R.strategy or {} end

--- Fills in what the author of a document need not write.
function strategy.default(ctx, document)
  local own = of(ctx.R)
  if own.default then return own.default(ctx, document) or document end
  return document
end

--- Fills in what a new object starts with.
function strategy.prepare_create(ctx, document)
  local R, own = ctx.R, of(ctx.R)
  if R.subresources.status and not own.keeps_status then
    document.status = R.definition and always.empty(R.definition).status or nil
  end
  if own.prepare_create then document = own.prepare_create(ctx, document) or document end
  return document
end

local IDENTITY = { apiVersion = true, kind = true, metadata = true }

local function spec_changed(R, new, old)
  local function counts(key) return not IDENTITY[key] and not (key == "status" and R.subresources.status) end
  local function differs(a, b)
    for key, value in pairs(a) do
      if counts(key) and not json.equal(value, b[key]) then return true end
    end
    return false
  end
  return differs(new, old) or differs(old, new)
end

-- A write of /status takes the status, and of the metadata what the kind lets through.
local function only_status(R, new, old)
  local out = json.shallow(old)
  out.status = new.status
  local m = json.shallow(R.builtin and new.metadata or old.metadata)
  for _, name in ipairs(R.builtin and of(R).status_keeps or {}) do m[name] = old.metadata[name] end
  m.managedFields = new.metadata.managedFields
  m.resourceVersion = new.metadata.resourceVersion
  out.metadata = m
  return out
end

--- Undoes what this request may not change, and counts the generation.
function strategy.prepare_update(ctx, new, old, subresource)
  local R, own = ctx.R, of(ctx.R)
  if subresource == "status" then
    new = only_status(R, new, old)
  elseif R.subresources.status then
    new.status = old.status
  end
  if own.prepare_update then new = own.prepare_update(ctx, new, old, subresource) or new end
  if R.rules.generation and subresource ~= "status" then
    local changed = own.generation_changed and own.generation_changed(new, old) or spec_changed(R, new, old)
    if changed then
      new.metadata.generation = (old.metadata.generation or 0) + 1
    end
  end
  return new
end

--- Adds to `errors` what is wrong with an object; `old` is nil on create. Warns about what was not looked at.
function strategy.validate(ctx, new, old, errors, subresource)
  local own = of(ctx.R)
  if own.validate then own.validate(ctx, new, old, errors, subresource) end
  if errors[1] or ctx.request.internal then return end
  coverage.warn(ctx, new, old, subresource)
  unenforced.warn(ctx, new, old, subresource)
end

function strategy.after_create(ctx, stored)
  local own = of(ctx.R)
  if own.after_create then own.after_create(ctx, stored) end
end

--- True while something other than finalizers keeps a deleted object.
function strategy.holds(R, document)
  local own = of(R)
  return own.holds and own.holds(document) or false
end

return strategy
