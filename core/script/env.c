// SPDX-License-Identifier: Apache-2.0
#include "script/env.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <string.h>

#include "script/bundle.h"
#include "script/embedded.h"
#include "script/host.h"
#include "script/sched.h"

void mw_env_open(struct lua_State *L) {
  luaL_openlibs(L);
  static const char *const optional[] = {"cjson", "cjson.safe"};
  for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++) {
    lua_getglobal(L, "require");
    lua_pushstring(L, optional[i]);
    lua_pcall(L, 1, 0, 0);
    lua_settop(L, 0);
  }
}

static int nest(lua_State *L) {
  mw_sched_nest(L);
  return 0;
}

static int unnest(lua_State *L) {
  mw_sched_unnest(L);
  return 0;
}

static int owns_stack(lua_State *L) {
  lua_pushboolean(L, mw_sched_owns_stack(L));
  return 1;
}

// enter_handler(): until leave_handler(what it returned) nothing can await.
static int enter_handler(lua_State *L) {
  struct mw_nesting n = mw_sched_nesting(L);
  lua_pushlightuserdata(L, (void *)n.place);
  n.place = "an xpcall message handler";
  mw_sched_set_nesting(L, n);
  return 1;
}

static int leave_handler(lua_State *L) {
  struct mw_nesting n = mw_sched_nesting(L);
  n.place = lua_touserdata(L, 1);
  mw_sched_set_nesting(L, n);
  return 0;
}

static const struct mw_embedded *find(const char *module) {
  for (const struct mw_embedded *e = mw_embedded_lua; e->module != NULL; e++)
    if (strcmp(e->module, module) == 0) return e;
  return NULL;
}

int mw_env_load(struct lua_State *L, const char *module) {
  const struct mw_embedded *e = find(module);
  if (e != NULL) return luaL_loadbufferx(L, e->code, (size_t)(e->end - e->code), e->module, "b");
  lua_pushfstring(L, "the module %s is not part of this build", module);
  return LUA_ERRRUN;
}

int mw_env_load_file(struct lua_State *L, const struct mw_bundle_file *f) {
  lua_pushfstring(L, "@%s", f->path);
  int rc = luaL_loadbufferx(L, f->text, f->size, lua_tostring(L, -1), "t");
  lua_remove(L, -2);
  return rc;
}

// find(name): the chunk of a module of the bundle; nil when it has none; raises its syntax error.
static int find_module(lua_State *L) {
  const struct mw_bundle *bundle = lua_touserdata(L, lua_upvalueindex(1));
  const struct mw_bundle_file *f = mw_bundle_find(bundle, luaL_checkstring(L, 1));
  if (f == NULL) return 0;
  if (mw_env_load_file(L, f) != 0) lua_error(L);
  return 1;
}

void mw_env_restrict(struct lua_State *L, const struct mw_bundle *bundle) {
  static const luaL_Reg functions[] = {{"nest", nest},
                                       {"unnest", unnest},
                                       {"owns_stack", owns_stack},
                                       {"enter_handler", enter_handler},
                                       {"leave_handler", leave_handler},
                                       {NULL, NULL}};
  if (mw_env_load(L, "kube._env") != 0) lua_error(L);
  lua_createtable(L, 0, 9);  // [chunk, host]
  for (const luaL_Reg *f = functions; f->name != NULL; f++) {
    lua_pushcfunction(L, f->func);
    lua_setfield(L, -2, f->name);
  }
  lua_pushlightuserdata(L, mw_sched_tag());
  lua_setfield(L, -2, "tag");
  lua_pushlightuserdata(L, (void *)bundle);
  lua_pushcclosure(L, find_module, 1);
  lua_setfield(L, -2, "find");
  lua_pushstring(L, mw_bundle_origin(bundle));
  lua_setfield(L, -2, "origin");
  // What the command itself prints is the answer to somebody: scripts print elsewhere.
  lua_pushboolean(L, mw_host_config(mw_generation_host(mw_generation_of(L)))->offline);
  lua_setfield(L, -2, "answers");
  lua_call(L, 1, 0);
}
