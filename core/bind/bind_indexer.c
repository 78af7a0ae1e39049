// SPDX-License-Identifier: Apache-2.0
// kube._core.indexer: reads of a store. One userdata serves as indexer, store and lister; the
// names that client-go gives to each are put on it in lua/kube.
#include "bind/bind_indexer.h"

#include <string.h>

#include "base/alloc.h"
#include "bind/bind.h"
#include "bind/informer_handle.h"
#include "bind/object_maker.h"
#include "bind/objtable.h"
#include "bind/selector_arg.h"
#include "bind/util.h"
#include "cache/informer.h"

#define TYPE "kube.reader"
#define LIST_TYPE "kube.object_list"

// Results of one read while Lua walks over them. A userdata, so that an error halfway leaks
// nothing.
struct object_list {
  struct mw_object_list objects;
  size_t next;
};

struct reader {
  struct mw_handle *handle;  // +1
  char *ns;                  // "": all namespaces
};

void mw_bind_push_reader(lua_State *L, struct mw_handle *h, const char *ns) {
  struct reader *r = lua_newuserdata(L, sizeof *r);  // [reader]
  r->handle = h;
  h->refs++;
  r->ns = mw_xstrdup(ns != NULL ? ns : "");
  luaL_getmetatable(L, TYPE);
  lua_setmetatable(L, -2);
}

static struct reader *check_reader(lua_State *L) { return luaL_checkudata(L, 1, TYPE); }

static int reader_gc(lua_State *L) {
  struct reader *r = check_reader(L);
  if (r->handle != NULL) mw_bind_handle_unref(r->handle);
  mw_free(r->ns);
  *r = (struct reader){0};
  return 0;
}

static struct mw_indexer *indexer_of(struct reader *r) {
  return mw_informer_indexer(r->handle->inf);
}

// Whose indexes it reads.
static const void *owner_of(const struct reader *r) { return r->handle->gen; }

static int list_gc(lua_State *L) {
  struct object_list *l = luaL_checkudata(L, 1, LIST_TYPE);
  mw_object_list_deinit(&l->objects);
  return 0;
}

static struct object_list *push_list(lua_State *L) {
  struct object_list *l = lua_newuserdata(L, sizeof *l);  // [list]
  *l = (struct object_list){0};
  luaL_getmetatable(L, LIST_TYPE);
  lua_setmetatable(L, -2);
  return l;
}

