// SPDX-License-Identifier: Apache-2.0
// A ring under one lock. Deltas that were merged away leave holes (plain, without an object), which
// pop skips. Coalescing starts by putting the last segment through the same rules as what comes
// after, which also closes its holes: the ring stays in proportion to the distinct keys.
#include "cache/delta_fifo.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cache/coalesce.h"

enum {
  FIRST_CAP = 64,
  KEEP_CAP = 1024,  // a larger ring is given back when the queue runs empty
  SEEN_CAP = 1024,  // a power of two, four times the batch
  MAX_SNAPSHOTS = 2
};

struct mw_delta_fifo {
  pthread_mutex_t lock;
  struct mw_delta *ring;
  size_t cap;        // a power of two, or 0
  uint64_t head;     // position of the oldest; positions start at 1
  uint64_t tail;     // position of the next
  uint64_t segment;  // first position behind the last barrier
  size_t depth;      // without holes
  size_t bound;
  bool coalescing;
  struct mw_coalesce keys;             // of the last segment, while coalescing
  size_t snapshots;                    // queued REPLACED_ALL
  uint64_t last_snapshot;              // position of the newest
  uint64_t resync;                     // position of the queued SYNC_ALL; 0: none
  char reached[MW_OBJECT_RV_MAX + 1];  // the newest RV, while no delta behind the merge has one
  bool populated;                      // S-RF-11
  bool closed;
  size_t initial_left;  // S-RF-12
  uint64_t coalesced;
  mw_fifo_wake_cb wake;
  void *ctx;
};

static struct mw_delta *at(struct mw_delta_fifo *f, uint64_t pos) {
  return &f->ring[pos & (f->cap - 1)];
}

static bool plain(const struct mw_delta *d) { return d->type <= MW_DELTA_DELETED; }
static bool hole(const struct mw_delta *d) { return plain(d) && d->object == NULL; }

static void dispose(struct mw_delta *d) {
  mw_object_unref(d->object);
  mw_object_list_deinit(&d->all);
  mw_free(d->rv);
  *d = (struct mw_delta){0};
}

struct mw_delta_fifo *mw_delta_fifo_new(size_t bound, mw_fifo_wake_cb wake, void *ctx) {
  struct mw_delta_fifo *f = mw_xcalloc(1, sizeof *f);
  pthread_mutex_init(&f->lock, NULL);
  mw_coalesce_init(&f->keys);
  f->head = f->tail = f->segment = 1;
  f->bound = bound > 0 ? bound : MW_FIFO_BOUND;
  f->wake = wake;
  f->ctx = ctx;
  return f;
}

void mw_delta_fifo_free(struct mw_delta_fifo *f) {
  for (uint64_t pos = f->head; pos < f->tail; pos++) dispose(at(f, pos));
  mw_coalesce_reset(&f->keys);
  mw_free(f->ring);
  pthread_mutex_destroy(&f->lock);
  mw_free(f);
}

static void grow(struct mw_delta_fifo *f) {
  size_t cap = f->cap > 0 ? f->cap * 2 : FIRST_CAP;
  struct mw_delta *ring = mw_xcalloc(cap, sizeof *ring);
  for (uint64_t pos = f->head; pos < f->tail; pos++) ring[pos & (cap - 1)] = *at(f, pos);
  mw_free(f->ring);
  f->ring = ring;
  f->cap = cap;
}

static void append(struct mw_delta_fifo *f, const struct mw_delta *d) {
  if (f->tail - f->head == f->cap) grow(f);
  *at(f, f->tail++) = *d;
  f->depth++;
  // All but a resync move the store's RV themselves.
  if (d->type != MW_DELTA_SYNC_ALL) f->reached[0] = '\0';
}

static void set_reached(struct mw_delta_fifo *f, struct mw_slice rv) {
  size_t n = rv.n < sizeof f->reached ? rv.n : 0;
  if (n > 0) memcpy(f->reached, rv.p, n);
  f->reached[n] = '\0';
}

// Empties a place; its RV stays, for what may come to stand there.
static void vacate(struct mw_delta *d) {
  if (d->rv == NULL) {
    struct mw_slice rv = mw_object_rv(d->object);
    d->rv = mw_xstrndup(rv.p, rv.n);
  }
  mw_object_unref(d->object);
  d->object = NULL;
}

