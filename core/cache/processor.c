// SPDX-License-Identifier: Apache-2.0
// One pump serves all listeners: posted to the loop when there is something to do, at most once at
// a time, it goes round the listeners for a slice of time and posts itself again if work is left.
// Everything that tells the outside (closed, changed, done) happens in the pump too, so no caller
// is ever called back inside its own call.
//
// Listeners leave the array only in the pump, and callbacks may add to it at any time.
#include "cache/processor.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/notify_queue.h"

enum {
  SLICE_NS = 4 * 1000 * 1000,
  TURN = 16,                   // deliveries to one listener before the next has its turn
  LONG_QUEUE = 1024,           // S-INF-34: with more than that waiting,
  SLOW_NS = 100 * 1000 * 1000  // a delivery that takes longer than this is told
};

struct mw_listener {
  unsigned refs;
  struct mw_processor *processor;  // NULL once closed
  struct mw_listener_config config;
  struct mw_notify_queue queue;
  struct mw_notify_entry running;  // being delivered; its objects only until deliver returns
  uint64_t running_since;
  struct mw_timer *hold;  // running: held
  bool busy;
  bool draining;  // nothing new
  bool removed;
  bool synced;      // latched and told
  bool syncing;     // S-INF-23
  uint64_t resync;  // period, 0: none
  uint64_t next_resync;
  uint64_t delivered;
};

struct mw_processor {
  unsigned refs;  // the owner's and the posted pump's
  struct mw_loop *loop;
  struct mw_listener **listeners;  // +1 each
  size_t count;
  size_t cap;
  size_t turn;  // who is next
  bool pump_posted;
  bool synced;
  bool changed;  // to be told
  mw_loop_cb on_change;
  void *on_change_ctx;
  mw_loop_cb on_closed;
  void *on_closed_ctx;
};

static void pump(void *arg);

static void post_pump(struct mw_processor *p) {
  if (p->pump_posted) return;
  p->pump_posted = true;
  p->refs++;
  mw_loop_post(p->loop, pump, p);
}

static void release(struct mw_processor *p) {
  if (--p->refs > 0) return;
  mw_free(p->listeners);
  mw_free(p);
}

struct mw_processor *mw_processor_new(struct mw_loop *loop) {
  struct mw_processor *p = mw_xcalloc(1, sizeof *p);
  p->refs = 1;
  p->loop = loop;
  return p;
}

void mw_processor_free(struct mw_processor *p) {
  assert(p->count == 0);
  p->on_change = NULL;
  p->on_closed = NULL;
  release(p);
}

// Listeners.

static uint64_t nanoseconds(double seconds) { return seconds > 0 ? (uint64_t)(seconds * 1e9) : 0; }

// Those of a line.

static bool is_before(const struct mw_listener *a, const struct mw_listener *b) {
  return a->config.line == b->config.line && a->config.place < b->config.place;
}

static bool is_beside(const struct mw_listener *a, const struct mw_listener *b) {
  return a->config.line == b->config.line && a->config.place == b->config.place;
}

// Whether some that come before l are not closed.
static bool must_wait(const struct mw_listener *l) {
  const struct mw_processor *p = l->processor;
  for (size_t i = 0; i < p->count; i++)
    if (is_before(p->listeners[i], l)) return true;
  return false;
}

// One of the same place that is not held while some before it are there: that place has waited.
static bool has_waited(const struct mw_listener *l) {
  const struct mw_processor *p = l->processor;
  for (size_t i = 0; i < p->count; i++) {
    const struct mw_listener *other = p->listeners[i];
    if (other == l || other->removed || !is_beside(other, l)) continue;
    if (other->hold == NULL) return true;
  }
  return false;
}

static void on_hold_over(void *arg) {
  struct mw_listener *l = arg;
  struct mw_processor *p = l->processor;
  l->hold = NULL;
  size_t left = 0;
  for (size_t i = 0; i < p->count; i++) {
    struct mw_listener *other = p->listeners[i];
    if (is_beside(other, l)) mw_timer_cancel(&other->hold);
    if (is_before(other, l)) left += other->queue.count + other->busy;
  }
  post_pump(p);
  if (l->config.late != NULL) l->config.late(l->config.ctx, left);
}

static void hold(struct mw_listener *l) {
  if (l->config.line == NULL || !must_wait(l) || has_waited(l)) return;
  double seconds = l->config.hold > 0 ? l->config.hold : MW_LISTENER_HOLD;
  l->hold = mw_timer_start(l->processor->loop, seconds, on_hold_over, l);
}

// Those whom nobody is before any more need not wait.
static void let_begin(struct mw_processor *p) {
  for (size_t i = 0; i < p->count; i++) {
    struct mw_listener *l = p->listeners[i];
    if (l->hold == NULL || must_wait(l)) continue;
    mw_timer_cancel(&l->hold);
    post_pump(p);
  }
}

