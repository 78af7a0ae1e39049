// SPDX-License-Identifier: Apache-2.0
// Error values as text: by their __tostring, and tables without one by what is in them.
#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "script/call.h"
#include "script/heap.h"

enum { FIELDS_SHOWN = 8, VALUE_SHOWN = 80, TEXT_ROOM = 1024 };

struct text {
  char p[TEXT_ROOM];
  size_t n;
};

static void append(struct text *t, const char *s) {
  int n = snprintf(t->p + t->n, sizeof t->p - t->n, "%s", s);
  if (n > 0) t->n = t->n + (size_t)n < sizeof t->p ? t->n + (size_t)n : sizeof t->p - 1;
}

static void append_value(struct text *t, lua_State *L, int idx) {
  char shown[VALUE_SHOWN + 8];
  switch (lua_type(L, idx)) {
    case LUA_TSTRING: {
      const char *s = lua_tostring(L, idx);
      snprintf(shown, sizeof shown, "\"%.*s%s\"", VALUE_SHOWN, s,
               strlen(s) > VALUE_SHOWN ? "..." : "");
      append(t, shown);
      break;
    }
    case LUA_TNUMBER:
      snprintf(shown, sizeof shown, "%.14g", lua_tonumber(L, idx));
      append(t, shown);
      break;
    case LUA_TBOOLEAN:
      append(t, lua_toboolean(L, idx) ? "true" : "false");
      break;
    default:
      append(t, luaL_typename(L, idx));
  }
}

// [table, last] -> [table, next]: the first key that is text and behind `last`, which is text or
// nil, in their order; nil: there is none.
static bool next_name(lua_State *L) {
  lua_pushnil(L);  // [table, last, best]
  lua_pushnil(L);
  while (lua_next(L, 1) != 0) {  // [table, last, best, key, value]
    lua_pop(L, 1);
    bool behind = lua_type(L, 4) == LUA_TSTRING && (lua_isnil(L, 2) || lua_lessthan(L, 2, 4));
    if (!behind || !(lua_isnil(L, 3) || lua_lessthan(L, 4, 3))) continue;
    lua_pushvalue(L, 4);
    lua_replace(L, 3);
  }
  lua_replace(L, 2);
  return !lua_isnil(L, 2);
}

// [table]: its list, then its names in their order.
static void append_fields(struct text *t, lua_State *L) {
  int shown = 0;
  for (lua_rawgeti(L, 1, 1); !lua_isnil(L, -1) && shown < FIELDS_SHOWN;
       lua_rawgeti(L, 1, ++shown + 1)) {
    if (shown > 0) append(t, ", ");
    append_value(t, L, -1);
    lua_pop(L, 1);
  }
  if (!lua_isnil(L, -1)) append(t, ", ...");
  lua_pop(L, 1);
  if (shown == FIELDS_SHOWN) return;
  lua_pushnil(L);
  for (; next_name(L); shown++) {
    if (shown > 0) append(t, ", ");
    if (shown == FIELDS_SHOWN) {
      append(t, "...");
      break;
    }
    append(t, lua_tostring(L, 2));
    append(t, " = ");
    lua_pushvalue(L, 2);
    lua_rawget(L, 1);
    append_value(t, L, -1);
    lua_pop(L, 1);
  }
  lua_settop(L, 1);
}

// [table] -> [table, text]
static void push_table(lua_State *L) {
  struct text t = {.n = 0};
  lua_getfield(L, 1, "code");
  lua_getfield(L, 1, "message");
  if (lua_type(L, 3) == LUA_TSTRING) {
    if (lua_type(L, 2) != LUA_TSTRING) return;
    lua_pushfstring(L, "%s: %s", lua_tostring(L, 2), lua_tostring(L, 3));
    return;
  }
  lua_settop(L, 1);
  append_fields(&t, L);
  lua_pushfstring(
      L, t.n > 0 ? "(an error value of type table: {%s})" : "(an error value of type table)", t.p);
}

// [value] -> [..., text]: whatever __tostring and __index do, they do in here.
static int to_text(lua_State *L) {
  if (luaL_callmeta(L, 1, "__tostring") && lua_isstring(L, -1)) {
    lua_tostring(L, -1);
  } else if (lua_istable(L, 1)) {
    lua_settop(L, 1);
    push_table(L);
  } else {
    lua_pushfstring(L, "(an error value of type %s)", luaL_typename(L, 1));
  }
  return 1;
}

const char *mw_script_error_text(struct lua_State *L, int idx) {
  if (idx < 0 && idx > LUA_REGISTRYINDEX) idx = lua_gettop(L) + 1 + idx;
  if (lua_type(L, idx) == LUA_TSTRING || lua_type(L, idx) == LUA_TNUMBER) {
    lua_pushvalue(L, idx);
  } else {
    lua_pushcfunction(L, to_text);
    lua_pushvalue(L, idx);
    lua_State *before = mw_heap_enforce(mw_heap_of(L), L);
    int rc = lua_pcall(L, 1, 1, 0);
    mw_heap_enforce(mw_heap_of(L), before);
    if (rc != 0) {
      lua_pop(L, 1);
      lua_pushfstring(L, "(an error value of type %s, whose __tostring failed)",
                      luaL_typename(L, idx));
    }
  }
  return lua_tostring(L, -1);
}
