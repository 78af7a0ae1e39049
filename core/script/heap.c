// SPDX-License-Identifier: Apache-2.0
// LuaJIT's own allocator does the work; this counts what passes through. LuaJIT never collects
// because memory is short, so the pace is set from here at the end of every cycle, which a userdata
// that dies in each of them notices: a peak is about live * (pause + 90 / stepmul) per cent, and 90
// % of the limit is what it shall be.
#include "script/heap.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "script/call.h"

enum {
  LARGE = 4096,  // bytes: a piece that can be refused
  STEPMUL = 1000,
  PAUSE_MIN = 105,
  LIVE_MIN = 256 << 10,  // a smaller heap counts as this
  GROWTH_MIN = 8 << 20,
  SENTENCE_ROOM = 320,
  SIZE_ROOM = 32,
};

static const uint64_t collect_interval = 1000000000;  // nanoseconds, when collecting does not help

struct mw_heap {
  lua_State *L;
  lua_Alloc inner;
  void *inner_ctx;
  size_t used;
  size_t limit;        // 0: none
  size_t hard, last;   // beyond these large pieces are refused, or all
  size_t trigger;      // more than this needs a closer look
  size_t rest_at;      // at this, collect between slices
  size_t live;         // at the end of the last cycle
  lua_State *running;  // the limit holds; NULL: it does not
  bool raised, crowded;
  bool noticed;           // the end of the cycle, in collect
  uint64_t collected_at;  // when a full collection last did not help; 0: it did
  unsigned long hits;
  char last_hit[SENTENCE_ROOM];
  char refused[SENTENCE_ROOM];  // of these the last that got Lua's own error
  void (*interrupt)(void *ctx);
  void *interrupt_ctx;
};

static char sentinel_key;

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

static size_t part(const struct mw_heap *h, size_t n) { return h->limit / n; }

// What a collection has to leave, or the next one would follow at once.
static size_t roomy(const struct mw_heap *h) { return h->limit - part(h, 16); }

static const char *readable(size_t n, char out[SIZE_ROOM]) {
  double mebi = (double)n / (1 << 20);
  if (n < 1024) {
    snprintf(out, SIZE_ROOM, "%zu bytes", n);
  } else if (n < 1 << 20) {
    snprintf(out, SIZE_ROOM, "%zu KiB", n >> 10);
  } else {
    snprintf(out, SIZE_ROOM, n % (1 << 20) == 0 ? "%.0f MiB" : "%.1f MiB", mebi);
  }
  return out;
}

// Notes that the limit is reached here. how: with the sizes that are in use and wanted.
static void hit(struct mw_heap *h, lua_State *L, const char *how) {
  char place[MW_SCRIPT_PLACE] = "", limit[SIZE_ROOM];
  if (h->interrupt != NULL) mw_script_place(L, place);  // compiled code leaves no stack to be read
  h->hits++;
  h->raised = true;
  snprintf(h->last_hit, sizeof h->last_hit,
           "%s%smemory limit of %s reached: %s; hold less at a time, or raise --memory-limit",
           place, place[0] != '\0' ? ": " : "", readable(h->limit, limit), how);
}

// Lua's own error will have no place: the stack is still there.
static void refuse(struct mw_heap *h, size_t size) {
  char how[4 * SIZE_ROOM], used[SIZE_ROOM], asked[SIZE_ROOM];
  snprintf(how, sizeof how, "%s were in use, and %s more were wanted at once",
           readable(h->used, used), readable(size, asked));
  hit(h, h->running, how);
  memcpy(h->refused, h->last_hit, sizeof h->refused);
}

// Beyond the limit there is still a little room each time: to unwind in, and for others while what
// failed is not let go yet, because its deferred functions run.
static void set_trigger(struct mw_heap *h) {
  h->trigger = h->used <= roomy(h)
                   ? h->limit
                   : most(h->used, most(h->limit, least(h->used + part(h, 32), h->hard)));
}

