// SPDX-License-Identifier: Apache-2.0
#include "client/fence.h"

#include <math.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/clock.h"

struct mw_fence {
  atomic_uint refs;
  atomic_uint_least64_t until;
};

struct mw_fence *mw_fence_new(void) {
  struct mw_fence *f = mw_xcalloc(1, sizeof *f);
  atomic_init(&f->refs, 1);
  atomic_init(&f->until, UINT64_MAX);
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

bool mw_fence_is_open(const struct mw_fence *f) { return mw_clock_boot() < atomic_load(&f->until); }

double mw_fence_left(const struct mw_fence *f) {
  uint64_t until = atomic_load(&f->until), now = mw_clock_boot();
  if (until == UINT64_MAX) return INFINITY;
  return now < until ? (double)(until - now) / 1e9 : 0;
}
