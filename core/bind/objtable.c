// SPDX-License-Identifier: Apache-2.0
// Lazy object tables. A lazy table holds, under a hidden key, the box of its object; a root and
// its sections share one box, which is there as long as the root is: sections hold that under
// another hidden key. What was served is noted in the box bit by bit, so that a field that a script
// set to nil does not come back. A completed table is an ordinary one: the hidden keys are gone and
// the metatable is that of kube.object.
//
// The bytes of the object read last stay unpacked, as far as they were needed; only this file
// unpacks into that memory. While a value is being decoded from it, boxes may let go of objects
// whose tables are gone; the one at hand has its table on the stack.
//
// Invariants: a lazy table has the hidden key and the metatable of its part. Each bit of `served`
// is set after its value is in the table, so a table whose completion ran out of memory is still a
// valid lazy one.
#include "bind/objtable.h"

#include <stdint.h>
#include <string.h>

#include "bind/codec.h"
#include "bind/codec_internal.h"
#include "bind/objtable_box.h"
#include "bind/objtable_internal.h"
#include "cache/object.h"
#include "wire/json.h"
#include "wire/pack.h"

enum {
  SECTIONS = MW_BOX_SECTIONS,
  MEMBERS = 64,    // a member beyond is not tracked: reading it completes its table
  MISSES_MAX = 8,  // a miss costs a look through the keys, completing costs a decode
  STEP = 1024,     // bytes that are unpacked at least, when more are needed
  ROOT = 0,
};

static const char hidden_key = 0;  // their addresses are the keys
static const char root_key = 0;
static const char state_key = 0;

// Where the members of one part of the current object are: filled as reads get to them, so that
// bytes are walked over once, however many fields are read.
struct member {
  uint32_t key;  // offsets in the JSON
  uint32_t key_len;
  uint32_t value;
};

struct directory {
  struct member v[MEMBERS];
  unsigned n;
  bool ended;  // these are all
};

struct objtable {
  struct mw_boxes boxes;                      // the first member: a box leads to its state
  int slot[MW_OBJTABLE_LAZY + SECTIONS + 1];  // references in the registry
  const void *lazy_mt[1 + SECTIONS];          // lua_topointer() of the metatables
  struct mw_unpacker *unpacker;               // for `current` alone
  struct mw_unpacker *lent;                   // for everybody else; NULL until asked for
  struct mw_box *current;                     // whose bytes are unpacked
  struct mw_slice json;
  struct directory directory[1 + SECTIONS];
  bool detecting;
};

static struct objtable *state_of(lua_State *L) {
  lua_pushlightuserdata(L, (void *)&state_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  struct objtable *state = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return state;
}

static void push_slot(lua_State *L, const struct objtable *state, int slot) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, state->slot[slot]);
}

void mw_objtable_slot(lua_State *L, int slot) { push_slot(L, state_of(L), slot); }

void mw_objtable_set_slot(lua_State *L, int slot) {
  lua_rawseti(L, LUA_REGISTRYINDEX, state_of(L)->slot[slot]);
}

static struct objtable *state_of_box(const struct mw_box *box) {
  return (struct objtable *)mw_box_owner(box);
}

// The box of the lazy table at idx, NULL for any other table. Any table may be asked.
static struct mw_box *box_of(lua_State *L, int idx) {
  lua_pushlightuserdata(L, (void *)&hidden_key);
  lua_rawget(L, idx);
  struct mw_box *box = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return box;
}

// Which part of its box the lazy table at idx is; -1 when its metatable was taken from it.
static int part_of(lua_State *L, int idx, const struct objtable *state) {
  if (!lua_getmetatable(L, idx)) return -1;
  const void *mt = lua_topointer(L, -1);
  lua_pop(L, 1);
  for (int i = 0; i <= SECTIONS; i++) {
    if (mt == state->lazy_mt[i]) return i;
  }
  return -1;
}

static int state_gc(lua_State *L) {
  struct objtable *state = lua_touserdata(L, 1);
  state->current = NULL;
  mw_boxes_close(&state->boxes);
  mw_unpacker_free(state->unpacker);
  mw_unpacker_free(state->lent);
  state->unpacker = NULL;
  state->lent = NULL;
  return 0;
}

// The JSON of the box's object, its first `want` bytes at least; p is NULL when it cannot be
// unpacked.
static struct mw_slice json_of(struct mw_box *box, size_t want) {
  struct objtable *state = state_of_box(box);
  if (state->current != box || !box->begun) {
    mw_object_unpack(box->object, state->unpacker);
    state->current = box;
    box->begun = true;
    state->json = mw_slice(NULL, 0);
    for (int i = 0; i <= SECTIONS; i++) {
      state->directory[i].n = 0;
      state->directory[i].ended = false;
    }
  }
  if (state->json.p == NULL || state->json.n < want) {
    state->json = mw_unpack_more(state->unpacker, want);
  }
  if (state->json.p == NULL) state->current = NULL;
  return state->json;
}

