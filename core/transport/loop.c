// SPDX-License-Identifier: Apache-2.0
// The door is one uv_async over a locked array: a post appends and wakes, the loop swaps the array
// out and runs it without the lock. Posts made meanwhile wait for the next turn, so a callback that
// posts itself again cannot keep the loop from its sockets.
//
// libuv forgets a stop that comes between two runs, so stopping is a flag of ours.
#include "transport/loop.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"

enum {
  NAME_MAX_BYTES = 16,  // the kernel's limit for thread names
  CLOSE_TURNS = 2000    // how long to wait for handles that are closing, in milliseconds
};

struct posted {
  mw_loop_cb cb;
  void *arg;
};

struct queue {
  struct posted *items;
  size_t count;
  size_t cap;
};

struct mw_loop {
  uv_loop_t uv;
  uv_async_t door;
  uv_timer_t turn;  // bounds mw_loop_turn
  pthread_mutex_t lock;
  struct queue inbox;  // under lock
  bool running;        // under lock: a thread is in mw_loop_run, or about to be
  struct queue batch;  // only the loop's thread
  atomic_bool stop;
  pthread_t thread;
  bool has_thread;
  char name[NAME_MAX_BYTES];
};

struct mw_timer {
  uv_timer_t handle;
  mw_loop_cb cb;
  void *arg;
};

// The loop that this thread is running, if any.
static _Thread_local struct mw_loop *current;

// libuv writes to pipes and sockets without MSG_NOSIGNAL: a peer that went away must not kill us.
static void ignore_sigpipe(void) { signal(SIGPIPE, SIG_IGN); }

// False when nothing was posted.
static bool run_posted(struct mw_loop *l) {
  pthread_mutex_lock(&l->lock);
  struct queue taken = l->inbox;
  l->inbox = l->batch;
  l->batch = taken;
  pthread_mutex_unlock(&l->lock);
  for (size_t i = 0; i < l->batch.count; i++) l->batch.items[i].cb(l->batch.items[i].arg);
  bool any = l->batch.count > 0;
  l->batch.count = 0;
  return any;
}

static void on_door(uv_async_t *door) {
  struct mw_loop *l = door->data;
  run_posted(l);
  if (atomic_load(&l->stop)) uv_stop(&l->uv);
}

static void on_turn_over(uv_timer_t *timer) { (void)timer; }

struct mw_loop *mw_loop_new(const char *name) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, ignore_sigpipe);
  struct mw_loop *l = mw_xcalloc(1, sizeof *l);
  snprintf(l->name, sizeof l->name, "%s", name);
  pthread_mutex_init(&l->lock, NULL);
  if (uv_loop_init(&l->uv) != 0 || uv_async_init(&l->uv, &l->door, on_door) != 0) {
    fprintf(stderr, "moonwatch: cannot create an event loop: out of file descriptors?\n");
    abort();
  }
  uv_timer_init(&l->uv, &l->turn);
  l->door.data = l;
  return l;
}

static void name_foreign(uv_handle_t *handle, void *arg) {
  (void)arg;
  fprintf(stderr, "moonwatch: a %s handle is still open\n", uv_handle_type_name(handle->type));
}

void mw_loop_free(struct mw_loop *l) {
  if (l->has_thread) mw_loop_join_thread(l);
  while (run_posted(l)) continue;
  uv_close((uv_handle_t *)&l->door, NULL);
  uv_close((uv_handle_t *)&l->turn, NULL);
  // Closing takes libuv a turn or two; a child that was just killed takes until its exit is seen.
  int rc = UV_EBUSY;
  for (int i = 0; rc != 0 && i < CLOSE_TURNS; i++) {
    if (i > 2) uv_sleep(1);
    uv_run(&l->uv, UV_RUN_NOWAIT);
    rc = uv_loop_close(&l->uv);
  }
  if (rc != 0) {
    fprintf(stderr, "moonwatch: the loop \"%s\" is freed while in use\n", l->name);
    uv_walk(&l->uv, name_foreign, NULL);
    abort();
  }
  pthread_mutex_destroy(&l->lock);
  mw_free(l->inbox.items);
  mw_free(l->batch.items);
  mw_free(l);
}

uv_loop_t *mw_loop_uv(struct mw_loop *l) { return &l->uv; }

// Runs what is posted until there is nothing left, so that no mw_loop_call waits for ever.
static void leave(struct mw_loop *l) {
  for (;;) {
    run_posted(l);
    pthread_mutex_lock(&l->lock);
    bool empty = l->inbox.count == 0;
    if (empty) l->running = false;
    pthread_mutex_unlock(&l->lock);
    if (empty) return;
  }
}

void mw_loop_run(struct mw_loop *l) {
  pthread_mutex_lock(&l->lock);
  l->running = true;
  pthread_mutex_unlock(&l->lock);
  struct mw_loop *outer = current;
  current = l;
  while (!atomic_exchange(&l->stop, false)) uv_run(&l->uv, UV_RUN_DEFAULT);
  leave(l);
  current = outer;
}

