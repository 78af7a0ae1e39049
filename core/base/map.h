// SPDX-License-Identifier: Apache-2.0
// A hash map from byte strings to pointers. The map owns copies of its keys, never the values.
// Iteration order is unspecified; the map must not change while it is iterated.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct mw_map_entry;

struct mw_map {
  struct mw_map_entry *slots;  // NULL while empty
  size_t count;                // live entries
  size_t used;                 // live entries and graves
  size_t cap;                  // a power of two, or 0
};

void mw_map_init(struct mw_map *m);
// Frees keys and slots; values are the caller's.
void mw_map_deinit(struct mw_map *m);
// The value, or NULL.
void *mw_map_get(const struct mw_map *m, struct mw_slice key);
// Sets key to value (not NULL) and returns the value it replaced, or NULL.
void *mw_map_set(struct mw_map *m, struct mw_slice key, void *value);
// Removes key and returns its value, or NULL.
void *mw_map_del(struct mw_map *m, struct mw_slice key);
// Walks the map: start with *cursor = 0; false at the end. The key is borrowed from the map.
bool mw_map_next(const struct mw_map *m, size_t *cursor, struct mw_slice *key, void **value);

// The hash of the house: seeded once per process, so that names from outside cannot aim at it.
uint32_t mw_hash(struct mw_slice s);
