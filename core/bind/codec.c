// SPDX-License-Identifier: Apache-2.0
// JSON to Lua, and what both directions share: the metatables that carry identity, and the exact
// numbers. Encoding is in codec_encode.c.
//
// No memory is shared between calls: a finalizer that runs while a value is being built finds
// nothing to disturb.
#include "bind/codec.h"

#include <inttypes.h>
#include <lualib.h>
#include <string.h>

#include "base/number.h"
#include "bind/codec_internal.h"

enum {
  BATCH = 16,        // members that wait on the stack, so that a table is made in its final size
  BATCH_DEPTH = 32,  // deeper tables are filled one by one: Lua's stack is not endless
  UNESCAPE_SMALL = 512,
};

static const char codec_key = 0;  // its address is the key in the registry

struct mw_codec *mw_codec_of(lua_State *L) {
  lua_pushlightuserdata(L, (void *)&codec_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  struct mw_codec *codec = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return codec;
}

void mw_codec_slot(lua_State *L, enum mw_codec_slot slot) {
  lua_pushlightuserdata(L, (void *)&codec_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  lua_getfenv(L, -1);
  lua_rawgeti(L, -1, slot);  // [codec, env, value]
  lua_replace(L, -3);
  lua_pop(L, 1);
}

void mw_codec_mark(lua_State *L, enum mw_codec_slot slot) {
  mw_codec_slot(L, slot);
  lua_setmetatable(L, -2);
}

struct mw_slice mw_codec_literal(lua_State *L, int idx) {
  struct mw_slice none = {NULL, 0};
  if (lua_type(L, idx) != LUA_TUSERDATA || !lua_getmetatable(L, idx)) return none;
  bool ours = lua_topointer(L, -1) == mw_codec_of(L)->number_mt;
  lua_pop(L, 1);
  return ours ? mw_slice(lua_touserdata(L, idx), lua_objlen(L, idx)) : none;
}

static int number_tostring(lua_State *L) {
  struct mw_slice text = mw_codec_literal(L, 1);
  lua_pushlstring(L, text.p, text.n);
  return 1;
}

static int number_eq(lua_State *L) {
  lua_pushboolean(L, mw_slice_eq(mw_codec_literal(L, 1), mw_codec_literal(L, 2)));
  return 1;
}

// Pushes the FFI. Opening it twice would forget the types of the first time, so one that is there
// is used; one that was not there is not left behind for scripts to find.
static void push_ffi(lua_State *L) {
  luaL_findtable(L, LUA_REGISTRYINDEX, "_LOADED", 4);
  lua_getfield(L, -1, LUA_FFILIBNAME);
  if (!lua_istable(L, -1)) {
    lua_pop(L, 1);
    lua_pushcfunction(L, luaopen_ffi);
    lua_pushliteral(L, LUA_FFILIBNAME);
    lua_call(L, 1, 1);
    lua_pushnil(L);
    lua_setfield(L, -3, LUA_FFILIBNAME);  // [loaded, ffi]
  }
  lua_remove(L, -2);
}

// ffi.cast("<type> *", cell) into the environment at env.
static void add_cell(lua_State *L, int ffi, int env, const char *type, void *cell,
                     enum mw_codec_slot slot) {
  lua_getfield(L, ffi, "cast");
  lua_pushstring(L, type);
  lua_pushlightuserdata(L, cell);
  lua_call(L, 2, 1);
  lua_rawseti(L, env, slot);
}

static void add_type(lua_State *L, int ffi, int env, const char *type, enum mw_codec_slot slot) {
  lua_getfield(L, ffi, "typeof");
  lua_pushstring(L, type);
  lua_call(L, 1, 1);
  lua_rawseti(L, env, slot);
}

static void add_integers(lua_State *L, struct mw_codec *codec, int env) {
  push_ffi(L);
  int ffi = lua_gettop(L);
  add_cell(L, ffi, env, "int64_t *", &codec->i64, MW_CODEC_INT64);
  add_cell(L, ffi, env, "uint64_t *", &codec->u64, MW_CODEC_UINT64);
  add_type(L, ffi, env, "int64_t", MW_CODEC_TYPE_INT64);
  add_type(L, ffi, env, "uint64_t", MW_CODEC_TYPE_UINT64);
  lua_getfield(L, ffi, "istype");
  lua_rawseti(L, env, MW_CODEC_ISTYPE);
  lua_rawseti(L, env, MW_CODEC_FFI);
}

// A new metatable with a name for messages, into the environment at env.
static const void *add_metatable(lua_State *L, int env, const char *name, enum mw_codec_slot slot) {
  lua_createtable(L, 0, 4);
  lua_pushstring(L, name);
  lua_setfield(L, -2, "__name");
  const void *identity = lua_topointer(L, -1);
  lua_rawseti(L, env, slot);
  return identity;
}

void mw_codec_open(lua_State *L) {
  if (mw_codec_of(L) != NULL) return;
  luaL_checkstack(L, 10, NULL);
  struct mw_codec *codec = lua_newuserdata(L, sizeof *codec);
  *codec = (struct mw_codec){0};
  lua_createtable(L, MW_CODEC_FFI, 0);  // [codec, env]
  int env = lua_gettop(L);
  codec->array_mt = add_metatable(L, env, "kube.array", MW_CODEC_ARRAY);
  codec->object_mt = add_metatable(L, env, "kube.object", MW_CODEC_OBJECT);
  codec->number_mt = add_metatable(L, env, "kube.number", MW_CODEC_NUMBER);
  static const luaL_Reg number[] = {
      {"__tostring", number_tostring},
      {"__eq", number_eq},
      {NULL, NULL},
  };
  lua_rawgeti(L, env, MW_CODEC_NUMBER);
  luaL_register(L, NULL, number);
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_pop(L, 1);
  add_integers(L, codec, env);
  lua_setfenv(L, -2);  // [codec]
  lua_pushlightuserdata(L, (void *)&codec_key);
  lua_insert(L, -2);
  lua_rawset(L, LUA_REGISTRYINDEX);
}

// Pushes what the cell behind the slot's pointer holds now, as cdata.
static void push_cell(lua_State *L, enum mw_codec_slot slot) {
  mw_codec_slot(L, slot);
  lua_pushinteger(L, 0);
  lua_gettable(L, -2);
  lua_remove(L, -2);
}

void mw_codec_push_int64(lua_State *L, int64_t i) {
  mw_codec_of(L)->i64 = i;
  push_cell(L, MW_CODEC_INT64);
}

void mw_codec_push_uint64(lua_State *L, uint64_t u) {
  mw_codec_of(L)->u64 = u;
  push_cell(L, MW_CODEC_UINT64);
}

static bool is_type(lua_State *L, int idx, enum mw_codec_slot type) {
  mw_codec_slot(L, MW_CODEC_ISTYPE);
  mw_codec_slot(L, type);
  lua_pushvalue(L, idx);
  lua_call(L, 2, 1);
  bool yes = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return yes;
}

int mw_codec_integer(lua_State *L, int idx) {
  idx = mw_absindex(L, idx);
  int slot = is_type(L, idx, MW_CODEC_TYPE_INT64)    ? MW_CODEC_INT64
             : is_type(L, idx, MW_CODEC_TYPE_UINT64) ? MW_CODEC_UINT64
                                                     : 0;
  if (slot == 0) return 0;
  mw_codec_slot(L, slot);
  lua_pushinteger(L, 0);
  lua_pushvalue(L, idx);
  lua_settable(L, -3);
  lua_pop(L, 1);
  return slot;
}

void mw_codec_push_number(lua_State *L, struct mw_slice text, bool is_int) {
  struct mw_number number = mw_number_read(text, is_int);
  switch (number.kind) {
    case MW_NUMBER_DOUBLE:
      lua_pushnumber(L, number.d);
      return;
    case MW_NUMBER_INT64:
      mw_codec_push_int64(L, number.i);
      return;
    case MW_NUMBER_UINT64:
      mw_codec_push_uint64(L, number.u);
      return;
    case MW_NUMBER_TEXT:
      memcpy(lua_newuserdata(L, text.n), text.p, text.n);
      mw_codec_mark(L, MW_CODEC_NUMBER);
      return;
  }
}

// What is unescaped is never longer than it was, so the room is known; Lua owns it where the C
// stack is too small, because pushing may raise.
int mw_codec_push_string(lua_State *L, struct mw_slice raw, bool escaped) {
  if (!escaped) {
    lua_pushlstring(L, raw.p, raw.n);
    return 0;
  }
  char small[UNESCAPE_SMALL];
  bool large = raw.n >= sizeof small;
  char *room = large ? lua_newuserdata(L, raw.n + 1) : small;
  struct mw_buf plain = {.p = room, .cap = raw.n + 1, .limit = raw.n};
  int rc = mw_json_unescape(raw, &plain);
  if (rc == 0) lua_pushlstring(L, plain.p, plain.n);
  if (large) lua_remove(L, rc == 0 ? -2 : -1);
  return rc;
}

struct reader {
  lua_State *L;
  struct mw_json *c;
  int array_mt;  // stack slots
  int object_mt;
};

static int read_value(struct reader *r, unsigned depth);

// Moves the n values (or 2n keys and values) above `table` into it; makes it first if need be.
static void flush(struct reader *r, int table, int done, int n, bool object) {
  lua_State *L = r->L;
  if (lua_isnil(L, table)) {
    lua_createtable(L, object ? 0 : n, object ? n : 0);
    lua_pushvalue(L, object ? r->object_mt : r->array_mt);
    lua_setmetatable(L, -2);
    lua_replace(L, table);
  }
  for (int i = 0; i < n; i++) {
    if (object) {
      lua_pushvalue(L, table + 1 + 2 * i);
      lua_pushvalue(L, table + 2 + 2 * i);
      lua_rawset(L, table);
    } else {
      lua_pushvalue(L, table + 1 + i);
      lua_rawseti(L, table, done + i + 1);
    }
  }
  lua_settop(L, table);
}

// 1: the next member's key is pushed, or an element follows; 0: the container has ended.
static int read_next(struct reader *r, bool object, bool *first) {
  if (!object) return mw_json_element(r->c, first);
  struct mw_slice key;
  bool escaped;
  int rc = mw_json_member(r->c, first, &key, &escaped);
  if (rc <= 0) return rc;
  rc = mw_codec_push_string(r->L, key, escaped);
  return rc < 0 ? rc : 1;
}

static int read_container(struct reader *r, bool object, unsigned depth) {
  lua_State *L = r->L;
  if (depth > MW_JSON_DEPTH_MAX || !lua_checkstack(L, 2 * BATCH + 6)) return MW_ELIMIT;
  const int batch = depth < BATCH_DEPTH ? BATCH : 1;
  int rc = mw_json_enter(r->c);
  if (rc < 0) return rc;
  lua_pushnil(L);
  const int table = lua_gettop(L);
  bool first = true;
  int done = 0;
  int n = 0;
  while ((rc = read_next(r, object, &first)) > 0) {
    rc = read_value(r, depth + 1);
    if (rc < 0) return rc;
    if (++n < batch) continue;
    flush(r, table, done, n, object);
    done += n;
    n = 0;
  }
  if (rc == 0) flush(r, table, done, n, object);
  return rc;
}

static int read_string(struct reader *r) {
  struct mw_slice raw;
  bool escaped;
  int rc = mw_json_string(r->c, &raw, &escaped);
  return rc < 0 ? rc : mw_codec_push_string(r->L, raw, escaped);
}

static int read_number(struct reader *r) {
  struct mw_slice text;
  bool is_int;
  int rc = mw_json_number(r->c, &text, &is_int);
  if (rc == 0) mw_codec_push_number(r->L, text, is_int);
  return rc;
}

static int read_value(struct reader *r, unsigned depth) {
  enum mw_json_kind kind = mw_json_peek(r->c);
  int rc;
  switch (kind) {
    case MW_JSON_OBJECT:
    case MW_JSON_ARRAY:
      return read_container(r, kind == MW_JSON_OBJECT, depth);
    case MW_JSON_STRING:
      return read_string(r);
    case MW_JSON_NUMBER:
      return read_number(r);
    case MW_JSON_TRUE:
    case MW_JSON_FALSE:
      rc = mw_json_skip(r->c);
      if (rc == 0) lua_pushboolean(r->L, kind == MW_JSON_TRUE);
      return rc;
    case MW_JSON_NULL:
      rc = mw_json_skip(r->c);
      if (rc == 0) lua_pushlightuserdata(r->L, NULL);
      return rc;
    case MW_JSON_NONE:
    default:
      return MW_EPARSE;
  }
}

int mw_codec_read(lua_State *L, struct mw_json *c) {
  int top = lua_gettop(L);
  if (!lua_checkstack(L, 8)) return MW_ELIMIT;
  struct reader r = {.L = L, .c = c};
  enum mw_json_kind kind = mw_json_peek(c);
  bool scalar = kind != MW_JSON_OBJECT && kind != MW_JSON_ARRAY;
  if (!scalar) {
    mw_codec_slot(L, MW_CODEC_ARRAY);
    mw_codec_slot(L, MW_CODEC_OBJECT);
    r.array_mt = top + 1;
    r.object_mt = top + 2;
  }
  int rc = read_value(&r, 1);
  if (rc < 0) {
    lua_settop(L, top);
  } else if (!scalar) {
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
  }
  return rc;
}

int mw_codec_push(lua_State *L, struct mw_slice json, struct mw_err *err) {
  struct mw_json c = {json.p, json.p + json.n};
  int rc = mw_codec_read(L, &c);
  if (rc == 0) {
    mw_json_peek(&c);
    if (c.p == c.end) return 0;
    lua_pop(L, 1);
    rc = MW_EPARSE;
  }
  size_t offset = (size_t)(c.p - json.p);
  if (rc == MW_ELIMIT) {
    return mw_err_set(err, rc, "JSON nested deeper than %d levels at byte %zu", MW_JSON_DEPTH_MAX,
                      offset);
  }
  return mw_err_set(err, rc, "malformed JSON at byte %zu", offset);
}
