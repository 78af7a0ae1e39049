// SPDX-License-Identifier: Apache-2.0
// The lossless codec between JSON bytes and Lua tables.
//
// Arrays and objects keep their identity by metatable (kube.array, kube.object), also when empty.
// A table without one is an array when its first key is a number, else an object; mixed keys and
// holes are errors. null is lightuserdata NULL (the value of cjson.null) and stays what it is in
// every decoded table, cached objects included; only kube.get reads it as nil. Integers up to 2^53
// are numbers; larger ones are int64/uint64 cdata; numbers that a double would not give back keep
// their text (kube.number). Encoding what was decoded gives an equal document. Of equal keys in an
// object the last one counts.
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

struct lua_State;

// Sets up the metatables in a new state, and LuaJIT's FFI for the integers, which scripts do not
// get to see through this. Does nothing the second time. Raises.
void mw_codec_open(struct lua_State *L);

// Pushes the value that `json` holds. Raises only when out of memory; malformed input pushes
// nothing and returns a negative error with the offset.
int mw_codec_push(struct lua_State *L, struct mw_slice json, struct mw_err *err);

// Appends the value at idx as JSON. Completes lazy tables on the way; runs no metamethods. Raises
// only when out of memory. Fails with the path of the value that cannot be written (a function, a
// table with mixed keys, NaN, nesting over the limit); what was appended until then stays.
int mw_codec_encode(struct lua_State *L, int idx, struct mw_buf *out, struct mw_err *err);

// The same as Go writes a map: keys of objects in the order of their bytes, <, > and & escaped.
// scratch is room for keys, which must be empty and whose memory may be kept from call to call.
int mw_codec_encode_sorted(struct lua_State *L, int idx, struct mw_buf *out, struct mw_buf *scratch,
                           struct mw_err *err);
