// SPDX-License-Identifier: Apache-2.0
// Open addressing with linear probing over a table of any size: the home of a hash is
// hash * cap / 2^32. That allows growth by half instead of doubling, and a table in the order of
// its hashes, which makes a rebuild run through memory once. At most 4/5 full; a removal closes
// its gap, so there are no graves and at least one slot is always free.
#include "cache/objmap.h"

#include "base/alloc.h"
#include "base/map.h"

enum { CAP_MIN = 2, SLOT_BYTES = sizeof(struct mw_object *) + sizeof(uint32_t) };

static uint32_t *hashes(const struct mw_objmap *m) { return (uint32_t *)(m->slots + m->cap); }

static size_t home(const struct mw_objmap *m, uint32_t hash) {
  return (size_t)(((uint64_t)hash * m->cap) >> 32);
}

static size_t after(const struct mw_objmap *m, size_t i) { return i + 1 < m->cap ? i + 1 : 0; }

void mw_objmap_init(struct mw_objmap *m) { *m = (struct mw_objmap){0}; }

void mw_objmap_deinit(struct mw_objmap *m) {
  for (size_t i = 0; i < m->cap; i++) mw_object_unref(m->slots[i]);
  mw_free(m->slots);
  *m = (struct mw_objmap){0};
}

static void put(struct mw_objmap *m, struct mw_object *o, uint32_t hash) {
  size_t i = home(m, hash);
  while (m->slots[i] != NULL) i = after(m, i);
  m->slots[i] = o;
  hashes(m)[i] = hash;
}

static void resize(struct mw_objmap *m, size_t cap) {
  struct mw_objmap old = *m;
  m->cap = cap;
  m->slots = mw_xcalloc(cap, SLOT_BYTES);
  for (size_t i = 0; i < old.cap; i++) {
    if (old.slots[i] != NULL) put(m, old.slots[i], hashes(&old)[i]);
  }
  mw_free(old.slots);
}

static bool has_room(size_t cap, size_t count) { return count * 5 <= cap * 4 && count < cap; }

void mw_objmap_reserve(struct mw_objmap *m, size_t count) {
  if (has_room(m->cap, count)) return;
  size_t cap = count + count / 4 + CAP_MIN;
  resize(m, cap);
}

// The slot of key, or cap.
static size_t find(const struct mw_objmap *m, struct mw_slice key, uint32_t hash) {
  if (m->count == 0) return m->cap;
  for (size_t i = home(m, hash); m->slots[i] != NULL; i = after(m, i)) {
    if (hashes(m)[i] == hash && mw_slice_eq(key, mw_object_key(m->slots[i]))) return i;
  }
  return m->cap;
}

struct mw_object *mw_objmap_get(const struct mw_objmap *m, struct mw_slice key) {
  if (m->count == 0) return NULL;
  size_t i = find(m, key, mw_hash(key));
  return i < m->cap ? m->slots[i] : NULL;
}

struct mw_object *mw_objmap_set(struct mw_objmap *m, struct mw_object *o) {
  uint32_t hash = mw_object_hash(o);
  size_t i = find(m, mw_object_key(o), hash);
  mw_object_ref(o);
  if (i < m->cap) {
    struct mw_object *old = m->slots[i];
    m->slots[i] = o;
    return old;
  }
  if (!has_room(m->cap, m->count + 1)) {
    size_t grown = m->cap + m->cap / 2;
    resize(m, grown > m->cap + CAP_MIN ? grown : m->cap + CAP_MIN);
  }
  put(m, o, hash);
  m->count++;
  return NULL;
}

// Moves back what a free slot i would cut off from its home.
static void close_gap(struct mw_objmap *m, size_t i) {
  for (size_t j = after(m, i); m->slots[j] != NULL; j = after(m, j)) {
    size_t h = home(m, hashes(m)[j]);
    bool stays = i < j ? (h > i && h <= j) : (h > i || h <= j);
    if (stays) continue;
    m->slots[i] = m->slots[j];
    hashes(m)[i] = hashes(m)[j];
    i = j;
  }
  m->slots[i] = NULL;
}

struct mw_object *mw_objmap_del(struct mw_objmap *m, struct mw_slice key) {
  if (m->count == 0) return NULL;
  size_t i = find(m, key, mw_hash(key));
  if (i == m->cap) return NULL;
  struct mw_object *old = m->slots[i];
  close_gap(m, i);
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
    struct mw_object *o = m->slots[(*cursor)++];
    if (o != NULL) return o;
  }
  return NULL;
}

size_t mw_objmap_memory(const struct mw_objmap *m) { return m->cap * SLOT_BYTES; }
