// SPDX-License-Identifier: Apache-2.0
// Input: any bytes, as a manifest. What is read is written, and read again to the same documents
// (but for minus zero, which no integer is); what is not says why.
#include <lauxlib.h>
#include <lua.h>
#include <luajit.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

#include "bind/bind.h"
#include "bind/codec.h"
#include "fuzz.h"

enum { COLLECT_EVERY = 64 };

static const char program[] =
    "local host, text = ...\n"
    "local documents, problem = host.yaml_decode(text)\n"
    "if not documents then assert(#problem > 0) return end\n"
    "for _, document in ipairs(documents) do\n"
    "  local again = assert(host.yaml_decode(host.yaml_encode({ document })))\n"
    "  local before = host.codec.encode_sorted({ document }):gsub('%-0%f[^%d.]', '0')\n"
    "  local after = host.codec.encode_sorted(again[1]):gsub('%-0%f[^%d.]', '0')\n"
    "  assert(before == after, before .. '\\n' .. after)\n"
    "end\n";

// Lua's memory from malloc, where the sanitizers see it.
static void *allocate(void *ctx, void *p, size_t old, size_t n) {
  (void)ctx;
  (void)old;
  if (n > 0) return realloc(p, n);
  free(p);
  return NULL;
}

// Leaves [program, host]. Without the JIT, which keeps memory by pointers that LeakSanitizer does
// not know.
static lua_State *open_state(void) {
  lua_State *L = lua_newstate(allocate, NULL);
  luaL_openlibs(L);
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  mw_codec_open(L);
  require(luaL_loadbufferx(L, program, strlen(program), "=check", "t") == 0);
  lua_newtable(L);
  mw_bind_codec(L);
  lua_setfield(L, -2, "codec");
  mw_bind_yaml(L);
  return L;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static lua_State *L;
  static unsigned count;
  if (L == NULL) L = open_state();
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  lua_pushlstring(L, (const char *)data, size);
  if (lua_pcall(L, 2, 0, 0) != 0) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    abort();
  }
  if (++count % COLLECT_EVERY == 0) lua_gc(L, LUA_GCCOLLECT, 0);
  return 0;
}
