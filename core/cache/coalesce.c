// SPDX-License-Identifier: Apache-2.0
// Open addressing with linear probing; removal shifts the cluster back, so there are no graves. A
// spot borrows its key from an object it holds: the newest of that key, which is queued anyway.
#include "cache/coalesce.h"

#include "base/alloc.h"

enum { FIRST_CAP = 64 };

struct mw_coalesce_spot {
  struct mw_object *object;  // +1; NULL: free
  uint64_t deletion;         // position, 0: none
  uint64_t upsert;           // position, 0: none
  uint32_t hash;
  bool hole;  // the upsert's place is empty
};

void mw_coalesce_init(struct mw_coalesce *c) { *c = (struct mw_coalesce){0}; }

void mw_coalesce_reset(struct mw_coalesce *c) {
  for (size_t i = 0; i < c->cap; i++) mw_object_unref(c->slots[i].object);
  mw_free(c->slots);
  *c = (struct mw_coalesce){0};
}

// The spot of o's key, or the free one where it belongs.
static struct mw_coalesce_spot *probe(const struct mw_coalesce *c, const struct mw_object *o) {
  uint32_t hash = mw_object_hash(o);
  for (size_t i = hash & (c->cap - 1);; i = (i + 1) & (c->cap - 1)) {
    struct mw_coalesce_spot *s = &c->slots[i];
    if (s->object == NULL) return s;
    if (s->hash == hash && mw_slice_eq(mw_object_key(s->object), mw_object_key(o))) return s;
  }
}

static void grow(struct mw_coalesce *c) {
  struct mw_coalesce_spot *old = c->slots;
  size_t old_cap = c->cap;
  c->cap = old_cap > 0 ? old_cap * 2 : FIRST_CAP;
  c->slots = mw_xcalloc(c->cap, sizeof *c->slots);
  for (size_t i = 0; i < old_cap; i++) {
    if (old[i].object == NULL) continue;
    size_t j = old[i].hash & (c->cap - 1);
    while (c->slots[j].object != NULL) j = (j + 1) & (c->cap - 1);
    c->slots[j] = old[i];
  }
  mw_free(old);
}

static struct mw_coalesce_spot *need(struct mw_coalesce *c, struct mw_object *o) {
  if ((c->count + 1) * 4 > c->cap * 3) grow(c);
  struct mw_coalesce_spot *s = probe(c, o);
  struct mw_object *before = s->object;
  if (before == NULL) {
    *s = (struct mw_coalesce_spot){.hash = mw_object_hash(o)};
    c->count++;
  }
  s->object = mw_object_ref(o);
  mw_object_unref(before);
  return s;
}

static void forget(struct mw_coalesce *c, struct mw_coalesce_spot *s) {
  size_t mask = c->cap - 1;
  size_t hole = (size_t)(s - c->slots);
  mw_object_unref(s->object);
  c->count--;
  for (size_t i = (hole + 1) & mask; c->slots[i].object != NULL; i = (i + 1) & mask) {
    size_t home = c->slots[i].hash & mask;
    // One that sits between its home and the hole stays reachable only if it moves there.
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    c->slots[hole] = c->slots[i];
    hole = i;
  }
  c->slots[hole] = (struct mw_coalesce_spot){0};
}

struct mw_coalesce_plan mw_coalesce_next(struct mw_coalesce *c, struct mw_object *o, bool deletion,
                                         uint64_t head, uint64_t tail) {
  struct mw_coalesce_spot *s = need(c, o);
  bool has_upsert = s->upsert >= head;
  bool has_deletion = s->deletion >= head;
  enum mw_coalesce_action onto = s->hole ? MW_COALESCE_FILL : MW_COALESCE_MERGE;
  if (deletion && has_deletion) {
    uint64_t undone = has_upsert && !s->hole ? s->upsert : 0;
    s->hole = has_upsert;
    return (struct mw_coalesce_plan){MW_COALESCE_DROP, undone};
  }
  if (!has_upsert) {
    s->hole = false;
    *(deletion ? &s->deletion : &s->upsert) = tail;
    return (struct mw_coalesce_plan){MW_COALESCE_APPEND, tail};
  }
  struct mw_coalesce_plan plan = {onto, s->upsert};
  s->hole = false;
  if (deletion) {
    s->deletion = s->upsert;
    s->upsert = 0;
  }
  return plan;
}

void mw_coalesce_popped(struct mw_coalesce *c, struct mw_object *o, uint64_t head) {
  if (c->count == 0) return;
  struct mw_coalesce_spot *s = probe(c, o);
  if (s->object == NULL) return;
  bool upsert_left = s->upsert >= head && !s->hole;
  if (s->deletion < head && !upsert_left) forget(c, s);
}
