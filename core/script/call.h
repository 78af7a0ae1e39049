// SPDX-License-Identifier: Apache-2.0
// The one protected way from C into Lua for functions that may not await: index functions,
// transforms, filters, metamethod helpers.
#pragma once

#include "base/err.h"

struct lua_State;

// Calls the function below nargs arguments on top of L, protected, with the watchdog armed. On
// success nresults values are left and 0 is returned; else the stack is as before the function was
// pushed and err (MW_ESCRIPT) holds the message with its traceback, cut to fit. An attempt to await
// inside is such an error.
int mw_script_call(struct lua_State *L, int nargs, int nresults, struct mw_err *err);
// The same; `as`, such as "an index function", says in messages what the function is.
int mw_script_call_as(struct lua_State *L, const char *as, int nargs, int nresults,
                      struct mw_err *err);

// The message of the error value at idx as text: strings as they are, tables by __tostring, or by
// their code and message, or with a few of their fields.
// Borrowed from the stack slot it pushes; never NULL. Pushes exactly one value.
const char *mw_script_error_text(struct lua_State *L, int idx);

enum { MW_SCRIPT_PLACE = 96 };

// Writes "script.lua:12", the innermost place of the stack that is not part of lua/kube; else the
// innermost; "" if there is none. Allocates nothing, so an allocator may call it.
void mw_script_place(struct lua_State *L, char out[MW_SCRIPT_PLACE]);
// Pushes the same, but "" where all is part of lua/kube.
void mw_script_where(struct lua_State *L);