// A new table for a lazy part.
static void push_lazy(lua_State *L, const struct objtable *state, int part) {
  lua_createtable(L, 0, 4);
  push_slot(L, state, MW_OBJTABLE_LAZY + part);
  lua_setmetatable(L, -2);
}

// The reading of one part: the cursor walks over its members.
struct walk {
  lua_State *L;
  int table;  // stack index
  int part;
  struct mw_box *box;
  struct mw_slice json;
  struct mw_json c;
  struct mw_slice key;  // of the member at hand, raw
  bool escaped;
  bool first;
  unsigned member;  // number of the member at hand
  int section;      // the part that it is; 0: none
};

// want: how many bytes of the JSON are needed. False when the object cannot be unpacked.
static bool walk_begin(struct walk *w, lua_State *L, int table, int part, struct mw_box *box,
                       size_t want) {
  *w = (struct walk){.L = L, .table = table, .part = part, .box = box, .first = true};
  w->json = json_of(box, want);
  if (w->json.p == NULL) return false;
  w->c = (struct mw_json){w->json.p + box->part[part].offset, w->json.p + w->json.n};
  w->member = (unsigned)-1;
  return mw_json_enter(&w->c) == 0;
}

static int walk_next(struct walk *w) {
  w->member++;
  return mw_json_member(&w->c, &w->first, &w->key, &w->escaped);
}

static bool is_bit_set(const struct mw_box *box, int part, unsigned member) {
  return member < MEMBERS && (box->part[part].served >> member & 1) != 0;
}

// Whether the section at this offset was served.
static bool has_section(const struct mw_box *box, size_t offset) {
  for (int i = 1; i <= box->sections; i++) {
    if (box->part[i].stored && box->part[i].offset == offset) return true;
  }
  return false;
}

static bool is_served(const struct walk *w) {
  return is_bit_set(w->box, w->part, w->member) ||
         (w->part == ROOT && has_section(w->box, (size_t)(w->c.p - w->json.p)));
}

// Pushes a section of the root table at `root`; which part it is.
static int push_section(lua_State *L, int root, struct mw_box *box, size_t offset,
                        struct mw_slice name) {
  int part = (int)box->sections + 1;
  box->part[part] = (struct mw_part){
      .offset = (uint32_t)offset,
      .metadata = mw_slice_is(name, "metadata"),
  };
  push_lazy(L, state_of_box(box), part);
  lua_pushlightuserdata(L, (void *)&hidden_key);
  lua_pushlightuserdata(L, box);
  lua_rawset(L, -3);
  lua_pushlightuserdata(L, (void *)&root_key);
  lua_pushvalue(L, root);
  lua_rawset(L, -3);
  return ++box->sections;
}

// Whether the value at the cursor is to be a section.
static bool is_section(struct walk *w) {
  return w->part == ROOT && w->box->sections < SECTIONS && mw_json_peek(&w->c) == MW_JSON_OBJECT;
}

// Pushes the value at the cursor. The cursor may stay in front of it.
static int push_member(struct walk *w, bool consume) {
  w->section = 0;
  if (!is_section(w)) return mw_codec_read(w->L, &w->c);
  w->section = push_section(w->L, w->table, w->box, (size_t)(w->c.p - w->json.p), w->key);
  int rc = consume ? mw_json_pass(&w->c) : 0;
  if (rc < 0) lua_pop(w->L, 1);
  return rc;
}

// Stores key and value, the two on top, and notes it.
static void serve(struct walk *w) {
  struct mw_box *box = w->box;
  lua_rawset(w->L, w->table);
  if (w->member < MEMBERS) box->part[w->part].served |= (uint64_t)1 << w->member;
  if (w->section > 0) box->part[w->section].stored = true;
}

// The table becomes an ordinary one.
static void seal(lua_State *L, int table, int part) {
  if (part == ROOT) {
    mw_objtable_slot(L, MW_OBJTABLE_COMPLETED);
    lua_pushvalue(L, table);
    lua_pushlightuserdata(L, (void *)&hidden_key);
    lua_rawget(L, table);
    lua_rawset(L, -3);
    lua_pop(L, 1);
  }
  lua_pushvalue(L, table);
  mw_codec_mark(L, MW_CODEC_OBJECT);
  lua_pushlightuserdata(L, (void *)&hidden_key);
  lua_pushnil(L);
  lua_rawset(L, -3);
  if (part != ROOT) {
    lua_pushlightuserdata(L, (void *)&root_key);
    lua_pushnil(L);
    lua_rawset(L, -3);
  }
  lua_pop(L, 1);
}

