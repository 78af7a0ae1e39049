// SPDX-License-Identifier: Apache-2.0
// Trees of tasks: how a stop reaches what belongs to a task, deadlines, and the end of a task whose
// children or deferred functions are not over yet.
//
// A task in MW_TASK_ENDING keeps its stack as its function left it: the results or the error on top
// of it, and the frames of a failure for the report. `conclude` is the only way out of that state.
// It goes on when the last child has left, from the loop: a task that ends must not run another one
// that is below it on the C stack.
#include <assert.h>
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "script/call.h"
#include "script/ref.h"
#include "script/task_internal.h"
#include "script/watchdog.h"

enum { REPORT_ROOM = 8 * 1024 };

struct mw_deferred {
  struct mw_deferred *next;
  int fn;
  char *place;
};

static int error_text(lua_State *L) {
  lua_getfield(L, 1, "message");
  return 1;
}

// {code =, message =} with a __tostring; the message is on top of L, and is replaced.
static void make_error(struct mw_sched *s, lua_State *L, const char *code) {
  lua_createtable(L, 0, 2);  // [message, error]
  lua_insert(L, -2);
  lua_setfield(L, -2, "message");
  lua_pushstring(L, code);
  lua_setfield(L, -2, "code");
  mw_luaref_push(L, s->error_meta);
  lua_setmetatable(L, -2);
}

void mw_scope_open(struct mw_sched *s) {
  lua_createtable(s->L, 0, 1);
  lua_pushcfunction(s->L, error_text);
  lua_setfield(s->L, -2, "__tostring");
  s->error_meta = mw_luaref_take(s->L);
  lua_pushliteral(s->L, "the task was cancelled");
  make_error(s, s->L, "cancelled");
  s->cancelled_ref = mw_luaref_take(s->L);
}

void mw_scope_close(struct mw_sched *s) {
  mw_luaref_drop(s->L, &s->cancelled_ref);
  mw_luaref_drop(s->L, &s->error_meta);
}

void mw_scope_push_stop(struct mw_task *t, struct lua_State *L) {
  struct mw_sched *s = t->sched;
  luaL_checkstack(L, 6, "awaiting");
  if (t->stop != MW_STOP_TIMEOUT) {
    mw_luaref_push(L, s->cancelled_ref);
    return;
  }
  const struct mw_task *by = t->due_by;
  if (by->timeout > 0) {
    lua_pushfstring(L, "the deadline of task %s (%f s) has passed", by->name, by->timeout);
  } else {
    lua_pushfstring(L, "a deadline has passed, and so have the %f s of kube.shield()",
                    MW_SHIELD_SECONDS);
  }
  make_error(s, L, "timeout");
}

void mw_task_push_cancelled(struct lua_State *L) {
  mw_luaref_push(L, mw_sched_of(L)->cancelled_ref);
}

// The tree below root in the order of its branches, root first. `into`: whether to go into t.
static struct mw_task *next_in_tree(const struct mw_task *root, struct mw_task *t, bool into) {
  if (into && t->children != NULL) return t->children;
  while (t != root && t->older == NULL) t = t->parent;
  return t == root ? NULL : t->older;
}

static void wake_stopped(void *arg) {
  struct mw_task *t = arg;
  lua_pushboolean(t->thread.co, 0);
  mw_scope_push_stop(t, t->thread.co);
  mw_task_wake(t, 2);
}

static void stop_one(struct mw_task *t, enum mw_task_stop why) {
  t->stop = why;
  if (t->state != MW_TASK_WAITING || t->joining) return;
  mw_task_drop_await(t);
  t->state = MW_TASK_WAKING;
  mw_loop_post(t->sched->loop, wake_stopped, t);
}

static void on_due(void *arg);

// Moves the deadline of t to `due` when it is earlier than the one it has, and that of its tree.
static void set_due(struct mw_task *t, uint64_t due, enum mw_task_stop why) {
  if (t->due != 0 && t->due <= due) return;
  mw_timer_cancel(&t->due_timer);
  uint64_t now = mw_clock_now();
  double seconds = due > now ? (double)(due - now) / 1e9 : 0;
  t->due_timer = mw_timer_start(t->sched->loop, seconds, on_due, t);
  t->due_stop = why;
  for (struct mw_task *c = t; c != NULL;) {
    bool later = c == t || (!c->shielded && (c->due == 0 || c->due > due));
    if (later) {
      c->due = due;
      c->due_by = t;
    }
    c = next_in_tree(t, c, later);
  }
}

// Stops t and what belongs to it; what is shielded gets a deadline instead.
static void stop_tree(struct mw_task *t, enum mw_task_stop why) {
  for (struct mw_task *c = t; c != NULL;) {
    bool into = c->stop == MW_STOP_NONE;
    if (into && c->shielded && c != t) {
      set_due(c, mw_clock_now() + (uint64_t)(MW_SHIELD_SECONDS * 1e9), why);
      into = false;
    } else if (into) {
      stop_one(c, why);
    }
    c = next_in_tree(t, c, into);
  }
}

static void on_due(void *arg) {
  struct mw_task *t = arg;
  t->due_timer = NULL;
  stop_tree(t, t->due_stop);
}

void mw_task_cancel(struct mw_task *t) {
  if (t->stop != MW_STOP_NONE) return;
  if (t->shielded) {
    set_due(t, mw_clock_now() + (uint64_t)(MW_SHIELD_SECONDS * 1e9), MW_STOP_CANCELLED);
  } else {
    stop_tree(t, MW_STOP_CANCELLED);
  }
}

