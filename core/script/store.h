// SPDX-License-Identifier: Apache-2.0
// Small memory that outlives the generations of a program: texts by name, some for a while only.
// Script thread only.
#pragma once

#include <stddef.h>

#include "base/slice.h"

enum {
  MW_STORE_KEYS_MAX = 10000,
  MW_STORE_BYTES_MAX = 4 * 1024 * 1024,  // of names and texts together
};

struct mw_store;

struct mw_store *mw_store_new(void);
void mw_store_free(struct mw_store *s);

// Keeps a copy; seconds > 0: for so long. MW_ELIMIT, with nothing changed, when that is too much.
int mw_store_set(struct mw_store *s, struct mw_slice name, struct mw_slice text, double seconds)
    __attribute__((warn_unused_result));
// The text, borrowed until the next change; .p is NULL when there is none.
struct mw_slice mw_store_get(struct mw_store *s, struct mw_slice name);
void mw_store_del(struct mw_store *s, struct mw_slice name);
// Calls cb with each name, in any order; it must not change anything.
void mw_store_each(struct mw_store *s, void (*cb)(void *ctx, struct mw_slice name), void *ctx);
