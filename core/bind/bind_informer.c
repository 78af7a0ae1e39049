// SPDX-License-Identifier: Apache-2.0
// kube._core.informer: makes or finds informers by their options, starts and stops them.
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "bind/bind.h"
#include "bind/bind_client.h"
#include "bind/bind_indexer.h"
#include "bind/informer_handle.h"
#include "bind/util.h"
#include "cache/factory.h"
#include "script/call.h"
#include "script/host.h"

enum { PATHS_MAX = 256, STEPS_MAX = 1000, PAGE_MAX = 1000000, IDENTITY_MAX = 64 * 1024 };
static const double least_delay = 0.001;
static char counts_key;

struct mw_handle *mw_bind_check_handle(lua_State *L, int idx) {
  return mw_bind_check_box(L, idx, MW_INFORMER_TYPE);
}

void mw_bind_check_not_started(lua_State *L, const struct mw_handle *h, const char *what) {
  struct mw_err err;
  mw_bind_check_not_stopped(L, h, what);
  if (!h->running) return;
  mw_err_set(&err, MW_ESTATE, "%s: the informer of %s is already running", what,
             mw_informer_name(h->inf));
  mw_bind_raise(L, &err);
}

void mw_bind_check_not_stopped(lua_State *L, const struct mw_handle *h, const char *what) {
  struct mw_err err;
  if (!h->stopped) return;
  mw_err_set(&err, MW_ESTATE, "%s: the informer of %s has been stopped", what,
             mw_informer_name(h->inf));
  mw_bind_raise(L, &err);
}

// Nothing of this generation is left in the informer.
static void leave_informer(struct mw_handle *h) {
  mw_informer_drop_owner(h->inf, h->gen);
  mw_generation_unwant(h->gen, h->inf);
  mw_informer_unref(h->inf);
}

void mw_bind_handle_unref(struct mw_handle *h) {
  if (--h->refs > 0) return;
  if (h->inf != NULL) leave_informer(h);
  mw_free(h);
}

static int handle_gc(lua_State *L) {
  void **box = luaL_checkudata(L, 1, MW_INFORMER_TYPE);
  if (*box != NULL) mw_bind_handle_unref(*box);
  *box = NULL;
  return 0;
}

// Ends this handle's use of the informer. The informer itself stops unless the next generation uses
// it already; if it goes on, the handlers that came through this handle end nevertheless.
static void handle_stop(struct mw_handle *h) {
  h->stopped = true;
  if (!h->running) return;
  h->running = false;
  mw_generation_drop(h->gen, &h->owned);
  mw_informer_drop_error_handler(h->inf, h->gen);
  mw_informer_stop(h->inf);
  if (!mw_informer_is_stopping(h->inf)) mw_bind_remove_handlers(h);
  mw_host_poke(mw_generation_host(h->gen));
  mw_bind_handle_unref(h);
}

static void handle_close(struct mw_owned *o) { handle_stop((struct mw_handle *)o); }

// Runs at once, or at commit when the start was asked for in the load phase.
static void handle_start(void *arg) {
  struct mw_handle *h = arg;
  h->starting = false;
  struct mw_err err;
  if (h->stopped || h->running || mw_generation_is_stopping(h->gen)) {
    mw_bind_handle_unref(h);
    return;
  }
  if (mw_informer_start(h->inf, h->gen, &err) < 0) {
    mw_log(MW_LOG_ERROR, "informer not started", MW_STR("resource", mw_informer_name(h->inf)),
           MW_STR("error", err.message));
    h->stopped = true;
    mw_host_poke(mw_generation_host(h->gen));
    mw_bind_handle_unref(h);
    return;
  }
  h->running = true;
  h->ran = true;
  h->owned.close = handle_close;
  mw_generation_own(h->gen, &h->owned);
}

static int informer_start(lua_State *L) {
  struct mw_handle *h = mw_bind_check_handle(L, 1);
  if (h->running || h->starting || h->stopped) {
    lua_pushboolean(L, 0);
    return 1;
  }
  h->refs++;
  h->starting = true;
  mw_generation_defer(h->gen, handle_start, h);
  lua_pushboolean(L, 1);
  return 1;
}

static int informer_stop(lua_State *L) {
  handle_stop(mw_bind_check_handle(L, 1));
  return 0;
}

static int informer_is_started(lua_State *L) {
  struct mw_handle *h = mw_bind_check_handle(L, 1);
  lua_pushboolean(L, h->running || h->starting || h->stopped);
  return 1;
}

static bool is_at_rest(const struct mw_handle *h) {
  if (!mw_informer_is_started(h->inf) || mw_informer_is_stopped(h->inf)) return true;
  return !mw_informer_is_stopping(h->inf) && h->handlers == NULL;  // it goes on for the next
}

