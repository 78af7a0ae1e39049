// SPDX-License-Identifier: Apache-2.0
// YAML: manifests, for scripts and for the sandbox. Texts of errors are those of go-yaml, which
// people know from kubectl.
#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <string.h>
#include <yaml.h>

#include "base/number.h"
#include "base/yaml_scalar.h"
#include "bind/bind.h"
#include "bind/codec.h"
#include "bind/codec_internal.h"
#include "bind/util.h"
#include "bind/yaml_emit.h"

enum {
  TEXT_MAX = 32 * 1024 * 1024,
  OUTPUT_MAX = 512 * 1024 * 1024,
  DOCUMENTS_MAX = 100000,
  ALIAS_FREE = 100000,  // values that aliases may add to any document,
  ALIAS_RATIO = 10,     // and how many times its own they may add beyond that
};

#define READER_TYPE "kube.yaml"

// Lua owns it, because pushing values may raise.
struct reader {
  lua_State *L;
  yaml_parser_t parser;
  yaml_event_t event;  // the one at hand
  bool has_parser, has_event;
  int anchors;   // stack index: name -> value
  int repeated;  // stack index of the array of what was said of repeated keys; 0: they are errors
  long values;   // of this document, without those that aliases add
  long added;    // by aliases
  struct mw_err err;
};

static void drop_event(struct reader *r) {
  if (r->has_event) yaml_event_delete(&r->event);
  r->has_event = false;
}

static void reader_close(struct reader *r) {
  drop_event(r);
  if (r->has_parser) yaml_parser_delete(&r->parser);
  r->has_parser = false;
}

static int reader_gc(lua_State *L) {
  reader_close(lua_touserdata(L, 1));
  return 0;
}

