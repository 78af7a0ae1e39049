// SPDX-License-Identifier: Apache-2.0
// The parts of kube._core that need no process around them, for specs
// (spec/support/helpers_env.lua).
#include <lauxlib.h>
#include <lua.h>

#include "bind/bind.h"
#include "bind/codec.h"
#include "bind/util.h"

int luaopen_mw_helpers_spec(lua_State *L);

static int where(lua_State *L) {
  mw_bind_where(L);
  return 1;
}

int luaopen_mw_helpers_spec(lua_State *L) {
  mw_codec_open(L);
  lua_newtable(L);
  mw_bind_error_open(L);
  lua_setfield(L, -2, "error_meta");
  mw_bind_codec(L);
  lua_setfield(L, -2, "codec");
  mw_bind_selector(L);
  lua_setfield(L, -2, "selector");
  lua_newtable(L);
  mw_bind_tools(L);
  mw_bind_yaml(L);
  lua_setfield(L, -2, "tools");
  lua_pushcfunction(L, where);
  lua_setfield(L, -2, "where");
  return 1;
}
