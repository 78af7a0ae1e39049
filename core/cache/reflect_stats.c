// SPDX-License-Identifier: Apache-2.0
// Counters of a reflector. Written by the ingest thread only, read by any: relaxed atomics, each
// true by itself, not as a set. The resource version is text and has a lock.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/alloc.h"
#include "cache/reflector_internal.h"

struct mw_reflect_stats {
  atomic_uint_least64_t counters[MW_REFLECT_COUNTERS];
  atomic_uint_least64_t decisions[MW_DECISION_COUNT];
  pthread_mutex_t lock;
  char last_rv[MW_OBJECT_RV_MAX + 1];  // under lock
};

struct mw_reflect_stats *mw_reflect_stats_new(void) {
  struct mw_reflect_stats *s = mw_xcalloc(1, sizeof *s);
  pthread_mutex_init(&s->lock, NULL);
  return s;
}

void mw_reflect_stats_free(struct mw_reflect_stats *s) {
  pthread_mutex_destroy(&s->lock);
  mw_free(s);
}

void mw_reflect_count(struct mw_reflect_stats *s, enum mw_reflect_counter c) {
  atomic_fetch_add_explicit(&s->counters[c], 1, memory_order_relaxed);
}

void mw_reflect_count_decision(struct mw_reflect_stats *s, enum mw_decision d) {
  atomic_fetch_add_explicit(&s->decisions[d], 1, memory_order_relaxed);
}

void mw_reflect_put(struct mw_reflect_stats *s, enum mw_reflect_counter c, uint64_t value) {
  atomic_store_explicit(&s->counters[c], value, memory_order_relaxed);
}

void mw_reflect_put_rv(struct mw_reflect_stats *s, struct mw_slice rv) {
  pthread_mutex_lock(&s->lock);
  if (rv.n > 0) memcpy(s->last_rv, rv.p, rv.n);
  s->last_rv[rv.n] = '\0';
  pthread_mutex_unlock(&s->lock);
}

static uint64_t get(struct mw_reflect_stats *s, enum mw_reflect_counter c) {
  return atomic_load_explicit(&s->counters[c], memory_order_relaxed);
}

void mw_reflector_stats(struct mw_reflector *r, struct mw_reflector_stats *out) {
  struct mw_reflect_stats *s = r->stats;
  out->state = (enum mw_reflector_state)get(s, MW_REFLECT_STATE);
  for (int d = 0; d < MW_DECISION_COUNT; d++) {
    out->decisions[d] = atomic_load_explicit(&s->decisions[d], memory_order_relaxed);
  }
  out->lists = get(s, MW_REFLECT_LISTS);
  out->watches = get(s, MW_REFLECT_WATCHES);
  out->events = get(s, MW_REFLECT_EVENTS);
  out->dropped = get(s, MW_REFLECT_DROPPED);
  out->reused = get(s, MW_REFLECT_REUSED);
  out->received = get(s, MW_REFLECT_RECEIVED);
  out->last_event_at = get(s, MW_REFLECT_LAST_EVENT_AT);
  pthread_mutex_lock(&s->lock);
  snprintf(out->last_rv, sizeof out->last_rv, "%s", s->last_rv);
  pthread_mutex_unlock(&s->lock);
}
