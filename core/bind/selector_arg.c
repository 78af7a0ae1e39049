// SPDX-License-Identifier: Apache-2.0
// kube._core.selector, and selectors as arguments of other functions.
#include "bind/selector_arg.h"

#include <string.h>

#include "bind/bind.h"
#include "bind/objtable.h"
#include "bind/util.h"
#include "cache/selector.h"

#define TYPE "kube.selector"

#define EXPRESSIONS "matchExpressions is a list of { key =, operator =, values = }"

enum { VALUES_MAX = 256 };

static int selector_gc(lua_State *L) {
  struct mw_selector **s = luaL_checkudata(L, 1, TYPE);
  mw_selector_free(*s);
  *s = NULL;
  return 0;
}

// The labels of a table, for mw_selector_matches.
struct labels {
  lua_State *L;
  int idx;  // of the table
};

// The value stays valid while the table holds it.
static bool get_label(void *ctx, const struct mw_slice *key, struct mw_slice *value) {
  const struct labels *labels = ctx;
  lua_State *L = labels->L;
  lua_pushlstring(L, key->p, key->n);
  lua_rawget(L, labels->idx);
  bool found = lua_type(L, -1) == LUA_TSTRING;
  if (found) *value = mw_bind_slice(L, -1);
  lua_pop(L, 1);
  return found;
}

// selector:matches(labels): nil has no labels.
static int selector_matches(lua_State *L) {
  const struct mw_selector *s = mw_bind_check_box(L, 1, TYPE);
  lua_settop(L, 2);
  if (lua_isnil(L, 2) || lua_islightuserdata(L, 2)) {
    lua_newtable(L);
    lua_replace(L, 2);
  }
  if (!lua_istable(L, 2)) {
    return mw_bind_misuse(L, "selector:matches() takes a table of labels, not %s",
                          mw_bind_kind(L, 2));
  }
  mw_objtable_complete(L, 2);
  struct labels labels = {L, 2};
  lua_pushboolean(L, mw_selector_matches(s, get_label, &labels));
  return 1;
}

static void require(lua_State *L, struct mw_selector *s, struct mw_slice key,
                    enum mw_selector_op op, const struct mw_slice *values, size_t count) {
  struct mw_err err;
  if (mw_selector_require(s, key, op, values, count, true, &err) < 0) mw_bind_raise(L, &err);
}

// A map of labels at idx: each becomes key=value.
static void add_map(lua_State *L, int idx, struct mw_selector *s) {
  mw_objtable_complete(L, idx);
  for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {  // [key, value]
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING) {
      mw_bind_misuse(L, "a selector maps label names to strings, as in { app = \"web\" }");
    }
    struct mw_slice value = mw_bind_slice(L, -1);
    require(L, s, mw_bind_slice(L, -2), MW_SEL_EQUALS, &value, 1);
  }
}

static enum mw_selector_op operator_of(lua_State *L, const char *name) {
  struct mw_slice op = mw_slice_str(name);
  if (mw_slice_is(op, "In")) return MW_SEL_IN;
  if (mw_slice_is(op, "NotIn")) return MW_SEL_NOT_IN;
  if (mw_slice_is(op, "Exists")) return MW_SEL_EXISTS;
  if (mw_slice_is(op, "DoesNotExist")) return MW_SEL_NOT_EXISTS;
  mw_bind_misuse(
      L, "unknown operator '%s' in matchExpressions; use In, NotIn, Exists or DoesNotExist", name);
  return MW_SEL_IN;
}

// Raises unless the table at idx has no other members than these. A mistyped one would select more
// than was meant.
static void check_members(lua_State *L, int idx, const char *what, const char *const *known,
                          const char *list) {
  mw_objtable_complete(L, idx);
  for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {  // [key, value]
    const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
    const char *const *k = known;
    while (*k != NULL && (name == NULL || strcmp(*k, name) != 0)) k++;
    if (*k != NULL) continue;
    if (name == NULL) mw_bind_misuse(L, "%s is no list: it has %s", what, list);
    mw_bind_misuse(L, "%s has no '%s': it has %s", what, name, list);
  }
}

// The length of the list at idx; raises when it is a map.
static size_t list_length(lua_State *L, int idx, const char *problem) {
  mw_objtable_complete(L, idx);
  size_t n = lua_objlen(L, idx), count = 0;
  for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) count++;
  if (count != n) mw_bind_misuse(L, "%s", problem);
  return n;
}

// Pushes the member of the table at idx; false when it has none, or null. Raises when it is no
// table.
static bool push_table(lua_State *L, int idx, const char *name, const char *problem) {
  lua_getfield(L, idx, name);
  if (lua_isnil(L, -1) || lua_islightuserdata(L, -1)) return false;
  if (!lua_istable(L, -1)) mw_bind_misuse(L, "%s", problem);
  return true;
}

