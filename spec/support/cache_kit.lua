-- What the specs of core/cache share: objects from a name and a version, listeners that write down
-- what they are told, and callbacks that survive errors.
--
--   local kit = require "spec.support.cache_kit"
--   local a = kit.object("a", 1)                 -- collected by Lua, so no spec frees it
--   local l = kit.listener { filter = function(o) ... end }
--   C.mw_processor_add(processor, l.config)      -- l.log: { "add a@1 initial", "update a@1 a@2" }
--
-- LuaJIT makes a C function of every callback and keeps it for ever: there is one of each kind
-- here, and the void pointer tells whom it is for.
jit.off(true, true)
local uv = require "luv"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local kit = {}

-- Objects.

local scanner = ffi.gc(C.mw_item_scanner_new(nil), C.mw_item_scanner_free)

--- An object of any JSON text.
function kit.parse(text)
  kit.scanned = text  -- what the item is of
  local cursor = ffi.new("struct mw_json", { ffi.cast("const char *", text),
    ffi.cast("const char *", text) + #text })
  local item, err = ffi.new("struct mw_item"), unit.err()
  assert(C.mw_item_scan(scanner, cursor, C.mw_projection_default(), nil, item, err) == 0,
    ffi.string(err.message))
  -- A packer of its own: one that lives on makes a dictionary, which would look like a leak.
  local packer = C.mw_packer_new()
  local o = C.mw_object_new(item, packer, true, err)
  C.mw_packer_free(packer)
  assert(o ~= nil, ffi.string(err.message))
  return ffi.gc(o, C.mw_object_unref)
end

kit.pod = require "spec.support.pod"

function kit.object(name, rv, more) return kit.parse(kit.pod(name, rv, more)) end

--- An mw_object_list with a reference on each.
function kit.list(objects)
  local list = ffi.new("struct mw_object_list")
  for _, o in ipairs(objects) do C.mw_object_list_add(list, o) end
  return list
end

function kit.key(o) return unit.str(C.mw_object_key(o)) end
function kit.rv(o) return unit.str(C.mw_object_rv(o)) end

--- "a@1", with its namespace unless that is "default".
function kit.text(o)
  return ("%s@%s"):format(kit.key(o):gsub("^default/", ""), kit.rv(o))
end

function kit.unpack(o)
  kit.unpacker = kit.unpacker or ffi.gc(C.mw_unpacker_new(), C.mw_unpacker_free)
  return unit.str(C.mw_object_json(o, kit.unpacker))
end

-- Callbacks. An error in one is kept and raised by check(): it must not cross C.

local owners, last_id = {}, 0
local failure

local function guarded(name, default)
  return function(ctx, ...)
    local owner = owners[tonumber(ffi.cast("intptr_t", ctx))]
    if not owner or not owner[name] then return default end
    local ok, result = xpcall(owner[name], debug.traceback, owner, ...)
    if ok then return result == nil and default or result end
    failure = failure or result
    return default
  end
end

local c = {
  deliver = ffi.cast("int (*)(void *, const struct mw_notification *)", guarded("on_deliver", 0)),
  filter = ffi.cast("bool (*)(void *, struct mw_object *)", guarded("on_filter", false)),
  closed = ffi.cast("void (*)(void *)", guarded("on_closed")),
  late = ffi.cast("void (*)(void *, size_t)", guarded("on_late")),
  call = ffi.cast("void (*)(void *)", guarded("on_call")),
  transform = ffi.cast("int (*)(void *, struct mw_object *, const struct mw_object *, struct mw_object **," ..
    "struct mw_err *)", guarded("on_transform", -1)),
  index = ffi.cast("int (*)(void *, struct mw_object *, struct mw_values *, struct mw_err *)",
    guarded("on_index", -1)),
  error = ffi.cast("void (*)(void *, enum mw_error_place, const struct mw_err *, const char *)",
    guarded("on_error")),
}

--- Raises what went wrong inside a callback.
function kit.check()
  local text = failure
  failure = nil
  if text then error(text, 0) end
end

local function own(owner)
  last_id = last_id + 1
  owners[last_id] = owner
  owner.ctx = ffi.cast("void *", last_id)
  return owner
end

--- A callback of a kind above, and its context: fn(...) gets the arguments behind the context.
function kit.callback(kind, fn)
  local owner = own { ["on_" .. kind] = function(_, ...) return fn(...) end }
  return c[kind], owner.ctx
end

function kit.forget_all() owners = {} end

-- Listeners.

local function describe(n)
  local kind = tonumber(n.type)
  if kind == C.MW_NOTIFY_ADD then
    assert(n.old == nil)
    return "add " .. kit.text(n.object) .. (n.initial and " initial" or "")
  end
  assert(not n.initial)
  if kind == C.MW_NOTIFY_UPDATE then
    return ("update %s %s"):format(kit.text(n.old), kit.text(n.object))
  end
  assert(n.old == nil)
  return "delete " .. kit.text(n.object) .. (n.stale and " stale" or "")
end

--- options: name, resync, bound, filter(o), deliver(text, n) (what it returns goes to C), closed(), line (a number),
--- place. l.lates: what was left each time that it was late.
function kit.listener(options)
  options = options or {}
  local l = own { log = {}, closes = 0, lates = {} }
  function l.on_deliver(_, n)
    local text = describe(n)
    l.log[#l.log + 1] = text
    if options.deliver then return options.deliver(text, n) end
  end
  function l.on_closed()
    l.closes = l.closes + 1
    if options.closed then options.closed() end
  end
  function l.on_filter(_, o) return options.filter(o) end
  function l.on_late(_, left) table.insert(l.lates, tonumber(left)) end
  l.config = ffi.new("struct mw_listener_config", { name = options.name or "spec",
    resync = options.resync or 0, bound = options.bound or 0, deliver = c.deliver,
    filter = options.filter and c.filter or nil, closed = c.closed, ctx = l.ctx,
    line = ffi.cast("void *", options.line or 0), place = options.place or 0, late = c.late })
  return l
end

-- Time.

--- Calls turn() until the condition holds; raises after 5 seconds.
function kit.pump(turn, condition, explain)
  local deadline = uv.hrtime() + 5e9
  kit.check()
  while not condition() do
    turn()
    kit.check()
    if uv.hrtime() > deadline then
      error("timed out" .. (explain and ": " .. explain() or ""), 2)
    end
  end
end

return kit
