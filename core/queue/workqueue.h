// SPDX-License-Identifier: Apache-2.0
// The work queue: which keys are to be worked on, once each, in which order, and when (S-WQ, S-PQ).
// Script thread only.
//
// - One entry per key. A key that is added again keeps the higher priority and the earlier
//   time, and collects its reasons (S-PQ-02).
// - A key that was handed out is locked until done. Added meanwhile, however often, it is
//   handed out exactly once more, after that (S-WQ-04).
// - Order among ready keys: priority, highest first; within one, first come, first served, counted
//   from when the key became ready, got its present priority, or was done (S-PQ-03, 04). Delayed
//   keys become ready in the order of their times.
// - Nobody starves: while keys of several priorities are ready, every 16th hand-out
//   (MW_WORKQUEUE_FAIR) takes the key that has been ready longest, whatever its priority.
// - The entry also counts the key's failures, until mw_workqueue_forget (S-WQ-34: who never forgets
//   keeps an entry per key).
// - After mw_workqueue_shut_down adds are ignored and delayed keys are dropped; what is ready is
//   still handed out. Drained is: nothing ready and nothing handed out (S-WQ-08's trap decided).
//
// Every operation costs O(1), or O(log n) where a key is delayed; none walks over the
// keys, except mw_workqueue_forgive.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "queue/rate_limiter.h"
#include "transport/loop.h"

enum {
  MW_WORKQUEUE_KEY_MAX = 4096,       // bytes
  MW_WORKQUEUE_PRIORITY_MAX = 1000,  // and as much below 0; adds beyond are held to it
  MW_WORKQUEUE_FAIR = 16,
  MW_WORKQUEUE_REASONS = 64,     // distinct texts; the last of them is "other"
  MW_WORKQUEUE_REASON_MAX = 128  // bytes; longer texts are cut
};

struct mw_workqueue;
struct mw_workqueue_user;

struct mw_workqueue_config {
  struct mw_rate_limiter_config limits;
  size_t keys_max;          // 0: ten million
  uint64_t (*clock)(void);  // NULL: mw_clock_now
};

// +1. name may be NULL; it is copied.
struct mw_workqueue *mw_workqueue_new(struct mw_loop *loop, const char *name,
                                      const struct mw_workqueue_config *config);
struct mw_workqueue *mw_workqueue_ref(struct mw_workqueue *q);
// The last one frees it with all its keys; its users must have left.
void mw_workqueue_unref(struct mw_workqueue *q);
const char *mw_workqueue_name(const struct mw_workqueue *q);  // NULL: none
// Another name from now on, also in the metrics, which begin anew.
void mw_workqueue_rename(struct mw_workqueue *q, const char *name);
// Whoever it belongs to (mw_queues_get); nothing else is made of it.
void mw_workqueue_set_owner(struct mw_workqueue *q, const void *owner);
const void *mw_workqueue_owner(const struct mw_workqueue *q);
// Other limits from now on. The same ones again change nothing: the bucket stays as it is.
void mw_workqueue_set_limits(struct mw_workqueue *q, const struct mw_rate_limiter_config *limits);

// How to add a key. All zero: at once, at priority 0.
struct mw_workqueue_add {
  double after;       // seconds until it is ready; 0: not asked for
  bool rate_limited;  // counts a failure, and waits for the limiter; with `after`, the shorter wait
  int priority;
  uint64_t reasons;  // bits of mw_workqueue_reason
};
// how may be NULL. MW_ELIMIT, with the key not added, when it is too long or the queue has too
// many.
int mw_workqueue_add(struct mw_workqueue *q, struct mw_slice key,
                     const struct mw_workqueue_add *how) __attribute__((warn_unused_result));

// The bit of a reason's text, the same for the same text.
uint64_t mw_workqueue_reason(struct mw_workqueue *q, struct mw_slice text);
// The text of bit number i, or NULL.
const char *mw_workqueue_reason_text(const struct mw_workqueue *q, unsigned i);

// Forgets the key's failures. It may stay queued, and a hand-out still needs its done.
void mw_workqueue_forget(struct mw_workqueue *q, struct mw_slice key);
// Forgets the failures of all keys, and makes those ready that wait because of one: whatever failed
// them has been replaced. Walks over all keys.
void mw_workqueue_forgive(struct mw_workqueue *q);
// How often the key was added rate limited since it was forgotten.
unsigned mw_workqueue_requeues(const struct mw_workqueue *q, struct mw_slice key);
// Keys that could be handed out now.
size_t mw_workqueue_len(struct mw_workqueue *q);

