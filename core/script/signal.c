// SPDX-License-Identifier: Apache-2.0
#include "script/signal.h"

#include <lua.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "script/sched.h"
#include "transport/loop.h"

// A node of a circular list whose head is one too.
struct waiter {
  struct waiter *prev, *next;
  struct mw_signal *signal;  // +1
  struct mw_task *task;
  struct mw_timer *timer;  // NULL: no timeout
};

struct mw_signal {
  unsigned refs;
  struct mw_loop *loop;
  struct waiter waiters;  // the head
  bool posted;
};

static void list_init(struct waiter *head) { head->prev = head->next = head; }

static void list_add(struct waiter *head, struct waiter *w) {
  w->prev = head->prev;
  w->next = head;
  w->prev->next = w;
  head->prev = w;
}

static void list_del(struct waiter *w) {
  w->prev->next = w->next;
  w->next->prev = w->prev;
}

struct mw_signal *mw_signal_new(struct mw_loop *loop) {
  struct mw_signal *s = mw_xcalloc(1, sizeof *s);
  s->refs = 1;
  s->loop = loop;
  list_init(&s->waiters);
  return s;
}

struct mw_signal *mw_signal_ref(struct mw_signal *s) {
  s->refs++;
  return s;
}

void mw_signal_unref(struct mw_signal *s) {
  if (--s->refs == 0) mw_free(s);
}

static void waiter_free(void *arg) {
  struct waiter *w = arg;
  list_del(w);
  mw_timer_cancel(&w->timer);
  mw_signal_unref(w->signal);
  mw_free(w);
}

static void wake(struct waiter *w, bool fired) {
  struct mw_task *t = w->task;
  waiter_free(w);
  struct lua_State *co = mw_task_stack(t);
  lua_pushboolean(co, 1);
  lua_pushboolean(co, fired);
  mw_task_wake(t, 2);
}

static void on_timeout(void *arg) {
  struct waiter *w = arg;
  w->timer = NULL;
  wake(w, false);
}

// Those who begin to wait meanwhile wait for the next time.
static void deliver(void *arg) {
  struct mw_signal *s = arg;
  s->posted = false;
  struct waiter batch;
  list_init(&batch);
  while (s->waiters.next != &s->waiters) {
    struct waiter *w = s->waiters.next;
    list_del(w);
    list_add(&batch, w);
  }
  while (batch.next != &batch) wake(batch.next, true);
  mw_signal_unref(s);
}

void mw_signal_fire(struct mw_signal *s) {
  if (s->posted || s->waiters.next == &s->waiters) return;
  s->posted = true;
  mw_loop_post(s->loop, deliver, mw_signal_ref(s));
}

int mw_signal_wait(struct lua_State *L, struct mw_signal *s, double timeout, const char *what) {
  struct mw_task *t = mw_task_check(L, what);
  if (t == NULL) return 2;
  struct waiter *w = mw_xcalloc(1, sizeof *w);
  w->signal = mw_signal_ref(s);
  w->task = t;
  list_add(&s->waiters, w);
  if (timeout >= 0) w->timer = mw_timer_start(s->loop, timeout, on_timeout, w);
  return mw_task_await(L, t, waiter_free, w);
}
