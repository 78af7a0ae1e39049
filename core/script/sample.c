// SPDX-License-Identifier: Apache-2.0
// Which tasks are looked at more closely, and what is known of them.
#include <lua.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "script/task_internal.h"

enum { PLACE_ROOM = 160 };

void mw_sched_sample(struct mw_sched *s, const struct mw_sampling *sampling) {
  s->sampling = *sampling;
}

// Where the function at idx is defined; false when that is not in the script.
static bool describe(lua_State *L, int idx, char *out, size_t size) {
  static const char ours[] = "@lua/kube/";
  lua_Debug ar;
  if (!lua_isfunction(L, idx)) return false;
  lua_pushvalue(L, idx);
  lua_getinfo(L, ">S", &ar);
  if (*ar.what == 'C' || strncmp(ar.source, ours, sizeof ours - 1) == 0) return false;
  if (*ar.what == 'm') {
    snprintf(out, size, "%s", ar.short_src);
  } else {
    snprintf(out, size, "%s:%d-%d", ar.short_src, ar.linedefined, ar.lastlinedefined);
  }
  return true;
}

void mw_sample_begin(struct mw_task *t, struct lua_State *from, int nargs) {
  struct mw_sched *s = t->sched;
  if (s->sampling.every == 0 || ++s->unsampled < s->sampling.every) return;
  s->unsampled = 0;
  t->sampled = true;
  char place[PLACE_ROOM];
  // A function of ours that runs one of the script has that among its arguments.
  for (int idx = lua_gettop(from) - nargs; t->function == NULL && idx <= lua_gettop(from); idx++) {
    if (describe(from, idx, place, sizeof place)) t->function = mw_xstrdup(place);
  }
  s->sampling.begins(t, from, nargs);
}

struct mw_task_about mw_task_about(const struct mw_task *t) {
  return (struct mw_task_about){
      .name = t->name, .trigger = mw_task_trigger(t), .function = t->function};
}
