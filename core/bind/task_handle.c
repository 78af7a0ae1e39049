// SPDX-License-Identifier: Apache-2.0
// kube._core.task, the part that starts tasks and gets to know what became of them.
//
//   local handle = task.start({ name =, ... }, fn, ...)
//   task.join(handle)      awaits the end of a child that only the caller knows: `true`
//   task.wait(handle)      awaits the end of any task, or a stop of the caller
//   task.outcome(handle)   true, results... | false, err, report
//
// A handle is kept alive while its task runs. What became of the task is in a table of its own: the
// results by number and their count as n, or the error, its report, and the part of that which is
// about the task alone. Those tables are found by handle in one with weak keys and not in the
// environments of the userdata: a finalizer would bring such a table back for a moment, with cached
// objects in it whose own finalizers have run.
#include "bind/task_handle.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "bind/util.h"
#include "script/generation.h"
#include "script/host.h"
#include "script/ref.h"
#include "script/sched.h"
#include "script/signal.h"

#define TYPE "kube.task"

enum { NAME_ROOM = 64, REPORT_ROOM = 8 * 1024 };
enum { AT_ERROR = 1, AT_REPORT, AT_OWN };

struct handle {
  struct mw_task *task;  // NULL: not started yet, or ended
  bool done, failed;
  bool logs;       // a failure: nobody else gets to know
  bool counted;    // a failure that nobody has looked at yet, in the generation
  bool heeded;     // whoever started it looks at what becomes of it
  bool cancelled;  // before it was started
  bool drains;
  int waiting;  // how many wait for it now
  int self;
  int inbox;                 // a table that the handle is appended to when the task has ended
  struct mw_signal *signal;  // of the end; NULL before the first wait
  struct mw_unseen *unseen;
  char name[NAME_ROOM];
};

static struct handle *check_handle(lua_State *L, int idx) { return luaL_checkudata(L, idx, TYPE); }

static int handle_gc(lua_State *L) {
  struct handle *h = check_handle(L, 1);
  mw_unseen_orphan(h->unseen);
  h->unseen = NULL;
  if (h->signal != NULL) mw_signal_unref(h->signal);
  h->signal = NULL;
  return 0;
}

static const char outcomes_key = 0;  // its address is the key in the registry

