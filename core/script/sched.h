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
// Nothing here lets a Lua error or a yield cross a libuv or libcurl frame: tasks are resumed only
// from mw_task_start and mw_task_wake, which the loop's own callbacks call.
#pragma once

#include <stdbool.h>

#include "transport/loop.h"

struct lua_State;
struct mw_sched;
struct mw_task;

struct mw_sched *mw_sched_new(struct mw_loop *loop, struct lua_State *L);
// Every task must have ended.
void mw_sched_free(struct mw_sched *s);
struct mw_sched *mw_sched_of(struct lua_State *L);

// The end of a task: report is NULL when it returned normally, else the error with a traceback
// (borrowed). L is the task's own stack: on success its results are all that is on it.
typedef void (*mw_task_end_cb)(void *ctx, struct lua_State *L, const char *report, bool cancelled);

// Takes a function and nargs arguments off the top of `from` and runs it as a task, at once, until
// it ends or awaits. name is for reports (copied, cut to 63 bytes). end may be NULL; it may be
// called before this returns. Returns NULL when the task has already ended.
struct mw_task *mw_task_start(struct mw_sched *s, struct lua_State *from, int nargs,
                              const char *name, mw_task_end_cb end, void *ctx);

// The task that runs on this stack, or NULL (the load of a required file, a sort comparator...).
struct mw_task *mw_task_current(struct lua_State *L);
const char *mw_task_name(const struct mw_task *t);

// For await functions. Checks that L may await now: raises a sentence that names `what` and says
// what to do instead otherwise; returns NULL, with `false, cancelled` pushed, when the task is
// cancelled (the caller returns 2 at once).
struct mw_task *mw_task_check(struct lua_State *L, const char *what);
// `return mw_task_await(...)`: suspends. on_cancel(ctx) must undo what was started; it is called at
// most once and never after a wake.
int mw_task_await(struct lua_State *L, struct mw_task *t, void (*on_cancel)(void *), void *ctx);
// The stack to push results on before a wake (begin with the boolean).
struct lua_State *mw_task_stack(struct mw_task *t);
// Resumes the task with the nresults values on top of its stack. The task may end in here.
void mw_task_wake(struct mw_task *t, int nresults);

void mw_task_cancel(struct mw_task *t);
// Cancels every task but `except` (may be NULL).
void mw_sched_cancel_all(struct mw_sched *s, const struct mw_task *except);
unsigned mw_sched_task_count(const struct mw_sched *s);
// Called from the loop when the last task ended.
void mw_sched_on_idle(struct mw_sched *s, mw_loop_cb idle, void *ctx);
