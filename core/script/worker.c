// SPDX-License-Identifier: Apache-2.0
// Life: STARTING (the state is made and `run` is called, on the thread) -> READY or FAILED, for
// which the starter waits -> stopping, in steps that follow one another from the loop: the
// program's own end, what is owned, the state -> STOPPED, for which mw_worker_stop waits.
//
// `phase`, `failure` and `info` are all that two threads touch; they are under the lock until the
// worker is ready, and read-only from then on.
#include "script/worker.h"

#include <errno.h>
#include <lauxlib.h>
#include <lua.h>
#include <luajit.h>
#include <lualib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "script/call.h"
#include "script/ref.h"

enum { INFO_MAX = 16, FAILURE_PART = (MW_ERR_MESSAGE_MAX - 8) / 2 };

static const double ready_seconds = 60;
static const double stop_seconds = 5;  // for a program that did not get ready in time

enum phase { STARTING = 0, READY, FAILED, STOPPED };

struct info {
  char *name;
  char *text;
};

struct mw_worker {
  struct mw_worker_config config;
  struct mw_loop *loop;
  lua_State *L;
  int at_end;                    // what `run` returned
  struct mw_worker_owned owned;  // head of a circular list
  struct mw_worker_owned closing;
  int end_rc;  // how that went
  bool stopping, finish_posted;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  enum phase phase;
  char failure[MW_ERR_MESSAGE_MAX];
  struct info info[INFO_MAX];
  size_t info_count;
};

static char registry_key;

static void list_init(struct mw_worker_owned *head) { head->prev = head->next = head; }

static void list_add(struct mw_worker_owned *head, struct mw_worker_owned *o) {
  o->prev = head->prev;
  o->next = head;
  o->prev->next = o;
  head->prev = o;
}

static void list_del(struct mw_worker_owned *o) {
  o->prev->next = o->next;
  o->next->prev = o->prev;
  o->prev = o->next = NULL;
}

static bool list_empty(const struct mw_worker_owned *head) { return head->next == head; }

// Waits, at most so long (< 0: for ever), until the phase is `wanted` or a later one; what it is
// then.
static enum phase wait_phase(struct mw_worker *w, enum phase wanted, double seconds) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  time_t whole = (time_t)seconds;
  until.tv_sec += whole;
  until.tv_nsec += (long)((seconds - (double)whole) * 1e9);
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec++;
  }
  pthread_mutex_lock(&w->lock);
  int rc = 0;
  while (w->phase < wanted && rc != ETIMEDOUT) {
    rc = seconds < 0 ? pthread_cond_wait(&w->changed, &w->lock)
                     : pthread_cond_timedwait(&w->changed, &w->lock, &until);
  }
  enum phase phase = w->phase;
  pthread_mutex_unlock(&w->lock);
  return phase;
}

struct mw_worker *mw_worker_of(struct lua_State *L) {
  lua_pushlightuserdata(L, &registry_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  struct mw_worker *w = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return w;
}

struct mw_loop *mw_worker_loop(struct mw_worker *w) {
  return w->loop;
}

struct lua_State *mw_worker_state(struct mw_worker *w) {
  return w->L;
}

const struct mw_worker_config *mw_worker_config(const struct mw_worker *w) { return &w->config; }

// Message handler: text and traceback.
static int explain(lua_State *L) {
  luaL_traceback(L, L, mw_script_error_text(L, 1), 1);
  return 1;
}

// Calls function(arg); on an error the message with its traceback is on top.
static int call(struct mw_worker *w, lua_CFunction function, void *arg) {
  lua_State *L = w->L;
  int top = lua_gettop(L);
  lua_pushcfunction(L, explain);
  lua_pushcfunction(L, function);
  lua_pushlightuserdata(L, arg);
  if (lua_pcall(L, 1, 0, top + 1) != 0) return MW_ESCRIPT;
  lua_settop(L, top);
  return 0;
}

int mw_worker_call(struct mw_worker *w, const char *what, int (*function)(struct lua_State *L),
                   void *arg) {
  int top = lua_gettop(w->L);
  int rc = call(w, function, arg);
  if (rc < 0) {
    const char *text = lua_tostring(w->L, -1);
    mw_log(MW_LOG_ERROR, "an error in the sandbox", MW_STR("in", what),
           MW_STR("error", text != NULL ? text : "unknown error"));
  }
  lua_settop(w->L, top);
  return rc;
}

void mw_worker_add_info(struct mw_worker *w, const char *name, const char *text) {
  pthread_mutex_lock(&w->lock);
  if (w->phase == STARTING && w->info_count < INFO_MAX) {
    w->info[w->info_count++] = (struct info){mw_xstrdup(name), mw_xstrdup(text)};
  }
  pthread_mutex_unlock(&w->lock);
}

void mw_worker_ready(struct mw_worker *w) {
  pthread_mutex_lock(&w->lock);
  if (w->phase == STARTING) w->phase = READY;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->lock);
}

const char *mw_worker_info(const struct mw_worker *w, const char *name) {
  for (size_t i = 0; i < w->info_count; i++)
    if (strcmp(w->info[i].name, name) == 0) return w->info[i].text;
  return NULL;
}

static int open_and_run(lua_State *L) {
  struct mw_worker *w = lua_touserdata(L, 1);
  lua_settop(L, 0);
  luaL_openlibs(L);
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  lua_pushlightuserdata(L, &registry_key);
  lua_pushlightuserdata(L, w);
  lua_rawset(L, LUA_REGISTRYINDEX);
  w->config.open(L);
  lua_settop(L, 0);
  lua_getglobal(L, "require");
  lua_pushstring(L, w->config.module);
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "run");
  lua_call(L, 0, 1);
  if (lua_isfunction(L, -1)) w->at_end = mw_luaref_take(L);
  return 0;
}

