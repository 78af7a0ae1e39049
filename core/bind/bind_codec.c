// SPDX-License-Identifier: Apache-2.0
// kube._core.codec: JSON and object tables for lua/kube.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/number.h"
#include "bind/bind.h"
#include "bind/codec.h"
#include "bind/codec_internal.h"
#include "bind/get.h"
#include "bind/objtable_internal.h"
#include "bind/util.h"
#include "cache/object.h"
#include "wire/duplicates.h"
#include "wire/item.h"

enum {
  COPY_VALUES_MAX = 4 * 1024 * 1024,  // C code cannot be interrupted, so it must end by itself
  BUFFER_KEPT = 256 * 1024,           // a larger one is given back after use
  LIST_SIZE_MAX = 512 * 1024 * 1024,  // what encode_sorted writes: whole lists
  DUPLICATES_MAX = 100,               // as many as the API server tells
};

static int codec_decode(lua_State *L) {
  struct mw_err err;
  if (lua_type(L, 1) != LUA_TSTRING) {
    return mw_bind_misuse(L, "kube.json.decode() takes a string, not %s", mw_bind_kind(L, 1));
  }
  if (mw_codec_push(L, mw_bind_slice(L, 1), &err) < 0) {
    return mw_bind_misuse(L, "kube.json.decode(): %s", err.message);
  }
  return 1;
}

// The upvalue is the buffer.
static int codec_encode(lua_State *L) {
  if (lua_isnone(L, 1)) return mw_bind_misuse(L, "kube.json.encode() takes a value");
  struct mw_buf *buffer = lua_touserdata(L, lua_upvalueindex(1));
  struct mw_err err;
  mw_buf_reset(buffer);
  if (mw_codec_encode(L, 1, buffer, &err) < 0) {
    return mw_bind_misuse(L, "kube.json.encode(): %s", err.message);
  }
  lua_pushlstring(L, buffer->p, buffer->n);
  if (buffer->cap > BUFFER_KEPT) mw_buf_deinit(buffer);
  return 1;
}

// encode_sorted(value): as Go's encoder writes a map. The upvalue holds two buffers.
static int codec_encode_sorted(lua_State *L) {
  if (lua_isnone(L, 1)) return mw_bind_misuse(L, "encode_sorted() takes a value");
  struct mw_buf *buffer = lua_touserdata(L, lua_upvalueindex(1));
  struct mw_buf *scratch = buffer + 1;
  struct mw_err err;
  mw_buf_reset(buffer);
  mw_buf_reset(scratch);
  if (mw_codec_encode_sorted(L, 1, buffer, scratch, &err) < 0) {
    return mw_bind_misuse(L, "encode_sorted(): %s", err.message);
  }
  lua_pushlstring(L, buffer->p, buffer->n);
  if (buffer->cap > BUFFER_KEPT) mw_buf_deinit(buffer);
  if (scratch->cap > BUFFER_KEPT) mw_buf_deinit(scratch);
  return 1;
}

// hash(text): 16 digits, the same for equal texts in this process.
static int codec_hash(lua_State *L) {
  struct mw_slice text = mw_bind_slice(L, 1);
  uint32_t low = mw_hash(text);
  lua_pushlstring(L, (const char *)&low, sizeof low);
  lua_pushvalue(L, 1);
  lua_concat(L, 2);
  char digits[17];
  snprintf(digits, sizeof digits, "%08" PRIx32 "%08" PRIx32, mw_hash(mw_bind_slice(L, -1)), low);
  lua_pushstring(L, digits);
  return 1;
}

// Paths, each with a NUL behind it: nothing may raise while the search goes on.
static void note_duplicate(void *ctx, struct mw_slice path) {
  struct mw_buf *paths = ctx;
  if (mw_buf_reserve(paths, path.n + 1) < 0) return;
  memcpy(paths->p + paths->n, path.p, path.n);
  paths->p[paths->n + path.n] = '\0';
  paths->n += path.n + 1;
}

// duplicates(text): an array with the paths of keys that an object has more than once, the first
// DUPLICATES_MAX of them; empty when there are none or the text is not JSON. The upvalue is a
// buffer.
static int codec_duplicates(lua_State *L) {
  struct mw_buf *buffer = lua_touserdata(L, lua_upvalueindex(1));
  mw_buf_reset(buffer);
  int rc = mw_json_duplicates(mw_bind_slice(L, 1), DUPLICATES_MAX, note_duplicate, buffer);
  lua_newtable(L);
  int i = 0;
  for (size_t at = 0; rc == 0 && at < buffer->n;) {
    size_t n = strlen(buffer->p + at);
    lua_pushlstring(L, buffer->p + at, n);
    lua_rawseti(L, -2, ++i);
    at += n + 1;
  }
  if (buffer->cap > BUFFER_KEPT) mw_buf_deinit(buffer);
  return 1;
}