// Puts a plain delta where the rules want it.
static void put(struct mw_delta_fifo *f, struct mw_delta *d) {
  bool deletion = d->type == MW_DELTA_DELETED;
  struct mw_coalesce_plan plan = mw_coalesce_next(&f->keys, d->object, deletion, f->head, f->tail);
  if (plan.action == MW_COALESCE_APPEND) {
    append(f, d);
    return;
  }
  set_reached(f, mw_object_rv(d->object));
  struct mw_delta *place = plan.pos > 0 ? at(f, plan.pos) : NULL;
  if (place != NULL && place->object != NULL) {
    vacate(place);
    f->depth--;
    f->coalesced++;
  }
  if (plan.action == MW_COALESCE_DROP) {
    dispose(d);
    f->coalesced++;
    return;
  }
  place->object = d->object;
  place->type = d->type;
  f->depth++;
  mw_free(d->rv);
}

static void start_coalescing(struct mw_delta_fifo *f) {
  f->coalescing = true;
  uint64_t end = f->tail;
  f->tail = f->segment > f->head ? f->segment : f->head;
  for (uint64_t pos = f->tail; pos < end; pos++) {
    struct mw_delta d = *at(f, pos);
    *at(f, pos) = (struct mw_delta){0};
    if (hole(&d)) {
      dispose(&d);
      continue;
    }
    f->depth--;
    put(f, &d);
  }
}

static void stop_coalescing(struct mw_delta_fifo *f) {
  f->coalescing = false;
  mw_coalesce_reset(&f->keys);
}

// Nothing after this is merged with anything before it.
static void barrier(struct mw_delta_fifo *f) {
  f->segment = f->tail;
  mw_coalesce_reset(&f->keys);
}

// Returns whether the queue was empty.
static bool lock(struct mw_delta_fifo *f) {
  pthread_mutex_lock(&f->lock);
  return f->depth == 0;
}

static void unlock(struct mw_delta_fifo *f, bool was_empty) {
  bool wake = was_empty && f->depth > 0;
  pthread_mutex_unlock(&f->lock);
  if (wake && f->wake != NULL) f->wake(f->ctx);
}

static void enqueue(struct mw_delta_fifo *f, enum mw_delta_type type, struct mw_object *o) {
  struct mw_delta d = {.type = type, .object = mw_object_ref(o), .queued_at = mw_clock_now()};
  bool was_empty = lock(f);
  f->populated = true;
  if (f->coalescing) {
    put(f, &d);
  } else {
    append(f, &d);
    if (f->depth > f->bound) start_coalescing(f);
  }
  unlock(f, was_empty);
}

void mw_delta_fifo_add(struct mw_delta_fifo *f, struct mw_object *o) {
  enqueue(f, MW_DELTA_ADDED, o);
}

void mw_delta_fifo_update(struct mw_delta_fifo *f, struct mw_object *o) {
  enqueue(f, MW_DELTA_UPDATED, o);
}

void mw_delta_fifo_delete(struct mw_delta_fifo *f, struct mw_object *o) {
  enqueue(f, MW_DELTA_DELETED, o);
}

// The newest snapshot and what is behind it are about to be superseded.
static void drop_last_snapshot(struct mw_delta_fifo *f) {
  for (uint64_t pos = f->last_snapshot; pos < f->tail; pos++) {
    struct mw_delta *d = at(f, pos);
    if (d->type == MW_DELTA_SYNC_ALL) f->resync = 0;
    if (!hole(d)) {
      f->depth--;
      f->coalesced++;
    }
    dispose(d);
  }
  f->tail = f->last_snapshot;
  f->snapshots--;
}

void mw_delta_fifo_replace(struct mw_delta_fifo *f, struct mw_object_list *all,
                           struct mw_slice rv) {
  struct mw_delta d = {.type = MW_DELTA_REPLACED_ALL,
                       .all = *all,
                       .rv = mw_xstrndup(rv.p, rv.n),
                       .queued_at = mw_clock_now()};
  *all = (struct mw_object_list){0};
  bool was_empty = lock(f);
  if (!f->populated) {
    f->populated = true;
    f->initial_left = f->depth + 1;
  }
  if (f->snapshots == MAX_SNAPSHOTS) drop_last_snapshot(f);
  f->last_snapshot = f->tail;
  f->snapshots++;
  append(f, &d);
  barrier(f);
  unlock(f, was_empty);
}

void mw_delta_fifo_resync(struct mw_delta_fifo *f) {
  struct mw_delta d = {.type = MW_DELTA_SYNC_ALL, .queued_at = mw_clock_now()};
  bool was_empty = lock(f);
  if (f->resync > 0) {
    at(f, f->resync)->queued_at = d.queued_at;
    f->coalesced++;
  } else {
    f->resync = f->tail;
    append(f, &d);
    barrier(f);
  }
  unlock(f, was_empty);
}

