// SPDX-License-Identifier: Apache-2.0
#include "bind/util.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "cache/resource.h"
#include "script/call.h"

#define ERROR_META "moonwatch.error"

struct mw_slice mw_bind_slice(lua_State *L, int idx) {
  size_t n;
  luaL_checktype(L, idx, LUA_TSTRING);
  const char *s = lua_tolstring(L, idx, &n);
  return mw_slice(s, n);
}

int mw_bind_opt_misuse(lua_State *L, int idx, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  const char *text = lua_pushvfstring(L, fmt, args);
  va_end(args);
  lua_getfield(L, idx, "what");
  const char *what = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
  return mw_bind_misuse(L, "%s%s%s", what != NULL ? what : "", what != NULL ? ": " : "", text);
}

static void wrong_type(lua_State *L, int idx, const char *field, const char *wanted) {
  mw_bind_opt_misuse(L, idx, "option '%s' must be a %s, not a %s", field, wanted,
                     luaL_typename(L, -1));
}

const char *mw_bind_opt_string(lua_State *L, int idx, const char *field, const char *fallback) {
  lua_getfield(L, idx, field);
  const char *s = fallback;
  if (!lua_isnil(L, -1)) {
    if (lua_type(L, -1) != LUA_TSTRING) wrong_type(L, idx, field, "string");
    s = lua_tostring(L, -1);
  }
  lua_pop(L, 1);
  return s;
}

static double opt_range(lua_State *L, int idx, const char *field, double fallback, double min,
                        double max, bool whole) {
  lua_getfield(L, idx, field);
  double v = fallback;
  if (!lua_isnil(L, -1)) {
    if (lua_type(L, -1) != LUA_TNUMBER) wrong_type(L, idx, field, "number");
    v = lua_tonumber(L, -1);
    if (!(v >= min && v <= max) || (whole && v != floor(v))) {
      mw_bind_opt_misuse(L, idx, "option '%s' must be a %s between %f and %f, not %f", field,
                         whole ? "whole number" : "number", min, max, v);
    }
  }
  lua_pop(L, 1);
  return v;
}

double mw_bind_opt_number(lua_State *L, int idx, const char *field, double fallback, double min,
                          double max) {
  return opt_range(L, idx, field, fallback, min, max, false);
}

double mw_bind_opt_seconds(lua_State *L, int idx, const char *field, double fallback) {
  return opt_range(L, idx, field, fallback, 0, MW_BIND_SECONDS_MAX, false);
}

long mw_bind_opt_count(lua_State *L, int idx, const char *field, long fallback, long min,
                       long max) {
  return (long)opt_range(L, idx, field, (double)fallback, (double)min, (double)max, true);
}

bool mw_bind_opt_bool(lua_State *L, int idx, const char *field, bool fallback) {
  lua_getfield(L, idx, field);
  bool v = fallback;
  if (!lua_isnil(L, -1)) {
    if (!lua_isboolean(L, -1)) wrong_type(L, idx, field, "boolean");
    v = lua_toboolean(L, -1);
  }
  lua_pop(L, 1);
  return v;
}

void mw_bind_check_namespace(lua_State *L, int idx, const char *what) {
  struct mw_err err;
  if (mw_namespace_check(mw_bind_slice(L, idx), &err) < 0) {
    mw_bind_misuse(L, "%s: %s", what, err.message);
  }
}

// The code as Lua sees it: EEXPIRED becomes "expired".
static void push_code(lua_State *L, int code) {
  char text[32];
  size_t n = 0;
  const char *name = mw_err_name(code);
  if (name[0] == 'E') name++;
  for (; name[n] != '\0' && n < sizeof text - 1; n++) text[n] = (char)tolower(name[n]);
  lua_pushlstring(L, text, n);
}

// "script.lua:12: what went wrong"
static int error_tostring(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_getfield(L, 1, "where");
  lua_getfield(L, 1, "message");  // [err, where, message]
  const char *where = lua_tostring(L, 2), *message = lua_tostring(L, 3);
  lua_pushfstring(L, "%s%s", where != NULL ? where : "", message != NULL ? message : "error");
  return 1;
}

void mw_bind_error_open(lua_State *L) {
  luaL_newmetatable(L, ERROR_META);  // [meta]
  lua_pushcfunction(L, error_tostring);
  lua_setfield(L, -2, "__tostring");
}

void mw_bind_where(lua_State *L) {
  mw_script_where(L);
  if (lua_objlen(L, -1) == 0) return;
  lua_pushliteral(L, ": ");
  lua_concat(L, 2);
}

void mw_bind_push_error(lua_State *L, const struct mw_err *err) {
  lua_newtable(L);  // [err]
  push_code(L, err->code);
  lua_setfield(L, -2, "code");
  lua_pushstring(L, err->message);
  lua_setfield(L, -2, "message");
  if (err->http_status != 0) {
    lua_pushinteger(L, err->http_status);
    lua_setfield(L, -2, "status");
  }
  luaL_getmetatable(L, ERROR_META);  // [err, meta]
  lua_setmetatable(L, -2);
}

int mw_bind_raise(lua_State *L, const struct mw_err *err) {
  mw_bind_push_error(L, err);
  mw_bind_where(L);
  lua_setfield(L, -2, "where");
  return lua_error(L);
}

int mw_bind_misuse(lua_State *L, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  mw_bind_where(L);
  lua_pushvfstring(L, fmt, args);
  va_end(args);
  lua_concat(L, 2);
  return lua_error(L);
}

const char *mw_bind_kind(lua_State *L, int idx) {
  if (lua_isnoneornil(L, idx)) return "nothing";
  return lua_pushfstring(L, "a %s", luaL_typename(L, idx));
}

static int box_tostring(lua_State *L) {
  lua_pushfstring(L, "%s: %p", lua_tostring(L, lua_upvalueindex(1)), lua_topointer(L, 1));
  return 1;
}

void mw_bind_new_type(lua_State *L, const char *type, const luaL_Reg *methods, lua_CFunction gc) {
  luaL_newmetatable(L, type);  // [meta]
  lua_newtable(L);             // [meta, methods]
  luaL_register(L, NULL, methods);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, gc);
  lua_setfield(L, -2, "__gc");
  lua_pushstring(L, type);
  lua_pushcclosure(L, box_tostring, 1);
  lua_setfield(L, -2, "__tostring");
  lua_pushstring(L, type);
  lua_setfield(L, -2, "__metatable");
  lua_pop(L, 1);
}

void **mw_bind_new_box(lua_State *L, const char *type, void *pointer) {
  void **box = lua_newuserdata(L, sizeof *box);  // [box]
  *box = pointer;
  luaL_getmetatable(L, type);
  lua_setmetatable(L, -2);
  return box;
}

void *mw_bind_check_box(lua_State *L, int idx, const char *type) {
  void **box = luaL_checkudata(L, idx, type);
  if (*box == NULL) mw_bind_misuse(L, "%s is closed", type);
  return *box;
}

static int buffers_gc(lua_State *L) {
  struct mw_buf *buffers = lua_touserdata(L, 1);
  for (size_t i = 0; i < lua_objlen(L, 1) / sizeof *buffers; i++) mw_buf_deinit(&buffers[i]);
  return 0;
}

struct mw_buf *mw_bind_push_buffers(lua_State *L, size_t count, size_t limit) {
  struct mw_buf *buffers = lua_newuserdata(L, count * sizeof *buffers);
  for (size_t i = 0; i < count; i++) mw_buf_init(&buffers[i], limit);
  if (luaL_newmetatable(L, "kube.buffers")) {
    lua_pushcfunction(L, buffers_gc);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  return buffers;
}
