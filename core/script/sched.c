// SPDX-License-Identifier: Apache-2.0
// A task is in exactly one state; `run` is the only place that resumes. The task that runs now is
// kept in the sched rather than found by lua_State, so that coroutines of the script belong to the
// task that resumes them.
//
// Threads of tasks that returned normally are used again: making one costs more than running a
// small handler.
#include <assert.h>
#include <lauxlib.h>
#include <lua.h>
#include <string.h>

#include "base/alloc.h"
#include "base/block.h"
#include "script/call.h"
#include "script/heap.h"
#include "script/ref.h"
#include "script/task_internal.h"
#include "script/watchdog.h"

enum {
  START_DEPTH_MAX = 32,  // tasks started by tasks on one C stack
  FRAMES_SEARCHED = 64
};

static char registry_key;
static char await_tag;

static void register_as(lua_State *L, void *p) {
  lua_pushlightuserdata(L, &registry_key);
  if (p != NULL) {
    lua_pushlightuserdata(L, p);
  } else {
    lua_pushnil(L);
  }
  lua_rawset(L, LUA_REGISTRYINDEX);
}

struct mw_sched *mw_sched_new(struct mw_loop *loop, struct lua_State *L) {
  struct mw_sched *s = mw_xcalloc(1, sizeof *s);
  s->loop = loop;
  s->L = L;
  s->watchdog = mw_watchdog_of(L);
  s->heap = mw_heap_of(L);
  mw_scope_open(s);
  register_as(L, s);
  return s;
}

void mw_sched_free(struct mw_sched *s) {
  assert(s->count == 0);
  while (s->pooled > 0) mw_luaref_drop(s->L, &s->pool[--s->pooled].ref);
  mw_scope_close(s);
  mw_shuffle_free(s->shuffle);
  register_as(s->L, NULL);
  mw_free(s);
}

