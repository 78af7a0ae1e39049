// SPDX-License-Identifier: Apache-2.0
#include "script/store.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"

struct item {
  uint64_t until;  // 0: for ever
  size_t size;
  char text[];
};

struct mw_store {
  struct mw_map items;
  size_t bytes;
};

struct mw_store *mw_store_new(void) {
  struct mw_store *s = mw_xcalloc(1, sizeof *s);
  mw_map_init(&s->items);
  return s;
}

void mw_store_free(struct mw_store *s) {
  size_t cursor = 0;
  void *item;
  while (mw_map_next(&s->items, &cursor, NULL, &item)) mw_free(item);
  mw_map_deinit(&s->items);
  mw_free(s);
}

static bool is_over(const struct item *i, uint64_t now) { return i->until != 0 && i->until <= now; }

void mw_store_del(struct mw_store *s, struct mw_slice name) {
  struct item *i = mw_map_del(&s->items, name);
  if (i == NULL) return;
  s->bytes -= name.n + i->size;
  mw_free(i);
}

// Takes away what is over. Walks over all, so only when room is needed.
static void sweep(struct mw_store *s) {
  uint64_t now = mw_clock_now();
  size_t cursor = 0;
  struct mw_slice name;
  void *item;
  while (mw_map_next(&s->items, &cursor, &name, &item)) {
    if (!is_over(item, now)) continue;
    char *copy = mw_xmalloc(name.n + 1);  // the map frees its own with the entry
    memcpy(copy, name.p, name.n);
    mw_store_del(s, mw_slice(copy, name.n));
    mw_free(copy);
    cursor = 0;
  }
}

static bool has_room(const struct mw_store *s, size_t keys, size_t bytes) {
  return s->items.count + keys <= MW_STORE_KEYS_MAX && s->bytes + bytes <= MW_STORE_BYTES_MAX;
}

int mw_store_set(struct mw_store *s, struct mw_slice name, struct mw_slice text, double seconds) {
  struct item *old = mw_map_get(&s->items, name);
  size_t frees = old != NULL ? name.n + old->size : 0;
  size_t needs = name.n + text.n;
  size_t more = needs > frees ? needs - frees : 0;
  if (!has_room(s, old == NULL, more)) {
    sweep(s);
    if (!has_room(s, old == NULL, more)) return MW_ELIMIT;
  }
  struct item *i = mw_xmalloc(sizeof *i + text.n + 1);
  i->until = seconds > 0 ? mw_clock_now() + (uint64_t)(seconds * 1e9) : 0;
  i->size = text.n;
  if (text.n > 0) memcpy(i->text, text.p, text.n);
  i->text[text.n] = '\0';
  mw_store_del(s, name);
  mw_map_set(&s->items, name, i);
  s->bytes += needs;
  return 0;
}

struct mw_slice mw_store_get(struct mw_store *s, struct mw_slice name) {
  struct item *i = mw_map_get(&s->items, name);
  if (i == NULL || is_over(i, mw_clock_now())) return (struct mw_slice){NULL, 0};
  return mw_slice(i->text, i->size);
}

void mw_store_each(struct mw_store *s, void (*cb)(void *ctx, struct mw_slice name), void *ctx) {
  uint64_t now = mw_clock_now();
  size_t cursor = 0;
  struct mw_slice name;
  void *item;
  while (mw_map_next(&s->items, &cursor, &name, &item))
    if (!is_over(item, now)) cb(ctx, name);
}
