// SPDX-License-Identifier: Apache-2.0
// What the codec's files and its binding share. Private to core/bind.
#pragma once

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "wire/json.h"

enum { MW_TCDATA = LUA_TTHREAD + 2 };  // lua_type() of LuaJIT's cdata

// One per state, a userdata in the registry. Its environment holds the values below.
struct mw_codec {
  const void *array_mt;  // lua_topointer() of the metatables: identity is a pointer comparison
  const void *object_mt;
  const void *number_mt;
  int64_t i64;   // the cells behind MW_CODEC_INT64 and MW_CODEC_UINT64: the way of 64-bit integers
  uint64_t u64;  // between C and cdata
};

enum mw_codec_slot {
  MW_CODEC_ARRAY = 1,  // metatables
  MW_CODEC_OBJECT,
  MW_CODEC_NUMBER,
  MW_CODEC_INT64,  // FFI pointers to the cells
  MW_CODEC_UINT64,
  MW_CODEC_ISTYPE,  // ffi.istype, and the types to ask it for
  MW_CODEC_TYPE_INT64,
  MW_CODEC_TYPE_UINT64,
  MW_CODEC_FFI,  // the module itself: LuaJIT's own state must not outlive it
};

struct mw_codec *mw_codec_of(lua_State *L);
// Pushes what the slot holds.
void mw_codec_slot(lua_State *L, enum mw_codec_slot slot);
// Sets the array or object metatable of the table on top of the stack.
void mw_codec_mark(lua_State *L, enum mw_codec_slot slot);

// Whether the table at idx (not negative) is an array: by its mark, or by its first key. Neither
// makes it an object.
bool mw_codec_is_array(lua_State *L, int idx);

// Pushes the value at the cursor and consumes it. Raises only when out of memory; an error pushes
// nothing and leaves the cursor at the offending byte.
int mw_codec_read(lua_State *L, struct mw_json *c) __attribute__((warn_unused_result));
// Pushes a string of JSON, unescaped.
int mw_codec_push_string(lua_State *L, struct mw_slice raw, bool escaped)
    __attribute__((warn_unused_result));
// Pushes a number literal as number, cdata or kube.number, whichever keeps it whole.
void mw_codec_push_number(lua_State *L, struct mw_slice text, bool is_int);
void mw_codec_push_int64(lua_State *L, int64_t i);
void mw_codec_push_uint64(lua_State *L, uint64_t u);
// MW_CODEC_INT64 or MW_CODEC_UINT64 when the cdata at idx is one, with its value in that cell; else
// 0. Raises only when out of memory.
int mw_codec_integer(lua_State *L, int idx);
// The literal of the kube.number at idx; p is NULL for any other value.
struct mw_slice mw_codec_literal(lua_State *L, int idx);

static inline int mw_absindex(lua_State *L, int idx) {
  return idx < 0 && idx > LUA_REGISTRYINDEX ? lua_gettop(L) + idx + 1 : idx;
}