// One entry of matchExpressions on top of the stack: {key=, operator=, values=}.
static void add_expression(lua_State *L, struct mw_selector *s) {
  static const char *const known[] = {"key", "operator", "values", NULL};
  static const char problem[] = "the values of matchExpressions are a list of strings";
  int entry = lua_gettop(L);
  if (!lua_istable(L, entry)) mw_bind_misuse(L, EXPRESSIONS);
  check_members(L, entry, "an entry of matchExpressions", known, "key, operator and values");
  const char *key = mw_bind_opt_string(L, entry, "key", "");
  enum mw_selector_op op = operator_of(L, mw_bind_opt_string(L, entry, "operator", ""));
  struct mw_slice values[VALUES_MAX];
  size_t count = 0;
  luaL_checkstack(L, VALUES_MAX + 2, "too many values in a selector");
  if (push_table(L, entry, "values", problem)) {  // [entry, values]
    int list = lua_gettop(L);
    size_t n = list_length(L, list, problem);
    if (n > VALUES_MAX) mw_bind_misuse(L, "more than %d values in matchExpressions", VALUES_MAX);
    for (; count < n; count++) {
      lua_rawgeti(L, list, (int)count + 1);
      if (lua_type(L, -1) != LUA_TSTRING) mw_bind_misuse(L, "%s", problem);
      values[count] = mw_bind_slice(L, -1);
    }
  }
  require(L, s, mw_slice_str(key), op, values, count);
  lua_settop(L, entry);
}

static void add_structured(lua_State *L, int idx, struct mw_selector *s) {
  static const char *const known[] = {"matchLabels", "matchExpressions", NULL};
  check_members(L, idx, "a label selector", known, "matchLabels and matchExpressions");
  if (push_table(L, idx, "matchLabels", "matchLabels maps label names to strings")) {
    add_map(L, lua_gettop(L), s);
  }
  lua_pop(L, 1);
  if (push_table(L, idx, "matchExpressions", EXPRESSIONS)) {  // [list]
    int list = lua_gettop(L);
    size_t n = list_length(L, list, EXPRESSIONS);
    for (size_t i = 1; i <= n; i++) {
      lua_rawgeti(L, list, (int)i);
      add_expression(L, s);
      lua_pop(L, 1);
    }
  }
  lua_pop(L, 1);
}

// Labels may have these names, but their values are strings.
static bool is_structured(lua_State *L, int idx) {
  lua_getfield(L, idx, "matchLabels");
  lua_getfield(L, idx, "matchExpressions");
  bool is_map = true;
  for (int i = -2; i < 0; i++) is_map &= lua_isnil(L, i) || lua_type(L, i) == LUA_TSTRING;
  lua_pop(L, 2);
  return !is_map;
}

struct mw_selector **mw_bind_push_selector(lua_State *L, int idx) {
  struct mw_selector **box = (struct mw_selector **)mw_bind_new_box(L, TYPE, NULL);  // [box]
  if (lua_type(L, idx) == LUA_TSTRING) {
    struct mw_err err;
    *box = mw_selector_parse(mw_bind_slice(L, idx), &err);
    if (*box == NULL) mw_bind_raise(L, &err);
    return box;
  }
  if (lua_islightuserdata(L, idx)) {  // kube.null: a null LabelSelector selects nothing
    *box = mw_selector_nothing();
    return box;
  }
  if (!lua_istable(L, idx)) {
    mw_bind_misuse(L, "a selector is a string or a table, not a %s", luaL_typename(L, idx));
  }
  *box = mw_selector_new();
  if (is_structured(L, idx)) {
    add_structured(L, idx, *box);
  } else {
    add_map(L, idx, *box);
  }
  return box;
}

// Pushes the text in the buffer and frees it.
static void push_text(lua_State *L, struct mw_buf *text) {
  lua_pushlstring(L, text->n > 0 ? text->p : "", text->n);
  mw_buf_deinit(text);
}

// Pushes the canonical text of a selector that is on the stack.
static int push_canonical(lua_State *L, const struct mw_selector *s) {
  if (mw_selector_is_nothing(s)) {
    return mw_bind_misuse(L, "a label selector that selects nothing cannot be sent to a server");
  }
  struct mw_buf text;
  mw_buf_init(&text, MW_SELECTOR_LENGTH_MAX);
  if (mw_selector_format(s, &text) < 0) {
    mw_buf_deinit(&text);
    return mw_bind_misuse(L, "the label selector is longer than %d bytes", MW_SELECTOR_LENGTH_MAX);
  }
  push_text(L, &text);
  return 1;
}

// labels(value): the canonical text of a label selector in any form.
static int canonical_labels(lua_State *L) {
  lua_settop(L, 1);
  return push_canonical(L, *mw_bind_push_selector(L, 1));
}

static int selector_text(lua_State *L) { return push_canonical(L, mw_bind_check_box(L, 1, TYPE)); }

// new(value): a selector of any form.
static int selector_new(lua_State *L) {
  lua_settop(L, 1);
  mw_bind_push_selector(L, 1);
  return 1;
}

// fields(text): the canonical text of a field selector.
static int canonical_fields(lua_State *L) {
  struct mw_slice given = mw_bind_slice(L, 1);
  struct mw_buf text;
  struct mw_err err;
  mw_buf_init(&text, MW_SELECTOR_LENGTH_MAX);
  if (mw_field_selector_check(given, &text, &err) < 0) {
    mw_buf_deinit(&text);
    return mw_bind_raise(L, &err);
  }
  push_text(L, &text);
  return 1;
}

void mw_bind_selector(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"new", selector_new},
      {"labels", canonical_labels},
      {"fields", canonical_fields},
      {NULL, NULL},
  };
  static const luaL_Reg methods[] = {
      {"matches", selector_matches}, {"text", selector_text}, {NULL, NULL}};
  mw_bind_new_type(L, TYPE, methods, selector_gc);
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  luaL_getmetatable(L, TYPE);
  lua_getfield(L, -1, "__index");
  lua_setfield(L, -3, "methods");  // kube._selector guards them
  lua_pop(L, 1);
}