static struct reader *push_reader(lua_State *L, struct mw_slice text) {
  struct reader *r = lua_newuserdata(L, sizeof *r);
  r->L = L;
  r->has_parser = r->has_event = false;
  r->err = (struct mw_err){.code = 0};
  if (luaL_newmetatable(L, READER_TYPE)) {
    lua_pushcfunction(L, reader_gc);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  if (!yaml_parser_initialize(&r->parser)) luaL_error(L, "out of memory");
  r->has_parser = true;
  yaml_parser_set_input_string(&r->parser, (const unsigned char *)text.p, text.n);
  return r;
}

// The line is the one that go-yaml would name.
static int malformed(struct reader *r) {
  const yaml_parser_t *p = &r->parser;
  size_t line = p->context_mark.line != 0 ? p->context_mark.line : p->problem_mark.line;
  if (line != 0 && p->error == YAML_SCANNER_ERROR) line++;
  const char *problem = p->problem != NULL ? p->problem : "unknown problem parsing YAML content";
  if (line == 0) return mw_err_set(&r->err, MW_EPARSE, "yaml: %s", problem);
  return mw_err_set(&r->err, MW_EPARSE, "yaml: line %zu: %s", line, problem);
}

static int next_event(struct reader *r) {
  drop_event(r);
  if (!yaml_parser_parse(&r->parser, &r->event)) return malformed(r);
  r->has_event = true;
  return 0;
}

static int fail(struct reader *r, const char *what) {
  return mw_err_set(&r->err, MW_EPARSE, "yaml: line %zu: %s", r->event.start_mark.line + 1, what);
}

static int too_much_aliasing(struct reader *r) {
  return mw_err_set(&r->err, MW_ELIMIT, "yaml: document contains excessive aliasing");
}

static struct mw_slice scalar_text(const struct reader *r) {
  return mw_slice((const char *)r->event.data.scalar.value, r->event.data.scalar.length);
}

// What the scalar at hand means: only a plain one, or one with a tag that says so, is not a string.
static struct mw_yaml_scalar resolve(const struct reader *r) {
  const char *tag = (const char *)r->event.data.scalar.tag;
  bool plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  static const char *const resolved[] = {YAML_BOOL_TAG, YAML_INT_TAG, YAML_FLOAT_TAG,
                                         YAML_NULL_TAG};
  bool typed = tag == NULL && plain;
  for (size_t i = 0; tag != NULL && i < sizeof resolved / sizeof resolved[0]; i++) {
    if (strcmp(tag, resolved[i]) == 0) typed = true;
  }
  if (!typed) return (struct mw_yaml_scalar){.kind = MW_YAML_STRING};
  return mw_yaml_resolve(scalar_text(r));
}

static int push_scalar(struct reader *r) {
  lua_State *L = r->L;
  struct mw_yaml_scalar s = resolve(r);
  struct mw_slice text = scalar_text(r);
  const int64_t whole_max = INT64_C(1) << 53;
  switch (s.kind) {
    case MW_YAML_NULL:
      lua_pushlightuserdata(L, NULL);
      return 0;
    case MW_YAML_BOOL:
      lua_pushboolean(L, s.b);
      return 0;
    case MW_YAML_INT:
      if (s.i >= -whole_max && s.i <= whole_max) {
        lua_pushnumber(L, (double)s.i);
      } else {
        mw_codec_push_int64(L, s.i);
      }
      return 0;
    case MW_YAML_UINT:
      mw_codec_push_uint64(L, s.u);
      return 0;
    case MW_YAML_FLOAT:
      if (!isfinite(s.d)) return fail(r, "NaN and infinity are not JSON");
      lua_pushnumber(L, s.d);
      return 0;
    case MW_YAML_STRING:
    case MW_YAML_MERGE:
    case MW_YAML_TIME:
      lua_pushlstring(L, text.p, text.n);
      return 0;
  }
  return 0;
}

// Replaces the scalar on top, read as a key: those are strings, so numbers and booleans become
// their text.
static int to_key(struct reader *r) {
  lua_State *L = r->L;
  char number[MW_NUMBER_SIZE];
  struct mw_slice text = scalar_text(r);
  switch (lua_type(L, -1)) {
    case LUA_TSTRING:
      return 0;
    case LUA_TBOOLEAN:
      lua_pushstring(L, lua_toboolean(L, -1) ? "true" : "false");
      break;
    case LUA_TNUMBER:
      lua_pushlstring(L, number, mw_number_write(lua_tonumber(L, -1), number));
      break;
    case LUA_TLIGHTUSERDATA:
      return fail(r, "unsupported map key of type: null");
    default:  // integers beyond 2^53
      lua_pushlstring(L, text.p, text.n);
      break;
  }
  lua_replace(L, -2);
  return 0;
}

// Pushes a copy of the value at idx.
static int push_copy(struct reader *r, int idx, unsigned depth) {
  lua_State *L = r->L;
  if (++r->added > ALIAS_FREE + ALIAS_RATIO * r->values) return too_much_aliasing(r);
  if (!lua_istable(L, idx)) {
    lua_pushvalue(L, idx);
    return 0;
  }
  if (depth > MW_JSON_DEPTH_MAX || !lua_checkstack(L, 12)) return too_much_aliasing(r);
  lua_createtable(L, (int)lua_objlen(L, idx), 0);
  mw_codec_mark(L, mw_codec_is_array(L, idx) ? MW_CODEC_ARRAY : MW_CODEC_OBJECT);
  int copy = lua_gettop(L);
  for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {  // [key, value]
    lua_pushvalue(L, -2);
    int rc = push_copy(r, lua_gettop(L) - 1, depth + 1);
    if (rc < 0) return rc;
    lua_rawset(L, copy);
  }
  return 0;
}

// Pushes what the alias at hand stands for. An anchor is known once its value is complete, so a
// value cannot contain itself.
static int push_alias(struct reader *r, unsigned depth) {
  lua_State *L = r->L;
  const char *name = (const char *)r->event.data.alias.anchor;
  lua_getfield(L, r->anchors, name);
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    return mw_err_set(&r->err, MW_EPARSE, "yaml: unknown anchor '%s' referenced", name);
  }
  int rc = push_copy(r, lua_gettop(L), depth);
  if (rc == 0) lua_remove(L, -2);
  return rc;
}

static int push_node(struct reader *r, unsigned depth);

static int push_sequence(struct reader *r, unsigned depth) {
  lua_State *L = r->L;
  lua_newtable(L);
  mw_codec_mark(L, MW_CODEC_ARRAY);
  for (int i = 1;; i++) {
    int rc = next_event(r);
    if (rc < 0) return rc;
    if (r->event.type == YAML_SEQUENCE_END_EVENT) return 0;
    rc = push_node(r, depth + 1);
    if (rc < 0) return rc;
    lua_rawseti(L, -2, i);
  }
}

