// SPDX-License-Identifier: Apache-2.0
// The end of a process whose script thread does not come back: in a C function that never returns,
// where no hook runs, or blocked.
#pragma once

#include <pthread.h>
#include <stddef.h>

struct lua_State;

// An entry into Lua, for messages. All of it is borrowed.
struct mw_entry {
  struct lua_State *L;  // the stack it begins on
  const char *what;     // "reconcile play/a"; NULL: only what is entered from there has a name
  const char *trigger;  // what made it run; may be NULL
};

// Called by the watchdog: asks `thread` for its stack, by a signal, writes a report to stderr and
// ends the process with MW_EXIT_STUCK, whatever comes back within a second. `entries` are the
// entries on that thread's stack, which alone reads them, the innermost last; `what` is the first,
// for the case that it does not answer. `why` says how long it has been.
struct mw_stuck {
  pthread_t thread;
  const struct mw_entry *entries;
  int room;          // for so many of them
  const int *depth;  // there are so many, or more
  const char *what;
  const char *why;
};
_Noreturn void mw_stuck_leave(const struct mw_stuck *s);
