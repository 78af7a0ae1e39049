// SPDX-License-Identifier: Apache-2.0
// The boxes of one Lua state: each holds an object for the root table that stands for it. They lie
// in pages, which are Lua's memory and count as such.
//
// A finalizer per table would cost more than the table. Instead each page has a weak table of the
// root tables of its boxes, and once per cycle of the collector the boxes whose table is gone let
// go of their objects, together.
#pragma once

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MW_BOX_SECTIONS = 4 };  // members of a root that are lazy; further ones are decoded at once

struct mw_object;

struct mw_part {
  uint64_t served;  // one bit per member, in document order
  uint32_t offset;  // of the '{' in the JSON
  uint8_t misses;   // how often a key was looked for in vain
  bool metadata;
  bool stored;  // a section: its table is in that of the root
};

struct mw_box {
  struct mw_box_page *page;
  struct mw_object *object;  // +1; NULL: the box is free
  uint8_t sections;          // in use: part[1] to part[sections]
  bool begun;                // since it has this object, something of it was unpacked
  bool forgotten;            // the next push makes another table
  struct mw_part part[1 + MW_BOX_SECTIONS];
};

struct mw_boxes {
  struct mw_box_page **pages;
  uint32_t page_count, page_cap;
  uint32_t open;                // pages before this one have no free box
  struct mw_box_memo *memo;     // object -> box, open addressing
  uint32_t memo_cap;            // a power of two
  uint32_t used;                // entries in memo
  int weak, sentry, sentry_mt;  // references in the registry
  bool closed;
};

// Raises.
void mw_boxes_open(lua_State *L, struct mw_boxes *b);
// Lets go of all objects. Tables that are still there must not be read any more.
void mw_boxes_close(struct mw_boxes *b);

// The boxes that a box is one of.
struct mw_boxes *mw_box_owner(const struct mw_box *box);
// Pushes the table of o and returns true, or pushes nothing.
bool mw_boxes_push(lua_State *L, const struct mw_boxes *b, const struct mw_object *o);
// Gives the table on top, new and with room for another key, to o: it gets a box, with its own +1,
// under `key`. Raises when there is no memory; nothing is held then.
void mw_boxes_claim(lua_State *L, struct mw_boxes *b, struct mw_object *o, const void *key);
