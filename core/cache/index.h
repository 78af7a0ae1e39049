// SPDX-License-Identifier: Apache-2.0
// One index: from a value to the set of objects that have it, and back from an object to the sets
// it is in. The indexer owns the indexes and calls them; nobody else does.
//
// An object's sets are remembered, so what was indexed is removed without asking the function
// again. A set that becomes empty is gone (S-STO-22).
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cache/extract.h"
#include "cache/object.h"
#include "cache/objmap.h"

// Appends the values of o to out; duplicates collapse. Nonzero: failed, err says why.
typedef int (*mw_index_cb)(void *ctx, struct mw_object *o, struct mw_values *out,
                           struct mw_err *err);

struct mw_index_spec {
  const char *name;
  mw_index_cb values;           // NULL: by namespace, which needs no memory per object
  void (*free_ctx)(void *ctx);  // called when the index is removed or not needed; may be NULL
  void *ctx;
  // What it computes, in a text: equal means that one index will do for both. Empty: like no other.
  struct mw_slice identity;
};

// A ready-made index function over an mw_extract (ctx), and the free_ctx for it.
int mw_index_extract(void *ctx, struct mw_object *o, struct mw_values *out, struct mw_err *err);
void mw_index_extract_free(void *ctx);

struct mw_index;

// Copies the name and owns ctx from now on.
struct mw_index *mw_index_new(const struct mw_index_spec *spec);
void mw_index_free(struct mw_index *x);  // NULL is fine
struct mw_slice mw_index_name(const struct mw_index *x);

// o takes the place of old, which has the same key; either may be NULL. When the function fails
// o is in no set, and the result is negative (a failure without a code of its own: MW_ESCRIPT).
int mw_index_update(struct mw_index *x, struct mw_object *old, struct mw_object *o,
                    struct mw_err *err) __attribute__((warn_unused_result));
// Whether o is in a set.
bool mw_index_holds(const struct mw_index *x, const struct mw_object *o);
// The values that o has or would have, as the function says; same errors.
int mw_index_compute(const struct mw_index *x, struct mw_object *o, struct mw_values *out,
                     struct mw_err *err) __attribute__((warn_unused_result));
// The set of a value, borrowed; NULL when there is none.
const struct mw_objmap *mw_index_get(const struct mw_index *x, struct mw_slice value);
// Appends every value that has a set.
void mw_index_values(const struct mw_index *x, struct mw_values *out);
// Bytes the index uses.
size_t mw_index_memory(const struct mw_index *x);
