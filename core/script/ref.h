// SPDX-License-Identifier: Apache-2.0
// Counted references from C into a Lua state. Neither LeakSanitizer nor Lua sees a lost registry
// slot, so every one is counted (MW_LIVE_LUAREF) and the count must be zero when a state closes.
#pragma once

struct lua_State;

enum { MW_LUAREF_NONE = -2 };

// Pops the value on top of the stack and keeps it alive.
int mw_luaref_take(struct lua_State *L);
// Pushes the value again; nil for MW_LUAREF_NONE.
void mw_luaref_push(struct lua_State *L, int ref);
// Lets go and sets *ref to MW_LUAREF_NONE. Idempotent.
void mw_luaref_drop(struct lua_State *L, int *ref);
