// SPDX-License-Identifier: Apache-2.0
// Event handlers: a listener of the processor whose deliveries are tasks of the script.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "bind/event_source.h"
#include "bind/informer_handle.h"
#include "bind/objtable.h"
#include "bind/predicate_arg.h"
#include "bind/util.h"
#include "cache/extract.h"
#include "script/bundle.h"
#include "script/call.h"
#include "script/host.h"
#include "script/ref.h"
#include "script/sched.h"

// Held by the Lua box and by the listener until it is closed.
struct mw_registration {
  struct mw_owned owned;
  struct mw_generation *gen;
  struct mw_listener *listener;         // +1
  struct mw_informer *inf;              // +1: the queue of deliveries must outlive the handler
  struct mw_handle *handle;             // +1 until closed
  struct mw_registration *prev, *next;  // in handle->handlers
  struct mw_predicate *predicate;
  struct mw_event_source *source;            // NULL: the functions below are called
  int on_add, on_update, on_delete, filter;  // registry references
  struct mw_listener_config config;          // until it is attached
  double resync;                             // < 0: what its factory says
  bool replay;
  int refs;
  bool joined;   // it came to be: on_closed will be called
  bool removed;  // before it was attached
  bool closed;
  bool delivering;  // inside mw_task_start
  bool ended;       // the task that delivering started has ended
  unsigned long long errors;
  char name[64];
  const char *what;  // the event under way, for reports
  char key[MW_OBJECT_KEY_MAX + 1];
};

static void registration_unref(struct mw_registration *r) {
  if (--r->refs > 0) return;
  mw_listener_unref(r->listener);
  mw_informer_unref(r->inf);
  mw_predicate_free(r->predicate);
  mw_event_source_free(r->source);
  mw_free(r);
}

static void drop_functions(struct mw_registration *r) {
  lua_State *L = mw_generation_state(r->gen);
  mw_luaref_drop(L, &r->on_add);
  mw_luaref_drop(L, &r->on_update);
  mw_luaref_drop(L, &r->on_delete);
  mw_luaref_drop(L, &r->filter);
  if (r->source != NULL) mw_event_source_detach(r->source, L);
}

static void join(struct mw_handle *h, struct mw_registration *r) {
  h->refs++;
  r->handle = h;
  r->next = h->handlers;
  if (r->next != NULL) r->next->prev = r;
  h->handlers = r;
}

static void leave(struct mw_registration *r) {
  struct mw_handle *h = r->handle;
  if (r->prev != NULL) {
    r->prev->next = r->next;
  } else {
    h->handlers = r->next;
  }
  if (r->next != NULL) r->next->prev = r->prev;
  r->prev = r->next = NULL;
  r->handle = NULL;
  mw_bind_handle_unref(h);
}

// What was queued for a handler whose generation retires is still its own.
static void let_go(struct mw_registration *r) {
  if (r->listener == NULL) {
    r->removed = true;
  } else if (mw_generation_is_retiring(r->gen)) {
    mw_listener_drain(r->listener);
  } else {
    mw_listener_remove(r->listener);
  }
}

// Removal does not close anything before the loop turns, so the list stays as it is meanwhile.
void mw_bind_remove_handlers(struct mw_handle *h) {
  for (struct mw_registration *r = h->handlers; r != NULL; r = r->next) let_go(r);
}

void mw_bind_move_handlers(struct mw_handle *h) {
  for (struct mw_registration *r = h->handlers; r != NULL; r = r->next) {
    mw_informer_unref(r->inf);
    r->inf = mw_informer_ref(h->inf);
  }
}

// The handlers of the generation before are still at it; this one does not wait any longer.
static void on_late(void *ctx, size_t left) {
  struct mw_registration *r = ctx;
  mw_log(MW_LOG_WARN, "handlers begin beside those of the revision before, which have not finished",
         MW_STR("script", mw_bundle_origin(mw_generation_bundle(r->gen))),
         MW_STR("resource", mw_informer_name(r->inf)), MW_INT("left", left),
         MW_NUM("seconds", r->config.hold), MW_STR("revision", mw_generation_revision(r->gen)));
}

// The processor will not call us again.
static void on_closed(void *ctx) {
  struct mw_registration *r = ctx;
  r->closed = true;
  drop_functions(r);
  leave(r);
  mw_generation_drop(r->gen, &r->owned);
  mw_host_poke(mw_generation_host(r->gen));
  registration_unref(r);
}

