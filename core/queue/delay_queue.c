// SPDX-License-Identifier: Apache-2.0
#include "queue/delay_queue.h"

#include <assert.h>

#include "base/alloc.h"

enum { CAP_MIN = 16 };

void mw_delay_queue_init(struct mw_delay_queue *q) { *q = (struct mw_delay_queue){0}; }

void mw_delay_queue_deinit(struct mw_delay_queue *q) {
  mw_free(q->nodes);
  *q = (struct mw_delay_queue){0};
}

static bool before(const struct mw_delay_node *a, const struct mw_delay_node *b) {
  return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void put(struct mw_delay_queue *q, uint32_t i, struct mw_delay_node *n) {
  q->nodes[i] = n;
  n->pos = i + 1;
}

static void sift_up(struct mw_delay_queue *q, uint32_t i, struct mw_delay_node *n) {
  while (i > 0) {
    uint32_t parent = (i - 1) / 2;
    if (!before(n, q->nodes[parent])) break;
    put(q, i, q->nodes[parent]);
    i = parent;
  }
  put(q, i, n);
}

static void sift_down(struct mw_delay_queue *q, uint32_t i, struct mw_delay_node *n) {
  for (;;) {
    uint32_t child = 2 * i + 1;
    if (child >= q->count) break;
    if (child + 1 < q->count && before(q->nodes[child + 1], q->nodes[child])) child++;
    if (!before(q->nodes[child], n)) break;
    put(q, i, q->nodes[child]);
    i = child;
  }
  put(q, i, n);
}

static void resize(struct mw_delay_queue *q, uint32_t cap) {
  q->nodes = mw_xrealloc(q->nodes, cap * sizeof *q->nodes);
  q->cap = cap;
}

void mw_delay_queue_add(struct mw_delay_queue *q, struct mw_delay_node *n, uint64_t at) {
  assert(n->pos == 0);
  if (q->count == q->cap) resize(q, q->cap > 0 ? q->cap * 2 : CAP_MIN);
  n->at = at;
  n->seq = q->seq++;
  sift_up(q, q->count++, n);
}

void mw_delay_queue_advance(struct mw_delay_queue *q, struct mw_delay_node *n, uint64_t at) {
  assert(n->pos != 0);
  if (at >= n->at) return;
  n->at = at;
  sift_up(q, n->pos - 1, n);
}

void mw_delay_queue_del(struct mw_delay_queue *q, struct mw_delay_node *n) {
  assert(n->pos != 0);
  uint32_t i = n->pos - 1;
  n->pos = 0;
  struct mw_delay_node *last = q->nodes[--q->count];
  if (last != n) {
    if (i > 0 && before(last, q->nodes[(i - 1) / 2])) {
      sift_up(q, i, last);
    } else {
      sift_down(q, i, last);
    }
  }
  if (q->cap > CAP_MIN && q->count < q->cap / 4) resize(q, q->cap / 2);
}

struct mw_delay_node *mw_delay_queue_first(const struct mw_delay_queue *q) {
  return q->count > 0 ? q->nodes[0] : NULL;
}
