// SPDX-License-Identifier: Apache-2.0
// Open addressing with linear probing, at most 3/4 full. Graves are swept when the table is
// rebuilt.
#include "base/map.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/rand.h"

struct mw_map_entry {
  char *key;  // NULL: never used; GRAVE: removed
  uint32_t key_len;
  uint32_t hash;
  void *value;
};

static char grave;
#define GRAVE (&grave)

static uint64_t load64(const char *p) {
  uint64_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

static uint64_t load32(const char *p) {
  uint32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

// A text of less than eight bytes; those of one length are all different.
static uint64_t load_short(const char *p, size_t n) {
  if (n >= 4) return load32(p) | load32(p + n - 4) << 32;
  if (n == 0) return 0;
  const unsigned char *u = (const unsigned char *)p;
  return u[0] | (uint64_t)u[n / 2] << 8 | (uint64_t)u[n - 1] << 16;
}

static uint64_t mix(uint64_t a, uint64_t b) {
  __uint128_t m = (__uint128_t)a * b;
  return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static atomic_ullong seed;  // 0: not made yet

static __attribute__((noinline)) uint32_t seed_and_hash(struct mw_slice s) {
  unsigned long long expected = 0;
  unsigned long long fresh = mw_rand_entropy() | 1;
  atomic_compare_exchange_strong(&seed, &expected, fresh);
  return mw_hash(s);
}

uint32_t mw_hash(struct mw_slice s) {
  uint64_t h = atomic_load_explicit(&seed, memory_order_relaxed);
  if (h == 0) return seed_and_hash(s);
  h ^= s.n * 0x9E3779B97F4A7C15u;
  const char *p = s.p;
  size_t n = s.n;
  for (; n > 8; p += 8, n -= 8) h = mix(h ^ load64(p), 0xD6E8FEB86659FD93u);
  // The last eight bytes may have been there before: no loop for what is left.
  uint64_t tail = s.n >= 8 ? load64(p + n - 8) : load_short(p, n);
  h = mix(h ^ tail, 0xA0761D6478BD642Fu);
  return (uint32_t)(h ^ (h >> 32));
}

void mw_map_init(struct mw_map *m) { *m = (struct mw_map){0}; }

static bool live_slot(const struct mw_map_entry *e) { return e->key != NULL && e->key != GRAVE; }

void mw_map_deinit(struct mw_map *m) {
  for (size_t i = 0; i < m->cap; i++) {
    if (live_slot(&m->slots[i])) mw_free(m->slots[i].key);
  }
  mw_free(m->slots);
  *m = (struct mw_map){0};
}

// The entry of key, or NULL.
static struct mw_map_entry *find(const struct mw_map *m, struct mw_slice key, uint32_t hash) {
  if (m->cap == 0) return NULL;
  for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
    struct mw_map_entry *e = &m->slots[i];
    if (e->key == NULL) return NULL;
    if (e->key != GRAVE && e->hash == hash && mw_slice_eq(key, mw_slice(e->key, e->key_len))) {
      return e;
    }
  }
}

static void rebuild(struct mw_map *m, size_t cap) {
  struct mw_map_entry *slots = mw_xcalloc(cap, sizeof *slots);
  for (size_t i = 0; i < m->cap; i++) {
    if (!live_slot(&m->slots[i])) continue;
    size_t j = m->slots[i].hash & (cap - 1);
    while (slots[j].key != NULL) j = (j + 1) & (cap - 1);
    slots[j] = m->slots[i];
  }
  mw_free(m->slots);
  m->slots = slots;
  m->cap = cap;
  m->used = m->count;
}

void *mw_map_get(const struct mw_map *m, struct mw_slice key) {
  struct mw_map_entry *e = find(m, key, mw_hash(key));
  return e != NULL ? e->value : NULL;
}

void *mw_map_set(struct mw_map *m, struct mw_slice key, void *value) {
  uint32_t hash = mw_hash(key);
  struct mw_map_entry *e = find(m, key, hash);
  if (e != NULL) {
    void *old = e->value;
    e->value = value;
    return old;
  }
  if ((m->used + 1) * 4 > m->cap * 3) {
    size_t cap = 8;
    while (cap < (m->count + 1) * 2) cap *= 2;
    rebuild(m, cap);
  }
  size_t i = hash & (m->cap - 1);
  while (live_slot(&m->slots[i])) i = (i + 1) & (m->cap - 1);
  if (m->slots[i].key == NULL) m->used++;
  m->slots[i] = (struct mw_map_entry){
      .key = mw_xstrndup(key.p, key.n), .key_len = (uint32_t)key.n, .hash = hash, .value = value};
  m->count++;
  return NULL;
}

void *mw_map_del(struct mw_map *m, struct mw_slice key) {
  struct mw_map_entry *e = find(m, key, mw_hash(key));
  if (e == NULL) return NULL;
  void *old = e->value;
  mw_free(e->key);
  *e = (struct mw_map_entry){.key = GRAVE};
  m->count--;
  return old;
}

bool mw_map_next(const struct mw_map *m, size_t *cursor, struct mw_slice *key, void **value) {
  for (; *cursor < m->cap; (*cursor)++) {
    struct mw_map_entry *e = &m->slots[*cursor];
    if (!live_slot(e)) continue;
    if (key != NULL) *key = mw_slice(e->key, e->key_len);
    if (value != NULL) *value = e->value;
    (*cursor)++;
    return true;
  }
  return false;
}