static void on_owner_close(struct mw_owned *o) { let_go((struct mw_registration *)o); }

static void on_owner_abandon(struct mw_owned *o) {
  struct mw_registration *r = (struct mw_registration *)o;
  struct mw_listener_stats s;
  mw_listener_stats(r->listener, &s);
  if (s.pending > 0) {
    mw_log(MW_LOG_WARN, "a handler of the revision before did not get all events in time",
           MW_STR("handler", r->name), MW_INT("left", s.pending));
  }
  mw_listener_remove(r->listener);
}

// Whether this failure is told: the 1st, 2nd, 4th, 8th... of a handler, which may fail for every
// object there is.
static bool count_error(struct mw_registration *r) {
  r->errors++;
  return (r->errors & (r->errors - 1)) == 0;
}

// The handler has returned, failed or was cancelled: in every case it counts as delivered.
static void on_task_end(void *ctx, lua_State *L, const struct mw_task_failure *failure) {
  struct mw_registration *r = ctx;
  (void)L;
  if (failure != NULL && !failure->cancelled && count_error(r)) {
    mw_log(MW_LOG_ERROR, "handler failed", MW_STR("handler", r->name), MW_STR("event", r->what),
           MW_STR("key", r->key), MW_STR("error", failure->report), MW_INT("failures", r->errors),
           MW_STR("revision", mw_generation_revision(r->gen)));
  }
  if (r->delivering) {
    r->ended = true;
  } else {
    mw_listener_finished(r->listener);
  }
}

static const char *event_name(enum mw_notify_type type) {
  static const char *const names[] = {"add", "update", "delete"};
  return names[type];
}

static struct mw_registration *registration_in_call(lua_State *L) {
  return mw_task_context(mw_task_current(mw_sched_of(L)), on_task_end);
}

bool mw_bind_is_in_handler(lua_State *L, const struct mw_handle *h) {
  const struct mw_registration *calling = registration_in_call(L);
  const struct mw_registration *r = h->handlers;
  while (r != NULL && r != calling) r = r->next;
  return r != NULL;
}

static int run_handler(struct mw_registration *r, lua_State *L, int nargs, enum mw_notify_type type,
                       struct mw_slice key) {
  r->what = event_name(type);
  memcpy(r->key, key.p, key.n);
  r->key[key.n] = '\0';
  r->delivering = true;
  r->ended = false;
  mw_task_start(
      mw_sched_of(L), L, nargs,
      &(struct mw_task_options){.name = r->name, .finishes = true, .end = on_task_end, .ctx = r});
  r->delivering = false;
  return r->ended ? 0 : 1;
}

// For a controller: what the event means is queued, and no task is started.
static int deliver_to_queue(void *ctx, const struct mw_notification *n) {
  struct mw_registration *r = ctx;
  struct mw_err err;
  if (mw_event_source_deliver(r->source, mw_generation_state(r->gen), n, &err) < 0 &&
      count_error(r)) {
    mw_log(MW_LOG_ERROR, "an event was not handled as it should be", MW_STR("handler", r->name),
           MW_STR("event", event_name(n->type)), MW_SLC("key", mw_object_key(n->object)),
           MW_STR("error", err.message), MW_INT("failures", r->errors));
  }
  return 0;
}

static int deliver(void *ctx, const struct mw_notification *n) {
  struct mw_registration *r = ctx;
  lua_State *L = mw_generation_state(r->gen);
  struct mw_slice key = mw_object_key(n->object);
  int ref = n->type == MW_NOTIFY_ADD      ? r->on_add
            : n->type == MW_NOTIFY_UPDATE ? r->on_update
                                          : r->on_delete;
  if (ref == MW_LUAREF_NONE) return 0;
  mw_luaref_push(L, ref);  // [function]
  switch (n->type) {
    case MW_NOTIFY_ADD:
      mw_objtable_push(L, n->object);
      lua_pushboolean(L, n->initial);
      return run_handler(r, L, 2, n->type, key);
    case MW_NOTIFY_UPDATE:
      mw_objtable_push(L, n->old);
      mw_objtable_push(L, n->object);
      return run_handler(r, L, 2, n->type, key);
    case MW_NOTIFY_DELETE:
      mw_objtable_push(L, n->object);
      lua_pushboolean(L, n->stale);
      return run_handler(r, L, 2, n->type, key);
  }
  return 0;
}

