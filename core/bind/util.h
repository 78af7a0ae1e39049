// SPDX-License-Identifier: Apache-2.0
// Small helpers that every binding needs. All may raise.
#pragma once

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

// The string at idx as a slice; raises for anything else. Valid while the value is on the stack.
struct mw_slice mw_bind_slice(lua_State *L, int idx);

// Fields of an options table at idx, which is not negative. Absent gives the default; a wrong type
// raises with the name, behind the name of the function when the table has it in its field `what`.
// A string stays valid while the table holds it.
const char *mw_bind_opt_string(lua_State *L, int idx, const char *field, const char *fallback);
bool mw_bind_opt_bool(lua_State *L, int idx, const char *field, bool fallback);
// Numbers outside [min, max] and NaN raise with the name and the range; a count must be whole, too.
double mw_bind_opt_number(lua_State *L, int idx, const char *field, double fallback, double min,
                          double max);
long mw_bind_opt_count(lua_State *L, int idx, const char *field, long fallback, long min, long max);
// A duration: 0 to MW_BIND_SECONDS_MAX.
#define MW_BIND_SECONDS_MAX 1e9
double mw_bind_opt_seconds(lua_State *L, int idx, const char *field, double fallback);

// Raises misuse of an option of the table at idx, of which the format tells.
int mw_bind_opt_misuse(lua_State *L, int idx, const char *fmt, ...);

// Raises unless the text at idx can name a namespace, or is "" for all of them. what names the
// option or argument.
void mw_bind_check_namespace(lua_State *L, int idx, const char *what);

// Makes the metatable of structured errors and pushes it (kube._core.error_meta).
void mw_bind_error_open(lua_State *L);
// Pushes "script.lua:12: ", the place nearest to the top of the stack that is not ours; "" if none.
void mw_bind_where(lua_State *L);
// Pushes err as a structured Lua error: {code=, message=, status=}; no status without a response.
void mw_bind_push_error(lua_State *L, const struct mw_err *err);
// Raises err so, with where= the place in the script.
int mw_bind_raise(lua_State *L, const struct mw_err *err);
// Raises misuse of the API as text that begins with the place in the script. The format is that of
// lua_pushfstring.
int mw_bind_misuse(lua_State *L, const char *fmt, ...);

// What is at idx, for messages: "a number", "nothing". May push what it returns.
const char *mw_bind_kind(lua_State *L, int idx);

// Pushes a userdata with so many empty buffers: Lua owns them, because pushing their content may
// raise.
struct mw_buf *mw_bind_push_buffers(lua_State *L, size_t count, size_t limit);

// Boxed pointers: a userdata of type `type` that holds one pointer.
void mw_bind_new_type(lua_State *L, const char *type, const luaL_Reg *methods, lua_CFunction gc);
void **mw_bind_new_box(lua_State *L, const char *type, void *pointer);
// The pointer of the box at idx; raises for another type and for a closed box (NULL).
void *mw_bind_check_box(lua_State *L, int idx, const char *type);
