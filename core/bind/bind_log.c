// SPDX-License-Identifier: Apache-2.0
// kube._core.log: structured log lines from Lua. Fields come in the order of their names.
#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "bind/bind.h"
#include "bind/codec.h"
#include "bind/objtable.h"
#include "script/bundle.h"
#include "script/generation.h"
#include "script/sched.h"

enum { FIELDS_MAX = 32, JSON_LIMIT = 8 * 1024 };

static const char *const levels[] = {"error", "warn", "info", "debug", NULL};

// Replaces the value on top by its text.
static void to_text(lua_State *L) {
  if (lua_type(L, -1) == LUA_TSTRING) return;
  lua_getglobal(L, "tostring");
  lua_insert(L, -2);
  lua_call(L, 1, 1);
  if (!lua_isstring(L, -1)) luaL_error(L, "'tostring' must return a string");
}

// Replaces the table on top by its JSON.
static void to_json(lua_State *L) {
  struct mw_buf json;
  mw_buf_init(&json, JSON_LIMIT);
  struct mw_err err;
  if (mw_codec_encode(L, -1, &json, &err) < 0) {
    lua_pushfstring(L, "\"(not shown: %s)\"", err.message);
  } else {
    lua_pushlstring(L, json.p, json.n);
  }
  mw_buf_deinit(&json);
  lua_replace(L, -2);
}

static struct mw_slice text_at(lua_State *L, int idx) {
  struct mw_slice s;
  s.p = lua_tolstring(L, idx, &s.n);
  return s;
}

// [value] -> [what backs the field]
static void read_value(lua_State *L, struct mw_log_field *f) {
  double number = lua_tonumber(L, -1);
  switch (lua_type(L, -1)) {
    case LUA_TNUMBER:
      if (number == floor(number) && fabs(number) < 9007199254740992.0) {
        *f = MW_INT(f->key, number);
      } else {
        *f = MW_NUM(f->key, number);
      }
      return;
    case LUA_TBOOLEAN:
      *f = MW_BOOL(f->key, lua_toboolean(L, -1));
      return;
    case LUA_TTABLE:
      if (luaL_getmetafield(L, -1, "__tostring")) {
        lua_pop(L, 1);
        break;
      }
      to_json(L);
      f->kind = MW_FIELD_RAW;
      f->str = text_at(L, -1);
      return;
    default:
      break;
  }
  to_text(L);
  *f = MW_SLC(f->key, text_at(L, -1));
}

static int by_key(const void *a, const void *b) {
  const struct mw_log_field *left = a, *right = b;
  return strcmp(left->key, right->key);
}

// Leaves on the stack what the fields point into.
static size_t read_fields(lua_State *L, int idx, struct mw_log_field *fields) {
  size_t count = 0;
  luaL_checkstack(L, 2 * FIELDS_MAX + 8, "too many log fields");
  mw_objtable_complete(L, idx);
  lua_pushnil(L);
  while (count < FIELDS_MAX && lua_next(L, idx)) {  // [..., key, value]
    lua_pushvalue(L, -2);
    to_text(L);         // [..., key, value, name]
    lua_insert(L, -3);  // [..., name, key, value]
    fields[count] = (struct mw_log_field){.key = lua_tostring(L, -3)};
    read_value(L, &fields[count++]);
    lua_insert(L, -2);  // [..., name, backing, key]
  }
  qsort(fields, count, sizeof fields[0], by_key);
  return count;
}

// Adds a field, unless the line has one of this name itself.
static size_t add_field(struct mw_log_field *fields, size_t count, const char *key,
                        const char *value) {
  if (value == NULL) return count;
  for (size_t i = 0; i < count; i++)
    if (strcmp(fields[i].key, key) == 0) return count;
  fields[count] = MW_STR(key, value);
  return count + 1;
}

// Every line tells which revision of the script wrote it, and what made its task run.
static size_t add_origin(lua_State *L, struct mw_log_field *fields, size_t count) {
  struct mw_generation *g = mw_generation_of(L);
  const struct mw_bundle *bundle = g != NULL ? mw_generation_bundle(g) : NULL;
  struct mw_sched *sched = mw_sched_of(L);
  count = add_field(fields, count, "trigger",
                    sched != NULL ? mw_task_trigger(mw_task_current(sched)) : NULL);
  return add_field(fields, count, "revision", bundle != NULL ? mw_bundle_revision(bundle) : NULL);
}

static int write_line(lua_State *L) {
  enum mw_log_level level = (enum mw_log_level)luaL_checkoption(L, 1, NULL, levels);
  if (!mw_log_on(level)) return 0;
  lua_settop(L, 3);
  lua_pushvalue(L, 2);
  to_text(L);
  lua_replace(L, 2);
  struct mw_log_field fields[FIELDS_MAX + 2];
  size_t count = 0;
  if (!lua_isnil(L, 3)) {
    luaL_checktype(L, 3, LUA_TTABLE);
    count = read_fields(L, 3, fields);
  }
  count = add_origin(L, fields, count);
  mw_log_fields(level, lua_tostring(L, 2), fields, count);
  return 0;
}

static int set_level(lua_State *L) {
  mw_log_set_level((enum mw_log_level)luaL_checkoption(L, 1, NULL, levels));
  return 0;
}

static int get_level(lua_State *L) {
  int level = MW_LOG_DEBUG;
  while (level > MW_LOG_ERROR && !mw_log_on((enum mw_log_level)level)) level--;
  lua_pushstring(L, levels[level]);
  return 1;
}

static int hide_status(lua_State *L) {
  (void)L;
  mw_log_hide_status();
  return 0;
}

void mw_bind_log(struct lua_State *L) {
  static const luaL_Reg functions[] = {{"write", write_line},
                                       {"set_level", set_level},
                                       {"level", get_level},
                                       {"hide_status", hide_status},
                                       {NULL, NULL}};
  lua_createtable(L, 0, 4);
  luaL_register(L, NULL, functions);
}
