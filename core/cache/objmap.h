// SPDX-License-Identifier: Apache-2.0
// A set of objects, found by key. Used by the store, by every index value, by the reflector (what
// the server was last seen to have) and by the temporary store of a streaming list.
//
// The map holds +1 on each object and borrows the key from it: 15 to 23 bytes per object. It
// gives memory back when it empties.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/object.h"

struct mw_objmap_slot;

struct mw_objmap {
  struct mw_objmap_slot *slots;  // NULL while empty
  size_t count;
  size_t cap;
};

void mw_objmap_init(struct mw_objmap *m);
void mw_objmap_deinit(struct mw_objmap *m);
// Makes room for count objects in all.
void mw_objmap_reserve(struct mw_objmap *m, size_t count);
// Borrowed, or NULL.
struct mw_object *mw_objmap_get(const struct mw_objmap *m, struct mw_slice key);
// Takes its own +1 on o. Returns the object that had the key (its +1 passes to the caller), or
// NULL.
struct mw_object *mw_objmap_set(struct mw_objmap *m, struct mw_object *o);
// Returns the removed object with its +1, or NULL.
struct mw_object *mw_objmap_del(struct mw_objmap *m, struct mw_slice key);
// Walk: start with *cursor = 0, NULL at the end; borrowed. The map must not change meanwhile.
struct mw_object *mw_objmap_next(const struct mw_objmap *m, size_t *cursor);

// A walk that goes on while the map changes between its steps; begins as {0}.
struct mw_objmap_walk {
  size_t cap;   // of the table that it is about
  size_t next;  // where in it
};
// Calls visit with a few more objects, which must not change the map; false when there are no more.
// What is in the map all the time is visited, and once, unless the table has been resized
// meanwhile: then the walk begins again.
bool mw_objmap_step(const struct mw_objmap *m, struct mw_objmap_walk *w,
                    void (*visit)(void *ctx, struct mw_object *o), void *ctx);
// Bytes the map itself uses.
size_t mw_objmap_memory(const struct mw_objmap *m);
