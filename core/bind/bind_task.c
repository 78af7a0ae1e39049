// SPDX-License-Identifier: Apache-2.0
// kube._core.task: tasks, sleeping, signals, and the phases of a generation.
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "bind/bind.h"
#include "script/call.h"
#include "script/generation.h"
#include "script/host.h"
#include "script/ref.h"
#include "script/sched.h"
#include "script/signal.h"

#define TASK_TYPE "mw.task"
#define SIGNAL_TYPE "mw.signal"

enum { NAME_ROOM = 64, REPORT_ROOM = 8 * 1024 };

// The userdata that stands for a task. It is kept alive while the task runs.
struct handle {
  struct mw_task *task;  // NULL: not started yet, or ended
  bool done;
  bool cancelled;  // before it was started
  int self;
  char name[NAME_ROOM];
};

struct sleeper {
  struct mw_task *task;
  struct mw_timer *timer;
};

static void sleeper_free(void *arg) {
  struct sleeper *s = arg;
  mw_timer_cancel(&s->timer);
  mw_free(s);
}

static void on_slept(void *arg) {
  struct sleeper *s = arg;
  struct mw_task *t = s->task;
  s->timer = NULL;
  sleeper_free(s);
  lua_pushboolean(mw_task_stack(t), 1);
  mw_task_wake(t, 1);
}

static int task_sleep(lua_State *L) {
  double seconds = luaL_checknumber(L, 1);
  luaL_argcheck(L, seconds >= 0, 1, "a number of seconds, 0 or more");
  struct mw_task *t = mw_task_check(L, "kube.sleep()");
  if (t == NULL) return 2;
  struct sleeper *s = mw_xcalloc(1, sizeof *s);
  s->task = t;
  s->timer =
      mw_timer_start(mw_host_loop(mw_generation_host(mw_generation_of(L))), seconds, on_slept, s);
  return mw_task_await(L, t, sleeper_free, s);
}

static void on_task_end(void *ctx, struct lua_State *L, const char *report, bool cancelled) {
  struct handle *h = ctx;
  h->task = NULL;
  h->done = true;
  if (report != NULL && !cancelled) {
    char message[REPORT_ROOM];
    snprintf(message, sizeof message, "task failed: %s", report);
    mw_log(MW_LOG_ERROR, message, MW_STR("task", h->name));
  }
  mw_luaref_drop(L, &h->self);
}

// [..., fn, args]; handle is the userdata at idx, which is not above fn.
static void start(lua_State *L, int idx, int nargs) {
  struct handle *h = lua_touserdata(L, idx);
  lua_pushvalue(L, idx);
  h->self = mw_luaref_take(L);
  struct mw_task *t = mw_task_start(mw_sched_of(L), L, nargs, h->name, on_task_end, h);
  if (t != NULL) h->task = t;
}

// A task that was spawned while loading: upvalues are the handle, the count, fn and its arguments.
static int start_deferred(lua_State *L) {
  struct handle *h = lua_touserdata(L, lua_upvalueindex(1));
  if (h->cancelled) {
    h->done = true;
    return 0;
  }
  int nargs = (int)lua_tointeger(L, lua_upvalueindex(2));
  luaL_checkstack(L, nargs + 4, "too many arguments");
  lua_pushvalue(L, lua_upvalueindex(1));
  for (int i = 0; i <= nargs; i++) lua_pushvalue(L, lua_upvalueindex(3 + i));
  start(L, 1, nargs);
  return 0;
}

static int task_spawn(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  int nargs = lua_gettop(L) - 2;
  luaL_argcheck(L, nargs <= MW_TASK_ARGS_MAX, 3, "too many arguments");
  luaL_checkstack(L, nargs + 8, "too many arguments");
  struct handle *h = lua_newuserdata(L, sizeof *h);  // [name, fn, args..., handle]
  *h = (struct handle){.self = MW_LUAREF_NONE};
  snprintf(h->name, sizeof h->name, "%s", name);
  luaL_getmetatable(L, TASK_TYPE);
  lua_setmetatable(L, -2);
  lua_replace(L, 1);  // [handle, fn, args...]
  struct mw_generation *g = mw_generation_of(L);
  if (!mw_generation_is_loading(g)) {
    start(L, 1, nargs);
    return 1;
  }
  lua_pushvalue(L, 1);
  lua_insert(L, 2);
  lua_pushvalue(L, 1);
  lua_insert(L, 3);
  lua_pushinteger(L, nargs);
  lua_replace(L, 3);  // [handle, handle, count, fn, args...]
  lua_pushcclosure(L, start_deferred, nargs + 3);
  mw_generation_defer_function(g, L);
  return 1;
}

static struct handle *check_handle(lua_State *L) { return luaL_checkudata(L, 1, TASK_TYPE); }

static int handle_cancel(lua_State *L) {
  struct handle *h = check_handle(L);
  h->cancelled = true;
  if (h->task != NULL) mw_task_cancel(h->task);
  return 0;
}

static int handle_is_done(lua_State *L) {
  lua_pushboolean(L, check_handle(L)->done);
  return 1;
}

static int handle_name(lua_State *L) {
  lua_pushstring(L, check_handle(L)->name);
  return 1;
}

static int handle_tostring(lua_State *L) {
  lua_pushfstring(L, "task %s", check_handle(L)->name);
  return 1;
}

static struct mw_signal **push_signal(lua_State *L) {
  struct mw_signal **s = lua_newuserdata(L, sizeof *s);
  *s = NULL;
  luaL_getmetatable(L, SIGNAL_TYPE);
  lua_setmetatable(L, -2);
  return s;
}

static int task_signal(lua_State *L) {
  struct mw_signal **s = push_signal(L);
  *s = mw_signal_new(mw_host_loop(mw_generation_host(mw_generation_of(L))));
  return 1;
}

