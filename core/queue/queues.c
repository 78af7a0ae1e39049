// SPDX-License-Identifier: Apache-2.0
#include "queue/queues.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"

struct entry {
  struct mw_workqueue *q;  // +1
  uint64_t idle_since;     // 0: somebody uses it
};

struct mw_queues {
  struct mw_loop *loop;
  double grace;
  struct mw_map by_name;  // entries
  struct mw_timer *look;  // runs while a queue is idle
};

struct mw_queues *mw_queues_new(struct mw_loop *loop, double grace) {
  struct mw_queues *qs = mw_xcalloc(1, sizeof *qs);
  qs->loop = loop;
  qs->grace = grace;
  mw_map_init(&qs->by_name);
  return qs;
}

static void entry_free(struct entry *e) {
  mw_workqueue_unref(e->q);
  mw_free(e);
}

void mw_queues_free(struct mw_queues *qs) {
  size_t cursor = 0;
  void *e;
  mw_timer_cancel(&qs->look);
  while (mw_map_next(&qs->by_name, &cursor, NULL, &e)) entry_free(e);
  mw_map_deinit(&qs->by_name);
  mw_free(qs);
}

static struct entry *find(struct mw_queues *qs, const char *name) {
  return mw_map_get(&qs->by_name, mw_slice_str(name));
}

static void drop(struct mw_queues *qs, struct entry *e) {
  mw_map_del(&qs->by_name, mw_slice_str(mw_workqueue_name(e->q)));
  entry_free(e);
}

struct mw_workqueue *mw_queues_get(struct mw_queues *qs, const char *name, const void *owner,
                                   const struct mw_workqueue_config *config) {
  struct entry *e = find(qs, name);
  if (e != NULL && mw_workqueue_is_used(e->q) && mw_workqueue_owner(e->q) != owner) return NULL;
  if (e == NULL) {
    e = mw_xcalloc(1, sizeof *e);
    mw_map_set(&qs->by_name, mw_slice_str(name), e);
  }
  if (e->q == NULL || mw_workqueue_is_shut_down(e->q)) {
    if (e->q != NULL) mw_workqueue_unref(e->q);
    e->q = mw_workqueue_new(qs->loop, name, config);
  }
  e->idle_since = 0;
  mw_workqueue_set_owner(e->q, owner);
  return mw_workqueue_ref(e->q);
}

struct mw_workqueue *mw_queues_find(struct mw_queues *qs, const char *was, const void *owner) {
  struct entry *e = find(qs, was);
  if (e == NULL || mw_workqueue_owner(e->q) != owner || mw_workqueue_is_shut_down(e->q))
    return NULL;
  e->idle_since = 0;
  return mw_workqueue_ref(e->q);
}

void mw_queues_rename(struct mw_queues *qs, struct mw_workqueue *q, const char *name) {
  struct entry *e = find(qs, mw_workqueue_name(q));
  if (e == NULL || e->q != q || find(qs, name) != NULL) return;
  mw_map_del(&qs->by_name, mw_slice_str(mw_workqueue_name(q)));
  mw_map_set(&qs->by_name, mw_slice_str(name), e);
  mw_workqueue_rename(q, name);
}

void mw_queues_each(struct mw_queues *qs, void (*cb)(void *ctx, struct mw_workqueue *q),
                    void *ctx) {
  size_t cursor = 0;
  void *e;
  while (mw_map_next(&qs->by_name, &cursor, NULL, &e)) cb(ctx, ((struct entry *)e)->q);
}

void mw_queues_forget(struct mw_queues *qs) {
  size_t cursor = 0;
  void *e;
  while (mw_map_next(&qs->by_name, &cursor, NULL, &e)) {
    if (mw_workqueue_is_used(((struct entry *)e)->q)) continue;
    drop(qs, e);
    cursor = 0;  // the entries have moved
  }
}

// Seconds until the entry's time is over; 0: it is, negative: somebody uses it.
static double left(const struct mw_queues *qs, const struct entry *e) {
  if (e->idle_since == 0) return -1;
  double over = (double)(mw_clock_now() - e->idle_since) * 1e-9;
  return over < qs->grace ? qs->grace - over : 0;
}

static void look(void *arg) {
  struct mw_queues *qs = arg;
  qs->look = NULL;
  double soonest = -1;
  size_t cursor = 0;
  void *p;
  while (mw_map_next(&qs->by_name, &cursor, NULL, &p)) {
    struct entry *e = p;
    double seconds = left(qs, e);
    if (seconds > 0 && (soonest < 0 || seconds < soonest)) soonest = seconds;
    if (seconds != 0) continue;
    struct mw_workqueue_stats stats;
    mw_workqueue_stats(e->q, &stats);
    mw_log(MW_LOG_INFO, "a queue is gone: nobody has used it for a while",
           MW_STR("queue", mw_workqueue_name(e->q)), MW_INT("keys", stats.keys));
    drop(qs, e);
    cursor = 0;
  }
  if (soonest > 0) qs->look = mw_timer_start(qs->loop, soonest, look, qs);
}

void mw_queues_put(struct mw_queues *qs, struct mw_workqueue *q) {
  struct entry *e = find(qs, mw_workqueue_name(q));
  if (e != NULL && e->q == q && mw_workqueue_is_forgotten(q)) {
    drop(qs, e);
  } else if (e != NULL && e->q == q && !mw_workqueue_is_used(q)) {
    e->idle_since = mw_clock_now();
    if (qs->look == NULL) qs->look = mw_timer_start(qs->loop, qs->grace, look, qs);
  }
  mw_workqueue_unref(q);
}