// The predicate in C first; then the script's own filter. A filter that fails lets nothing through
// and is reported as an error of the handler.
static bool passes(void *ctx, struct mw_object *o) {
  struct mw_registration *r = ctx;
  lua_State *L = mw_generation_state(r->gen);
  if (r->predicate != NULL && !mw_predicate_test(r->predicate, o, mw_objtable_unpacker(L))) {
    return false;
  }
  if (r->filter == MW_LUAREF_NONE) return true;
  struct mw_err err;
  mw_luaref_push(L, r->filter);
  mw_objtable_push(L, o);
  if (mw_script_call_as(L, "a filter", 1, 1, &err) < 0) {
    if (count_error(r)) {
      mw_log(MW_LOG_ERROR, "filter failed", MW_STR("handler", r->name),
             MW_SLC("key", mw_object_key(o)), MW_STR("error", err.message),
             MW_INT("failures", r->errors));
    }
    return false;
  }
  bool pass = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return pass;
}

static int take_function(lua_State *L, const char *field) {
  lua_getfield(L, 2, field);
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    return MW_LUAREF_NONE;
  }
  if (!lua_isfunction(L, -1)) {
    mw_bind_misuse(L, "'%s' must be a function, not a %s", field, luaL_typename(L, -1));
  }
  return mw_luaref_take(L);
}

static void read_predicate(lua_State *L, struct mw_registration *r) {
  lua_getfield(L, 2, "predicate");
  if (lua_istable(L, -1)) {
    r->predicate = mw_predicate_new();
    mw_bind_read_predicate(L, lua_gettop(L), r->predicate);
  }
  lua_pop(L, 1);
}

static int registration_gc(lua_State *L) {
  void **box = luaL_checkudata(L, 1, MW_REGISTRATION_TYPE);
  struct mw_registration *r = *box;
  if (r == NULL) return 0;
  if (!r->joined) drop_functions(r);
  registration_unref(r);
  *box = NULL;
  return 0;
}

static int attach(struct mw_registration *r, struct mw_err *err) {
  r->listener = mw_informer_add_listener(r->inf, r->gen, &r->config, r->resync, r->replay, err);
  return r->listener != NULL ? 0 : err->code;
}

// A handler that was added while loading is attached at commit: the informer may be running, for
// the generation before, and what is delivered until then is that one's.
static void attach_at_commit(void *arg) {
  struct mw_registration *r = arg;
  struct mw_err err;
  if (r->removed || mw_generation_is_stopping(r->gen)) {
    on_closed(r);
  } else if (attach(r, &err) < 0) {
    mw_log(MW_LOG_ERROR, "handler not added", MW_STR("handler", r->name),
           MW_STR("error", err.message));
    on_closed(r);
  }
}

// It has come to be: the generation and the informer's handle know of it until it is closed.
static void keep(struct mw_handle *h, struct mw_registration *r) {
  r->refs++;
  r->joined = true;
  r->owned.close = on_owner_close;
  r->owned.abandon = on_owner_abandon;
  r->owned.passive = true;
  mw_generation_own(r->gen, &r->owned);
  join(h, r);
}

static double hold_seconds(void) {
  const char *text = getenv("MOONWATCH_HANDLER_HOLD");  // specs set it
  double seconds = text != NULL ? strtod(text, NULL) : 0;
  return seconds > 0 ? seconds : MW_LISTENER_HOLD;
}

static void configure(struct mw_registration *r, size_t bound) {
  r->config = (struct mw_listener_config){
      .bound = bound,
      .deliver = r->source != NULL ? deliver_to_queue : deliver,
      .filter = r->predicate != NULL || r->filter != MW_LUAREF_NONE ? passes : NULL,
      .closed = on_closed,
      .ctx = r};
  memcpy(r->config.name, r->name, sizeof r->config.name);
  // What handlers do with events may depend on their order; keys have none, their queue is shared.
  if (r->source != NULL || mw_generation_bundle(r->gen) == NULL) return;
  r->config.line = mw_generation_store(r->gen);
  r->config.place = mw_generation_number(r->gen);
  r->config.hold = hold_seconds();
  r->config.late = on_late;
}

