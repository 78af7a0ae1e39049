// SPDX-License-Identifier: Apache-2.0
// Two threads, one lock. The script's thread takes it at the edges of a slice, the watchdog's
// whenever it is awake; hooks are set and removed only under it, and set only while a slice runs.
//
// LuaJIT's hooks are per state, not per coroutine, and setting one from another thread is what its
// own interrupt handler does: the interpreter looks at the dispatch table at its next instruction.
#include "script/watchdog.h"

#include <lauxlib.h>
#include <lua.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "script/call.h"
#include "script/heap.h"

enum { STACK_ROOM = 2048, SENTENCE_ROOM = 512 };

static const uint64_t warn_interval = 5000000000;  // nanoseconds between two warnings

static const uint64_t again_ns = 50000000;  // between two tries to stop a slice
static const uint64_t least_ns = 1000000;   // between two looks
static const uint64_t load_ns = 500000000;  // for loading
// A look that comes later than this after the one before was kept from it, with all of the process.
static const uint64_t stopped_ns = 1000000000;

enum {
  ENTRIES_MAX = 48,    // entries within entries that are remembered
  BLOCKED_FACTOR = 6,  // of exit_after, for a thread that does not use the CPU
};

enum stage {
  STAGE_QUIET = 0,  // within warn_after
  STAGE_WARNED,     // past it: the hook takes the stack, or has
  STAGE_KILLED,     // past kill_after: the hook raises
};

struct mw_watchdog {
  lua_State *L;
  struct mw_heap *heap;
  uint64_t warn_ns, kill_ns;
  uint64_t exit_ns;  // 0: never
  pthread_t thread, script;
  clockid_t cpu;  // of the script's thread
  pthread_mutex_t lock;
  pthread_cond_t wake;
  atomic_bool fired;  // the hook has raised in this slice
  int depth;          // script thread only
  struct mw_entry entries[ENTRIES_MAX];
  uint64_t last_warning;             // script thread only
  struct mw_series *slices, *kills;  // NULL: not metered
  char stack[STACK_ROOM];            // script thread only: where the slice was at warn_after
  char last[SENTENCE_ROOM];          // script thread only: the error of the last slice it stopped
  // Under the lock.
  bool active, asleep, stop, hooked;
  bool taken;  // the stack, for the warning
  bool full;   // mw_heap_check is wanted
  enum stage stage;
  bool loading;
  bool stands_back;  // hooks would not be seen
  uint64_t began;
  const char *what;
  // Watchdog thread only. The CPU time of the slice that runs is not known, for asking costs as
  // much as a short slice: what it can be at most serves to warn, what it is at least for the rest.
  uint64_t seen;               // the slice of the last look
  uint64_t looked;             // when that was
  uint64_t cpu_seen;           // the CPU time at it
  uint64_t cpu_low, cpu_high;  // when the slice began: between these
  uint64_t lasted;             // since the first look at it, without the time that all stood still
};

static char registry_key;

