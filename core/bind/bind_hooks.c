// SPDX-License-Identifier: Apache-2.0
// What a script hangs onto an informer besides handlers: indexes, a transform, a watch error
// handler. Indexes go with the handle, which is gone before the state is. The others live on the
// heap beyond it: when the generation ends, they are cut off from the state (L becomes NULL) and do
// nothing.
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
  lua_State *L;  // NULL once the generation has ended
  int fn;        // registry reference
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
  mw_item_scanner_free(k->scanner);
  mw_packer_free(k->packer);
  mw_buf_deinit(&k->json);
  mw_free(k);
}

static void hook_close(struct mw_owned *o) { hook_detach((struct hook *)o); }

// Takes the function on top of the stack.
static struct hook *hook_new(lua_State *L) {
  struct hook *k = mw_xcalloc(1, sizeof *k);
  k->gen = mw_generation_of(L);
  k->L = mw_generation_state(k->gen);
  k->fn = mw_luaref_take(L);
  k->owned.close = hook_close;
  k->owned.passive = true;
  mw_generation_own(k->gen, &k->owned);
  return k;
}

// A function of the script as an index; goes with the index.
struct index_function {
  lua_State *L;  // the main one of the generation
  int fn;        // registry reference
};

static void index_function_free(void *ctx) {
  struct index_function *f = ctx;
  mw_luaref_drop(f->L, &f->fn);
  mw_free(f);
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
  const struct index_function *f = ctx;
  lua_State *L = f->L;
  mw_luaref_push(L, f->fn);
  mw_objtable_push(L, o);
  int rc = mw_script_call_as(L, "an index function", 1, 1, err);
  if (rc < 0) return rc;
  rc = read_values(L, out, err);
  lua_pop(L, 1);
  return rc;
}

// The index spec on top of the stack as one that runs in C. Its identity is put at the end of the
// list at 3, which holds it.
static int read_extract(lua_State *L, struct mw_index_spec *spec, struct mw_err *err) {
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
  if (given != 1) {
    return mw_err_set(err, MW_EINVAL,
                      "index '%s' must be a function or one of { path = \"spec.nodeName\" }, "
                      "{ label = \"app\" }, { owner = \"controller\" }",
                      spec->name);
  }
  lua_pushfstring(L, "%s:", fields[kind]);
  lua_pushlstring(L, argument.p, argument.n);
  lua_concat(L, 2);
  spec->identity = mw_bind_slice(L, -1);
  lua_rawseti(L, 3, (int)lua_objlen(L, 3) + 1);
  if (kind == MW_EXTRACT_OWNER && mw_slice_is(argument, "any")) argument.n = 0;
  spec->ctx = mw_extract_new(kind, argument, err);
  spec->values = mw_index_extract;
  spec->free_ctx = mw_index_extract_free;
  return spec->ctx != NULL ? 0 : err->code;
}

// Reads [name, value] on top of the stack.
static int read_index(lua_State *L, struct mw_index_spec *spec, struct mw_err *err) {
  if (lua_type(L, -2) != LUA_TSTRING) {
    return mw_err_set(err, MW_EINVAL, "indexes are given by name: add_indexers { by_node = ... }");
  }
  *spec = (struct mw_index_spec){.name = lua_tostring(L, -2)};  // the table holds it
  if (!lua_isfunction(L, -1)) return read_extract(L, spec, err);
  struct index_function *f = mw_xcalloc(1, sizeof *f);
  f->L = mw_generation_state(mw_generation_of(L));
  lua_pushvalue(L, -1);
  f->fn = mw_luaref_take(L);
  spec->ctx = f;
  spec->values = index_values;
  spec->free_ctx = index_function_free;
  return 0;
}

// Reads {name = spec, ...} at 2 into specs; negative and err, with nothing left, when one is wrong.
static int read_indexes(lua_State *L, struct mw_index_spec *specs, struct mw_err *err) {
  int count = 0;
  for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {  // [name, spec]
    int rc = count < INDEXES_MAX
                 ? read_index(L, &specs[count], err)
                 : mw_err_set(err, MW_ELIMIT, "more than %d indexes at once", INDEXES_MAX);
    if (rc < 0) {
      while (count-- > 0) specs[count].free_ctx(specs[count].ctx);
      return rc;
    }
    count++;
  }
  return count;
}

// add_indexers{name = spec, ...}: all or none.
int mw_bind_add_indexers(lua_State *L) {
  struct mw_handle *h = mw_bind_check_handle(L, 1);
  mw_bind_check_not_stopped(L, h, "cannot add indexes");
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  lua_newtable(L);  // [handle, indexes, what must live until the end]
  struct mw_index_spec specs[INDEXES_MAX];
  struct mw_err err;
  int count = read_indexes(L, specs, &err);
  if (count < 0) return mw_bind_raise(L, &err);
  if (mw_informer_add_indexes(h->inf, h->gen, specs, (size_t)count, &err) < 0) {
    return mw_bind_raise(L, &err);
  }
  return 0;
}

int mw_bind_remove_indexer(lua_State *L) {
  struct mw_handle *h = mw_bind_check_handle(L, 1);
  struct mw_err err;
  struct mw_indexer *ix = mw_informer_indexer(h->inf);
  if (mw_indexer_remove_index(ix, h->gen, mw_bind_slice(L, 2), &err) < 0)
    return mw_bind_raise(L, &err);
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
  struct hook *k = hook_new(L);
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
  struct hook *k = hook_new(L);
  struct mw_err err;
  if (mw_informer_set_error_handler(h->inf, on_watch_error, k, hook_free, &err) < 0) {
    hook_free(k);
    return mw_bind_raise(L, &err);
  }
  return 0;
}
