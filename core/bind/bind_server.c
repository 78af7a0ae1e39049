// SPDX-License-Identifier: Apache-2.0
// kube._server: the worker's side of it: options, timers, getting ready, the end.
#include "bind/bind_server.h"

#include <lauxlib.h>
#include <lua.h>

#include "base/alloc.h"
#include "bind/bind.h"
#include "bind/codec.h"
#include "bind/util.h"
#include "script/ref.h"
#include "script/worker.h"

#define TIMER_TYPE "kube.sandbox.timer"

// Fires whether or not Lua still holds the handle.
struct timer {
  struct mw_worker_owned owned;
  struct mw_worker *worker;
  struct lua_State *L;
  struct mw_timer *timer;
  int function;
  struct timer **handle;  // Lua's; NULL once it was collected
};

static void timer_free(struct timer *t) {
  mw_timer_cancel(&t->timer);
  mw_luaref_drop(t->L, &t->function);
  if (t->handle != NULL) *t->handle = NULL;
  mw_worker_drop(t->worker, &t->owned);
  mw_free(t);
}

static void timer_close(struct mw_worker_owned *o) { timer_free((struct timer *)o); }

static int timer_run(lua_State *L) {
  struct timer *t = lua_touserdata(L, 1);
  mw_luaref_push(L, t->function);
  timer_free(t);
  lua_call(L, 0, 0);
  return 0;
}

static void on_timer(void *arg) {
  struct timer *t = arg;
  t->timer = NULL;
  mw_worker_call(t->worker, "a timer", timer_run, t);
}

static int timer_cancel(lua_State *L) {
  struct timer **handle = luaL_checkudata(L, 1, TIMER_TYPE);
  if (*handle != NULL) timer_free(*handle);
  return 0;
}

static int timer_gc(lua_State *L) {
  struct timer **handle = lua_touserdata(L, 1);
  if (*handle != NULL) (*handle)->handle = NULL;
  return 0;
}

// after(seconds, function): calls it once, from the loop; not at all when the end has begun.
static int host_after(lua_State *L) {
  double seconds = luaL_checknumber(L, 1);
  luaL_argcheck(L, seconds >= 0 && seconds <= MW_BIND_SECONDS_MAX, 1, "seconds, not negative");
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  struct timer **handle = lua_newuserdata(L, sizeof *handle);
  *handle = NULL;
  luaL_getmetatable(L, TIMER_TYPE);
  lua_setmetatable(L, -2);
  lua_pushvalue(L, 2);
  int function = mw_luaref_take(L);
  struct mw_worker *worker = mw_worker_of(L);
  struct timer *t = mw_xcalloc(1, sizeof *t);
  *t = (struct timer){.owned = {.close = timer_close}, .worker = worker, .function = function};
  t->L = mw_worker_state(worker);
  if (!mw_worker_own(worker, &t->owned)) {
    mw_luaref_drop(L, &t->function);
    mw_free(t);
    return 1;
  }
  t->handle = handle;
  *handle = t;
  t->timer = mw_timer_start(mw_worker_loop(worker), seconds, on_timer, t);
  return 1;
}

// ready(info): the program serves; info is a table of texts for the one who started it.
static int host_ready(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  struct mw_worker *worker = mw_worker_of(L);
  for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {  // [key, value]
    luaL_argcheck(L, lua_type(L, -2) == LUA_TSTRING && lua_type(L, -1) == LUA_TSTRING, 1,
                  "names and texts");
    mw_worker_add_info(worker, lua_tostring(L, -2), lua_tostring(L, -1));
  }
  mw_worker_ready(worker);
  return 0;
}

static void push_option(lua_State *L, const struct mw_worker_option *o) {
  switch (o->kind) {
    case MW_WORKER_TEXT:
      lua_pushstring(L, o->text);
      return;
    case MW_WORKER_NUMBER:
      lua_pushnumber(L, o->number);
      return;
    case MW_WORKER_FLAG:
      lua_pushboolean(L, o->number != 0);
      return;
    case MW_WORKER_LIST:
      lua_createtable(L, (int)o->count, 0);
      for (size_t i = 0; i < o->count; i++) {
        lua_pushstring(L, o->list[i]);
        lua_rawseti(L, -2, (int)i + 1);
      }
      return;
  }
}

static void push_options(lua_State *L) {
  const struct mw_worker_config *config = mw_worker_config(mw_worker_of(L));
  lua_createtable(L, 0, (int)config->option_count);
  for (size_t i = 0; i < config->option_count; i++) {
    push_option(L, &config->options[i]);
    lua_setfield(L, -2, config->options[i].name);
  }
}

static int load_server(lua_State *L) {
  static const luaL_Reg functions[] = {{"after", host_after}, {"ready", host_ready}, {NULL, NULL}};
  static const luaL_Reg timer_methods[] = {{"cancel", timer_cancel}, {NULL, NULL}};
  mw_bind_new_type(L, TIMER_TYPE, timer_methods, timer_gc);
  lua_createtable(L, 0, 32);
  luaL_register(L, NULL, functions);
  mw_bind_codec(L);
  lua_setfield(L, -2, "codec");
  push_options(L);
  lua_setfield(L, -2, "options");
  mw_bind_log(L);
  lua_getfield(L, -1, "write");
  lua_setfield(L, -3, "log");
  lua_pop(L, 1);
  mw_bind_tools(L);
  mw_bind_yaml(L);
  mw_bind_server_tools(L);
  mw_bind_server_http(L);
  return 1;
}

void mw_bind_server_open(struct lua_State *L) {
  // The server's modules use the FFI. Loaded after the codec it would forget the codec's types.
  lua_getglobal(L, "require");
  lua_pushliteral(L, "ffi");
  lua_call(L, 1, 0);
  mw_codec_open(L);
  mw_bind_preload(L, "kube._server", load_server);
}
