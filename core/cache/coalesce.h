// SPDX-License-Identifier: Apache-2.0
// Where each key stands in a queue that has grown past its bound (D15). Shared by the delta fifo
// and the queues of listeners; private to cache.
//
// Of each key at most a deletion followed by one upsert is queued, each at the place of the oldest
// that it stands for. A deletion takes the place of the upsert before it. When a deletion is
// already queued, what came and went after it never happened, and the deletion that consumers
// expect (of the object they knew) is the older one.
//
// Positions count from 1 and are never used twice; those below the queue's head are gone.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/object.h"

enum mw_coalesce_action {
  MW_COALESCE_APPEND = 0,  // to the tail, which is `pos`
  MW_COALESCE_FILL,        // into the hole at pos
  MW_COALESCE_MERGE,       // onto the upsert at pos
  MW_COALESCE_DROP,        // not at all; the upsert at pos, unless 0, becomes a hole
};

struct mw_coalesce_plan {
  enum mw_coalesce_action action;
  uint64_t pos;
};

struct mw_coalesce_spot;

struct mw_coalesce {
  struct mw_coalesce_spot *slots;
  size_t count;
  size_t cap;
};

void mw_coalesce_init(struct mw_coalesce *c);
// Forgets everything and gives the memory back.
void mw_coalesce_reset(struct mw_coalesce *c);
// What to do with a new entry for o's key. The caller must do it: the answer is remembered.
struct mw_coalesce_plan mw_coalesce_next(struct mw_coalesce *c, struct mw_object *o, bool deletion,
                                         uint64_t head, uint64_t tail);
// An entry of o's key was taken out, and the queue now begins at head.
void mw_coalesce_popped(struct mw_coalesce *c, struct mw_object *o, uint64_t head);
