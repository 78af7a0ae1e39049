// SPDX-License-Identifier: Apache-2.0
// Life: new -> load (the main task runs to its first await, where kube._task parks it) -> commit
// (what was deferred, then the main task goes on) -> stop -> free. A load that failed goes to stop
// directly.
//
// Stopping waits for three things that end in their own time: tasks, owned things, and posts that
// still hold a pointer into here. `finish` looks at all of them.
#include "script/generation.h"

#include <assert.h>
#include <lauxlib.h>
#include <lua.h>
#include <luajit.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "cache/informer.h"
#include "script/bundle.h"
#include "script/call.h"
#include "script/env.h"
#include "script/heap.h"
#include "script/host.h"
#include "script/ref.h"
#include "script/sched.h"
#include "script/signal.h"
#include "script/store.h"
#include "script/watchdog.h"

enum { REPORT_MAX = 64 * 1024, NAMES_ROOM = 1024 };

struct deferred {
  mw_loop_cb cb;  // NULL: the function `ref`
  void *ctx;
  int ref;
};

// Functions of the script, as luarefs.
struct functions {
  int *refs;
  size_t count, cap;
};

struct wanted {
  struct mw_informer *inf;  // +1
  char *place;
};

struct mw_generation {
  struct mw_host *host;
  struct mw_loop *loop;
  lua_State *L;
  struct mw_watchdog *watchdog;
  struct mw_sched *sched;
  struct mw_signal *changed;
  struct mw_generation_config config;
  struct wanted *wanted;
  size_t wanted_count, wanted_cap;
  bool loading;
  bool jit;                // to be compiled from commit on
  long failed;             // tasks whose failure nobody looked at
  struct mw_task *parked;  // the main task, waiting for commit
  bool running_entry;      // mw_generation_load is on the C stack
  struct mw_buf report;    // why it does not load: a paragraph for each reason
  struct deferred *deferred;
  size_t deferred_count, deferred_cap;
  struct functions on_stop, on_end;
  int unload, load;  // luarefs
  struct mw_generation_runs runs;
  struct mw_store *own_store;  // NULL: it has that of its program
  struct mw_owned owned;       // head of a circular list
  struct mw_owned closing;     // likewise: close was called
  size_t active;               // owned and not passive, in either list
  bool stopping, retiring, finish_posted;
  bool has_heir;            // what it shares with another is that one's, now or already
  struct mw_timer *linger;  // running: tasks may still end by themselves
  struct mw_timer *grace;   // running: those that drain may
  double grace_seconds, patience_seconds;
  struct mw_timer *patience;  // running: all are cancelled, and should be gone when it ends
  bool undone;
  mw_loop_cb done;
  void *done_ctx;
};

static char registry_key;
static const double linger_seconds = 0.25;
// A cancelled task cannot await any more, but its shields and then its deferred functions can.
static const double default_patience = 2 * MW_SHIELD_SECONDS + 1;

static void list_init(struct mw_owned *head) { head->prev = head->next = head; }

static void list_add(struct mw_owned *head, struct mw_owned *o) {
  o->prev = head->prev;
  o->next = head;
  o->prev->next = o;
  head->prev = o;
}

static void list_del(struct mw_owned *o) {
  o->prev->next = o->next;
  o->next->prev = o->prev;
  o->prev = o->next = NULL;
}

static bool list_empty(const struct mw_owned *head) { return head->next == head; }

static void post_finish(struct mw_generation *g);

static void on_idle(void *arg) {
  struct mw_generation *g = arg;
  if (g->stopping) post_finish(g);
  mw_host_poke(g->host);
}

static int open_state(lua_State *L) {
  struct mw_generation *g = lua_touserdata(L, 1);
  lua_settop(L, 0);
  mw_env_open(L);
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  g->config.open(L);
  lua_settop(L, 0);
  if (g->config.module == NULL) mw_env_restrict(L, g->config.bundle);
  return 0;
}

static void register_as(lua_State *L, struct mw_generation *g) {
  lua_pushlightuserdata(L, &registry_key);
  lua_pushlightuserdata(L, g);
  lua_rawset(L, LUA_REGISTRYINDEX);
}

