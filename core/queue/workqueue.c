// SPDX-License-Identifier: Apache-2.0
// An entry is idle (handed out, or kept for its failures alone), waiting (in the delay queue) or
// ready. Beside that it may be held by a user, which is what "handed out" means. A ready entry is
// in the list of its priority's level, unless it is held: then it is in its user's list, and joins
// its level when it is done.
//
// Levels are few, and kept: their array is sorted by priority and searched from the top.
#include "queue/workqueue.h"

#include <assert.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "queue/delay_queue.h"
#include "queue/key_table.h"
#include "queue/queue_metrics.h"

enum {
  KEYS_MAX = 10000000,
  RIPEN_MAX = 1000,   // keys that one turn of the loop makes ready
  TURN_NS = 2000000,  // how long one turn hands out keys
  OTHER = MW_WORKQUEUE_REASONS - 1
};

enum state {
  IDLE = 0,
  WAITING,
  READY,
};

struct entry {
  struct mw_key_node node;         // hash, key, priority
  struct mw_delay_node delay;      // at: WAITING: when it is ready; READY: since when it is
  struct entry *prev, *next;       // in the level, or in the user's list
  struct mw_workqueue_user *user;  // who holds it, or NULL
  uint64_t started;                // held: since when
  uint64_t reasons;                // since the last hand-out
  uint32_t failures;
  uint8_t state;
  char key[];
};

// A circular list of entries has a head that is nothing else.
struct list {
  struct entry *first, *last;
};

struct level {
  int priority;
  struct list list;
  size_t depth;             // READY, held ones included
  struct mw_series *shown;  // the same, in the metrics; NULL: without a name
};

struct mw_workqueue_user {
  struct mw_workqueue *q;  // +1
  struct mw_workqueue_user *prev, *next;
  struct list held;  // oldest first
  bool closed;
  mw_loop_cb changed;
  void *ctx;
};

struct mw_workqueue {
  unsigned refs;
  struct mw_loop *loop;
  char *name;
  struct mw_rate_limiter limiter;
  size_t keys_max;
  uint64_t (*clock)(void);
  struct mw_key_table keys;
  struct level **levels;  // by priority, highest first
  size_t level_count;
  size_t available;  // READY and not held
  size_t depth;      // READY
  size_t held;
  size_t failing;
  size_t entry_bytes;
  uint64_t started_sum;  // of those held, modulo 2^64
  unsigned passed;       // hand-outs since the longest ready key had its turn
  struct mw_delay_queue delays;
  struct mw_timer *timer;
  uint64_t timer_at;  // when it fires
  const void *owner;
  struct mw_workqueue_user users;      // the head
  struct mw_workqueue_waiter waiters;  // the head
  bool posted;
  bool closing;  // a user was closed, and its waiters may not know yet
  bool shut;
  char *reasons[MW_WORKQUEUE_REASONS];
  unsigned reason_count;
  uint64_t adds, retries, taken;
  struct mw_queue_metrics metrics;
  struct mw_timer *gauge_timer;  // while anything is held, and the queue has a name
};

static const double gauge_seconds = 0.5;

static void dispatch_soon(struct mw_workqueue *q);

static struct entry *entry_of(struct mw_key_node *n) { return (struct entry *)n; }

static struct entry *waiting_entry(struct mw_delay_node *n) {
  return n != NULL ? (struct entry *)((char *)n - offsetof(struct entry, delay)) : NULL;
}

static void list_push(struct list *l, struct entry *e) {
  e->prev = l->last;
  e->next = NULL;
  if (l->last != NULL) {
    l->last->next = e;
  } else {
    l->first = e;
  }
  l->last = e;
}

static void list_del(struct list *l, struct entry *e) {
  if (e->prev != NULL) {
    e->prev->next = e->next;
  } else {
    l->first = e->next;
  }
  if (e->next != NULL) {
    e->next->prev = e->prev;
  } else {
    l->last = e->prev;
  }
  e->prev = e->next = NULL;
}

