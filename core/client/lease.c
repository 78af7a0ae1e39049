// SPDX-License-Identifier: Apache-2.0
// The loops of an election: when to try, when it is over, and who is told.
//
// News cross to the script thread as posts that hold a pointer to the lease. The last of them is
// the end of the stop, behind which it may be freed.
#include "client/lease.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "client/lease_internal.h"

static const double jitter = 1.2;

const struct mw_lease_config mw_lease_default = {
    .lease_duration = 15, .renew_deadline = 10, .retry_period = 2, .release = true};

// ---- configuration ----

int mw_lease_config_check(const struct mw_lease_config *c, struct mw_err *err) {
  if (c->name == NULL || c->name[0] == '\0')
    return mw_err_set(err, MW_EINVAL, "the name of the Lease is empty");
  if (c->ns == NULL || c->ns[0] == '\0')
    return mw_err_set(err, MW_EINVAL, "the namespace of the Lease is empty");
  if (c->identity == NULL || c->identity[0] == '\0')
    return mw_err_set(err, MW_EINVAL, "identity is empty: it must name this process and no other");
  if (strlen(c->identity) > MW_LEASE_HOLDER_MAX)
    return mw_err_set(err, MW_EINVAL, "identity has more than %d bytes", MW_LEASE_HOLDER_MAX);
  if (c->label_count > MW_LEASE_LABELS_MAX)
    return mw_err_set(err, MW_EINVAL, "there are more than %d labels", MW_LEASE_LABELS_MAX);
  if (!(c->lease_duration >= 1 && c->lease_duration <= INT32_MAX) ||
      c->lease_duration != floor(c->lease_duration))
    return mw_err_set(err, MW_EINVAL, "lease_duration must be whole seconds, 1 or more, not %g",
                      c->lease_duration);
  if (!(c->retry_period > 0))
    return mw_err_set(err, MW_EINVAL, "retry_period must be above 0, not %g", c->retry_period);
  if (!(c->lease_duration > c->renew_deadline))
    return mw_err_set(err, MW_EINVAL,
                      "lease_duration (%g) must be greater than renew_deadline (%g)",
                      c->lease_duration, c->renew_deadline);
  if (!(c->renew_deadline > c->retry_period * jitter))
    return mw_err_set(err, MW_EINVAL,
                      "renew_deadline (%g) must be greater than retry_period x %g (%g)",
                      c->renew_deadline, jitter, c->retry_period * jitter);
  return 0;
}

