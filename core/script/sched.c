// SPDX-License-Identifier: Apache-2.0
// A task is in exactly one state; `run` is the only place that resumes. The task that runs now is
// kept in the sched rather than found by lua_State, so that coroutines of the script belong to the
// task that resumes them.
//
// Threads of tasks that returned normally are used again: making one costs more than running a
// small handler.
#include "script/sched.h"

#include <assert.h>
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "script/call.h"
#include "script/ref.h"
#include "script/watchdog.h"

enum {
  POOL_MAX = 64,
  NAME_ROOM = 64,
  START_DEPTH_MAX = 32,  // tasks started by tasks on one C stack
  NESTING_MAX = 100,     // coroutines of a script resumed by one another, likewise
  FRAMES_SEARCHED = 64
};

enum state {
  TASK_QUEUED = 0,  // will be started from the loop; its function and arguments are on its stack
  TASK_RUNNING,     // on the C stack
  TASK_WAITING,     // suspended; whoever it waits for will wake it
  TASK_WAKING,      // cancelled while waiting; a wake is posted
};

struct thread {
  lua_State *co;
  int ref;
};

struct mw_task {
  struct mw_sched *sched;
  struct mw_task *prev, *next;
  struct thread thread;
  enum state state;
  bool cancelled;
  int nargs;  // TASK_QUEUED
  struct mw_nesting nesting;
  void (*on_cancel)(void *);  // TASK_WAITING
  void *cancel_ctx;
  mw_task_end_cb end;
  void *ctx;
  char name[NAME_ROOM];
};

struct mw_sched {
  struct mw_loop *loop;
  lua_State *L;
  struct mw_watchdog *watchdog;
  struct mw_task *tasks;
  struct mw_task *current;
  unsigned count;
  int depth;                  // of run on the C stack
  struct mw_nesting nesting;  // outside of tasks
  struct thread pool[POOL_MAX];
  int pooled;
  int cancelled_ref;
  mw_loop_cb idle;
  void *idle_ctx;
  bool idle_posted;
};

static char registry_key;
static char await_tag;

static int cancelled_text(lua_State *L) {
  lua_pushliteral(L, "the task was cancelled");
  return 1;
}

static int make_cancelled(lua_State *L) {
  lua_createtable(L, 0, 2);
  lua_pushliteral(L, "cancelled");
  lua_setfield(L, -2, "code");
  cancelled_text(L);
  lua_setfield(L, -2, "message");
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, cancelled_text);
  lua_setfield(L, -2, "__tostring");
  lua_setmetatable(L, -2);
  return mw_luaref_take(L);
}

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
  s->cancelled_ref = make_cancelled(L);
  register_as(L, s);
  return s;
}

