// SPDX-License-Identifier: Apache-2.0
// That a cycle has ended is told by the finalizer of a sentry, a userdata that nobody holds and
// that is made anew for each cycle. The finalizer runs after the atomic phase, in which weak tables
// lost what is garbage: a slot that is empty then is that of a table nobody can get any more.
//
// Between taking a box and filling it nothing is allocated in Lua, so that no cycle ends meanwhile.
#include "bind/objtable_box.h"

#include <lauxlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cache/object.h"
#include "script/heap.h"

enum { PAGE = 64, MEMO_MIN = 256 };

struct mw_box_page {
  struct mw_boxes *owner;
  uint64_t free;    // one bit per box
  uint32_t number;  // in owner->pages
  int slots;        // reference in the registry: tables of the boxes, weak, and the page as a key
  struct mw_box box[PAGE];
};

struct mw_box_memo {
  uint32_t tag;    // of the object's address
  uint32_t place;  // of the box, from 1; 0: none
};

static const uint64_t all_free = UINT64_MAX;

// ---- object -> box ----

static uint64_t hash(const struct mw_object *o) {
  return (uint64_t)((uintptr_t)o >> 4) * 0x9E3779B97F4A7C15u;
}

static struct mw_box *box_at(const struct mw_boxes *b, uint32_t place) {
  return &b->pages[(place - 1) / PAGE]->box[(place - 1) % PAGE];
}

static uint32_t place_of(const struct mw_box *box) {
  return box->page->number * PAGE + (uint32_t)(box - box->page->box) + 1;
}

static struct mw_box *find(const struct mw_boxes *b, const struct mw_object *o) {
  uint64_t h = hash(o);
  for (uint32_t i = (uint32_t)(h >> 32);; i++) {
    const struct mw_box_memo *m = &b->memo[i & (b->memo_cap - 1)];
    if (m->place == 0) return NULL;
    if (m->tag != (uint32_t)h) continue;
    struct mw_box *box = box_at(b, m->place);
    if (box->object == o && !box->forgotten) return box;
  }
}

// There is room.
static void note(struct mw_boxes *b, const struct mw_box *box) {
  uint64_t h = hash(box->object);
  uint32_t i = (uint32_t)(h >> 32) & (b->memo_cap - 1);
  while (b->memo[i].place != 0) i = (i + 1) & (b->memo_cap - 1);
  b->memo[i] = (struct mw_box_memo){(uint32_t)h, place_of(box)};
  b->used++;
}

// Makes the memo anew, with room for twice `room` boxes.
static void note_all(struct mw_boxes *b, uint32_t room) {
  uint32_t cap = MEMO_MIN;
  while (cap / 2 < room) cap *= 2;
  if (cap != b->memo_cap) {
    b->memo = mw_xrealloc(b->memo, cap * sizeof *b->memo);
    b->memo_cap = cap;
  }
  memset(b->memo, 0, cap * sizeof *b->memo);
  b->used = 0;
  for (uint32_t i = 0; i < b->page_count; i++) {
    const struct mw_box_page *page = b->pages[i];
    for (uint64_t used = ~page->free; used != 0; used &= used - 1) {
      note(b, &page->box[__builtin_ctzll(used)]);
    }
  }
}

// ---- pages ----

static void add_page(lua_State *L, struct mw_boxes *b) {
  lua_createtable(L, PAGE, 1);  // [slots]
  struct mw_box_page *page = lua_newuserdata(L, sizeof *page);
  *page = (struct mw_box_page){.owner = b, .free = all_free};
  for (int i = 0; i < PAGE; i++) page->box[i].page = page;
  lua_pushboolean(L, 1);
  lua_rawset(L, -3);
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->weak);
  lua_setmetatable(L, -2);
  page->slots = luaL_ref(L, LUA_REGISTRYINDEX);
  if (b->page_count == b->page_cap) {
    b->page_cap = b->page_cap > 0 ? b->page_cap * 2 : 4;
    b->pages = mw_xrealloc(b->pages, b->page_cap * sizeof(struct mw_box_page *));
  }
  page->number = b->page_count;
  b->pages[b->page_count++] = page;
}

// A page with a free box, or NULL.
static struct mw_box_page *open_page(struct mw_boxes *b) {
  while (b->open < b->page_count && b->pages[b->open]->free == 0) b->open++;
  return b->open < b->page_count ? b->pages[b->open] : NULL;
}

// ---- cycles ----

