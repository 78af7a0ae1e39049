// SPDX-License-Identifier: Apache-2.0
// The builtins that look into tables behind the back of __index and __newindex, made aware of lazy
// tables: they complete them first. On all other tables they do what the originals do.
#include "bind/objtable_internal.h"

enum { NESTING_MAX = 1000 };  // cjson goes no deeper

// pairs gives the original next: a completed table needs no help, and loops over it stay fast.
static int wrapped_pairs(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  mw_objtable_require(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushvalue(L, 1);
  lua_pushnil(L);
  return 3;
}

static int wrapped_next(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 2);
  mw_objtable_require(L, 1);
  if (lua_next(L, 1)) return 2;
  lua_pushnil(L);
  return 1;
}

static int wrapped_rawget(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checkany(L, 2);
  lua_settop(L, 2);
  if (mw_objtable_is_lazy(L, 1)) {
    lua_gettable(L, 1);
  } else {
    lua_rawget(L, 1);
  }
  return 1;
}

static int wrapped_rawset(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checkany(L, 2);
  luaL_checkany(L, 3);
  lua_settop(L, 3);
  mw_objtable_require(L, 1);
  lua_rawset(L, 1);
  return 1;
}

static int wrapped_getmetatable(lua_State *L) {
  luaL_checkany(L, 1);
  if (lua_istable(L, 1)) mw_objtable_require(L, 1);
  if (!lua_getmetatable(L, 1)) {
    lua_pushnil(L);
    return 1;
  }
  lua_pushliteral(L, "__metatable");
  lua_rawget(L, -2);
  if (lua_isnil(L, -1)) lua_pop(L, 1);
  return 1;
}

static int wrapped_setmetatable(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  int type = lua_type(L, 2);
  luaL_argcheck(L, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table expected");
  mw_objtable_require(L, 1);
  if (luaL_getmetafield(L, 1, "__metatable")) {
    return luaL_error(L, "cannot change a protected metatable");
  }
  lua_settop(L, 2);
  lua_setmetatable(L, 1);
  return 1;
}

// table.foreach(t, f): the first result of f that is not nil ends it.
static int wrapped_foreach(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  mw_objtable_require(L, 1);
  for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {  // [key, value]
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -3);
    lua_pushvalue(L, -3);
    lua_call(L, 2, 1);
    if (!lua_isnil(L, -1)) return 1;
    lua_pop(L, 1);
  }
  return 0;
}

// Completes what is lazy in the table at idx and below. `seen` is a set of tables.
static void complete_deep(lua_State *L, int idx, int seen, unsigned depth) {
  if (depth > NESTING_MAX || !lua_checkstack(L, 16)) return;
  lua_pushvalue(L, idx);
  lua_rawget(L, seen);
  bool known = !lua_isnil(L, -1);
  lua_pop(L, 1);
  if (known) return;
  lua_pushvalue(L, idx);
  lua_pushboolean(L, 1);
  lua_rawset(L, seen);
  mw_objtable_require(L, idx);
  for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {  // [key, value]
    if (lua_istable(L, -1)) complete_deep(L, lua_gettop(L), seen, depth + 1);
  }
}

static int wrapped_encode(lua_State *L) {
  int n = lua_gettop(L);
  if (lua_istable(L, 1)) {
    lua_newtable(L);
    complete_deep(L, 1, n + 1, 1);
    lua_settop(L, n);
  }
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, n, LUA_MULTRET);
  return lua_gettop(L);
}

// Replaces field `name` of the table at idx by f, whose upvalue is field `inner` of it.
static void wrap(lua_State *L, int idx, const char *name, const char *inner, lua_CFunction f) {
  lua_getfield(L, idx, inner);
  lua_pushcclosure(L, f, 1);
  lua_setfield(L, idx, name);
}

// package.preload.cjson: what its upvalue loads, with an encode that knows lazy tables.
static int load_wrapped_cjson(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, 1);
  if (lua_istable(L, 1)) wrap(L, 1, "encode", "encode", wrapped_encode);
  return 1;
}

// cjson may be loaded, or to be loaded later, or not be there.
static void wrap_cjson(lua_State *L) {
  int top = lua_gettop(L);
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "loaded");
  lua_getfield(L, -1, "cjson");
  if (lua_istable(L, -1)) wrap(L, lua_gettop(L), "encode", "encode", wrapped_encode);
  lua_getfield(L, top + 1, "preload");
  lua_getfield(L, -1, "cjson");
  if (lua_isfunction(L, -1)) {
    lua_pushcclosure(L, load_wrapped_cjson, 1);
    lua_setfield(L, -2, "cjson");
  }
  lua_settop(L, top);
}

void mw_objtable_wrap(lua_State *L) {
  static const luaL_Reg base[] = {
      {"rawget", wrapped_rawget},
      {"rawset", wrapped_rawset},
      {"getmetatable", wrapped_getmetatable},
      {"setmetatable", wrapped_setmetatable},
      {NULL, NULL},
  };
  lua_pushvalue(L, LUA_GLOBALSINDEX);
  int globals = lua_gettop(L);
  wrap(L, globals, "pairs", "next", wrapped_pairs);
  wrap(L, globals, "next", "next", wrapped_next);
  luaL_register(L, NULL, base);
  lua_getfield(L, globals, "table");
  if (lua_istable(L, -1)) {
    lua_pushcfunction(L, wrapped_foreach);
    lua_setfield(L, -2, "foreach");
  }
  lua_settop(L, globals - 1);
  wrap_cjson(L);
}
