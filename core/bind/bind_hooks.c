// SPDX-License-Identifier: Apache-2.0
// What a script hangs onto an informer besides handlers: indexes, a transform, a watch error
// handler. All go with the handle, which is gone before the state is.
//
// A transform and an error handler for an informer that runs already, for the generation before,
// are set at commit and take over there.
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "bind/codec.h"
#include "bind/informer_handle.h"
#include "bind/object_maker.h"
#include "bind/objtable.h"
#include "bind/util.h"
#include "cache/extract.h"
#include "script/call.h"
#include "script/ref.h"
#include "script/sched.h"

enum { INDEXES_MAX = 64 };

struct hook {
  struct mw_handle *handle;      // +1 until it is set
  lua_State *L;                  // the main one of the generation
  int fn;                        // registry reference
  struct mw_object_maker maker;  // of a transform
  bool calling;                  // its function is on the stack
  bool dropped;                  // meanwhile: it goes when that has returned
};

static void hook_free(void *ctx) {
  struct hook *k = ctx;
  mw_luaref_drop(k->L, &k->fn);
  k->dropped = true;
  if (k->calling) return;
  mw_object_maker_deinit(&k->maker);
  mw_free(k);
}

// Takes the function on top of the stack.
static struct hook *hook_new(lua_State *L, struct mw_handle *h) {
  struct hook *k = mw_xcalloc(1, sizeof *k);
  k->handle = h;
  h->refs++;
  k->L = mw_generation_state(h->gen);
  k->fn = mw_luaref_take(L);
  return k;
}

// Sets the hook, which is then the informer's, by `set`: now, or at commit when the informer runs.
static void hook_place(struct hook *k, mw_loop_cb set) {
  if (mw_informer_is_started(k->handle->inf)) {
    mw_generation_defer(k->handle->gen, set, k);
  } else {
    set(k);
  }
}

// The end of `set`: rc is what the informer said.
static void hook_placed(struct hook *k, int rc, const struct mw_err *err, const char *what) {
  struct mw_handle *h = k->handle;
  k->handle = NULL;
  if (rc < 0) {
    if (!mw_generation_is_stopping(h->gen)) {
      mw_log(MW_LOG_ERROR, what, MW_STR("resource", mw_informer_name(h->inf)),
             MW_STR("error", err->message));
    }
    hook_free(k);
  }
  mw_bind_handle_unref(h);
}

// Where a function of the script stands, for what is wrong with what it returned.
static lua_Debug place_of(lua_State *L, int fn) {
  lua_Debug place;
  mw_luaref_push(L, fn);
  lua_getinfo(L, ">S", &place);
  return place;
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
static int read_values(const struct index_function *f, struct mw_values *out, struct mw_err *err) {
  lua_State *L = f->L;
  if (lua_isnil(L, -1)) return 0;
  if (lua_type(L, -1) == LUA_TSTRING) return mw_values_add(out, mw_bind_slice(L, -1));
  if (!lua_istable(L, -1)) {
    lua_Debug at = place_of(L, f->fn);
    return mw_err_set(err, MW_ESCRIPT,
                      "%s:%d: an index function returns a list of strings, not a %s", at.short_src,
                      at.linedefined, luaL_typename(L, -1));
  }
  size_t n = lua_objlen(L, -1);
  for (size_t i = 1; i <= n; i++) {
    lua_rawgeti(L, -1, (int)i);
    int rc = MW_ESCRIPT;
    if (lua_type(L, -1) == LUA_TSTRING) {
      rc = mw_values_add(out, mw_bind_slice(L, -1));
    } else {
      lua_Debug at = place_of(L, f->fn);
      mw_err_set(err, rc, "%s:%d: value %d of an index function is a %s, not a string",
                 at.short_src, at.linedefined, (int)i, luaL_typename(L, -1));
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
  rc = read_values(f, out, err);
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
static int object_of_table(struct hook *k, struct mw_object *in, bool is_new,
                           struct mw_object **out, struct mw_err *err) {
  *out = mw_object_make(&k->maker, k->L, -1, is_new, err);
  if (*out == NULL) return MW_ESCRIPT;
  if (mw_slice_eq(mw_object_key(*out), mw_object_key(in))) return 0;
  mw_object_unref(*out);
  *out = NULL;
  return mw_err_set(err, MW_ESCRIPT, "a transform must not change the name or namespace");
}

// What the transform returned, on top of the stack.
static int read_transformed(struct hook *k, struct mw_object *in, bool is_new,
                            struct mw_object **out, struct mw_err *err) {
  if (lua_isnil(k->L, -1)) return 1;
  if (lua_istable(k->L, -1)) return object_of_table(k, in, is_new, out, err);
  return mw_err_set(err, MW_ESCRIPT, "a transform returns an object or nil, not a %s",
                    luaL_typename(k->L, -1));
}

// Puts the place of the function before what is wrong with what it returned.
static void name_place(const struct hook *k, struct mw_err *err) {
  struct mw_err said = *err;
  lua_Debug at = place_of(k->L, k->fn);
  mw_err_set(err, said.code, "%s:%d: %s", at.short_src, at.linedefined, said.message);
}

// The script gets a table of its own to change; returning nothing drops the object.
static int transform(void *ctx, struct mw_object *in, const struct mw_object *stored,
                     struct mw_object **out, struct mw_err *err) {
  struct hook *k = ctx;
  lua_State *L = k->L;
  mw_luaref_push(L, k->fn);
  int rc = mw_codec_push(L, mw_object_json(in, mw_objtable_unpacker(L)), err);
  if (rc < 0) {
    lua_pop(L, 1);
    return rc;
  }
  k->calling = true;
  rc = mw_script_call_as(L, "a transform", 1, 1, err);
  if (rc == 0) {
    rc = read_transformed(k, in, stored == NULL, out, err);
    if (rc < 0 && !k->dropped) name_place(k, err);  // else its function has gone
    lua_pop(L, 1);
  }
  k->calling = false;
  if (k->dropped) hook_free(k);
  return rc;
}

static void place_transform(void *arg) {
  struct hook *k = arg;
  struct mw_handle *h = k->handle;
  struct mw_err err;
  int rc = MW_ESTATE;
  if (!mw_generation_is_stopping(h->gen)) {
    rc = mw_informer_set_transform(h->inf, h->gen, transform, k, hook_free, &err);
  }
  hook_placed(k, rc, &err, "transform not set");
}

int mw_bind_set_transform(lua_State *L) {
  struct mw_handle *h = mw_bind_check_handle(L, 1);
  mw_bind_check_not_started(L, h, "cannot set a transform");
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  struct hook *k = hook_new(L, h);
  mw_object_maker_init(&k->maker);
  hook_place(k, place_transform);
  return 0;
}

static const char *const places[] = {"list", "stream_list", "watch_open", "watch"};

static void on_watch_error(void *ctx, enum mw_error_place place, const struct mw_err *error,
                           const char *again) {
  const struct hook *k = ctx;
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

static void place_error_handler(void *arg) {
  struct hook *k = arg;
  struct mw_handle *h = k->handle;
  struct mw_err err;
  int rc = MW_ESTATE;
  if (!mw_generation_is_stopping(h->gen)) {
    rc = mw_informer_set_error_handler(h->inf, h->gen, on_watch_error, k, hook_free, &err);
  }
  hook_placed(k, rc, &err, "watch error handler not set");
}

int mw_bind_set_error_handler(lua_State *L) {
  struct mw_handle *h = mw_bind_check_handle(L, 1);
  mw_bind_check_not_started(L, h, "cannot set an error handler");
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  hook_place(hook_new(L, h), place_error_handler);
  return 0;
}
