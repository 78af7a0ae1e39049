// SPDX-License-Identifier: Apache-2.0
// Input: any bytes. What decodes is encoded and decoded again to the same value, and encodes at
// all; what does not decode says so and leaves the stack as it was. What can be cached as an object
// is read field by field and completed; with distinct keys it then equals the eager decode. What is
// written in order reads as the same value, has no key twice, and is written the same again.
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "fuzz.h"

#include "bind/codec.h"
#include "bind/objtable.h"
#include "cache/object.h"
#include "wire/duplicates.h"
#include "wire/item.h"
#include "wire/pack.h"

enum { TEXT_MAX = 64 * 1024 * 1024, COLLECT_EVERY = 256 };

static struct mw_item_scanner *scanner;
static struct mw_packer *packer;
static struct mw_buf text;
static struct mw_buf other;
static struct mw_buf scratch;

// Lua's memory from malloc, where the sanitizers see it.
static void *allocate(void *ctx, void *p, size_t old, size_t n) {
  (void)ctx;
  (void)old;
  if (n > 0) return realloc(p, n);
  free(p);
  return NULL;
}

static void encode(lua_State *L, int idx, struct mw_buf *out) {
  struct mw_err err = {0};
  mw_buf_reset(out);
  require(mw_codec_encode(L, idx, out, &err) == 0);
}

static void check_equal(lua_State *L, int a, int b);

static void check_equal_tables(lua_State *L, int a, int b) {
  size_t n = 0;
  require(lua_getmetatable(L, a) && lua_getmetatable(L, b));
  require(lua_rawequal(L, -1, -2));
  lua_pop(L, 2);
  for (lua_pushnil(L); lua_next(L, a); lua_pop(L, 1)) {  // [key, value]
    int value = lua_gettop(L);
    lua_pushvalue(L, value - 1);
    lua_rawget(L, b);
    check_equal(L, value, value + 1);
    lua_pop(L, 1);
    n++;
  }
  for (lua_pushnil(L); lua_next(L, b); lua_pop(L, 1)) n--;
  require(n == 0);
}

// Values that are no tables are the same when they are written alike.
static void check_equal(lua_State *L, int a, int b) {
  luaL_checkstack(L, 8, NULL);
  mw_objtable_complete(L, a);
  mw_objtable_complete(L, b);
  require(lua_istable(L, a) == lua_istable(L, b));
  if (lua_istable(L, a)) {
    check_equal_tables(L, a, b);
    return;
  }
  encode(L, a, &text);
  encode(L, b, &other);
  require(mw_slice_eq(mw_buf_slice(&text), mw_buf_slice(&other)));
}

// Whether no object in the JSON has two members of one name. Names count as written: escapes make
// it say yes too seldom, never too often, because any escape makes it say no.
static bool has_distinct_keys(struct mw_json *c, unsigned depth) {
  enum mw_json_kind kind = mw_json_peek(c);
  if (kind != MW_JSON_OBJECT && kind != MW_JSON_ARRAY) return mw_json_skip(c) == 0;
  struct mw_slice seen[16];
  size_t n = 0;
  bool first = true;
  bool escaped = false;
  struct mw_slice key = {NULL, 0};
  if (depth > 16 || mw_json_enter(c) < 0) return false;
  for (;;) {
    int rc = kind == MW_JSON_ARRAY ? mw_json_element(c, &first)
                                   : mw_json_member(c, &first, &key, &escaped);
    if (rc <= 0) return rc == 0;
    for (size_t i = 0; kind == MW_JSON_OBJECT && i < n; i++) {
      if (mw_slice_eq(seen[i], key)) return false;
    }
    if (kind == MW_JSON_OBJECT && (escaped || n == 16)) return false;
    if (kind == MW_JSON_OBJECT) seen[n++] = key;
    if (!has_distinct_keys(c, depth + 1)) return false;
  }
}

// Reads the members of the table at `lazy` that the eager table at `model` has; seed says which.
static void read_some(lua_State *L, int lazy, int model, size_t seed) {
  for (lua_pushnil(L); lua_next(L, model); lua_pop(L, 1)) {  // [key, value]
    if (seed++ % 3 == 0) continue;
    int value = lua_gettop(L);
    lua_pushvalue(L, value - 1);
    lua_gettable(L, lazy);
    if (lua_istable(L, -1) && lua_istable(L, value)) read_some(L, value + 1, value, seed + 1);
    lua_pop(L, 1);
  }
}

