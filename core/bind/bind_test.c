// SPDX-License-Identifier: Apache-2.0
// kube._core.test: what `moonwatch test` has and no script: scripts at the side of the specs, and
// how far the host is with its work.
#include <stdlib.h>

#include "bind/bind.h"
#include "bind/util.h"
#include "script/bundle.h"
#include "script/host.h"

#define SCRIPT_TYPE "kube.test.script"

static const double grace = 2;  // seconds for what drains

static struct mw_host *host_of(lua_State *L) { return mw_generation_host(mw_generation_of(L)); }

static struct mw_side *check(lua_State *L) { return mw_bind_check_box(L, 1, SCRIPT_TYPE); }

// The host stops it before the state of the specs closes, if nobody has.
static int script_gc(lua_State *L) {
  void **box = luaL_checkudata(L, 1, SCRIPT_TYPE);
  if (*box != NULL) mw_side_unref(*box);
  *box = NULL;
  return 0;
}

// script(path): one that is not loaded yet; or nil and why not.
static int test_script(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  struct mw_err err;
  void **box = mw_bind_new_box(L, SCRIPT_TYPE, NULL);
  struct mw_bundle *bundle = mw_bundle_read(path, &err);
  if (bundle != NULL) {
    struct mw_generation_config config = {.bundle = bundle,
                                          .open = mw_bind_open,
                                          .memory_limit = mw_host_config(host_of(L))->memory_limit};
    *box = mw_side_new(mw_host_sides(host_of(L)), &config, &err);
    mw_bundle_unref(bundle);
  }
  if (*box != NULL) return 1;
  lua_pushnil(L);
  lua_pushstring(L, err.message);
  return 2;
}

// start(): true, or nil and why it does not load.
static int script_start(lua_State *L) {
  struct mw_err err;
  if (mw_side_start(check(L), &err) == 0) {
    lua_pushboolean(L, 1);
    return 1;
  }
  lua_pushnil(L);
  lua_pushstring(L, err.message);
  return 2;
}

// load(): the same without the commit.
static int script_load(lua_State *L) {
  struct mw_err err;
  if (mw_side_load(check(L), &err) == 0) {
    lua_pushboolean(L, 1);
    return 1;
  }
  lua_pushnil(L);
  lua_pushstring(L, err.message);
  return 2;
}

static int script_commit(lua_State *L) {
  mw_generation_commit(mw_side_generation(check(L)));
  mw_host_poke(host_of(L));
  return 0;
}

static int script_stop(lua_State *L) {
  mw_side_stop(check(L), grace);
  return 0;
}

static int script_has_ended(lua_State *L) {
  lua_pushboolean(L, mw_side_has_ended(check(L)));
  return 1;
}

static int script_failure(lua_State *L) {
  lua_pushstring(L, mw_side_failure(check(L)));
  return 1;
}

// Whether something has still to be worked on.
struct work {
  uint64_t revision;
  const char *what;  // NULL: nothing
  const char *name;  // may be NULL
};

static void note(struct work *w, const char *what, const char *name) {
  if (w->what != NULL) return;
  w->what = what;
  w->name = name;
}

static void look_at_queue(void *ctx, struct mw_workqueue *q) {
  struct mw_workqueue_stats stats;
  mw_workqueue_stats(q, &stats);
  if (stats.ready + stats.locked + stats.processing == 0) return;
  note(ctx, "keys in the work queue", mw_workqueue_name(q));
}

static void look_at_listener(void *ctx, const struct mw_listener_stats *stats) {
  if (!stats->synced || stats->pending > 0) note(ctx, "events before the handler", stats->name);
}

static void look_at_informer(void *ctx, struct mw_informer *inf) {
  struct work *w = ctx;
  if (!mw_informer_is_started(inf) || mw_informer_is_stopping(inf)) return;
  struct mw_informer_stats stats;
  mw_informer_stats(inf, &stats);
  bool behind = strtoull(stats.reflector.last_rv, NULL, 10) < w->revision;
  if (!mw_informer_has_synced(inf) || stats.queued > 0 || behind) {
    note(w, "changes before the cache of", mw_informer_name(inf));
  }
  mw_informer_each_listener(inf, look_at_listener, w);
}

// busy(revision): nil when nothing is to be done by what was written up to that revision, but what
// waits for its time; else what is under way, and whose.
static int test_busy(lua_State *L) {
  struct mw_host *h = host_of(L);
  struct work w = {.revision = (uint64_t)luaL_checknumber(L, 1)};
  mw_factory_each(mw_host_factory(h), look_at_informer, &w);
  mw_queues_each(mw_host_queues(h), look_at_queue, &w);
  if (mw_rest_pool_is_busy(mw_host_requests(h))) note(&w, "requests", NULL);
  if (w.what == NULL) return 0;
  lua_pushstring(L, w.what);
  lua_pushstring(L, w.name);
  return 2;
}

static void append_name(void *ctx, struct mw_informer *inf) {
  lua_State *L = ctx;
  lua_pushstring(L, mw_informer_name(inf));
  lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
}

// informers(): the names of all that the host has.
static int test_informers(lua_State *L) {
  lua_newtable(L);
  mw_factory_each(mw_host_factory(host_of(L)), append_name, L);
  return 1;
}

// forget(): nothing of a script that has ended is left for the next.
static int test_forget(lua_State *L) {
  mw_queues_forget(mw_host_queues(host_of(L)));
  return 0;
}

// agent(): the User-Agent of the specs' own requests.
static int test_agent(lua_State *L) {
  lua_pushstring(L, mw_generation_agent(mw_generation_of(L)));
  return 1;
}

static void open_test(lua_State *L) {
  static const luaL_Reg functions[] = {{"script", test_script},
                                       {"busy", test_busy},
                                       {"forget", test_forget},
                                       {"informers", test_informers},
                                       {"arguments", mw_bind_arguments},
                                       {"agent", test_agent},

                                       {NULL, NULL}};
  static const luaL_Reg methods[] = {{"start", script_start},
                                     {"load", script_load},
                                     {"commit", script_commit},
                                     {"stop", script_stop},
                                     {"has_ended", script_has_ended},
                                     {"failure", script_failure},
                                     {NULL, NULL}};
  mw_bind_new_type(L, SCRIPT_TYPE, methods, script_gc);
  lua_newtable(L);
  luaL_register(L, NULL, functions);
}

void mw_bind_test_open(struct lua_State *L) { mw_bind_open_with(L, "test", open_test); }
