// SPDX-License-Identifier: Apache-2.0
#include "script/leader.h"

#include <assert.h>
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

// A generation that declared it.
struct member {
  struct member *next;
  const void *generation;
  bool entered;
  mw_leader_cb cb;
  void *ctx;
};

struct mw_leader {
  struct mw_host *host;
  struct mw_lease *lease;  // NULL: nobody has declared any
  char *place;             // where it was declared first
  bool in_force;           // the fence is its
  bool started;
  struct member *members;        // in the order in which they declared it
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

static struct mw_fence *fence_of(const struct mw_leader *l) {
  return mw_rest_pool_fence(mw_host_requests(l->host));
}

static struct member *find(const struct mw_leader *l, const void *generation) {
  struct member *m = l->members;
  while (m != NULL && m->generation != generation) m = m->next;
  return m;
}

static unsigned count_entered(const struct mw_leader *l) {
  unsigned n = 0;
  for (struct member *m = l->members; m != NULL; m = m->next) n += m->entered;
  return n;
}

static void put_in_force(struct mw_leader *l) {
  l->in_force = true;
  mw_fence_set(fence_of(l), 0);
  mw_health_add(mw_host_health(l->host), "leader-election", MW_HEALTH_LIVE | MW_HEALTH_READY,
                check_lease, l->lease);
}

static void put_out_of_force(struct mw_leader *l) {
  if (!l->in_force) return;
  l->in_force = false;
  mw_health_remove(mw_host_health(l->host), check_lease, l->lease);
}

static void drop_lease(struct mw_leader *l) {
  if (l->lease == NULL) return;
  put_out_of_force(l);
  if (l->started) mw_loop_call(mw_host_runtime(l->host)->ingest, calm_down, l);
  mw_lease_free(l->lease);
  l->lease = NULL;
  mw_free(l->place);
  l->place = NULL;
}

void mw_leader_free(struct mw_leader *l) {
  drop_lease(l);
  mw_free(l);
}

static void tell(struct mw_leader *l, const char *holder) {
  for (struct member *m = l->members; m != NULL; m = m->next)
    if (m->entered) m->cb(m->ctx, holder);
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

static void make_lease(struct mw_leader *l, const char *place, struct mw_endpoint *endpoint,
                       const struct mw_lease_config *config) {
  static const struct mw_lease_callbacks callbacks = {.on_change = on_change,
                                                      .on_new_leader = on_new_leader,
                                                      .on_lost = on_lost,
                                                      .on_over = on_over};
  l->lease = mw_lease_new(mw_host_runtime(l->host), endpoint, fence_of(l), config, &callbacks, l);
  l->place = mw_xstrdup(place);
}

static bool same_labels(const struct mw_lease_config *a, const struct mw_lease_config *b) {
  if (a->label_count != b->label_count) return false;
  for (size_t i = 0; i < a->label_count; i++) {
    if (strcmp(a->labels[i].key, b->labels[i].key) != 0) return false;
    if (strcmp(a->labels[i].value, b->labels[i].value) != 0) return false;
  }
  return true;
}

static bool same_terms(const struct mw_lease_config *a, const struct mw_lease_config *b) {
  return a->lease_duration == b->lease_duration && a->renew_deadline == b->renew_deadline &&
         a->retry_period == b->retry_period && a->release == b->release &&
         strcmp(a->identity, b->identity) == 0 && same_labels(a, b);
}

// Whether what is declared can be what there is.
static int check_same(const struct mw_leader *l, const char *place,
                      const struct mw_lease_config *config, struct mw_err *err) {
  const struct mw_lease_config *has = mw_lease_get_config(l->lease);
  if (strcmp(has->ns, config->ns) != 0 || strcmp(has->name, config->name) != 0)
    return mw_err_set(err, MW_ESTATE,
                      "the lease %s/%s: this process has %s/%s, declared at %s, and a process has "
                      "one until it ends; declare that one, or start a process for this one",
                      config->ns, config->name, has->ns, has->name, l->place);
  if (!same_terms(has, config))
    mw_log(MW_LOG_WARN, "the election stays as it was declared first; another one needs a restart",
           MW_STR("lease", has->name), MW_STR("first", l->place), MW_STR("place", place));
  return 0;
}

int mw_leader_declare(struct mw_leader *l, const void *generation, const char *place,
                      struct mw_endpoint *endpoint, const struct mw_lease_config *config,
                      mw_leader_cb cb, void *ctx, struct mw_err *err) {
  assert(find(l, generation) == NULL);
  if (l->lease == NULL) {
    make_lease(l, place, endpoint, config);
  } else if (check_same(l, place, config, err) < 0) {
    return err->code;
  }
  struct member *m = mw_xcalloc(1, sizeof *m);
  m->generation = generation;
  m->cb = cb;
  m->ctx = ctx;
  struct member **end = &l->members;
  while (*end != NULL) end = &(*end)->next;
  *end = m;
  return 0;
}

static void contend(void *arg) {
  struct mw_leader *l = arg;
  if (l->started || !l->in_force || !mw_host_is_running(l->host)) return;
  l->started = true;
  mw_lease_start(l->lease);
}

void mw_leader_enter(struct mw_leader *l, const void *generation) {
  struct member *m = find(l, generation);
  if (m == NULL || m->entered) return;
  m->entered = true;
  if (l->in_force) return;
  put_in_force(l);
  mw_loop_post(mw_host_loop(l->host), contend, l);
}

// Nobody is left that has entered. While the process ends the fence stays as it is: others may
// still have something to write.
static void abandon(struct mw_leader *l) {
  if (!mw_host_is_running(l->host)) return;
  if (!l->started) {
    put_out_of_force(l);
    mw_fence_set(fence_of(l), MW_FENCE_OPEN);
    return;
  }
  mw_log(MW_LOG_WARN,
         "no script declares the election any more: the lease is kept until this process ends, and "
         "it writes only while it leads; restart it to be without",
         MW_STR("lease", mw_lease_get_config(l->lease)->name));
}

void mw_leader_leave(struct mw_leader *l, const void *generation) {
  struct member **at = &l->members;
  while (*at != NULL && (*at)->generation != generation) at = &(*at)->next;
  struct member *m = *at;
  if (m == NULL) return;
  *at = m->next;
  if (m->entered && count_entered(l) == 0) abandon(l);
  if (l->members == NULL && !l->in_force) drop_lease(l);
  mw_free(m);
}

struct mw_lease *mw_leader_lease(struct mw_leader *l) {
  return l->in_force ? l->lease : NULL;
}

const char *mw_leader_identity(const struct mw_leader *l) {
  return l->lease != NULL ? mw_lease_get_config(l->lease)->identity : NULL;
}

struct mw_lease *mw_leader_lease_of(struct mw_leader *l, const void *generation) {
  return l->in_force || find(l, generation) != NULL ? l->lease : NULL;
}

bool mw_leader_is_leading(const struct mw_leader *l) {
  return l->in_force && mw_lease_is_leading(l->lease);
}

bool mw_leader_is_first(const struct mw_leader *l, const void *generation) {
  const struct member *m = l->members;
  while (m != NULL && !m->entered) m = m->next;
  return m != NULL && m->generation == generation;
}

bool mw_leader_is_alone(const struct mw_leader *l, const void *generation) {
  return mw_leader_is_first(l, generation) && count_entered(l) == 1;
}

void mw_leader_close(struct mw_leader *l, mw_loop_cb done, void *ctx) {
  if (l->started) {
    mw_lease_stop(l->lease, done, ctx);
  } else {
    mw_loop_post(mw_host_loop(l->host), done, ctx);
  }
}
