// SPDX-License-Identifier: Apache-2.0
#include "client/fence.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/clock.h"

struct mw_fence {
  atomic_uint refs;
  atomic_uint_least64_t until;
  struct mw_fence_watch watches;  // a ring; ingest thread
};

struct mw_fence *mw_fence_new(void) {
  struct mw_fence *f = mw_xcalloc(1, sizeof *f);
  atomic_init(&f->refs, 1);
  atomic_init(&f->until, MW_FENCE_OPEN);
  f->watches.prev = f->watches.next = &f->watches;
  return f;
}

struct mw_fence *mw_fence_ref(struct mw_fence *f) {
  atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
  return f;
}

void mw_fence_unref(struct mw_fence *f) {
  if (atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) == 1) mw_free(f);
}

void mw_fence_set(struct mw_fence *f, uint64_t until) { atomic_store(&f->until, until); }

void mw_fence_watch(struct mw_fence *f, struct mw_fence_watch *w) {
  assert(w->next == NULL);
  w->prev = f->watches.prev;
  w->next = &f->watches;
  w->prev->next = w->next->prev = w;
}

void mw_fence_unwatch(struct mw_fence_watch *w) {
  if (w->next == NULL) return;
  w->prev->next = w->next;
  w->next->prev = w->prev;
  w->prev = w->next = NULL;
}

void mw_fence_close(struct mw_fence *f) {
  mw_fence_set(f, 0);
  while (f->watches.next != &f->watches) {
    struct mw_fence_watch *w = f->watches.next;
    mw_fence_unwatch(w);
    w->closed(w);
  }
}

bool mw_fence_is_open(const struct mw_fence *f) { return mw_clock_boot() < atomic_load(&f->until); }

double mw_fence_left(const struct mw_fence *f) {
  uint64_t until = atomic_load(&f->until), now = mw_clock_boot();
  if (until == MW_FENCE_OPEN) return INFINITY;
  return now < until ? (double)(until - now) / 1e9 : 0;
}