// What is too long loses its middle: a message begins with where and ends with why.
static void put_failure(struct mw_worker *w, const char *text, size_t n) {
  if (n < sizeof w->failure) {
    snprintf(w->failure, sizeof w->failure, "%.*s", (int)n, text);
  } else {
    snprintf(w->failure, sizeof w->failure, "%.*s ... %.*s", FAILURE_PART, text, FAILURE_PART,
             text + n - FAILURE_PART);
  }
}

// The program did not start, for the reason in `text`. Where it happened is for us; what is wrong
// is for the person who started it.
static void fail(struct mw_worker *w, const char *text) {
  const char *end = strstr(text, "\nstack traceback:");
  size_t n = end != NULL ? (size_t)(end - text) : strlen(text);
  pthread_mutex_lock(&w->lock);
  bool starting = w->phase == STARTING;
  if (starting) {
    put_failure(w, text, n);
    w->phase = FAILED;
    pthread_cond_broadcast(&w->changed);
  }
  pthread_mutex_unlock(&w->lock);
  mw_log(starting ? MW_LOG_DEBUG : MW_LOG_ERROR, "the sandbox did not start",
         MW_STR("error", text));
}

// On the thread: the first thing it does.
static void begin(void *arg) {
  struct mw_worker *w = arg;
  w->L = luaL_newstate();
  if (w->L == NULL) {
    fprintf(stderr, "moonwatch: out of memory\n");
    abort();
  }
  if (call(w, open_and_run, w) == 0) return;
  const char *text = lua_tostring(w->L, -1);
  fail(w, text != NULL ? text : "unknown error");
  lua_settop(w->L, 0);
}

// Nothing is left: the state goes, and with it the loop.
static void finish(void *arg) {
  struct mw_worker *w = arg;
  if (w->L != NULL) lua_close(w->L);
  w->L = NULL;
  mw_loop_stop(w->loop);
  pthread_mutex_lock(&w->lock);
  w->phase = STOPPED;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->lock);
}

static void finish_if_empty(struct mw_worker *w) {
  if (!w->stopping || w->finish_posted) return;
  if (!list_empty(&w->owned) || !list_empty(&w->closing)) return;
  w->finish_posted = true;
  mw_loop_post(w->loop, finish, w);
}

static int call_at_end(lua_State *L) {
  struct mw_worker *w = lua_touserdata(L, 1);
  mw_luaref_push(L, w->at_end);
  lua_call(L, 0, 0);
  return 0;
}

static void begin_stop(void *arg) {
  struct mw_worker *w = arg;
  if (w->stopping) return;
  if (w->at_end != MW_LUAREF_NONE) w->end_rc = mw_worker_call(w, "the end", call_at_end, w);
  if (w->L != NULL) mw_luaref_drop(w->L, &w->at_end);
  w->stopping = true;
  while (!list_empty(&w->owned)) {
    struct mw_worker_owned *o = w->owned.prev;
    list_del(o);
    list_add(&w->closing, o);
    o->close(o);
  }
  finish_if_empty(w);
}

bool mw_worker_own(struct mw_worker *w, struct mw_worker_owned *o) {
  if (w->stopping) return false;
  list_add(&w->owned, o);
  return true;
}

void mw_worker_drop(struct mw_worker *w, struct mw_worker_owned *o) {
  list_del(o);
  finish_if_empty(w);
}

static void release(struct mw_worker *w) {
  mw_loop_join_thread(w->loop);
  mw_loop_free(w->loop);
  for (size_t i = 0; i < w->info_count; i++) {
    mw_free(w->info[i].name);
    mw_free(w->info[i].text);
  }
  pthread_cond_destroy(&w->changed);
  pthread_mutex_destroy(&w->lock);
  mw_free(w);
}

int mw_worker_stop(struct mw_worker *w) {
  mw_loop_post(w->loop, begin_stop, w);
  wait_phase(w, STOPPED, -1);
  int rc = w->end_rc;
  release(w);
  return rc;
}

// Takes down what did not get ready; a thread that does not answer is left alone.
static void give_up(struct mw_worker *w) {
  mw_loop_post(w->loop, begin_stop, w);
  if (wait_phase(w, STOPPED, stop_seconds) == STOPPED) release(w);
}

static struct mw_worker *worker_new(const struct mw_worker_config *config) {
  struct mw_worker *w = mw_xcalloc(1, sizeof *w);
  w->config = *config;
  w->at_end = MW_LUAREF_NONE;
  list_init(&w->owned);
  list_init(&w->closing);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  w->loop = mw_loop_new("sandbox");
  return w;
}

struct mw_worker *mw_worker_start(const struct mw_worker_config *config, struct mw_err *err) {
  struct mw_worker *w = worker_new(config);
  if (mw_loop_start_thread(w->loop) < 0) {
    mw_err_set(err, MW_EIO, "cannot create a thread");
    release(w);
    return NULL;
  }
  mw_loop_post(w->loop, begin, w);
  double seconds = config->ready_seconds > 0 ? config->ready_seconds : ready_seconds;
  enum phase phase = wait_phase(w, READY, seconds);
  if (phase == READY) return w;
  if (phase == FAILED) {
    mw_err_set(err, MW_ESCRIPT, "%s", w->failure);
  } else {
    mw_err_set(err, MW_ETIMEOUT, "%s did not get ready within %g seconds", config->module, seconds);
  }
  give_up(w);
  return NULL;
}