void mw_lease_identity(char out[MW_LEASE_IDENTITY_SIZE]) {
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
    snprintf(host, sizeof host, "moonwatch");
  uint64_t a = mw_rand_entropy(), b = mw_rand_entropy();
  snprintf(out, MW_LEASE_IDENTITY_SIZE, "%s_%08x-%04x-4%03x-%04x-%012llx", host,
           (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
           (unsigned)(0x8000 | (b >> 48 & 0x3fff)), (unsigned long long)(b & 0xffffffffffff));
}

static void copy_config(struct mw_lease *l, const struct mw_lease_config *c) {
  l->config = *c;
  l->config.ns = mw_xstrdup(c->ns);
  l->config.name = mw_xstrdup(c->name);
  l->config.identity = mw_xstrdup(c->identity);
  struct mw_lease_label *labels = mw_xcalloc(c->label_count + 1, sizeof *labels);
  for (size_t i = 0; i < c->label_count; i++)
    labels[i] =
        (struct mw_lease_label){mw_xstrdup(c->labels[i].key), mw_xstrdup(c->labels[i].value)};
  l->config.labels = labels;
}

static void free_config(struct mw_lease_config *c) {
  for (size_t i = 0; i < c->label_count; i++) {
    mw_free((char *)c->labels[i].key);
    mw_free((char *)c->labels[i].value);
  }
  mw_free((struct mw_lease_label *)c->labels);
  mw_free((char *)c->ns);
  mw_free((char *)c->name);
  mw_free((char *)c->identity);
}

// ---- news ----

struct news {
  struct mw_lease *lease;
  void (*tell)(struct mw_lease *l, const char *text);
  char text[];
};

static void deliver(void *arg) {
  struct news *n = arg;
  n->tell(n->lease, n->text);
  mw_free(n);
}

static void post(struct mw_lease *l, void (*tell)(struct mw_lease *, const char *),
                 const char *text) {
  size_t size = strlen(text) + 1;
  struct news *n = mw_xmalloc(sizeof *n + size);
  n->lease = l;
  n->tell = tell;
  memcpy(n->text, text, size);
  mw_loop_post(l->runtime.script, deliver, n);
}

static void tell_change(struct mw_lease *l, const char *text) {
  (void)text;
  if (l->on.on_change != NULL) l->on.on_change(l->ctx);
}

static void tell_holder(struct mw_lease *l, const char *holder) {
  snprintf(l->holder, sizeof l->holder, "%s", holder);
  if (l->on.on_new_leader != NULL) l->on.on_new_leader(l->ctx, l->holder);
}

static void tell_lost(struct mw_lease *l, const char *why) {
  if (l->on.on_lost != NULL) l->on.on_lost(l->ctx, why);
}

static void tell_stopped(struct mw_lease *l, const char *text) {
  (void)text;
  l->done(l->done_ctx);
}

// ---- on the ingest thread ----

static void cancel_timers(struct mw_lease *l) {
  mw_timer_cancel(&l->retry);
  mw_timer_cancel(&l->deadline);
  mw_timer_cancel(&l->fence_time);
  l->round_ends = 0;
}

static void close_fence(struct mw_lease *l) {
  mw_fence_close(l->fence);
  mw_series_set(l->master_status, 0);
  mw_timer_cancel(&l->fence_time);
  if (atomic_exchange(&l->seen_at, 0) != 0) post(l, tell_change, "");
}

void mw_lease_new_holder(struct mw_lease *l) {
  mw_log(MW_LOG_INFO, l->record.holder[0] != '\0' ? "new leader" : "no leader",
         MW_STR("lease", l->config.name), MW_STR("holder", l->record.holder));
  post(l, tell_holder, l->record.holder);
}

static void on_fence_time(void *arg) {
  struct mw_lease *l = arg;
  l->fence_time = NULL;
  if (mw_fence_is_open(l->fence)) {
    l->fence_time = mw_timer_start(l->runtime.ingest, mw_fence_left(l->fence), on_fence_time, l);
    return;
  }
  mw_fence_close(l->fence);
  // No failure: the process was stopped, or the answer takes its time.
  mw_log(MW_LOG_WARN, "the lease was not renewed in time: nothing is written until it is",
         MW_STR("lease", l->config.name),
         MW_STR("error", l->failure[0] != '\0' ? l->failure : "no answer so far"));
  l->late = true;
  post(l, tell_change, "");
}

// Leads until renew_deadline after the start of the write that was answered last.
static void open_fence(struct mw_lease *l) {
  bool was_open = mw_fence_is_open(l->fence);
  mw_fence_set(l->fence, l->write_began + (uint64_t)(l->config.renew_deadline * 1e9));
  if (!was_open) post(l, tell_change, "");
  if (l->fence_time == NULL)
    l->fence_time = mw_timer_start(l->runtime.ingest, mw_fence_left(l->fence), on_fence_time, l);
}

static void on_retry(void *arg) {
  struct mw_lease *l = arg;
  l->retry = NULL;
  mw_lease_try(l);
}

static void on_round_over(void *arg) {
  struct mw_lease *l = arg;
  l->deadline = NULL;
  char why[MW_ERR_MESSAGE_MAX];
  snprintf(why, sizeof why, "it could not be renewed for %g seconds: %.400s",
           l->config.renew_deadline, l->failure[0] != '\0' ? l->failure : "no answer");
  mw_lease_lost(l, why);
}

// S-LE-04: a round of renewals begins with a try and ends with one that succeeds, or too late.
static void on_round(void *arg) {
  struct mw_lease *l = arg;
  l->retry = NULL;
  l->round_ends = mw_clock_now() + (uint64_t)(l->config.renew_deadline * 1e9);
  l->deadline = mw_timer_start(l->runtime.ingest, l->config.renew_deadline, on_round_over, l);
  mw_lease_try(l);
}

void mw_lease_try_won(struct mw_lease *l) {
  if (l->state == MW_LEASE_ACQUIRING)
    mw_log(MW_LOG_INFO, "leading", MW_STR("lease", l->config.name),
           MW_STR("identity", l->config.identity));
  if (l->state == MW_LEASE_RENEWING && (l->late || l->failure[0] != '\0'))
    mw_log(MW_LOG_INFO, "the lease is renewed again", MW_STR("lease", l->config.name));
  l->state = MW_LEASE_RENEWING;
  l->failure[0] = '\0';
  l->late = false;
  mw_timer_cancel(&l->deadline);
  l->round_ends = 0;
  atomic_store(&l->seen_at, l->observed_at);
  mw_series_set(l->master_status, 1);
  open_fence(l);
  l->retry = mw_timer_start(l->runtime.ingest, l->config.retry_period, on_round, l);
}

void mw_lease_try_failed(struct mw_lease *l, const char *why) {
  bool renewing = l->state == MW_LEASE_RENEWING;
  if (strcmp(l->failure, why) != 0) {
    snprintf(l->failure, sizeof l->failure, "%s", why);
    bool held = l->observed && l->record.holder[0] != '\0' && strstr(why, l->record.holder) != NULL;
    mw_log(held ? MW_LOG_INFO : MW_LOG_WARN,
           renewing ? "the lease was not renewed" : "the lease was not acquired",
           MW_STR("lease", l->config.name), MW_STR("reason", why));
  }
  double wait = l->config.retry_period;
  if (renewing) {
    wait -= (double)(mw_clock_now() - l->try_began) / 1e9;  // a try may have taken long
    if (wait < 0) wait = 0;
  } else {
    wait *= 1 + jitter * mw_rand_unit(&l->rand);
  }
  l->retry = mw_timer_start(l->runtime.ingest, wait, on_retry, l);
}

void mw_lease_lost(struct mw_lease *l, const char *why) {
  mw_lease_abort(l);
  cancel_timers(l);
  close_fence(l);
  l->state = MW_LEASE_OVER;
  if (l->on.on_over != NULL) l->on.on_over(l->ctx);
  post(l, tell_lost, why);
}

void mw_lease_released(struct mw_lease *l) {
  mw_lease_abort(l);
  cancel_timers(l);
  l->state = MW_LEASE_OVER;
  post(l, tell_stopped, "");
}

static void on_release_over(void *arg) {
  struct mw_lease *l = arg;
  l->deadline = NULL;
  mw_log(MW_LOG_WARN, "the lease was not released in time", MW_STR("lease", l->config.name));
  mw_lease_released(l);
}

static void start(void *arg) {
  struct mw_lease *l = arg;
  mw_fence_close(l->fence);
  l->state = MW_LEASE_ACQUIRING;
  mw_lease_try(l);
}

static void stop(void *arg) {
  struct mw_lease *l = arg;
  bool mine = l->state == MW_LEASE_RENEWING;
  if (mw_lease_abort(l)) mine = true;
  cancel_timers(l);
  close_fence(l);
  if (!mine || !l->config.release) {
    mw_lease_released(l);
    return;
  }
  l->state = MW_LEASE_RELEASING;
  l->deadline = mw_timer_start(l->runtime.ingest, l->config.renew_deadline, on_release_over, l);
  mw_lease_release(l);
}

// ---- on the script thread ----

static void count(struct mw_lease *l) {
  static const char *const labels[] = {"name"};
  const struct mw_metric_spec status = {
      .name = "leader_election_master_status",
      .help = "Whether this process leads: 1 when it holds the lease, 0 when it stands by.",
      .type = MW_METRIC_GAUGE,
      .labels = labels,
      .label_count = 1};
  const struct mw_metric_spec slowpath = {
      .name = "leader_election_slowpath_total",
      .help = "Renewals that had to read the lease first, because the update alone was refused.",
      .labels = labels,
      .label_count = 1};
  const char *const values[] = {l->config.name};
  l->master_status = mw_metric_series(mw_metric_family(&status), values);
  l->slowpath = mw_metric_series(mw_metric_family(&slowpath), values);
}

// Names are such that they need no escape in a path.
static char *join(const char *ns, const char *name) {
  struct mw_buf path;
  mw_buf_init(&path, 4096);
  int rc = mw_buf_printf(&path, "/apis/coordination.k8s.io/v1/namespaces/%s/leases%s%s", ns,
                         name[0] != '\0' ? "/" : "", name);
  assert(rc == 0);
  (void)rc;
  return path.p;
}

struct mw_lease *mw_lease_new(const struct mw_runtime *runtime, struct mw_endpoint *endpoint,
                              struct mw_fence *fence, const struct mw_lease_config *config,
                              const struct mw_lease_callbacks *callbacks, void *ctx) {
  struct mw_lease *l = mw_xcalloc(1, sizeof *l);
  l->runtime = *runtime;
  l->endpoint = mw_endpoint_ref(endpoint);
  l->fence = mw_fence_ref(fence);
  copy_config(l, config);
  l->on = *callbacks;
  l->ctx = ctx;
  l->collection = join(config->ns, "");
  l->path = join(config->ns, config->name);
  mw_rand_init(&l->rand, mw_rand_entropy());
  mw_buf_init(&l->body, MW_LEASE_BODY_MAX);
  mw_buf_init(&l->object, MW_LEASE_BODY_MAX);
  mw_buf_init(&l->spec, MW_LEASE_BODY_MAX);
  atomic_init(&l->seen_at, 0);
  return l;
}

void mw_lease_start(struct mw_lease *l) {
  count(l);
  mw_fence_set(l->fence, 0);
  mw_loop_post(l->runtime.ingest, start, l);
}

void mw_lease_stop(struct mw_lease *l, mw_loop_cb done, void *ctx) {
  l->done = done;
  l->done_ctx = ctx;
  mw_loop_post(l->runtime.ingest, stop, l);
}

void mw_lease_free(struct mw_lease *l) {
  mw_endpoint_unref(l->endpoint);
  mw_fence_unref(l->fence);
  free_config(&l->config);
  mw_series_unref(l->master_status);
  mw_series_unref(l->slowpath);
  mw_free(l->collection);
  mw_free(l->path);
  mw_buf_deinit(&l->body);
  mw_buf_deinit(&l->object);
  mw_buf_deinit(&l->spec);
  mw_free(l);
}

bool mw_lease_is_leading(const struct mw_lease *l) { return mw_fence_is_open(l->fence); }

int mw_lease_check(const struct mw_lease *l, double tolerance, struct mw_err *err) {
  uint64_t seen = atomic_load(&l->seen_at), now = mw_clock_boot();
  double limit = l->config.lease_duration + tolerance;
  if (seen == 0 || now <= seen || (double)(now - seen) / 1e9 <= limit) return 0;
  return mw_err_set(err, MW_ESTATE, "the lease %s was last renewed %.0f seconds ago",
                    l->config.name, (double)(now - seen) / 1e9);
}

const struct mw_lease_config *mw_lease_get_config(const struct mw_lease *l) { return &l->config; }

const char *mw_lease_holder(const struct mw_lease *l) { return l->holder; }