// Frees the boxes of the page whose table is gone.
static void sweep_page(lua_State *L, struct mw_box_page *page) {
  struct mw_object *gone[PAGE];
  size_t n = 0;
  lua_rawgeti(L, LUA_REGISTRYINDEX, page->slots);
  for (uint64_t used = ~page->free; used != 0; used &= used - 1) {
    int i = __builtin_ctzll(used);
    lua_rawgeti(L, -1, i + 1);
    if (lua_isnil(L, -1)) {
      gone[n++] = page->box[i].object;
      page->box[i].object = NULL;
      page->free |= (uint64_t)1 << i;
    }
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  mw_object_unref_all(gone, n);
}

static void sweep(lua_State *L, struct mw_boxes *b) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < b->page_count; i++) {
    struct mw_box_page *page = b->pages[i];
    sweep_page(L, page);
    if (page->free == all_free) {
      luaL_unref(L, LUA_REGISTRYINDEX, page->slots);
    } else {
      page->number = kept;
      b->pages[kept++] = page;
    }
  }
  b->page_count = kept;
  b->open = 0;
  note_all(b, b->used);  // as many as there were: the next cycle is much like this one
}

// Posts a sentry unless there is one.
static void post_sentry(lua_State *L, const struct mw_boxes *b) {
  lua_State *before = mw_heap_enforce(mw_heap_of(L), NULL);
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->sentry);
  lua_rawgeti(L, -1, 1);  // [weak table, sentry or nil]
  if (lua_isnil(L, -1)) {
    lua_newuserdata(L, 0);
    lua_rawgeti(L, LUA_REGISTRYINDEX, b->sentry_mt);
    lua_setmetatable(L, -2);
    lua_rawseti(L, -3, 1);
  }
  lua_pop(L, 2);
  mw_heap_enforce(mw_heap_of(L), before);
}

// __gc of the sentry.
static int on_cycle(lua_State *L) {
  struct mw_boxes *b = lua_touserdata(L, lua_upvalueindex(1));
  if (b->closed) return 0;
  sweep(L, b);
  post_sentry(L, b);
  return 0;
}

void mw_boxes_open(lua_State *L, struct mw_boxes *b) {
  *b = (struct mw_boxes){0};
  note_all(b, 0);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "v");
  lua_setfield(L, -2, "__mode");
  b->weak = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_createtable(L, 1, 0);
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->weak);
  lua_setmetatable(L, -2);
  b->sentry = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_createtable(L, 0, 1);
  lua_pushlightuserdata(L, b);
  lua_pushcclosure(L, on_cycle, 1);
  lua_setfield(L, -2, "__gc");
  b->sentry_mt = luaL_ref(L, LUA_REGISTRYINDEX);
  post_sentry(L, b);
}

void mw_boxes_close(struct mw_boxes *b) {
  b->closed = true;
  for (uint32_t i = 0; i < b->page_count; i++) {
    for (int j = 0; j < PAGE; j++) {
      struct mw_box *box = &b->pages[i]->box[j];
      mw_object_unref(box->object);
      box->object = NULL;
    }
  }
  mw_free(b->pages);
  mw_free(b->memo);
  b->pages = NULL;
  b->memo = NULL;
  b->page_count = 0;
}

// ---- tables ----

struct mw_boxes *mw_box_owner(const struct mw_box *box) {
  return box->page->owner;
}

bool mw_boxes_push(lua_State *L, const struct mw_boxes *b, const struct mw_object *o) {
  const struct mw_box *box = find(b, o);
  if (box == NULL) return false;
  lua_rawgeti(L, LUA_REGISTRYINDEX, box->page->slots);
  lua_rawgeti(L, -1, (int)(box - box->page->box) + 1);
  lua_remove(L, -2);
  if (!lua_isnil(L, -1)) return true;
  lua_pop(L, 1);  // garbage, and the cycle has not ended yet
  return false;
}

// The box that is to be o's: one whose table is gone may still be there.
static struct mw_box *take(struct mw_boxes *b, struct mw_object *o) {
  struct mw_box *box = find(b, o);
  if (box == NULL) {
    struct mw_box_page *page = open_page(b);
    int i = __builtin_ctzll(page->free);
    page->free &= page->free - 1;
    box = &page->box[i];
    box->object = mw_object_ref(o);
    box->forgotten = false;
    if (b->used + 1 > b->memo_cap / 2) {
      note_all(b, b->used + 1);
    } else {
      note(b, box);
    }
  }
  box->begun = false;
  box->sections = 0;
  box->part[0] = (struct mw_part){0};
  return box;
}

void mw_boxes_claim(lua_State *L, struct mw_boxes *b, struct mw_object *o, const void *key) {
  if (open_page(b) == NULL) {
    post_sentry(L, b);  // one whose finalizer could not run is lost
    add_page(L, b);
  }
  struct mw_box *box = take(b, o);
  lua_pushlightuserdata(L, (void *)key);
  lua_pushlightuserdata(L, box);
  lua_rawset(L, -3);
  lua_rawgeti(L, LUA_REGISTRYINDEX, box->page->slots);
  lua_pushvalue(L, -2);
  lua_rawseti(L, -2, (int)(box - box->page->box) + 1);
  lua_pop(L, 1);
}