struct mw_generation *mw_generation_new(struct mw_host *host,
                                        const struct mw_generation_config *config,
                                        struct mw_err *err) {
  struct mw_generation *g = mw_xcalloc(1, sizeof *g);
  g->host = host;
  g->loop = mw_host_loop(host);
  g->config = *config;
  if (config->bundle != NULL) mw_bundle_ref(config->bundle);
  g->loading = true;
  mw_buf_init(&g->report, REPORT_MAX);
  g->unload = g->load = MW_LUAREF_NONE;
  if (config->store == NULL) g->config.store = g->own_store = mw_store_new();
  list_init(&g->owned);
  list_init(&g->closing);
  g->L = mw_heap_open(config->module == NULL ? config->memory_limit : 0);
  register_as(g->L, g);
  if (config->module == NULL) {
    g->watchdog = mw_watchdog_new(
        g->L, &(struct mw_watchdog_config){.exit_after = mw_host_config(host)->stuck_after,
                                           .metered = config->metered});
    mw_watchdog_set_loading(g->watchdog, true);
  }
  g->sched = mw_sched_new(g->loop, g->L);
  const char *seed = getenv("MOONWATCH_TASK_SEED");  // specs set it; see mw_sched_shuffle
  if (seed != NULL && *seed != '\0') mw_sched_shuffle(g->sched, strtoull(seed, NULL, 10));
  g->changed = mw_signal_new(g->loop);
  mw_sched_on_idle(g->sched, on_idle, g);
  if (lua_cpcall(g->L, open_state, g) != 0) {
    mw_err_set(err, MW_ESCRIPT, "%s", mw_script_error_text(g->L, -1));
    mw_generation_free(g);
    return NULL;
  }
  return g;
}

void mw_generation_fail(struct mw_generation *g, const char *report) {
  if (g->config.failed != NULL) {
    g->config.failed(g->config.failed_ctx, report);
  } else {
    mw_host_failed(g->host, report);
  }
}

static void main_ended(void *ctx, struct lua_State *L, const struct mw_task_failure *failure) {
  (void)L;
  struct mw_generation *g = ctx;
  if (failure == NULL || failure->cancelled) return;
  if (g->running_entry) {
    mw_generation_complain(g, failure->report);
  } else {
    mw_generation_fail(g, failure->report);
  }
}

static int load_entry(struct mw_generation *g) {
  if (g->config.module != NULL) return mw_env_load(g->L, g->config.module);
  return mw_env_load_file(g->L, mw_bundle_entry(g->config.bundle));
}

void mw_generation_complain(struct mw_generation *g, const char *text) {
  size_t before = g->report.n;
  int rc = before > 0 ? mw_buf_add(&g->report, "\n\n", 2) : 0;
  if (rc == 0) rc = mw_bundle_explain(g->config.bundle, text, &g->report);
  if (rc == 0) return;
  g->report.n = before;  // no room for another: there is enough to begin with
  if (g->report.p != NULL) g->report.p[before] = '\0';
}

const char *mw_generation_report(const struct mw_generation *g) {
  return g->report.n > 0 ? g->report.p : "";
}

// It does not load. When there are files that do not compile, that is why, and all of them are
// told.
static void look_for_syntax_errors(struct mw_generation *g) {
  if (g->config.bundle == NULL) return;
  struct mw_buf found;
  mw_buf_init(&found, REPORT_MAX);
  if (mw_bundle_check(g->config.bundle, &found) < 0 && found.n > 0) {
    struct mw_buf before = g->report;
    g->report = found;
    if (found.p[found.n - 1] == '\n') g->report.p[--g->report.n] = '\0';
    found = before;
  }
  mw_buf_deinit(&found);
}

int mw_generation_load(struct mw_generation *g, struct mw_err *err) {
  if (load_entry(g) != 0) {
    mw_generation_complain(g, lua_tostring(g->L, -1));
    lua_pop(g->L, 1);
  } else {
    g->running_entry = true;
    mw_task_start(g->sched, g->L, 0,
                  &(struct mw_task_options){.name = "main", .end = main_ended, .ctx = g});
    g->running_entry = false;
  }
  if (g->report.n == 0) return 0;
  look_for_syntax_errors(g);
  return mw_err_set(err, MW_ESCRIPT, "%s", g->report.p);
}

int mw_generation_park(struct mw_generation *g, struct lua_State *L, const char *what) {
  struct mw_task *t = mw_task_check(L, what);
  if (t == NULL) return 2;
  g->parked = t;
  return mw_task_await(L, t, NULL, NULL);
}

