// SPDX-License-Identifier: Apache-2.0
#include "script/leader.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "script/host.h"

// What a leader may be late with seeing its Lease, beyond its duration, before it counts as ill.
static const double tolerance = 20;
// How long a script whose lease is lost may compute on.
static const double patience = 3;

struct mw_leader {
  struct mw_host *host;
  struct mw_lease *lease;  // NULL: none
  bool started;
  mw_leader_cb listener;
  void *listener_ctx;
  struct mw_timer *last_resort;  // of the ingest thread; running: the lease is lost
};

static bool check_lease(void *ctx, char *why, size_t room) {
  struct mw_err err;
  if (mw_lease_check(ctx, tolerance, &err) == 0) return true;
  snprintf(why, room, "%s", err.message);
  return false;
}

struct mw_leader *mw_leader_new(struct mw_host *host) {
  struct mw_leader *l = mw_xcalloc(1, sizeof *l);
  l->host = host;
  return l;
}

static void calm_down(void *arg) {
  struct mw_leader *l = arg;
  mw_timer_cancel(&l->last_resort);
}

static void drop_lease(struct mw_leader *l) {
  if (l->lease == NULL) return;
  mw_health_remove(mw_host_health(l->host), check_lease, l->lease);
  mw_loop_call(mw_host_runtime(l->host)->ingest, calm_down, l);
  mw_lease_free(l->lease);
  l->lease = NULL;
}

void mw_leader_forget(struct mw_leader *l) {
  if (!l->started) drop_lease(l);
}

void mw_leader_free(struct mw_leader *l) {
  drop_lease(l);
  mw_free(l);
}

static void tell(struct mw_leader *l, const char *holder) {
  if (l->listener != NULL) l->listener(l->listener_ctx, holder);
  mw_host_poke(l->host);
}

static void on_change(void *ctx) { tell(ctx, NULL); }

static void on_new_leader(void *ctx, const char *holder) { tell(ctx, holder); }

static void on_lost(void *ctx, const char *why) {
  struct mw_leader *l = ctx;
  mw_log(MW_LOG_ERROR, "the lease is lost: ending at once",
         MW_STR("lease", mw_lease_get_config(l->lease)->name), MW_STR("reason", why));
  mw_host_lost_lease(l->host);
}

static void on_patience_over(void *arg) {
  struct mw_leader *l = arg;
  l->last_resort = NULL;
  mw_log(MW_LOG_ERROR, "the script does not end: leaving without cleaning up");
  fflush(stdout);
  _exit(MW_EXIT_LEASE);
}

static void on_over(void *ctx) {
  struct mw_leader *l = ctx;
  l->last_resort = mw_timer_start(mw_host_runtime(l->host)->ingest, patience, on_patience_over, l);
}

int mw_leader_declare(struct mw_leader *l, const struct mw_runtime *runtime,
                      struct mw_endpoint *endpoint, const struct mw_lease_config *config,
                      struct mw_fence *fence, struct mw_err *err) {
  static const struct mw_lease_callbacks callbacks = {.on_change = on_change,
                                                      .on_new_leader = on_new_leader,
                                                      .on_lost = on_lost,
                                                      .on_over = on_over};
  if (l->lease == NULL) {
    l->lease = mw_lease_new(runtime, endpoint, fence, config, &callbacks, l);
    mw_health_add(mw_host_health(l->host), "leader-election", MW_HEALTH_LIVE | MW_HEALTH_READY,
                  check_lease, l->lease);
    return 0;
  }
  const struct mw_lease_config *has = mw_lease_get_config(l->lease);
  if (strcmp(has->ns, config->ns) == 0 && strcmp(has->name, config->name) == 0) return 0;
  return mw_err_set(err, MW_ESTATE,
                    "this process contends for the lease %s/%s; another one needs a restart",
                    has->ns, has->name);
}

void mw_leader_start(struct mw_leader *l) {
  if (l->started) return;
  l->started = true;
  mw_lease_start(l->lease);
}

struct mw_lease *mw_leader_lease(struct mw_leader *l) {
  return l->lease;
}

void mw_leader_listen(struct mw_leader *l, mw_leader_cb cb, void *ctx) {
  l->listener = cb;
  l->listener_ctx = ctx;
}

void mw_leader_unlisten(struct mw_leader *l, const void *ctx) {
  if (l->listener_ctx != ctx) return;
  l->listener = NULL;
  l->listener_ctx = NULL;
}

void mw_leader_close(struct mw_leader *l, mw_loop_cb done, void *ctx) {
  if (l->started) {
    mw_lease_stop(l->lease, done, ctx);
  } else {
    mw_loop_post(mw_host_loop(l->host), done, ctx);
  }
}
