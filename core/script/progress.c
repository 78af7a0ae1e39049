// SPDX-License-Identifier: Apache-2.0
// Informers are remembered by address, borrowed, and only to compare: one that the factory does not
// show any more is forgotten in the same look.
#include "script/progress.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"

enum { LINE_LIMIT = 250 };
static const double interval = 0.2;

struct seen {
  const struct mw_informer *informer;
  uint64_t began;
  bool synced;   // and said so
  bool present;  // in this look
};

struct mw_progress {
  struct mw_loop *loop;
  struct mw_factory *factory;
  struct mw_timer *timer;
  struct seen *seen;
  size_t count, cap;
  bool shown;
  // Of one look.
  struct mw_buf line;
  unsigned syncing;
};

struct mw_progress *mw_progress_new(struct mw_loop *loop, struct mw_factory *factory) {
  struct mw_progress *p = mw_xcalloc(1, sizeof *p);
  p->loop = loop;
  p->factory = factory;
  mw_buf_init(&p->line, LINE_LIMIT);
  return p;
}

static void show(struct mw_progress *p, const char *line) {
  if (line != NULL || p->shown) mw_log_status(line);
  p->shown = line != NULL;
}

void mw_progress_free(struct mw_progress *p) {
  if (p == NULL) return;
  mw_timer_cancel(&p->timer);
  show(p, NULL);
  mw_buf_deinit(&p->line);
  mw_free(p->seen);
  mw_free(p);
}

static struct seen *find(struct mw_progress *p, const struct mw_informer *inf) {
  for (size_t i = 0; i < p->count; i++)
    if (p->seen[i].informer == inf) return &p->seen[i];
  if (p->count == p->cap) {
    p->cap = p->cap > 0 ? p->cap * 2 : 8;
    p->seen = mw_xrealloc(p->seen, p->cap * sizeof *p->seen);
  }
  p->seen[p->count] = (struct seen){.informer = inf, .began = mw_clock_now()};
  return &p->seen[p->count++];
}

// A line that is full shows no more resources.
static void describe(struct mw_progress *p, struct mw_informer *inf) {
  struct mw_informer_stats stats;
  mw_informer_stats(inf, &stats);
  uint64_t objects = stats.reflector.received;
  if (objects < stats.store.objects) objects = stats.store.objects;
  const char *join = p->syncing++ == 0 ? "syncing " : ", ";
  if (mw_buf_printf(&p->line, "%s%s %llu objects", join, mw_informer_name(inf),
                    (unsigned long long)objects) < 0)
    return;
}

static void look_at(void *ctx, struct mw_informer *inf) {
  struct mw_progress *p = ctx;
  if (!mw_informer_is_started(inf) || mw_informer_is_stopped(inf)) return;
  struct seen *s = find(p, inf);
  s->present = true;
  if (s->synced) return;
  if (!mw_informer_has_synced(inf)) {
    describe(p, inf);
    return;
  }
  s->synced = true;
  struct mw_informer_stats stats;
  mw_informer_stats(inf, &stats);
  mw_log(MW_LOG_INFO, "synced", MW_STR("resource", mw_informer_name(inf)),
         MW_INT("objects", stats.store.objects),
         MW_NUM("seconds", (double)(mw_clock_now() - s->began) / 1e9));
}

static void forget_absent(struct mw_progress *p) {
  size_t kept = 0;
  for (size_t i = 0; i < p->count; i++)
    if (p->seen[i].present) p->seen[kept++] = p->seen[i];
  p->count = kept;
}

static void on_timer(void *arg) {
  struct mw_progress *p = arg;
  p->timer = NULL;
  mw_progress_look(p);
}

void mw_progress_look(struct mw_progress *p) {
  for (size_t i = 0; i < p->count; i++) p->seen[i].present = false;
  mw_buf_reset(&p->line);
  p->syncing = 0;
  mw_factory_each(p->factory, look_at, p);
  forget_absent(p);
  show(p, p->syncing > 0 ? p->line.p : NULL);
  if (p->syncing > 0 && p->timer == NULL) {
    p->timer = mw_timer_start(p->loop, interval, on_timer, p);
  } else if (p->syncing == 0) {
    mw_timer_cancel(&p->timer);
  }
}