// add_listener{on_add=, on_update=, on_delete=, filter=, predicate=, resync=, replay=, name=}, or
// with source= (event_source.h) in place of the functions
int mw_bind_add_listener(lua_State *L) {
  struct mw_handle *h = mw_bind_check_handle(L, 1);
  mw_bind_check_not_stopped(L, h, "cannot add a handler");
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  struct mw_registration *r = mw_xcalloc(1, sizeof *r);
  *r = (struct mw_registration){.gen = h->gen,
                                .inf = mw_informer_ref(h->inf),
                                .on_add = MW_LUAREF_NONE,
                                .on_update = MW_LUAREF_NONE,
                                .on_delete = MW_LUAREF_NONE,
                                .filter = MW_LUAREF_NONE,
                                .refs = 1};
  mw_bind_new_box(L, MW_REGISTRATION_TYPE, r);  // [handle, options, box]: frees r if we raise
  read_predicate(L, r);
  lua_getfield(L, 2, "source");
  if (lua_istable(L, -1)) {
    r->source = mw_event_source_new(r->gen);
    mw_event_source_read(r->source, L, lua_gettop(L));
  }
  lua_pop(L, 1);
  snprintf(r->name, sizeof r->name, "%s", mw_bind_opt_string(L, 2, "name", "handler"));
  r->resync = mw_bind_opt_seconds(L, 2, "resync", -1);
  r->replay = mw_bind_opt_bool(L, 2, "replay", true);
  r->on_add = take_function(L, "on_add");
  r->on_update = take_function(L, "on_update");
  r->on_delete = take_function(L, "on_delete");
  r->filter = take_function(L, "filter");
  configure(r, (size_t)mw_bind_opt_count(L, 2, "queue_bound", 0, 1, MW_BIND_QUEUE_MAX));
  struct mw_err err;
  if (mw_generation_is_loading(r->gen)) {
    keep(h, r);
    mw_generation_defer(r->gen, attach_at_commit, r);
  } else if (attach(r, &err) == 0) {
    keep(h, r);
  } else {
    return mw_bind_raise(L, &err);
  }
  lua_pushvalue(L, 3);
  return 1;
}

static struct mw_registration *check(lua_State *L) {
  return mw_bind_check_box(L, 1, MW_REGISTRATION_TYPE);
}

static int registration_remove(lua_State *L) {
  struct mw_registration *r = check(L);
  if (r->listener != NULL) mw_listener_remove(r->listener);
  r->removed = true;
  return 0;
}

static int registration_has_synced(lua_State *L) {
  struct mw_registration *r = check(L);
  lua_pushboolean(L, r->listener != NULL && mw_listener_has_synced(r->listener));
  return 1;
}

// is_calling(): whether the running task is a call of this handler, or belongs to one.
static int registration_is_calling(lua_State *L) {
  lua_pushboolean(L, registration_in_call(L) == check(L));
  return 1;
}

static int registration_is_closed(lua_State *L) {
  lua_pushboolean(L, check(L)->closed);
  return 1;
}

static int registration_stats(lua_State *L) {
  struct mw_registration *r = check(L);
  struct mw_listener_stats s = {0};
  if (r->listener != NULL) mw_listener_stats(r->listener, &s);
  lua_newtable(L);
  lua_pushnumber(L, (lua_Number)s.pending);
  lua_setfield(L, -2, "pending");
  lua_pushnumber(L, (lua_Number)s.delivered);
  lua_setfield(L, -2, "delivered");
  lua_pushnumber(L, (lua_Number)s.coalesced);
  lua_setfield(L, -2, "coalesced");
  lua_pushnumber(L, (lua_Number)s.lag_ns * 1e-9);
  lua_setfield(L, -2, "lag");
  lua_pushnumber(L, (lua_Number)r->errors);
  lua_setfield(L, -2, "errors");
  return 1;
}

void mw_bind_listener_open(lua_State *L) {
  static const luaL_Reg methods[] = {
      {"remove", registration_remove},       {"has_synced", registration_has_synced},
      {"is_closed", registration_is_closed}, {"is_calling", registration_is_calling},
      {"stats", registration_stats},         {NULL, NULL}};
  mw_bind_new_type(L, MW_REGISTRATION_TYPE, methods, registration_gc);
}
