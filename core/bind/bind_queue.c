// SPDX-License-Identifier: Apache-2.0
// kube._core.queue: a script's hold on a work queue. The queue belongs to the host; the handle is a
// user of it and ends with the generation: those who wait for a key are told that none will come,
// and keys that nobody was done with go back to the queue when the state closes.
#include "bind/bind_queue.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "bind/bind.h"
#include "bind/util.h"
#include "queue/queues.h"
#include "script/host.h"
#include "script/sched.h"

#define QUEUE_TYPE "kube.workqueue"

// A task that finds keys ready takes them without going through the loop for so long.
enum { TURN_NS = 2000000 };
enum { COUNT_MAX = 1000000000 };
static const double rate_max = 1e9;

struct handle {
  struct mw_owned owned;  // in the generation's list until it is closed
  struct mw_generation *gen;
  struct mw_workqueue *q;  // +1
  struct mw_workqueue_user *user;
  char *name;  // which the queue gets at commit; NULL: it has it
  int refs;    // the Lua box, each who waits, a rename to come
  bool closed;
  uint64_t turn;  // when the loop last handed out a key
};

// A task that waits for a key.
struct getter {
  struct mw_workqueue_waiter waiter;
  struct mw_task *task;
  struct handle *handle;  // +1
};

static struct handle *check(lua_State *L) { return mw_bind_check_box(L, 1, QUEUE_TYPE); }

struct mw_workqueue *mw_bind_check_queue(struct lua_State *L, int idx) {
  if (!lua_istable(L, idx)) return ((struct handle *)mw_bind_check_box(L, idx, QUEUE_TYPE))->q;
  lua_getfield(L, idx, "_handle");
  struct handle *h = mw_bind_check_box(L, -1, QUEUE_TYPE);
  lua_pop(L, 1);
  return h->q;
}

static void handle_unref(struct handle *h) {
  if (--h->refs > 0) return;
  mw_workqueue_leave(h->user);
  if (mw_workqueue_name(h->q) != NULL) {
    mw_queues_put(mw_host_queues(mw_generation_host(h->gen)), h->q);
  } else {
    mw_workqueue_unref(h->q);
  }
  mw_free(h);
}

// The script ends. What a queue has that was shut down before is still worked off, by whoever
// drains.
static void handle_close(struct mw_owned *o) {
  struct handle *h = (struct handle *)o;
  h->closed = true;
  if (!mw_workqueue_is_shut_down(h->q)) mw_workqueue_close(h->user);
  mw_generation_drop(h->gen, &h->owned);
}

static int handle_gc(lua_State *L) {
  void **box = luaL_checkudata(L, 1, QUEUE_TYPE);
  struct handle *h = *box;
  *box = NULL;
  if (h == NULL) return 0;
  if (!h->closed) handle_close(&h->owned);
  handle_unref(h);
  return 0;
}

static void on_changed(void *arg) { mw_generation_changed(((struct handle *)arg)->gen); }

// At commit, when the generation that knows the queue by its old name goes.
static void rename_at_commit(void *arg) {
  struct handle *h = arg;
  if (!mw_generation_is_stopping(h->gen))
    mw_queues_rename(mw_host_queues(mw_generation_host(h->gen)), h->q, h->name);
  mw_free(h->name);
  h->name = NULL;
  handle_unref(h);
}

// The queue of this name, +1; or the one that has been known as `was` (may be NULL). NULL when it
// is another script's. All revisions of a script have one store: that tells them from others.
static struct mw_workqueue *find(struct mw_generation *gen, const char *name, const char *was) {
  struct mw_workqueue_config own = {.limits = mw_rate_limiter_default};
  struct mw_host *host = mw_generation_host(gen);
  if (name == NULL) return mw_workqueue_new(mw_host_loop(host), NULL, &own);
  struct mw_queues *queues = mw_host_queues(host);
  const void *owner = mw_generation_store(gen);
  struct mw_workqueue *q = was != NULL ? mw_queues_find(queues, was, owner) : NULL;
  return q != NULL ? q : mw_queues_get(queues, name, owner, &own);
}

// new(name, was): both may be nil.
static int queue_new(lua_State *L) {
  const char *name = luaL_optstring(L, 1, NULL), *was = luaL_optstring(L, 2, NULL);
  void **box = mw_bind_new_box(L, QUEUE_TYPE, NULL);
  struct mw_generation *gen = mw_generation_of(L);
  struct mw_workqueue *q = find(gen, name, was);
  if (q == NULL) {
    return mw_bind_misuse(L,
                          "another script of this process has a controller or a queue named '%s'; "
                          "give this one a name of its own",
                          name);
  }
  struct handle *h = mw_xcalloc(1, sizeof *h);
  h->gen = gen;
  h->q = q;
  h->user = mw_workqueue_join(h->q, on_changed, h);
  h->refs = 1;
  h->owned.close = handle_close;
  h->owned.passive = true;  // a task that waits for a key keeps the generation running
  mw_generation_own(h->gen, &h->owned);
  *box = h;
  if (name != NULL && strcmp(mw_workqueue_name(q), name) != 0) {
    h->name = mw_xstrdup(name);
    h->refs++;
    mw_generation_defer(gen, rename_at_commit, h);
  }
  return 1;
}