// [table, key] and the value at hand: the table must not have the key yet, or the last one counts.
static int check_new(struct reader *r) {
  lua_State *L = r->L;
  lua_pushvalue(L, -1);
  lua_rawget(L, -3);
  bool is_new = lua_isnil(L, -1);
  lua_pop(L, 1);
  if (is_new) return 0;
  const size_t line = r->event.start_mark.line + 1;
  if (r->repeated == 0) {
    return mw_err_set(&r->err, MW_EPARSE,
                      "yaml: unmarshal errors:\n  line %zu: key \"%s\" already set in map", line,
                      lua_tostring(L, -1));
  }
  lua_pushfstring(L, "line %d: key \"%s\" already set in map", (int)line, lua_tostring(L, -1));
  lua_rawseti(L, r->repeated, (int)lua_objlen(L, r->repeated) + 1);
  return 0;
}

// Adds to the table what it does not have yet of the mapping at idx.
static int take_missing(struct reader *r, int table, int idx) {
  lua_State *L = r->L;
  if (!lua_istable(L, idx) || mw_codec_is_array(L, idx)) {
    return fail(r, "map merge requires map or sequence of maps as the value");
  }
  for (lua_pushnil(L); lua_next(L, idx);) {  // [key, value]
    lua_pushvalue(L, -2);
    lua_rawget(L, table);
    bool missing = lua_isnil(L, -1);
    lua_pop(L, 1);
    if (missing) {
      lua_pushvalue(L, -2);
      lua_insert(L, -2);
      lua_rawset(L, table);
    } else {
      lua_pop(L, 1);
    }
  }
  return 0;
}

// [table, source]: source is the value of "<<", a mapping or a list of them of which the first has
// precedence.
static int merge(struct reader *r) {
  lua_State *L = r->L;
  int source = lua_gettop(L);
  if (!lua_istable(L, source) || !mw_codec_is_array(L, source)) {
    return take_missing(r, source - 1, source);
  }
  int n = (int)lua_objlen(L, source);
  int rc = 0;
  for (int i = 1; rc == 0 && i <= n; i++) {
    lua_rawgeti(L, source, i);
    rc = take_missing(r, source - 1, source + 1);
    lua_settop(L, source);
  }
  return rc;
}

// The key at hand and its value into the table at idx, or what is to be merged onto the stack
// at idx + 1.
static int read_pair(struct reader *r, int idx, unsigned depth) {
  lua_State *L = r->L;
  bool is_scalar = r->event.type == YAML_SCALAR_EVENT;
  bool merges = is_scalar && resolve(r).kind == MW_YAML_MERGE;
  int rc = push_node(r, depth + 1);
  if (rc == 0 && lua_istable(L, -1)) rc = fail(r, "invalid map key");
  if (rc == 0 && is_scalar) rc = to_key(r);
  if (rc == 0 && lua_type(L, -1) != LUA_TSTRING) rc = fail(r, "invalid map key");
  if (rc == 0) rc = next_event(r);
  if (rc == 0 && !merges) rc = check_new(r);
  if (rc == 0) rc = push_node(r, depth + 1);
  if (rc < 0) return rc;
  if (merges) {
    lua_replace(L, idx + 1);
    lua_settop(L, idx + 1);
  } else {
    lua_rawset(L, idx);
  }
  return 0;
}

static int push_mapping(struct reader *r, unsigned depth) {
  lua_State *L = r->L;
  lua_newtable(L);
  mw_codec_mark(L, MW_CODEC_OBJECT);
  int table = lua_gettop(L);
  lua_pushnil(L);  // what is to be merged, once all other keys are known
  for (;;) {
    int rc = next_event(r);
    if (rc < 0) return rc;
    if (r->event.type == YAML_MAPPING_END_EVENT) break;
    lua_pushvalue(L, table);  // [table, merged, table]
    rc = read_pair(r, table, depth);
    if (rc < 0) return rc;
    lua_settop(L, table + 1);
  }
  int rc = lua_isnil(L, -1) ? 0 : merge(r);
  lua_settop(L, table);
  return rc;
}

// The anchor of the event at hand, or NULL.
static const char *anchor_of(const yaml_event_t *event) {
  switch (event->type) {
    case YAML_SCALAR_EVENT:
      return (const char *)event->data.scalar.anchor;
    case YAML_SEQUENCE_START_EVENT:
      return (const char *)event->data.sequence_start.anchor;
    case YAML_MAPPING_START_EVENT:
      return (const char *)event->data.mapping_start.anchor;
    default:
      return NULL;
  }
}

