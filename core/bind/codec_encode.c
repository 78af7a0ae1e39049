// SPDX-License-Identifier: Apache-2.0
// Lua to JSON. Tables are read raw: no metamethod of a script runs, nothing raises.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "bind/codec.h"
#include "bind/codec_internal.h"
#include "bind/objtable.h"
#include "bind/objtable_internal.h"

// Where we are, as a chain of C frames from the innermost outwards.
struct place {
  const struct place *parent;
  struct mw_slice key;  // p is NULL for an element
  size_t index;
};

struct writer {
  lua_State *L;
  struct mw_buf *out;
  struct mw_err *err;
  struct mw_codec *codec;
  struct mw_buf *scratch;  // members of the open objects, as struct member; NULL: do not sort
};

enum {
  PATH_MAX_BYTES = 240,
  SORT_SMALL = 24,  // up to here insertion beats qsort
};

static bool is_plain_key(struct mw_slice key) {
  for (size_t i = 0; i < key.n; i++) {
    char c = key.p[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !(i > 0 && c >= '0' && c <= '9')) return false;
  }
  return key.n > 0;
}

static int add_place(struct mw_buf *path, const struct place *at) {
  if (at == NULL || at->parent == NULL) return 0;
  int rc = add_place(path, at->parent);
  if (rc < 0) return rc;
  if (at->key.p == NULL) return mw_buf_printf(path, "[%zu]", at->index);
  if (is_plain_key(at->key)) {
    return mw_buf_printf(path, "%s%.*s", path->n > 0 ? "." : "", MW_SLICE_ARGS(at->key));
  }
  if (!mw_utf8_valid(at->key)) return mw_buf_printf(path, "[?]");
  rc = mw_buf_add(path, "[", 1);
  if (rc == 0) rc = mw_json_quote(at->key, path);
  return rc == 0 ? mw_buf_add(path, "]", 1) : rc;
}

static int fail(struct writer *w, const struct place *at, int code, const char *why) {
  struct mw_buf path;
  mw_buf_init(&path, PATH_MAX_BYTES);
  bool cut = add_place(&path, at) < 0;
  struct mw_slice text = path.n > 0 ? mw_buf_slice(&path) : MW_SLICE("the value");
  mw_err_set(w->err, code, "cannot encode %.*s%s: %s", MW_SLICE_ARGS(text), cut ? "..." : "", why);
  mw_buf_deinit(&path);
  return code;
}

static inline int put(struct writer *w, const struct place *at, const void *p, size_t n) {
  struct mw_buf *out = w->out;
  if (n < out->cap - out->n && n <= out->limit - out->n) {  // as mw_buf_add does, without the call
    memcpy(out->p + out->n, p, n);
    out->n += n;
    out->p[out->n] = '\0';
    return 0;
  }
  return mw_buf_add(w->out, p, n) < 0 ? fail(w, at, MW_ELIMIT, "the document is too large") : 0;
}

static int write_text(struct writer *w, const struct place *at, struct mw_slice text) {
  int rc = w->scratch != NULL ? mw_json_quote_html(text, w->out) : mw_json_quote(text, w->out);
  if (rc == MW_EPARSE) return fail(w, at, MW_EINVAL, "the string is not valid UTF-8");
  return rc < 0 ? fail(w, at, rc, "the document is too large") : 0;
}

static int write_string(struct writer *w, const struct place *at, int idx) {
  struct mw_slice text;
  text.p = lua_tolstring(w->L, idx, &text.n);
  return write_text(w, at, text);
}

static int write_number(struct writer *w, const struct place *at, double d) {
  if (!isfinite(d)) return fail(w, at, MW_EINVAL, "NaN and infinity are not JSON");
  char text[MW_NUMBER_SIZE];
  size_t n = w->scratch != NULL ? mw_number_write_go(d, text) : mw_number_write(d, text);
  return put(w, at, text, n);
}

static int write_cdata(struct writer *w, const struct place *at, int idx) {
  int rc;
  switch (mw_codec_integer(w->L, idx)) {
    case MW_CODEC_INT64:
      rc = mw_buf_printf(w->out, "%" PRId64, w->codec->i64);
      break;
    case MW_CODEC_UINT64:
      rc = mw_buf_printf(w->out, "%" PRIu64, w->codec->u64);
      break;
    default:
      return fail(w, at, MW_EINVAL, "of cdata only 64-bit integers are JSON");
  }
  return rc < 0 ? fail(w, at, rc, "the document is too large") : 0;
}

static int write_userdata(struct writer *w, const struct place *at, int idx) {
  if (lua_type(w->L, idx) == LUA_TLIGHTUSERDATA && lua_touserdata(w->L, idx) == NULL) {
    return put(w, at, "null", 4);
  }
  struct mw_slice literal = mw_codec_literal(w->L, idx);
  if (literal.p == NULL) return fail(w, at, MW_EINVAL, "userdata is not JSON");
  return put(w, at, literal.p, literal.n);
}

