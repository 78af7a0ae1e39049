// SPDX-License-Identifier: Apache-2.0
#include "queue/queues.h"

#include "base/alloc.h"
#include "base/map.h"

struct mw_queues {
  struct mw_loop *loop;
  struct mw_map by_name;  // +1 each
};

struct mw_queues *mw_queues_new(struct mw_loop *loop) {
  struct mw_queues *qs = mw_xcalloc(1, sizeof *qs);
  qs->loop = loop;
  mw_map_init(&qs->by_name);
  return qs;
}

void mw_queues_free(struct mw_queues *qs) {
  size_t cursor = 0;
  void *q;
  while (mw_map_next(&qs->by_name, &cursor, NULL, &q)) mw_workqueue_unref(q);
  mw_map_deinit(&qs->by_name);
  mw_free(qs);
}

struct mw_workqueue *mw_queues_get(struct mw_queues *qs, const char *name, const void *owner,
                                   const struct mw_workqueue_config *config) {
  struct mw_slice key = mw_slice_str(name);
  struct mw_workqueue *q = mw_map_get(&qs->by_name, key);
  if (q != NULL && mw_workqueue_is_used(q) && mw_workqueue_owner(q) != owner) return NULL;
  if (q == NULL || mw_workqueue_is_shut_down(q)) {
    struct mw_workqueue *fresh = mw_workqueue_new(qs->loop, name, config);
    mw_map_set(&qs->by_name, key, fresh);
    if (q != NULL) mw_workqueue_unref(q);
    q = fresh;
  }
  mw_workqueue_set_owner(q, owner);
  return mw_workqueue_ref(q);
}

struct mw_workqueue *mw_queues_find(struct mw_queues *qs, const char *was, const void *owner) {
  struct mw_workqueue *q = mw_map_get(&qs->by_name, mw_slice_str(was));
  if (q == NULL || mw_workqueue_owner(q) != owner || mw_workqueue_is_shut_down(q)) return NULL;
  return mw_workqueue_ref(q);
}

void mw_queues_rename(struct mw_queues *qs, struct mw_workqueue *q, const char *name) {
  struct mw_slice old = mw_slice_str(mw_workqueue_name(q));
  if (mw_map_get(&qs->by_name, mw_slice_str(name)) != NULL) return;
  if (mw_map_get(&qs->by_name, old) != q) return;
  mw_map_del(&qs->by_name, old);
  mw_map_set(&qs->by_name, mw_slice_str(name), q);
  mw_workqueue_rename(q, name);
}

void mw_queues_each(struct mw_queues *qs, void (*cb)(void *ctx, struct mw_workqueue *q),
                    void *ctx) {
  size_t cursor = 0;
  void *q;
  while (mw_map_next(&qs->by_name, &cursor, NULL, &q)) cb(ctx, q);
}

void mw_queues_forget(struct mw_queues *qs) {
  size_t cursor = 0;
  void *q;
  while (mw_map_next(&qs->by_name, &cursor, NULL, &q)) {
    if (mw_workqueue_is_used(q)) continue;
    mw_map_del(&qs->by_name, mw_slice_str(mw_workqueue_name(q)));
    mw_workqueue_unref(q);
    cursor = 0;  // the entries have moved
  }
}

void mw_queues_put(struct mw_queues *qs, struct mw_workqueue *q) {
  struct mw_slice key = mw_slice_str(mw_workqueue_name(q));
  if (mw_workqueue_is_forgotten(q) && mw_map_get(&qs->by_name, key) == q) {
    mw_map_del(&qs->by_name, key);
    mw_workqueue_unref(q);
  }
  mw_workqueue_unref(q);
}
