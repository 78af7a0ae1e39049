// SPDX-License-Identifier: Apache-2.0
#include "script/keep.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/log.h"

struct kept {
  struct kept *next;
  struct mw_keep *keep;
  struct mw_informer *inf;  // +1, and one of its users
  struct mw_timer *timer;   // NULL: it warms up
  char *place;              // NULL: it never did
};

struct mw_keep {
  struct mw_loop *loop;
  double seconds;
  struct kept *all;
};

struct mw_keep *mw_keep_new(struct mw_loop *loop, double seconds) {
  struct mw_keep *k = mw_xcalloc(1, sizeof *k);
  k->loop = loop;
  k->seconds = seconds;
  return k;
}

// Takes e out of the list, where *link points to it.
static void let_go(struct kept **link) {
  struct kept *e = *link;
  *link = e->next;
  mw_timer_cancel(&e->timer);
  mw_informer_stop(e->inf);
  mw_informer_unref(e->inf);
  mw_free(e->place);
  mw_free(e);
}

static void on_over(void *arg) {
  struct kept *e = arg;
  e->timer = NULL;
  struct kept **link = &e->keep->all;
  while (*link != e) link = &(*link)->next;
  let_go(link);
}

void mw_keep_free(struct mw_keep *k) {
  mw_keep_release(k);
  mw_free(k);
}

static struct kept *add(struct mw_keep *k, struct mw_informer *inf) {
  struct mw_err err;
  if (mw_informer_start(inf, k, &err) < 0) {
    mw_log(MW_LOG_ERROR, "informer not started", MW_STR("resource", mw_informer_name(inf)),
           MW_STR("error", err.message));
    return NULL;
  }
  struct kept *e = mw_xcalloc(1, sizeof *e);
  *e = (struct kept){.next = k->all, .keep = k, .inf = mw_informer_ref(inf)};
  k->all = e;
  return e;
}

void mw_keep_start(struct mw_keep *k, struct mw_informer *inf, const char *place) {
  struct kept *e = add(k, inf);
  if (e != NULL) e->place = mw_xstrdup(place);
}

static void begin(struct mw_keep *k, struct kept *e) {
  mw_timer_cancel(&e->timer);
  e->timer = mw_timer_start(k->loop, k->seconds, on_over, e);
}

void mw_keep_settle(struct mw_keep *k) {
  for (struct kept *e = k->all; e != NULL; e = e->next)
    if (e->timer == NULL) begin(k, e);
}

void mw_keep_drop(struct mw_keep *k) {
  for (struct kept **link = &k->all; *link != NULL;) {
    if ((*link)->timer == NULL) {
      let_go(link);
    } else {
      link = &(*link)->next;
    }
  }
}

bool mw_keep_is_synced(const struct mw_keep *k) {
  for (const struct kept *e = k->all; e != NULL; e = e->next)
    if (e->timer == NULL && !mw_informer_has_synced(e->inf)) return false;
  return true;
}

void mw_keep_each_missing(const struct mw_keep *k,
                          void (*cb)(void *ctx, const struct mw_keep_lack *lack), void *ctx) {
  for (const struct kept *e = k->all; e != NULL; e = e->next) {
    if (e->timer != NULL || mw_informer_has_synced(e->inf)) continue;
    struct mw_informer_stats stats;
    mw_informer_stats(e->inf, &stats);
    cb(ctx, &(struct mw_keep_lack){mw_informer_name(e->inf), e->place, stats.last_error});
  }
}

struct list {
  char *out;
  size_t at, size;
};

static void add_lack(void *ctx, const struct mw_keep_lack *lack) {
  struct list *l = ctx;
  if (l->at >= l->size) return;
  bool why = lack->error[0] != '\0';
  int n = snprintf(l->out + l->at, l->size - l->at, "%s%s%s%s%s", l->at > 0 ? ", " : "", lack->name,
                   why ? " (" : "", lack->error, why ? ")" : "");
  l->at += n > 0 ? (size_t)n : 0;
}

void mw_keep_missing(const struct mw_keep *k, char *out, size_t size) {
  out[0] = '\0';
  mw_keep_each_missing(k, add_lack, &(struct list){out, 0, size});
}

void mw_keep_hold(struct mw_keep *k, struct mw_informer *inf) {
  struct kept *e = k->all;
  while (e != NULL && e->inf != inf) e = e->next;
  if (e == NULL) e = add(k, inf);
  if (e != NULL) begin(k, e);
}

void mw_keep_release(struct mw_keep *k) {
  while (k->all != NULL) let_go(&k->all);
}