// Whether this handle was stopped; with `true`, whether all that it ran has come to rest, too.
static int informer_is_stopped(lua_State *L) {
  struct mw_handle *h = mw_bind_check_handle(L, 1);
  lua_pushboolean(L, h->stopped && (!lua_toboolean(L, 2) || is_at_rest(h)));
  return 1;
}

// An informer that was found warm counts once this script has started it.
static int informer_has_synced(lua_State *L) {
  struct mw_handle *h = mw_bind_check_handle(L, 1);
  lua_pushboolean(L, h->ran && mw_informer_has_synced(h->inf));
  return 1;
}

static int informer_name(lua_State *L) {
  lua_pushstring(L, mw_informer_name(mw_bind_check_handle(L, 1)->inf));
  return 1;
}

static int informer_reader(lua_State *L) {
  mw_bind_push_reader(L, mw_bind_check_handle(L, 1), "");
  return 1;
}

static void set_count(lua_State *L, const char *name, uint64_t v) {
  lua_pushnumber(L, (lua_Number)v);
  lua_setfield(L, -2, name);
}

static void push_decisions(lua_State *L, const struct mw_reflector_stats *r) {
  lua_newtable(L);
  for (int i = 0; i < MW_DECISION_COUNT; i++) {
    set_count(L, mw_decision_name((enum mw_decision)i), r->decisions[i]);
  }
}

// stats(): counters for people, specs and metrics.
static int informer_stats(lua_State *L) {
  struct mw_informer_stats s;
  mw_informer_stats(mw_bind_check_handle(L, 1)->inf, &s);
  lua_newtable(L);
  push_decisions(L, &s.reflector);
  lua_setfield(L, -2, "decisions");
  lua_pushstring(L, mw_reflector_state_name(s.reflector.state));
  lua_setfield(L, -2, "state");
  lua_pushstring(L, s.reflector.last_rv);
  lua_setfield(L, -2, "last_resource_version");
  lua_pushstring(L, s.last_error);
  lua_setfield(L, -2, "last_error");
  set_count(L, "lists", s.reflector.lists);
  set_count(L, "watches", s.reflector.watches);
  set_count(L, "events", s.reflector.events);
  set_count(L, "dropped", s.reflector.dropped);
  set_count(L, "reused", s.reflector.reused);
  set_count(L, "received", s.reflector.received);
  set_count(L, "objects", s.store.objects);
  set_count(L, "object_bytes", s.store.object_bytes);
  set_count(L, "map_bytes", s.store.map_bytes);
  set_count(L, "index_failures", s.store.index_failures);
  set_count(L, "queued", s.queued);
  set_count(L, "coalesced", s.coalesced);
  set_count(L, "process_errors", s.process_errors);
  set_count(L, "deltas", s.deltas);
  return 1;
}

// The strings of list options[field] into out; returns how many. Raises beyond PATHS_MAX.
static size_t path_list(lua_State *L, const char *field, struct mw_slice *out) {
  lua_getfield(L, 1, field);  // stays on the stack: the slices point into it
  if (lua_isnil(L, -1)) return 0;
  if (!lua_istable(L, -1))
    mw_bind_opt_misuse(L, 1, "option '%s' must be a list of field paths", field);
  size_t n = lua_objlen(L, -1);
  if (n > PATHS_MAX)
    mw_bind_opt_misuse(L, 1, "option '%s' has more than %d paths", field, PATHS_MAX);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, -1, (int)i + 1);
    if (lua_type(L, -1) != LUA_TSTRING)
      mw_bind_opt_misuse(L, 1, "option '%s' must hold strings", field);
    out[i] = mw_bind_slice(L, -1);
    lua_pop(L, 1);
  }
  return n;
}

static struct mw_projection *projection_of(lua_State *L) {
  struct mw_slice keep[PATHS_MAX], drop[PATHS_MAX];
  size_t keeps = path_list(L, "keep", keep);
  size_t drops = path_list(L, "drop", drop);
  if (keeps == 0 && drops == 0) return NULL;
  struct mw_err err;
  struct mw_projection *p = mw_projection_new(keep, keeps, drop, drops, &err);
  if (p == NULL) mw_bind_raise(L, &err);
  return p;
}

static struct mw_backoff_config backoff_of(lua_State *L) {
  struct mw_backoff_config b = mw_backoff_default;
  lua_getfield(L, 1, "backoff");
  if (lua_istable(L, -1)) {
    int t = lua_gettop(L);
    b.duration = mw_bind_opt_number(L, t, "duration", b.duration, least_delay, MW_BIND_SECONDS_MAX);
    b.factor = mw_bind_opt_number(L, t, "factor", b.factor, 0, 1000);
    b.jitter = mw_bind_opt_number(L, t, "jitter", b.jitter, 0, 1000);
    b.cap = mw_bind_opt_number(L, t, "cap", b.cap, least_delay, MW_BIND_SECONDS_MAX);
    b.steps = (int)mw_bind_opt_count(L, t, "steps", b.steps, 0, STEPS_MAX);
    b.reset = mw_bind_opt_seconds(L, t, "reset", b.reset);
  }
  lua_pop(L, 1);
  return b;
}

