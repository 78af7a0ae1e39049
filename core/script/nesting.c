// SPDX-License-Identifier: Apache-2.0
// The coroutines that a script makes by itself, in so far as they stand between a task and its
// awaits.
#include <lauxlib.h>
#include <lua.h>

#include "script/task_internal.h"

enum { NESTING_MAX = 100 };  // coroutines resumed by one another on one C stack

static struct mw_nesting *nesting(lua_State *L) {
  struct mw_sched *s = mw_sched_of(L);
  if (s == NULL) return NULL;
  return s->current != NULL ? &s->current->nesting : &s->nesting;
}

struct mw_nesting mw_sched_nesting(struct lua_State *L) {
  struct mw_nesting *n = nesting(L);
  return n != NULL ? *n : (struct mw_nesting){0};
}

void mw_sched_set_nesting(struct lua_State *L, struct mw_nesting value) {
  struct mw_nesting *n = nesting(L);
  if (n != NULL) *n = value;
}

void mw_sched_nest(struct lua_State *L) {
  struct mw_nesting *n = nesting(L);
  if (n == NULL) return;
  if (n->depth >= NESTING_MAX) luaL_error(L, "coroutines resume one another too deeply");
  n->depth++;
  if (n->blocked == 0 && !lua_isyieldable(L)) n->blocked = n->depth;
}

void mw_sched_unnest(struct lua_State *L) {
  struct mw_nesting *n = nesting(L);
  if (n == NULL || n->depth == 0) return;
  if (n->blocked == n->depth) n->blocked = 0;
  n->depth--;
}

bool mw_sched_owns_stack(struct lua_State *L) {
  struct mw_sched *s = mw_sched_of(L);
  return s == NULL || L == s->L || (s->current != NULL && L == s->current->thread.co);
}
