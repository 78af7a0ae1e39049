// SPDX-License-Identifier: Apache-2.0
#include "bind/get.h"

#include <lauxlib.h>
#include <lua.h>

#include "bind/codec.h"
#include "bind/codec_internal.h"
#include "bind/objtable_internal.h"
#include "bind/util.h"
#include "cache/object.h"
#include "wire/json.h"
#include "wire/path.h"

static const char type_path[] = "kube.path";
static const char cache_key = 0;  // its address is the key of the cache in the registry

static int path_gc(lua_State *L) {
  struct mw_path **path = lua_touserdata(L, 1);
  mw_path_free(*path);
  *path = NULL;
  return 0;
}

// Pushes the table text -> compiled path. Its values are weak: programs use few paths, but may make
// up many.
static void push_cache(lua_State *L) {
  lua_pushlightuserdata(L, (void *)&cache_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  if (!lua_isnil(L, -1)) return;
  lua_pop(L, 1);
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "v");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_pushlightuserdata(L, (void *)&cache_key);
  lua_pushvalue(L, -2);
  lua_rawset(L, LUA_REGISTRYINDEX);
}

// The compiled path of the text at idx; pushes what keeps it alive.
static const struct mw_path *push_path(lua_State *L, int idx) {
  push_cache(L);
  lua_pushvalue(L, idx);
  lua_rawget(L, -2);  // [cache, path or nil]
  struct mw_path **path = lua_touserdata(L, -1);
  if (path == NULL) {
    lua_pop(L, 1);
    path = lua_newuserdata(L, sizeof *path);
    *path = NULL;
    if (luaL_newmetatable(L, type_path)) {
      lua_pushcfunction(L, path_gc);
      lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    struct mw_err err;
    *path = mw_path_new(mw_bind_slice(L, idx), &err);
    if (*path == NULL) mw_bind_misuse(L, "kube.get(): %s", err.message);
    lua_pushvalue(L, idx);
    lua_pushvalue(L, -2);
    lua_rawset(L, -4);
  }
  lua_remove(L, -2);
  return *path;
}

// One step of a path.
struct step {
  enum { STEP_KEY = 0, STEP_INDEX, STEP_EACH } kind;
  struct mw_slice key;  // STEP_KEY; raw where escaped
  bool escaped;
  int index;  // STEP_INDEX, from 1 as in Lua
};

// Takes the next step off the text of a path, which was found to be well formed. False at its end.
static bool next_step(struct mw_json *c, struct step *step) {
  if (c->p < c->end && *c->p == '.') c->p++;
  if (c->p == c->end) return false;
  *step = (struct step){.kind = STEP_KEY};
  if (*c->p != '[') {
    const char *from = c->p;
    while (c->p < c->end && *c->p != '.' && *c->p != '[') c->p++;
    step->key = mw_slice(from, (size_t)(c->p - from));
    return true;
  }
  c->p++;
  if (*c->p == '*') {
    step->kind = STEP_EACH;
    c->p++;
  } else if (*c->p == '"') {
    if (mw_json_string(c, &step->key, &step->escaped) < 0) return false;
  } else {
    step->kind = STEP_INDEX;
    for (; *c->p != ']'; c->p++) step->index = 10 * step->index + (*c->p - '0');
    step->index++;
  }
  c->p++;
  return true;
}

// What walks a path over tables; finds are collected in an array, or the first one ends it.
struct walk {
  lua_State *L;
  int found;  // stack index of the array
  int count;
};

// Replaces the table on top by what it holds under the step's key or index; nil if it is no table.
static void take(lua_State *L, const struct step *step) {
  if (!lua_istable(L, -1)) {
    lua_pushnil(L);
  } else if (step->kind == STEP_INDEX) {
    lua_rawgeti(L, -1, step->index);
  } else if (mw_codec_push_string(L, step->key, step->escaped) < 0) {
    lua_pushnil(L);
  } else {
    lua_gettable(L, -2);
  }
  lua_remove(L, -2);
}

static void keep(struct walk *w) {
  if (lua_isnil(w->L, -1)) return;
  lua_pushvalue(w->L, -1);
  lua_rawseti(w->L, w->found, ++w->count);
}

// Follows the rest of the path from the value on top, which is popped.
static void follow(struct walk *w, struct mw_json rest) {
  lua_State *L = w->L;
  luaL_checkstack(L, 8, NULL);
  struct step step;
  while (next_step(&rest, &step)) {
    if (step.kind != STEP_EACH) {
      take(L, &step);
      continue;
    }
    for (int i = 1; lua_istable(L, -1); i++) {
      lua_rawgeti(L, -1, i);
      if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        break;
      }
      follow(w, rest);
    }
    lua_pop(L, 1);
    return;
  }
  keep(w);
  lua_pop(L, 1);
}

