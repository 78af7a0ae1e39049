// SPDX-License-Identifier: Apache-2.0
#include "cache/resync.h"

#include <string.h>

#include "base/alloc.h"

static struct mw_resync_want *want_of(const struct mw_resync *r, const void *owner) {
  for (size_t i = 0; i < r->n; i++) {
    if (r->v[i].owner == owner) return &r->v[i];
  }
  return NULL;
}

void mw_resync_deinit(struct mw_resync *r) {
  mw_free(r->v);
  *r = (struct mw_resync){0};
}

void mw_resync_drop(struct mw_resync *r, const void *owner) {
  struct mw_resync_want *w = want_of(r, owner);
  if (w == NULL) return;
  r->n--;
  memmove(w, w + 1, (size_t)(r->v + r->n - w) * sizeof *w);
}

void mw_resync_want(struct mw_resync *r, const void *owner, double seconds) {
  mw_resync_drop(r, owner);
  r->v = mw_xrealloc(r->v, (r->n + 1) * sizeof r->v[0]);
  double check = seconds > 0 && seconds < r->least ? r->least : seconds;
  r->v[r->n++] = (struct mw_resync_want){.owner = owner, .asked = seconds, .check = check};
}

void mw_resync_start(struct mw_resync *r, const void *owner) {
  struct mw_resync_want *w = want_of(r, owner);
  if (w != NULL) w->started = true;
}

double mw_resync_check(const struct mw_resync *r) {
  double least = 0;
  for (size_t i = 0; i < r->n; i++) {
    double check = r->v[i].check;
    if (check > 0 && (least <= 0 || check < least)) least = check;
  }
  return least;
}

double mw_resync_asked(const struct mw_resync *r, const void *owner) {
  const struct mw_resync_want *w = want_of(r, owner);
  return w != NULL ? w->asked : 0;
}

double mw_resync_choose(struct mw_resync *r, const void *owner, double asked, const char **why) {
  struct mw_resync_want *w = want_of(r, owner);
  *why = NULL;
  if (asked <= 0) return 0;
  if (w == NULL || w->check <= 0) {
    *why = "the informer does not resync, neither will the handler";
    return 0;
  }
  double period = asked;
  if (period < r->least) {
    *why = "resync period too small, raised";
    period = r->least;
  }
  if (period >= w->check) return period;
  if (!w->started) return w->check = period;
  *why = "resync period below that of the running informer, raised";
  return w->check;
}