struct mw_sched *mw_sched_of(struct lua_State *L) {
  lua_pushlightuserdata(L, &registry_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  struct mw_sched *s = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return s;
}

static void thread_get(struct mw_sched *s, struct mw_thread *out) {
  if (s->pooled > 0) {
    *out = s->pool[--s->pooled];
    // setfenv(0, ...) of the previous user ends with it.
    lua_pushvalue(s->L, LUA_GLOBALSINDEX);
    lua_xmove(s->L, out->co, 1);
    lua_replace(out->co, LUA_GLOBALSINDEX);
    return;
  }
  out->co = lua_newthread(s->L);
  out->ref = mw_luaref_take(s->L);
}

static void thread_put(struct mw_sched *s, struct mw_thread *t, bool usable) {
  if (usable && s->pooled < MW_THREAD_POOL_MAX) {
    lua_settop(t->co, 0);
    s->pool[s->pooled++] = *t;
  } else {
    mw_luaref_drop(s->L, &t->ref);
    mw_heap_loosen(s->heap);
  }
}

static void on_idle(void *arg) {
  struct mw_sched *s = arg;
  s->idle_posted = false;
  if (s->count == 0 && s->idle != NULL) s->idle(s->idle_ctx);
}

static void unlink_task(struct mw_task *t) {
  struct mw_sched *s = t->sched;
  if (t->prev != NULL) {
    t->prev->next = t->next;
  } else {
    s->tasks = t->next;
  }
  if (t->next != NULL) t->next->prev = t->prev;
  if (--s->count == 0 && !s->idle_posted) {
    s->idle_posted = true;
    mw_loop_post(s->loop, on_idle, s);
  }
}

// Undoes an await that will not be answered: the task goes on, or ended, without having yielded
// (the watchdog's error can come between the two).
void mw_task_drop_await(struct mw_task *t) {
  void (*on_cancel)(void *) = t->on_cancel;
  t->on_cancel = NULL;
  t->state = MW_TASK_RUNNING;
  if (on_cancel != NULL) on_cancel(t->cancel_ctx);
}

void mw_task_finish(struct mw_task *t) {
  struct mw_sched *s = t->sched;
  struct mw_task_failure failure;
  bool failed = t->failed;
  if (t->sampled) s->sampling.ended(t, s->L);
  if (failed) mw_report_push(t, &failure);  // while its parents are known
  unlink_task(t);
  if (t->end != NULL) t->end(t->ctx, t->thread.co, failed ? &failure : NULL);
  if (t->drains) mw_drain_count(t, -1);
  mw_scope_leave(t);
  if (failed) lua_pop(s->L, 1);
  thread_put(s, &t->thread, !failed && !t->abandoned);
  mw_luaref_drop(s->L, &t->carried_error);
  mw_luaref_drop(s->L, &t->carried_report);
  mw_free(t->trigger);
  mw_free(t->origin);
  mw_free(t->function);
  mw_live_add(MW_LIVE_TASK, -1);
  mw_block_put(t, sizeof *t);
}

static bool set_gate(struct mw_sched *s, bool open) {
  if (s->sampling.gate == NULL) return false;
  bool before = *s->sampling.gate;
  *s->sampling.gate = open;
  return before;
}

// False when the task ended, and is gone.
static bool run(struct mw_task *t, int nargs) {
  struct mw_sched *s = t->sched;
  struct mw_task *outer = s->current;
  bool gate = set_gate(s, t->sampled);
  t->state = MW_TASK_RUNNING;
  s->current = t;
  s->depth++;
  if (s->depth == 1) mw_heap_rest(s->heap);
  mw_watchdog_enter(s->watchdog, (struct mw_entry){t->thread.co, t->name, mw_task_trigger(t)});
  lua_State *enforced = mw_heap_enforce(s->heap, t->thread.co);
  int rc = lua_resume(t->thread.co, nargs);
  mw_heap_enforce(s->heap, enforced);
  bool suspended = rc == LUA_YIELD && t->state == MW_TASK_WAITING;
  if (suspended) {
    lua_settop(t->thread.co, 0);  // the tag
  } else {
    if (t->state == MW_TASK_WAITING) mw_task_drop_await(t);
    if (rc == LUA_YIELD) lua_pushliteral(t->thread.co, "attempt to yield from a task");
    t->failed = rc != 0;
    t->state = MW_TASK_ENDING;
  }
  mw_watchdog_leave(s->watchdog);
  s->depth--;
  s->current = outer;
  set_gate(s, gate);
  return suspended || mw_scope_conclude(t);
}

void mw_task_run(struct mw_task *t) { run(t, t->nargs); }

static void start_queued(void *arg) { mw_task_run(arg); }

static char *copy_or_null(const char *text) {
  return text != NULL && *text != '\0' ? mw_xstrdup(text) : NULL;
}

// The place in the script that runs on L, or NULL.
static char *place(lua_State *L) {
  lua_checkstack(L, 2);
  mw_script_where(L);
  char *text = copy_or_null(lua_tostring(L, -1));
  lua_pop(L, 1);
  return text;
}

static struct mw_task *new_task(struct mw_sched *s, const struct mw_task_options *options,
                                struct mw_task *parent) {
  struct mw_task *t = mw_block_get(sizeof *t);
  *t = (struct mw_task){.sched = s};
  t->end = options->end;
  t->ctx = options->ctx;
  t->shielded = options->shielded;
  t->finishes = options->finishes;
  t->drains = options->drains || (s->finishing && t->finishes);
  t->trigger = copy_or_null(options->trigger);
  t->carried_error = t->carried_report = MW_LUAREF_NONE;
  size_t name_len = strnlen(options->name, sizeof t->name - 1);
  memcpy(t->name, options->name, name_len);
  thread_get(s, &t->thread);
  t->next = s->tasks;
  if (s->tasks != NULL) s->tasks->prev = t;
  s->tasks = t;
  s->count++;
  mw_live_add(MW_LIVE_TASK, 1);
  if (parent != NULL) {
    mw_scope_enter(t, parent);
  } else if (s->closing && !t->drains) {
    t->stop = MW_STOP_CANCELLED;
  }
  if (t->drains) mw_drain_count(t, 1);
  if (options->timeout > 0) mw_scope_set_timeout(t, options->timeout);
  return t;
}

struct mw_task *mw_task_start_in(struct mw_task *parent, char *origin, struct lua_State *from,
                                 int nargs, const struct mw_task_options *options) {
  assert(nargs <= MW_TASK_ARGS_MAX);
  struct mw_sched *s = mw_sched_of(from);
  lua_State *enforced = mw_heap_enforce(s->heap, NULL);
  struct mw_task *t = new_task(s, options, parent);
  t->origin = origin;
  mw_sample_begin(t, from, nargs);
  lua_checkstack(t->thread.co, nargs + 1);
  lua_xmove(from, t->thread.co, nargs + 1);
  mw_heap_enforce(s->heap, enforced);
  if (!options->queued && s->depth < START_DEPTH_MAX) return run(t, nargs) ? t : NULL;
  t->state = MW_TASK_QUEUED;
  t->nargs = nargs;
  if (s->shuffle != NULL) {
    mw_shuffle_add(t);
  } else {
    mw_loop_post(s->loop, start_queued, t);
  }
  return t;
}

struct mw_task *mw_task_start(struct mw_sched *s, struct lua_State *from, int nargs,
                              const struct mw_task_options *options) {
  char *origin = s->current != NULL ? place(from) : NULL;
  return mw_task_start_in(options->child ? s->current : NULL, origin, from, nargs, options);
}

struct mw_task *mw_task_current(const struct mw_sched *s) {
  return s->current;
}

const char *mw_task_trigger(const struct mw_task *t) {
  while (t != NULL && t->trigger == NULL) t = t->parent;
  return t != NULL ? t->trigger : NULL;
}

bool mw_task_is_below(const struct mw_task *t, const struct mw_task *above) {
  while (t != NULL && t != above) t = t->parent;
  return t != NULL;
}

void *mw_task_context(const struct mw_task *t, mw_task_end_cb end) {
  while (t != NULL && t->end != end) t = t->parent;
  return t != NULL ? t->ctx : NULL;
}

// Whether the function on top of L, which it pops, is that of a library.
static bool is_library_function(lua_State *L, const char *library, const char *name) {
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  lua_getfield(L, -1, library);
  bool same = false;
  if (lua_istable(L, -1)) {
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    same = lua_rawequal(L, -1, -4);
    lua_pop(L, 1);
  }
  lua_pop(L, 3);
  return same;
}

// What stands between this frame and its resume.
static const char *obstacle(lua_State *L) {
  static const char *const known[][3] = {
      {"table", "sort", "a table.sort comparator"},
      {"string", "gsub", "a string.gsub callback"},
      {"string", "format", "a __tostring that string.format calls"},
      {"_G", "require", "a required file"},
      {"table", "foreach", "a table.foreach callback"},
  };
  const char *place = mw_sched_nesting(L).place;
  if (place != NULL) return place;
  lua_Debug ar;
  luaL_checkstack(L, 6, "awaiting");
  for (int level = 1; level < FRAMES_SEARCHED && lua_getstack(L, level, &ar); level++) {
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
      lua_getinfo(L, "f", &ar);
      if (is_library_function(L, known[i][0], known[i][1])) return known[i][2];
    }
  }
  return "a table.sort comparator, a string.gsub callback, a metamethod that a library calls, an "
         "index function, a transform or a required file";
}