// More than the trigger is wanted: true when it may be had.
static bool may_grow(struct mw_heap *h, size_t used, size_t size) {
  if (h->running == NULL) return true;
  if ((used > h->hard && size >= LARGE) || used > h->last) {
    refuse(h, size);
    return false;
  }
  if (h->trigger < h->hard) h->trigger = h->hard;  // once is enough
  if (h->interrupt != NULL) h->interrupt(h->interrupt_ctx);
  return true;
}

static void *allocate(void *ctx, void *p, size_t old_size, size_t size) {
  struct mw_heap *h = ctx;
  size_t used = h->used - old_size + size;
  if (used > h->trigger && size > old_size && !may_grow(h, used, size)) return NULL;
  void *result = h->inner(h->inner_ctx, p, old_size, size);
  if (result != NULL || size == 0) h->used = used;
  return result;
}

// The next cycle begins when the heap is twice what is live, or has grown by GROWTH_MIN: a small
// heap would else be marked again and again. Near the limit it begins sooner.
static void set_pace(struct mw_heap *h, lua_State *L) {
  size_t live = most(h->live, LIVE_MIN);
  size_t pause = 100 + 100 * most(live, GROWTH_MIN) / live;
  size_t room = 90 * h->limit / live;
  pause = least(pause, room < PAUSE_MIN + 9 ? PAUSE_MIN : room - 9);
  lua_gc(L, LUA_GCSETPAUSE, (int)pause);
}

static void watch_cycles(lua_State *L);

// __gc of the sentinel, at the end of a cycle. The next one notices the next.
static int on_cycle(lua_State *L) {
  struct mw_heap *h = mw_heap_of(L);
  if (h == NULL) return 0;  // the state closes
  lua_State *before = mw_heap_enforce(h, NULL);
  h->noticed = true;
  h->live = h->used;
  set_pace(h, L);
  watch_cycles(L);
  mw_heap_enforce(h, before);
  return 0;
}

static void watch_cycles(lua_State *L) {
  lua_newuserdata(L, 0);
  lua_pushlightuserdata(L, &sentinel_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  lua_setmetatable(L, -2);
  lua_pop(L, 1);
}

static void set_up_collector(lua_State *L) {
  lua_gc(L, LUA_GCSETSTEPMUL, STEPMUL);
  lua_pushlightuserdata(L, &sentinel_key);
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, on_cycle);
  lua_setfield(L, -2, "__gc");
  lua_rawset(L, LUA_REGISTRYINDEX);
  watch_cycles(L);
}

static int on_panic(lua_State *L) {
  const char *text = lua_tostring(L, -1);
  fprintf(stderr, "moonwatch: internal error: a Lua error where nothing can catch it: %s\n",
          text != NULL ? text : "(no text)");
  abort();
}

struct lua_State *mw_heap_open(size_t limit) {
  lua_State *L = luaL_newstate();
  if (L == NULL) {
    fprintf(stderr, "moonwatch: out of memory\n");
    abort();
  }
  lua_atpanic(L, on_panic);
  struct mw_heap *h = mw_xcalloc(1, sizeof *h);
  h->L = L;
  h->limit = limit;
  h->trigger = limit > 0 ? limit : SIZE_MAX;
  h->rest_at = limit > 0 ? limit - part(h, 10) : SIZE_MAX;
  h->used = (size_t)lua_gc(L, LUA_GCCOUNT, 0) * 1024 + (size_t)lua_gc(L, LUA_GCCOUNTB, 0);
  h->inner = lua_getallocf(L, &h->inner_ctx);
  lua_setallocf(L, allocate, h);
  mw_heap_on_full(h, NULL, NULL);
  if (limit > 0) set_up_collector(L);
  return L;
}

void mw_heap_close(struct lua_State *L) {
  struct mw_heap *h = mw_heap_of(L);
  // LuaJIT takes its allocator down as a whole when it finds it where it was.
  lua_setallocf(L, h->inner, h->inner_ctx);
  lua_close(L);
  mw_free(h);
}