// Decodes all members that were not served. False when the object's bytes are damaged.
static bool complete(lua_State *L, int table, int part, struct mw_box *box) {
  struct walk w;
  if (!walk_begin(&w, L, table, part, box, SIZE_MAX)) return false;
  int rc;
  while ((rc = walk_next(&w)) > 0) {
    if (is_served(&w)) {
      if (mw_json_pass(&w.c) < 0) return false;
      continue;
    }
    if (mw_codec_push_string(L, w.key, w.escaped) < 0) return false;
    if (push_member(&w, true) < 0) {
      lua_pop(L, 1);
      return false;
    }
    serve(&w);
  }
  if (rc == 0) seal(L, table, part);
  return rc == 0;
}

static int damaged(lua_State *L, const struct mw_box *box) {
  struct mw_slice key = mw_object_key(box->object);
  lua_pushlstring(L, key.p, key.n);
  return luaL_error(L, "object '%s' cannot be unpacked: its bytes in memory are damaged",
                    lua_tostring(L, -1));
}

// Looks for the key among the members known so far; true with the cursor at its value.
static bool find_known(struct walk *w, const struct directory *d, struct mw_slice key) {
  for (unsigned i = 0; i < d->n; i++) {
    const struct member *m = &d->v[i];
    if (m->key_len != key.n || memcmp(w->json.p + m->key, key.p, key.n) != 0) continue;
    w->key = key;
    w->member = i;
    w->c.p = w->json.p + m->value;
    return true;
  }
  return false;
}

// Finds the member: 1 with the cursor at its value, 0 absent, -1 only completing can tell.
static int find(struct walk *w, struct mw_slice key) {
  struct directory *d = &state_of_box(w->box)->directory[w->part];
  if (find_known(w, d, key)) return 1;
  if (d->ended) return 0;
  if (d->n > 0) {
    w->first = false;
    w->member = d->n - 1;
    w->c.p = w->json.p + d->v[d->n - 1].value;
    if (mw_json_pass(&w->c) < 0) return -1;
  }
  int rc;
  while ((rc = walk_next(w)) > 0) {
    if (w->escaped || w->member >= MEMBERS) return -1;
    d->v[d->n++] = (struct member){
        .key = (uint32_t)(w->key.p - w->json.p),
        .key_len = (uint32_t)w->key.n,
        .value = (uint32_t)(w->c.p - w->json.p),
    };
    if (mw_slice_eq(w->key, key)) return 1;
    if (mw_json_pass(&w->c) < 0) return -1;
  }
  d->ended = rc == 0;
  return rc < 0 ? -1 : 0;
}

// The field that many ask for and few objects have, answered without a look at the JSON.
static bool is_surely_absent(const struct mw_box *box, int part, struct mw_slice key) {
  return box->part[part].metadata && mw_slice_eq(key, MW_SLICE("deletionTimestamp")) &&
         !mw_object_deleting(box->object);
}

// Completes and reads: [table, key].
static int index_completed(lua_State *L, struct mw_box *box, int part) {
  if (!complete(L, 1, part, box)) return damaged(L, box);
  lua_settop(L, 2);
  lua_rawget(L, 1);
  return 1;
}

// Whether what is needed of the value at the cursor is unpacked. A number may go on where it seems
// to end.
static bool is_there(struct walk *w) {
  if (is_served(w) || is_section(w)) return true;
  struct mw_json c = w->c;
  return mw_json_pass(&c) == 0 && c.p < c.end;
}

// Finds the member of the table at 1 as find() does, with as little unpacked as that takes. w->json
// has no bytes when the object cannot be unpacked.
static int look_up(struct walk *w, lua_State *L, struct mw_box *box, int part,
                   struct mw_slice key) {
  size_t all = mw_object_raw_size(box->object);
  size_t want = box->part[part].offset + STEP;
  for (;;) {
    if (!walk_begin(w, L, 1, part, box, want)) return -1;
    int found = find(w, key);
    if (w->json.n >= all || found == 0 || (found > 0 && is_there(w))) return found;
    want = w->json.n + (w->json.n / 2 > STEP ? w->json.n / 2 : STEP);
  }
}

// A key that is not there. Many of them complete the table, after which they are free.
static int missed(lua_State *L, struct mw_box *box, int part) {
  return ++box->part[part].misses < MISSES_MAX ? 0 : index_completed(L, box, part);
}

