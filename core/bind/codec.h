// SPDX-License-Identifier: Apache-2.0
// The lossless codec between JSON bytes and Lua tables.
//
// Arrays and objects keep their identity by metatable (kube.array, kube.object), also when empty.
// null is lightuserdata NULL (the value of cjson.null). Integers up to 2^53 are numbers; larger
// ones, and numbers whose text a double would not give back, are int64/uint64 cdata or, beyond
// that, keep their text (kube.number). Encoding what was decoded gives an equal document.
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

struct lua_State;

// Sets up the metatables in a new state. Raises.
void mw_codec_open(struct lua_State *L);

// Pushes the value that `json` holds. json is valid JSON (already scanned). Raises only when out of
// memory; malformed input pushes nothing and returns a negative error.
int mw_codec_push(struct lua_State *L, struct mw_slice json, struct mw_err *err);

// Appends the value at idx as JSON. Completes lazy tables on the way. Fails with the path of the
// value that cannot be written (a function, a table with mixed keys, NaN, nesting over the limit).
int mw_codec_encode(struct lua_State *L, int idx, struct mw_buf *out, struct mw_err *err);