static int write_value(struct writer *w, const struct place *at, int idx, unsigned depth);

// Counts the elements of the array at idx, whose keys must be 1 to n.
static int count_elements(struct writer *w, const struct place *at, int idx, size_t *count) {
  lua_State *L = w->L;
  size_t n = 0;
  double last = 0;
  for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {  // [key, value]
    if (lua_type(L, -2) != LUA_TNUMBER) {
      return fail(w, at, MW_EINVAL, "the array has a key that is not a number");
    }
    double key = lua_tonumber(L, -2);
    if (key < 1 || key != trunc(key)) {
      return fail(w, at, MW_EINVAL, "the array has a key that is not a positive whole number");
    }
    if (key > last) last = key;
    n++;
  }
  if (last != (double)n) return fail(w, at, MW_EINVAL, "the array has holes");
  *count = n;
  return 0;
}

static int write_array(struct writer *w, const struct place *at, int idx, unsigned depth) {
  size_t n = 0;
  int rc = count_elements(w, at, idx, &n);
  if (rc == 0) rc = put(w, at, "[", 1);
  for (size_t i = 1; rc == 0 && i <= n; i++) {
    struct place here = {.parent = at, .index = i};
    if (i > 1) rc = put(w, at, ",", 1);
    if (rc < 0) break;
    lua_rawgeti(w->L, idx, (int)i);
    rc = write_value(w, &here, lua_gettop(w->L), depth + 1);
    lua_settop(w->L, -2);
  }
  return rc < 0 ? rc : put(w, at, "]", 1);
}

static int write_member(struct writer *w, const struct place *at, bool first, unsigned depth) {
  lua_State *L = w->L;
  int key = lua_gettop(L) - 1;
  if (lua_type(L, key) != LUA_TSTRING) {
    return fail(w, at, MW_EINVAL, "the object has a key that is not a string");
  }
  struct place here = {.parent = at};
  here.key.p = lua_tolstring(L, key, &here.key.n);
  int rc = first ? 0 : put(w, at, ",", 1);
  if (rc == 0) rc = write_string(w, &here, key);
  if (rc == 0) rc = put(w, &here, ":", 1);
  return rc < 0 ? rc : write_value(w, &here, key + 1, depth + 1);
}

static int write_object(struct writer *w, const struct place *at, int idx, unsigned depth) {
  lua_State *L = w->L;
  int rc = put(w, at, "{", 1);
  if (rc < 0) return rc;
  bool first = true;
  for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {  // [key, value]
    rc = write_member(w, at, first, depth);
    if (rc < 0) return rc;
    first = false;
  }
  return put(w, at, "}", 1);
}

// A member that waits for its turn. Key and text point into strings that the table holds.
struct member {
  struct mw_slice key;
  struct mw_slice text;  // of a string
  double number;
  int type;  // LUA_T*; of all but strings, numbers and booleans the value is looked up again
  bool boolean;
};

static int compare_members(const void *a, const void *b) {
  const struct mw_slice x = ((const struct member *)a)->key, y = ((const struct member *)b)->key;
  int order = memcmp(x.p, y.p, x.n < y.n ? x.n : y.n);
  return order != 0 ? order : (x.n > y.n) - (x.n < y.n);
}

static void sort_members(struct member *m, size_t n) {
  if (n > SORT_SMALL) {
    qsort(m, n, sizeof *m, compare_members);
    return;
  }
  for (size_t i = 1; i < n; i++) {
    struct member moved = m[i];
    size_t j = i;
    for (; j > 0 && compare_members(&m[j - 1], &moved) > 0; j--) m[j] = m[j - 1];
    m[j] = moved;
  }
}

static struct member *member_at(const struct writer *w, size_t offset) {
  return (struct member *)(void *)(w->scratch->p + offset);
}

// [key, value]: adds the member to the scratch.
static int note_member(struct writer *w, const struct place *at) {
  lua_State *L = w->L;
  if (lua_type(L, -2) != LUA_TSTRING) {
    return fail(w, at, MW_EINVAL, "the object has a key that is not a string");
  }
  if (mw_buf_reserve(w->scratch, sizeof(struct member)) < 0) {
    return fail(w, at, MW_ELIMIT, "the document is too large");
  }
  struct member *m = member_at(w, w->scratch->n);
  m->type = lua_type(L, -1);
  m->key.p = lua_tolstring(L, -2, &m->key.n);
  if (m->type == LUA_TSTRING) m->text.p = lua_tolstring(L, -1, &m->text.n);
  if (m->type == LUA_TNUMBER) m->number = lua_tonumber(L, -1);
  m->boolean = lua_toboolean(L, -1);
  w->scratch->n += sizeof *m;
  return 0;
}