// Stores the value on top under the key at 2, and returns it.
static int serve_top(struct walk *w) {
  lua_pushvalue(w->L, 2);
  lua_pushvalue(w->L, -2);
  serve(w);
  return 1;
}

// Reads the member without unpacking its object, as those of a family allow; -1: they do not. The
// number of a section among the members of the root is not known then: that it is stored tells that
// it was served.
static int index_packed(lua_State *L, struct mw_box *box, int part, struct mw_slice key) {
  struct walk w = {.L = L, .table = 1, .part = part, .box = box, .member = MEMBERS};
  if (part == ROOT) {
    size_t at = box->sections < SECTIONS ? mw_object_section(box->object, key) : 0;
    if (at == 0) return -1;
    if (has_section(box, at)) return missed(L, box, part);
    w.section = push_section(L, 1, box, at, key);
    return serve_top(&w);
  }
  struct mw_packed_member m;
  int found = mw_object_member(box->object, box->part[part].offset, key, &m);
  if (found < 0) return -1;
  if (found == 0 || is_bit_set(box, part, m.number)) return missed(L, box, part);
  struct mw_json c = {m.value.p, m.value.p + m.value.n};
  w.member = m.number;
  return mw_codec_read(L, &c) < 0 ? -1 : serve_top(&w);
}

// __index of a lazy table: [table, key].
static int lazy_index(lua_State *L) {
  struct mw_box *box = box_of(L, 1);
  if (box == NULL || lua_type(L, 2) != LUA_TSTRING) return 0;
  int part = (int)lua_tointeger(L, lua_upvalueindex(1));
  struct mw_slice key;
  key.p = lua_tolstring(L, 2, &key.n);
  if (is_surely_absent(box, part, key)) return 0;
  int n = index_packed(L, box, part, key);
  if (n >= 0) return n;
  struct walk w;
  int found = look_up(&w, L, box, part, key);
  if (w.json.p == NULL) return damaged(L, box);
  if (found < 0) return index_completed(L, box, part);
  if (found == 0 || is_served(&w)) return missed(L, box, part);
  lua_settop(L, 2);
  if (push_member(&w, false) < 0) return damaged(L, box);
  return serve_top(&w);
}

// __newindex: [table, key, value].
static int lazy_newindex(lua_State *L) {
  struct mw_box *box = box_of(L, 1);
  int part = (int)lua_tointeger(L, lua_upvalueindex(1));
  if (box != NULL && !complete(L, 1, part, box)) return damaged(L, box);
  lua_settop(L, 3);
  lua_rawset(L, 1);
  return 0;
}

// Completes whichever part the lazy table at idx is. One whose metatable was taken away by the
// debug library is left as it is.
static bool complete_any(lua_State *L, int idx, struct mw_box *box) {
  int part = part_of(L, idx, state_of_box(box));
  return part < 0 || complete(L, idx, part, box);
}

void mw_objtable_complete(lua_State *L, int idx) {
  if (lua_type(L, idx) != LUA_TTABLE) return;
  luaL_checkstack(L, 12, NULL);
  idx = mw_absindex(L, idx);
  struct mw_box *box = box_of(L, idx);
  if (box != NULL) complete_any(L, idx, box);
}

void mw_objtable_require(lua_State *L, int idx) {
  struct mw_box *box = box_of(L, idx);
  if (box == NULL) return;
  luaL_checkstack(L, 12, NULL);
  if (!complete_any(L, idx, box)) damaged(L, box);
}

bool mw_objtable_is_lazy(lua_State *L, int idx) { return box_of(L, idx) != NULL; }

// The box of the root table at idx, completed or not; NULL for any other value.
static struct mw_box *root_box(lua_State *L, int idx) {
  if (lua_type(L, idx) != LUA_TTABLE) return NULL;
  idx = mw_absindex(L, idx);
  struct mw_box *box = box_of(L, idx);
  if (box != NULL) return part_of(L, idx, state_of_box(box)) == ROOT ? box : NULL;
  if (state_of(L) == NULL) return NULL;
  mw_objtable_slot(L, MW_OBJTABLE_COMPLETED);
  lua_pushvalue(L, idx);
  lua_rawget(L, -2);
  box = lua_touserdata(L, -1);
  lua_pop(L, 2);
  return box;
}

struct mw_object *mw_objtable_object(lua_State *L, int idx) {
  struct mw_box *box = root_box(L, idx);
  return box != NULL ? box->object : NULL;
}

struct mw_slice mw_objtable_json(lua_State *L, int idx) {
  struct mw_box *box = root_box(L, idx);
  return box != NULL ? json_of(box, SIZE_MAX) : (struct mw_slice){NULL, 0};
}

