// SPDX-License-Identifier: Apache-2.0
// kube._core.metric: metrics of scripts. What a script declares belongs to its state: the families
// are held by boxes, and go with them.
#include <lauxlib.h>
#include <lua.h>
#include <math.h>

#include "base/metric.h"
#include "bind/bind.h"
#include "bind/util.h"

#define FAMILY "kube.metric_family"
#define SERIES "kube.metric_series"

static int family_gc(lua_State *L) {
  void **box = luaL_checkudata(L, 1, FAMILY);
  if (*box != NULL) mw_metric_release(*box);
  *box = NULL;
  return 0;
}

static int series_gc(lua_State *L) {
  void **box = luaL_checkudata(L, 1, SERIES);
  mw_series_unref(*box);
  *box = NULL;
  return 0;
}

// Fills out with the strings of the list at idx, at most max; they stay valid while it holds them.
static size_t read_strings(lua_State *L, int idx, const char **out, size_t max) {
  size_t n = lua_objlen(L, idx);
  for (size_t i = 0; i < n && i < max; i++) {
    lua_rawgeti(L, idx, (int)i + 1);
    out[i] = lua_tostring(L, -1);
    lua_pop(L, 1);
  }
  return n;
}

static size_t read_numbers(lua_State *L, int idx, double *out, size_t max) {
  size_t n = lua_objlen(L, idx);
  for (size_t i = 0; i < n && i < max; i++) {
    lua_rawgeti(L, idx, (int)i + 1);
    out[i] = lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
  return n;
}

// new(type, name, help, labels, buckets, max): the lists hold strings and numbers only. nil and why
// when the core refuses it.
static int metric_new(lua_State *L) {
  static const char *const types[] = {"counter", "gauge", "histogram", NULL};
  const char *labels[MW_METRIC_LABEL_MAX];
  double buckets[MW_METRIC_BUCKET_MAX];
  luaL_checktype(L, 4, LUA_TTABLE);
  luaL_checktype(L, 5, LUA_TTABLE);
  struct mw_metric_spec spec = {
      .type = (enum mw_metric_type)luaL_checkoption(L, 1, NULL, types),
      .name = luaL_checkstring(L, 2),
      .help = luaL_checkstring(L, 3),
      .labels = labels,
      .label_count = read_strings(L, 4, labels, MW_METRIC_LABEL_MAX),
      .buckets = buckets,
      .bucket_count = read_numbers(L, 5, buckets, MW_METRIC_BUCKET_MAX),
      .series_max = (size_t)luaL_checkinteger(L, 6),
  };
  struct mw_err err;
  void **box = mw_bind_new_box(L, FAMILY, NULL);
  *box = mw_metric_hold(&spec, &err);
  if (*box != NULL) return 1;
  lua_pushnil(L);
  lua_pushstring(L, err.message);
  return 2;
}

// family:series(values): one string per label.
static int family_series(lua_State *L) {
  struct mw_metric *m = mw_bind_check_box(L, 1, FAMILY);
  const char *values[MW_METRIC_LABEL_MAX] = {0};
  luaL_checktype(L, 2, LUA_TTABLE);
  if (read_strings(L, 2, values, MW_METRIC_LABEL_MAX) != mw_metric_label_count(m)) {
    return luaL_error(L, "one value per label");
  }
  void **box = mw_bind_new_box(L, SERIES, NULL);
  *box = mw_metric_series(m, values);
  return 1;
}

static int series_add(lua_State *L) {
  struct mw_series *s = mw_bind_check_box(L, 1, SERIES);
  mw_series_add(s, luaL_checknumber(L, 2));
  return 0;
}

static int series_set(lua_State *L) {
  struct mw_series *s = mw_bind_check_box(L, 1, SERIES);
  mw_series_set(s, luaL_checknumber(L, 2));
  return 0;
}

static int series_observe(lua_State *L) {
  struct mw_series *s = mw_bind_check_box(L, 1, SERIES);
  mw_series_observe(s, luaL_checknumber(L, 2));
  return 0;
}

void mw_bind_metric(struct lua_State *L) {
  static const luaL_Reg family_methods[] = {{"series", family_series}, {NULL, NULL}};
  static const luaL_Reg series_methods[] = {
      {"add", series_add}, {"set", series_set}, {"observe", series_observe}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"new", metric_new}, {NULL, NULL}};
  mw_bind_new_type(L, FAMILY, family_methods, family_gc);
  mw_bind_new_type(L, SERIES, series_methods, series_gc);
  lua_newtable(L);
  luaL_register(L, NULL, functions);
}