// limit{base_delay, max_delay, fast_retries, qps, burst, max_wait}
static int queue_limit(lua_State *L) {
  struct handle *h = check(L);
  const struct mw_rate_limiter_config *d = &mw_rate_limiter_default;
  luaL_checktype(L, 2, LUA_TTABLE);
  struct mw_rate_limiter_config c = {
      .base_delay = mw_bind_opt_seconds(L, 2, "base_delay", d->base_delay),
      .max_delay = mw_bind_opt_seconds(L, 2, "max_delay", d->max_delay),
      .fast_retries = (unsigned)mw_bind_opt_count(L, 2, "fast_retries", 0, 0, COUNT_MAX),
      .qps = mw_bind_opt_number(L, 2, "qps", 0, 0, rate_max),
      .burst = mw_bind_opt_number(L, 2, "burst", 0, 0, rate_max),
      .max_wait = mw_bind_opt_seconds(L, 2, "max_wait", 0),
  };
  mw_workqueue_set_limits(h->q, &c);
  return 0;
}

// add(key, after, rate_limited, priority, reason): all but the key may be nil.
static int queue_add(lua_State *L) {
  struct handle *h = check(L);
  struct mw_slice key = mw_bind_slice(L, 2);
  struct mw_workqueue_add how = {.after = luaL_optnumber(L, 3, 0),
                                 .rate_limited = lua_toboolean(L, 4),
                                 .priority = (int)luaL_optinteger(L, 5, 0)};
  if (h->closed && !mw_generation_is_retiring(h->gen)) return 0;
  if (!lua_isnoneornil(L, 6)) how.reasons = mw_workqueue_reason(h->q, mw_bind_slice(L, 6));
  if (mw_workqueue_add(h->q, key, &how) < 0) {
    struct mw_err err;
    mw_err_set(&err, MW_ELIMIT, "queue:add(): the queue is full; it holds as many keys as it may");
    return mw_bind_raise(L, &err);
  }
  return 0;
}

static int queue_forget(lua_State *L) {
  struct handle *h = check(L);
  mw_workqueue_forget(h->q, mw_bind_slice(L, 2));
  return 0;
}

static int queue_forgive(lua_State *L) {
  mw_workqueue_forgive(check(L)->q);
  return 0;
}

static int queue_num_requeues(lua_State *L) {
  struct handle *h = check(L);
  lua_pushnumber(L, mw_workqueue_requeues(h->q, mw_bind_slice(L, 2)));
  return 1;
}

static int queue_len(lua_State *L) {
  lua_pushnumber(L, (lua_Number)mw_workqueue_len(check(L)->q));
  return 1;
}

static void push_reasons(lua_State *L, const struct mw_workqueue *q, uint64_t reasons) {
  lua_newtable(L);
  for (int n = 1; reasons != 0; n++, reasons &= reasons - 1) {
    lua_pushstring(L, mw_workqueue_reason_text(q, (unsigned)__builtin_ctzll(reasons)));
    lua_rawseti(L, -2, n);
  }
}

// true, key, false, info; or true, nil, true when item is NULL. Returns how many.
static int push_item(lua_State *L, struct handle *h, const struct mw_workqueue_item *item) {
  lua_pushboolean(L, 1);
  if (item == NULL) {
    lua_pushnil(L);
    lua_pushboolean(L, 1);
    return 3;
  }
  lua_pushlstring(L, item->key.p, item->key.n);
  lua_pushboolean(L, 0);
  lua_createtable(L, 0, 4);
  lua_pushinteger(L, item->priority);
  lua_setfield(L, -2, "priority");
  push_reasons(L, h->q, item->reasons);
  lua_setfield(L, -2, "reasons");
  lua_pushnumber(L, item->waited);
  lua_setfield(L, -2, "waited");
  lua_pushnumber(L, item->requeues);
  lua_setfield(L, -2, "requeues");
  return 4;
}

static void getter_free(void *arg) {
  struct getter *g = arg;
  mw_workqueue_unwait(&g->waiter);
  handle_unref(g->handle);
  mw_free(g);
}

static void on_item(struct mw_workqueue_waiter *w, const struct mw_workqueue_item *item) {
  struct getter *g = (struct getter *)w;
  struct mw_task *t = g->task;
  g->handle->turn = mw_clock_now();
  int results = push_item(mw_task_stack(t), g->handle, item);
  if (item != NULL) mw_task_finishes(t);
  getter_free(g);
  mw_task_wake(t, results);
}

