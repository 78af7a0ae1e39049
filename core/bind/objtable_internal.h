// SPDX-License-Identifier: Apache-2.0
// What the files of objtable share with each other and with the codec. Private to core/bind.
#pragma once

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>

#include "base/slice.h"
#include "bind/objtable.h"

enum mw_objtable_slot {
  MW_OBJTABLE_COMPLETED = 1,  // completed root table -> its box; weak keys
  MW_OBJTABLE_WATCHED,        // task -> its record, for the mutation detector
  MW_OBJTABLE_AGED,           // root table, looked at before -> the record it was in; weak keys
  MW_OBJTABLE_SPOILT,         // set of root tables that were reported; weak keys
  MW_OBJTABLE_REPORT,         // the function that gets the findings, or false
  MW_OBJTABLE_PARTIAL,        // set of copies of partial objects; weak keys
  MW_OBJTABLE_LAZY,           // the lazy metatables: of roots, then of sections by number
};

// Pushes what the slot of this state holds.
void mw_objtable_slot(lua_State *L, int slot);
// Pops the value that the slot is to hold.
void mw_objtable_set_slot(lua_State *L, int slot);

// The object that the root table at idx stands for, when that was never read; NULL otherwise.
struct mw_object *mw_objtable_unread(lua_State *L, int idx);
// True when it was never read: then *json is what it stands for, valid until the next read of any
// object table.
bool mw_objtable_untouched(lua_State *L, int idx, struct mw_slice *json);
// The JSON of the object behind the root table at idx, with the same validity; p is NULL for any
// other value and for an object that cannot be unpacked.
struct mw_slice mw_objtable_json(lua_State *L, int idx);

// Whether the table at idx is a partial object (mw_object_partial), or a copy of one.
bool mw_objtable_is_partial(lua_State *L, int idx);
// Notes that the table on top is a copy of a partial object.
void mw_objtable_set_partial(lua_State *L);

// Completes the table at idx (positive) if it is lazy; raises when its bytes are damaged.
void mw_objtable_require(lua_State *L, int idx);
bool mw_objtable_is_lazy(lua_State *L, int idx);

// Replaces pairs, next ... of this state.
void mw_objtable_wrap(lua_State *L);

// The mutation detector (objtable_detect.c). A record has the root tables that one task was given
// as its keys, and what is known of the task: n, task, trigger, function.
//
// On: every table that is pushed is noted, whichever task runs.
void mw_objtable_detect(lua_State *L, bool on);
// The flag that says whether tables are noted now; it lives as long as the state.
bool *mw_objtable_gate(lua_State *L);
// Notes the root table on top for the task that runs, if one does.
void mw_objtable_watch(lua_State *L);
// Takes the table at idx, which was changed, out of the memo: the next read makes a fresh one.
void mw_objtable_forget(lua_State *L, int idx);
// Pushes an array of { key =, path =, task =, trigger =, function = }, one for each place where a
// table differs from its object. Each table is reported once.
void mw_objtable_mutations(lua_State *L);
// Looks at the tables of tasks when they end: of all, or of one in 100, as the environment has it
// (MOONWATCH_MUTATION_DETECTOR). Findings go to the function in MW_OBJTABLE_REPORT.
void mw_objtable_sample(lua_State *L);
