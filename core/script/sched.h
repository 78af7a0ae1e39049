// SPDX-License-Identifier: Apache-2.0
// Tasks: coroutines over the script loop. Script thread only.
//
// A task runs until it awaits; between awaits nothing else of the state runs. An await is a C
// function that starts something, remembers the task, and returns mw_task_await(). Whoever
// finishes the thing pushes results onto the task's stack and calls mw_task_wake(). The Lua side
// (kube._task) turns `true, ...` into results and `false, err` into a raised error, because a
// resumed C function cannot raise by itself.
//
// A task is stopped by cancelling it or by its deadline. That wakes it with `false, err`, where
// err.code is "cancelled" or "timeout", and is sticky: every later await of that task fails at
// once, so a careless pcall cannot swallow it. The first reason stays. TRAP decided (S-CR-07): so a
// deadline, as that of a reconcile, is kept and not only told; who never awaits is the watchdog's.
//
// Tasks form trees. A stop reaches the children, a deadline is inherited and can only shrink, and a
// task whose function is over ends when its children have (scope.c).
//
// A script's own coroutines may await too: coroutine.resume and coroutine.wrap of the state
// (kube._env) hand a tagged yield upwards until it reaches the task, and the answer back down.
//
// Nothing here lets a Lua error or a yield cross a libuv or libcurl frame: tasks are resumed only
// from mw_task_start and mw_task_wake, which the loop's own callbacks call, and from such
// callbacks.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/loop.h"

struct lua_State;
struct mw_sched;
struct mw_task;

// The watchdog of L, if it is to have one, exists before and outlives the sched.
struct mw_sched *mw_sched_new(struct mw_loop *loop, struct lua_State *L);
// Every task must have ended.
void mw_sched_free(struct mw_sched *s);
struct mw_sched *mw_sched_of(struct lua_State *L);
// For specs, before the first task: tasks do not run when they are woken, but one each turn of the
// loop, drawn from all that could. The same seed draws the same from the same.
void mw_sched_shuffle(struct mw_sched *s, uint64_t seed);
// Whether that was called: who could answer an await at once does not, so that others may be drawn.
bool mw_sched_is_shuffled(const struct mw_sched *s);

// A task that failed. Borrowed for the time of the callback.
struct mw_task_failure {
  const char *report;  // the error, its traceback, then who started the task, and its trigger
  size_t own;          // the bytes at the beginning of report that are about this task alone
  bool cancelled;      // it ended by the error of its cancellation
  struct mw_task *task;
};

// The end of a task: failure is NULL when it returned normally. L is the task's own stack: on
// success its results are all that is on it, else the error value is on its top.
typedef void (*mw_task_end_cb)(void *ctx, struct lua_State *L,
                               const struct mw_task_failure *failure);

enum { MW_TASK_ARGS_MAX = 200 };

struct mw_task_options {
  const char *name;     // for reports (copied, cut to 63 bytes)
  const char *trigger;  // what made it run, for reports (copied); may be NULL
  // It belongs to the running task, if there is one: that ends after it, and stops it when it is
  // stopped itself or fails.
  bool child;
  // A stop of the parent reaches it only after MW_SHIELD_SECONDS.
  bool shielded;
  // At the end of the script it is waited for as long as the grace period lasts.
  bool drains;
  // The same when another generation takes over (mw_sched_finish).
  bool finishes;
  // It begins from the loop: its time is its own, and not a part of that which whoever starts it
  // may run without awaiting.
  bool queued;
  double timeout;      // seconds, 0: only what it inherits
  mw_task_end_cb end;  // may be NULL; it may be called before mw_task_start returns
  void *ctx;
};

#define MW_SHIELD_SECONDS 5.0

// Takes a function and nargs (at most MW_TASK_ARGS_MAX) arguments off the top of `from` and runs it
// as a task, at once unless it is to be queued, until it ends or awaits. (Tasks that start tasks
// that start tasks... do so from the loop beyond some depth.) Returns NULL when the task has
// already ended.
struct mw_task *mw_task_start(struct mw_sched *s, struct lua_State *from, int nargs,
                              const struct mw_task_options *options);
// The task that runs now, or NULL.
struct mw_task *mw_task_current(const struct mw_sched *s);
// What made t run, or the nearest task above it that knows; NULL: none does.
const char *mw_task_trigger(const struct mw_task *t);

// Whether t is `above`, or belongs to it, however far down.
bool mw_task_is_below(const struct mw_task *t, const struct mw_task *above);
// The ctx of the nearest of t and those above it that end with `end`; NULL: none does. t may be
// NULL.
void *mw_task_context(const struct mw_task *t, mw_task_end_cb end);

// For await functions. Checks that L may await now: raises a sentence that names `what` and says
// what to do instead otherwise; returns NULL, with `false, err` pushed, when the task is stopped
// (the caller returns 2 at once).
struct mw_task *mw_task_check(struct lua_State *L, const char *what);
// `return mw_task_await(...)`: suspends. on_cancel(ctx) must undo what was started; it is called at
// most once and never after a wake. It may be NULL, and must not call into Lua.
int mw_task_await(struct lua_State *L, struct mw_task *t, void (*on_cancel)(void *), void *ctx);
// `return mw_task_join(...)`: suspends until child, a child of t that has not ended, has. A stop of
// t does not wake it: it stops the child, too. Answers `true`.
int mw_task_join(struct lua_State *L, struct mw_task *t, struct mw_task *child);
// The stack to push results on before a wake (begin with the boolean).
struct lua_State *mw_task_stack(struct mw_task *t);
// Resumes the task with the nresults values on top of its stack. The task may end in here, or it
// may run later (mw_sched_shuffle).
void mw_task_wake(struct mw_task *t, int nresults);

