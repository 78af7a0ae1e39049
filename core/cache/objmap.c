// SPDX-License-Identifier: Apache-2.0
// Open addressing with linear probing over a table of any size, so that it can grow by half
// instead of doubling. At most 4/5 full; a removal closes its gap, so there are no graves and at
// least one slot is always free.
//
// The home of a hash depends on the size of the table. If it did not, objects taken from one
// table in its order (a sweep, an index over what is there) would crowd into one end of another.
#include "cache/objmap.h"

#include "base/alloc.h"
#include "base/map.h"

// Hash and pointer side by side in 12 bytes: a lookup touches one cache line of the table.
struct mw_objmap_slot {
  uint32_t hash;
  struct mw_object *object;  // NULL: free
} __attribute__((packed, aligned(4)));

enum { CAP_MIN = 2 };

static size_t home(const struct mw_objmap *m, uint32_t hash) {
  uint32_t salt = (uint32_t)m->cap * 0x9E3779B1u;
  salt = (salt ^ (salt >> 15)) * 0x85EBCA77u;
  return (size_t)(((uint64_t)(hash * (salt | 1)) * m->cap) >> 32);
}

static size_t after(const struct mw_objmap *m, size_t i) { return i + 1 < m->cap ? i + 1 : 0; }

void mw_objmap_init(struct mw_objmap *m) { *m = (struct mw_objmap){0}; }

void mw_objmap_deinit(struct mw_objmap *m) {
  for (size_t i = 0; i < m->cap; i++) mw_object_unref(m->slots[i].object);
  mw_free(m->slots);
  *m = (struct mw_objmap){0};
}

static void put(struct mw_objmap *m, struct mw_objmap_slot slot) {
  size_t i = home(m, slot.hash);
  while (m->slots[i].object != NULL) i = after(m, i);
  m->slots[i] = slot;
}

static void resize(struct mw_objmap *m, size_t cap) {
  struct mw_objmap old = *m;
  m->cap = cap;
  m->slots = mw_xcalloc(cap, sizeof *m->slots);
  for (size_t i = 0; i < old.cap; i++) {
    if (old.slots[i].object != NULL) put(m, old.slots[i]);
  }
  mw_free(old.slots);
}

static bool has_room(size_t cap, size_t count) { return count * 5 <= cap * 4 && count < cap; }

void mw_objmap_reserve(struct mw_objmap *m, size_t count) {
  if (!has_room(m->cap, count)) resize(m, count + count / 4 + CAP_MIN);
}

// The slot of key, or NULL.
static struct mw_objmap_slot *find(const struct mw_objmap *m, struct mw_slice key, uint32_t hash) {
  if (m->count == 0) return NULL;
  for (size_t i = home(m, hash); m->slots[i].object != NULL; i = after(m, i)) {
    if (m->slots[i].hash != hash) continue;
    if (mw_slice_eq(key, mw_object_key(m->slots[i].object))) return &m->slots[i];
  }
  return NULL;
}

struct mw_object *mw_objmap_get(const struct mw_objmap *m, struct mw_slice key) {
  struct mw_objmap_slot *slot = find(m, key, mw_hash(key));
  return slot != NULL ? slot->object : NULL;
}

struct mw_object *mw_objmap_set(struct mw_objmap *m, struct mw_object *o) {
  uint32_t hash = mw_object_hash(o);
  struct mw_objmap_slot *slot = find(m, mw_object_key(o), hash);
  mw_object_ref(o);
  if (slot != NULL) {
    struct mw_object *old = slot->object;
    slot->object = o;
    return old;
  }
  if (!has_room(m->cap, m->count + 1)) {
    size_t grown = m->cap + m->cap / 2;
    resize(m, grown > m->cap + CAP_MIN ? grown : m->cap + CAP_MIN);
  }
  put(m, (struct mw_objmap_slot){hash, o});
  m->count++;
  return NULL;
}

// Moves back what a free slot i would cut off from its home.
static void close_gap(struct mw_objmap *m, size_t i) {
  for (size_t j = after(m, i); m->slots[j].object != NULL; j = after(m, j)) {
    size_t h = home(m, m->slots[j].hash);
    bool stays = i < j ? (h > i && h <= j) : (h > i || h <= j);
    if (stays) continue;
    m->slots[i] = m->slots[j];
    i = j;
  }
  m->slots[i].object = NULL;
}

struct mw_object *mw_objmap_del(struct mw_objmap *m, struct mw_slice key) {
  struct mw_objmap_slot *slot = find(m, key, mw_hash(key));
  if (slot == NULL) return NULL;
  struct mw_object *old = slot->object;
  close_gap(m, (size_t)(slot - m->slots));
  m->count--;
  if (m->count == 0) {
    mw_objmap_deinit(m);
  } else if (m->cap > 16 && m->count * 4 < m->cap) {
    resize(m, m->count + m->count / 2 + CAP_MIN);
  }
  return old;
}

struct mw_object *mw_objmap_next(const struct mw_objmap *m, size_t *cursor) {
  while (*cursor < m->cap) {
    struct mw_object *o = m->slots[(*cursor)++].object;
    if (o != NULL) return o;
  }
  return NULL;
}

// Changes move objects between slots, but not their homes: the walk goes by these.
bool mw_objmap_step(const struct mw_objmap *m, struct mw_objmap_walk *w,
                    void (*visit)(void *ctx, struct mw_object *o), void *ctx) {
  if (w->cap != m->cap) *w = (struct mw_objmap_walk){.cap = m->cap};
  while (w->next < m->cap && m->slots[w->next].object == NULL) w->next++;
  if (w->next >= m->cap) return false;
  size_t here = w->next++;
  for (size_t i = here; m->slots[i].object != NULL; i = after(m, i)) {
    if (home(m, m->slots[i].hash) == here) visit(ctx, m->slots[i].object);
  }
  return true;
}

size_t mw_objmap_memory(const struct mw_objmap *m) { return m->cap * sizeof *m->slots; }