// Who takes keys: they are locked in a user's name until it is done with them or leaves. changed
// (may be NULL) is called, perhaps from inside another function of the queue, when the queue that
// is shutting down has drained.
struct mw_workqueue_user *mw_workqueue_join(struct mw_workqueue *q, mw_loop_cb changed, void *ctx);
// Nobody of this user gets keys any more, and those who wait are told so, from the loop. done still
// works.
void mw_workqueue_close(struct mw_workqueue_user *u);
// Keys that the user has not done are made ready again, for others: their work may be half done.
// Nobody may be waiting.
void mw_workqueue_leave(struct mw_workqueue_user *u);

struct mw_workqueue_item {
  struct mw_slice key;  // valid until done
  int priority;
  uint64_t reasons;   // since it was handed out last
  double waited;      // seconds since it became ready
  unsigned requeues;  // its failures so far
};
// Hands out the next key; false when none is ready, or the user is closed.
bool mw_workqueue_take(struct mw_workqueue_user *u, struct mw_workqueue_item *out);

// One who waits for a key; served in the order of waiting. The memory is the waiter's own.
struct mw_workqueue_waiter {
  struct mw_workqueue_waiter *prev, *next;  // NULL: not waiting
  struct mw_workqueue_user *user;
  // Called once, from the loop. item is NULL when no key will come: the user is closed, or the
  // queue shut down and nothing ready or to be run again.
  void (*cb)(struct mw_workqueue_waiter *w, const struct mw_workqueue_item *item);
};
// Sets w->cb and begins to wait; comes to its end also where a key is ready already.
void mw_workqueue_wait(struct mw_workqueue_user *u, struct mw_workqueue_waiter *w,
                       void (*cb)(struct mw_workqueue_waiter *w,
                                  const struct mw_workqueue_item *item));
// cb will not be called, and no key is lost by that. Nothing when it does not wait.
void mw_workqueue_unwait(struct mw_workqueue_waiter *w);
bool mw_workqueue_has_waiters(const struct mw_workqueue *q);

// How many keys the user has and is not done with.
size_t mw_workqueue_held(const struct mw_workqueue_user *u);
bool mw_workqueue_holds(const struct mw_workqueue_user *u, struct mw_slice key);
// The work on a key is over. MW_ESTATE when the user does not hold it.
int mw_workqueue_done(struct mw_workqueue_user *u, struct mw_slice key)
    __attribute__((warn_unused_result));

// May be repeated.
void mw_workqueue_shut_down(struct mw_workqueue *q);
bool mw_workqueue_is_shut_down(const struct mw_workqueue *q);
bool mw_workqueue_is_drained(const struct mw_workqueue *q);
bool mw_workqueue_is_used(const struct mw_workqueue *q);
// Nobody uses it, and it knows of no key.
bool mw_workqueue_is_forgotten(const struct mw_workqueue *q);

struct mw_workqueue_stats {
  size_t ready;       // could be handed out now
  size_t locked;      // handed out, and to be run again
  size_t waiting;     // for their time
  size_t processing;  // handed out
  size_t failing;     // keys whose failures are counted
  size_t keys;        // all that have an entry
  size_t bytes;       // of entries and tables, as asked of malloc
  uint64_t adds;      // keys that became ready, or were to be run again
  uint64_t retries;   // adds with a delay
  uint64_t taken;
  double unfinished;  // seconds of work under way, summed
  double longest;     // seconds since the oldest hand-out that is not done
};
void mw_workqueue_stats(struct mw_workqueue *q, struct mw_workqueue_stats *out);

// What is known of one key.
struct mw_workqueue_key {
  bool ready;        // could be handed out, or will be again when it is done
  bool waiting;      // for its time
  bool held;         // handed out
  double ready_for;  // seconds
  double ready_in;   // seconds, of one that waits
  double held_for;   // seconds
  unsigned failures;
  uint64_t reasons;  // since the last hand-out
};
// False: nothing.
bool mw_workqueue_look(struct mw_workqueue *q, struct mw_slice key, struct mw_workqueue_key *out);
// Calls cb with each key that is handed out, and for how many seconds it has been.
void mw_workqueue_each_held(const struct mw_workqueue *q,
                            void (*cb)(void *ctx, struct mw_slice key, double seconds), void *ctx);
