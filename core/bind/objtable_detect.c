// SPDX-License-Identifier: Apache-2.0
// The mutation detector: cached objects are read-only by contract, and this tells who broke it.
// Root tables that a task was given are compared with a fresh decode of their objects when it ends.
// That costs as much as the task's own reads did, so only some tasks are looked at unless
// MOONWATCH_MUTATION_DETECTOR asks for all; then tables are looked at again as long as they live.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bind/codec.h"
#include "bind/codec_internal.h"
#include "bind/objtable_internal.h"
#include "cache/object.h"
#include "script/call.h"
#include "script/sched.h"

enum { FINDINGS_MAX = 100, PATH_SIZE = 512, SAMPLE_EVERY = 100, SAMPLE_TABLES = 256 };

struct search {
  lua_State *L;
  struct mw_slice key;  // of the object
  int findings;         // stack index of the result
  int record;           // stack index of the record that the table is in
  int count;
  char path[PATH_SIZE];
};

static void report(struct search *s) {
  static const char *const known[] = {"task", "trigger", "function"};
  lua_State *L = s->L;
  if (s->count == FINDINGS_MAX) return;
  lua_createtable(L, 0, 5);  // [finding]
  lua_pushlstring(L, s->key.p, s->key.n);
  lua_setfield(L, -2, "key");
  lua_pushstring(L, s->path[0] != '\0' ? s->path : ".");
  lua_setfield(L, -2, "path");
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    lua_getfield(L, s->record, known[i]);
    lua_setfield(L, -2, known[i]);
  }
  lua_rawseti(L, s->findings, ++s->count);
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

// Checks the table at idx; false when it was changed. Several tasks may have been given the same
// table: it is reported once.
static bool is_clean(struct search *s, int idx) {
  lua_State *L = s->L;
  int before = s->count;
  mw_objtable_slot(L, MW_OBJTABLE_SPOILT);
  lua_pushvalue(L, idx);
  lua_rawget(L, -2);  // [spoilt, true or nil]
  bool known = lua_toboolean(L, -1);
  if (!known) check(s, idx);
  bool clean = s->count == before;
  if (!clean) {
    mw_objtable_forget(L, idx);
    lua_pushvalue(L, idx);
    lua_pushboolean(L, 1);
    lua_rawset(L, -4);
  }
  lua_pop(L, 2);
  return clean && !known;
}

// Checks the tables in the record and takes them out of it; with `aged`, not 0, those that are
// clean go there.
static void check_record(struct search *s, int record, int aged) {
  lua_State *L = s->L;
  s->record = record;
  for (lua_pushnil(L); lua_next(L, record); lua_pop(L, 1)) {  // [table, true]
    int table = lua_gettop(L) - 1;
    if (!lua_istable(L, table)) continue;
    if (is_clean(s, table) && aged != 0) {
      lua_pushvalue(L, table);
      lua_pushvalue(L, record);
      lua_rawset(L, aged);
    }
    lua_pushvalue(L, table);
    lua_pushnil(L);
    lua_rawset(L, record);
  }
  lua_pushinteger(L, 0);
  lua_setfield(L, record, "n");
}

// Checks the tables that were looked at before: those of the record `only`, or all when it is 0.
static void check_aged(struct search *s, int aged, int only) {
  lua_State *L = s->L;
  for (lua_pushnil(L); lua_next(L, aged); lua_pop(L, 1)) {  // [table, record]
    int table = lua_gettop(L) - 1;
    s->record = table + 1;
    if (only != 0 && !lua_rawequal(L, s->record, only)) continue;
    if (is_clean(s, table)) continue;
    lua_pushvalue(L, table);
    lua_pushnil(L);
    lua_rawset(L, aged);
  }
}

void mw_objtable_mutations(lua_State *L) {
  luaL_checkstack(L, 16, NULL);
  lua_newtable(L);
  struct search s = {.L = L, .findings = lua_gettop(L)};
  mw_objtable_slot(L, MW_OBJTABLE_WATCHED);
  mw_objtable_slot(L, MW_OBJTABLE_AGED);  // [findings, watched, aged]
  int aged = lua_gettop(L);
  check_aged(&s, aged, 0);
  for (lua_pushnil(L); lua_next(L, aged - 1); lua_pop(L, 1)) {
    if (lua_istable(L, -1)) check_record(&s, lua_gettop(L), aged);
  }
  lua_settop(L, s.findings);
}

// Pushes a record for the task, which may be NULL.
static void new_record(lua_State *L, const struct mw_task *t) {
  lua_createtable(L, 0, 8);
  if (t == NULL) return;
  struct mw_task_about about = mw_task_about(t);
  const char *fields[][2] = {
      {"task", about.name}, {"trigger", about.trigger}, {"function", about.function}};
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
    lua_pushstring(L, fields[i][1]);  // nil for NULL
    lua_setfield(L, -2, fields[i][0]);
  }
}

// Whether everything is to be looked at; decides how many tables of one task are held for that.
static bool is_thorough(lua_State *L) {
  mw_objtable_slot(L, MW_OBJTABLE_WATCHED);
  lua_getfield(L, -1, "thorough");
  bool thorough = lua_toboolean(L, -1);
  lua_pop(L, 2);
  return thorough;
}

