// SPDX-License-Identifier: Apache-2.0
#include "script/ref.h"

#include <lauxlib.h>
#include <lua.h>

#include "base/alloc.h"

_Static_assert((int)MW_LUAREF_NONE == LUA_NOREF, "one value for no reference");

int mw_luaref_take(struct lua_State *L) {
  int ref = luaL_ref(L, LUA_REGISTRYINDEX);
  if (ref == LUA_REFNIL) return MW_LUAREF_NONE;
  mw_live_add(MW_LIVE_LUAREF, 1);
  return ref;
}

void mw_luaref_push(struct lua_State *L, int ref) {
  if (ref == MW_LUAREF_NONE) {
    lua_pushnil(L);
  } else {
    lua_rawgeti(L, LUA_REGISTRYINDEX, ref);
  }
}

void mw_luaref_drop(struct lua_State *L, int *ref) {
  if (*ref == MW_LUAREF_NONE) return;
  luaL_unref(L, LUA_REGISTRYINDEX, *ref);
  *ref = MW_LUAREF_NONE;
  mw_live_add(MW_LIVE_LUAREF, -1);
}
