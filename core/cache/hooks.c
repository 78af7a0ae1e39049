// SPDX-License-Identifier: Apache-2.0
#include "cache/hooks.h"

#include <string.h>

#include "base/alloc.h"

// Where the owner has its one; h->n: it has none.
static size_t place_of(const struct mw_hooks *h, const void *owner) {
  size_t i = 0;
  while (i < h->n && h->v[i].owner != owner) i++;
  return i;
}

static void release(struct mw_hook hook) {
  if (hook.free_ctx != NULL) hook.free_ctx(hook.ctx);
}

void mw_hooks_drop(struct mw_hooks *h, const void *owner) {
  size_t at = place_of(h, owner);
  if (at == h->n) return;
  struct mw_hook gone = h->v[at];
  h->n--;
  memmove(&h->v[at], &h->v[at + 1], (h->n - at) * sizeof h->v[0]);
  release(gone);
}

void mw_hooks_set(struct mw_hooks *h, const struct mw_hook *hook) {
  struct mw_hook taken = *hook;
  mw_hooks_drop(h, taken.owner);
  h->v = mw_xrealloc(h->v, (h->n + 1) * sizeof h->v[0]);
  taken.serial = ++h->serials;
  h->v[h->n++] = taken;
}

void mw_hooks_each(const struct mw_hooks *h, void (*cb)(void *ctx, const struct mw_hook *hook),
                   void *ctx) {
  size_t n = h->n;
  const void **owners = mw_xcalloc(n + 1, sizeof *owners);
  for (size_t i = 0; i < n; i++) owners[i] = h->v[i].owner;
  for (size_t i = 0; i < n; i++) {
    size_t at = place_of(h, owners[i]);
    if (at == h->n) continue;
    struct mw_hook hook = h->v[at];
    cb(ctx, &hook);
  }
  mw_free(owners);
}

void mw_hooks_deinit(struct mw_hooks *h) {
  while (h->n > 0) release(h->v[--h->n]);
  mw_free(h->v);
  *h = (struct mw_hooks){0};
}