struct mw_listener *mw_processor_add(struct mw_processor *p,
                                     const struct mw_listener_config *config) {
  struct mw_listener *l = mw_xcalloc(1, sizeof *l);
  mw_live_add(MW_LIVE_LISTENER, 1);
  l->refs = 2;
  l->processor = p;
  l->config = *config;
  l->syncing = true;
  mw_notify_queue_init(&l->queue, config->bound);
  mw_listener_set_resync(l, config->resync, mw_clock_now());
  if (p->count == p->cap) {
    p->cap = p->cap > 0 ? p->cap * 2 : 4;
    p->listeners = mw_xrealloc(p->listeners, p->cap * sizeof *p->listeners);
  }
  p->listeners[p->count++] = l;
  hold(l);
  // It may be synced as it stands: the pump sees to that once the caller has queued the replay.
  post_pump(p);
  return l;
}

void mw_listener_unref(struct mw_listener *l) {
  if (l == NULL || --l->refs > 0) return;
  mw_notify_queue_clear(&l->queue);
  mw_free(l);
  mw_live_add(MW_LIVE_LISTENER, -1);
}

void mw_listener_remove(struct mw_listener *l) {
  if (l->removed) return;
  l->removed = true;
  mw_timer_cancel(&l->hold);
  mw_notify_queue_clear(&l->queue);
  post_pump(l->processor);
}

void mw_listener_drain(struct mw_listener *l) {
  if (l->removed) return;
  l->draining = true;
  post_pump(l->processor);
}

bool mw_listener_has_synced(const struct mw_listener *l) {
  if (l->synced || l->removed) return l->synced;
  return l->processor->synced && l->queue.initial == 0 && !(l->busy && l->running.counted);
}

void mw_listener_set_resync(struct mw_listener *l, double seconds, uint64_t now) {
  l->resync = nanoseconds(seconds);
  l->next_resync = now + l->resync;
}

void mw_listener_stats(const struct mw_listener *l, struct mw_listener_stats *out) {
  uint64_t oldest = l->busy ? l->running.n.queued_at : mw_notify_queue_oldest(&l->queue);
  uint64_t now = mw_clock_now();
  *out = (struct mw_listener_stats){
      .name = l->config.name,
      .synced = mw_listener_has_synced(l),
      .pending = l->queue.count,
      .delivered = l->delivered,
      .coalesced = l->queue.coalesced,
      .lag_ns = oldest > 0 && oldest < now ? now - oldest : 0,
  };
}

void mw_processor_each(const struct mw_processor *p, mw_listener_stats_cb cb, void *ctx) {
  for (size_t i = 0; i < p->count; i++) {
    if (p->listeners[i]->removed) continue;
    struct mw_listener_stats stats;
    mw_listener_stats(p->listeners[i], &stats);
    cb(ctx, &stats);
  }
}

// Distribution.

static void push(struct mw_listener *l, const struct mw_notification *n) {
  if (l->removed || l->draining) return;
  mw_notify_queue_push(&l->queue, n);
  post_pump(l->processor);
}

void mw_listener_replay(struct mw_listener *l, struct mw_object *o) {
  struct mw_notification n = {
      .type = MW_NOTIFY_ADD, .object = o, .initial = true, .queued_at = mw_clock_now()};
  push(l, &n);
}

void mw_processor_distribute(struct mw_processor *p, const struct mw_notification *n) {
  struct mw_notification copy = *n;
  if (copy.queued_at == 0) copy.queued_at = mw_clock_now();
  bool only_syncing =
      n->type == MW_NOTIFY_UPDATE && mw_slice_eq(mw_object_rv(n->old), mw_object_rv(n->object));
  for (size_t i = 0; i < p->count; i++) {
    struct mw_listener *l = p->listeners[i];
    if (l->syncing || !only_syncing) push(l, &copy);
  }
}

void mw_processor_set_synced(struct mw_processor *p) {
  p->synced = true;
  post_pump(p);
}

bool mw_processor_resync_due(struct mw_processor *p, uint64_t now) {
  bool any = false;
  for (size_t i = 0; i < p->count; i++) {
    struct mw_listener *l = p->listeners[i];
    l->syncing = !l->removed && l->resync > 0 && now >= l->next_resync;
    if (!l->syncing) continue;
    l->next_resync = now + l->resync;
    any = true;
  }
  return any;
}

// Delivery.

