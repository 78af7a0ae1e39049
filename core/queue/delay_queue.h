// SPDX-License-Identifier: Apache-2.0
// Things that wait for their time: a heap by ready time; of equal ones, the first that came is
// first. Adding, moving and removing cost O(log n); memory is given back as it empties.
//
// A node is a part of what waits and belongs to its owner.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mw_delay_node {
  uint64_t at;   // when it is ready, monotonic nanoseconds; the owner's own while it does not wait
  uint64_t seq;  // order of adding
  uint32_t pos;  // from 1; 0: it does not wait
};

struct mw_delay_queue {
  struct mw_delay_node **nodes;  // nodes[0] is the next
  uint32_t count;
  uint32_t cap;
  uint64_t seq;
};

void mw_delay_queue_init(struct mw_delay_queue *q);
// The nodes are the caller's.
void mw_delay_queue_deinit(struct mw_delay_queue *q);
// n must not wait yet.
void mw_delay_queue_add(struct mw_delay_queue *q, struct mw_delay_node *n, uint64_t at);
// Moves n, which waits, to an earlier time; a later one changes nothing (S-WQ-21).
void mw_delay_queue_advance(struct mw_delay_queue *q, struct mw_delay_node *n, uint64_t at);
// n must wait.
void mw_delay_queue_del(struct mw_delay_queue *q, struct mw_delay_node *n);
// The next one, or NULL.
struct mw_delay_node *mw_delay_queue_first(const struct mw_delay_queue *q);
