// SPDX-License-Identifier: Apache-2.0
#include "script/call.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "script/heap.h"
#include "script/sched.h"
#include "script/watchdog.h"

enum { FRAMES_SEARCHED = 64 };

// Whether it is a place of the script.
static bool find_place(struct lua_State *L, char out[MW_SCRIPT_PLACE]) {
  static const char ours[] = "@lua/kube/";
  lua_Debug ar;
  out[0] = '\0';
  for (int level = 0; level < FRAMES_SEARCHED && lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "Sl", &ar);
    if (ar.currentline <= 0) continue;
    bool script = strncmp(ar.source, ours, sizeof ours - 1) != 0;
    if (script || out[0] == '\0')
      snprintf(out, MW_SCRIPT_PLACE, "%s:%d", ar.short_src, ar.currentline);
    if (script) return true;
  }
  return false;
}

void mw_script_place(struct lua_State *L, char out[MW_SCRIPT_PLACE]) { find_place(L, out); }

void mw_script_where(struct lua_State *L) {
  char place[MW_SCRIPT_PLACE];
  lua_pushstring(L, find_place(L, place) ? place : "");
}

// The message handler: the stack is still there.
static int explain(lua_State *L) {
  const char *text = mw_script_error_text(L, 1);
  luaL_traceback(L, L, text, 1);
  return 1;
}

int mw_script_call(struct lua_State *L, int nargs, int nresults, struct mw_err *err) {
  return mw_script_call_as(L, NULL, nargs, nresults, err);
}

int mw_script_call_as(struct lua_State *L, const char *as, int nargs, int nresults,
                      struct mw_err *err) {
  int base = lua_gettop(L) - nargs;
  if (!lua_checkstack(L, 8)) {
    lua_settop(L, base - 1);
    return mw_err_set(err, MW_ELIMIT, "the Lua stack is full");
  }
  struct mw_watchdog *w = mw_watchdog_of(L);
  struct mw_nesting before = mw_sched_nesting(L), inside = before;
  inside.place = as;
  mw_sched_set_nesting(L, inside);
  lua_pushcfunction(L, explain);
  lua_insert(L, base);
  mw_watchdog_enter(w, (struct mw_entry){L, as, NULL});
  lua_State *enforced = mw_heap_enforce(mw_heap_of(L), L);
  int rc = lua_pcall(L, nargs, nresults, base);
  mw_heap_enforce(mw_heap_of(L), enforced);
  mw_watchdog_leave(w);
  mw_sched_set_nesting(L, before);
  lua_remove(L, base);
  if (rc == 0) return 0;
  // Without a handler's run (out of memory) the value may be anything.
  const char *text = mw_heap_explain(mw_heap_of(L), lua_tostring(L, -1));
  int code = mw_err_set(err, MW_ESCRIPT, "%s", text != NULL ? text : "unknown error");
  lua_settop(L, base - 1);
  return code;
}
