// SPDX-License-Identifier: Apache-2.0
// What a script hangs onto an informer besides handlers: indexes, a transform, a watch error
// handler. Each lives on the heap beyond the script's state: when the generation ends, indexes are
// removed, and the other hooks are cut off from the state (L becomes NULL) and do nothing.
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "bind/codec.h"
#include "bind/informer_handle.h"
#include "bind/objtable.h"
#include "bind/util.h"
#include "cache/extract.h"
#include "script/call.h"
#include "script/ref.h"
#include "script/sched.h"
#include "wire/item.h"

enum { INDEXES_MAX = 64 };

struct hook {
  struct mw_owned owned;
  struct mw_generation *gen;
  lua_State *L;             // NULL once the generation has ended
  int fn;                   // registry reference
  struct mw_informer *inf;  // indexes: borrowed, the informer owns the index and so the hook
  struct mw_extract *extract;  // an index spec that runs in C, instead of fn
  char *name;               // indexes
  // transforms: what it takes to make an object out of the returned table
  struct mw_item_scanner *scanner;
  struct mw_packer *packer;
  struct mw_buf json;
};

static void hook_detach(struct hook *k) {
  if (k->L == NULL) return;
  mw_luaref_drop(k->L, &k->fn);
  mw_generation_drop(k->gen, &k->owned);
  k->L = NULL;
}

static void hook_free(void *ctx) {
  struct hook *k = ctx;
  hook_detach(k);
  mw_extract_free(k->extract);
  mw_item_scanner_free(k->scanner);
  mw_packer_free(k->packer);
  mw_buf_deinit(&k->json);
  mw_free(k->name);
  mw_free(k);
}

static void hook_close(struct mw_owned *o) { hook_detach((struct hook *)o); }

// Takes the function on top of the stack, or none when fn is false.
static struct hook *hook_new(lua_State *L, bool fn, void (*close)(struct mw_owned *)) {
  struct hook *k = mw_xcalloc(1, sizeof *k);
  k->gen = mw_generation_of(L);
  k->L = mw_generation_state(k->gen);
  k->fn = fn ? mw_luaref_take(L) : MW_LUAREF_NONE;
  k->owned.close = close;
  mw_generation_own(k->gen, &k->owned);
  return k;
}

// The generation ends: the index goes, and with it (through free_ctx) the hook.
static void index_close(struct mw_owned *o) {
  struct hook *k = (struct hook *)o;
  struct mw_informer *inf = mw_informer_ref(k->inf);
  struct mw_slice name = mw_slice_str(k->name);
  if (mw_indexer_remove_index(mw_informer_indexer(inf), name, NULL) < 0) hook_detach(k);
  mw_informer_unref(inf);
}

// Reads what an index function returned at the top of the stack: nil, a string, or a list.
static int read_values(lua_State *L, struct mw_values *out, struct mw_err *err) {
  if (lua_isnil(L, -1)) return 0;
  if (lua_type(L, -1) == LUA_TSTRING) return mw_values_add(out, mw_bind_slice(L, -1));
  if (!lua_istable(L, -1)) {
    return mw_err_set(err, MW_ESCRIPT, "an index function returns a list of strings, not a %s",
                      luaL_typename(L, -1));
  }
  size_t n = lua_objlen(L, -1);
  for (size_t i = 1; i <= n; i++) {
    lua_rawgeti(L, -1, (int)i);
    int rc = MW_ESCRIPT;
    if (lua_type(L, -1) == LUA_TSTRING) {
      rc = mw_values_add(out, mw_bind_slice(L, -1));
    } else {
      mw_err_set(err, rc, "value %d of an index function is a %s, not a string", (int)i,
                 luaL_typename(L, -1));
    }
    lua_pop(L, 1);
    if (rc < 0) return rc;
  }
  return 0;
}

static int index_values(void *ctx, struct mw_object *o, struct mw_values *out,
                        struct mw_err *err) {
  struct hook *k = ctx;
  if (k->extract != NULL) return mw_index_extract(k->extract, o, out, err);
  if (k->L == NULL) return 0;
  lua_State *L = k->L;
  mw_luaref_push(L, k->fn);
  mw_objtable_push(L, o);
  int rc = mw_script_call(L, 1, 1, err);
  if (rc < 0) return rc;
  rc = read_values(L, out, err);
  lua_pop(L, 1);
  return rc;
}

// The index spec on top of the stack: a function, or {path=}, {label=}, {owner=}.
static struct hook *index_hook(lua_State *L, const char *name) {
  if (lua_isfunction(L, -1)) {
    lua_pushvalue(L, -1);
    return hook_new(L, true, index_close);
  }
  if (!lua_istable(L, -1)) {
    luaL_error(L, "index '%s' must be a function or a spec such as { path = \"spec.nodeName\" }",
               name);
  }
  int t = lua_gettop(L);
  const char *path = mw_bind_opt_string(L, t, "path", NULL);
  const char *label = mw_bind_opt_string(L, t, "label", NULL);
  const char *owner = mw_bind_opt_string(L, t, "owner", NULL);
  if (path == NULL && label == NULL && owner == NULL) {
    luaL_error(L, "index '%s' needs one of path, label or owner", name);
  }
  struct mw_err err;
  struct mw_extract *x = mw_extract_new(path != NULL    ? MW_EXTRACT_PATH
                                        : label != NULL ? MW_EXTRACT_LABEL
                                                        : MW_EXTRACT_OWNER,
                                        mw_slice_str(path    ? path
                                                     : label ? label
                                                     : strcmp(owner, "any") == 0 ? ""
                                                                                 : owner),
                                        &err);
  if (x == NULL) mw_bind_raise(L, &err);
  struct hook *k = hook_new(L, false, index_close);
  k->extract = x;
  return k;
}

