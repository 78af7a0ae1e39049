// SPDX-License-Identifier: Apache-2.0
// Tests of events, in C: which of an informer's events matter to a controller (S-CR-32, 33).
//
//   VERSION GENERATION LABELS ANNOTATIONS   an update that changed it; adds and deletes always pass
//   OBJECT   a predicate on the object: of an update the new one, of a delete the last known
//   CALL     whatever a callback says
//   ALL ANY NOT   of other tests. ALL of none holds, ANY of none does not; NOT turns the answer for
//                 every event, adds and deletes too
//
// An update of which one side cannot be read counts as changed: better one reconcile too many.
#pragma once

#include <stdbool.h>

#include "cache/extract.h"
#include "cache/processor.h"

enum mw_change_kind {
  MW_CHANGE_VERSION = 0,
  MW_CHANGE_GENERATION,
  MW_CHANGE_LABELS,
  MW_CHANGE_ANNOTATIONS,
  MW_CHANGE_OBJECT,
  MW_CHANGE_CALL,
  MW_CHANGE_ALL,
  MW_CHANGE_ANY,
  MW_CHANGE_NOT,
};

typedef bool (*mw_change_cb)(void *ctx, const struct mw_notification *n);

struct mw_change;

// A test of kind VERSION, GENERATION, LABELS, ANNOTATIONS, ALL, ANY or NOT.
struct mw_change *mw_change_new(enum mw_change_kind kind);
// Owns the predicate.
struct mw_change *mw_change_of_object(struct mw_predicate *p);
// free_ctx (may be NULL) is called with ctx when the test is freed.
struct mw_change *mw_change_of_call(mw_change_cb cb, void *ctx, void (*free_ctx)(void *));
// Adds a test to ALL, ANY or NOT (which takes one), which owns it then.
void mw_change_add(struct mw_change *parent, struct mw_change *child);
void mw_change_free(struct mw_change *c);  // NULL is fine

// u and v are two unpackers: the old and the new object are looked at side by side.
bool mw_change_test(const struct mw_change *c, const struct mw_notification *n,
                    struct mw_unpacker *u, struct mw_unpacker *v);