struct mw_workqueue *mw_workqueue_new(struct mw_loop *loop, const char *name,
                                      const struct mw_workqueue_config *config) {
  struct mw_workqueue *q = mw_xcalloc(1, sizeof *q);
  q->refs = 1;
  q->loop = loop;
  q->name = name != NULL ? mw_xstrdup(name) : NULL;
  q->keys_max = config->keys_max > 0 ? config->keys_max : KEYS_MAX;
  q->clock = config->clock != NULL ? config->clock : mw_clock_now;
  mw_rate_limiter_init(&q->limiter, &config->limits, q->clock());
  mw_key_table_init(&q->keys, offsetof(struct entry, key));
  mw_delay_queue_init(&q->delays);
  mw_queue_metrics_init(&q->metrics, name);
  q->users.prev = q->users.next = &q->users;
  q->waiters.prev = q->waiters.next = &q->waiters;
  mw_live_add(MW_LIVE_QUEUE, 1);
  return q;
}

struct mw_workqueue *mw_workqueue_ref(struct mw_workqueue *q) {
  q->refs++;
  return q;
}

static void count_depth(struct level *l, int delta) {
  l->depth += (size_t)delta;
  mw_queue_metrics_add(l->shown, delta);
}

// The next queue of the same name shows what it has; what this one still had goes.
static void level_free(struct level *l) {
  mw_queue_metrics_add(l->shown, -(double)l->depth);
  mw_series_unref(l->shown);
  mw_free(l);
}

void mw_workqueue_unref(struct mw_workqueue *q) {
  if (--q->refs > 0) return;
  assert(q->users.next == &q->users && q->waiters.next == &q->waiters);
  mw_timer_cancel(&q->timer);
  mw_timer_cancel(&q->gauge_timer);
  struct mw_key_node *n;
  while ((n = mw_key_table_pop(&q->keys)) != NULL) mw_free(n);
  mw_key_table_deinit(&q->keys);
  mw_delay_queue_deinit(&q->delays);
  for (size_t i = 0; i < q->level_count; i++) level_free(q->levels[i]);
  mw_free(q->levels);
  for (unsigned i = 0; i < MW_WORKQUEUE_REASONS; i++) mw_free(q->reasons[i]);
  mw_queue_metrics_deinit(&q->metrics);
  mw_free(q->name);
  mw_free(q);
  mw_live_add(MW_LIVE_QUEUE, -1);
}

void mw_workqueue_rename(struct mw_workqueue *q, const char *name) {
  mw_queue_metrics_deinit(&q->metrics);
  mw_free(q->name);
  q->name = mw_xstrdup(name);
  mw_queue_metrics_init(&q->metrics, q->name);
  for (size_t i = 0; i < q->level_count; i++) {
    struct level *l = q->levels[i];
    mw_queue_metrics_add(l->shown, -(double)l->depth);
    mw_series_unref(l->shown);
    l->shown = mw_queue_metrics_depth(q->name, l->priority);
    mw_queue_metrics_add(l->shown, (double)l->depth);
  }
}

void mw_workqueue_set_owner(struct mw_workqueue *q, const void *owner) { q->owner = owner; }

const void *mw_workqueue_owner(const struct mw_workqueue *q) { return q->owner; }

const char *mw_workqueue_name(const struct mw_workqueue *q) { return q->name; }

void mw_workqueue_set_limits(struct mw_workqueue *q, const struct mw_rate_limiter_config *limits) {
  const struct mw_rate_limiter_config *c = &q->limiter.config;
  bool same_bucket = c->qps == limits->qps && c->burst == limits->burst;
  if (same_bucket) {
    q->limiter.config = *limits;
  } else {
    mw_rate_limiter_init(&q->limiter, limits, q->clock());
  }
}

// Levels

