// SPDX-License-Identifier: Apache-2.0
// kube._core.deploy: how a part of Moonwatch offers revisions of scripts that are not in files.
//
//   deploy.sources()                  { { id =, path = "configmap:ns/name" }, ... }
//   deploy.offer(id, origin, files)   files: text by key; the revision, or nil and why it is none
//   deploy.outcome(id, revision)      "pending", "active", "failed", "held", "replaced" or "ended";
//                                     of one that failed, also its report
#include <lauxlib.h>
#include <lua.h>

#include "bind/bind.h"
#include "bind/util.h"
#include "script/bundle.h"
#include "script/host.h"
#include "script/program.h"

static struct mw_program *check(lua_State *L) {
  struct mw_host *h = mw_generation_host(mw_generation_of(L));
  lua_Integer id = luaL_checkinteger(L, 1);
  luaL_argcheck(L, id >= 1 && (size_t)id <= mw_host_program_count(h), 1, "no such script");
  return mw_host_program(h, (size_t)id - 1);
}

static int deploy_sources(lua_State *L) {
  struct mw_host *h = mw_generation_host(mw_generation_of(L));
  lua_newtable(L);
  for (size_t i = 0, n = 0; i < mw_host_program_count(h); i++) {
    struct mw_program *p = mw_host_program(h, i);
    if (!mw_program_is_remote(p)) continue;
    lua_createtable(L, 0, 2);
    lua_pushinteger(L, (lua_Integer)i + 1);
    lua_setfield(L, -2, "id");
    lua_pushstring(L, mw_program_path(p));
    lua_setfield(L, -2, "path");
    lua_rawseti(L, -2, (int)++n);
  }
  return 1;
}

// The entries of the table at idx that are both strings; returns how many. They live in the table.
static size_t read_files(lua_State *L, int idx, struct mw_bundle_file *out) {
  size_t n = 0;
  lua_pushnil(L);
  for (; lua_next(L, idx); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING) continue;
    if (n == MW_BUNDLE_FILES_MAX) luaL_error(L, "more than %d files", MW_BUNDLE_FILES_MAX);
    struct mw_slice text = mw_bind_slice(L, -1);
    out[n++] = (struct mw_bundle_file){.path = lua_tostring(L, -2), .text = text.p, .size = text.n};
  }
  return n;
}

static int deploy_offer(lua_State *L) {
  struct mw_program *p = check(L);
  const char *origin = luaL_checkstring(L, 2);
  luaL_checktype(L, 3, LUA_TTABLE);
  struct mw_bundle_file *files =
      lua_newuserdata(L, MW_BUNDLE_FILES_MAX * sizeof(struct mw_bundle_file));
  size_t n = read_files(L, 3, files);
  struct mw_err err;
  struct mw_bundle *b = mw_bundle_of(origin, files, n, &err);
  if (b == NULL) {
    lua_pushnil(L);
    lua_pushstring(L, err.message);
    return 2;
  }
  lua_pushstring(L, mw_bundle_revision(b));
  mw_program_offer(p, b);
  mw_bundle_unref(b);
  return 1;
}

static int deploy_outcome(lua_State *L) {
  static const char *const names[] = {"pending", "active", "failed", "held", "replaced", "ended"};
  struct mw_program *p = check(L);
  const char *revision = luaL_checkstring(L, 2);
  lua_pushstring(L, names[mw_program_outcome(p, revision)]);
  lua_pushstring(L, mw_program_failure(p, revision));
  return 2;
}

static void open_deploy(lua_State *L) {
  static const luaL_Reg functions[] = {{"sources", deploy_sources},
                                       {"offer", deploy_offer},
                                       {"outcome", deploy_outcome},
                                       {NULL, NULL}};
  lua_newtable(L);
  luaL_register(L, NULL, functions);
}

void mw_bind_deploy_open(struct lua_State *L) { mw_bind_open_with(L, "deploy", open_deploy); }