// [list] -> [list, array of object tables]
static int push_tables(lua_State *L, const struct object_list *l) {
  lua_createtable(L, (int)l->objects.n, 0);
  for (size_t i = 0; i < l->objects.n; i++) {
    mw_objtable_push(L, l->objects.v[i]);
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}

// The text at idx, for the function and argument named in what.
static struct mw_slice text_at(lua_State *L, int idx, const char *what) {
  if (lua_type(L, idx) != LUA_TSTRING) {
    mw_bind_misuse(L, "%s must be a string, not %s", what, mw_bind_kind(L, idx));
  }
  return mw_bind_slice(L, idx);
}

// Whether key is in the reader's namespace.
static bool is_ours(const struct reader *r, struct mw_slice key) {
  size_t n = strlen(r->ns);
  return n == 0 || (key.n > n && memcmp(key.p, r->ns, n) == 0 && key.p[n] == '/');
}

// Lets go of the objects that are in other namespaces.
static void keep_ours(const struct reader *r, struct mw_object_list *list) {
  size_t kept = 0;
  for (size_t i = 0; i < list->n; i++) {
    struct mw_object *o = list->v[i];
    if (is_ours(r, mw_object_key(o))) {
      list->v[kept++] = o;
    } else {
      mw_object_unref(o);
    }
  }
  list->n = kept;
}

// get(key): the object or nil. A reader of one namespace takes the bare name (S-LST-04), or a whole
// key, under which it finds only what is in that namespace.
static int reader_get(lua_State *L) {
  struct reader *r = check_reader(L);
  struct mw_slice key = text_at(L, 2, "get(key): key");
  char full[MW_OBJECT_KEY_MAX];
  size_t ns_len = strlen(r->ns);
  if (!is_ours(r, key)) {
    if (ns_len + 1 + key.n > sizeof full) {
      lua_pushnil(L);
      return 1;
    }
    memcpy(full, r->ns, ns_len);
    full[ns_len] = '/';
    memcpy(full + ns_len + 1, key.p, key.n);
    key = mw_slice(full, ns_len + 1 + key.n);
  }
  struct mw_object *o = mw_indexer_get(indexer_of(r), key);
  if (o != NULL) {
    mw_objtable_push(L, o);
  } else {
    lua_pushnil(L);
  }
  return 1;
}

// The objects that arguments 2 (options) select: {namespace=, selector=}.
static struct object_list *select_objects(lua_State *L, struct reader *r) {
  struct mw_slice ns = mw_slice_str(r->ns);
  struct mw_selector **selector = NULL;
  if (!lua_isnoneornil(L, 2)) {
    luaL_checktype(L, 2, LUA_TTABLE);
    const char *wanted = mw_bind_opt_string(L, 2, "namespace", r->ns);
    if (ns.n > 0 && strcmp(wanted, r->ns) != 0) {
      mw_bind_misuse(L, "this reader is of the namespace '%s' and has nothing of '%s'", r->ns,
                     wanted);
    }
    ns = mw_slice_str(wanted);
    lua_getfield(L, 2, "selector");
    if (!lua_isnil(L, -1)) selector = mw_bind_push_selector(L, lua_gettop(L));
  }
  struct object_list *l = push_list(L);
  mw_indexer_list(indexer_of(r), ns, selector != NULL ? *selector : NULL, mw_objtable_unpacker(L),
                  &l->objects);
  return l;
}

static int reader_list(lua_State *L) { return push_tables(L, select_objects(L, check_reader(L))); }

static int each_next(lua_State *L) {
  struct object_list *l = luaL_checkudata(L, lua_upvalueindex(1), LIST_TYPE);
  if (l->next >= l->objects.n) return 0;
  mw_objtable_push(L, l->objects.v[l->next++]);
  return 1;
}

static int each_key(lua_State *L) {
  struct object_list *l = luaL_checkudata(L, lua_upvalueindex(1), LIST_TYPE);
  if (l->next >= l->objects.n) return 0;
  struct mw_slice key = mw_object_key(l->objects.v[l->next++]);
  lua_pushlstring(L, key.p, key.n);
  return 1;
}

// An iterator over a snapshot: the store may change while the script walks.
static int reader_each(lua_State *L) {
  select_objects(L, check_reader(L));
  lua_pushcclosure(L, each_next, 1);
  return 1;
}

static int reader_keys(lua_State *L) {
  select_objects(L, check_reader(L));
  lua_pushcclosure(L, each_key, 1);
  return 1;
}

static int reader_count(lua_State *L) {
  struct reader *r = check_reader(L);
  if (r->ns[0] == '\0' && lua_isnoneornil(L, 2)) {
    lua_pushinteger(L, (lua_Integer)mw_indexer_count(indexer_of(r)));
    return 1;
  }
  lua_pushinteger(L, (lua_Integer)select_objects(L, r)->objects.n);
  return 1;
}

static int reader_by_index(lua_State *L) {
  struct reader *r = check_reader(L);
  struct mw_slice index = text_at(L, 2, "by_index(name, value): name");
  struct mw_slice value = text_at(L, 3, "by_index(name, value): value");
  struct object_list *l = push_list(L);
  struct mw_err err;
  if (mw_indexer_by_index(indexer_of(r), owner_of(r), index, value, &l->objects, &err) < 0) {
    return mw_bind_raise(L, &err);
  }
  keep_ours(r, &l->objects);
  return push_tables(L, l);
}

// The object that the table at idx is, or one that is made for this call; +1.
static struct mw_object *object_at(lua_State *L, int idx, struct mw_err *err) {
  struct mw_object *cached = mw_objtable_object(L, idx);
  if (cached != NULL) return mw_object_ref(cached);
  struct mw_object_maker maker;
  mw_object_maker_init(&maker);
  struct mw_object *made = mw_object_make(&maker, L, idx, true, err);
  mw_object_maker_deinit(&maker);
  return made;
}

static int reader_index(lua_State *L) {
  struct reader *r = check_reader(L);
  struct mw_slice index = text_at(L, 2, "index(name, object): name");
  if (!lua_istable(L, 3)) {
    return mw_bind_misuse(L, "index(name, object): object must be a table, not a %s",
                          luaL_typename(L, 3));
  }
  struct object_list *l = push_list(L);
  struct mw_err err;
  struct mw_object *o = object_at(L, 3, &err);
  if (o == NULL) return mw_bind_misuse(L, "index(name, object): %s", err.message);
  int rc = mw_indexer_index(indexer_of(r), owner_of(r), index, o, &l->objects, &err);
  mw_object_unref(o);
  if (rc < 0) return mw_bind_raise(L, &err);
  keep_ours(r, &l->objects);
  return push_tables(L, l);
}

// Appends the value to the array on top.
static void append(lua_State *L, struct mw_slice s) {
  lua_pushlstring(L, s.p, s.n);
  lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
}

static int reader_index_keys(lua_State *L) {
  struct reader *r = check_reader(L);
  struct mw_slice index = text_at(L, 2, "index_keys(name, value): name");
  struct mw_slice value = text_at(L, 3, "index_keys(name, value): value");
  struct mw_values keys;
  struct mw_err err;
  mw_values_init(&keys);
  int rc = mw_indexer_index_keys(indexer_of(r), owner_of(r), index, value, &keys, &err);
  lua_newtable(L);
  for (size_t i = 0; rc == 0 && i < keys.count; i++) {
    struct mw_slice key = mw_values_get(&keys, i);
    if (is_ours(r, key)) append(L, key);
  }
  mw_values_deinit(&keys);
  return rc == 0 ? 1 : mw_bind_raise(L, &err);
}

// Whether an object of the reader's namespace has this value. keys is for reuse.
static bool has_ours(struct reader *r, struct mw_slice index, struct mw_slice value,
                     struct mw_values *keys) {
  if (r->ns[0] == '\0') return true;
  mw_values_reset(keys);
  if (mw_indexer_index_keys(indexer_of(r), owner_of(r), index, value, keys, NULL) < 0) return false;
  for (size_t i = 0; i < keys->count; i++) {
    if (is_ours(r, mw_values_get(keys, i))) return true;
  }
  return false;
}

static int reader_index_values(lua_State *L) {
  struct reader *r = check_reader(L);
  struct mw_slice index = text_at(L, 2, "index_values(name): name");
  struct mw_values values, keys;
  mw_values_init(&values);
  mw_values_init(&keys);
  mw_indexer_index_values(indexer_of(r), owner_of(r), index, &values);
  lua_newtable(L);
  for (size_t i = 0; i < values.count; i++) {
    struct mw_slice value = mw_values_get(&values, i);
    if (has_ours(r, index, value, &keys)) append(L, value);
  }
  mw_values_deinit(&keys);
  mw_values_deinit(&values);
  return 1;
}

static void add_index_name(void *ctx, struct mw_slice name) { append(ctx, name); }

static int reader_index_names(lua_State *L) {
  struct reader *r = check_reader(L);
  lua_newtable(L);
  mw_indexer_each_index(indexer_of(r), owner_of(r), add_index_name, L);
  return 1;
}

// The resource version that matches the content (S-STO-30).
static int reader_resource_version(lua_State *L) {
  struct mw_slice rv = mw_indexer_rv(indexer_of(check_reader(L)));
  lua_pushlstring(L, rv.p, rv.n);
  return 1;
}

static int reader_namespace(lua_State *L) {
  struct reader *r = check_reader(L);
  text_at(L, 2, "namespace(name): name");
  mw_bind_check_namespace(L, 2, "namespace(name)");
  const char *ns = lua_tostring(L, 2);
  if (r->ns[0] != '\0' && strcmp(ns, r->ns) != 0) {
    return mw_bind_misuse(L, "this reader is of the namespace '%s' and has nothing of '%s'", r->ns,
                          ns);
  }
  mw_bind_push_reader(L, r->handle, ns);
  return 1;
}

static const luaL_Reg methods[] = {
    {"get", reader_get},
    {"list", reader_list},
    {"each", reader_each},
    {"keys", reader_keys},
    {"count", reader_count},
    {"by_index", reader_by_index},
    {"index", reader_index},
    {"index_keys", reader_index_keys},
    {"index_values", reader_index_values},
    {"index_names", reader_index_names},
    {"resource_version", reader_resource_version},
    {"namespace", reader_namespace},
    {NULL, NULL},
};

void mw_bind_indexer(lua_State *L) {
  static const luaL_Reg list_methods[] = {{NULL, NULL}};
  mw_bind_new_type(L, TYPE, methods, reader_gc);
  mw_bind_new_type(L, LIST_TYPE, list_methods, list_gc);
  luaL_getmetatable(L, TYPE);
  lua_getfield(L, -1, "__index");  // [meta, methods]: lua/kube adds the client-go names
  lua_remove(L, -2);
}
