// SPDX-License-Identifier: Apache-2.0
// The parts of kube._server that need no worker, for specs (spec/support/sandbox_env.lua).
#include <lauxlib.h>
#include <lua.h>

#include "bind/bind.h"
#include "bind/bind_server.h"
#include "bind/codec.h"

int luaopen_mw_sandbox_spec(lua_State *L);

int luaopen_mw_sandbox_spec(lua_State *L) {
  mw_codec_open(L);
  lua_newtable(L);
  mw_bind_codec(L);
  lua_setfield(L, -2, "codec");
  mw_bind_tools(L);
  mw_bind_yaml(L);
  mw_bind_server_tools(L);
  return 1;
}