// What says how an informer works, whatever it is for.
static void read_tuning(lua_State *L, struct mw_informer_config *c) {
  struct mw_reflector_config *r = &c->reflector;
  r->backoff = backoff_of(L);
  r->page_size = mw_bind_opt_count(L, 1, "page_size", 0, 0, PAGE_MAX);
  r->no_streaming = !mw_bind_opt_bool(L, 1, "streaming", true);
  r->min_watch_timeout = mw_bind_opt_seconds(L, 1, "min_watch_timeout", 0);
  r->internal_error_budget = mw_bind_opt_seconds(L, 1, "internal_error_budget", 0);
  r->short_watch = mw_bind_opt_seconds(L, 1, "short_watch", 0);
  r->resync = mw_bind_opt_seconds(L, 1, "resync", 0);
  c->fifo_bound = (size_t)mw_bind_opt_count(L, 1, "queue_bound", 0, 1, MW_BIND_QUEUE_MAX);
  c->min_resync = mw_bind_opt_seconds(L, 1, "min_resync", 0);
}

static void read_config(lua_State *L, struct mw_host *host, struct mw_informer_config *c) {
  struct mw_reflector_config *r = &c->reflector;
  struct mw_err err;
  struct mw_slice resource = mw_slice_str(mw_bind_opt_string(L, 1, "resource", ""));
  if (mw_resource_parse(resource, &r->resource, &err) < 0) mw_bind_raise(L, &err);
  r->ns = mw_bind_opt_string(L, 1, "namespace", mw_host_namespace(host));
  r->query = mw_bind_opt_string(L, 1, "query", NULL);
  r->metadata_only = mw_bind_opt_bool(L, 1, "metadata_only", false);
  c->keep_managed_fields = mw_bind_opt_bool(L, 1, "keep_managed_fields", false);
  read_tuning(L, c);
  c->variant = mw_bind_opt_string(L, 1, "variant", NULL);
}

static void poke(void *host) { mw_host_poke(host); }

// Makes the variant tell the informers of one script apart: the nth of equal options gets "#n", so
// that each is one of its own, and the same script loaded anew finds the same ones. A table in the
// registry counts by identity; what the variant points to stays on the stack.
static void number_variant(lua_State *L, struct mw_informer_config *config) {
  struct mw_buf identity;
  mw_buf_init(&identity, IDENTITY_MAX);
  if (mw_informer_identity(config, &identity) == 0) {
    lua_pushlightuserdata(L, &counts_key);
    lua_rawget(L, LUA_REGISTRYINDEX);  // [counts]
    lua_pushlstring(L, identity.p, identity.n);
    lua_pushvalue(L, -1);
    lua_rawget(L, -3);  // [counts, identity, count]
    int n = (int)lua_tointeger(L, -1) + 1;
    lua_pop(L, 1);
    lua_pushinteger(L, n);
    lua_rawset(L, -3);
    config->variant =
        lua_pushfstring(L, "%s#%d", config->variant != NULL ? config->variant : "", n);
  }
  mw_buf_deinit(&identity);
}

// Where informers look that are not told where: "" is everywhere.
static int default_namespace(lua_State *L) {
  lua_pushstring(L, mw_host_namespace(mw_generation_host(mw_generation_of(L))));
  return 1;
}

// check_namespace(what, name): raises unless there can be such a namespace; "" and nil are all of
// them.
static int check_namespace(lua_State *L) {
  if (!lua_isnoneornil(L, 2)) mw_bind_check_namespace(L, 2, luaL_checkstring(L, 1));
  return 0;
}

// check_tuning(options): raises for what new() would refuse, where the options are written. Their
// `what` is the function that they were given to.
static int check_tuning(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  read_tuning(L, &(struct mw_informer_config){0});
  return 0;
}

// check_paths{ what =, keep =, drop = }: the same for the paths of a transform.
static int check_paths(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  mw_projection_free(projection_of(L));
  return 0;
}

// check_resource(what, resource): raises unless it has the form of one.
static int check_resource(lua_State *L) {
  const char *what = luaL_checkstring(L, 1);
  luaL_checkstring(L, 2);
  struct mw_resource resource;
  struct mw_err err;
  if (mw_resource_parse(mw_bind_slice(L, 2), &resource, &err) < 0) {
    mw_bind_misuse(L, "%s: %s", what, err.message);
  }
  return 0;
}

// is_own_group(group): whether it is one of Kubernetes itself.
static int is_own_group(lua_State *L) {
  lua_pushboolean(L, mw_group_is_own(mw_bind_slice(L, 1)));
  return 1;
}

