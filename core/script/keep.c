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
  if (mw_informer_start(inf, &err) < 0) {
    mw_log(MW_LOG_ERROR, "informer not started", MW_STR("resource", mw_informer_name(inf)),
           MW_STR("error", err.message));
    return NULL;
  }
  struct kept *e = mw_xcalloc(1, sizeof *e);
  *e = (struct kept){.next = k->all, .keep = k, .inf = mw_informer_ref(inf)};
  k->all = e;
  return e;
}

void mw_keep_start(struct mw_keep *k, struct mw_informer *inf) { add(k, inf); }

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

void mw_keep_missing(const struct mw_keep *k, char *out, size_t size) {
  size_t at = 0;
  out[0] = '\0';
  for (const struct kept *e = k->all; e != NULL && at < size; e = e->next) {
    if (e->timer != NULL || mw_informer_has_synced(e->inf)) continue;
    struct mw_informer_stats stats;
    mw_informer_stats(e->inf, &stats);
    bool why = stats.last_error[0] != '\0';
    int n = snprintf(out + at, size - at, "%s%s%s%s%s", at > 0 ? ", " : "",
                     mw_informer_name(e->inf), why ? " (" : "", stats.last_error, why ? ")" : "");
    at += n > 0 ? (size_t)n : 0;
  }
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