// add_indexers{name = spec, ...}: all or none.
int mw_bind_add_indexers(lua_State *L) {
  struct mw_handle *h = mw_bind_check_handle(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  struct mw_index_spec specs[INDEXES_MAX];
  size_t count = 0;
  for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {  // [name, spec]
    if (count == INDEXES_MAX) return luaL_error(L, "more than %d indexes at once", INDEXES_MAX);
    if (lua_type(L, -2) != LUA_TSTRING) {
      return luaL_error(L, "indexes are given by name: add_indexers { by_node = ... }");
    }
    const char *name = lua_tostring(L, -2);
    struct hook *k = index_hook(L, name);
    k->name = mw_xstrdup(name);
    k->inf = h->inf;
    specs[count++] = (struct mw_index_spec){
        .name = k->name, .values = index_values, .free_ctx = hook_free, .ctx = k};
  }
  struct mw_err err;
  if (mw_informer_add_indexes(h->inf, specs, count, &err) < 0) return mw_bind_raise(L, &err);
  return 0;
}

int mw_bind_remove_indexer(lua_State *L) {
  struct mw_handle *h = mw_bind_check_handle(L, 1);
  struct mw_err err;
  struct mw_indexer *ix = mw_informer_indexer(h->inf);
  if (mw_indexer_remove_index(ix, mw_bind_slice(L, 2), &err) < 0) return mw_bind_raise(L, &err);
  return 0;
}

// The table on top of the stack as an object of the same key as `in`.
static int object_of_table(struct hook *k, struct mw_object *in, struct mw_object **out,
                           struct mw_err *err) {
  mw_buf_reset(&k->json);
  int rc = mw_codec_encode(k->L, -1, &k->json, err);
  if (rc < 0) return rc;
  struct mw_json c = {k->json.p, k->json.p + k->json.n};
  struct mw_item item;
  rc = mw_item_scan(k->scanner, &c, mw_projection_all(), NULL, &item, err);
  if (rc < 0) return rc;
  *out = mw_object_new(&item, k->packer, err);
  if (*out == NULL) return MW_ESCRIPT;
  if (mw_slice_eq(mw_object_key(*out), mw_object_key(in))) return 0;
  mw_object_unref(*out);
  *out = NULL;
  return mw_err_set(err, MW_ESCRIPT, "a transform must not change the name or namespace");
}

// The script gets a table of its own to change; returning nothing drops the object.
static int transform(void *ctx, struct mw_object *in, struct mw_object **out, struct mw_err *err) {
  struct hook *k = ctx;
  if (k->L == NULL) {  // the script is gone and so is this informer's reason to be
    *out = mw_object_ref(in);
    return 0;
  }
  lua_State *L = k->L;
  mw_luaref_push(L, k->fn);
  int rc = mw_codec_push(L, mw_object_json(in, mw_objtable_unpacker(L)), err);
  if (rc < 0) {
    lua_pop(L, 1);
    return rc;
  }
  rc = mw_script_call(L, 1, 1, err);
  if (rc < 0) return rc;
  if (lua_isnil(L, -1)) {
    rc = 1;
  } else if (lua_istable(L, -1)) {
    rc = object_of_table(k, in, out, err);
  } else {
    rc = mw_err_set(err, MW_ESCRIPT, "a transform returns an object or nil, not a %s",
                    luaL_typename(L, -1));
  }
  lua_pop(L, 1);
  return rc;
}

int mw_bind_set_transform(lua_State *L) {
  struct mw_handle *h = mw_bind_check_handle(L, 1);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  struct hook *k = hook_new(L, true, hook_close);
  k->scanner = mw_item_scanner_new();
  k->packer = mw_packer_new();
  mw_buf_init(&k->json, MW_ITEM_SIZE_MAX);
  struct mw_err err;
  if (mw_informer_set_transform(h->inf, transform, k, hook_free, &err) < 0) {
    hook_free(k);
    return mw_bind_raise(L, &err);
  }
  return 0;
}

static const char *const places[] = {"list", "stream_list", "watch_open", "watch"};

static void on_watch_error(void *ctx, enum mw_error_place place, const struct mw_err *error,
                           const char *again) {
  struct hook *k = ctx;
  if (k->L == NULL) return;
  lua_State *L = k->L;
  struct mw_err err;
  mw_luaref_push(L, k->fn);  // [fn]
  lua_newtable(L);           // [fn, error]
  lua_pushstring(L, error->message);
  lua_setfield(L, -2, "message");
  lua_pushstring(L, mw_err_name(error->code));
  lua_setfield(L, -2, "code");
  lua_pushinteger(L, error->http_status);
  lua_setfield(L, -2, "status");
  lua_pushstring(L, places[place]);
  lua_setfield(L, -2, "place");
  lua_pushstring(L, again);
  lua_setfield(L, -2, "again");
  if (mw_script_call(L, 1, 0, &err) < 0) {
    mw_log(MW_LOG_ERROR, "watch error handler failed", MW_STR("error", err.message));
  }
}

int mw_bind_set_error_handler(lua_State *L) {
  struct mw_handle *h = mw_bind_check_handle(L, 1);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  struct hook *k = hook_new(L, true, hook_close);
  struct mw_err err;
  if (mw_informer_set_error_handler(h->inf, on_watch_error, k, hook_free, &err) < 0) {
    hook_free(k);
    return mw_bind_raise(L, &err);
  }
  return 0;
}