static bool run_function(struct mw_generation *g, int *ref) {
  struct mw_err err;
  mw_luaref_push(g->L, *ref);
  mw_luaref_drop(g->L, ref);
  if (mw_script_call(g->L, 0, 0, &err) == 0) return true;
  mw_generation_fail(g, err.message);
  return false;
}

// Runs what was deferred; false when a function failed, and the rest waits for the stop to drop it.
static bool run_deferred(struct mw_generation *g) {
  for (size_t i = 0; i < g->deferred_count; i++) {
    struct deferred d = g->deferred[i];
    g->deferred[i] = (struct deferred){NULL, NULL, MW_LUAREF_NONE};
    if (d.cb != NULL) {
      d.cb(d.ctx);
    } else if (!run_function(g, &d.ref)) {
      return false;
    }
  }
  g->deferred_count = 0;
  return true;
}

void mw_generation_set_jit(struct mw_generation *g, bool on) {
  assert(g->loading);
  g->jit = on;
}

void mw_generation_commit(struct mw_generation *g) {
  assert(g->loading);
  g->loading = false;
  mw_watchdog_set_loading(g->watchdog, false);
  if (g->jit) {
    mw_watchdog_stand_back(g->watchdog);
    luaJIT_setmode(g->L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_ON);
  }
  mw_leader_enter(mw_host_leader(g->host), g);
  if (!run_deferred(g)) return;
  struct mw_task *t = g->parked;
  g->parked = NULL;
  if (t == NULL) return;
  lua_pushboolean(mw_task_stack(t), 1);
  mw_task_wake(t, 1);
}

bool mw_generation_is_loading(const struct mw_generation *g) { return g->loading; }

static void push_deferred(struct mw_generation *g, struct deferred d) {
  if (g->deferred_count == g->deferred_cap) {
    g->deferred_cap = g->deferred_cap > 0 ? g->deferred_cap * 2 : 16;
    g->deferred = mw_xrealloc(g->deferred, g->deferred_cap * sizeof *g->deferred);
  }
  g->deferred[g->deferred_count++] = d;
}

void mw_generation_defer(struct mw_generation *g, mw_loop_cb cb, void *ctx) {
  if (g->loading) {
    push_deferred(g, (struct deferred){cb, ctx, MW_LUAREF_NONE});
  } else {
    cb(ctx);
  }
}

void mw_generation_defer_function(struct mw_generation *g, struct lua_State *L) {
  if (g->loading) {
    push_deferred(g, (struct deferred){NULL, NULL, mw_luaref_take(L)});
  } else {
    lua_call(L, 0, 0);
  }
}

static void push_function(struct functions *f, struct lua_State *L) {
  if (f->count == f->cap) {
    f->cap = f->cap > 0 ? f->cap * 2 : 4;
    f->refs = mw_xrealloc(f->refs, f->cap * sizeof *f->refs);
  }
  f->refs[f->count++] = mw_luaref_take(L);
}

void mw_generation_on_stop(struct mw_generation *g, struct lua_State *L) {
  push_function(&g->on_stop, L);
}

void mw_generation_on_end(struct mw_generation *g, struct lua_State *L) {
  push_function(&g->on_end, L);
}

void mw_generation_own(struct mw_generation *g, struct mw_owned *o) {
  list_add(&g->owned, o);
  if (!o->passive) g->active++;
  if (g->stopping) post_finish(g);
  mw_host_poke(g->host);
}

void mw_generation_drop(struct mw_generation *g, struct mw_owned *o) {
  list_del(o);
  if (!o->passive) g->active--;
  if (g->stopping) post_finish(g);
  mw_host_poke(g->host);
}

void mw_generation_want(struct mw_generation *g, struct mw_informer *inf, const char *place) {
  if (g->wanted_count == g->wanted_cap) {
    g->wanted_cap = g->wanted_cap > 0 ? g->wanted_cap * 2 : 8;
    g->wanted = mw_xrealloc(g->wanted, g->wanted_cap * sizeof *g->wanted);
  }
  g->wanted[g->wanted_count++] = (struct wanted){mw_informer_ref(inf), mw_xstrdup(place)};
}