struct mw_watchdog *mw_watchdog_of(struct lua_State *L) {
  lua_pushlightuserdata(L, &registry_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  struct mw_watchdog *w = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return w;
}

static void unhook(struct mw_watchdog *w) {
  if (w->hooked) lua_sethook(w->L, NULL, 0, 0);
  w->hooked = false;
}

// Who runs: the outermost that has a name.
static const char *who(const struct mw_watchdog *w) {
  for (int i = 0; i < w->depth && i < ENTRIES_MAX; i++) {
    if (w->entries[i].what != NULL) return w->entries[i].what;
  }
  return w->what;
}

static void raise_budget(struct mw_watchdog *w, lua_State *L) {
  char place[MW_SCRIPT_PLACE], text[SENTENCE_ROOM];
  bool again = atomic_exchange_explicit(&w->fired, true, memory_order_relaxed);
  mw_script_place(L, place);
  const char *colon = place[0] != '\0' ? ": " : "";
  if (w->loading) {
    snprintf(text, sizeof text,
             "%s%sloading took longer than %g s: the load phase declares and must not compute; do "
             "that in a task, or behind the first await (kube.sleep(0) is one)",
             place, colon, (double)load_ns / 1e9);
  } else {
    snprintf(text, sizeof text,
             "%s%scpu budget exceeded: %s ran for more than %g s without awaiting; kube.sleep(0) "
             "within a long loop is an await",
             place, colon, who(w), (double)w->kill_ns / 1e9);
    if (!again) memcpy(w->last, text, sizeof w->last);
  }
  lua_pushstring(L, text);
  lua_error(L);
}

static void take_stack(struct mw_watchdog *w, lua_State *L) {
  luaL_traceback(L, L, NULL, 0);
  snprintf(w->stack, sizeof w->stack, "%s", lua_tostring(L, -1));
  lua_pop(L, 1);
}

// The one hook there is: it looks what it was set for.
static void on_hook(lua_State *L, lua_Debug *ar) {
  (void)ar;
  struct mw_watchdog *w = mw_watchdog_of(L);
  if (w == NULL) return;
  pthread_mutex_lock(&w->lock);
  bool kill = w->stage == STAGE_KILLED, full = w->full;
  bool warned = w->stage == STAGE_WARNED && !w->taken;
  w->full = false;
  if (warned) w->taken = true;
  if (!kill) unhook(w);
  pthread_mutex_unlock(&w->lock);
  if (kill) raise_budget(w, L);
  if (warned) take_stack(w, L);
  if (full) mw_heap_check(w->heap, L);
}

static void set_hook(struct mw_watchdog *w) {
  if (w->stands_back) return;
  w->hooked = true;
  lua_sethook(w->L, on_hook, LUA_MASKCOUNT | LUA_MASKLINE, 1);
}

// The memory is full, and the script's code runs.
static void on_full(void *ctx) {
  struct mw_watchdog *w = ctx;
  pthread_mutex_lock(&w->lock);
  w->full = true;
  set_hook(w);
  pthread_mutex_unlock(&w->lock);
}

static void wait_until(struct mw_watchdog *w, uint64_t when) {
  struct timespec ts = {.tv_sec = (time_t)(when / 1000000000),
                        .tv_nsec = (long)(when % 1000000000)};
  pthread_cond_timedwait(&w->wake, &w->lock, &ts);
}

static uint64_t cpu_time(const struct mw_watchdog *w) {
  struct timespec ts;
  if (clock_gettime(w->cpu, &ts) != 0) return 0;
  return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

// Reads the clocks. Under the lock.
static void measure(struct mw_watchdog *w, uint64_t now) {
  uint64_t cpu = cpu_time(w);
  if (w->seen == w->began) {
    w->lasted += least(now - w->looked, stopped_ns);
  } else {
    w->cpu_low = cpu - least(cpu - w->cpu_seen, now - w->began);
    w->cpu_high = cpu;
    w->lasted = 0;
  }
  w->seen = w->began;
  w->looked = now;
  w->cpu_seen = cpu;
}

static void leave_stuck(struct mw_watchdog *w, const char *how, uint64_t ns) {
  char why[128];
  snprintf(why, sizeof why, "the script has %s for %.3g s", how, (double)ns / 1e9);
  mw_stuck_leave(&(struct mw_stuck){.thread = w->script,
                                    .entries = w->entries,
                                    .room = ENTRIES_MAX,
                                    .depth = &w->depth,
                                    .what = w->what,
                                    .why = why});
}

// One look at the slice that runs. Under the lock.
static void look(struct mw_watchdog *w, uint64_t now) {
  measure(w, now);
  uint64_t ran = w->cpu_seen - w->cpu_high;
  if (w->exit_ns > 0 && ran >= w->exit_ns) leave_stuck(w, "kept its thread busy", ran);
  if (w->exit_ns > 0 && w->lasted >= BLOCKED_FACTOR * w->exit_ns) {
    leave_stuck(w, "been waiting within one call", w->lasted);
  }
  uint64_t warn_left = w->warn_ns - least(w->warn_ns, w->cpu_seen - w->cpu_low);
  uint64_t budget = w->loading ? load_ns : w->kill_ns;
  uint64_t left = budget - least(budget, ran);
  if (w->stage == STAGE_KILLED) {
    // Setting a hook from here can be lost when the state changes its own mask in the same moment.
    if (!atomic_load_explicit(&w->fired, memory_order_relaxed)) set_hook(w);
    wait_until(w, now + again_ns);
  } else if (left == 0) {
    w->stage = STAGE_KILLED;
    set_hook(w);
  } else if (w->stage == STAGE_QUIET && warn_left == 0) {
    w->stage = STAGE_WARNED;
    set_hook(w);
  } else {
    // Of CPU time, no more can pass than of this.
    uint64_t until = w->stage == STAGE_QUIET ? least(warn_left, left) : left;
    wait_until(w, now + most(until, least_ns));
  }
}

static void *thread_main(void *arg) {
  struct mw_watchdog *w = arg;
  pthread_setname_np(pthread_self(), "watchdog");
  pthread_mutex_lock(&w->lock);
  while (!w->stop) {
    uint64_t now = mw_clock_now();
    if (w->active) {
      look(w, now);
    } else if (w->seen != w->began) {
      // A slice came and went: more may follow, so stay up rather than be woken for each.
      w->seen = w->began;
      w->cpu_seen = cpu_time(w);
      wait_until(w, now + w->warn_ns);
    } else {
      w->asleep = true;
      pthread_cond_wait(&w->wake, &w->lock);
      w->asleep = false;
    }
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

static uint64_t nanoseconds(double seconds, double otherwise) {
  return (uint64_t)((seconds > 0 ? seconds : otherwise) * 1e9);
}

static void register_as(lua_State *L, struct mw_watchdog *w) {
  lua_pushlightuserdata(L, &registry_key);
  if (w != NULL) {
    lua_pushlightuserdata(L, w);
  } else {
    lua_pushnil(L);
  }
  lua_rawset(L, LUA_REGISTRYINDEX);
}

static void meter(struct mw_watchdog *w) {
  static const double buckets[] = {1e-5, 1e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1, 0.5, 1};
  static const struct mw_metric_spec slices = {
      .name = "moonwatch_lua_slice_seconds",
      .help = "How long the script ran between two awaits.",
      .type = MW_METRIC_HISTOGRAM,
      .buckets = buckets,
      .bucket_count = sizeof buckets / sizeof buckets[0]};
  static const struct mw_metric_spec kills = {
      .name = "moonwatch_lua_watchdog_total",
      .help = "Times that the watchdog stopped code that did not await."};
  w->slices = mw_metric_series(mw_metric_family(&slices), NULL);
  w->kills = mw_metric_series(mw_metric_family(&kills), NULL);
}

struct mw_watchdog *mw_watchdog_new(struct lua_State *L, const struct mw_watchdog_config *config) {
  struct mw_watchdog *w = mw_xcalloc(1, sizeof *w);
  w->L = L;
  w->warn_ns = nanoseconds(config->warn_after, 0.05);
  w->kill_ns = nanoseconds(config->kill_after, 1);
  w->exit_ns = config->exit_after < 0 ? 0 : nanoseconds(config->exit_after, 10);
  w->script = pthread_self();
  if (config->metered) meter(w);
  int rc = pthread_getcpuclockid(w->script, &w->cpu);
  if (rc == 0) w->cpu_seen = cpu_time(w);
  pthread_mutex_init(&w->lock, NULL);
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&w->wake, &attr);
  pthread_condattr_destroy(&attr);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  if (rc == 0) rc = pthread_create(&w->thread, NULL, thread_main, w);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (rc != 0) {
    fprintf(stderr, "moonwatch: cannot create a thread: %s\n", strerror(rc));
    abort();
  }
  register_as(L, w);
  w->heap = mw_heap_of(L);
  if (w->heap != NULL) mw_heap_on_full(w->heap, on_full, w);
  return w;
}

void mw_watchdog_free(struct mw_watchdog *w) {
  if (w == NULL) return;
  pthread_mutex_lock(&w->lock);
  w->stop = true;
  pthread_cond_signal(&w->wake);
  pthread_mutex_unlock(&w->lock);
  pthread_join(w->thread, NULL);
  register_as(w->L, NULL);
  mw_series_unref(w->slices);
  mw_series_unref(w->kills);
  pthread_cond_destroy(&w->wake);
  pthread_mutex_destroy(&w->lock);
  mw_free(w);
}

void mw_watchdog_enter(struct mw_watchdog *w, struct mw_entry entry) {
  if (w == NULL) return;
  if (w->depth < ENTRIES_MAX) w->entries[w->depth] = entry;
  if (w->depth++ > 0) return;
  pthread_mutex_lock(&w->lock);
  w->active = true;
  w->stage = STAGE_QUIET;
  w->taken = w->full = false;
  atomic_store_explicit(&w->fired, false, memory_order_relaxed);
  w->began = mw_clock_now();
  w->what = entry.what != NULL ? entry.what : "callback";
  if (w->asleep) pthread_cond_signal(&w->wake);
  pthread_mutex_unlock(&w->lock);
}

// Rate-limited: a script that is slow is slow all the time.
static void report_slow(struct mw_watchdog *w, const char *what, uint64_t now, uint64_t began) {
  if (w->last_warning == 0 || now - w->last_warning >= warn_interval) {
    w->last_warning = now;
    mw_log(MW_LOG_WARN, "script ran long without awaiting", MW_STR("task", what),
           MW_NUM("seconds", (double)(now - began) / 1e9), MW_STR("stack", w->stack));
  }
  w->stack[0] = '\0';
}

void mw_watchdog_leave(struct mw_watchdog *w) {
  if (w == NULL || --w->depth > 0) return;
  pthread_mutex_lock(&w->lock);
  w->active = false;
  unhook(w);
  bool slow = w->stage != STAGE_QUIET;
  uint64_t began = w->began;
  pthread_mutex_unlock(&w->lock);
  if (w->slices != NULL) {
    mw_series_observe(w->slices, (double)(mw_clock_now() - began) / 1e9);
    if (atomic_load_explicit(&w->fired, memory_order_relaxed)) mw_series_add(w->kills, 1);
  }
  if (slow) report_slow(w, w->what, mw_clock_now(), began);
}

bool mw_watchdog_has_fired(const struct mw_watchdog *w) {
  return atomic_load_explicit(&w->fired, memory_order_relaxed);
}

const char *mw_watchdog_last(const struct mw_watchdog *w) { return w != NULL ? w->last : ""; }

void mw_watchdog_set_loading(struct mw_watchdog *w, bool loading) {
  if (w == NULL) return;
  pthread_mutex_lock(&w->lock);
  w->loading = loading;
  pthread_mutex_unlock(&w->lock);
}

void mw_watchdog_stand_back(struct mw_watchdog *w) {
  if (w == NULL) return;
  pthread_mutex_lock(&w->lock);
  w->stands_back = true;
  unhook(w);
  pthread_mutex_unlock(&w->lock);
  if (w->heap != NULL) mw_heap_on_full(w->heap, NULL, NULL);
}
