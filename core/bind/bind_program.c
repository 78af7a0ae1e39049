// SPDX-License-Identifier: Apache-2.0
// kube._core.program: what a script has in common with the revisions before and after it.
//
//   program.revision()               12 hex digits; nil for a part of Moonwatch
//   program.get(name), program.set(name, text, seconds), program.names()   its memory: store.h
//   program.ran(failed)              a reconcile has ended
//   program.jit(on)                  whether it is to be compiled; in the load phase
//   program.hand_over(unload, load)  unload() -> text or nil; load(text or nil, revision before)
#include <lauxlib.h>
#include <lua.h>

#include "bind/bind.h"
#include "bind/util.h"
#include "script/bundle.h"
#include "script/generation.h"
#include "script/store.h"

static struct mw_store *store_of(lua_State *L) { return mw_generation_store(mw_generation_of(L)); }

static int program_revision(lua_State *L) {
  const struct mw_bundle *b = mw_generation_bundle(mw_generation_of(L));
  lua_pushstring(L, b != NULL ? mw_bundle_revision(b) : NULL);
  return 1;
}

static int program_get(lua_State *L) {
  struct mw_slice text = mw_store_get(store_of(L), mw_bind_slice(L, 1));
  if (text.p == NULL) return 0;
  lua_pushlstring(L, text.p, text.n);
  return 1;
}

// set(name, text, seconds): without a text it is forgotten. False when there is no room.
static int program_set(lua_State *L) {
  struct mw_slice name = mw_bind_slice(L, 1);
  int rc = 0;
  if (lua_isnil(L, 2)) {
    mw_store_del(store_of(L), name);
  } else {
    rc = mw_store_set(store_of(L), name, mw_bind_slice(L, 2), luaL_optnumber(L, 3, 0));
  }
  lua_pushboolean(L, rc == 0);
  return 1;
}

static void push_name(void *ctx, struct mw_slice name) {
  lua_State *L = ctx;
  lua_pushlstring(L, name.p, name.n);
  lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
}

static int program_names(lua_State *L) {
  lua_newtable(L);
  mw_store_each(store_of(L), push_name, L);
  return 1;
}

static int program_ran(lua_State *L) {
  mw_generation_count_run(mw_generation_of(L), lua_toboolean(L, 1));
  return 0;
}

static int program_jit(lua_State *L) {
  mw_generation_set_jit(mw_generation_of(L), lua_toboolean(L, 1));
  return 0;
}

static int program_hand_over(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  mw_generation_set_handover(mw_generation_of(L), L);
  return 0;
}

void mw_bind_program(struct lua_State *L) {
  static const luaL_Reg functions[] = {
      {"revision", program_revision},   {"get", program_get}, {"set", program_set},
      {"names", program_names},         {"ran", program_ran}, {"jit", program_jit},
      {"hand_over", program_hand_over}, {NULL, NULL}};
  lua_newtable(L);
  luaL_register(L, NULL, functions);
}