void mw_sched_free(struct mw_sched *s) {
  assert(s->count == 0);
  while (s->pooled > 0) mw_luaref_drop(s->L, &s->pool[--s->pooled].ref);
  mw_luaref_drop(s->L, &s->cancelled_ref);
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

static void thread_get(struct mw_sched *s, struct thread *out) {
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

static void thread_put(struct mw_sched *s, struct thread *t, bool usable) {
  if (usable && s->pooled < POOL_MAX) {
    lua_settop(t->co, 0);
    s->pool[s->pooled++] = *t;
  } else {
    mw_luaref_drop(s->L, &t->ref);
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
static void drop_await(struct mw_task *t) {
  void (*on_cancel)(void *) = t->on_cancel;
  t->on_cancel = NULL;
  t->state = TASK_RUNNING;
  if (on_cancel != NULL) on_cancel(t->cancel_ctx);
}

// Pushes the report onto the main stack: the dead coroutine's own is intact, and says where it was.
static const char *push_report(struct mw_task *t, bool *cancelled) {
  lua_State *co = t->thread.co, *L = t->sched->L;
  luaL_checkstack(L, 8, "too many failing tasks");
  lua_xmove(co, L, 1);  // [error]
  mw_luaref_push(L, t->sched->cancelled_ref);
  *cancelled = t->cancelled && lua_rawequal(L, -1, -2);
  lua_pop(L, 1);
  luaL_traceback(L, co, mw_script_error_text(L, -1), 0);  // [error, text, report]
  lua_pushfstring(L, "\nin task %s", t->name);
  lua_concat(L, 2);
  lua_replace(L, -3);
  lua_pop(L, 1);
  return lua_tostring(L, -1);
}

static void end_task(struct mw_task *t, const char *report, bool cancelled) {
  struct mw_sched *s = t->sched;
  unlink_task(t);
  if (t->end != NULL) t->end(t->ctx, t->thread.co, report, cancelled);
  thread_put(s, &t->thread, report == NULL);
  mw_live_add(MW_LIVE_TASK, -1);
  mw_free(t);
}

// False when the task ended, and is gone.
static bool run(struct mw_task *t, int nargs) {
  struct mw_sched *s = t->sched;
  struct mw_task *outer = s->current;
  t->state = TASK_RUNNING;
  s->current = t;
  s->depth++;
  mw_watchdog_enter(s->watchdog, t->name);
  int rc = lua_resume(t->thread.co, nargs);
  bool suspended = rc == LUA_YIELD && t->state == TASK_WAITING;
  const char *report = NULL;
  bool cancelled = false;
  if (suspended) {
    lua_settop(t->thread.co, 0);  // the tag
  } else {
    if (t->state == TASK_WAITING) drop_await(t);
    if (rc == LUA_YIELD) lua_pushliteral(t->thread.co, "attempt to yield from a task");
    if (rc != 0) report = push_report(t, &cancelled);
  }
  mw_watchdog_leave(s->watchdog);
  s->depth--;
  s->current = outer;
  if (suspended) return true;
  end_task(t, report, cancelled);
  if (report != NULL) lua_pop(s->L, 1);
  return false;
}

static void start_queued(void *arg) {
  struct mw_task *t = arg;
  run(t, t->nargs);
}

struct mw_task *mw_task_start(struct mw_sched *s, struct lua_State *from, int nargs,
                              const char *name, mw_task_end_cb end, void *ctx) {
  assert(nargs <= MW_TASK_ARGS_MAX);
  struct mw_task *t = mw_xcalloc(1, sizeof *t);
  t->sched = s;
  t->end = end;
  t->ctx = ctx;
  snprintf(t->name, sizeof t->name, "%s", name);
  thread_get(s, &t->thread);
  lua_checkstack(t->thread.co, nargs + 1);
  t->next = s->tasks;
  if (s->tasks != NULL) s->tasks->prev = t;
  s->tasks = t;
  s->count++;
  mw_live_add(MW_LIVE_TASK, 1);
  lua_xmove(from, t->thread.co, nargs + 1);
  if (s->depth < START_DEPTH_MAX) return run(t, nargs) ? t : NULL;
  t->state = TASK_QUEUED;
  t->nargs = nargs;
  mw_loop_post(s->loop, start_queued, t);
  return t;
}

// What stands between this frame and its resume, by the name under which it was called.
static const char *obstacle(lua_State *L) {
  static const char *const known[][2] = {
      {"sort", "a table.sort comparator"},
      {"gsub", "a string.gsub callback"},
      {"require", "a required file"},
  };
  lua_Debug ar;
  for (int level = 1; level < FRAMES_SEARCHED && lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "Sn", &ar);
    if (*ar.what != 'C' || ar.name == NULL) continue;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
      if (strcmp(ar.name, known[i][0]) == 0) return known[i][1];
  }
  return "a table.sort comparator, a string.gsub callback, an index function, a transform or a "
         "required file";
}

struct mw_task *mw_task_check(struct lua_State *L, const char *what) {
  struct mw_sched *s = mw_sched_of(L);
  struct mw_task *t = s != NULL ? s->current : NULL;
  if (t == NULL || t->nesting.blocked > 0 || !lua_isyieldable(L)) {
    mw_script_where(L);
    const char *where = lua_tostring(L, -1);
    luaL_error(L, "%s awaits and cannot be used inside %s%s%s%s; do the awaiting first", what,
               obstacle(L), *where ? " (" : "", where, *where ? ")" : "");
  }
  if (t->state == TASK_WAITING) drop_await(t);
  if (!t->cancelled) return t;
  lua_pushboolean(L, 0);
  mw_luaref_push(L, s->cancelled_ref);
  return NULL;
}

int mw_task_await(struct lua_State *L, struct mw_task *t, void (*on_cancel)(void *), void *ctx) {
  assert(t->state == TASK_RUNNING);
  t->state = TASK_WAITING;
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
  assert(t->state == TASK_WAITING || t->state == TASK_WAKING);
  t->on_cancel = NULL;
  run(t, nresults);
}

static void wake_cancelled(void *arg) {
  struct mw_task *t = arg;
  lua_pushboolean(t->thread.co, 0);
  mw_luaref_push(t->thread.co, t->sched->cancelled_ref);
  mw_task_wake(t, 2);
}

void mw_task_cancel(struct mw_task *t) {
  if (t->cancelled) return;
  t->cancelled = true;
  if (t->state != TASK_WAITING) return;
  drop_await(t);
  t->state = TASK_WAKING;
  mw_loop_post(t->sched->loop, wake_cancelled, t);
}

void mw_task_push_cancelled(struct lua_State *L) {
  mw_luaref_push(L, mw_sched_of(L)->cancelled_ref);
}

void mw_sched_cancel_all(struct mw_sched *s, const struct mw_task *except) {
  for (struct mw_task *t = s->tasks; t != NULL; t = t->next)
    if (t != except) mw_task_cancel(t);
}

unsigned mw_sched_task_count(const struct mw_sched *s) { return s->count; }

void mw_sched_on_idle(struct mw_sched *s, mw_loop_cb idle, void *ctx) {
  s->idle = idle;
  s->idle_ctx = ctx;
}

bool mw_sched_is_quiet(const struct mw_sched *s) { return s->count == 0 && !s->idle_posted; }

static struct mw_nesting *nesting(lua_State *L) {
  struct mw_sched *s = mw_sched_of(L);
  if (s == NULL) return NULL;
  return s->current != NULL ? &s->current->nesting : &s->nesting;
}

struct mw_nesting mw_sched_nesting(struct lua_State *L) {
  struct mw_nesting *n = nesting(L);
  return n != NULL ? *n : (struct mw_nesting){0, 0};
}

void mw_sched_set_nesting(struct lua_State *L, struct mw_nesting value) {
  struct mw_nesting *n = nesting(L);
  if (n != NULL) *n = value;
}

void mw_sched_nest(struct lua_State *L) {
  struct mw_nesting *n = nesting(L);
  if (n == NULL) return;
  if (n->depth >= NESTING_MAX) luaL_error(L, "coroutines resume one another too deeply");
  n->depth++;
  if (n->blocked == 0 && !lua_isyieldable(L)) n->blocked = n->depth;
}

void mw_sched_unnest(struct lua_State *L) {
  struct mw_nesting *n = nesting(L);
  if (n == NULL || n->depth == 0) return;
  if (n->blocked == n->depth) n->blocked = 0;
  n->depth--;
}

bool mw_sched_owns_stack(struct lua_State *L) {
  struct mw_sched *s = mw_sched_of(L);
  return s == NULL || L == s->L || (s->current != NULL && L == s->current->thread.co);
}

void *mw_sched_tag(void) { return &await_tag; }
