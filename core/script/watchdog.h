// SPDX-License-Identifier: Apache-2.0
// Guards the time a script runs between two awaits (D7). A thread of its own looks at the clock;
// with the JIT off, a hook set from there stops a runaway loop at its next instruction.
//
// warn_after: the slice is logged, with the stack it had then, when it ends. kill_after: the
// running code gets the error "cpu budget exceeded", again at every instruction until the slice
// ends, so that a pcall in the loop does not keep it alive.
//
// The thread sleeps while no slice runs, and looks up at most once per warn_after while some do.
#pragma once

#include <stdbool.h>

struct lua_State;
struct mw_watchdog;

struct mw_watchdog_config {
  double warn_after;  // seconds, 0: 0.05
  double kill_after;  // seconds, 0: 1
  bool warn_only;     // never touch the running state: compiled code does not see hooks
  bool metered;       // moonwatch_lua_slice_seconds, moonwatch_lua_watchdog_total
};

struct mw_watchdog *mw_watchdog_new(struct lua_State *L, const struct mw_watchdog_config *config);
void mw_watchdog_free(struct mw_watchdog *w);  // NULL is fine; joins the thread
// Around every entry into Lua; entries nest, the outermost counts. what is borrowed for the slice.
// A NULL watchdog is fine.
void mw_watchdog_enter(struct mw_watchdog *w, const char *what);
void mw_watchdog_leave(struct mw_watchdog *w);
struct mw_watchdog *mw_watchdog_of(struct lua_State *L);
