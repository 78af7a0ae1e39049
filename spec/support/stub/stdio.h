// Empty on purpose: LuaJIT's FFI knows these types.
