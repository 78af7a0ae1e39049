// SPDX-License-Identifier: Apache-2.0
// The text about a task that failed: the error, where its own stack was, who started it where, and
// what made all of it run. An error that came up from a child begins with what is known of that.
#include <lauxlib.h>
#include <lua.h>
#include <string.h>

#include "script/call.h"
#include "script/heap.h"
#include "script/ref.h"
#include "script/task_internal.h"
#include "script/watchdog.h"

enum { ANCESTORS_SHOWN = 16 };

void mw_task_carry(struct mw_task *t, struct lua_State *L, const char *own_report) {
  mw_luaref_drop(L, &t->carried_error);
  mw_luaref_drop(L, &t->carried_report);
  lua_pushvalue(L, -1);
  t->carried_error = mw_luaref_take(L);
  lua_pushstring(L, own_report);
  t->carried_report = mw_luaref_take(L);
}

// [text] -> [text]: Lua's message of an allocation that was refused has neither place nor reason.
static void explain_memory(const struct mw_task *t, lua_State *L) {
  const char *text = lua_tostring(L, -1);
  const char *better = mw_heap_explain(t->sched->heap, text);
  if (better == text) return;
  lua_pushstring(L, better);
  lua_remove(L, -2);
}

// The length of "script.lua:12:" where the text begins with that, 0 where it does not.
static size_t place_length(const char *text, const char *file) {
  size_t n = strlen(file);
  if (strncmp(text, file, n) != 0 || text[n] != ':') return 0;
  size_t digits = strspn(text + n + 1, "0123456789");
  return digits > 0 && text[n + 1 + digits] == ':' ? n + digits + 2 : 0;
}

// [text] -> [text with the stack of co]. The line of a Lua function on top was in a C frame, which
// is gone. Such a function did not call error(): what failed in it begins with its place.
static void add_stack(lua_State *L, lua_State *co) {
  static const char head[] = "\nstack traceback:\n\t";
  lua_Debug frame;
  if (!lua_getstack(co, 0, &frame)) return;  // it returned, and a child failed after that
  lua_getinfo(co, "Sl", &frame);
  const char *text = lua_tostring(L, -1);
  luaL_traceback(L, co, text, 0);  // [text, report]
  const char *report = lua_tostring(L, -1);
  size_t place = frame.currentline > 0 ? 0 : place_length(text, frame.short_src);
  if (place > 0) {
    size_t top = strlen(text) + strlen(head);
    lua_pushlstring(L, report, top);
    lua_pushlstring(L, text, place);
    lua_pushstring(L, report + top + strlen(frame.short_src) + 1);
    lua_concat(L, 3);
    lua_remove(L, -2);
  }
  lua_remove(L, -2);
}

// [error] -> [error, text]: of the task's own stack, and below it that of the child if there is
// one.
static void push_own(struct mw_task *t, lua_State *L) {
  lua_State *co = t->thread.co;
  mw_luaref_push(L, t->carried_error);
  bool carried = t->carried_error != MW_LUAREF_NONE && lua_rawequal(L, -1, -2);
  lua_pop(L, 1);
  if (carried) {
    mw_luaref_push(L, t->carried_report);
  } else {
    mw_script_error_text(L, -1);
    explain_memory(t, L);
  }
  add_stack(L, co);
  lua_pushfstring(L, "\nin task %s", t->name);
  lua_concat(L, 2);
}

// Appends a line to the text on top of L.
static void append(lua_State *L, const char *before, const char *text, const char *between,
                   const char *place) {
  lua_pushfstring(L, "\n%s%s%s%s", before, text, place != NULL ? between : "",
                  place != NULL ? place : "");
  lua_concat(L, 2);
}

// Appends who started t, and what made it run, to the text on top of L.
static void push_origin(const struct mw_task *t, lua_State *L) {
  int shown = 0;
  const struct mw_task *last = t;
  for (const struct mw_task *p = t->parent; p != NULL; last = p, p = p->parent) {
    if (shown++ < ANCESTORS_SHOWN) append(L, "started by task ", p->name, " at ", last->origin);
  }
  if (shown > ANCESTORS_SHOWN) {
    lua_pushfstring(L, "\n(and %d more)", shown - ANCESTORS_SHOWN);
    lua_concat(L, 2);
  }
  if (last->origin != NULL) append(L, "started at ", last->origin, "", NULL);
  const char *trigger = mw_task_trigger(t);
  if (trigger != NULL) append(L, "trigger: ", trigger, "", NULL);
}

void mw_report_push(struct mw_task *t, struct mw_task_failure *out) {
  lua_State *co = t->thread.co, *L = t->sched->L;
  luaL_checkstack(L, 10, "too many failing tasks");
  // The error's __tostring may be the script's.
  mw_watchdog_enter(t->sched->watchdog, (struct mw_entry){L, t->name, mw_task_trigger(t)});
  lua_pushvalue(co, -1);
  lua_xmove(co, L, 1);  // [error]
  mw_luaref_push(L, t->sched->cancelled_ref);
  out->cancelled = t->stop == MW_STOP_CANCELLED && lua_rawequal(L, -1, -2);
  lua_pop(L, 1);
  push_own(t, L);  // [error, text]
  lua_remove(L, -2);
  out->own = lua_objlen(L, -1);
  push_origin(t, L);
  out->report = lua_tostring(L, -1);
  out->task = t;
  mw_watchdog_leave(t->sched->watchdog);
}