// Cancels t and what belongs to it.
void mw_task_cancel(struct mw_task *t);
// A failure of a child that nobody has looked at yet. Unless somebody does before its parent ends,
// it becomes the parent's failure.
struct mw_unseen;
// Within the end callback of a task with a parent; the error is on top of L. *slot is where the
// caller finds it: it is cleared when the parent ends. Call mw_unseen_orphan before slot itself
// goes. A parent that has many already has this one logged instead.
void mw_unseen_leave(const struct mw_task_failure *failure, struct lua_State *L,
                     struct mw_unseen **slot);
// Somebody looked: forgets it and clears *slot. A NULL *slot is fine.
void mw_unseen_seen(struct mw_unseen **slot);
// Nobody can look any more. A NULL u is fine.
void mw_unseen_orphan(struct mw_unseen *u);
bool mw_task_has_parent(const struct mw_task *t);
// Pops the function on top of L: it is called as a task of its own when t's function and its
// children are over, however that came about, and before those that were deferred earlier. All of
// t's share MW_SHIELD_SECONDS.
void mw_task_defer(struct mw_task *t, struct lua_State *L);
// Seconds until the deadline of t, not below 0; -1 when it has none.
double mw_task_remaining(const struct mw_task *t);
// Notes that the error on top of L, which a child of t ended with, is about to be raised in t
// again: when t fails with it, its report begins with what the child's own says.
void mw_task_carry(struct mw_task *t, struct lua_State *L, const char *own_report);
// Pushes the error value of cancellation: {code = "cancelled", message = ...}.
void mw_task_push_cancelled(struct lua_State *L);
// Ends t, which waits and has no children, where it is: its function does not go on, and what it
// deferred is dropped.
void mw_task_abandon(struct mw_task *t);
// Cancels every task.
void mw_sched_cancel_all(struct mw_sched *s);
// The end of the script: cancels every task but those that drain, with what belongs to them and
// those that they belong to. From now on the others are cancelled from their beginning. Returns how
// many drain; drained is called from the loop when one of them has ended.
unsigned mw_sched_drain(struct mw_sched *s, mw_loop_cb drained, void *ctx);
// Before that, when another generation has taken over: tasks that finish, from now on also drain.
void mw_sched_finish(struct mw_sched *s);
// From now on t is one that finishes: it has begun something that others wait for.
void mw_task_finishes(struct mw_task *t);
// Writes what drains now into out, as "a; b": by their triggers, or else their names.
void mw_sched_draining(const struct mw_sched *s, char *out, size_t size);
unsigned mw_sched_task_count(const struct mw_sched *s);
// Called from the loop when the last task ended.
void mw_sched_on_idle(struct mw_sched *s, mw_loop_cb idle, void *ctx);
// No task, and no call of idle or drained under way.
bool mw_sched_is_quiet(const struct mw_sched *s);

// Some tasks are looked at more closely.
struct mw_sampling {
  unsigned every;  // one task in so many is a sample, 0: none
  bool *gate;      // true while a sample runs
  // Called when a sample is about to begin: its arguments are the topmost nargs values. From C.
  void (*begins)(struct mw_task *t, struct lua_State *L, int nargs);
  // Called when the function of a sample and its children are over, whatever became of it, before
  // its end callback. From C: it enters Lua by mw_script_call only.
  void (*ended)(struct mw_task *t, struct lua_State *L);
};
void mw_sched_sample(struct mw_sched *s, const struct mw_sampling *sampling);

// What is known of a task, for log lines. Borrowed; trigger and function may be NULL.
struct mw_task_about {
  const char *name;
  const char *trigger;   // its own, or that of the nearest task it belongs to
  const char *function;  // of a sample: where the script defines it, "script.lua:12-20"
};
struct mw_task_about mw_task_about(const struct mw_task *t);

// What kube._env needs to relay awaits through a script's coroutines. `blocked` is the depth of the
// outermost resume that stands on a frame that cannot yield, 0 when every one can. `place` is set
// where nothing can await and says what that is: "an index function".
struct mw_nesting {
  int depth;
  int blocked;
  const char *place;
};
struct mw_nesting mw_sched_nesting(struct lua_State *L);
void mw_sched_set_nesting(struct lua_State *L, struct mw_nesting n);
// Around each resume of a script's coroutine. nest raises when they are nested too deeply.
void mw_sched_nest(struct lua_State *L);
void mw_sched_unnest(struct lua_State *L);
// Whether L is a task's own stack or the main one, and not a coroutine that a script made.
bool mw_sched_owns_stack(struct lua_State *L);
// The first value of a yield that is an await: a lightuserdata of this address.
void *mw_sched_tag(void);