static int mark(lua_State *L, enum mw_codec_slot slot) {
  if (lua_isnoneornil(L, 1)) {
    lua_settop(L, 0);
    lua_newtable(L);
  }
  const char *name = slot == MW_CODEC_ARRAY ? "kube.array()" : "kube.object()";
  if (!lua_istable(L, 1))
    return mw_bind_misuse(L, "%s takes a table, not %s", name, mw_bind_kind(L, 1));
  lua_settop(L, 1);
  mw_objtable_require(L, 1);
  const struct mw_codec *codec = mw_codec_of(L);
  if (lua_getmetatable(L, 1)) {
    const void *mt = lua_topointer(L, -1);
    bool ours = mt == codec->array_mt || mt == codec->object_mt;
    if (!ours) return mw_bind_misuse(L, "%s: the table has a metatable of its own", name);
    lua_pop(L, 1);
  }
  mw_codec_mark(L, slot);
  return 1;
}

static int codec_array(lua_State *L) { return mark(L, MW_CODEC_ARRAY); }

static int codec_object(lua_State *L) { return mark(L, MW_CODEC_OBJECT); }

static int codec_is_array(lua_State *L) {
  lua_pushboolean(L, lua_istable(L, 1) && mw_codec_is_array(L, 1));
  return 1;
}

// int64(x): a number, a decimal string or a 64-bit integer, exactly.
static int codec_int64(lua_State *L) {
  struct mw_number number;
  switch (lua_type(L, 1)) {
    case LUA_TNUMBER: {
      double d = lua_tonumber(L, 1);
      bool whole = d >= -0x1p63 && d < 0x1p63 && d == trunc(d);
      if (!whole) return mw_bind_misuse(L, "kube.int64(): %f is not a 64-bit integer", d);
      mw_codec_push_int64(L, (int64_t)d);
      return 1;
    }
    case LUA_TSTRING:
      if (!mw_number_read_int(mw_bind_slice(L, 1), &number)) {
        return mw_bind_misuse(L, "kube.int64(): the string is not a 64-bit integer");
      }
      if (number.kind == MW_NUMBER_INT64) {
        mw_codec_push_int64(L, number.i);
      } else {
        mw_codec_push_uint64(L, number.u);
      }
      return 1;
    case MW_TCDATA:
      if (mw_codec_integer(L, 1) == 0) {
        return mw_bind_misuse(L, "kube.int64(): the value is not a 64-bit integer");
      }
      lua_settop(L, 1);
      return 1;
    default:
      return mw_bind_misuse(L, "kube.int64() takes a number or a string, not %s",
                            mw_bind_kind(L, 1));
  }
}

// number(text): a JSON number literal as the value that keeps it whole.
static int codec_number(lua_State *L) {
  struct mw_slice text = mw_bind_slice(L, 1);
  struct mw_json c = {text.p, text.p + text.n};
  struct mw_slice literal;
  bool is_int;
  bool valid = mw_json_number(&c, &literal, &is_int) == 0 && literal.n == text.n;
  luaL_argcheck(L, valid, 1, "not a JSON number");
  mw_codec_push_number(L, text, is_int);
  return 1;
}

// Pushes a deep copy of the table at idx with the marks of arrays and objects, and no other
// metatables.
static void copy_table(lua_State *L, int idx, unsigned depth, int *left) {
  if (depth > MW_JSON_DEPTH_MAX) {
    mw_bind_misuse(L, "cannot copy: nested deeper than %d levels (a table that contains itself?)",
                   MW_JSON_DEPTH_MAX);
  }
  luaL_checkstack(L, 12, NULL);
  mw_objtable_require(L, idx);
  lua_createtable(L, (int)lua_objlen(L, idx), 0);
  int copy = lua_gettop(L);
  if (lua_getmetatable(L, idx)) {
    const void *mt = lua_topointer(L, -1);
    const struct mw_codec *codec = mw_codec_of(L);
    if (mt == codec->array_mt || mt == codec->object_mt) {
      lua_setmetatable(L, copy);
    } else {
      lua_pop(L, 1);
    }
  }
  for (lua_pushnil(L); lua_next(L, idx);) {  // [copy, key, value]
    if (--*left < 0) mw_bind_misuse(L, "cannot copy: more than %d values", COPY_VALUES_MAX);
    lua_pushvalue(L, -2);
    if (lua_istable(L, -2)) {
      copy_table(L, lua_gettop(L) - 1, depth + 1, left);
    } else {
      lua_pushvalue(L, -2);
    }
    lua_rawset(L, copy);
    lua_pop(L, 1);
  }
}

