// SPDX-License-Identifier: Apache-2.0
// Tasks: coroutines over the script loop. Script thread only.
//
// A task runs until it awaits; between awaits nothing else of the state runs. An await is a C
// function that starts something, remembers the task, and returns mw_task_await(). Whoever
// finishes the thing pushes results onto the task's stack and calls mw_task_wake(). The Lua side
// (kube._task) turns `true, ...` into results and `false, err` into a raised error, because a
// resumed C function cannot raise by itself.
//
// Cancelling a task wakes it with `false, cancelled`. It is sticky: every later await of that task
// fails at once, so a careless pcall cannot swallow it.
//
// A script's own coroutines may await too: coroutine.resume and coroutine.wrap of the state
// (kube._env) hand a tagged yield upwards until it reaches the task, and the answer back down.
//
// Nothing here lets a Lua error or a yield cross a libuv or libcurl frame: tasks are resumed only
// from mw_task_start and mw_task_wake, which the loop's own callbacks call.
#pragma once

#include <stdbool.h>
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

// The end of a task: report is NULL when it returned normally, else the error with a traceback
// (borrowed). L is the task's own stack: on success its results are all that is on it. cancelled:
// it ended by the error of its cancellation.
typedef void (*mw_task_end_cb)(void *ctx, struct lua_State *L, const char *report, bool cancelled);

enum { MW_TASK_ARGS_MAX = 200 };

// Takes a function and nargs (at most MW_TASK_ARGS_MAX) arguments off the top of `from` and runs it
// as a task, at once, until it ends or awaits. (Tasks that start tasks that start tasks... do so
// from the loop beyond some depth.) name is for reports (copied, cut to 63 bytes). end may be NULL;
// it may be called before this returns. Returns NULL when the task has already ended.
struct mw_task *mw_task_start(struct mw_sched *s, struct lua_State *from, int nargs,
                              const char *name, mw_task_end_cb end, void *ctx);

// For await functions. Checks that L may await now: raises a sentence that names `what` and says
// what to do instead otherwise; returns NULL, with `false, cancelled` pushed, when the task is
// cancelled (the caller returns 2 at once).
struct mw_task *mw_task_check(struct lua_State *L, const char *what);
// `return mw_task_await(...)`: suspends. on_cancel(ctx) must undo what was started; it is called at
// most once and never after a wake. It may be NULL, and must not call into Lua.
int mw_task_await(struct lua_State *L, struct mw_task *t, void (*on_cancel)(void *), void *ctx);
// The stack to push results on before a wake (begin with the boolean).
struct lua_State *mw_task_stack(struct mw_task *t);
// Resumes the task with the nresults values on top of its stack. The task may end in here.
void mw_task_wake(struct mw_task *t, int nresults);

void mw_task_cancel(struct mw_task *t);
// Pushes the error value of cancellation: {code = "cancelled", message = ...}.
void mw_task_push_cancelled(struct lua_State *L);
// Cancels every task but `except` (may be NULL).
void mw_sched_cancel_all(struct mw_sched *s, const struct mw_task *except);
unsigned mw_sched_task_count(const struct mw_sched *s);
// Called from the loop when the last task ended.
void mw_sched_on_idle(struct mw_sched *s, mw_loop_cb idle, void *ctx);
// No task, and no call of idle under way.
bool mw_sched_is_quiet(const struct mw_sched *s);

// What kube._env needs to relay awaits through a script's coroutines. `blocked` is the depth of the
// outermost resume that stands on a frame that cannot yield, 0 when every one can.
struct mw_nesting {
  int depth;
  int blocked;
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