static bool keep_json(void *ctx, struct mw_slice value) {
  struct walk *w = ctx;
  if (mw_codec_push(w->L, value, NULL) < 0) return true;
  keep(w);
  lua_pop(w->L, 1);
  return true;
}

static bool keep_first(void *ctx, struct mw_slice value) {
  struct walk *w = ctx;
  if (mw_codec_push(w->L, value, NULL) == 0) w->count = 1;
  return false;
}

// Pushes the value without unpacking the object, as those of a family allow. False: they do not.
static bool push_packed(lua_State *L, const struct mw_path *path) {
  const struct mw_object *o = lua_istable(L, 1) ? mw_objtable_unread(L, 1) : NULL;
  struct mw_packed_member m;
  int found = o != NULL ? mw_object_member_at(o, path, &m) : -1;
  if (found < 0) return false;
  if (found == 0) {
    lua_pushnil(L);
    return true;
  }
  return mw_codec_push(L, m.value, NULL) == 0;
}

static bool has_each(struct mw_slice text) {
  struct mw_json c = {text.p, text.p + text.n};
  struct step step;
  while (next_step(&c, &step)) {
    if (step.kind == STEP_EACH) return true;
  }
  return false;
}

// get(o, path): [o, text].
static int get_path(lua_State *L) {
  const struct mw_path *path = push_path(L, 2);
  if (push_packed(L, path)) return 1;
  struct mw_slice text = mw_path_text(path);
  bool all = has_each(text);
  struct walk w = {.L = L};
  if (all) {
    lua_newtable(L);
    mw_codec_mark(L, MW_CODEC_ARRAY);
    w.found = lua_gettop(L);
  }
  struct mw_slice json;
  if (lua_istable(L, 1) && mw_objtable_untouched(L, 1, &json)) {
    int rc = mw_path_each(path, json, all ? keep_json : keep_first, &w);
    if (rc < 0 || (!all && w.count == 0)) lua_pushnil(L);
    return 1;
  }
  struct mw_json rest = {text.p, text.p + text.n};
  struct step step;
  lua_pushvalue(L, 1);
  if (all) {
    follow(&w, rest);
  } else {
    while (next_step(&rest, &step)) take(L, &step);
  }
  return 1;
}

// Leaves the cursor at the member or element that the key at idx names. False when there is none.
static bool enter(lua_State *L, struct mw_json *c, int idx) {
  enum mw_json_kind kind = mw_json_peek(c);
  if (kind == MW_JSON_OBJECT && lua_type(L, idx) == LUA_TSTRING) {
    return mw_json_find(c, mw_bind_slice(L, idx)) > 0;
  }
  if (kind != MW_JSON_ARRAY || lua_type(L, idx) != LUA_TNUMBER || mw_json_enter(c) < 0) {
    return false;
  }
  bool first = true;
  for (double i = 1; mw_json_element(c, &first) > 0; i++) {
    if (i == lua_tonumber(L, idx)) return true;
    if (mw_json_skip(c) < 0) return false;
  }
  return false;
}

// get(o, key, key ...): [o, keys].
static int get_keys(lua_State *L) {
  int top = lua_gettop(L);
  struct mw_slice json;
  if (lua_istable(L, 1) && mw_objtable_untouched(L, 1, &json)) {
    struct mw_json c = {json.p, json.p + json.n};
    for (int i = 2; i <= top; i++) {
      if (!enter(L, &c, i)) return 0;
    }
    return mw_codec_read(L, &c) == 0 ? 1 : 0;
  }
  lua_pushvalue(L, 1);
  for (int i = 2; i <= top; i++) {
    if (!lua_istable(L, -1)) return 0;
    lua_pushvalue(L, i);
    lua_gettable(L, -2);
    lua_remove(L, -2);
  }
  return 1;
}

int mw_get(lua_State *L) {
  if (lua_gettop(L) < 2) return mw_bind_misuse(L, "kube.get() takes an object and a path");
  for (int i = lua_gettop(L); i > 1; i--) {
    if (lua_istable(L, i)) return mw_bind_misuse(L, "kube.get(): a key is no table");
  }
  bool path = lua_gettop(L) == 2 && lua_type(L, 2) == LUA_TSTRING;
  if ((path ? get_path(L) : get_keys(L)) == 0) return 0;
  bool null = lua_type(L, -1) == LUA_TLIGHTUSERDATA && lua_touserdata(L, -1) == NULL;
  if (null) lua_pushnil(L);
  return 1;
}