static int task_changed(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  return 1;
}

static struct mw_signal **check_signal(lua_State *L) { return luaL_checkudata(L, 1, SIGNAL_TYPE); }

static int signal_gc(lua_State *L) {
  struct mw_signal **s = check_signal(L);
  if (*s != NULL) mw_signal_unref(*s);
  *s = NULL;
  return 0;
}

static int signal_fire(lua_State *L) {
  mw_signal_fire(*check_signal(L));
  return 0;
}

static int signal_wait(lua_State *L) {
  struct mw_signal **s = check_signal(L);
  double timeout = -1;
  if (!lua_isnoneornil(L, 2)) {
    timeout = luaL_checknumber(L, 2);
    if (!(timeout > 0)) timeout = 0;
  }
  return mw_signal_wait(L, *s, timeout, luaL_optstring(L, 3, "waiting"));
}

static int signal_tostring(lua_State *L) {
  check_signal(L);
  lua_pushliteral(L, "signal");
  return 1;
}

static int task_park(lua_State *L) {
  return mw_generation_park(mw_generation_of(L), L, luaL_checkstring(L, 1));
}

static int task_defer(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  mw_generation_defer_function(mw_generation_of(L), L);
  return 0;
}

static int task_is_loading(lua_State *L) {
  lua_pushboolean(L, mw_generation_is_loading(mw_generation_of(L)));
  return 1;
}

// Whether there is nothing left to run: the reason to stop, for on_stop functions.
static int task_is_idle(lua_State *L) {
  struct mw_generation *g = mw_generation_of(L);
  lua_pushboolean(L, !mw_generation_is_loading(g) && !mw_generation_is_busy(g));
  return 1;
}

static int task_shutdown(lua_State *L) {
  int code = (int)luaL_optinteger(L, 1, MW_EXIT_OK);
  luaL_argcheck(L, code >= 0 && code <= 255, 1, "an exit code is between 0 and 255");
  mw_host_shutdown(mw_generation_host(mw_generation_of(L)), code);
  return 0;
}

static int task_on_stop(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  mw_generation_on_stop(mw_generation_of(L), L);
  return 0;
}

// Calls a function every so often as long as the generation lasts, without keeping it running.
struct ticker {
  struct mw_owned owned;
  struct mw_generation *gen;
  struct mw_timer *timer;
  double seconds;
  int fn;
};

static void on_tick(void *arg) {
  struct ticker *t = arg;
  struct mw_generation *g = t->gen;
  lua_State *L = mw_generation_state(g);
  struct mw_err err;
  t->timer = mw_timer_start(mw_host_loop(mw_generation_host(g)), t->seconds, on_tick, t);
  mw_luaref_push(L, t->fn);  // the call may end the ticker
  if (mw_script_call(L, 0, 0, &err) < 0) {
    mw_log(MW_LOG_ERROR, "a repeated function failed", MW_STR("error", err.message));
  }
}

static void ticker_close(struct mw_owned *o) {
  struct ticker *t = (struct ticker *)o;
  mw_timer_cancel(&t->timer);
  mw_luaref_drop(mw_generation_state(t->gen), &t->fn);
  mw_generation_drop(t->gen, &t->owned);
  mw_free(t);
}

// every(seconds, fn): fn must not await.
static int task_every(lua_State *L) {
  double seconds = luaL_checknumber(L, 1);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  struct ticker *t = mw_xcalloc(1, sizeof *t);
  t->gen = mw_generation_of(L);
  t->seconds = seconds;
  t->fn = mw_luaref_take(L);
  t->timer = mw_timer_start(mw_host_loop(mw_generation_host(t->gen)), seconds, on_tick, t);
  t->owned.close = ticker_close;
  t->owned.passive = true;
  mw_generation_own(t->gen, &t->owned);
  return 0;
}

static int task_now(lua_State *L) {
  lua_pushnumber(L, (double)mw_clock_now() / 1e9);
  return 1;
}

// The metatable of a userdata type, with its methods.
static void new_type(lua_State *L, const char *type, const luaL_Reg *methods,
                     lua_CFunction to_string, lua_CFunction gc) {
  luaL_newmetatable(L, type);
  lua_newtable(L);
  luaL_register(L, NULL, methods);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, to_string);
  lua_setfield(L, -2, "__tostring");
  if (gc != NULL) {
    lua_pushcfunction(L, gc);
    lua_setfield(L, -2, "__gc");
  }
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_pop(L, 1);
}

void mw_bind_task(struct lua_State *L) {
  static const luaL_Reg functions[] = {
      {"sleep", task_sleep},     {"spawn", task_spawn},       {"signal", task_signal},
      {"park", task_park},       {"defer", task_defer},       {"is_loading", task_is_loading},
      {"is_idle", task_is_idle}, {"shutdown", task_shutdown}, {"on_stop", task_on_stop},
      {"now", task_now},         {"every", task_every},       {NULL, NULL}};
  static const luaL_Reg task_methods[] = {
      {"cancel", handle_cancel}, {"is_done", handle_is_done}, {"name", handle_name}, {NULL, NULL}};
  static const luaL_Reg signal_methods[] = {
      {"fire", signal_fire}, {"wait", signal_wait}, {NULL, NULL}};
  new_type(L, TASK_TYPE, task_methods, handle_tostring, NULL);
  new_type(L, SIGNAL_TYPE, signal_methods, signal_tostring, signal_gc);
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  *push_signal(L) = mw_signal_ref(mw_generation_signal(mw_generation_of(L)));
  lua_pushcclosure(L, task_changed, 1);
  lua_setfield(L, -2, "changed");
  mw_task_push_cancelled(L);
  lua_setfield(L, -2, "cancelled");
}
