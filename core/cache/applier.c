// SPDX-License-Identifier: Apache-2.0
#include "cache/applier.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

struct mw_applier {
  struct mw_indexer *indexer;
  struct mw_processor *processor;
  const char *name;
  struct mw_hooks transforms;
  struct mw_object_list shaped;  // the transformed part of the snapshot under way
  size_t shaped_from;            // how many of its items that took
  bool running;
  uint64_t errors;
  uint64_t failing;   // serial of the transform that has failed
  uint64_t failures;  // its
  uint64_t deltas;
  struct mw_notification due[MW_FIFO_BATCH];  // old and object: +1
  size_t due_count;
};

enum verdict {
  SHAPED = 0,  // there is an object
  DROPPED,     // the transform does not want it
  FAILED
};

struct mw_applier *mw_applier_new(struct mw_indexer *indexer, struct mw_processor *processor,
                                  const char *name) {
  struct mw_applier *a = mw_xcalloc(1, sizeof *a);
  a->indexer = indexer;
  a->processor = processor;
  a->name = name;
  return a;
}

void mw_applier_free(struct mw_applier *a) {
  mw_hooks_deinit(&a->transforms);
  mw_object_list_deinit(&a->shaped);
  mw_free(a);
}

struct mw_hooks *mw_applier_transforms(struct mw_applier *a) {
  return &a->transforms;
}

bool mw_applier_is_running(const struct mw_applier *a) { return a->running; }
uint64_t mw_applier_errors(const struct mw_applier *a) { return a->errors; }
uint64_t mw_applier_deltas(const struct mw_applier *a) { return a->deltas; }

// Tells the 1st, 2nd, 4th, 8th... failure of a transform, which may fail for every object there is.
static void report_failure(struct mw_applier *a, const struct mw_hook *transform,
                           const struct mw_object *in, const struct mw_err *err) {
  a->errors++;
  if (a->failing != transform->serial) a->failures = 0;
  a->failing = transform->serial;
  a->failures++;
  if ((a->failures & (a->failures - 1)) != 0) return;
  mw_log(MW_LOG_ERROR, "transform failed, the store keeps what it had", MW_STR("resource", a->name),
         MW_SLC("key", mw_object_key(in)), MW_STR("error", err->message),
         MW_INT("failures", a->failures));
}

// The object as the store shall have it, +1 in *out when SHAPED.
static enum verdict shape(struct mw_applier *a, struct mw_object *in, struct mw_object **out) {
  *out = NULL;
  const struct mw_hook *top = mw_hooks_top(&a->transforms);
  if (top == NULL) {
    *out = mw_object_ref(in);
    return SHAPED;
  }
  struct mw_hook transform = *top;  // which may be dropped by its own call
  struct mw_err err = {0};
  const struct mw_object *stored = mw_indexer_get(a->indexer, mw_object_key(in));
  int rc = ((mw_transform_cb)transform.call)(transform.ctx, in, stored, out, &err);
  if (rc == 1) return DROPPED;
  if (rc == 0 && mw_slice_eq(mw_object_key(*out), mw_object_key(in))) return SHAPED;
  if (rc == 0) {
    mw_object_unref(*out);
    *out = NULL;
    mw_err_set(&err, MW_EINVAL, "the transform changed the object's name or namespace");
  }
  report_failure(a, &transform, in, &err);
  return FAILED;
}

// Notes a notification for the end of the batch; takes over old and object.
static void note(struct mw_applier *a, enum mw_notify_type type, struct mw_object *old,
                 struct mw_object *object, uint64_t queued_at) {
  a->due[a->due_count++] =
      (struct mw_notification){.type = type, .old = old, .object = object, .queued_at = queued_at};
}

static void tell(struct mw_applier *a, bool initial) {
  for (size_t i = 0; i < a->due_count; i++) {
    struct mw_notification *n = &a->due[i];
    n->initial = initial && n->type == MW_NOTIFY_ADD;
    mw_processor_distribute(a->processor, n);
    mw_object_unref(n->old);
    mw_object_unref(n->object);
  }
  a->due_count = 0;
}

// The object leaves the store; told with its last state, or as it was stored when that is NULL.
// What was stored goes along: updates in between may have been merged away, and a filter that let
// the stored one pass has to see the deletion.
static void take_out(struct mw_applier *a, const struct mw_delta *d, struct mw_object *last) {
  struct mw_object *old =
      mw_indexer_remove(a->indexer, mw_object_key(d->object), mw_object_rv(d->object));
  if (last == NULL) {
    last = old;
    old = NULL;
  }
  if (last != NULL) note(a, MW_NOTIFY_DELETE, old, last, d->queued_at);
}

static void upsert(struct mw_applier *a, const struct mw_delta *d) {
  struct mw_object *o;
  enum verdict v = shape(a, d->object, &o);
  if (v == DROPPED) take_out(a, d, NULL);
  if (v != SHAPED) return;
  struct mw_object *old = mw_indexer_upsert(a->indexer, o);
  note(a, old != NULL ? MW_NOTIFY_UPDATE : MW_NOTIFY_ADD, old, o, d->queued_at);
}

