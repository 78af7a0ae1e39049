// SPDX-License-Identifier: Apache-2.0
// kube._core.check: what `moonwatch check` and `moonwatch rbac` have and no script: scripts that
// are loaded and never committed.
#include "bind/bind.h"
#include "bind/util.h"
#include "script/bundle.h"
#include "script/call.h"
#include "script/host.h"

#define SCRIPT_TYPE "kube.check.script"

enum { REPORT_MAX = 256 * 1024 };

static struct mw_host *host_of(lua_State *L) { return mw_generation_host(mw_generation_of(L)); }

static struct mw_side *check(lua_State *L) { return mw_bind_check_box(L, 1, SCRIPT_TYPE); }

static int script_gc(lua_State *L) {
  void **box = luaL_checkudata(L, 1, SCRIPT_TYPE);
  if (*box != NULL) mw_side_unref(*box);
  *box = NULL;
  return 0;
}

static int fail(lua_State *L, const struct mw_err *err) {
  lua_pushnil(L);
  lua_pushstring(L, err->message);
  return 2;
}

static int add_side(lua_State *L, struct mw_bundle *bundle) {
  struct mw_generation_config config = {
      .bundle = bundle,
      .open = mw_bind_open,
      .memory_limit = mw_host_config(host_of(L))->memory_limit,
  };
  struct mw_err err;
  void **box = mw_bind_new_box(L, SCRIPT_TYPE, NULL);
  *box = mw_side_new(mw_host_sides(host_of(L)), &config, &err);
  return *box != NULL ? 1 : fail(L, &err);
}

// script(path): one that is not loaded yet; or nil and why not: for every file that cannot be
// compiled a paragraph (mw_bundle_check).
static int check_script(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  struct mw_buf *report = mw_bind_push_buffers(L, 1, REPORT_MAX);
  struct mw_err err;
  struct mw_bundle *bundle = mw_bundle_read(path, &err);
  if (bundle == NULL) return fail(L, &err);
  int rc = mw_bundle_check(bundle, report);
  int n = rc == 0 ? add_side(L, bundle) : 0;
  mw_bundle_unref(bundle);
  if (rc == 0) return n;
  lua_pushnil(L);
  lua_pushlstring(L, report->p != NULL ? report->p : "", report->n);
  return 2;
}

// load(): true, or nil and why it does not load.
static int script_load(lua_State *L) {
  struct mw_err err;
  struct mw_side *side = check(L);
  if (mw_side_load(side, &err) == 0) {
    lua_pushboolean(L, 1);
    return 1;
  }
  lua_pushnil(L);
  lua_pushstring(L, mw_generation_report(mw_side_generation(side)));
  return 2;
}

// declared(): what it declared, as JSON; nil when it has not even asked for kube.
static int script_declared(lua_State *L) {
  lua_State *script = mw_generation_state(mw_side_generation(check(L)));
  struct mw_err err;
  lua_getfield(script, LUA_REGISTRYINDEX, "_LOADED");
  lua_getfield(script, -1, "kube._declared");
  if (!lua_istable(script, -1)) {
    lua_pop(script, 2);
    return 0;
  }
  lua_getfield(script, -1, "text");  // [loaded, module, function]
  if (mw_script_call(script, 0, 1, &err) < 0) {
    lua_pop(script, 2);
    return mw_bind_raise(L, &err);
  }
  size_t size;
  const char *text = lua_tolstring(script, -1, &size);
  lua_pushlstring(L, text, size);
  lua_pop(script, 3);
  return 1;
}

static int script_stop(lua_State *L) {
  mw_side_stop(check(L), 0);
  return 0;
}

static int script_has_ended(lua_State *L) {
  lua_pushboolean(L, mw_side_has_ended(check(L)));
  return 1;
}

// forget(): nothing of a script that has ended is left for the next.
static int check_forget(lua_State *L) {
  mw_queues_forget(mw_host_queues(host_of(L)));
  return 0;
}

static void open_check(lua_State *L) {
  static const luaL_Reg functions[] = {{"script", check_script},
                                       {"forget", check_forget},
                                       {"arguments", mw_bind_arguments},
                                       {NULL, NULL}};
  static const luaL_Reg methods[] = {{"load", script_load},
                                     {"declared", script_declared},
                                     {"stop", script_stop},
                                     {"has_ended", script_has_ended},
                                     {NULL, NULL}};
  mw_bind_new_type(L, SCRIPT_TYPE, methods, script_gc);
  lua_newtable(L);
  luaL_register(L, NULL, functions);
}

void mw_bind_check_open(struct lua_State *L) { mw_bind_open_with(L, "check", open_check); }
