-- The C core as a library, for spec/unit: declarations come from the headers themselves (the build
-- runs them through the preprocessor, see CMakeLists.txt), so they cannot drift apart.
--
--   local unit = require "spec.support.unit"
--   local C, ffi = unit.C, unit.ffi
--   unit.no_leaks()          -- in a describe block: asserts after each spec that nothing is left
local ffi = require "ffi"

local unit = { ffi = ffi }

local build = os.getenv("MOONWATCH_BUILD") or "build"

local function declarations()
  local file = assert(io.open(build .. "/unit_decls.h"))
  local text = file:read("*a")
  file:close()
  -- Bodies of inline functions are for the compiler; the FFI wants declarations only.
  text = text:gsub("static inline [^;{]-%b{}", "")
  text = text:gsub("typedef __builtin_va_list va_list;", "")
  text = text:gsub("[^;{}]-va_list[^;]-;", "")
  return text
end

ffi.cdef(declarations())
ffi.cdef "void *dlopen(const char *path, int flags);"
local library = build .. "/libmoonwatch_unit.so"
-- RTLD_NOW | RTLD_NODELETE: LeakSanitizer names functions only of libraries that are still there.
ffi.C.dlopen(library, 0x1002)
unit.C = ffi.load(library)

--- A struct mw_slice over a Lua string. The string must stay alive as long as the slice is used.
function unit.slice(s)
  return ffi.new("struct mw_slice", { ffi.cast("const char *", s), #s })
end

--- A Lua string from a struct mw_slice.
function unit.str(slice)
  return slice.n == 0 and "" or ffi.string(slice.p, slice.n)
end

function unit.err()
  return ffi.new("struct mw_err")
end

--- An endpoint (+1) for a server that asks for nothing.
function unit.endpoint(url)
  local text = ('{"current-context":"a","clusters":[{"name":"a","cluster":{"server":"%s"}}],' ..
    '"users":[{"name":"a","user":{}}],"contexts":[{"name":"a","context":{"cluster":"a",' ..
    '"user":"a"}}]}'):format(url)
  local err = unit.err()
  local config = unit.C.mw_kubeconfig_parse(text, #text, nil, "spec", nil, err)
  assert(config ~= nil, ffi.string(err.message))
  return unit.C.mw_endpoint_new(config)
end

--- What is alive in the core: { object = 3, ... }, without the zeros.
function unit.live()
  local live = {}
  for kind = 0, unit.C.MW_LIVE_COUNT - 1 do
    local n = tonumber(unit.C.mw_live_get(kind))
    if n ~= 0 then live[ffi.string(unit.C.mw_live_name(kind))] = n end
  end
  return live
end

--- Registers an after_each that fails the spec when it left anything alive. busted's functions are
--- those of the calling spec: a required module does not see them.
function unit.no_leaks()
  local spec = getfenv(2)
  local before
  spec.before_each(function() collectgarbage() collectgarbage() before = unit.live() end)
  spec.after_each(function()
    collectgarbage()
    collectgarbage()
    spec.assert.are.same(before, unit.live(), "left alive")
  end)
end

return unit