// The informer of the options at 1, which no other handle of this generation has, for the handle
// whose box is at 2: gives it to h.
static void enter_informer(lua_State *L, struct mw_handle *h) {
  struct mw_host *host = mw_generation_host(h->gen);
  struct mw_informer_config config = {0};
  read_config(L, host, &config);
  lua_settop(L, 2);
  lua_getfield(L, 1, "client");
  config.owner = h->gen;
  config.endpoint = mw_bind_endpoint(L, 3);
  config.projection = projection_of(L);  // nothing raises from here until the informer has it
  number_variant(L, &config);
  struct mw_err err;
  struct mw_informer *inf = mw_factory_get(mw_host_factory(host), &config, &err);
  if (inf == NULL) mw_bind_raise(L, &err);
  if (h->inf != NULL) leave_informer(h);
  h->inf = inf;
  mw_informer_on_change(inf, poke, host);
  char place[MW_SCRIPT_PLACE];
  mw_script_place(L, place);
  mw_generation_want(h->gen, inf, place);
}

// new{client=, resource=, ...}
static int informer_new(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  struct mw_handle *h = mw_xcalloc(1, sizeof *h);
  h->gen = mw_generation_of(L);
  h->refs = 1;
  mw_bind_new_box(L, MW_INFORMER_TYPE, h);  // [options, box]
  enter_informer(L, h);
  lua_pushvalue(L, 2);
  return 1;
}

// become(options): the handle is for the informer of these options from now on, as if it had been
// made with them; indexes and hooks have to be set again. Returns false when that cannot be because
// handlers are attached already: then the informer remains, and nobody else finds it.
static int informer_become(lua_State *L) {
  struct mw_handle *h = mw_bind_check_handle(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  mw_bind_check_not_started(L, h, "cannot set a transform");
  bool attached = h->handlers != NULL && !mw_generation_is_loading(h->gen);
  if (attached) {
    mw_factory_hide(mw_host_factory(mw_generation_host(h->gen)), h->inf);
  } else {
    lua_insert(L, 1);  // [options, box]
    enter_informer(L, h);
    mw_bind_move_handlers(h);
  }
  lua_pushboolean(L, !attached);
  return 1;
}

// is_in_handler(): whether the running task is a call of one of its handlers, or belongs to one.
static int informer_is_in_handler(lua_State *L) {
  lua_pushboolean(L, mw_bind_is_in_handler(L, mw_bind_check_handle(L, 1)));
  return 1;
}

// may_have(path): whether its objects may have something there; true when that is no path, which is
// told of elsewhere.
static int informer_may_have(lua_State *L) {
  const struct mw_handle *h = mw_bind_check_handle(L, 1);
  struct mw_err err;
  struct mw_path *path = mw_path_new(mw_bind_slice(L, 2), &err);
  lua_pushboolean(L, path == NULL || mw_informer_may_have(h->inf, path));
  mw_path_free(path);
  return 1;
}

static const luaL_Reg methods[] = {
    {"start", informer_start},
    {"stop", informer_stop},
    {"is_started", informer_is_started},
    {"is_stopped", informer_is_stopped},
    {"has_synced", informer_has_synced},
    {"is_in_handler", informer_is_in_handler},
    {"may_have", informer_may_have},
    {"name", informer_name},
    {"reader", informer_reader},
    {"become", informer_become},
    {"stats", informer_stats},
    {"add_listener", mw_bind_add_listener},
    {"add_indexers", mw_bind_add_indexers},
    {"remove_indexer", mw_bind_remove_indexer},
    {"set_transform", mw_bind_set_transform},
    {"set_error_handler", mw_bind_set_error_handler},
    {NULL, NULL},
};

void mw_bind_informer(lua_State *L) {
  mw_bind_new_type(L, MW_INFORMER_TYPE, methods, handle_gc);
  mw_bind_listener_open(L);
  lua_pushlightuserdata(L, &counts_key);
  lua_newtable(L);
  lua_rawset(L, LUA_REGISTRYINDEX);
  lua_newtable(L);  // [functions]
  lua_pushcfunction(L, informer_new);
  lua_setfield(L, -2, "new");
  lua_pushcfunction(L, default_namespace);
  lua_setfield(L, -2, "default_namespace");
  lua_pushcfunction(L, check_namespace);
  lua_setfield(L, -2, "check_namespace");
  lua_pushcfunction(L, check_tuning);
  lua_setfield(L, -2, "check_tuning");
  lua_pushcfunction(L, check_paths);
  lua_setfield(L, -2, "check_paths");
  lua_pushcfunction(L, check_resource);
  lua_setfield(L, -2, "check_resource");
  lua_pushcfunction(L, is_own_group);
  lua_setfield(L, -2, "is_own_group");
}