static void wanted_free(struct wanted *w) {
  mw_informer_unref(w->inf);
  mw_free(w->place);
}

void mw_generation_unwant(struct mw_generation *g, struct mw_informer *inf) {
  size_t i = 0;
  while (i < g->wanted_count && g->wanted[i].inf != inf) i++;
  if (i == g->wanted_count) return;
  wanted_free(&g->wanted[i]);
  g->wanted[i] = g->wanted[--g->wanted_count];
}

void mw_generation_each_wanted(struct mw_generation *g, mw_generation_wanted_cb cb, void *ctx) {
  for (size_t i = 0; i < g->wanted_count; i++) cb(ctx, g->wanted[i].inf, g->wanted[i].place);
}

static void drop_wanted(struct mw_generation *g) {
  for (size_t i = 0; i < g->wanted_count; i++) wanted_free(&g->wanted[i]);
  mw_free(g->wanted);
}

void mw_generation_count_failed(struct mw_generation *g, int by) { g->failed += by; }

bool mw_generation_has_failed(const struct mw_generation *g) { return g->failed > 0; }

void mw_generation_set_handover(struct mw_generation *g, struct lua_State *L) {
  g->load = mw_luaref_take(L);
  g->unload = mw_luaref_take(L);
}

int mw_generation_hand_over(struct mw_generation *from, struct mw_generation *to, bool broken,
                            struct mw_err *err) {
  if (to->load == MW_LUAREF_NONE) return 0;
  size_t size = 0;
  const char *text = NULL;
  int top = lua_gettop(from->L);
  if (from->unload != MW_LUAREF_NONE) {
    mw_luaref_push(from->L, from->unload);
    int rc = mw_script_call_as(from->L, "kube.on_unload", 0, 1, err);
    if (rc < 0 && !broken) return err->code;
    if (rc < 0) {
      mw_log(MW_LOG_WARN, "the revision that failed hands nothing over",
             MW_STR("revision", mw_generation_revision(from)), MW_STR("error", err->message));
    } else {
      text = lua_tolstring(from->L, -1, &size);
    }
  }
  mw_luaref_push(to->L, to->load);
  if (text != NULL) {
    lua_pushlstring(to->L, text, size);
  } else {
    lua_pushnil(to->L);
  }
  lua_settop(from->L, top);
  lua_pushstring(to->L, mw_generation_revision(from));
  return mw_script_call_as(to->L, "kube.on_load", 2, 0, err);
}

struct mw_store *mw_generation_store(struct mw_generation *g) {
  return g->config.store;
}

unsigned long mw_generation_number(const struct mw_generation *g) { return g->config.number; }

void mw_generation_count_run(struct mw_generation *g, bool failed) {
  g->runs.all++;
  if (failed) g->runs.failed++;
}

struct mw_generation_runs mw_generation_runs(const struct mw_generation *g) {
  return g->runs;
}

const char *mw_generation_stopped(const struct mw_generation *g) {
  const char *last = mw_watchdog_last(g->watchdog);
  return last[0] != '\0' ? last : mw_heap_last_hit(mw_heap_of(g->L));
}

bool mw_generation_is_busy(const struct mw_generation *g) {
  return g->active > 0 || mw_sched_task_count(g->sched) > 0;
}

bool mw_generation_is_empty(const struct mw_generation *g) {
  return g->deferred_count == 0 && g->wanted_count == 0 && !mw_generation_is_busy(g);
}

void mw_generation_changed(struct mw_generation *g) { mw_signal_fire(g->changed); }

struct mw_signal *mw_generation_signal(struct mw_generation *g) {
  return g->changed;
}

// Calls the functions, which leave so many results each; true when one did, on top of the stack.
static bool call_next(struct mw_generation *g, struct functions *f, size_t i, int nresults) {
  struct mw_err err;
  mw_luaref_push(g->L, f->refs[i]);
  mw_luaref_drop(g->L, &f->refs[i]);
  lua_pushboolean(g->L, g->has_heir);
  if (mw_script_call_as(g->L, "a function for the end of the script", 1, nresults, &err) == 0)
    return true;
  mw_log(MW_LOG_ERROR, "a function for the end of the script failed", MW_STR("error", err.message));
  return false;
}