struct mw_task *mw_task_check(struct lua_State *L, const char *what) {
  struct mw_sched *s = mw_sched_of(L);
  struct mw_task *t = s != NULL ? s->current : NULL;
  if (t == NULL || t->nesting.blocked > 0 || t->nesting.place != NULL || !lua_isyieldable(L)) {
    mw_script_where(L);
    const char *where = lua_tostring(L, -1);
    luaL_error(L, "%s awaits and cannot be used inside %s%s%s%s; do the awaiting first", what,
               obstacle(L), *where ? " (" : "", where, *where ? ")" : "");
  }
  if (t->state == MW_TASK_WAITING) mw_task_drop_await(t);
  mw_scope_look_at_clock(t);
  if (t->stop == MW_STOP_NONE) return t;
  lua_pushboolean(L, 0);
  mw_scope_push_stop(t, L);
  return NULL;
}

int mw_task_await(struct lua_State *L, struct mw_task *t, void (*on_cancel)(void *), void *ctx) {
  assert(t->state == MW_TASK_RUNNING);
  t->state = MW_TASK_WAITING;
  t->on_cancel = on_cancel;
  t->cancel_ctx = ctx;
  lua_settop(L, 0);
  lua_pushlightuserdata(L, &await_tag);
  return lua_yield(L, 1);
}

struct lua_State *mw_task_stack(struct mw_task *t) {
  return t->thread.co;
}

void mw_task_wake(struct mw_task *t, int nresults) {
  assert(t->state == MW_TASK_WAITING || t->state == MW_TASK_WAKING);
  t->on_cancel = NULL;
  if (t->sched->shuffle == NULL) {
    run(t, nresults);
    return;
  }
  t->state = MW_TASK_READY;
  t->nargs = nresults;
  mw_shuffle_add(t);
}

unsigned mw_sched_task_count(const struct mw_sched *s) { return s->count; }

void mw_sched_on_idle(struct mw_sched *s, mw_loop_cb idle, void *ctx) {
  s->idle = idle;
  s->idle_ctx = ctx;
}

bool mw_sched_is_quiet(const struct mw_sched *s) {
  return s->count == 0 && !s->idle_posted && !s->drained_posted;
}

void *mw_sched_tag(void) { return &await_tag; }
