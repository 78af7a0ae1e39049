// SPDX-License-Identifier: Apache-2.0
// Cached objects as Lua tables (D4): lazy by key on two levels. The root and its sections
// (metadata, spec, status, data...) decode one value when it is first read; everything deeper is a
// plain table. A write, pairs or next completes a lazy table first.
//
// Tables are memoised weakly per object (that is: per resourceVersion) and shared by all who read
// it. TRAP decided (S-STO-11, S-INF-70): they are read-only by contract, not by force, which every
// read would pay for; kube.copy gives one to change. Who wrote to one all the same changed what Lua
// sees of that version, never the cache or another script; MOONWATCH_MUTATION_DETECTOR=1 says
// where.
#pragma once

#include "base/slice.h"

struct lua_State;
struct mw_object;

// Sets up metatables, the memo, and the object-aware pairs, next, rawget, rawset, getmetatable,
// setmetatable, table.foreach and cjson.encode of this state. Raises. A state that never sees
// cached objects does without: in it no table is one, for the functions here and for the codec.
void mw_objtable_open(struct lua_State *L);

// Pushes the table of o; takes its own +1 as long as Lua holds the table.
void mw_objtable_push(struct lua_State *L, struct mw_object *o);

// The object behind the (root) table at idx, borrowed, or NULL for any other value.
struct mw_object *mw_objtable_object(struct lua_State *L, int idx);

// Decodes all that is still lazy in the table at idx, if it is one of ours. Its sections stay lazy.
void mw_objtable_complete(struct lua_State *L, int idx);

// The unpacker of this state, for reads that need no table. Object tables have one of their own:
// reading them does not disturb what was unpacked here.
struct mw_unpacker *mw_objtable_unpacker(struct lua_State *L);