void mw_delta_fifo_bookmark(struct mw_delta_fifo *f, struct mw_slice rv) {
  bool was_empty = lock(f);
  if (f->coalescing && rv.n < sizeof f->reached) {
    set_reached(f, rv);
    f->coalesced++;
  } else {
    struct mw_delta d = {
        .type = MW_DELTA_BOOKMARK, .rv = mw_xstrndup(rv.p, rv.n), .queued_at = mw_clock_now()};
    append(f, &d);
    barrier(f);
  }
  unlock(f, was_empty);
}

void mw_delta_fifo_close(struct mw_delta_fifo *f) {
  pthread_mutex_lock(&f->lock);
  bool first = !f->closed;
  f->closed = true;
  pthread_mutex_unlock(&f->lock);
  if (first && f->wake != NULL) f->wake(f->ctx);
}

static void take(struct mw_delta_fifo *f, struct mw_delta_batch *out) {
  struct mw_delta *d = &out->deltas[out->count++];
  *d = *at(f, f->head);
  *at(f, f->head++) = (struct mw_delta){0};
  f->depth--;
  if (d->type == MW_DELTA_REPLACED_ALL) f->snapshots--;
  if (d->type == MW_DELTA_SYNC_ALL) f->resync = 0;
  if (f->coalescing && plain(d)) mw_coalesce_popped(&f->keys, d->object, f->head);
}

// Whether the key is in the batch already; if not, notes it as the batch's next.
static bool seen(uint16_t *table, const struct mw_delta_batch *out, const struct mw_object *o) {
  uint32_t i = mw_object_hash(o) & (SEEN_CAP - 1);
  for (; table[i] != 0; i = (i + 1) & (SEEN_CAP - 1)) {
    const struct mw_object *other = out->deltas[table[i] - 1].object;
    if (mw_slice_eq(mw_object_key(other), mw_object_key(o))) return true;
  }
  table[i] = (uint16_t)(out->count + 1);
  return false;
}

static void take_batch(struct mw_delta_fifo *f, struct mw_delta_batch *out) {
  uint16_t table[SEEN_CAP] = {0};
  while (f->depth > 0 && out->count < MW_FIFO_BATCH) {
    struct mw_delta *d = at(f, f->head);
    if (hole(d)) {
      dispose(d);
      f->head++;
    } else if (plain(d)) {
      if (seen(table, out, d->object)) return;
      take(f, out);
    } else {
      if (out->count == 0) take(f, out);
      return;
    }
  }
}

// The queue has run empty.
static void settle(struct mw_delta_fifo *f, struct mw_delta_batch *out) {
  for (; f->head < f->tail; f->head++) dispose(at(f, f->head));
  memcpy(out->rv, f->reached, sizeof out->rv);
  f->reached[0] = '\0';
  if (f->cap > KEEP_CAP) {
    mw_free(f->ring);
    f->ring = NULL;
    f->cap = 0;
  }
}

size_t mw_delta_fifo_pop(struct mw_delta_fifo *f, struct mw_delta_batch *out) {
  out->count = 0;
  out->rv[0] = '\0';
  pthread_mutex_lock(&f->lock);
  out->initial = !f->populated || f->initial_left > 0;
  take_batch(f, out);
  out->counted = f->initial_left > 0 ? out->count : 0;
  if (f->coalescing && f->depth <= f->bound / 2) stop_coalescing(f);
  if (f->depth == 0 && out->count > 0) settle(f, out);
  pthread_mutex_unlock(&f->lock);
  return out->count;
}

void mw_delta_fifo_done(struct mw_delta_fifo *f, struct mw_delta_batch *batch) {
  for (size_t i = 0; i < batch->count; i++) dispose(&batch->deltas[i]);
  pthread_mutex_lock(&f->lock);
  f->initial_left -= batch->counted;
  pthread_mutex_unlock(&f->lock);
  batch->count = batch->counted = 0;
}

bool mw_delta_fifo_has_synced(struct mw_delta_fifo *f) {
  pthread_mutex_lock(&f->lock);
  bool synced = f->populated && f->initial_left == 0;
  pthread_mutex_unlock(&f->lock);
  return synced;
}

size_t mw_delta_fifo_depth(struct mw_delta_fifo *f) {
  pthread_mutex_lock(&f->lock);
  size_t depth = f->depth;
  pthread_mutex_unlock(&f->lock);
  return depth;
}

uint64_t mw_delta_fifo_coalesced(struct mw_delta_fifo *f) {
  pthread_mutex_lock(&f->lock);
  uint64_t n = f->coalesced;
  pthread_mutex_unlock(&f->lock);
  return n;
}
