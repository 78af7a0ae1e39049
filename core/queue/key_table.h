// SPDX-License-Identifier: Apache-2.0
// The entries of a work queue by key. Private to queue.
//
// An entry begins with a mw_key_node and ends with the bytes of its key, so that a key is held
// once. The table grows and shrinks by one bucket at a time (linear hashing): no addition ever
// moves more than a handful of entries, however many there are, and an emptied table has given its
// memory back.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct mw_key_node {
  struct mw_key_node *next;  // in the bucket
  uint32_t hash;
  uint16_t len;      // of the key
  int16_t priority;  // the entry's own
};

struct mw_key_table {
  struct mw_key_node ***segments;  // of SEGMENT buckets each
  size_t segment_count;
  size_t segment_cap;
  size_t buckets;     // in use; 0 while empty
  size_t low;         // the power of two with low <= buckets <= 2 * low
  size_t count;       // entries
  size_t key_offset;  // from the start of an entry to its key
};

void mw_key_table_init(struct mw_key_table *t, size_t key_offset);
// The entries are the caller's.
void mw_key_table_deinit(struct mw_key_table *t);
// The entry of key, or NULL. hash is mw_hash(key).
struct mw_key_node *mw_key_table_get(const struct mw_key_table *t, struct mw_slice key,
                                     uint32_t hash);
// n has its hash, its length and its key, which must not be there yet.
void mw_key_table_add(struct mw_key_table *t, struct mw_key_node *n);
// n must be there.
void mw_key_table_del(struct mw_key_table *t, struct mw_key_node *n);
// Takes any entry out and returns it; NULL when there is none.
struct mw_key_node *mw_key_table_pop(struct mw_key_table *t);
// Calls cb with each entry; it must not add any or take any out.
void mw_key_table_each(const struct mw_key_table *t, void (*cb)(void *ctx, struct mw_key_node *n),
                       void *ctx);
// Bytes that the table itself uses.
size_t mw_key_table_memory(const struct mw_key_table *t);
struct mw_slice mw_key_table_key(const struct mw_key_table *t, const struct mw_key_node *n);