static void check_object(lua_State *L, struct mw_slice json, int model) {
  struct mw_json c = {json.p, json.p + json.n};
  struct mw_item item;
  if (!lua_istable(L, model)) return;
  if (mw_item_scan(scanner, &c, mw_projection_all(), NULL, &item, NULL) < 0) return;
  struct mw_object *o = mw_object_new(&item, packer, true, NULL);
  if (o == NULL) return;
  mw_objtable_push(L, o);
  mw_object_unref(o);
  int lazy = lua_gettop(L);
  luaL_checkstack(L, 2 * MW_JSON_DEPTH_MAX * 4, NULL);
  read_some(L, lazy, model, json.n);
  struct mw_json again = {json.p, json.p + json.n};
  if (has_distinct_keys(&again, 1)) check_equal(L, model, lazy);
  encode(L, lazy, &text);
}

static void count_duplicate(void *ctx, struct mw_slice path) {
  require(mw_utf8_valid(path));
  ++*(unsigned *)ctx;
}

// Whether a number has so many digits that it reads as its text: what 1e20 becomes in Go's form.
static bool has_long_number(struct mw_slice json) {
  size_t run = 0;
  for (size_t i = 0; i < json.n && run < 19; i++)
    run = json.p[i] >= '0' && json.p[i] <= '9' ? run + 1 : 0;
  return run >= 19;
}

// The value at idx 2, written in order.
static void check_sorted(lua_State *L, struct mw_slice json) {
  struct mw_err err = {0};
  unsigned duplicates = 0;
  require(mw_json_duplicates(json, 100, count_duplicate, &duplicates) == 0);
  struct mw_json c = {json.p, json.p + json.n};
  if (has_distinct_keys(&c, 1)) require(duplicates == 0);
  mw_buf_reset(&text);
  mw_buf_reset(&scratch);
  require(mw_codec_encode_sorted(L, 2, &text, &scratch, &err) == 0);
  duplicates = 0;
  require(mw_json_duplicates(mw_buf_slice(&text), 100, count_duplicate, &duplicates) == 0);
  require(duplicates == 0);
  require(mw_codec_push(L, mw_buf_slice(&text), &err) == 0);
  mw_buf_reset(&other);
  require(mw_codec_encode_sorted(L, -1, &other, &scratch, &err) == 0);
  require(mw_slice_eq(mw_buf_slice(&text), mw_buf_slice(&other)));
  if (!has_long_number(mw_buf_slice(&text))) check_equal(L, 2, lua_gettop(L));
  lua_pop(L, 1);
}

static int check(lua_State *L) {
  struct mw_slice json = *(struct mw_slice *)lua_touserdata(L, 1);
  struct mw_err err = {0};
  if (mw_codec_push(L, json, &err) < 0) {
    require(lua_gettop(L) == 1 && err.code < 0 && err.message[0] != '\0');
    return 0;
  }
  require(lua_gettop(L) == 2);
  encode(L, 2, &text);
  require(mw_codec_push(L, mw_buf_slice(&text), &err) == 0);
  check_equal(L, 2, 3);
  check_sorted(L, json);
  check_object(L, json, 2);
  return 0;
}

static lua_State *open_state(void) {
  lua_State *L = lua_newstate(allocate, NULL);
  luaL_openlibs(L);
  mw_codec_open(L);
  mw_objtable_open(L);
  mw_buf_init(&text, TEXT_MAX);
  mw_buf_init(&other, TEXT_MAX);
  mw_buf_init(&scratch, TEXT_MAX);
  scanner = mw_item_scanner_new(NULL);
  packer = mw_packer_new();
  return L;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static lua_State *L;
  static unsigned count;
  if (L == NULL) L = open_state();
  struct mw_slice json = {(const char *)data, size};
  require(lua_cpcall(L, check, &json) == 0);
  if (++count % COLLECT_EVERY == 0) lua_gc(L, LUA_GCCOLLECT, 0);
  return 0;
}
