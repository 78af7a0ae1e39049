// SPDX-License-Identifier: Apache-2.0
// kube._core.task: tasks, sleeping, signals, and the phases of a generation.
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/rand.h"
#include "bind/bind.h"
#include "bind/task_handle.h"
#include "bind/util.h"
#include "script/call.h"
#include "script/generation.h"
#include "script/host.h"
#include "script/ref.h"
#include "script/sched.h"
#include "script/signal.h"

#define SIGNAL_TYPE "kube.signal"

struct sleeper {
  struct mw_task *task;    // NULL: cancelled, and the post that is under way frees it
  struct mw_timer *timer;  // NULL: posted
};

static void sleeper_cancel(void *arg) {
  struct sleeper *s = arg;
  s->task = NULL;
  if (s->timer == NULL) return;
  mw_timer_cancel(&s->timer);
  mw_free(s);
}

static void on_slept(void *arg) {
  struct sleeper *s = arg;
  struct mw_task *t = s->task;
  mw_free(s);
  if (t == NULL) return;
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
  struct mw_loop *loop = mw_host_loop(mw_generation_host(mw_generation_of(L)));
  if (seconds > 0) {
    s->timer = mw_timer_start(loop, seconds, on_slept, s);
  } else {
    // A timer of no time that is set by a timer runs before anything else: whoever gives way again
    // and again would keep the loop from its sockets.
    mw_loop_post(loop, on_slept, s);
  }
  return mw_task_await(L, t, sleeper_cancel, s);
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

struct mw_signal *mw_bind_signal(struct lua_State *L, int idx) {
  return *(struct mw_signal **)luaL_checkudata(L, idx, SIGNAL_TYPE);
}

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

// complain(text): what is declared is wrong.
static int task_complain(lua_State *L) {
  mw_generation_complain(mw_generation_of(L), luaL_checkstring(L, 1));
  return 0;
}

// is_caught(): whether an error that is raised here would not end the task: a pcall is in between,
// or a coroutine. Upvalues: pcall, xpcall.
static int task_is_caught(lua_State *L) {
  lua_Debug ar;
  bool caught = !mw_sched_owns_stack(L);
  luaL_checkstack(L, 2, "looking for pcall");
  for (int level = 1; !caught && lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "f", &ar);
    caught = lua_rawequal(L, -1, lua_upvalueindex(1)) || lua_rawequal(L, -1, lua_upvalueindex(2));
    lua_pop(L, 1);
  }
  lua_pushboolean(L, caught);
  return 1;
}

// Whether this script takes the place of another revision of it.
static int task_replaces(lua_State *L) {
  lua_pushboolean(L, mw_generation_replaces(mw_generation_of(L)));
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

// fail(report): the script has failed, as when its main task does.
static int task_fail(lua_State *L) {
  mw_generation_fail(mw_generation_of(L), luaL_checkstring(L, 1));
  return 0;
}

static int task_on_stop(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  mw_generation_on_stop(mw_generation_of(L), L);
  return 0;
}

// on_end(fn): fn() is called when all tasks are over; it returns text about what was left undone,
// or nothing.
static int task_on_end(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  mw_generation_on_end(mw_generation_of(L), L);
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

// random(): uniform in [0, 1), different in every process.
static int task_random(lua_State *L) {
  struct mw_rand *r = lua_touserdata(L, lua_upvalueindex(1));
  lua_pushnumber(L, mw_rand_unit(r));
  return 1;
}

static int task_now(lua_State *L) {
  lua_pushnumber(L, (double)mw_clock_now() / 1e9);
  return 1;
}

void mw_bind_task(struct lua_State *L) {
  static const luaL_Reg functions[] = {
      {"sleep", task_sleep},       {"signal", task_signal},         {"park", task_park},
      {"defer", task_defer},       {"is_loading", task_is_loading}, {"complain", task_complain},
      {"replaces", task_replaces}, {"is_idle", task_is_idle},       {"shutdown", task_shutdown},
      {"fail", task_fail},         {"on_stop", task_on_stop},       {"on_end", task_on_end},
      {"now", task_now},           {"every", task_every},           {NULL, NULL}};
  static const luaL_Reg signal_methods[] = {
      {"fire", signal_fire}, {"wait", signal_wait}, {NULL, NULL}};
  mw_bind_new_type(L, SIGNAL_TYPE, signal_methods, signal_gc);
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_getglobal(L, "pcall");
  lua_getglobal(L, "xpcall");
  lua_pushcclosure(L, task_is_caught, 2);
  lua_setfield(L, -2, "is_caught");
  mw_bind_task_handles(L);
  *push_signal(L) = mw_signal_ref(mw_generation_signal(mw_generation_of(L)));
  lua_pushcclosure(L, task_changed, 1);
  lua_setfield(L, -2, "changed");
  mw_rand_init(lua_newuserdata(L, sizeof(struct mw_rand)), mw_rand_entropy());
  lua_pushcclosure(L, task_random, 1);
  lua_setfield(L, -2, "random");
  mw_task_push_cancelled(L);
  lua_setfield(L, -2, "cancelled");
}
