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
  lua_State *L;                // NULL once the generation has ended
  int fn;                      // registry reference
  struct mw_informer *inf;     // indexes: borrowed, the informer owns the index and so the hook
  struct mw_extract *extract;  // an index spec that runs in C, instead of fn
  char *name;                  // indexes
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
  k->owned.passive = true;
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

static int index_values(void *ctx, struct mw_object *o, struct mw_values *out, struct mw_err *err) {
  struct hook *k = ctx;
  if (k->extract != NULL) return mw_index_extract(k->extract, o, out, err);
  if (k->L == NULL) return 0;
  lua_State *L = k->L;
  mw_luaref_push(L, k->fn);
  mw_objtable_push(L, o);
  int rc = mw_script_call_as(L, "an index function", 1, 1, err);
  if (rc < 0) return rc;
  rc = read_values(L, out, err);
  lua_pop(L, 1);
  return rc;
}

// What the index spec on top of the stack asks for in C; NULL and err when it is wrong.
static struct mw_extract *index_extract(lua_State *L, const char *name, struct mw_err *err) {
  static const char *const fields[] = {"path", "label", "owner"};
  struct mw_slice argument = {0};
  int given = 0;
  enum mw_extract_kind kind = MW_EXTRACT_PATH;
  for (int i = 0; lua_istable(L, -1) && i < 3; i++) {
    lua_getfield(L, -1, fields[i]);
    if (lua_type(L, -1) == LUA_TSTRING) {
      argument = mw_bind_slice(L, -1);  // the table holds it
      kind = (enum mw_extract_kind)i;
      given++;
    }
    lua_pop(L, 1);
  }
  if (given == 1) {
    if (kind == MW_EXTRACT_OWNER && mw_slice_is(argument, "any")) argument.n = 0;
    return mw_extract_new(kind, argument, err);
  }
  mw_err_set(err, MW_EINVAL,
             "index '%s' must be a function or one of { path = \"spec.nodeName\" }, "
             "{ label = \"app\" }, { owner = \"controller\" }",
             name);
  return NULL;
}

// A hook for the index spec on top of the stack; NULL and err when it is wrong.
static struct hook *index_hook(lua_State *L, const char *name, struct mw_err *err) {
  if (lua_isfunction(L, -1)) {
    lua_pushvalue(L, -1);
    return hook_new(L, true, index_close);
  }
  struct mw_extract *x = index_extract(L, name, err);
  if (x == NULL) return NULL;
  struct hook *k = hook_new(L, false, index_close);
  k->extract = x;
  return k;
}

// Reads {name = spec, ...} at 2 into specs; negative and err, with nothing left, when one is wrong.
static int read_indexes(lua_State *L, struct mw_handle *h, struct mw_index_spec *specs,
                        struct mw_err *err) {
  int count = 0;
  for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {  // [name, spec]
    struct hook *k = NULL;
    if (count == INDEXES_MAX) {
      mw_err_set(err, MW_ELIMIT, "more than %d indexes at once", INDEXES_MAX);
    } else if (lua_type(L, -2) != LUA_TSTRING) {
      mw_err_set(err, MW_EINVAL, "indexes are given by name: add_indexers { by_node = ... }");
    } else {
      k = index_hook(L, lua_tostring(L, -2), err);
    }
    if (k == NULL) {
      while (count > 0) hook_free(specs[--count].ctx);
      return err->code;
    }
    k->name = mw_xstrdup(lua_tostring(L, -2));
    k->inf = h->inf;
    specs[count++] = (struct mw_index_spec){
        .name = k->name, .values = index_values, .free_ctx = hook_free, .ctx = k};
  }
  return count;
}

// add_indexers{name = spec, ...}: all or none.
int mw_bind_add_indexers(lua_State *L) {
  struct mw_handle *h = mw_bind_check_handle(L, 1);
  mw_bind_check_not_stopped(L, h, "cannot add indexes");
  luaL_checktype(L, 2, LUA_TTABLE);
  struct mw_index_spec specs[INDEXES_MAX];
  struct mw_err err;
  int count = read_indexes(L, h, specs, &err);
  if (count < 0) return mw_bind_raise(L, &err);
  if (mw_informer_add_indexes(h->inf, specs, (size_t)count, &err) < 0) {
    return mw_bind_raise(L, &err);
  }
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
  item.partial = true;  // as far as anybody can tell
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
  rc = mw_script_call_as(L, "a transform", 1, 1, err);
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
  mw_luaref_push(L, k->fn);      // [fn]
  mw_bind_push_error(L, error);  // [fn, error]
  lua_pushstring(L, places[place]);
  lua_setfield(L, -2, "place");
  lua_pushstring(L, again);
  lua_setfield(L, -2, "again");
  if (mw_script_call_as(L, "a watch error handler", 1, 0, &err) < 0) {
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