static void run_on_stop(struct mw_generation *g) {
  for (size_t i = 0; i < g->on_stop.count; i++) call_next(g, &g->on_stop, i, 0);
  g->on_stop.count = 0;
}

static void run_on_end(struct mw_generation *g) {
  if (g->has_heir) return;
  for (size_t i = 0; i < g->on_end.count; i++) {
    if (!call_next(g, &g->on_end, i, 1)) continue;
    const char *left = lua_tostring(g->L, -1);
    if (left != NULL) mw_log(MW_LOG_WARN, "work is left undone", MW_STR("what", left));
    if (left != NULL) g->undone = true;
    lua_pop(g->L, 1);
  }
  g->on_end.count = 0;
}

static void forget_functions(struct mw_generation *g, struct functions *f) {
  for (size_t i = 0; i < f->count; i++) mw_luaref_drop(g->L, &f->refs[i]);
  f->count = 0;
}

static void close_owned(struct mw_generation *g) {
  while (!list_empty(&g->owned)) {
    struct mw_owned *o = g->owned.prev;
    list_del(o);
    list_add(&g->closing, o);
    o->close(o);
  }
}

// The last that happens here: done may free the generation.
static void end_stop(struct mw_generation *g) {
  mw_timer_cancel(&g->grace);
  mw_timer_cancel(&g->linger);
  mw_timer_cancel(&g->patience);
  mw_loop_cb done = g->done;
  g->done = NULL;
  run_on_end(g);
  lua_gc(g->L, LUA_GCCOLLECT, 0);
  done(g->done_ctx);
}

static void on_drained(void *arg) { post_finish(arg); }

static void on_patience_over(void *arg) {
  struct mw_generation *g = arg;
  g->patience = NULL;
  mw_log(MW_LOG_WARN, "the script did not end in time",
         MW_INT("tasks", mw_sched_task_count(g->sched)), MW_INT("open", g->active));
  end_stop(g);
}

// All that is left has been cancelled, or is now.
static void lose_patience(struct mw_generation *g) {
  if (g->patience != NULL) return;
  mw_timer_cancel(&g->grace);
  mw_sched_cancel_all(g->sched);
  g->patience = mw_timer_start(g->loop, g->patience_seconds, on_patience_over, g);
}

// What a generation that retires has begun may end in its time.
static bool may_wait(const struct mw_generation *g) { return g->retiring && g->grace != NULL; }

static void finish(void *arg) {
  struct mw_generation *g = arg;
  g->finish_posted = false;
  if (g->done == NULL) return;
  close_owned(g);
  if (mw_sched_task_count(g->sched) > 0) {
    if (g->linger != NULL) return;  // on_idle or the end of the timer calls again
    if (mw_sched_drain(g->sched, on_drained, g) == 0 && !may_wait(g)) lose_patience(g);
  } else if (!mw_sched_is_quiet(g->sched)) {
    post_finish(g);
  } else if (mw_generation_has_ended(g)) {
    end_stop(g);
  } else if (!may_wait(g)) {
    lose_patience(g);
  }
}

static void post_finish(struct mw_generation *g) {
  if (g->finish_posted) return;
  g->finish_posted = true;
  mw_loop_post(g->loop, finish, g);
}

static void on_linger_over(void *arg) {
  struct mw_generation *g = arg;
  g->linger = NULL;
  post_finish(g);
}

// close was called for all of these long ago; what is abandoned may leave the list at once.
static void abandon_closing(struct mw_generation *g) {
  struct mw_owned *next;
  for (struct mw_owned *o = g->closing.next; o != &g->closing; o = next) {
    next = o->next;
    if (o->abandon != NULL) o->abandon(o);
  }
}

static void on_grace_over(void *arg) {
  struct mw_generation *g = arg;
  g->grace = NULL;
  if (g->retiring) abandon_closing(g);
  char names[NAMES_ROOM];
  mw_sched_draining(g->sched, names, sizeof names);
  if (names[0] != '\0') {
    g->undone = true;
    mw_log(MW_LOG_WARN, "tasks did not end in time and are cancelled",
           MW_NUM("seconds", g->grace_seconds), MW_STR("tasks", names));
  }
  lose_patience(g);
}

