// SPDX-License-Identifier: Apache-2.0
// The queue before one listener; private to cache. Script thread only.
//
// In order and unmerged until more than `bound` notifications wait. From then on, and until it has
// shrunk to half of that, it holds per key (coalesce.h):
//
//   add, update       -> add of the newest, still initial if the add was
//   update, update    -> update from the first old to the last new
//   add or update, delete -> the delete
//   delete, add       -> both
//   delete, add, delete -> the first delete
//
// The adds of the initial list do not count towards the bound: there is one per key by nature.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/coalesce.h"
#include "cache/processor.h"

struct mw_notify_entry {
  // For a deletion, `old` is the state that was stored before it and before the updates that were
  // merged into it, or NULL: a filter may have let that one pass, and not the last.
  struct mw_notification n;  // old and object: +1; object NULL: a hole
  bool counted;              // the listener's synced state waits for it
};

struct mw_notify_queue {
  struct mw_notify_entry *ring;
  size_t cap;     // a power of two, or 0
  uint64_t head;  // positions start at 1
  uint64_t tail;
  size_t count;    // without holes
  size_t initial;  // counted entries among them
  size_t bound;
  bool coalescing;
  struct mw_coalesce keys;
  uint64_t coalesced;
};

void mw_notify_queue_init(struct mw_notify_queue *q, size_t bound);
// Drops what is queued; the queue is empty and usable.
void mw_notify_queue_clear(struct mw_notify_queue *q);
// Takes its own references. An add with `initial` set is counted.
void mw_notify_queue_push(struct mw_notify_queue *q, const struct mw_notification *n);
// The oldest; its references pass to the caller. False when empty.
bool mw_notify_queue_pop(struct mw_notify_queue *q, struct mw_notify_entry *out);
// When the oldest was queued; 0 when empty.
uint64_t mw_notify_queue_oldest(const struct mw_notify_queue *q);
void mw_notify_entry_deinit(struct mw_notify_entry *e);
