// SPDX-License-Identifier: Apache-2.0
// One script loaded in one lua_State of its own (D6). What a script holds (informers, handlers,
// tasks, stop channels) belongs to its generation and ends with it; what it shares lives in the
// host.
//
// The entry file runs as a task. What it does before its first await is the load phase: it
// declares and never acts. mw_generation_commit() ends that phase and runs what was deferred.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "transport/loop.h"

struct lua_State;
struct mw_bundle;
struct mw_generation;
struct mw_host;
struct mw_informer;
struct mw_store;
struct mw_signal;

// Puts what scripts get (kube._core and the embedded modules) into a new state. May raise.
typedef void (*mw_state_open_cb)(struct lua_State *L);

struct mw_generation_config {
  struct mw_bundle *bundle;  // its files; takes its own reference
  // Or an embedded module as the entry: a part of Moonwatch, with all of Lua, without a watchdog,
  // and before no fence. Then there is no bundle.
  const char *module;
  mw_state_open_cb open;   // the bindings; they are above this directory
  bool metered;            // its time slices have metrics
  size_t memory_limit;     // bytes of its state, 0: no limit; a module has none
  bool replaces;           // it is to take the place of one that runs
  struct mw_store *store;  // what it shares with other revisions; outlives it. NULL: one of its own
  unsigned long number;  // among those who share the store: each has a higher one than those before
  const char *agent;     // the User-Agent of its requests; NULL: what all have. Borrowed
  // The main task has failed after the load. NULL: mw_host_failed.
  void (*failed)(void *ctx, const char *report);
  void *failed_ctx;
};

// A fresh state with the libraries a script may use, `kube` and nothing else. `require` finds the
// files of the bundle.
struct mw_generation *mw_generation_new(struct mw_host *host,
                                        const struct mw_generation_config *config,
                                        struct mw_err *err);
// Compiles and runs the entry file up to its first await or its end. The error names file
// and line.
int mw_generation_load(struct mw_generation *g, struct mw_err *err);
// Until commit: something that is declared is wrong, or cannot be had. A load goes on, for what
// else there may be to say, and fails at its end.
void mw_generation_complain(struct mw_generation *g, const char *text);
// All that was complained of, one paragraph for each reason; "" when nothing was.
const char *mw_generation_report(const struct mw_generation *g);
// Whether its code is compiled from commit on, and not interrupted any more. Until commit.
void mw_generation_set_jit(struct mw_generation *g, bool on);
void mw_generation_commit(struct mw_generation *g);
bool mw_generation_is_loading(const struct mw_generation *g);
// Runs cb(ctx) now, or at commit while loading. After a load that failed it is called when the
// generation stops (mw_generation_is_stopping), to let go of what ctx holds.
void mw_generation_defer(struct mw_generation *g, mw_loop_cb cb, void *ctx);
// The same for the Lua function on top of L, which it pops. An error in it ends the run as one in
// the entry file would, except when not loading: then it is raised.
void mw_generation_defer_function(struct mw_generation *g, struct lua_State *L);
// An await function that suspends the main task until commit: kube._task calls it before any other
// await while loading. what is for messages.
int mw_generation_park(struct mw_generation *g, struct lua_State *L, const char *what);

// Things that belong to a generation and must end before its state closes. close is called once,
// in reverse order of adding, when the generation stops; it must lead to mw_generation_drop, now
// or later.
struct mw_owned {
  struct mw_owned *prev, *next;
  void (*close)(struct mw_owned *o);
  bool passive;  // does not keep the generation running by itself
  // May be NULL. Called for what was closed and is still there when the grace period of a
  // generation that retires is over.
  void (*abandon)(struct mw_owned *o);
};
void mw_generation_own(struct mw_generation *g, struct mw_owned *o);
void mw_generation_drop(struct mw_generation *g, struct mw_owned *o);
// Whether anything owned keeps it running (informers started, tasks alive).
bool mw_generation_is_busy(const struct mw_generation *g);
// After a load, before commit: whether it has declared nothing, and nothing of it would go on.
bool mw_generation_is_empty(const struct mw_generation *g);

// A task of its own has failed (1), or somebody has looked at that since (-1).
void mw_generation_count_failed(struct mw_generation *g, int by);
// Whether one has failed that nobody looked at.
bool mw_generation_has_failed(const struct mw_generation *g);