// A load that failed leaves what it deferred: callbacks let go of what they hold, functions of the
// script are forgotten.
static void drop_deferred(struct mw_generation *g) {
  g->loading = false;
  for (size_t i = 0; i < g->deferred_count; i++) {
    struct deferred *d = &g->deferred[i];
    if (d->cb != NULL) d->cb(d->ctx);
    mw_luaref_drop(g->L, &d->ref);
  }
  g->deferred_count = 0;
}

// It was never committed, so nothing of it may run: its functions for the end are forgotten, and
// the rest of the entry file, too.
static void abandon(struct mw_generation *g) {
  forget_functions(g, &g->on_stop);
  forget_functions(g, &g->on_end);
  if (g->parked != NULL) mw_task_abandon(g->parked);
  g->parked = NULL;
}

bool mw_generation_is_stopping(const struct mw_generation *g) { return g->stopping; }

void mw_generation_stop(struct mw_generation *g, double grace, double patience, mw_loop_cb done,
                        void *ctx) {
  assert(!g->stopping);
  g->stopping = true;
  g->done = done;
  g->done_ctx = ctx;
  g->grace_seconds = grace;
  g->patience_seconds = patience > 0 ? patience : default_patience;
  g->grace = mw_timer_start(g->loop, grace, on_grace_over, g);
  // What waits for a stop channel or for an informer to come to rest ends by itself, and runs the
  // lines behind its wait; whoever else is still there after that is cancelled.
  g->linger = mw_timer_start(g->loop, linger_seconds, on_linger_over, g);
  if (g->loading) abandon(g);
  run_on_stop(g);
  drop_deferred(g);
  close_owned(g);
  post_finish(g);
}

void mw_generation_retire(struct mw_generation *g, double grace, double patience, mw_loop_cb done,
                          void *ctx) {
  g->retiring = g->has_heir = true;
  mw_sched_finish(g->sched);
  mw_generation_stop(g, grace, patience, done, ctx);
}

bool mw_generation_is_retiring(const struct mw_generation *g) { return g->retiring; }

void mw_generation_give_way(struct mw_generation *g) { g->has_heir = true; }

void mw_generation_hurry(struct mw_generation *g, double grace) {
  if (g->grace == NULL || g->done == NULL) return;
  mw_timer_cancel(&g->grace);
  g->grace = mw_timer_start(g->loop, grace, on_grace_over, g);
}

bool mw_generation_is_drained(const struct mw_generation *g) { return !g->undone; }

bool mw_generation_has_ended(const struct mw_generation *g) {
  return list_empty(&g->owned) && list_empty(&g->closing) && mw_sched_is_quiet(g->sched) &&
         !g->finish_posted;
}

void mw_generation_free(struct mw_generation *g) {
  for (size_t i = 0; i < g->deferred_count; i++) mw_luaref_drop(g->L, &g->deferred[i].ref);
  forget_functions(g, &g->on_stop);
  forget_functions(g, &g->on_end);
  mw_free(g->on_stop.refs);
  mw_free(g->on_end.refs);
  mw_luaref_drop(g->L, &g->unload);
  mw_luaref_drop(g->L, &g->load);
  mw_sched_free(g->sched);
  mw_watchdog_free(g->watchdog);
  mw_heap_close(g->L);
  mw_signal_unref(g->changed);
  mw_buf_deinit(&g->report);
  mw_free(g->deferred);
  drop_wanted(g);
  if (g->own_store != NULL) mw_store_free(g->own_store);
  if (g->config.bundle != NULL) mw_bundle_unref(g->config.bundle);
  mw_free(g);
}

struct mw_generation *mw_generation_of(struct lua_State *L) {
  lua_pushlightuserdata(L, &registry_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  struct mw_generation *g = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return g;
}

struct lua_State *mw_generation_state(struct mw_generation *g) {
  return g->L;
}

struct mw_host *mw_generation_host(struct mw_generation *g) {
  return g->host;
}

const char *mw_generation_agent(const struct mw_generation *g) { return g->config.agent; }

const char *mw_generation_revision(const struct mw_generation *g) {
  return g->config.bundle != NULL ? mw_bundle_revision(g->config.bundle) : "";
}

bool mw_generation_replaces(const struct mw_generation *g) { return g->config.replaces; }

const struct mw_bundle *mw_generation_bundle(const struct mw_generation *g) {
  return g->config.bundle;
}

bool mw_generation_is_module(const struct mw_generation *g) { return g->config.module != NULL; }
