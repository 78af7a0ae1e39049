-- Cached objects for spec/unit: made from JSON by the core's own scanner and packer, freed by the
-- garbage collector (so that unit.no_leaks() sees what C forgot, not what a spec forgot).
--
--   local objects = require "spec.support.objects"
--   local o = objects.make('{"metadata":{"name":"a"}}')
--   local o = objects.pod("ns", "name", { rv = "7", labels = { app = "web" } })
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local objects = {}

local scanner = ffi.gc(C.mw_item_scanner_new(nil), C.mw_item_scanner_free)
local anchor = {}

objects.unpacker = ffi.gc(C.mw_unpacker_new(), C.mw_unpacker_free)

--- A slice whose string is never collected.
function objects.slice(s)
  anchor[s] = anchor[s] or s
  return unit.slice(anchor[s])
end

--- Scans JSON into a struct mw_item, which is valid until the next scan.
function objects.item(json)
  objects.scanned = json  -- what the item is of
  local c = ffi.new("struct mw_json")
  local p = ffi.cast("const char *", json)
  c.p, c["end"] = p, p + #json
  local item, err = ffi.new("struct mw_item"), unit.err()
  local rc = C.mw_item_scan(scanner, c, C.mw_projection_all(), nil, item, err)
  assert(rc == 0, ffi.string(err.message))
  return item
end

--- Makes a Lua value of an object that C handed over with its +1: nil for NULL.
function objects.own(o)
  if o == nil then return nil end
  return ffi.gc(o, C.mw_object_unref)
end

--- The object of a JSON text, or nil and the error message.
function objects.make(json)
  local err = unit.err()
  -- A packer of its own: one that lives on makes a dictionary, which would look like a leak.
  local packer = C.mw_packer_new()
  local o = objects.own(C.mw_object_new(objects.item(json), packer, true, err))
  C.mw_packer_free(packer)
  if o == nil then return nil, ffi.string(err.message), err.code end
  return o
end

local function quoted_map(map)
  local parts = {}
  for k, v in pairs(map) do parts[#parts + 1] = ('"%s":"%s"'):format(k, v) end
  return "{" .. table.concat(parts, ",") .. "}"
end

--- A small object. opts: rv, uid, labels, metadata (more JSON members), rest (JSON behind metadata).
function objects.pod(ns, name, opts)
  opts = opts or {}
  local meta = { ('"name":"%s"'):format(name) }
  if ns ~= "" then meta[#meta + 1] = ('"namespace":"%s"'):format(ns) end
  if opts.rv then meta[#meta + 1] = ('"resourceVersion":"%s"'):format(opts.rv) end
  if opts.uid then meta[#meta + 1] = ('"uid":"%s"'):format(opts.uid) end
  if opts.labels then meta[#meta + 1] = '"labels":' .. quoted_map(opts.labels) end
  if opts.metadata then meta[#meta + 1] = opts.metadata end
  return assert(objects.make(('{"kind":"Pod","metadata":{%s}%s}')
    :format(table.concat(meta, ","), opts.rest and "," .. opts.rest or "")))
end

function objects.key(o) return unit.str(C.mw_object_key(o)) end

--- An empty struct mw_object_list that the garbage collector empties.
function objects.list()
  return ffi.gc(ffi.new("struct mw_object_list"), C.mw_object_list_deinit)
end

--- The sorted keys of a list.
function objects.keys(list)
  local keys = {}
  for i = 0, tonumber(list.n) - 1 do keys[i + 1] = objects.key(list.v[i]) end
  table.sort(keys)
  return keys
end

--- An empty struct mw_values that the garbage collector empties.
function objects.values()
  local v = ffi.gc(ffi.new("struct mw_values"), C.mw_values_deinit)
  C.mw_values_init(v)
  return v
end

--- The values as a Lua list, in their order.
function objects.strings(values)
  local out = {}
  for i = 0, tonumber(values.count) - 1 do out[i + 1] = unit.str(C.mw_values_get(values, i)) end
  return out
end

--- A struct mw_buf that the garbage collector empties.
function objects.buf()
  local b = ffi.gc(ffi.new("struct mw_buf"), C.mw_buf_deinit)
  C.mw_buf_init(b, 1024 * 1024)
  return b
end

return objects
