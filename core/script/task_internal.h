// SPDX-License-Identifier: Apache-2.0
// What sched.c, scope.c, shuffle.c, task_report.c and nesting.c share; for nobody else.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "script/sched.h"

struct mw_heap;
struct mw_watchdog;

enum { MW_THREAD_POOL_MAX = 64, MW_TASK_NAME_ROOM = 64 };

enum mw_task_state {
  MW_TASK_QUEUED = 0,  // will be started from the loop; its function and arguments are on its stack
  MW_TASK_RUNNING,     // on the C stack
  MW_TASK_WAITING,     // suspended; whoever it waits for will wake it
  MW_TASK_WAKING,      // stopped while waiting; a wake is posted
  MW_TASK_READY,       // woken, with its results on its stack; its turn will be drawn (shuffle.c)
  MW_TASK_ENDING,      // its function is over; its children or deferred functions are not
};

// Why every await of a task fails from now on.
enum mw_task_stop {
  MW_STOP_NONE = 0,
  MW_STOP_CANCELLED,
  MW_STOP_TIMEOUT,
};

struct mw_thread {
  struct lua_State *co;
  int ref;
};

struct mw_task {
  struct mw_sched *sched;
  struct mw_task *prev, *next;  // all that are alive
  struct mw_task *parent;       // outlives it; NULL: the generation's own
  struct mw_task *children;     // the youngest
  struct mw_task *older, *younger;
  struct mw_thread thread;
  enum mw_task_state state;
  enum mw_task_stop stop;
  bool failed;      // MW_TASK_ENDING: by an error, which is on top of its stack
  bool concluding;  // conclude is on the C stack, or posted
  bool joining;     // MW_TASK_WAITING for a child: a stop does not wake it, for the child ends soon
  bool shielded;    // a stop from outside reaches it only after a while
  bool drains;      // see mw_task_options
  bool finishes;    // likewise
  bool sampled;
  bool abandoned;          // it ends in the middle of its function
  unsigned draining;       // how many of its tree drain, itself included
  int nargs;               // MW_TASK_QUEUED, MW_TASK_READY: what is for it on its stack
  struct mw_task *joiner;  // the parent, when it is joining this one
  // The deadline: nanoseconds, 0 for none. It is the parent's unless by is this task, which then
  // has the timer.
  uint64_t due;
  struct mw_task *due_by;
  struct mw_timer *due_timer;
  enum mw_task_stop due_stop;
  double timeout;  // seconds, for messages
  struct mw_nesting nesting;
  void (*on_cancel)(void *);  // MW_TASK_WAITING
  void *cancel_ctx;
  mw_task_end_cb end;
  void *ctx;
  char *trigger, *origin;        // NULL: none
  char *function;                // of a sample
  struct mw_deferred *deferred;  // what runs when it ends: the last first
  uint64_t deferred_until;       // nanoseconds: the deadline of all of them, 0 before the first
  struct mw_unseen *unseen;      // failures of children, in their order
  int carried_error;   // luarefs: an error of a child that was raised here again, and what
  int carried_report;  // its report said
  char name[MW_TASK_NAME_ROOM];
};

struct mw_sched {
  struct mw_loop *loop;
  struct lua_State *L;
  struct mw_watchdog *watchdog;
  struct mw_heap *heap;
  struct mw_task *tasks;
  struct mw_task *current;
  unsigned count;
  int depth;                  // of run on the C stack
  struct mw_nesting nesting;  // outside of tasks
  struct mw_thread pool[MW_THREAD_POOL_MAX];
  int pooled;
  int cancelled_ref, error_meta;
  mw_loop_cb idle;
  void *idle_ctx;
  bool idle_posted;
  bool closing;    // mw_sched_drain was called
  bool finishing;  // mw_sched_finish was
  struct mw_sampling sampling;
  unsigned unsampled;  // tasks since the last sample
  mw_loop_cb drained;
  void *drained_ctx;
  bool drained_posted;
  struct mw_shuffle *shuffle;  // NULL: tasks run when they are woken
};

// sched.c
// mw_task_start with a parent of one's choice, which may be NULL; takes origin, the place where the
// script asked for it, or NULL.
struct mw_task *mw_task_start_in(struct mw_task *parent, char *origin, struct lua_State *from,
                                 int nargs, const struct mw_task_options *options);
// Undoes an await that will not be answered.
void mw_task_drop_await(struct mw_task *t);
// The task is over: tells whoever started it, and frees it.
void mw_task_finish(struct mw_task *t);
// Runs t, which is queued or ready, until it awaits or ends.
void mw_task_run(struct mw_task *t);

// shuffle.c
// t, which is queued or ready, will run when it is drawn.
void mw_shuffle_add(struct mw_task *t);
// NULL is fine.
void mw_shuffle_free(struct mw_shuffle *f);

// scope.c
// Makes t, which was not started yet, a child of parent.
void mw_scope_enter(struct mw_task *t, struct mw_task *parent);
// The reverse, when t is over; the parent may be waiting for that.
void mw_scope_leave(struct mw_task *t);
// The function of the task is over: ends it when all that belongs to it has ended. False when that
// was now, and the task is gone.
bool mw_scope_conclude(struct mw_task *t);
// Drops the functions that were to run when t ends.
void mw_scope_forget_deferred(struct mw_task *t);
// Seconds from now until the deadline of t, which has been started.
void mw_scope_set_timeout(struct mw_task *t, double seconds);
// Stops t when its deadline has passed, though its timer did not have its turn yet.
void mw_scope_look_at_clock(struct mw_task *t);
// Pushes the error that every await of t, which is stopped, fails with.
void mw_scope_push_stop(struct mw_task *t, struct lua_State *L);
void mw_scope_open(struct mw_sched *s);
void mw_scope_close(struct mw_sched *s);

// sample.c
// t is about to be started with nargs arguments and, below them, its function on top of from.
void mw_sample_begin(struct mw_task *t, struct lua_State *from, int nargs);

// drain.c
// t, which drains, was started or has ended: by is 1 or -1.
void mw_drain_count(struct mw_task *t, int by);

// unseen.c
// t returned normally: makes the first failure nobody looked at its own. Logs the others.
void mw_unseen_settle(struct mw_task *t);

// task_report.c
// Pushes the report onto the main stack and fills out; the error value is on top of the task's own
// stack and stays there.
void mw_report_push(struct mw_task *t, struct mw_task_failure *out);