// Pushes the value that begins with the event at hand.
static int push_node(struct reader *r, unsigned depth) {
  lua_State *L = r->L;
  if (depth > MW_JSON_DEPTH_MAX || !lua_checkstack(L, 16)) {
    return mw_err_set(&r->err, MW_ELIMIT, "yaml: exceeded max depth of %d", MW_JSON_DEPTH_MAX);
  }
  r->values++;
  const char *anchor = anchor_of(&r->event);
  const bool anchored = anchor != NULL;
  if (anchored) lua_pushstring(L, anchor);
  int rc;
  switch (r->event.type) {
    case YAML_ALIAS_EVENT:
      return push_alias(r, depth);
    case YAML_SEQUENCE_START_EVENT:
      rc = push_sequence(r, depth);
      break;
    case YAML_MAPPING_START_EVENT:
      rc = push_mapping(r, depth);
      break;
    default:
      rc = push_scalar(r);
      break;
  }
  if (rc < 0 || !anchored) return rc;
  lua_pushvalue(L, -1);
  lua_insert(L, -3);  // [value, name, value]
  lua_rawset(L, r->anchors);
  return 0;
}

// Reads the next document into the array at idx: 1, 0 at the end of the text, or an error.
static int read_document(struct reader *r, int idx, int *count) {
  lua_State *L = r->L;
  int rc = next_event(r);
  if (rc < 0) return rc;
  if (r->event.type == YAML_STREAM_START_EVENT) rc = next_event(r);
  if (rc < 0) return rc;
  if (r->event.type == YAML_STREAM_END_EVENT) return 0;
  lua_newtable(L);
  lua_replace(L, r->anchors);
  r->values = r->added = 0;
  rc = next_event(r);  // behind the start of the document
  if (rc == 0) rc = push_node(r, 1);
  if (rc == 0) rc = next_event(r);
  if (rc < 0) return rc;
  if (*count >= DOCUMENTS_MAX) return mw_err_set(&r->err, MW_ELIMIT, "yaml: too many documents");
  if (lua_islightuserdata(L, -1)) {
    lua_pop(L, 1);
  } else {
    lua_rawseti(L, idx, ++*count);
  }
  return 1;
}

// yaml_decode(text, repeated): an array of its documents, without the empty ones; or nil and what
// is wrong. A key that is there twice is wrong, unless there is a table to note that in.
static int yaml_decode(lua_State *L) {
  struct mw_slice text = mw_bind_slice(L, 1);
  if (text.n > TEXT_MAX) {
    lua_pushnil(L);
    lua_pushfstring(L, "yaml: more than %d bytes", TEXT_MAX);
    return 2;
  }
  lua_settop(L, 2);
  struct reader *r = push_reader(L, text);
  r->repeated = lua_istable(L, 2) ? 2 : 0;
  lua_pushnil(L);
  r->anchors = lua_gettop(L);
  lua_newtable(L);
  mw_codec_mark(L, MW_CODEC_ARRAY);
  int documents = lua_gettop(L), count = 0, rc;
  while ((rc = read_document(r, documents, &count)) > 0) continue;
  reader_close(r);  // not only when Lua gets to it
  lua_settop(L, documents);
  if (rc == 0) return 1;
  lua_pushnil(L);
  lua_pushstring(L, r->err.message);
  return 2;
}

// yaml_encode(value): one document with the keys in order.
static int yaml_encode(lua_State *L) {
  luaL_checkany(L, 1);
  struct mw_buf *buffers = mw_bind_push_buffers(L, 3, OUTPUT_MAX);
  struct mw_err err;
  int rc = mw_codec_encode_sorted(L, 1, &buffers[0], &buffers[1], &err);
  if (rc == 0) rc = mw_yaml_emit(mw_buf_slice(&buffers[0]), &buffers[2], &err);
  if (rc < 0) return luaL_error(L, "yaml_encode(): %s", err.message);
  lua_pushlstring(L, buffers[2].p, buffers[2].n);
  for (int i = 0; i < 3; i++) mw_buf_deinit(&buffers[i]);  // not only when Lua gets to it
  return 1;
}

void mw_bind_yaml(struct lua_State *L) {
  static const luaL_Reg functions[] = {
      {"yaml_decode", yaml_decode}, {"yaml_encode", yaml_encode}, {NULL, NULL}};
  luaL_register(L, NULL, functions);
}
