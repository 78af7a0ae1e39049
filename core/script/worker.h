// SPDX-License-Identifier: Apache-2.0
// A Lua program of our own on a thread of its own: the sandbox. It has a state with all of Lua, a
// loop, and no watchdog: what it runs is part of the program, not of a script. The compiler is off:
// that of Debian 12 (LuaJIT 2.1 of March 2022) loses half of a pointer in some compiled pairs()
// loops, which a long run of writes turned into a crash in four of five tries; and requests cost
// about the same CPU time with it, so nothing is lost.
//
// The thread calls the function `run` of a module, which sets up servers and timers and returns;
// from then on the loop calls back. An error in such a call is logged and ends nothing.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "transport/loop.h"

struct lua_State;
struct mw_worker;

enum mw_worker_kind { MW_WORKER_TEXT = 0, MW_WORKER_NUMBER, MW_WORKER_FLAG, MW_WORKER_LIST };

// What the program finds in its options under `name`.
struct mw_worker_option {
  const char *name;
  enum mw_worker_kind kind;
  const char *text;
  double number;  // MW_WORKER_NUMBER; MW_WORKER_FLAG: not 0 is true
  const char *const *list;
  size_t count;
};

struct mw_worker_config {
  const char *module;                      // embedded, or found by package.path
  void (*open)(struct lua_State *L);       // the bindings; they are above this directory
  const struct mw_worker_option *options;  // borrowed while the worker lives
  size_t option_count;
  double ready_seconds;  // how long to wait for it, 0: 60
};

// Starts the thread and waits until the program said that it is ready. NULL when it failed or did
// not get ready in time; err has its message. (Of a program that hangs the thread is left behind.)
struct mw_worker *mw_worker_start(const struct mw_worker_config *config, struct mw_err *err);
// What the program told when it got ready, by name; NULL when it did not say. Lives as long as the
// worker.
const char *mw_worker_info(const struct mw_worker *w, const char *name);
// Calls what `run` returned, closes what the program has open, then its state; joins the thread and
// frees the worker. MW_ESCRIPT when what `run` returned has failed, of which the log tells.
int mw_worker_stop(struct mw_worker *w);

// For the bindings, on the worker's thread.
struct mw_worker *mw_worker_of(struct lua_State *L);
struct mw_loop *mw_worker_loop(struct mw_worker *w);
struct lua_State *mw_worker_state(struct mw_worker *w);
const struct mw_worker_config *mw_worker_config(const struct mw_worker *w);
// Calls function(L) with the one argument arg, protected: the way from the loop into Lua. An error
// is logged with its traceback, and `what` it happened in; MW_ESCRIPT is returned.
int mw_worker_call(struct mw_worker *w, const char *what, int (*function)(struct lua_State *L),
                   void *arg);
// Tells the starter. The first time counts.
void mw_worker_add_info(struct mw_worker *w, const char *name, const char *text);
void mw_worker_ready(struct mw_worker *w);

// Things that must end before the state closes. close is called once, when the worker stops, in
// reverse order of adding; it must lead to mw_worker_drop, now or later.
struct mw_worker_owned {
  struct mw_worker_owned *prev, *next;
  void (*close)(struct mw_worker_owned *o);
};
// False, and nothing done, when the worker is stopping already.
bool mw_worker_own(struct mw_worker *w, struct mw_worker_owned *o);
void mw_worker_drop(struct mw_worker *w, struct mw_worker_owned *o);