static void apply_plain(struct mw_applier *a, const struct mw_delta *d) {
  if (d->type == MW_DELTA_DELETED) {
    struct mw_object *last;
    shape(a, d->object, &last);
    take_out(a, d, last);
  } else {
    upsert(a, d);
  }
  if (d->rv != NULL) mw_indexer_set_rv(a->indexer, mw_slice_str(d->rv));
}

// Transforms the snapshot's items into a->shaped; false when the time was over first.
static bool shape_all(struct mw_applier *a, const struct mw_delta *d, uint64_t deadline) {
  while (a->shaped_from < d->all.n) {
    struct mw_object *in = d->all.v[a->shaped_from++];
    struct mw_object *o;
    enum verdict v = shape(a, in, &o);
    if (v == FAILED) o = mw_object_ref(mw_indexer_get(a->indexer, mw_object_key(in)));
    if (o != NULL) mw_object_list_add(&a->shaped, o);
    mw_object_unref(o);
    if (mw_clock_now() >= deadline) return false;
  }
  a->shaped_from = 0;
  return true;
}

static void tell_snapshot(struct mw_applier *a, const struct mw_object_list *all,
                          const struct mw_object_list *olds, const struct mw_object_list *gone,
                          bool initial, uint64_t queued_at) {
  for (size_t i = 0; i < gone->n; i++) {
    struct mw_notification n = {
        .type = MW_NOTIFY_DELETE, .object = gone->v[i], .stale = true, .queued_at = queued_at};
    mw_processor_distribute(a->processor, &n);
  }
  for (size_t i = 0; i < all->n; i++) {
    bool update = olds->v[i] != NULL;
    struct mw_notification n = {.type = update ? MW_NOTIFY_UPDATE : MW_NOTIFY_ADD,
                                .old = olds->v[i],
                                .object = all->v[i],
                                .initial = initial && !update,
                                .queued_at = queued_at};
    mw_processor_distribute(a->processor, &n);
  }
}

static bool apply_snapshot(struct mw_applier *a, const struct mw_delta *d, bool initial,
                           uint64_t deadline) {
  const struct mw_object_list *all = &d->all;
  // One that was begun is ended the same way, whoever has come or gone meanwhile.
  if (a->transforms.n > 0 || a->shaped_from > 0) {
    if (!shape_all(a, d, deadline)) return false;
    all = &a->shaped;
  }
  struct mw_object_list olds = {0};
  struct mw_object_list gone = {0};
  mw_indexer_replace(a->indexer, all, mw_slice_str(d->rv), &olds, &gone);
  tell_snapshot(a, all, &olds, &gone, initial, d->queued_at);
  mw_object_list_deinit(&olds);
  mw_object_list_deinit(&gone);
  mw_object_list_deinit(&a->shaped);
  return true;
}

static void apply_resync(struct mw_applier *a, const struct mw_delta *d) {
  // As of its (newest) tick: how long it waited takes nothing from the time until the next.
  if (!mw_processor_resync_due(a->processor, d->queued_at)) return;
  struct mw_object_list all = {0};
  mw_indexer_list(a->indexer, mw_slice("", 0), NULL, NULL, &all);
  for (size_t i = 0; i < all.n; i++) {
    struct mw_notification n = {
        .type = MW_NOTIFY_UPDATE, .old = all.v[i], .object = all.v[i], .queued_at = d->queued_at};
    mw_processor_distribute(a->processor, &n);
  }
  mw_object_list_deinit(&all);
}

static bool run(struct mw_applier *a, struct mw_delta_batch *batch, uint64_t deadline) {
  for (size_t i = 0; i < batch->count; i++) {
    const struct mw_delta *d = &batch->deltas[i];
    switch (d->type) {
      case MW_DELTA_ADDED:
      case MW_DELTA_UPDATED:
      case MW_DELTA_DELETED:
        apply_plain(a, d);
        break;
      case MW_DELTA_REPLACED_ALL:
        if (!apply_snapshot(a, d, batch->initial, deadline)) return false;
        break;
      case MW_DELTA_SYNC_ALL:
        apply_resync(a, d);
        break;
      case MW_DELTA_BOOKMARK:
        mw_indexer_set_rv(a->indexer, mw_slice_str(d->rv));
        break;
    }
  }
  if (batch->rv[0] != '\0') mw_indexer_set_rv(a->indexer, mw_slice_str(batch->rv));
  tell(a, batch->initial);
  a->deltas += batch->count;
  return true;
}

bool mw_applier_run(struct mw_applier *a, struct mw_delta_batch *batch, uint64_t deadline) {
  a->running = true;
  bool done = run(a, batch, deadline);
  a->running = false;
  return done;
}