struct mw_heap *mw_heap_of(struct lua_State *L) {
  void *ctx;
  return lua_getallocf(L, &ctx) == allocate ? ctx : NULL;
}

void mw_heap_on_full(struct mw_heap *h, void (*interrupt)(void *ctx), void *ctx) {
  if (h->limit == 0) return;
  h->interrupt = interrupt;
  h->interrupt_ctx = ctx;
  h->hard = interrupt != NULL ? h->limit + part(h, 4) : h->limit;
  h->last = interrupt != NULL ? SIZE_MAX : h->limit + part(h, 2);
  set_trigger(h);
}

static void collect(struct mw_heap *h, lua_State *L) {
  lua_State *before = mw_heap_enforce(h, NULL);
  h->noticed = false;
  lua_gc(L, LUA_GCCOLLECT, 0);
  if (!h->noticed) watch_cycles(L);  // it was due while the stack was full, and is lost
  mw_heap_enforce(h, before);
  h->live = h->used;
  bool helped = h->used <= roomy(h);
  h->collected_at = helped ? 0 : mw_clock_now();
  set_trigger(h);
  // Half of what is free now may be filled with garbage before the next one between slices.
  size_t at = h->used < h->limit ? h->used + (h->limit - h->used) / 2 : h->limit;
  h->rest_at = most(at, h->limit - part(h, 10));
}

// A state that is full stays so for a while: looking at each object again would be all it does.
static bool is_worth_it(const struct mw_heap *h) {
  return h->collected_at == 0 || mw_clock_now() - h->collected_at >= collect_interval;
}

void mw_heap_check(struct mw_heap *h, struct lua_State *L) {
  if (h->limit == 0 || h->running == NULL) return;
  set_trigger(h);
  if (h->used <= h->limit) return;
  if (is_worth_it(h)) collect(h, L);
  if (h->used <= roomy(h)) return;
  set_trigger(h);
  char how[3 * SIZE_ROOM], used[SIZE_ROOM];
  snprintf(how, sizeof how, "%s are in use when all garbage is gone", readable(h->used, used));
  hit(h, L, how);
  lua_State *before = mw_heap_enforce(h, NULL);
  lua_pushstring(L, h->last_hit);
  mw_heap_enforce(h, before);
  lua_error(L);
}

const char *mw_heap_explain(const struct mw_heap *h, const char *text) {
  bool refused =
      h != NULL && h->refused[0] != '\0' && text != NULL && strcmp(text, "not enough memory") == 0;
  return refused ? h->refused : text;
}

struct lua_State *mw_heap_enforce(struct mw_heap *h, struct lua_State *running) {
  if (h == NULL) return NULL;
  lua_State *before = h->running;
  h->running = running;
  return before;
}

static void warn(struct mw_heap *h) {
  bool crowded = h->live > h->limit - part(h, 5);
  if (crowded && !h->crowded) {
    mw_log(MW_LOG_WARN,
           "the script's memory is nearly full; hold less at a time, or raise --memory-limit",
           MW_INT("bytes", h->live), MW_INT("limit", h->limit));
  }
  if (crowded || h->live < h->limit / 2) h->crowded = crowded;
}

void mw_heap_rest(struct mw_heap *h) {
  if (h == NULL || h->limit == 0) return;
  if (h->raised || (h->used >= h->rest_at && is_worth_it(h))) collect(h, h->L);
  h->raised = false;
  set_trigger(h);
  if (h->live > h->limit / 2 || h->crowded) warn(h);
}

void mw_heap_loosen(struct mw_heap *h) {
  if (h != NULL) h->collected_at = 0;
}

size_t mw_heap_used(const struct mw_heap *h) { return h->used; }

size_t mw_heap_limit(const struct mw_heap *h) { return h->limit; }

unsigned long mw_heap_hits(const struct mw_heap *h) { return h->hits; }

const char *mw_heap_last_hit(const struct mw_heap *h) { return h->last_hit; }
