// SPDX-License-Identifier: Apache-2.0
// The fence before a script's writes: with a leader election, only the leader's pass.
//
// A lease alone does not keep two leaders apart: one that was stopped (a frozen process, a
// suspended machine, a network that hung) goes on where it was, and writes before it looks at the
// lease again. So each write is held against the clock in the moment in which it is handed over to
// be sent (mw_request_callbacks.on_send), on the ingest thread, whatever the script believes.
//
// The fence is open until `renew_deadline` seconds after the *start* of the last renewal that
// succeeded. Nobody else can have taken the lease by then: others wait for lease_duration, which is
// longer, from when they saw that renewal, which is later. The clock is CLOCK_BOOTTIME, which runs
// on in a stopped process and in a suspended machine.
//
// What it cannot stop is a write whose bytes the kernel has: it may still be under way when the
// fence closes, for which there are lease_duration - renew_deadline seconds (5 by default) before
// another can lead. Answers are not waited for beyond the fence: who has something under way is
// told when it closes (mw_fence_watch). A process whose script adds an election by a reload has no
// such seconds: what the kernel had before that turn is a write of the time before. A process that
// is stopped between the look at the clock and the system call that follows it, or a machine whose
// hypervisor also stops its clocks, can send one late: for those there is the resourceVersion in
// the write.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MW_FENCE_OPEN UINT64_MAX  // for ever

struct mw_fence;

struct mw_fence_watch {
  struct mw_fence_watch *prev, *next;  // NULL: it does not watch
  void (*closed)(struct mw_fence_watch *w);
};

// Open for ever: there is no election. Reference counts are atomic; the last unref may happen on
// any thread.
struct mw_fence *mw_fence_new(void);
struct mw_fence *mw_fence_ref(struct mw_fence *f);
void mw_fence_unref(struct mw_fence *f);

// Any thread. Open until this time of mw_clock_boot(); 0: closed.
void mw_fence_set(struct mw_fence *f, uint64_t until);
// Ingest thread. Closes it, and calls closed of all who watch, each once: they watch no more.
void mw_fence_close(struct mw_fence *f);
// Ingest thread. Holds no reference.
void mw_fence_watch(struct mw_fence *f, struct mw_fence_watch *w);
void mw_fence_unwatch(struct mw_fence_watch *w);  // also of one that does not
bool mw_fence_is_open(const struct mw_fence *f);
// Seconds until it closes if nothing happens, 0 when it is closed; infinite without an election.
double mw_fence_left(const struct mw_fence *f);