// An await function.
static int queue_get(lua_State *L) {
  struct handle *h = check(L);
  struct mw_task *t = mw_task_check(L, "queue:get()");
  if (t == NULL) return 2;
  struct mw_workqueue_item item;
  bool at_once = mw_clock_now() - h->turn < TURN_NS && !mw_sched_is_shuffled(mw_sched_of(L));
  if (at_once && !mw_workqueue_has_waiters(h->q) && mw_workqueue_take(h->user, &item)) {
    mw_task_finishes(t);
    return push_item(L, h, &item);
  }
  struct getter *g = mw_xcalloc(1, sizeof *g);
  g->task = t;
  g->handle = h;
  h->refs++;
  mw_workqueue_wait(h->user, &g->waiter, on_item);
  return mw_task_await(L, t, getter_free, g);
}

// What was done by code that has been replaced is done once more by the new one.
static void hand_on(struct handle *h, struct mw_slice key) {
  static const char why[] = "reload";
  struct mw_workqueue_add how = {.reasons =
                                     mw_workqueue_reason(h->q, mw_slice(why, sizeof why - 1))};
  if (mw_workqueue_holds(h->user, key) && mw_workqueue_add(h->q, key, &how) < 0) {
    mw_log(MW_LOG_ERROR, "a key is not run again: the work queue is full", MW_SLC("key", key));
  }
}

// Whether the key was being processed.
static int queue_done(lua_State *L) {
  struct handle *h = check(L);
  if (mw_generation_is_retiring(h->gen)) hand_on(h, mw_bind_slice(L, 2));
  lua_pushboolean(L, mw_workqueue_done(h->user, mw_bind_slice(L, 2)) == 0);
  return 1;
}

static int queue_shut_down(lua_State *L) {
  mw_workqueue_shut_down(check(L)->q);
  return 0;
}

static int queue_is_shut_down(lua_State *L) {
  struct handle *h = check(L);
  lua_pushboolean(L, h->closed || mw_workqueue_is_shut_down(h->q));
  return 1;
}

static int queue_is_drained(lua_State *L) {
  lua_pushboolean(L, mw_workqueue_is_drained(check(L)->q));
  return 1;
}

static void set_number(lua_State *L, const char *name, double v) {
  lua_pushnumber(L, v);
  lua_setfield(L, -2, name);
}

static int queue_stats(lua_State *L) {
  struct mw_workqueue_stats s;
  struct handle *h = check(L);
  mw_workqueue_stats(h->q, &s);
  lua_createtable(L, 0, 12);
  set_number(L, "ready", (double)s.ready);
  set_number(L, "locked", (double)s.locked);
  set_number(L, "waiting", (double)s.waiting);
  set_number(L, "processing", (double)s.processing);
  set_number(L, "held", (double)mw_workqueue_held(h->user));
  set_number(L, "failing", (double)s.failing);
  set_number(L, "keys", (double)s.keys);
  set_number(L, "bytes", (double)s.bytes);
  set_number(L, "adds", (double)s.adds);
  set_number(L, "retries", (double)s.retries);
  set_number(L, "taken", (double)s.taken);
  set_number(L, "unfinished_seconds", s.unfinished);
  set_number(L, "longest_running_seconds", s.longest);
  return 1;
}

// look(key): what is known of a key, or nil. Seconds are there where they mean something.
static int queue_look(lua_State *L) {
  struct handle *h = check(L);
  struct mw_workqueue_key k;
  if (!mw_workqueue_look(h->q, mw_bind_slice(L, 2), &k)) return 0;
  lua_createtable(L, 0, 6);
  lua_pushboolean(L, k.ready);
  lua_setfield(L, -2, "ready");
  if (k.ready) set_number(L, "ready_for", k.ready_for);
  if (k.waiting) set_number(L, "ready_in", k.ready_in);
  if (k.held) set_number(L, "running_for", k.held_for);
  set_number(L, "failures", k.failures);
  push_reasons(L, h->q, k.reasons);
  lua_setfield(L, -2, "reasons");
  return 1;
}

static void push_held(void *ctx, struct mw_slice key, double seconds) {
  lua_State *L = ctx;
  lua_pushlstring(L, key.p, key.n);
  lua_pushnumber(L, seconds);
  lua_rawset(L, -3);
}

// running(): { [key] = seconds } of all that are handed out.
static int queue_running(lua_State *L) {
  struct handle *h = check(L);
  luaL_checkstack(L, 4, NULL);
  lua_newtable(L);
  mw_workqueue_each_held(h->q, push_held, L);
  return 1;
}

void mw_bind_queue(struct lua_State *L) {
  static const luaL_Reg methods[] = {
      {"limit", queue_limit},
      {"add", queue_add},
      {"forget", queue_forget},
      {"forgive", queue_forgive},
      {"num_requeues", queue_num_requeues},
      {"len", queue_len},
      {"get", queue_get},
      {"done", queue_done},
      {"shut_down", queue_shut_down},
      {"is_shut_down", queue_is_shut_down},
      {"is_drained", queue_is_drained},
      {"stats", queue_stats},
      {"look", queue_look},
      {"running", queue_running},
      {NULL, NULL},
  };
  mw_bind_new_type(L, QUEUE_TYPE, methods, handle_gc);
  lua_newtable(L);
  lua_pushcfunction(L, queue_new);
  lua_setfield(L, -2, "new");
}
