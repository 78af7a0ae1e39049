// SPDX-License-Identifier: Apache-2.0
// Objects out of tables of a script, as the wire would have brought them.
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "cache/object.h"

struct lua_State;
struct mw_item_scanner;

// Begins as {0}. Objects that are made with one are packed alike.
struct mw_object_maker {
  struct mw_item_scanner *scanner;
  struct mw_packer *packer;
  struct mw_buf json;
};

void mw_object_maker_init(struct mw_object_maker *m);
void mw_object_maker_deinit(struct mw_object_maker *m);  // also of {0}
// The table at idx as an object, +1. is_new: none of its name is stored. Does not raise; NULL when
// it is no object.
struct mw_object *mw_object_make(struct mw_object_maker *m, struct lua_State *L, int idx,
                                 bool is_new, struct mw_err *err);
