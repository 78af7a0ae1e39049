// SPDX-License-Identifier: Apache-2.0
#include "cache/change.h"

#include <assert.h>

#include "base/alloc.h"
#include "cache/owner.h"

struct mw_change {
  enum mw_change_kind kind;
  struct mw_predicate *predicate;  // OBJECT
  mw_change_cb cb;                 // CALL
  void *ctx;
  void (*free_ctx)(void *);
  struct mw_change **children;  // ALL, ANY, NOT
  size_t count;
};

struct mw_change *mw_change_new(enum mw_change_kind kind) {
  struct mw_change *c = mw_xcalloc(1, sizeof *c);
  c->kind = kind;
  return c;
}

struct mw_change *mw_change_of_object(struct mw_predicate *p) {
  struct mw_change *c = mw_change_new(MW_CHANGE_OBJECT);
  c->predicate = p;
  return c;
}

struct mw_change *mw_change_of_call(mw_change_cb cb, void *ctx, void (*free_ctx)(void *)) {
  struct mw_change *c = mw_change_new(MW_CHANGE_CALL);
  c->cb = cb;
  c->ctx = ctx;
  c->free_ctx = free_ctx;
  return c;
}

void mw_change_add(struct mw_change *parent, struct mw_change *child) {
  assert(parent->kind >= MW_CHANGE_ALL);
  assert(parent->kind != MW_CHANGE_NOT || parent->count == 0);
  size_t size = (parent->count + 1) * sizeof(struct mw_change *);
  parent->children = mw_xrealloc(parent->children, size);
  parent->children[parent->count++] = child;
}

void mw_change_free(struct mw_change *c) {
  if (c == NULL) return;
  for (size_t i = 0; i < c->count; i++) mw_change_free(c->children[i]);
  mw_free(c->children);
  mw_predicate_free(c->predicate);
  if (c->free_ctx != NULL) c->free_ctx(c->ctx);
  mw_free(c);
}

// Whether metadata's member differs. The server writes maps in the order of their keys, so texts
// that differ are values that differ.
static bool differs(const struct mw_notification *n, struct mw_slice key, struct mw_unpacker *u,
                    struct mw_unpacker *v) {
  struct mw_slice old = {0}, new = {0};
  int had = mw_metadata_value(n->old, u, key, &old);
  int has = mw_metadata_value(n->object, v, key, &new);
  if (had < 0 || has < 0) return true;
  return had != has || (had > 0 && !mw_slice_eq(old, new));
}

static bool update_passes(const struct mw_change *c, const struct mw_notification *n,
                          struct mw_unpacker *u, struct mw_unpacker *v) {
  if (n->type != MW_NOTIFY_UPDATE) return true;
  if (mw_slice_eq(mw_object_rv(n->old), mw_object_rv(n->object))) return false;
  switch (c->kind) {
    case MW_CHANGE_GENERATION:
      return differs(n, MW_SLICE("generation"), u, v);
    case MW_CHANGE_LABELS:
      return differs(n, MW_SLICE("labels"), u, v);
    case MW_CHANGE_ANNOTATIONS:
      return differs(n, MW_SLICE("annotations"), u, v);
    default:
      return true;
  }
}

// Whether one of the tests answers `wanted`.
static bool some_is(const struct mw_change *c, bool wanted, const struct mw_notification *n,
                    struct mw_unpacker *u, struct mw_unpacker *v) {
  for (size_t i = 0; i < c->count; i++)
    if (mw_change_test(c->children[i], n, u, v) == wanted) return true;
  return false;
}

bool mw_change_test(const struct mw_change *c, const struct mw_notification *n,
                    struct mw_unpacker *u, struct mw_unpacker *v) {
  switch (c->kind) {
    case MW_CHANGE_OBJECT:
      return mw_predicate_test(c->predicate, n->object, u);
    case MW_CHANGE_CALL:
      return c->cb(c->ctx, n);
    case MW_CHANGE_ALL:
      return !some_is(c, false, n, u, v);
    case MW_CHANGE_ANY:
      return some_is(c, true, n, u, v);
    case MW_CHANGE_NOT:
      return !mw_change_test(c->children[0], n, u, v);
    default:
      return update_passes(c, n, u, v);
  }
}
