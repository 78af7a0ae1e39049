// SPDX-License-Identifier: Apache-2.0
// Bucket b holds the hashes h with h mod 2*low = b where that is a bucket, else h mod low = b.
// Adding bucket `buckets` splits bucket `buckets - low`, and taking the last one away merges the
// two again. The table grows when there are more entries than buckets, and shrinks when there are
// fewer than half as many.
#include "queue/key_table.h"

#include <assert.h>

#include "base/alloc.h"

enum { SEGMENT = 512 };

void mw_key_table_init(struct mw_key_table *t, size_t key_offset) {
  *t = (struct mw_key_table){.key_offset = key_offset};
}

void mw_key_table_deinit(struct mw_key_table *t) {
  for (size_t i = 0; i < t->segment_count; i++) mw_free(t->segments[i]);
  mw_free(t->segments);
  mw_key_table_init(t, t->key_offset);
}

struct mw_slice mw_key_table_key(const struct mw_key_table *t, const struct mw_key_node *n) {
  return mw_slice((const char *)n + t->key_offset, n->len);
}

static struct mw_key_node **bucket_at(const struct mw_key_table *t, size_t b) {
  return &t->segments[b / SEGMENT][b % SEGMENT];
}

static size_t bucket_of(const struct mw_key_table *t, uint32_t hash) {
  size_t b = hash & (2 * t->low - 1);
  return b < t->buckets ? b : b - t->low;
}

struct mw_key_node *mw_key_table_get(const struct mw_key_table *t, struct mw_slice key,
                                     uint32_t hash) {
  if (t->buckets == 0) return NULL;
  struct mw_key_node *n = *bucket_at(t, bucket_of(t, hash));
  for (; n != NULL; n = n->next)
    if (n->hash == hash && mw_slice_eq(key, mw_key_table_key(t, n))) return n;
  return NULL;
}

static void add_segment(struct mw_key_table *t) {
  if (t->segment_count == t->segment_cap) {
    t->segment_cap = t->segment_cap > 0 ? t->segment_cap * 2 : 4;
    t->segments = mw_xrealloc(t->segments, t->segment_cap * sizeof *t->segments);
  }
  t->segments[t->segment_count++] = mw_xcalloc(SEGMENT, sizeof **t->segments);
}

// Adds a bucket and moves into it what belongs there.
static void grow(struct mw_key_table *t) {
  if (t->buckets == t->segment_count * SEGMENT) add_segment(t);
  size_t fresh = t->buckets++;
  if (fresh == 0) {
    t->low = 1;
    return;
  }
  if (t->buckets > 2 * t->low) t->low *= 2;
  struct mw_key_node **from = bucket_at(t, fresh - t->low), **to = bucket_at(t, fresh);
  while (*from != NULL) {
    struct mw_key_node *n = *from;
    if (bucket_of(t, n->hash) != fresh) {
      from = &n->next;
      continue;
    }
    *from = n->next;
    n->next = NULL;
    *to = n;
    to = &n->next;
  }
}

// Merges the last bucket into the one that it was split from.
static void shrink(struct mw_key_table *t) {
  size_t last = t->buckets - 1;
  struct mw_key_node *moved = *bucket_at(t, last);
  *bucket_at(t, last) = NULL;
  if (last < t->low) t->low /= 2;
  t->buckets = last;
  struct mw_key_node **end = bucket_at(t, last - t->low);
  while (*end != NULL) end = &(*end)->next;
  *end = moved;
  // One segment stays in reserve, for a table that goes back and forth.
  if (t->segment_count > 1 && t->buckets + SEGMENT < (t->segment_count - 1) * SEGMENT)
    mw_free(t->segments[--t->segment_count]);
}

void mw_key_table_add(struct mw_key_table *t, struct mw_key_node *n) {
  if (t->count++ >= t->buckets) grow(t);
  struct mw_key_node **b = bucket_at(t, bucket_of(t, n->hash));
  n->next = *b;
  *b = n;
}

static void unlink_node(struct mw_key_table *t, struct mw_key_node **at) {
  *at = (*at)->next;
  t->count--;
  // Two buckets for each entry, so that the table keeps up with any emptying.
  for (int i = 0; i < 2 && t->buckets > 1 && t->count < t->buckets / 2; i++) shrink(t);
}

void mw_key_table_del(struct mw_key_table *t, struct mw_key_node *n) {
  struct mw_key_node **at = bucket_at(t, bucket_of(t, n->hash));
  while (*at != n) {
    assert(*at != NULL);
    at = &(*at)->next;
  }
  unlink_node(t, at);
}

struct mw_key_node *mw_key_table_pop(struct mw_key_table *t) {
  if (t->count == 0) return NULL;
  // Empty buckets go at once: the next call must not look at them again.
  while (t->buckets > 1 && *bucket_at(t, t->buckets - 1) == NULL) shrink(t);
  struct mw_key_node **at = bucket_at(t, t->buckets - 1), *n = *at;
  unlink_node(t, at);
  return n;
}

void mw_key_table_each(const struct mw_key_table *t, void (*cb)(void *ctx, struct mw_key_node *n),
                       void *ctx) {
  for (size_t i = 0; i < t->buckets; i++)
    for (struct mw_key_node *n = *bucket_at(t, i); n != NULL; n = n->next) cb(ctx, n);
}

size_t mw_key_table_memory(const struct mw_key_table *t) {
  return t->segment_cap * sizeof *t->segments +
         t->segment_count * SEGMENT * sizeof(struct mw_key_node *);
}
