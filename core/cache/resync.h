// SPDX-License-Identifier: Apache-2.0
// How often the handlers of an informer are resynced, and so how often it looks whether one is due.
// Private to cache.
//
// Contract (S-INF-40..45), for each owner who shares the informer as if it were alone: its check
// period is what it asked the informer for, or the least that one of its handlers asked for before
// the owner started it. A handler that comes later asks for no less. Without a period nobody is
// resynced, whatever its handlers ask for. The informer checks as often as the least of its owners
// wants, and no longer so when that one has left: a script that is loaded anew gets what it would
// get after a restart.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct mw_resync_want {
  const void *owner;
  double asked;  // by its factory; 0: never
  double check;
  bool started;
};

// Begins as {0} but for least, which no period is below.
struct mw_resync {
  struct mw_resync_want *v;
  size_t n;
  double least;
};

void mw_resync_deinit(struct mw_resync *r);
// seconds: what the owner's factory asks for. What the same owner had before is dropped.
void mw_resync_want(struct mw_resync *r, const void *owner, double seconds);
// The owner has started the informer: its handlers come late from now on.
void mw_resync_start(struct mw_resync *r, const void *owner);
void mw_resync_drop(struct mw_resync *r, const void *owner);

// How often to check; 0: never.
double mw_resync_check(const struct mw_resync *r);

// What the owner's factory asks for; 0: never.
double mw_resync_asked(const struct mw_resync *r, const void *owner);
// The period of a handler that asks for `asked`; 0: never. *why: what to warn of when that is not
// what it asked for, else NULL.
double mw_resync_choose(struct mw_resync *r, const void *owner, double asked, const char **why);
