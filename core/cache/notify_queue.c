// SPDX-License-Identifier: Apache-2.0
#include "cache/notify_queue.h"

#include "base/alloc.h"

enum {
  FIRST_CAP = 16,
  KEEP_CAP = 1024  // a larger ring is given back when the queue runs empty
};

static struct mw_notify_entry *at(const struct mw_notify_queue *q, uint64_t pos) {
  return &q->ring[pos & (q->cap - 1)];
}

static bool hole(const struct mw_notify_entry *e) { return e->n.object == NULL; }

void mw_notify_entry_deinit(struct mw_notify_entry *e) {
  mw_object_unref(e->n.old);
  mw_object_unref(e->n.object);
  *e = (struct mw_notify_entry){0};
}

void mw_notify_queue_init(struct mw_notify_queue *q, size_t bound) {
  *q = (struct mw_notify_queue){.head = 1, .tail = 1};
  q->bound = bound > 0 ? bound : MW_LISTENER_BOUND;
  mw_coalesce_init(&q->keys);
}

void mw_notify_queue_clear(struct mw_notify_queue *q) {
  for (uint64_t pos = q->head; pos < q->tail; pos++) mw_notify_entry_deinit(at(q, pos));
  mw_coalesce_reset(&q->keys);
  mw_free(q->ring);
  uint64_t coalesced = q->coalesced;
  mw_notify_queue_init(q, q->bound);
  q->coalesced = coalesced;
}

static void grow(struct mw_notify_queue *q) {
  size_t cap = q->cap > 0 ? q->cap * 2 : FIRST_CAP;
  struct mw_notify_entry *ring = mw_xcalloc(cap, sizeof *ring);
  for (uint64_t pos = q->head; pos < q->tail; pos++) ring[pos & (cap - 1)] = *at(q, pos);
  mw_free(q->ring);
  q->ring = ring;
  q->cap = cap;
}

static void append(struct mw_notify_queue *q, const struct mw_notify_entry *e) {
  if (q->tail - q->head == q->cap) grow(q);
  *at(q, q->tail++) = *e;
  q->count++;
  if (e->counted) q->initial++;
}

// Turns the entry at `place` into what it and its successor e mean together; e is used up.
static void merge(struct mw_notify_queue *q, struct mw_notify_entry *place,
                  struct mw_notify_entry *e) {
  struct mw_object *last = place->n.object;
  place->n.object = e->n.object;
  e->n.object = last;
  if (e->n.type == MW_NOTIFY_DELETE) {
    place->n.type = MW_NOTIFY_DELETE;
    place->n.initial = false;
    place->n.stale = e->n.stale;
  }
  // Counted stays: the initial add is done with when what became of it has been delivered.
  if (e->counted && !place->counted) q->initial++;
  place->counted = place->counted || e->counted;
  mw_notify_entry_deinit(e);
}

static void remove_at(struct mw_notify_queue *q, uint64_t pos) {
  struct mw_notify_entry *e = at(q, pos);
  if (e->counted) q->initial--;
  q->count--;
  q->coalesced++;
  mw_notify_entry_deinit(e);
}

static void put(struct mw_notify_queue *q, struct mw_notify_entry *e) {
  bool deletion = e->n.type == MW_NOTIFY_DELETE;
  struct mw_coalesce_plan plan =
      mw_coalesce_next(&q->keys, e->n.object, deletion, q->head, q->tail);
  switch (plan.action) {
    case MW_COALESCE_APPEND:
      append(q, e);
      break;
    case MW_COALESCE_FILL:
      *at(q, plan.pos) = *e;
      q->count++;
      if (e->counted) q->initial++;
      break;
    case MW_COALESCE_MERGE:
      merge(q, at(q, plan.pos), e);
      q->coalesced++;
      break;
    case MW_COALESCE_DROP:
      if (plan.pos > 0) remove_at(q, plan.pos);
      mw_notify_entry_deinit(e);
      q->coalesced++;
      break;
  }
}

static void start_coalescing(struct mw_notify_queue *q) {
  q->coalescing = true;
  uint64_t end = q->tail;
  q->tail = q->head;
  q->count = q->initial = 0;
  for (uint64_t pos = q->head; pos < end; pos++) {
    struct mw_notify_entry e = *at(q, pos);
    *at(q, pos) = (struct mw_notify_entry){0};
    if (!hole(&e)) put(q, &e);
  }
}

void mw_notify_queue_push(struct mw_notify_queue *q, const struct mw_notification *n) {
  struct mw_notify_entry e = {.n = *n, .counted = n->type == MW_NOTIFY_ADD && n->initial};
  e.n.object = mw_object_ref(n->object);
  e.n.old = n->type != MW_NOTIFY_ADD ? mw_object_ref(n->old) : NULL;
  if (q->coalescing) {
    put(q, &e);
    return;
  }
  append(q, &e);
  if (q->count - q->initial > q->bound) start_coalescing(q);
}

bool mw_notify_queue_pop(struct mw_notify_queue *q, struct mw_notify_entry *out) {
  if (q->count == 0) return false;
  while (hole(at(q, q->head))) q->head++;
  *out = *at(q, q->head);
  *at(q, q->head++) = (struct mw_notify_entry){0};
  q->count--;
  if (out->counted) q->initial--;
  if (q->coalescing) {
    mw_coalesce_popped(&q->keys, out->n.object, q->head);
    if (q->count - q->initial <= q->bound / 2) {
      q->coalescing = false;
      mw_coalesce_reset(&q->keys);
    }
  }
  if (q->count == 0 && q->cap > KEEP_CAP) mw_notify_queue_clear(q);
  return true;
}

uint64_t mw_notify_queue_oldest(const struct mw_notify_queue *q) {
  if (q->count == 0) return 0;
  uint64_t pos = q->head;
  while (hole(at(q, pos))) pos++;
  return at(q, pos)->n.queued_at;
}