static bool is_full(lua_State *L, int record, const struct mw_task *t) {
  lua_getfield(L, record, "n");
  bool full = lua_tointeger(L, -1) >= SAMPLE_TABLES;
  lua_pop(L, 1);
  // What no task was given, but a filter or an index function, is looked at once a second only.
  return full && (t == NULL || !is_thorough(L));
}

void mw_objtable_detect(lua_State *L, bool on) {
  mw_objtable_slot(L, MW_OBJTABLE_WATCHED);
  lua_pushboolean(L, on);
  lua_setfield(L, -2, "thorough");
  lua_pop(L, 1);
  *mw_objtable_gate(L) = on;
}

// [task]: looks at what the task was given, and forgets that.
static int look_at_task(lua_State *L) {
  struct search s = {.L = L};
  mw_objtable_slot(L, MW_OBJTABLE_WATCHED);
  lua_pushvalue(L, 1);
  lua_rawget(L, 2);  // [task, watched, record]
  if (lua_isnil(L, 3)) return 0;
  lua_pushvalue(L, 1);
  lua_pushnil(L);
  lua_rawset(L, 2);
  lua_newtable(L);
  s.findings = 4;
  mw_objtable_slot(L, MW_OBJTABLE_AGED);
  bool thorough = is_thorough(L);
  if (thorough) check_aged(&s, 5, 3);
  check_record(&s, 3, thorough ? 5 : 0);
  mw_objtable_slot(L, MW_OBJTABLE_REPORT);
  if (s.count == 0 || !lua_isfunction(L, -1)) return 0;
  lua_pushvalue(L, s.findings);
  lua_call(L, 1, 0);
  return 0;
}

static void add_to_count(lua_State *L, int record, int n) {
  lua_getfield(L, record, "n");
  lua_pushinteger(L, lua_tointeger(L, -1) + n);
  lua_setfield(L, record, "n");
}

// Notes the root table on top for the task, which may be NULL.
static void note(lua_State *L, struct mw_task *t) {
  luaL_checkstack(L, 12, NULL);
  int table = lua_gettop(L);
  mw_objtable_slot(L, MW_OBJTABLE_WATCHED);
  lua_pushlightuserdata(L, t);
  lua_rawget(L, -2);  // [watched, record or nil]
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    new_record(L, t);
    lua_pushlightuserdata(L, t);
    lua_pushvalue(L, -2);
    lua_rawset(L, -4);
  }
  int record = lua_gettop(L);
  lua_pushvalue(L, table);
  lua_rawget(L, record);
  if (lua_isnil(L, -1) && !is_full(L, record, t)) {
    lua_pushvalue(L, table);
    lua_pushboolean(L, 1);
    lua_rawset(L, record);
    add_to_count(L, record, 1);
  }
  lua_settop(L, table);
}

// The root table on top is a task's, and no longer one that was given to none.
static void unnote(lua_State *L) {
  luaL_checkstack(L, 12, NULL);
  int table = lua_gettop(L);
  mw_objtable_slot(L, MW_OBJTABLE_WATCHED);
  lua_pushlightuserdata(L, NULL);
  lua_rawget(L, -2);  // [watched, record or nil]
  int record = lua_gettop(L);
  if (lua_istable(L, record)) {
    lua_pushvalue(L, table);
    lua_rawget(L, record);
    if (!lua_isnil(L, -1)) add_to_count(L, record, -1);
    lua_pushvalue(L, table);
    lua_pushnil(L);
    lua_rawset(L, record);
  }
  lua_settop(L, table);
}

void mw_objtable_watch(lua_State *L) {
  struct mw_sched *sched = mw_sched_of(L);
  note(L, sched != NULL ? mw_task_current(sched) : NULL);
}

// A handler's objects are read before its task is there.
static void on_task_begins(struct mw_task *t, struct lua_State *L, int nargs) {
  lua_checkstack(L, 1);
  for (int top = lua_gettop(L), idx = top - nargs + 1; idx <= top; idx++) {
    if (mw_objtable_object(L, idx) == NULL) continue;
    lua_pushvalue(L, idx);
    unnote(L);
    note(L, t);
    lua_pop(L, 1);
  }
}

static void on_task_ended(struct mw_task *t, struct lua_State *L) {
  struct mw_err err;
  lua_checkstack(L, 4);
  lua_pushcfunction(L, look_at_task);
  lua_pushlightuserdata(L, t);
  if (mw_script_call(L, 1, 0, &err) < 0) {
    mw_log(MW_LOG_ERROR, "the mutation detector failed", MW_STR("error", err.message));
  }
}

void mw_objtable_sample(lua_State *L) {
  struct mw_sched *sched = mw_sched_of(L);
  const char *setting = getenv("MOONWATCH_MUTATION_DETECTOR");
  if (setting == NULL || *setting == '\0') setting = NULL;
  if (sched == NULL || (setting != NULL && strcmp(setting, "0") == 0)) return;
  if (setting != NULL) mw_objtable_detect(L, true);
  mw_sched_sample(sched, &(struct mw_sampling){.every = setting != NULL ? 1 : SAMPLE_EVERY,
                                               .gate = mw_objtable_gate(L),
                                               .begins = on_task_begins,
                                               .ended = on_task_ended});
}
