// SPDX-License-Identifier: Apache-2.0
#include "script/side.h"

#include <stddef.h>

#include "base/alloc.h"
#include "base/log.h"
#include "script/host.h"

struct mw_side {
  struct mw_sides *sides;
  struct mw_generation *generation;  // NULL: ended
  int refs;                          // the list until it has ended, and whoever holds it
  bool stopping;
  bool stuck;  // it did not end: something still points into its state
  char *failure;
};

struct mw_sides {
  struct mw_host *host;
  struct mw_side *all[MW_SIDES_MAX];  // NULL: free
  bool closing;
  mw_loop_cb done;  // NULL: nobody waits for all to end
  void *done_ctx;
};

struct mw_sides *mw_sides_new(struct mw_host *host) {
  struct mw_sides *s = mw_xcalloc(1, sizeof *s);
  s->host = host;
  return s;
}

void mw_sides_free(struct mw_sides *s) { mw_free(s); }

void mw_sides_changed(struct mw_sides *s) {
  for (size_t i = 0; i < MW_SIDES_MAX; i++)
    if (s->all[i] != NULL && !s->all[i]->stuck) mw_generation_changed(s->all[i]->generation);
}

static bool any_stopping(const struct mw_sides *s) {
  for (size_t i = 0; i < MW_SIDES_MAX; i++)
    if (s->all[i] != NULL && !s->all[i]->stuck) return true;
  return false;
}

static void look_closed(struct mw_sides *s) {
  if (s->done == NULL || any_stopping(s)) return;
  mw_loop_cb done = s->done;
  s->done = NULL;
  mw_loop_post(mw_host_loop(s->host), done, s->done_ctx);
}

void mw_sides_close(struct mw_sides *s, double grace, mw_loop_cb done, void *ctx) {
  s->closing = true;
  s->done = done;
  s->done_ctx = ctx;
  for (size_t i = 0; i < MW_SIDES_MAX; i++)
    if (s->all[i] != NULL) mw_side_stop(s->all[i], grace);
  look_closed(s);
}

bool mw_sides_have_ended(const struct mw_sides *s) {
  for (size_t i = 0; i < MW_SIDES_MAX; i++)
    if (s->all[i] != NULL) return false;
  return true;
}

static void on_failed(void *ctx, const char *report) {
  struct mw_side *side = ctx;
  if (side->failure == NULL) side->failure = mw_xstrdup(report);
  mw_host_poke(side->sides->host);
}

static size_t free_place(const struct mw_sides *s) {
  size_t i = 0;
  while (i < MW_SIDES_MAX && s->all[i] != NULL) i++;
  return s->closing ? MW_SIDES_MAX : i;
}

struct mw_side *mw_side_new(struct mw_sides *s, const struct mw_generation_config *config,
                            struct mw_err *err) {
  size_t place = free_place(s);
  if (place == MW_SIDES_MAX) {
    mw_err_set(err, MW_ELIMIT, "no more than %d scripts at once", MW_SIDES_MAX);
    return NULL;
  }
  struct mw_side *side = mw_xcalloc(1, sizeof *side);
  struct mw_generation_config own = *config;
  own.failed = on_failed;
  own.failed_ctx = side;
  side->sides = s;
  side->generation = mw_generation_new(s->host, &own, err);
  if (side->generation == NULL) {
    mw_free(side);
    return NULL;
  }
  side->refs = 2;
  s->all[place] = side;
  return side;
}

void mw_side_unref(struct mw_side *side) {
  if (--side->refs > 0) return;
  mw_free(side->failure);
  mw_free(side);
}

int mw_side_load(struct mw_side *side, struct mw_err *err) {
  return mw_generation_load(side->generation, err);
}

int mw_side_start(struct mw_side *side, struct mw_err *err) {
  int rc = mw_side_load(side, err);
  if (rc == 0) mw_generation_commit(side->generation);
  mw_host_poke(side->sides->host);
  return rc;
}

static void on_stopped(void *arg) {
  struct mw_side *side = arg;
  struct mw_sides *s = side->sides;
  mw_host_poke(s->host);
  if (!mw_generation_has_ended(side->generation)) {
    side->stuck = true;  // it keeps its place, and the list its reference
    look_closed(s);
    return;
  }
  mw_generation_free(side->generation);
  side->generation = NULL;
  for (size_t i = 0; i < MW_SIDES_MAX; i++)
    if (s->all[i] == side) s->all[i] = NULL;
  mw_side_unref(side);
  look_closed(s);
}

void mw_side_stop(struct mw_side *side, double grace) {
  if (side->stopping) return;
  side->stopping = true;
  mw_generation_stop(side->generation, grace, 0, on_stopped, side);
}

bool mw_side_has_ended(const struct mw_side *side) {
  return side->generation == NULL || side->stuck;
}

struct mw_generation *mw_side_generation(struct mw_side *side) {
  return side->generation;
}

const char *mw_side_failure(const struct mw_side *side) { return side->failure; }
