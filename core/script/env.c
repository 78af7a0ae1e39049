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
#include "script/watchdog.h"

// package.preload of what lua-cjson has: opens it when it is first required. The upvalues are
// package.loadlib, its file and the name of its function.
static int load_cjson(lua_State *L) {
  for (int i = 1; i <= 3; i++) lua_pushvalue(L, lua_upvalueindex(i));
  lua_call(L, 2, 2);  // [name, function or nil, message]
  if (lua_isnil(L, -2)) return luaL_error(L, "lua-cjson cannot be loaded: %s", lua_tostring(L, -1));
  lua_pop(L, 1);
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  return 1;
}

// Looks for lua-cjson as long as a state has what it takes; most scripts never open it.
static void find_cjson(lua_State *L) {
  static const char *const modules[][2] = {{"cjson", "luaopen_cjson"},
                                           {"cjson.safe", "luaopen_cjson_safe"}};
  lua_getglobal(L, "package");
  lua_getfield(L, 1, "preload");
  lua_getfield(L, 1, "searchpath");
  lua_pushliteral(L, "cjson");
  lua_getfield(L, 1, "cpath");
  lua_call(L, 2, 1);  // [package, preload, file or nil]
  for (size_t i = 0; lua_isstring(L, 3) && i < sizeof modules / sizeof modules[0]; i++) {
    lua_getfield(L, 1, "loadlib");
    lua_pushvalue(L, 3);
    lua_pushstring(L, modules[i][1]);
    lua_pushcclosure(L, load_cjson, 3);
    lua_setfield(L, 2, modules[i][0]);
  }
  lua_settop(L, 0);
}

void mw_env_open(struct lua_State *L) {
  luaL_openlibs(L);
  find_cjson(L);
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

// The message handler of xpcall; the script's is its upvalue. An error within that would call it
// again, until the stack is full, and nothing can await in it. It is in C because the watchdog's
// error comes at every instruction of Lua, so that one in Lua would fail before it could look.
static int handle(lua_State *L) {
  struct mw_watchdog *w = mw_watchdog_of(L);
  if (w != NULL && mw_watchdog_has_fired(w)) return 1;
  struct mw_nesting before = mw_sched_nesting(L), inside = before;
  inside.place = "an xpcall message handler";
  lua_settop(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  mw_sched_set_nesting(L, inside);
  lua_pcall(L, 1, 1, 0);  // its error is as good a result
  mw_sched_set_nesting(L, before);
  return 1;
}

static int guard_handler(lua_State *L) {
  lua_settop(L, 1);
  lua_pushcclosure(L, handle, 1);
  return 1;
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
                                       {"guard_handler", guard_handler},
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
