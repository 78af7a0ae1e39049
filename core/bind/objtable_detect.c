// SPDX-License-Identifier: Apache-2.0
// The mutation detector: cached objects are read-only by contract, and this tells who broke it.
// Every root table handed out is compared with a fresh decode of its object.
#include <stdio.h>

#include "bind/codec.h"
#include "bind/codec_internal.h"
#include "bind/objtable_internal.h"
#include "cache/object.h"

enum { FINDINGS_MAX = 100, PATH_SIZE = 512 };

struct search {
  lua_State *L;
  struct mw_slice key;  // of the object
  int findings;         // stack index of the result
  int count;
  char path[PATH_SIZE];
};

static void report(struct search *s) {
  if (s->count == FINDINGS_MAX) return;
  lua_pushlstring(s->L, s->key.p, s->key.n);
  lua_pushfstring(s->L, "%s: %s", lua_tostring(s->L, -1), s->path[0] != '\0' ? s->path : ".");
  lua_rawseti(s->L, s->findings, ++s->count);
  lua_pop(s->L, 1);
}

// Adds the key at idx to the path, which ended at `at`; returns where it ends now. A path that is
// too long is cut.
static size_t descend(struct search *s, size_t at, int idx) {
  bool number = lua_type(s->L, idx) == LUA_TNUMBER;
  lua_pushvalue(s->L, idx);  // lua_tostring() would change the key itself
  const char *text = lua_tostring(s->L, -1);
  const char *format = number ? "%s[%s]" : "%s.%s";
  size_t room = sizeof s->path - at;
  int n = snprintf(s->path + at, room, at > 0 || number ? format : "%s%s", "",
                   text != NULL ? text : "?");
  lua_pop(s->L, 1);
  return n < 0 || (size_t)n >= room ? sizeof s->path - 1 : at + (size_t)n;
}

static void compare(struct search *s, int seen, int fresh, size_t at);

// Whether the table at `other` has no value for the key at idx.
static bool is_absent(lua_State *L, int other, int idx) {
  lua_pushvalue(L, idx);
  lua_rawget(L, other);
  bool absent = lua_isnil(L, -1);
  lua_pop(L, 1);
  return absent;
}

static void compare_tables(struct search *s, int seen, int fresh, size_t at) {
  lua_State *L = s->L;
  mw_objtable_complete(L, seen);
  for (lua_pushnil(L); lua_next(L, fresh); lua_pop(L, 1)) {  // [key, value]
    int value = lua_gettop(L);
    lua_pushvalue(L, value - 1);
    lua_rawget(L, seen);
    compare(s, value + 1, value, descend(s, at, value - 1));
    lua_pop(L, 1);
  }
  for (lua_pushnil(L); lua_next(L, seen); lua_pop(L, 1)) {
    int key = lua_gettop(L) - 1;
    if (!is_absent(L, fresh, key)) continue;
    descend(s, at, key);
    report(s);
  }
  s->path[at] = '\0';
}

// lua_equal() knows two cdata as equal only when they are the same one.
static bool is_equal(lua_State *L, int a, int b) {
  if (lua_type(L, a) != MW_TCDATA || lua_type(L, b) != MW_TCDATA) return lua_equal(L, a, b);
  const struct mw_codec *codec = mw_codec_of(L);
  int type = mw_codec_integer(L, a);
  int64_t i64 = codec->i64;
  uint64_t u64 = codec->u64;
  if (type == 0 || mw_codec_integer(L, b) != type) return false;
  return type == MW_CODEC_INT64 ? i64 == codec->i64 : u64 == codec->u64;
}

// `fresh` was decoded from JSON, so it is neither cyclic nor deeper than JSON may be.
static void compare(struct search *s, int seen, int fresh, size_t at) {
  luaL_checkstack(s->L, 12, NULL);
  if (lua_istable(s->L, seen) && lua_istable(s->L, fresh)) {
    compare_tables(s, seen, fresh, at);
  } else if (!is_equal(s->L, seen, fresh)) {
    report(s);
  }
  s->path[at] = '\0';
}

// Compares the root table at idx with its object.
static void check(struct search *s, int idx) {
  lua_State *L = s->L;
  struct mw_object *o = mw_objtable_object(L, idx);
  if (o == NULL) return;
  s->key = mw_object_key(o);
  s->path[0] = '\0';
  struct mw_slice json = mw_object_json(o, mw_objtable_unpacker(L));
  if (json.p == NULL || mw_codec_push(L, json, NULL) < 0) return;
  compare(s, idx, lua_gettop(L), 0);
  lua_pop(L, 1);
}

// Checks the tables in the set at `from`; those without findings go into the set at `to`.
static void check_all(struct search *s, int from, int to) {
  lua_State *L = s->L;
  for (lua_pushnil(L); lua_next(L, from); lua_pop(L, 1)) {  // [table, true]
    int table = lua_gettop(L) - 1;
    int before = s->count;
    check(s, table);
    if (s->count > before) continue;
    lua_pushvalue(L, table);
    lua_pushboolean(L, 1);
    lua_rawset(L, to);
  }
}

void mw_objtable_mutations(lua_State *L) {
  luaL_checkstack(L, 12, NULL);
  struct search s = {.L = L};
  lua_newtable(L);
  s.findings = lua_gettop(L);
  mw_objtable_slot(L, MW_OBJTABLE_WATCHED);
  mw_objtable_slot(L, MW_OBJTABLE_AGED);
  lua_newtable(L);  // [findings, watched, aged, still clean]
  int clean = lua_gettop(L);
  lua_getmetatable(L, clean - 1);
  lua_setmetatable(L, clean);
  check_all(&s, clean - 2, clean);
  check_all(&s, clean - 1, clean);
  mw_objtable_set_slot(L, MW_OBJTABLE_AGED);
  lua_newtable(L);
  mw_objtable_set_slot(L, MW_OBJTABLE_WATCHED);
  lua_settop(L, s.findings);
}
