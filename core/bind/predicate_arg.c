// SPDX-License-Identifier: Apache-2.0
#include "bind/predicate_arg.h"

#include <string.h>

#include "bind/selector_arg.h"
#include "bind/util.h"
#include "cache/extract.h"

enum { VALUES_MAX = 256 };

// The strings of list part.values into out; returns how many. They stay valid while the list holds
// them.
static size_t wanted_values(lua_State *L, int part, struct mw_slice *out) {
  lua_getfield(L, part, "values");
  size_t n = lua_istable(L, -1) ? lua_objlen(L, -1) : 0;
  if (n > VALUES_MAX) mw_bind_misuse(L, "a predicate has more than %d values", VALUES_MAX);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, -1, (int)i + 1);
    if (lua_type(L, -1) != LUA_TSTRING) mw_bind_misuse(L, "the values of a predicate are strings");
    out[i] = mw_bind_slice(L, -1);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return n;
}

// One part of a predicate, from {path=|label=|owner=, values=, negate=} on top. With no values, any
// will do.
static void add_part(lua_State *L, struct mw_predicate *p) {
  static const char *const kinds[] = {"path", "label", "owner"};
  int t = lua_gettop(L);
  const char *argument = NULL;
  enum mw_extract_kind kind = MW_EXTRACT_PATH;
  for (int i = 0; i < 3; i++) {
    const char *given = mw_bind_opt_string(L, t, kinds[i], NULL);
    if (given == NULL) continue;
    if (argument != NULL) mw_bind_misuse(L, "a predicate looks at one of path, label and owner");
    argument = given;
    kind = (enum mw_extract_kind)i;
  }
  if (argument == NULL) mw_bind_misuse(L, "a predicate looks at one of path, label and owner");
  if (kind == MW_EXTRACT_OWNER && strcmp(argument, "any") == 0) argument = "";
  struct mw_slice values[VALUES_MAX];
  struct mw_predicate_part part = {.values = values,
                                   .count = wanted_values(L, t, values),
                                   .negate = mw_bind_opt_bool(L, t, "negate", false)};
  struct mw_err err;
  part.extract = mw_extract_new(kind, mw_slice_str(argument), &err);
  if (part.extract == NULL) mw_bind_raise(L, &err);
  mw_predicate_add(p, &part);
}

void mw_bind_read_predicate(lua_State *L, int idx, struct mw_predicate *p) {
  int top = lua_gettop(L);
  const char *ns = mw_bind_opt_string(L, idx, "namespace", NULL);
  if (ns != NULL) mw_predicate_set_ns(p, mw_slice_str(ns));
  lua_getfield(L, idx, "selector");
  if (!lua_isnil(L, -1)) {
    struct mw_selector **s = mw_bind_push_selector(L, lua_gettop(L));
    mw_predicate_set_labels(p, *s);
    *s = NULL;
  }
  for (int i = 1; lua_rawgeti(L, idx, i), lua_istable(L, -1); i++) add_part(L, p);
  lua_settop(L, top);
}