// Notes an informer that it asked for, +0, and where: "script.lua:12", which is copied.
void mw_generation_want(struct mw_generation *g, struct mw_informer *inf, const char *place);
// It has no use for it any more.
void mw_generation_unwant(struct mw_generation *g, struct mw_informer *inf);
typedef void (*mw_generation_wanted_cb)(void *ctx, struct mw_informer *inf, const char *place);
void mw_generation_each_wanted(struct mw_generation *g, mw_generation_wanted_cb cb, void *ctx);

// Pops two functions, unload and load, that are protected and cannot await: unload() returns a text
// or nil, which is load's first argument in the next generation; its second is this revision.
void mw_generation_set_handover(struct mw_generation *g, struct lua_State *L);
// Hands over from one to the next, before it is committed; neither is changed by that. broken: from
// is taken back for its failure, and when its unload fails, too, load gets nothing.
int mw_generation_hand_over(struct mw_generation *from, struct mw_generation *to, bool broken,
                            struct mw_err *err);
struct mw_store *mw_generation_store(struct mw_generation *g);
unsigned long mw_generation_number(const struct mw_generation *g);

// How its reconciles go.
struct mw_generation_runs {
  unsigned long all, failed;
};
void mw_generation_count_run(struct mw_generation *g, bool failed);
struct mw_generation_runs mw_generation_runs(const struct mw_generation *g);
// What the watchdog has stopped last since it was loaded, else what the memory limit has: the
// sentence that it failed with, and the place. "": nothing. Borrowed.
const char *mw_generation_stopped(const struct mw_generation *g);

// Fails as its main task would.
void mw_generation_fail(struct mw_generation *g, const char *report);

// Something that tasks may be waiting for has changed (an informer synced, stopped...): wakes those
// who wait on the generation's own signal (kube._core.task.changed()), from the loop.
void mw_generation_changed(struct mw_generation *g);
struct mw_signal *mw_generation_signal(struct mw_generation *g);

// Pops the function on top of L: it is called, protected and unable to await, when the generation
// begins to stop; with true when it retires or gives way.
void mw_generation_on_stop(struct mw_generation *g, struct lua_State *L);

// Pops the function on top of L: it is called, protected and unable to await, when the generation
// has stopped and all tasks have ended. Text that it returns says what was left undone. Not when it
// retires: what it left is the next one's.
void mw_generation_on_end(struct mw_generation *g, struct lua_State *L);

// Closes stop channels and what is owned, gives tasks a moment to end by themselves, and cancels
// those that do not. Tasks that drain (mw_task_options) have grace seconds before they are
// cancelled, too; they are named in the log then. done is called from the loop when all is gone,
// or, with a log line about what is left, when cancelled tasks have not ended after patience
// seconds (0: what their shields and deferred functions may take). Of one that was never committed
// nothing runs any more, neither the functions for its end nor the rest of its entry file.
void mw_generation_stop(struct mw_generation *g, double grace, double patience, mw_loop_cb done,
                        void *ctx);
// The same for one whose place another has taken, in the same turn of the loop. What has begun may
// end: events that were queued for its handlers are still delivered, and calls of handlers and work
// on keys are waited for, all of that for grace seconds.
void mw_generation_retire(struct mw_generation *g, double grace, double patience, mw_loop_cb done,
                          void *ctx);
bool mw_generation_is_retiring(const struct mw_generation *g);
// Before the stop of one that was committed and failed in that turn: the one that it was to replace
// goes on, and what they share is that one's. Its functions for the end are called as if it
// retired.
void mw_generation_give_way(struct mw_generation *g);
// One that stops has no more than grace seconds from now on.
void mw_generation_hurry(struct mw_generation *g, double grace);
// Whether a stop left nothing undone: no task that drains was cancelled, and no on_end function
// found fault.
bool mw_generation_is_drained(const struct mw_generation *g);
bool mw_generation_is_stopping(const struct mw_generation *g);
// Whether nothing is left, so that it may be freed; false when stop gave up after its grace.
bool mw_generation_has_ended(const struct mw_generation *g);
// After stop reported done.
void mw_generation_free(struct mw_generation *g);

struct mw_generation *mw_generation_of(struct lua_State *L);
struct lua_State *mw_generation_state(struct mw_generation *g);
struct mw_host *mw_generation_host(struct mw_generation *g);
const char *mw_generation_agent(const struct mw_generation *g);  // NULL: none of its own
// Of its bundle; "" when its entry is a module.
const char *mw_generation_revision(const struct mw_generation *g);
bool mw_generation_replaces(const struct mw_generation *g);
// NULL: its entry is a module.
const struct mw_bundle *mw_generation_bundle(const struct mw_generation *g);
// Whether its entry is a module.
bool mw_generation_is_module(const struct mw_generation *g);
