// SPDX-License-Identifier: Apache-2.0
#include "cache/hooks.h"

#include <string.h>

#include "base/alloc.h"

static void release(struct mw_hook hook) {
  if (hook.free_ctx != NULL) hook.free_ctx(hook.ctx);
}

void mw_hooks_drop(struct mw_hooks *h, const void *owner) {
  for (size_t i = 0; i < h->n; i++) {
    if (h->v[i].owner != owner) continue;
    struct mw_hook gone = h->v[i];
    h->n--;
    memmove(&h->v[i], &h->v[i + 1], (h->n - i) * sizeof h->v[0]);
    release(gone);
    return;  // an owner has one
  }
}

void mw_hooks_set(struct mw_hooks *h, const struct mw_hook *hook) {
  struct mw_hook taken = *hook;
  mw_hooks_drop(h, taken.owner);
  h->v = mw_xrealloc(h->v, (h->n + 1) * sizeof h->v[0]);
  h->v[h->n++] = taken;
}

void mw_hooks_deinit(struct mw_hooks *h) {
  while (h->n > 0) release(h->v[--h->n]);
  mw_free(h->v);
  *h = (struct mw_hooks){0};
}