// Where the level of this priority is, or belongs.
static size_t level_index(const struct mw_workqueue *q, int priority) {
  size_t low = 0, high = q->level_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (q->levels[middle]->priority > priority) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static struct level *level_of(struct mw_workqueue *q, int priority) {
  size_t at = level_index(q, priority);
  if (at < q->level_count && q->levels[at]->priority == priority) return q->levels[at];
  q->levels = mw_xrealloc(q->levels, (q->level_count + 1) * sizeof *q->levels);
  for (size_t i = q->level_count++; i > at; i--) q->levels[i] = q->levels[i - 1];
  q->levels[at] = mw_xcalloc(1, sizeof *q->levels[at]);
  q->levels[at]->priority = priority;
  q->levels[at]->shown = mw_queue_metrics_depth(q->name, priority);
  return q->levels[at];
}

static void line_up(struct mw_workqueue *q, struct entry *e) {
  list_push(&level_of(q, e->node.priority)->list, e);
  q->available++;
  dispatch_soon(q);
}

// From idle or waiting, with its priority set.
static void make_ready(struct mw_workqueue *q, struct entry *e, uint64_t now) {
  e->state = READY;
  e->delay.at = now;
  count_depth(level_of(q, e->node.priority), 1);
  q->depth++;
  q->adds++;
  mw_queue_metrics_add(q->metrics.adds, 1);
  if (e->user == NULL) line_up(q, e);
}

static void raise_priority(struct mw_workqueue *q, struct entry *e, int16_t priority) {
  if (priority <= e->node.priority) return;
  if (e->state == READY) {
    struct level *from = level_of(q, e->node.priority);
    count_depth(from, -1);
    count_depth(level_of(q, priority), 1);
    if (e->user == NULL) {
      list_del(&from->list, e);
      list_push(&level_of(q, priority)->list, e);
    }
  }
  e->node.priority = priority;
}

// The key that has been ready longest; of equals, that of the highest priority.
static struct level *longest_ready(const struct mw_workqueue *q) {
  struct level *best = NULL;
  for (size_t i = 0; i < q->level_count; i++) {
    struct level *l = q->levels[i];
    if (l->list.first == NULL) continue;
    if (best == NULL || l->list.first->delay.at < best->list.first->delay.at) best = l;
  }
  return best;
}

// The level whose first key is next. There is one that is available.
static struct level *next_level(struct mw_workqueue *q) {
  struct level *top = NULL;
  bool others = false;
  for (size_t i = 0; i < q->level_count && !others; i++) {
    if (q->levels[i]->list.first == NULL) continue;
    if (top == NULL) {
      top = q->levels[i];
    } else {
      others = true;
    }
  }
  if (!others) {
    q->passed = 0;
  } else if (++q->passed >= MW_WORKQUEUE_FAIR) {
    q->passed = 0;
    return longest_ready(q);
  }
  return top;
}

// Time

static void arm(struct mw_workqueue *q, uint64_t now);

// Makes up to max keys ready whose time has come.
static void ripen(struct mw_workqueue *q, uint64_t now, unsigned max) {
  struct entry *e;
  while (max-- > 0 && (e = waiting_entry(mw_delay_queue_first(&q->delays))) != NULL &&
         e->delay.at <= now) {
    mw_delay_queue_del(&q->delays, &e->delay);
    make_ready(q, e, now);
  }
}

static void on_time(void *arg) {
  struct mw_workqueue *q = arg;
  q->timer = NULL;
  uint64_t now = q->clock();
  ripen(q, now, RIPEN_MAX);
  arm(q, now);
}

// A timer that fires too early finds nothing and is set again: keys that are added later never move
// it, only those that are due sooner.
static void arm(struct mw_workqueue *q, uint64_t now) {
  struct mw_delay_node *first = mw_delay_queue_first(&q->delays);
  if (first == NULL) {
    mw_timer_cancel(&q->timer);
    return;
  }
  if (q->timer != NULL && q->timer_at <= first->at) return;
  mw_timer_cancel(&q->timer);
  q->timer_at = first->at;
  // What is due already comes in the next turns of the loop: libuv runs timers of no time in this
  // one.
  double seconds = first->at > now ? (double)(first->at - now) * 1e-9 : 0.001;
  q->timer = mw_timer_start(q->loop, seconds, on_time, q);
}

// Adding

static struct entry *find(const struct mw_workqueue *q, struct mw_slice key) {
  struct mw_key_node *n = mw_key_table_get(&q->keys, key, mw_hash(key));
  return n != NULL ? entry_of(n) : NULL;
}

// Short keys fit into what alignment would leave empty.
static size_t entry_size(size_t key_len) {
  size_t n = offsetof(struct entry, key) + key_len;
  return n > sizeof(struct entry) ? n : sizeof(struct entry);
}

static struct entry *entry_new(struct mw_workqueue *q, struct mw_slice key) {
  struct entry *e = mw_xcalloc(1, entry_size(key.n));
  e->node.hash = mw_hash(key);
  e->node.len = (uint16_t)key.n;
  if (key.n > 0) memcpy(e->key, key.p, key.n);
  mw_key_table_add(&q->keys, &e->node);
  q->entry_bytes += entry_size(key.n);
  return e;
}

// Frees the entry unless there is something to remember.
static void entry_drop(struct mw_workqueue *q, struct entry *e) {
  if (e->state != IDLE || e->user != NULL || e->failures > 0) return;
  mw_key_table_del(&q->keys, &e->node);
  q->entry_bytes -= entry_size(e->node.len);
  mw_free(e);
}

// Seconds until the key is ready; a failure is counted if it is to be.
static double delay_of(struct mw_workqueue *q, struct entry *e, const struct mw_workqueue_add *how,
                       uint64_t now) {
  double delay = how->after > 0 ? how->after : 0;
  if (!how->rate_limited) return delay;
  double limited = mw_rate_limiter_next(&q->limiter, e->failures, now);
  if (e->failures++ == 0) q->failing++;
  return delay == 0 || limited < delay ? limited : delay;
}

static void count_retry(struct mw_workqueue *q) {
  q->retries++;
  mw_queue_metrics_add(q->metrics.retries, 1);
}

static int16_t held_to_range(int priority) {
  if (priority > MW_WORKQUEUE_PRIORITY_MAX) return MW_WORKQUEUE_PRIORITY_MAX;
  if (priority < -MW_WORKQUEUE_PRIORITY_MAX) return -MW_WORKQUEUE_PRIORITY_MAX;
  return (int16_t)priority;
}

int mw_workqueue_add(struct mw_workqueue *q, struct mw_slice key,
                     const struct mw_workqueue_add *how) {
  static const struct mw_workqueue_add plain = {0};
  if (how == NULL) how = &plain;
  if (key.n > MW_WORKQUEUE_KEY_MAX) return MW_ELIMIT;
  if (q->shut) return 0;
  struct entry *e = find(q, key);
  if (e == NULL && q->keys.count >= q->keys_max) return MW_ELIMIT;
  if (e == NULL) e = entry_new(q, key);
  uint64_t now = q->clock();
  double delay = delay_of(q, e, how, now);
  uint64_t at = now + (delay < 1e9 ? (uint64_t)(delay * 1e9) : (uint64_t)1e18);
  if (delay > 0) count_retry(q);
  e->reasons |= how->reasons;
  int16_t priority = held_to_range(how->priority);
  if (e->state == IDLE) {
    e->node.priority = priority;
  } else {
    raise_priority(q, e, priority);
  }
  if (e->state == READY) return 0;
  if (delay <= 0) {
    if (e->state == WAITING) mw_delay_queue_del(&q->delays, &e->delay);
    make_ready(q, e, now);
    return 0;
  }
  if (e->state == WAITING) {
    mw_delay_queue_advance(&q->delays, &e->delay, at);
  } else {
    e->state = WAITING;
    mw_delay_queue_add(&q->delays, &e->delay, at);
  }
  arm(q, now);
  return 0;
}

uint64_t mw_workqueue_reason(struct mw_workqueue *q, struct mw_slice text) {
  if (text.n > MW_WORKQUEUE_REASON_MAX) text.n = MW_WORKQUEUE_REASON_MAX;
  for (unsigned i = 0; i < q->reason_count; i++)
    if (mw_slice_is(text, q->reasons[i])) return UINT64_C(1) << i;
  if (q->reason_count < OTHER) {
    q->reasons[q->reason_count] = mw_xstrndup(text.p, text.n);
    return UINT64_C(1) << q->reason_count++;
  }
  if (q->reasons[OTHER] == NULL) q->reasons[OTHER] = mw_xstrdup("other");
  return UINT64_C(1) << OTHER;
}

const char *mw_workqueue_reason_text(const struct mw_workqueue *q, unsigned i) {
  return i < MW_WORKQUEUE_REASONS ? q->reasons[i] : NULL;
}

void mw_workqueue_forget(struct mw_workqueue *q, struct mw_slice key) {
  struct entry *e = find(q, key);
  if (e == NULL || e->failures == 0) return;
  e->failures = 0;
  q->failing--;
  entry_drop(q, e);
}

// Entries that are there for their failures alone are chained, to be dropped behind the walk.
struct forgiving {
  struct mw_workqueue *q;
  struct entry *idle;
  uint64_t now;
};

static void forgive(void *ctx, struct mw_key_node *n) {
  struct forgiving *f = ctx;
  struct mw_workqueue *q = f->q;
  struct entry *e = entry_of(n);
  if (e->failures == 0) return;
  e->failures = 0;
  q->failing--;
  if (e->state == WAITING) {
    mw_delay_queue_del(&q->delays, &e->delay);
    make_ready(q, e, f->now);
  } else if (e->state == IDLE && e->user == NULL) {
    e->next = f->idle;
    f->idle = e;
  }
}

void mw_workqueue_forgive(struct mw_workqueue *q) {
  struct forgiving f = {.q = q, .now = q->clock()};
  mw_key_table_each(&q->keys, forgive, &f);
  while (f.idle != NULL) {
    struct entry *e = f.idle;
    f.idle = e->next;
    e->next = NULL;
    entry_drop(q, e);
  }
}

unsigned mw_workqueue_requeues(const struct mw_workqueue *q, struct mw_slice key) {
  struct entry *e = find(q, key);
  return e != NULL ? e->failures : 0;
}

size_t mw_workqueue_len(struct mw_workqueue *q) {
  ripen(q, q->clock(), UINT32_MAX);
  return q->available;
}

// Handing out

struct mw_workqueue_user *mw_workqueue_join(struct mw_workqueue *q, mw_loop_cb changed, void *ctx) {
  struct mw_workqueue_user *u = mw_xcalloc(1, sizeof *u);
  u->q = mw_workqueue_ref(q);
  u->changed = changed;
  u->ctx = ctx;
  u->prev = q->users.prev;
  u->next = &q->users;
  u->prev->next = u;
  q->users.prev = u;
  return u;
}

void mw_workqueue_close(struct mw_workqueue_user *u) {
  if (u->closed) return;
  u->closed = true;
  u->q->closing = true;
  dispatch_soon(u->q);
}

static void tell_if_drained(struct mw_workqueue *q) {
  if (!mw_workqueue_is_drained(q)) return;
  for (struct mw_workqueue_user *u = q->users.next; u != &q->users; u = u->next)
    if (u->changed != NULL) u->changed(u->ctx);
}

static double unfinished(const struct mw_workqueue *q, uint64_t now) {
  return (double)(q->held * now - q->started_sum) * 1e-9;
}

static double longest_running(const struct mw_workqueue *q, uint64_t now) {
  uint64_t oldest = now;
  for (struct mw_workqueue_user *u = q->users.next; u != &q->users; u = u->next)
    if (u->held.first != NULL && u->held.first->started < oldest) oldest = u->held.first->started;
  return (double)(now - oldest) * 1e-9;
}

static void set_gauges(struct mw_workqueue *q, uint64_t now) {
  mw_queue_metrics_set(q->metrics.unfinished, unfinished(q, now));
  mw_queue_metrics_set(q->metrics.longest, longest_running(q, now));
}

// These two grow by themselves, and are read on another thread.
static void on_gauge_time(void *arg) {
  struct mw_workqueue *q = arg;
  q->gauge_timer = NULL;
  set_gauges(q, q->clock());
  if (q->held > 0) q->gauge_timer = mw_timer_start(q->loop, gauge_seconds, on_gauge_time, q);
}

static void hold(struct mw_workqueue_user *u, struct entry *e, uint64_t now) {
  struct mw_workqueue *q = u->q;
  e->state = IDLE;
  e->user = u;
  e->started = now;
  list_push(&u->held, e);
  q->held++;
  q->started_sum += now;
  if (q->name != NULL && q->gauge_timer == NULL)
    q->gauge_timer = mw_timer_start(q->loop, gauge_seconds, on_gauge_time, q);
}

bool mw_workqueue_take(struct mw_workqueue_user *u, struct mw_workqueue_item *out) {
  struct mw_workqueue *q = u->q;
  uint64_t now = q->clock();
  ripen(q, now, RIPEN_MAX);
  if (u->closed || q->available == 0) return false;
  struct level *l = next_level(q);
  struct entry *e = l->list.first;
  list_del(&l->list, e);
  count_depth(l, -1);
  q->depth--;
  q->available--;
  q->taken++;
  *out = (struct mw_workqueue_item){.key = mw_slice(e->key, e->node.len),
                                    .priority = e->node.priority,
                                    .reasons = e->reasons,
                                    .waited = (double)(now - e->delay.at) * 1e-9,
                                    .requeues = e->failures};
  mw_queue_metrics_observe(q->metrics.queue_duration, out->waited);
  e->reasons = 0;
  hold(u, e, now);
  return true;
}

static void release(struct mw_workqueue *q, struct entry *e) {
  uint64_t now = q->clock();
  mw_queue_metrics_observe(q->metrics.work_duration, (double)(now - e->started) * 1e-9);
  list_del(&e->user->held, e);
  e->user = NULL;
  q->held--;
  q->started_sum -= e->started;
  if (q->held == 0) set_gauges(q, now);
  if (e->state == READY) line_up(q, e);
}

size_t mw_workqueue_held(const struct mw_workqueue_user *u) {
  size_t n = 0;
  for (const struct entry *e = u->held.first; e != NULL; e = e->next) n++;
  return n;
}

bool mw_workqueue_holds(const struct mw_workqueue_user *u, struct mw_slice key) {
  struct entry *e = find(u->q, key);
  return e != NULL && e->user == u;
}

int mw_workqueue_done(struct mw_workqueue_user *u, struct mw_slice key) {
  struct mw_workqueue *q = u->q;
  struct entry *e = find(q, key);
  if (e == NULL || e->user != u) return MW_ESTATE;
  release(q, e);
  entry_drop(q, e);
  if (q->shut) dispatch_soon(q);
  tell_if_drained(q);
  return 0;
}

void mw_workqueue_leave(struct mw_workqueue_user *u) {
  struct mw_workqueue *q = u->q;
  struct entry *e;
  while ((e = u->held.first) != NULL) {
    release(q, e);
    if (e->state == IDLE && !q->shut) make_ready(q, e, q->clock());
    entry_drop(q, e);
  }
  u->prev->next = u->next;
  u->next->prev = u->prev;
  mw_free(u);
  tell_if_drained(q);
  mw_workqueue_unref(q);
}

static void waiter_del(struct mw_workqueue_waiter *w) {
  w->prev->next = w->next;
  w->next->prev = w->prev;
  w->prev = w->next = NULL;
}

// The next who is to be told that no key will come, or NULL.
static struct mw_workqueue_waiter *next_to_end(struct mw_workqueue *q) {
  struct mw_workqueue_waiter *w = q->waiters.next;
  if (q->shut && q->depth == 0) return w != &q->waiters ? w : NULL;
  for (; q->closing && w != &q->waiters; w = w->next)
    if (w->user->closed) return w;
  q->closing = false;
  return NULL;
}

static bool wants_dispatch(const struct mw_workqueue *q) {
  return q->available > 0 || q->closing || (q->shut && q->depth == 0);
}

static void dispatch(void *arg) {
  struct mw_workqueue *q = arg;
  uint64_t end = mw_clock_now() + TURN_NS;
  q->posted = false;
  struct mw_workqueue_waiter *w;
  struct mw_workqueue_item item;
  do {  // at least one, however slow the machine is
    if ((w = next_to_end(q)) != NULL) {
      waiter_del(w);
      w->cb(w, NULL);
    } else if ((w = q->waiters.next) != &q->waiters && mw_workqueue_take(w->user, &item)) {
      waiter_del(w);
      w->cb(w, &item);
    } else {
      break;
    }
  } while (mw_clock_now() < end);
  if (wants_dispatch(q)) dispatch_soon(q);
  mw_workqueue_unref(q);
}

// Nothing when nobody waits.
static void dispatch_soon(struct mw_workqueue *q) {
  if (q->posted || q->waiters.next == &q->waiters) return;
  q->posted = true;
  mw_loop_post(q->loop, dispatch, mw_workqueue_ref(q));
}

void mw_workqueue_wait(struct mw_workqueue_user *u, struct mw_workqueue_waiter *w,
                       void (*cb)(struct mw_workqueue_waiter *w,
                                  const struct mw_workqueue_item *item)) {
  struct mw_workqueue *q = u->q;
  w->user = u;
  w->cb = cb;
  w->prev = q->waiters.prev;
  w->next = &q->waiters;
  w->prev->next = w;
  q->waiters.prev = w;
  if (u->closed) q->closing = true;
  if (wants_dispatch(q)) dispatch_soon(q);
}

void mw_workqueue_unwait(struct mw_workqueue_waiter *w) {
  if (w->next != NULL) waiter_del(w);
}

bool mw_workqueue_has_waiters(const struct mw_workqueue *q) {
  return q->waiters.next != &q->waiters;
}

// The end

void mw_workqueue_shut_down(struct mw_workqueue *q) {
  if (q->shut) return;
  q->shut = true;
  struct entry *e;
  while ((e = waiting_entry(mw_delay_queue_first(&q->delays))) != NULL) {
    mw_delay_queue_del(&q->delays, &e->delay);
    e->state = IDLE;
    entry_drop(q, e);
  }
  mw_timer_cancel(&q->timer);
  dispatch_soon(q);
  tell_if_drained(q);
}

bool mw_workqueue_is_shut_down(const struct mw_workqueue *q) { return q->shut; }

bool mw_workqueue_is_drained(const struct mw_workqueue *q) {
  return q->shut && q->depth == 0 && q->held == 0;
}

bool mw_workqueue_is_used(const struct mw_workqueue *q) { return q->users.next != &q->users; }

bool mw_workqueue_is_forgotten(const struct mw_workqueue *q) {
  return !mw_workqueue_is_used(q) && (q->shut || q->keys.count == 0);
}

void mw_workqueue_stats(struct mw_workqueue *q, struct mw_workqueue_stats *out) {
  uint64_t now = q->clock();
  ripen(q, now, UINT32_MAX);
  *out = (struct mw_workqueue_stats){
      .ready = q->available,
      .locked = q->depth - q->available,
      .waiting = q->delays.count,
      .processing = q->held,
      .failing = q->failing,
      .keys = q->keys.count,
      .bytes =
          q->entry_bytes + mw_key_table_memory(&q->keys) + q->delays.cap * sizeof *q->delays.nodes,
      .adds = q->adds,
      .retries = q->retries,
      .taken = q->taken,
      .unfinished = unfinished(q, now),
      .longest = longest_running(q, now),
  };
}

static double between(uint64_t from, uint64_t to) {
  return to > from ? (double)(to - from) / 1e9 : 0;
}

bool mw_workqueue_look(struct mw_workqueue *q, struct mw_slice key, struct mw_workqueue_key *out) {
  uint64_t now = q->clock();
  ripen(q, now, UINT32_MAX);
  const struct entry *e = find(q, key);
  if (e == NULL) return false;
  *out = (struct mw_workqueue_key){.ready = e->state == READY,
                                   .waiting = e->state == WAITING,
                                   .held = e->user != NULL,
                                   .ready_for = between(e->delay.at, now),
                                   .ready_in = between(now, e->delay.at),
                                   .held_for = between(e->started, now),
                                   .failures = e->failures,
                                   .reasons = e->reasons};
  return true;
}

void mw_workqueue_each_held(const struct mw_workqueue *q,
                            void (*cb)(void *ctx, struct mw_slice key, double seconds), void *ctx) {
  uint64_t now = q->clock();
  for (const struct mw_workqueue_user *u = q->users.next; u != &q->users; u = u->next)
    for (struct entry *e = u->held.first; e != NULL; e = e->next)
      cb(ctx, mw_key_table_key(&q->keys, &e->node), between(e->started, now));
}
