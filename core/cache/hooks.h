// SPDX-License-Identifier: Apache-2.0
// A place for functions, one of each owner who has set one. Where only one can be in force it is
// the last (mw_hooks_top), and when that leaves the one before is again. Private to cache.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct mw_hook {
  const void *owner;
  void (*call)(void);  // of the type that the place is for
  void *ctx;
  void (*free_ctx)(void *ctx);  // called when it is dropped; may be NULL
  uint64_t serial;              // set by mw_hooks_set: no two of a place have the same
};

// Begins as {0}.
struct mw_hooks {
  struct mw_hook *v;
  size_t n;
  uint64_t serials;
};

// Takes over hook->ctx. What the same owner had before is dropped.
void mw_hooks_set(struct mw_hooks *h, const struct mw_hook *hook);
// Drops what the owner has, if anything.
void mw_hooks_drop(struct mw_hooks *h, const void *owner);
void mw_hooks_deinit(struct mw_hooks *h);

// Calls cb with each, in the order in which they were set. It may set and drop any: one that
// was dropped meanwhile is not called, nor is one that was added.
void mw_hooks_each(const struct mw_hooks *h, void (*cb)(void *ctx, const struct mw_hook *hook),
                   void *ctx);
// The last one; NULL: none.
static inline const struct mw_hook *mw_hooks_top(const struct mw_hooks *h) {
  return h->n > 0 ? &h->v[h->n - 1] : NULL;
}