void mw_loop_turn(struct mw_loop *l, unsigned timeout_ms) {
  if (timeout_ms == 0) {
    uv_run(&l->uv, UV_RUN_NOWAIT);
    return;
  }
  uv_update_time(&l->uv);
  // Repeating, as libuv may run a timer that is due before it waits for events.
  uv_timer_start(&l->turn, on_turn_over, timeout_ms, timeout_ms);
  uv_run(&l->uv, UV_RUN_ONCE);
  uv_timer_stop(&l->turn);
}

// Signals belong to the main thread, except SIGCHLD, whose handler is libuv's and only writes to a
// pipe, and those that a fault raises on its own thread.
static void block_signals(sigset_t *before) {
  sigset_t all;
  sigfillset(&all);
  const int keep[] = {SIGCHLD, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
  for (size_t i = 0; i < sizeof keep / sizeof keep[0]; i++) sigdelset(&all, keep[i]);
  pthread_sigmask(SIG_BLOCK, &all, before);
}

static void *thread_main(void *arg) {
  struct mw_loop *l = arg;
  pthread_setname_np(pthread_self(), l->name);
  mw_loop_run(l);
  return NULL;
}

int mw_loop_start_thread(struct mw_loop *l) {
  if (l->has_thread) return MW_ESTATE;
  pthread_mutex_lock(&l->lock);
  l->running = true;
  pthread_mutex_unlock(&l->lock);
  sigset_t before;
  block_signals(&before);
  int rc = pthread_create(&l->thread, NULL, thread_main, l);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (rc != 0) {
    pthread_mutex_lock(&l->lock);
    l->running = false;
    pthread_mutex_unlock(&l->lock);
    return MW_EIO;
  }
  l->has_thread = true;
  return 0;
}

void mw_loop_join_thread(struct mw_loop *l) {
  if (!l->has_thread) return;
  mw_loop_stop(l);
  pthread_join(l->thread, NULL);
  l->has_thread = false;
  // The thread may have ended by an earlier stop, in which case ours is still pending.
  atomic_store(&l->stop, false);
}

void mw_loop_stop(struct mw_loop *l) {
  atomic_store(&l->stop, true);
  uv_async_send(&l->door);
}

// Under the lock.
static void push(struct queue *q, mw_loop_cb cb, void *arg) {
  if (q->count == q->cap) {
    q->cap = q->cap > 0 ? q->cap * 2 : 16;
    q->items = mw_xrealloc(q->items, q->cap * sizeof *q->items);
  }
  q->items[q->count++] = (struct posted){cb, arg};
}

void mw_loop_post(struct mw_loop *l, mw_loop_cb cb, void *arg) {
  pthread_mutex_lock(&l->lock);
  push(&l->inbox, cb, arg);
  pthread_mutex_unlock(&l->lock);
  uv_async_send(&l->door);
}

struct waiter {
  mw_loop_cb cb;
  void *arg;
  uv_sem_t done;
};

static void run_waiter(void *arg) {
  struct waiter *w = arg;
  w->cb(w->arg);
  uv_sem_post(&w->done);
}

void mw_loop_call(struct mw_loop *l, mw_loop_cb cb, void *arg) {
  struct waiter w = {.cb = cb, .arg = arg};
  bool direct = current == l;
  if (!direct) {
    uv_sem_init(&w.done, 0);
    pthread_mutex_lock(&l->lock);
    direct = !l->running;
    if (!direct) push(&l->inbox, run_waiter, &w);
    pthread_mutex_unlock(&l->lock);
    if (!direct) {
      uv_async_send(&l->door);
      uv_sem_wait(&w.done);
    }
    uv_sem_destroy(&w.done);
  }
  if (direct) cb(arg);
}

static void on_timer_closed(uv_handle_t *handle) {
  mw_live_add(MW_LIVE_HANDLE, -1);
  mw_free(handle->data);
}

static void on_timer(uv_timer_t *handle) {
  struct mw_timer *t = handle->data;
  uv_close((uv_handle_t *)handle, on_timer_closed);
  t->cb(t->arg);
}

struct mw_timer *mw_timer_start(struct mw_loop *l, double seconds, mw_loop_cb cb, void *arg) {
  struct mw_timer *t = mw_xmalloc(sizeof *t);
  t->cb = cb;
  t->arg = arg;
  uv_timer_init(&l->uv, &t->handle);
  t->handle.data = t;
  mw_live_add(MW_LIVE_HANDLE, 1);
  // libuv counts whole milliseconds from the start of the turn, which may be long ago: a timer must
  // not be early.
  uv_update_time(&l->uv);
  uint64_t ms = 0;
  if (seconds > 0) ms = seconds < 1e12 ? (uint64_t)ceil(seconds * 1000) + 1 : (uint64_t)1e15;
  uv_timer_start(&t->handle, on_timer, ms, 0);
  return t;
}

void mw_timer_cancel(struct mw_timer **t) {
  if (*t == NULL) return;
  uv_close((uv_handle_t *)&(*t)->handle, on_timer_closed);
  *t = NULL;
}