struct mw_object *mw_objtable_unread(lua_State *L, int idx) {
  struct mw_box *box = box_of(L, idx);
  if (box == NULL || box->part[ROOT].served != 0 || box->sections > 0 ||
      part_of(L, idx, state_of_box(box)) != ROOT) {
    return NULL;
  }
  return box->object;
}

bool mw_objtable_untouched(lua_State *L, int idx, struct mw_slice *json) {
  if (mw_objtable_unread(L, idx) == NULL) return false;
  *json = json_of(box_of(L, idx), SIZE_MAX);
  return json->p != NULL;
}

bool mw_objtable_is_partial(lua_State *L, int idx) {
  const struct mw_object *o = mw_objtable_object(L, idx);
  if (o != NULL) return mw_object_partial(o);
  if (lua_type(L, idx) != LUA_TTABLE || state_of(L) == NULL) return false;
  idx = mw_absindex(L, idx);
  mw_objtable_slot(L, MW_OBJTABLE_PARTIAL);
  lua_pushvalue(L, idx);
  lua_rawget(L, -2);
  bool partial = lua_toboolean(L, -1);
  lua_pop(L, 2);
  return partial;
}

void mw_objtable_set_partial(lua_State *L) {
  mw_objtable_slot(L, MW_OBJTABLE_PARTIAL);
  lua_pushvalue(L, -2);
  lua_pushboolean(L, 1);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

void mw_objtable_push(lua_State *L, struct mw_object *o) {
  luaL_checkstack(L, 12, NULL);
  struct objtable *state = state_of(L);
  if (!mw_boxes_push(L, &state->boxes, o)) {
    mw_object_prefetch(o);
    push_lazy(L, state, ROOT);
    mw_boxes_claim(L, &state->boxes, o, &hidden_key);
  }
  if (state->detecting) mw_objtable_watch(L);
}

struct mw_unpacker *mw_objtable_unpacker(lua_State *L) {
  struct objtable *state = state_of(L);
  if (state->lent == NULL) state->lent = mw_unpacker_new();
  return state->lent;
}

bool *mw_objtable_gate(lua_State *L) { return &state_of(L)->detecting; }

void mw_objtable_forget(lua_State *L, int idx) {
  struct mw_box *box = root_box(L, idx);
  if (box != NULL) box->forgotten = true;
}

// A new table into `slot`; mode is that of __mode or NULL.
static void add_table(lua_State *L, struct objtable *state, int slot, const char *mode) {
  lua_newtable(L);
  if (mode != NULL) {
    lua_createtable(L, 0, 1);
    lua_pushstring(L, mode);
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
  }
  state->slot[slot] = luaL_ref(L, LUA_REGISTRYINDEX);
}

// The metatable of lazy tables of one part.
static void add_lazy(lua_State *L, struct objtable *state, int part) {
  lua_createtable(L, 0, 2);
  lua_pushinteger(L, part);
  lua_pushcclosure(L, lazy_index, 1);
  lua_setfield(L, -2, "__index");
  lua_pushinteger(L, part);
  lua_pushcclosure(L, lazy_newindex, 1);
  lua_setfield(L, -2, "__newindex");
  state->lazy_mt[part] = lua_topointer(L, -1);
  state->slot[MW_OBJTABLE_LAZY + part] = luaL_ref(L, LUA_REGISTRYINDEX);
}

void mw_objtable_open(lua_State *L) {
  if (state_of(L) != NULL) return;
  luaL_checkstack(L, 12, NULL);
  mw_codec_open(L);
  struct objtable *state = lua_newuserdata(L, sizeof *state);
  *state = (struct objtable){0};
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, state_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  state->unpacker = mw_unpacker_new();
  mw_boxes_open(L, &state->boxes);
  add_table(L, state, MW_OBJTABLE_COMPLETED, "k");
  add_table(L, state, MW_OBJTABLE_WATCHED, NULL);
  add_table(L, state, MW_OBJTABLE_AGED, "k");
  add_table(L, state, MW_OBJTABLE_PARTIAL, "k");
  add_table(L, state, MW_OBJTABLE_SPOILT, "k");
  lua_pushboolean(L, 0);
  state->slot[MW_OBJTABLE_REPORT] = luaL_ref(L, LUA_REGISTRYINDEX);
  for (int part = 0; part <= SECTIONS; part++) add_lazy(L, state, part);
  lua_pushlightuserdata(L, (void *)&state_key);
  lua_insert(L, -2);
  lua_rawset(L, LUA_REGISTRYINDEX);
  mw_objtable_wrap(L);
}