// What the listener's filter makes of a notification (S-INF-71); false: nothing to deliver.
static bool apply_filter(const struct mw_listener *l, struct mw_notification *n) {
  bool (*filter)(void *, struct mw_object *) = l->config.filter;
  if (filter == NULL) {
    if (n->type == MW_NOTIFY_DELETE) n->old = NULL;
    return true;
  }
  bool now = filter(l->config.ctx, n->object);
  if (n->type == MW_NOTIFY_ADD) return now;
  bool before = now && n->type == MW_NOTIFY_DELETE;  // then it makes no difference
  if (!before && n->old != NULL) before = filter(l->config.ctx, n->old);
  if (!now && !before) return false;
  if (!now) {
    n->object = n->old;
    n->stale = n->stale && n->type == MW_NOTIFY_DELETE;
    n->type = MW_NOTIFY_DELETE;
  } else if (!before) {
    n->type = MW_NOTIFY_ADD;
    n->initial = false;
  }
  if (n->type != MW_NOTIFY_UPDATE) n->old = NULL;
  return true;
}

static void warn_if_slow(const struct mw_listener *l) {
  uint64_t took = mw_clock_now() - l->running_since;
  if (took < SLOW_NS || l->queue.count <= LONG_QUEUE) return;
  mw_log(MW_LOG_WARN, "slow handler, its queue is long", MW_STR("handler", l->config.name),
         MW_INT("pending", l->queue.count), MW_NUM("seconds", (double)took / 1e9));
}

void mw_listener_finished(struct mw_listener *l) {
  if (!l->busy) return;
  l->busy = false;
  l->delivered++;
  warn_if_slow(l);
  post_pump(l->processor);
}

static void deliver_next(struct mw_listener *l) {
  struct mw_notify_entry e;
  if (!mw_notify_queue_pop(&l->queue, &e)) return;
  struct mw_notification n = e.n;
  if (apply_filter(l, &n) && !l->removed) {
    l->busy = true;
    l->running = (struct mw_notify_entry){.n.queued_at = n.queued_at, .counted = e.counted};
    l->running_since = mw_clock_now();
    if (l->config.deliver(l->config.ctx, &n) == 0) mw_listener_finished(l);
  }
  mw_notify_entry_deinit(&e);
}

static bool ready(const struct mw_listener *l) {
  return !l->busy && !l->removed && l->hold == NULL && l->queue.count > 0;
}

// Up to TURN deliveries; false when the time is over.
static bool serve(struct mw_listener *l, uint64_t deadline) {
  for (int i = 0; i < TURN && ready(l); i++) {
    deliver_next(l);
    if (mw_clock_now() >= deadline) return false;
  }
  return true;
}

// Serves all who are ready, in turn, until nobody is or the slice is over.
static void deliver_slice(struct mw_processor *p) {
  uint64_t deadline = mw_clock_now() + SLICE_NS;
  size_t idle = 0;
  while (idle < p->count) {
    if (p->turn >= p->count) p->turn = 0;
    struct mw_listener *l = p->listeners[p->turn++];
    if (!ready(l)) {
      idle++;
      continue;
    }
    idle = 0;
    if (serve(l, deadline)) continue;
    post_pump(p);
    return;
  }
}

static void latch_synced(struct mw_processor *p) {
  for (size_t i = 0; i < p->count; i++) {
    struct mw_listener *l = p->listeners[i];
    if (l->synced || !mw_listener_has_synced(l)) continue;
    l->synced = true;
    p->changed = true;
  }
}

static void close_removed(struct mw_processor *p) {
  for (size_t i = 0; i < p->count;) {
    struct mw_listener *l = p->listeners[i];
    if (l->draining && l->queue.count == 0) l->removed = true;
    if (!l->removed || l->busy) {
      i++;
      continue;
    }
    p->count--;
    memmove(&p->listeners[i], &p->listeners[i + 1], (p->count - i) * sizeof *p->listeners);
    l->processor = NULL;
    mw_timer_cancel(&l->hold);
    p->changed = true;
    if (l->config.closed != NULL) l->config.closed(l->config.ctx);
    mw_listener_unref(l);
  }
}

static void pump(void *arg) {
  struct mw_processor *p = arg;
  p->pump_posted = false;
  deliver_slice(p);
  latch_synced(p);
  close_removed(p);
  let_begin(p);
  if (p->changed) {
    p->changed = false;
    if (p->on_change != NULL) p->on_change(p->on_change_ctx);
  }
  if (p->count == 0 && p->on_closed != NULL) {
    mw_loop_cb on_closed = p->on_closed;
    p->on_closed = NULL;
    on_closed(p->on_closed_ctx);
  }
  release(p);
}

void mw_processor_close(struct mw_processor *p, mw_loop_cb done, void *ctx) {
  for (size_t i = 0; i < p->count; i++) mw_listener_remove(p->listeners[i]);
  p->on_closed = done;
  p->on_closed_ctx = ctx;
  post_pump(p);
}

void mw_processor_on_change(struct mw_processor *p, mw_loop_cb changed, void *ctx) {
  p->on_change = changed;
  p->on_change_ctx = ctx;
}