// Pops the table on top: it is what became of the handle's task.
static void keep(struct handle *h, lua_State *L) {
  lua_pushlightuserdata(L, (void *)&outcomes_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  mw_luaref_push(L, h->self);
  lua_pushvalue(L, -3);
  lua_rawset(L, -3);  // [outcome, outcomes]
  lua_pop(L, 2);
}

// Pushes that table of the handle at idx 1.
static void push_outcome(lua_State *L) {
  lua_pushlightuserdata(L, (void *)&outcomes_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  lua_pushvalue(L, 1);
  lua_rawget(L, -2);
  lua_remove(L, -2);
}

// [values...] -> []
static void keep_results(struct handle *h, lua_State *L) {
  int n = lua_gettop(L);
  lua_createtable(L, n, 1);
  lua_insert(L, 1);
  lua_pushinteger(L, n);
  lua_setfield(L, 1, "n");
  for (int i = n; i > 0; i--) lua_rawseti(L, 1, i);
  keep(h, L);
}

// [..., error] -> [..., error].
static void keep_failure(struct handle *h, lua_State *L, const char *report, size_t own) {
  lua_createtable(L, AT_OWN, 0);  // [error, outcome]
  lua_pushvalue(L, -2);
  lua_rawseti(L, -2, AT_ERROR);
  lua_pushstring(L, report);
  lua_rawseti(L, -2, AT_REPORT);
  lua_pushlstring(L, report, own);
  lua_rawseti(L, -2, AT_OWN);
  keep(h, L);
}

static void log_failure(const struct handle *h, const char *report) {
  char message[REPORT_ROOM];
  snprintf(message, sizeof message, "task failed: %s", report);
  mw_log(MW_LOG_ERROR, message, MW_STR("task", h->name));
}

static void failed(struct handle *h, lua_State *L, const struct mw_task_failure *failure) {
  h->failed = true;
  keep_failure(h, L, failure->report, failure->own);
  if (failure->cancelled) return;
  if (h->logs) {
    log_failure(h, failure->report);
    h->counted = true;
    mw_generation_count_failed(mw_generation_of(L), 1);
  } else if (!h->heeded && h->waiting == 0 && mw_task_has_parent(failure->task)) {
    mw_unseen_leave(failure, L, &h->unseen);
  }
}

// Tells those who wait. Pushes and pops.
static void tell(struct handle *h, lua_State *L) {
  if (h->signal != NULL) mw_signal_fire(h->signal);
  if (h->inbox == MW_LUAREF_NONE) return;
  mw_luaref_push(L, h->inbox);
  mw_luaref_drop(L, &h->inbox);
  mw_luaref_push(L, h->self);  // [inbox, handle]
  lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
  lua_getfield(L, -1, "signal");
  mw_signal_fire(mw_bind_signal(L, -1));
  lua_pop(L, 2);
}

static void on_end(void *ctx, struct lua_State *L, const struct mw_task_failure *failure) {
  static const char crowded[] = "a task returned more values than there is room for";
  struct handle *h = ctx;
  bool roomy = lua_checkstack(L, 8);
  h->task = NULL;
  h->done = true;
  if (failure != NULL) {
    failed(h, L, failure);
  } else if (roomy) {
    keep_results(h, L);
  } else {
    h->failed = true;
    lua_settop(L, 0);
    lua_pushstring(L, crowded);
    keep_failure(h, L, crowded, sizeof crowded - 1);
  }
  tell(h, L);
  mw_luaref_drop(L, &h->self);
}

// [..., fn, args]; the handle is the userdata at idx, which is below fn.
static void start(lua_State *L, int idx, int nargs, struct mw_task_options *options) {
  struct handle *h = lua_touserdata(L, idx);
  lua_pushvalue(L, idx);
  h->self = mw_luaref_take(L);
  options->name = h->name;
  options->end = on_end;
  options->ctx = h;
  struct mw_task *t = mw_task_start(mw_sched_of(L), L, nargs, options);
  if (t != NULL) h->task = t;
}

// A task of the generation that was asked for while loading: upvalues are the handle, the count, fn
// and its arguments.
static int start_deferred(lua_State *L) {
  struct handle *h = lua_touserdata(L, lua_upvalueindex(1));
  if (h->cancelled) {
    h->done = h->failed = true;
    lua_pushvalue(L, lua_upvalueindex(1));
    h->self = mw_luaref_take(L);
    mw_task_push_cancelled(L);
    keep_failure(h, L, "the task was cancelled before it began", 0);
    tell(h, L);
    mw_luaref_drop(L, &h->self);
    return 0;
  }
  int nargs = (int)lua_tointeger(L, lua_upvalueindex(2));
  luaL_checkstack(L, nargs + 4, "too many arguments");
  lua_pushvalue(L, lua_upvalueindex(1));
  for (int i = 0; i <= nargs; i++) lua_pushvalue(L, lua_upvalueindex(3 + i));
  start(L, 1, nargs, &(struct mw_task_options){.drains = h->drains});
  return 0;
}

// [handle, fn, args...] -> [handle]
static void start_at_commit(lua_State *L, struct mw_generation *g, int nargs) {
  lua_pushvalue(L, 1);
  lua_insert(L, 2);
  lua_pushinteger(L, nargs);
  lua_insert(L, 3);  // [handle, handle, count, fn, args...]
  lua_pushcclosure(L, start_deferred, nargs + 3);
  mw_generation_defer_function(g, L);
}

// The name of a task that was given none: where its function is.
static void name_after_function(lua_State *L, int idx, char name[NAME_ROOM]) {
  lua_Debug ar;
  lua_pushvalue(L, idx);
  lua_getinfo(L, ">S", &ar);
  const char *file = strrchr(ar.short_src, '/');
  snprintf(name, NAME_ROOM, "%s:%d", file != NULL ? file + 1 : ar.short_src, ar.linedefined);
}

// [options, fn, args...] -> [options, handle, fn, args...]
static struct handle *insert_handle(lua_State *L, bool child) {
  struct handle *h = lua_newuserdata(L, sizeof *h);
  *h = (struct handle){.self = MW_LUAREF_NONE,
                       .inbox = MW_LUAREF_NONE,
                       .logs = !child,
                       .drains = mw_bind_opt_bool(L, 1, "drains", false),
                       .heeded = mw_bind_opt_bool(L, 1, "heeded", false)};
  luaL_getmetatable(L, TYPE);
  lua_setmetatable(L, -2);
  lua_insert(L, 2);
  const char *name = mw_bind_opt_string(L, 1, "name", NULL);
  if (name != NULL) {
    snprintf(h->name, sizeof h->name, "%s", name);
  } else {
    name_after_function(L, 3, h->name);
  }
  lua_getfield(L, 1, "inbox");
  h->inbox = mw_luaref_take(L);
  return h;
}

// start({ name =, child =, trigger =, timeout =, shielded =, queued =, drains =, heeded =,
// inbox = }, fn, ...): a task of the generation, whose failure is logged, or a child of the running
// one. An inbox has a signal in it, inbox.signal.
static int task_start(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  int nargs = lua_gettop(L) - 2;
  luaL_argcheck(L, nargs <= MW_TASK_ARGS_MAX, 3, "too many arguments");
  luaL_checkstack(L, nargs + 16, "too many arguments");
  struct mw_task_options options = {
      .child = mw_bind_opt_bool(L, 1, "child", false),
      .trigger = mw_bind_opt_string(L, 1, "trigger", NULL),
      .timeout = mw_bind_opt_seconds(L, 1, "timeout", 0),
      .shielded = mw_bind_opt_bool(L, 1, "shielded", false),
      .queued = mw_bind_opt_bool(L, 1, "queued", false),
  };
  options.drains = insert_handle(L, options.child)->drains;
  struct mw_generation *g = mw_generation_of(L);
  if (options.child || !mw_generation_is_loading(g)) {
    start(L, 2, nargs, &options);
    lua_settop(L, 2);
  } else {
    lua_remove(L, 1);
    start_at_commit(L, g, nargs);
    lua_settop(L, 1);
  }
  return 1;
}

// check(what): whether a task may be waited for here and now; as every await, `false, err` if it is
// stopped.
static int task_check(lua_State *L) {
  if (mw_task_check(L, luaL_checkstring(L, 1)) == NULL) return 2;
  lua_pushboolean(L, 1);
  return 1;
}

// join(handle): of a child that has not ended.
static int task_join(lua_State *L) {
  struct handle *h = check_handle(L, 1);
  struct mw_task *t = mw_task_current(mw_sched_of(L));
  if (h->task == NULL) {
    lua_pushboolean(L, 1);
    return 1;
  }
  return mw_task_join(L, t, h->task);
}

// wait(handle): `true` when something may have changed, `false, err` as every await.
static int task_wait(lua_State *L) {
  struct handle *h = check_handle(L, 1);
  if (h->done) {
    lua_pushboolean(L, 1);
    return 1;
  }
  if (h->signal == NULL)
    h->signal = mw_signal_new(mw_host_loop(mw_generation_host(mw_generation_of(L))));
  return mw_signal_wait(L, h->signal, -1, "task:wait()");
}

// is_mine(handle): whether the running task is this one, or belongs to it.
static int task_is_mine(lua_State *L) {
  struct handle *h = check_handle(L, 1);
  lua_pushboolean(L, h->task != NULL && mw_task_is_below(mw_task_current(mw_sched_of(L)), h->task));
  return 1;
}

// heed(handle, by): so many more wait for it, and will look.
static int task_heed(lua_State *L) {
  struct handle *h = check_handle(L, 1);
  h->waiting += (int)luaL_checkinteger(L, 2);
  return 0;
}

static int task_remaining(lua_State *L) {
  struct mw_task *t = mw_task_current(mw_sched_of(L));
  double seconds = t != NULL ? mw_task_remaining(t) : -1;
  if (seconds < 0) {
    lua_pushnil(L);
  } else {
    lua_pushnumber(L, seconds);
  }
  return 1;
}

// at_end(fn): of the running task.
static int task_at_end(lua_State *L) {
  struct mw_task *t = mw_task_current(mw_sched_of(L));
  luaL_checktype(L, 1, LUA_TFUNCTION);
  if (t == NULL) return mw_bind_misuse(L, "kube.defer() is for functions that run as a task");
  lua_settop(L, 1);
  mw_task_defer(t, L);
  return 0;
}

static struct handle *check_ended(lua_State *L) {
  struct handle *h = check_handle(L, 1);
  luaL_argcheck(L, h->done, 1, "a task that has ended");
  mw_unseen_seen(&h->unseen);
  if (h->counted) mw_generation_count_failed(mw_generation_of(L), -1);
  h->counted = false;
  return h;
}

static int task_outcome(lua_State *L) {
  struct handle *h = check_ended(L);
  lua_settop(L, 1);
  push_outcome(L);  // [handle, outcome]
  lua_pushboolean(L, !h->failed);
  if (h->failed) {
    lua_rawgeti(L, 2, AT_ERROR);
    lua_rawgeti(L, 2, AT_REPORT);
    return 3;
  }
  lua_getfield(L, 2, "n");
  int n = (int)lua_tointeger(L, -1);
  lua_pop(L, 1);
  luaL_checkstack(L, n, "too many results");
  for (int i = 1; i <= n; i++) lua_rawgeti(L, 2, i);
  return n + 1;
}

// raise(handle): the error that the task ended with; nothing when it returned normally.
static int task_raise(lua_State *L) {
  struct handle *h = check_ended(L);
  if (!h->failed) return 0;
  lua_settop(L, 1);
  push_outcome(L);
  lua_rawgeti(L, 2, AT_OWN);
  lua_rawgeti(L, 2, AT_ERROR);  // [handle, outcome, own, error]
  struct mw_task *t = mw_task_current(mw_sched_of(L));
  if (t != NULL) mw_task_carry(t, L, lua_tostring(L, 3));
  return lua_error(L);
}

static int handle_cancel(lua_State *L) {
  struct handle *h = check_handle(L, 1);
  h->cancelled = true;
  if (h->task != NULL) mw_task_cancel(h->task);
  return 0;
}

static int handle_is_done(lua_State *L) {
  lua_pushboolean(L, check_handle(L, 1)->done);
  return 1;
}

static int handle_name(lua_State *L) {
  lua_pushstring(L, check_handle(L, 1)->name);
  return 1;
}

static int handle_tostring(lua_State *L) {
  lua_pushfstring(L, "task %s", check_handle(L, 1)->name);
  return 1;
}

void mw_bind_task_handles(struct lua_State *L) {
  static const luaL_Reg methods[] = {
      {"cancel", handle_cancel}, {"is_done", handle_is_done}, {"name", handle_name}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"start", task_start},
                                       {"check", task_check},
                                       {"join", task_join},
                                       {"wait", task_wait},
                                       {"heed", task_heed},
                                       {"is_mine", task_is_mine},
                                       {"remaining", task_remaining},
                                       {"at_end", task_at_end},
                                       {"outcome", task_outcome},
                                       {"raise", task_raise},
                                       {NULL, NULL}};
  luaL_register(L, NULL, functions);
  lua_pushlightuserdata(L, (void *)&outcomes_key);
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "k");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_rawset(L, LUA_REGISTRYINDEX);
  mw_bind_new_type(L, TYPE, methods, handle_gc);
  luaL_getmetatable(L, TYPE);
  lua_pushcfunction(L, handle_tostring);
  lua_setfield(L, -2, "__tostring");
  lua_getfield(L, -1, "__index");
  lua_setfield(L, -3, "methods");
  lua_pop(L, 1);
}