static int write_noted(struct writer *w, const struct place *at, int idx, size_t offset,
                       unsigned depth) {
  const struct member m = *member_at(w, offset);  // what is nested may move the scratch
  struct place here = {.parent = at, .key = m.key};
  int rc = write_text(w, &here, m.key);
  if (rc == 0) rc = put(w, &here, ":", 1);
  if (rc < 0) return rc;
  switch (m.type) {
    case LUA_TSTRING:
      return write_text(w, &here, m.text);
    case LUA_TNUMBER:
      return write_number(w, &here, m.number);
    case LUA_TBOOLEAN:
      return m.boolean ? put(w, &here, "true", 4) : put(w, &here, "false", 5);
    default:
      lua_pushlstring(w->L, m.key.p, m.key.n);
      lua_rawget(w->L, idx);
      rc = write_value(w, &here, lua_gettop(w->L), depth + 1);
      lua_settop(w->L, -2);
      return rc;
  }
}

static int write_sorted(struct writer *w, const struct place *at, int idx, unsigned depth) {
  lua_State *L = w->L;
  const size_t base = w->scratch->n;
  int rc = put(w, at, "{", 1);
  for (lua_pushnil(L); rc == 0 && lua_next(L, idx); lua_pop(L, 1)) {  // [key, value]
    rc = note_member(w, at);
  }
  if (rc < 0) return rc;
  const size_t end = w->scratch->n;
  const size_t count = (end - base) / sizeof(struct member);
  if (count > 1) sort_members(member_at(w, base), count);
  for (size_t i = base; rc == 0 && i < end; i += sizeof(struct member)) {
    if (i > base) rc = put(w, at, ",", 1);
    if (rc == 0) rc = write_noted(w, at, idx, i, depth);
  }
  w->scratch->n = base;
  return rc < 0 ? rc : put(w, at, "}", 1);
}

static bool is_array(lua_State *L, int idx, const struct mw_codec *codec) {
  if (lua_getmetatable(L, idx)) {
    const void *mt = lua_topointer(L, -1);
    lua_pop(L, 1);
    if (mt == codec->array_mt) return true;
    if (mt == codec->object_mt) return false;
  }
  lua_pushnil(L);
  if (!lua_next(L, idx)) return false;
  bool number = lua_type(L, -2) == LUA_TNUMBER;
  lua_pop(L, 2);
  return number;
}

bool mw_codec_is_array(lua_State *L, int idx) { return is_array(L, idx, mw_codec_of(L)); }

static int write_table(struct writer *w, const struct place *at, int idx, unsigned depth) {
  if (depth > MW_JSON_DEPTH_MAX || !lua_checkstack(w->L, 12)) {
    return fail(w, at, MW_ELIMIT, "nested too deep (a table that contains itself?)");
  }
  struct mw_slice json;
  const bool sort = w->scratch != NULL;
  if (depth == 1 && !sort && mw_objtable_untouched(w->L, idx, &json))
    return put(w, at, json.p, json.n);
  mw_objtable_complete(w->L, idx);
  if (is_array(w->L, idx, w->codec)) return write_array(w, at, idx, depth);
  return sort ? write_sorted(w, at, idx, depth) : write_object(w, at, idx, depth);
}

static int write_value(struct writer *w, const struct place *at, int idx, unsigned depth) {
  switch (lua_type(w->L, idx)) {
    case LUA_TTABLE:
      return write_table(w, at, idx, depth);
    case LUA_TSTRING:
      return write_string(w, at, idx);
    case LUA_TNUMBER:
      return write_number(w, at, lua_tonumber(w->L, idx));
    case LUA_TBOOLEAN:
      return lua_toboolean(w->L, idx) ? put(w, at, "true", 4) : put(w, at, "false", 5);
    case LUA_TLIGHTUSERDATA:
    case LUA_TUSERDATA:
      return write_userdata(w, at, idx);
    case MW_TCDATA:
      return write_cdata(w, at, idx);
    case LUA_TNIL:
      return fail(w, at, MW_EINVAL, "nil is not JSON (kube.null is)");
    case LUA_TFUNCTION:
      return fail(w, at, MW_EINVAL, "a function is not JSON");
    default:
      return fail(w, at, MW_EINVAL, "a coroutine is not JSON");
  }
}

static int encode(lua_State *L, int idx, struct writer *w) {
  int top = lua_gettop(L);
  idx = mw_absindex(L, idx);
  if (!lua_checkstack(L, 12)) return mw_err_set(w->err, MW_ELIMIT, "the Lua stack is full");
  w->codec = mw_codec_of(L);
  struct place root = {.parent = NULL};
  int rc = write_value(w, &root, idx, 1);
  lua_settop(L, top);
  return rc;
}

int mw_codec_encode(lua_State *L, int idx, struct mw_buf *out, struct mw_err *err) {
  return encode(L, idx, &(struct writer){.L = L, .out = out, .err = err});
}

int mw_codec_encode_sorted(lua_State *L, int idx, struct mw_buf *out, struct mw_buf *scratch,
                           struct mw_err *err) {
  return encode(L, idx, &(struct writer){.L = L, .out = out, .err = err, .scratch = scratch});
}
