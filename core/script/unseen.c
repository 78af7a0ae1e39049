// SPDX-License-Identifier: Apache-2.0
// No failure is lost: one of a child that nobody waited for becomes its parent's.
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "script/ref.h"
#include "script/task_internal.h"

enum {
  REPORT_ROOM = 8 * 1024,
  UNSEEN_MAX = 100,  // of a task: it may run for ever, and start what fails for as long
};

struct mw_unseen {
  struct mw_unseen *next;
  struct mw_unseen **slot;  // NULL: nobody can look any more
  struct mw_task *parent;
  char *own;  // the part of the report about the child
  int error;
  char name[MW_TASK_NAME_ROOM];
};

bool mw_task_has_parent(const struct mw_task *t) { return t->parent != NULL; }

static void tell(const char *name, const char *own, size_t n) {
  char message[REPORT_ROOM];
  snprintf(message, sizeof message, "task failed, and nobody waited for it: %.*s", (int)n, own);
  mw_log(MW_LOG_ERROR, message, MW_STR("task", name));
}

void mw_unseen_leave(const struct mw_task_failure *failure, struct lua_State *L,
                     struct mw_unseen **slot) {
  const struct mw_task *t = failure->task;
  struct mw_unseen **end = &t->parent->unseen;
  int count = 0;
  for (; *end != NULL; end = &(*end)->next) count++;
  if (count >= UNSEEN_MAX) {
    tell(t->name, failure->report, failure->own);
    return;
  }
  struct mw_unseen *u = mw_xcalloc(1, sizeof *u);
  u->slot = slot;
  u->parent = t->parent;
  u->own = mw_xstrndup(failure->report, failure->own);
  lua_pushvalue(L, -1);
  u->error = mw_luaref_take(L);
  snprintf(u->name, sizeof u->name, "%s", t->name);
  *end = u;
  *slot = u;
}

static void forget(struct mw_unseen *u) {
  struct mw_unseen **at = &u->parent->unseen;
  while (*at != u) at = &(*at)->next;
  *at = u->next;
  if (u->slot != NULL) *u->slot = NULL;
  mw_luaref_drop(u->parent->sched->L, &u->error);
  mw_free(u->own);
  mw_free(u);
}

void mw_unseen_seen(struct mw_unseen **slot) {
  if (*slot != NULL) forget(*slot);
}

void mw_unseen_orphan(struct mw_unseen *u) {
  if (u != NULL) u->slot = NULL;
}

void mw_unseen_settle(struct mw_task *t) {
  lua_State *co = t->thread.co;
  struct mw_unseen *first = t->unseen;
  if (first != NULL && !t->failed) {
    lua_settop(co, 0);
    luaL_checkstack(co, 6, "results");
    mw_luaref_push(co, first->error);
    mw_task_carry(t, co, first->own);
    t->failed = true;
    forget(first);
  }
  while (t->unseen != NULL) {
    tell(t->unseen->name, t->unseen->own, strlen(t->unseen->own));
    forget(t->unseen);
  }
}
