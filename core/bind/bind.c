// SPDX-License-Identifier: Apache-2.0
#include "bind/bind.h"

#include <lauxlib.h>
#include <lua.h>

#include "bind/codec.h"
#include "bind/objtable_internal.h"
#include "bind/util.h"
#include "script/call.h"
#include "script/embedded.h"
#include "script/host.h"

// package.preload of an embedded module: loaded when it is first required.
static int load_embedded(lua_State *L) {
  const struct mw_embedded *e = lua_touserdata(L, lua_upvalueindex(1));
  if (luaL_loadbufferx(L, e->code, (size_t)(e->end - e->code), e->module, "b") != 0) {
    return lua_error(L);
  }
  lua_pushstring(L, e->module);
  lua_call(L, 1, 1);
  return 1;
}

// kube._core.error_text(value): an error value as a person reads it.
static int error_text(lua_State *L) {
  luaL_checkany(L, 1);
  mw_script_error_text(L, 1);
  return 1;
}

static int where(lua_State *L) {
  mw_bind_where(L);
  return 1;
}

static void open_tools(struct lua_State *L) {
  lua_newtable(L);
  mw_bind_tools(L);
  mw_bind_yaml(L);
}

// jit.util, which scripts do not have.
static void open_bytecode(struct lua_State *L) {
  lua_getglobal(L, "require");
  lua_pushliteral(L, "jit.util");
  lua_call(L, 1, 1);
}

static int load_core(lua_State *L) {
  static const struct {
    const char *name;
    void (*open)(struct lua_State *L);
  } parts[] = {
      {"task", mw_bind_task},         {"log", mw_bind_log},           {"codec", mw_bind_codec},
      {"client", mw_bind_client},     {"informer", mw_bind_informer}, {"indexer", mw_bind_indexer},
      {"selector", mw_bind_selector}, {"request", mw_bind_request},   {"tools", open_tools},
      {"lease", mw_bind_lease},       {"queue", mw_bind_queue},       {"metric", mw_bind_metric},
      {"bytecode", open_bytecode},    {"program", mw_bind_program},
  };
  lua_createtable(L, 0, sizeof parts / sizeof parts[0] + 3);
  int core = lua_gettop(L);
  mw_bind_error_open(L);
  lua_setfield(L, core, "error_meta");
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    parts[i].open(L);
    lua_setfield(L, core, parts[i].name);
  }
  lua_pushcfunction(L, where);
  lua_setfield(L, core, "where");
  lua_pushcfunction(L, error_text);
  lua_setfield(L, core, "error_text");
  return 1;
}

void mw_bind_preload(struct lua_State *L, const char *name, int (*load)(struct lua_State *L)) {
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "preload");  // [package, preload]
  for (const struct mw_embedded *e = mw_embedded_lua; e->module != NULL; e++) {
    lua_pushlightuserdata(L, (void *)e);
    lua_pushcclosure(L, load_embedded, 1);
    lua_setfield(L, -2, e->module);
  }
  lua_pushcfunction(L, load);
  lua_setfield(L, -2, name);
  lua_pop(L, 2);
}

void mw_bind_open(struct lua_State *L) {
  mw_bind_preload(L, "kube._core", load_core);
  mw_codec_open(L);
  mw_objtable_open(L);
  mw_objtable_sample(L);
  // Now, while all of Lua is there: the bindings may need what scripts do not get.
  lua_getglobal(L, "require");
  lua_pushliteral(L, "kube._core");
  lua_call(L, 1, 0);
}

void mw_bind_open_with(struct lua_State *L, const char *name, void (*open)(struct lua_State *L)) {
  mw_bind_open(L);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "kube._core");
  lua_call(L, 1, 1);  // [core]
  open(L);
  lua_setfield(L, -2, name);
  lua_pop(L, 1);
}

int mw_bind_arguments(struct lua_State *L) {
  const struct mw_host_config *config = mw_host_config(mw_generation_host(mw_generation_of(L)));
  lua_createtable(L, (int)config->arg_count, 0);
  for (size_t i = 0; i < config->arg_count; i++) {
    lua_pushstring(L, config->args[i]);
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}