// copy(o): of a cached object what the server sent, of any other value what it holds now. The copy
// of a partial object is one, too.
static int codec_copy(lua_State *L) {
  if (lua_isnone(L, 1)) return mw_bind_misuse(L, "kube.copy() takes a value");
  lua_settop(L, 1);
  if (!lua_istable(L, 1)) return 1;
  struct mw_slice json = mw_objtable_json(L, 1);
  if (json.p == NULL || mw_codec_push(L, json, NULL) < 0) {
    int left = COPY_VALUES_MAX;
    copy_table(L, 1, 1, &left);
  }
  if (mw_objtable_is_partial(L, 1)) mw_objtable_set_partial(L);
  return 1;
}

// is_partial(o): whether parts of what the server sent are missing in a cached object or its copy.
static int codec_is_partial(lua_State *L) {
  lua_pushboolean(L, mw_objtable_is_partial(L, 1));
  return 1;
}

// Pushes field `name` of the table on top if that is a string, else nil.
static const char *push_string_field(lua_State *L, const char *name) {
  lua_getfield(L, -1, name);
  return lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
}

// object_key(o): "namespace/name", or "name" without a namespace.
static int codec_object_key(lua_State *L) {
  if (!lua_istable(L, 1)) {
    return mw_bind_misuse(L, "kube.key() takes an object, not %s", mw_bind_kind(L, 1));
  }
  lua_settop(L, 1);
  const struct mw_object *o = mw_objtable_object(L, 1);
  if (o != NULL) {
    struct mw_slice key = mw_object_key(o);
    lua_pushlstring(L, key.p, key.n);
    return 1;
  }
  lua_getfield(L, 1, "metadata");
  if (!lua_istable(L, -1)) return mw_bind_misuse(L, "kube.key(): the object has no metadata");
  const char *ns = push_string_field(L, "namespace");
  lua_insert(L, -2);
  const char *name = push_string_field(L, "name");
  if (name == NULL) return mw_bind_misuse(L, "kube.key(): the object has no metadata.name");
  if (ns != NULL && ns[0] != '\0') lua_pushfstring(L, "%s/%s", ns, name);
  return 1;
}

// is_cached(value): whether it is the table of a cached object, which nobody may change.
static int codec_is_cached(lua_State *L) {
  lua_pushboolean(L, lua_istable(L, 1) && mw_objtable_object(L, 1) != NULL);
  return 1;
}

// mutation_detector(on)
static int codec_mutation_detector(lua_State *L) {
  mw_objtable_detect(L, lua_toboolean(L, 1));
  return 0;
}

// on_mutations(fn): fn(findings) is called when a task that changed cached objects has ended.
static int codec_on_mutations(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  mw_objtable_set_slot(L, MW_OBJTABLE_REPORT);
  return 0;
}

// mutations(): what was changed in cached objects since the last call.
static int codec_mutations(lua_State *L) {
  mw_objtable_mutations(L);
  return 1;
}

void mw_bind_codec(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"decode", codec_decode},
      {"array", codec_array},
      {"object", codec_object},
      {"is_array", codec_is_array},
      {"is_partial", codec_is_partial},
      {"int64", codec_int64},
      {"number", codec_number},
      {"get", mw_get},
      {"hash", codec_hash},
      {"copy", codec_copy},
      {"object_key", codec_object_key},
      {"is_cached", codec_is_cached},
      {"mutation_detector", codec_mutation_detector},
      {"mutations", codec_mutations},
      {"on_mutations", codec_on_mutations},
      {NULL, NULL},
  };
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  mw_bind_push_buffers(L, 1, MW_ITEM_SIZE_MAX);
  lua_pushcclosure(L, codec_encode, 1);
  lua_setfield(L, -2, "encode");
  mw_bind_push_buffers(L, 2, LIST_SIZE_MAX);
  lua_pushcclosure(L, codec_encode_sorted, 1);
  lua_setfield(L, -2, "encode_sorted");
  mw_bind_push_buffers(L, 1, LIST_SIZE_MAX);
  lua_pushcclosure(L, codec_duplicates, 1);
  lua_setfield(L, -2, "duplicates");
  lua_pushlightuserdata(L, NULL);
  lua_setfield(L, -2, "null");
}
