// SPDX-License-Identifier: Apache-2.0
// Guards the time a script runs between two awaits (D7). A thread of its own looks at the clock;
// with the JIT off, a hook set from there stops a runaway loop at its next instruction.
//
// warn_after: the slice is logged, with the stack it had then, when it ends. kill_after: the
// running code gets the error "cpu budget exceeded", again at every instruction until the slice
// ends, so that a pcall in the loop does not keep it alive; while a script loads, that comes
// sooner, with a message of its own. exit_after: it is in C code that never returns, and the
// process ends (stuck.h).
//
// All of these are times of the script thread's CPU, so that a busy machine stops nobody; a thread
// that is blocked counts as stuck after six times as long.
//
// The thread sleeps while no slice runs, and looks up at most once per warn_after while some do.
#pragma once

#include <stdbool.h>

#include "script/stuck.h"

struct lua_State;
struct mw_watchdog;

struct mw_watchdog_config {
  double warn_after;  // seconds, 0: 0.05
  double kill_after;  // seconds, 0: 1
  double exit_after;  // seconds, 0: 10, below 0: never
  bool metered;       // moonwatch_lua_slice_seconds, moonwatch_lua_watchdog_total
};

struct mw_watchdog *mw_watchdog_new(struct lua_State *L, const struct mw_watchdog_config *config);
void mw_watchdog_free(struct mw_watchdog *w);  // NULL is fine; joins the thread
// Around every entry into Lua; entries nest, the outermost counts. A NULL watchdog is fine.
void mw_watchdog_enter(struct mw_watchdog *w, struct mw_entry entry);
void mw_watchdog_leave(struct mw_watchdog *w);
// Whether it has raised its error in the slice that runs.
bool mw_watchdog_has_fired(const struct mw_watchdog *w);
// The error that it raised last, with its place, apart from those while loading; "": none. NULL is
// fine.
const char *mw_watchdog_last(const struct mw_watchdog *w);
// Whether the script declares things, for which it has less time, or runs. NULL is fine.
void mw_watchdog_set_loading(struct mw_watchdog *w, bool loading);
// The state's code is compiled from now on, and sees no hooks: it is warned of, without a stack,
// and ended with the process, but not stopped. NULL is fine.
void mw_watchdog_stand_back(struct mw_watchdog *w);
struct mw_watchdog *mw_watchdog_of(struct lua_State *L);