void mw_scope_set_timeout(struct mw_task *t, double seconds) {
  t->timeout = seconds;
  double ns = seconds * 1e9;
  set_due(t, mw_clock_now() + (ns < 1e18 ? (uint64_t)ns : (uint64_t)1e18), MW_STOP_TIMEOUT);
}

void mw_scope_look_at_clock(struct mw_task *t) {
  if (t->due == 0 || t->stop != MW_STOP_NONE || mw_clock_now() < t->due) return;
  struct mw_task *by = t->due_by;
  mw_timer_cancel(&by->due_timer);
  stop_tree(by, by->due_stop);
}

double mw_task_remaining(const struct mw_task *t) {
  if (t->due == 0) return -1;
  uint64_t now = mw_clock_now();
  return now < t->due ? (double)(t->due - now) / 1e9 : 0;
}

void mw_scope_enter(struct mw_task *t, struct mw_task *parent) {
  t->parent = parent;
  t->older = parent->children;
  if (t->older != NULL) t->older->younger = t;
  parent->children = t;
  if (t->shielded) return;
  t->stop = parent->stop;
  t->due = parent->due;
  t->due_by = parent->due_by;
}

static void on_conclude(void *arg) {
  struct mw_task *t = arg;
  t->concluding = false;
  mw_scope_conclude(t);
}

static void on_joined(void *arg) {
  struct mw_task *t = arg;
  t->joining = false;
  lua_pushboolean(t->thread.co, 1);
  mw_task_wake(t, 1);
}

static void cancel_children(struct mw_task *t) {
  for (struct mw_task *c = t->children; c != NULL; c = c->older) mw_task_cancel(c);
}

void mw_scope_leave(struct mw_task *t) {
  struct mw_task *parent = t->parent;
  mw_timer_cancel(&t->due_timer);
  if (parent == NULL) return;
  if (t->older != NULL) t->older->younger = t->younger;
  if (t->younger != NULL) {
    t->younger->older = t->older;
  } else {
    parent->children = t->older;
  }
  struct mw_loop *loop = t->sched->loop;
  if (t->joiner != NULL) {
    t->joiner->on_cancel = NULL;
    mw_loop_post(loop, on_joined, t->joiner);
  }
  if (parent->state != MW_TASK_ENDING || parent->concluding) return;
  if (parent->unseen != NULL) cancel_children(parent);
  if (parent->children == NULL) {
    parent->concluding = true;
    mw_loop_post(loop, on_conclude, parent);
  }
}

static void undo_join(void *arg) {
  struct mw_task *child = arg;
  child->joiner->joining = false;
  child->joiner = NULL;
}

int mw_task_join(struct lua_State *L, struct mw_task *t, struct mw_task *child) {
  assert(child->parent == t && child->joiner == NULL);
  child->joiner = t;
  t->joining = true;
  return mw_task_await(L, t, undo_join, child);
}

void mw_task_defer(struct mw_task *t, struct lua_State *L) {
  struct mw_deferred *d = mw_xcalloc(1, sizeof *d);
  d->fn = mw_luaref_take(L);
  mw_script_where(L);
  d->place = mw_xstrdup(lua_tostring(L, -1));
  lua_pop(L, 1);
  d->next = t->deferred;
  t->deferred = d;
}

void mw_scope_forget_deferred(struct mw_task *t) {
  while (t->deferred != NULL) {
    struct mw_deferred *d = t->deferred;
    t->deferred = d->next;
    mw_luaref_drop(t->sched->L, &d->fn);
    mw_free(d->place);
    mw_free(d);
  }
}

static void on_deferred_end(void *ctx, struct lua_State *L, const struct mw_task_failure *failure) {
  (void)ctx;
  (void)L;
  if (failure == NULL) return;
  char message[REPORT_ROOM];
  snprintf(message, sizeof message, "a deferred function failed: %s", failure->report);
  mw_log(MW_LOG_ERROR, message);
}

// Runs the function that was deferred last, in what is left of the time for all of them.
static void run_deferred(struct mw_task *t) {
  struct mw_deferred *d = t->deferred;
  t->deferred = d->next;
  lua_State *L = t->sched->L;
  luaL_checkstack(L, 2, "too many failing tasks");
  uint64_t now = mw_clock_now();
  if (t->deferred_until == 0) t->deferred_until = now + (uint64_t)(MW_SHIELD_SECONDS * 1e9);
  double left = t->deferred_until > now ? (double)(t->deferred_until - now) / 1e9 : 1e-9;
  mw_luaref_push(L, d->fn);
  mw_luaref_drop(L, &d->fn);
  // Not within a slice that the watchdog stops at every instruction.
  struct mw_watchdog *w = t->sched->watchdog;
  mw_task_start_in(t, d->place, L, 0,
                   &(struct mw_task_options){.name = "deferred",
                                             .shielded = true,
                                             .queued = w != NULL && mw_watchdog_has_fired(w),
                                             .timeout = left,
                                             .end = on_deferred_end});
  mw_free(d);
}

bool mw_scope_conclude(struct mw_task *t) {
  assert(t->state == MW_TASK_ENDING && !t->concluding);
  t->concluding = true;
  if (t->failed || t->unseen != NULL) cancel_children(t);
  if (t->children == NULL) mw_unseen_settle(t);
  while (t->children == NULL && t->deferred != NULL) run_deferred(t);
  t->concluding = false;
  if (t->children != NULL) return true;
  mw_task_finish(t);
  return false;
}
