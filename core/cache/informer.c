// SPDX-License-Identifier: Apache-2.0
// The life of an informer: new -> running -> stopping -> stopped, never back.
//
// Stopping goes down the data path: the source ends and closes the fifo, what is queued is applied,
// the listeners are closed, and only then is it stopped (S-INF-05). `pins` keep the memory while
// that is under way and while a loop callback is on the stack: it is freed when neither references
// nor pins are left.
#include "cache/informer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/applier.h"
#include "cache/informer_metrics.h"
#include "cache/resync.h"
#include "cache/source.h"

enum {
  SLICE_NS = 4 * 1000 * 1000,
  BUILD_NS = 2 * 1000 * 1000,   // of each turn for indexes that are being built
  MANY_QUEUED = 10,             // S-RF-26: with more than that behind it,
  SLOW_NS = 100 * 1000 * 1000,  // a batch that takes longer than this is told
  NAME_ROOM = 600,
  NAMESPACE_ROOM = 64
};
static const uint64_t quiet_ns = 30ull * 1000 * 1000 * 1000;

enum state {
  NEW = 0,  // never ran
  RUNNING,
  STOPPING,  // the source ends, then the listeners
  STOPPED    // the store stays readable
};

struct mw_informer {
  unsigned refs;
  unsigned pins;
  enum state state;
  bool started;  // stays true
  unsigned users;
  struct mw_loop *script;
  char name[NAME_ROOM];
  char ns[NAMESPACE_ROOM];
  struct mw_source *source;
  struct mw_indexer *indexer;
  struct mw_processor *processor;
  struct mw_applier *applier;
  struct mw_informer_metrics *metrics;  // NULL: none
  struct mw_delta_batch batch;          // being applied
  bool drain_posted;
  bool build_posted;
  bool source_ended;  // it will not wake us again
  bool closing;       // the processor has been told to close
  bool synced;
  struct mw_resync resync;
  double checked;  // how often the source looks, once it runs
  char last_error[MW_ERR_MESSAGE_MAX];
  uint64_t error_at;   // when it happened
  uint64_t warned_at;  // when last_warning was logged
  char last_warning[MW_ERR_MESSAGE_MAX];
  struct mw_hooks error_handlers;
  mw_loop_cb on_change;
  void *on_change_ctx;
  mw_loop_cb on_stopped;
  void *on_stopped_ctx;
};

static void set_state(struct mw_informer *inf, enum state state) {
  static const char *const names[] = {"new", "running", "stopping", "stopped"};
  mw_log(MW_LOG_DEBUG, "informer", MW_STR("resource", inf->name), MW_STR("from", names[inf->state]),
         MW_STR("to", names[state]));
  inf->state = state;
}

static void drop_metrics(struct mw_informer *inf) {
  mw_informer_metrics_free(inf->metrics);
  inf->metrics = NULL;
}

static void destroy(struct mw_informer *inf) {
  drop_metrics(inf);
  mw_source_free(inf->source);
  mw_applier_free(inf->applier);
  mw_processor_free(inf->processor);
  mw_indexer_free(inf->indexer);
  mw_hooks_deinit(&inf->error_handlers);
  mw_resync_deinit(&inf->resync);
  mw_live_add(MW_LIVE_INFORMER, -1);
  mw_free(inf);
}

static void pin(struct mw_informer *inf) { inf->pins++; }

static void unpin(struct mw_informer *inf) {
  if (--inf->pins == 0 && inf->refs == 0) destroy(inf);
}

static void changed(struct mw_informer *inf) {
  if (inf->on_change != NULL) inf->on_change(inf->on_change_ctx);
}

// Stopping.

static void on_listeners_closed(void *ctx) {
  struct mw_informer *inf = ctx;
  set_state(inf, STOPPED);
  drop_metrics(inf);
  changed(inf);
  if (inf->on_stopped != NULL) inf->on_stopped(inf->on_stopped_ctx);
  unpin(inf);
}

static void close_listeners(struct mw_informer *inf) {
  if (inf->closing) return;
  inf->closing = true;
  mw_processor_close(inf->processor, on_listeners_closed, inf);
}

void mw_informer_shutdown(struct mw_informer *inf) {
  if (inf->state >= STOPPING) return;
  if (inf->state == NEW) pin(inf);  // a running one has been pinned since its start
  bool ran = inf->state == RUNNING;
  set_state(inf, STOPPING);
  inf->users = 0;
  if (ran) {
    mw_source_stop(inf->source);
  } else {
    close_listeners(inf);
  }
}

// Deltas.

static void warn_if_slow(struct mw_informer *inf, uint64_t since, size_t count) {
  uint64_t took = mw_clock_now() - since;
  size_t left = mw_delta_fifo_depth(mw_source_fifo(inf->source));
  if (took < SLOW_NS || left <= MANY_QUEUED) return;
  mw_log(MW_LOG_WARN, "applying events is slow", MW_STR("resource", inf->name),
         MW_NUM("seconds", (double)took / 1e9), MW_INT("events", count), MW_INT("queued", left));
}

// Applies the batch at hand; false when its time was over first.
static bool apply(struct mw_informer *inf, uint64_t deadline) {
  struct mw_delta_batch *batch = &inf->batch;
  uint64_t since = mw_clock_now();
  const struct mw_delta *last = &batch->deltas[batch->count - 1];
  bool news = last->type != MW_DELTA_SYNC_ALL && last->queued_at > inf->error_at;
  size_t count = batch->count;
  if (!mw_applier_run(inf->applier, batch, deadline)) return false;
  if (inf->metrics != NULL) mw_informer_metrics_applied(inf->metrics, batch);
  mw_delta_fifo_done(mw_source_fifo(inf->source), batch);
  if (news) inf->last_error[0] = '\0';
  warn_if_slow(inf, since, count);
  if (!inf->synced && mw_delta_fifo_has_synced(mw_source_fifo(inf->source))) {
    inf->synced = true;
    mw_log(MW_LOG_DEBUG, "synced", MW_STR("resource", inf->name),
           MW_INT("objects", mw_indexer_count(inf->indexer)));
    mw_processor_set_synced(inf->processor);
    changed(inf);
  }
  return true;
}

static void drain_again(void *arg);

static void drain(struct mw_informer *inf) {
  if (inf->drain_posted) return;
  struct mw_delta_fifo *fifo = mw_source_fifo(inf->source);
  uint64_t deadline = mw_clock_now() + SLICE_NS;
  while (inf->batch.count > 0 || mw_delta_fifo_pop(fifo, &inf->batch) > 0) {
    bool done = apply(inf, deadline);
    if (done && mw_clock_now() < deadline) continue;
    inf->drain_posted = true;
    mw_loop_post(inf->script, drain_again, inf);
    return;
  }
  if (inf->source_ended) close_listeners(inf);
}

static void drain_again(void *arg) {
  struct mw_informer *inf = arg;
  inf->drain_posted = false;
  pin(inf);
  drain(inf);
  unpin(inf);
}

// What the source reports.

static void on_wake(void *ctx) {
  struct mw_informer *inf = ctx;
  pin(inf);
  drain(inf);
  unpin(inf);
}

static void on_source_stopped(void *ctx) {
  struct mw_informer *inf = ctx;
  pin(inf);
  inf->source_ended = true;
  drain(inf);
  unpin(inf);
}

static void on_opened(void *ctx) { ((struct mw_informer *)ctx)->last_error[0] = '\0'; }

// An outage says the same again and again: once in a while is enough for people.
static enum mw_log_level level_of(struct mw_informer *inf, const struct mw_err *err) {
  if (err->code == MW_EEXPIRED) return MW_LOG_DEBUG;
  uint64_t now = mw_clock_now();
  bool same = strcmp(inf->last_warning, err->message) == 0;
  if (same && now - inf->warned_at < quiet_ns) return MW_LOG_DEBUG;
  snprintf(inf->last_warning, sizeof inf->last_warning, "%s", err->message);
  inf->warned_at = now;
  return MW_LOG_WARN;
}

struct failure {
  enum mw_error_place place;
  const struct mw_err *err;
  const char *again;
};

static void tell_failure(void *ctx, const struct mw_hook *handler) {
  const struct failure *f = ctx;
  ((mw_informer_error_cb)handler->call)(handler->ctx, f->place, f->err, f->again);
}

static void on_source_error(void *ctx, enum mw_error_place place, const struct mw_err *err,
                            const char *again, uint64_t at) {
  static const char *const places[] = {
      [MW_PLACE_LIST] = "list failed",
      [MW_PLACE_STREAM_LIST] = "streaming list failed",
      [MW_PLACE_WATCH_OPEN] = "watch could not be opened",
      [MW_PLACE_WATCH] = "watch failed",
  };
  struct mw_informer *inf = ctx;
  if (inf->state != RUNNING) return;
  pin(inf);
  snprintf(inf->last_error, sizeof inf->last_error, "%s", err->message);
  inf->error_at = at;
  mw_log(level_of(inf, err), places[place], MW_STR("resource", inf->name),
         MW_STR("error", err->message), MW_STR("code", mw_err_name(err->code)),
         MW_STR("next", again));
  struct failure failure = {place, err, again};
  mw_hooks_each(&inf->error_handlers, tell_failure, &failure);
  unpin(inf);
}

static void on_processor_change(void *ctx) {
  struct mw_informer *inf = ctx;
  pin(inf);
  changed(inf);
  unpin(inf);
}

// The interface.

struct mw_informer *mw_informer_new(const struct mw_runtime *runtime,
                                    const struct mw_informer_config *config) {
  struct mw_informer *inf = mw_xcalloc(1, sizeof *inf);
  struct mw_source_callbacks callbacks = {on_wake, on_source_error, on_opened, on_source_stopped,
                                          inf};
  inf->refs = 1;
  inf->script = runtime->script;
  mw_resource_name(&config->reflector.resource, inf->name, sizeof inf->name);
  const char *ns = config->reflector.ns;
  snprintf(inf->ns, sizeof inf->ns, "%s", ns != NULL ? ns : "");
  inf->source = mw_source_new(runtime, config, &callbacks);
  inf->indexer = mw_indexer_new();
  inf->processor = mw_processor_new(runtime->script);
  inf->applier = mw_applier_new(inf->indexer, inf->processor, inf->name);
  inf->resync.least = config->min_resync > 0 ? config->min_resync : 1;
  mw_resync_want(&inf->resync, config->owner, config->reflector.resync);
  if (config->reflector.metric_name[0] != '\0') {
    inf->metrics =
        mw_informer_metrics_new(config->reflector.metric_name, &config->reflector.resource);
  }
  mw_processor_on_change(inf->processor, on_processor_change, inf);
  mw_live_add(MW_LIVE_INFORMER, 1);
  return inf;
}

struct mw_informer *mw_informer_ref(struct mw_informer *inf) {
  inf->refs++;
  return inf;
}

void mw_informer_unref(struct mw_informer *inf) {
  assert(inf->refs > 0);
  bool unused = --inf->refs == 1 && inf->state == NEW && inf->on_stopped != NULL;
  if (inf->refs > 0 && !unused) return;
  pin(inf);
  mw_informer_shutdown(inf);
  unpin(inf);
}

int mw_informer_identity(const struct mw_informer_config *config, struct mw_buf *out) {
  const struct mw_reflector_config *r = &config->reflector;
  char name[NAME_ROOM];
  mw_resource_name(&r->resource, name, sizeof name);
  struct mw_slice projection =
      mw_projection_text(config->projection != NULL    ? config->projection
                         : config->keep_managed_fields ? mw_projection_all()
                                                       : mw_projection_default());
  return mw_buf_printf(out, "%s\n%s\n%s\n%s\n%s\n%.*s\n%s", name, r->ns != NULL ? r->ns : "",
                       r->query != NULL ? r->query : "", r->metadata_only ? "metadata" : "whole",
                       mw_endpoint_identity(config->endpoint), MW_SLICE_ARGS(projection),
                       config->variant != NULL ? config->variant : "");
}

const char *mw_informer_name(const struct mw_informer *inf) { return inf->name; }

const char *mw_informer_namespace(const struct mw_informer *inf) { return inf->ns; }

static int refuse(const struct mw_informer *inf, struct mw_err *err, const char *what) {
  return mw_err_set(err, MW_ESTATE, "%s: the informer of %s %s", what, inf->name,
                    inf->state >= STOPPING ? "has been stopped" : "is already running");
}

int mw_informer_start(struct mw_informer *inf, const void *owner, struct mw_err *err) {
  if (inf->state >= STOPPING) return refuse(inf, err, "cannot start");
  inf->users++;
  mw_resync_start(&inf->resync, owner);
  if (inf->state == RUNNING) return 0;
  pin(inf);
  set_state(inf, RUNNING);
  inf->started = true;
  inf->checked = mw_resync_check(&inf->resync);
  mw_source_start(inf->source, inf->checked);
  return 0;
}

void mw_informer_stop(struct mw_informer *inf) {
  if (inf->users > 0 && --inf->users == 0) mw_informer_shutdown(inf);
}

bool mw_informer_is_started(const struct mw_informer *inf) { return inf->started; }
bool mw_informer_is_stopping(const struct mw_informer *inf) { return inf->state >= STOPPING; }
bool mw_informer_is_stopped(const struct mw_informer *inf) { return inf->state == STOPPED; }
bool mw_informer_has_synced(const struct mw_informer *inf) { return inf->synced; }

int mw_informer_set_transform(struct mw_informer *inf, const void *owner, mw_transform_cb cb,
                              void *ctx, void (*free_ctx)(void *), struct mw_err *err) {
  if (inf->state >= STOPPING) return refuse(inf, err, "cannot set a transform");
  mw_hooks_set(mw_applier_transforms(inf->applier),
               &(struct mw_hook){
                   .owner = owner, .call = (void (*)(void))cb, .ctx = ctx, .free_ctx = free_ctx});
  return 0;
}

int mw_informer_set_error_handler(struct mw_informer *inf, const void *owner,
                                  mw_informer_error_cb cb, void *ctx, void (*free_ctx)(void *),
                                  struct mw_err *err) {
  if (inf->state >= STOPPING) return refuse(inf, err, "cannot set an error handler");
  mw_hooks_set(&inf->error_handlers,
               &(struct mw_hook){
                   .owner = owner, .call = (void (*)(void))cb, .ctx = ctx, .free_ctx = free_ctx});
  return 0;
}

void mw_informer_drop_error_handler(struct mw_informer *inf, const void *owner) {
  mw_hooks_drop(&inf->error_handlers, owner);
}

// What the owners want of the source may have changed.
static void recheck(struct mw_informer *inf) {
  double period = mw_resync_check(&inf->resync);
  if (inf->state != RUNNING || period == inf->checked) return;
  inf->checked = period;
  mw_source_set_resync(inf->source, period);
}

void mw_informer_drop_owner(struct mw_informer *inf, const void *owner) {
  struct mw_hooks *transforms = mw_applier_transforms(inf->applier);
  bool transformed = transforms->n > 0;
  mw_hooks_drop(transforms, owner);
  mw_hooks_drop(&inf->error_handlers, owner);
  mw_indexer_drop_owner(inf->indexer, owner);
  mw_resync_drop(&inf->resync, owner);
  recheck(inf);
  if (transformed && transforms->n == 0 && inf->state == RUNNING) mw_informer_shutdown(inf);
}

void mw_informer_want_resync(struct mw_informer *inf, const void *owner, double seconds) {
  mw_resync_want(&inf->resync, owner, seconds);
  recheck(inf);
}

static double choose_resync(struct mw_informer *inf, const void *owner, const char *handler,
                            double asked) {
  const char *why;
  if (asked < 0) asked = mw_resync_asked(&inf->resync, owner);
  double period = mw_resync_choose(&inf->resync, owner, asked, &why);
  recheck(inf);
  if (why == NULL) return period;
  mw_log(MW_LOG_WARN, why, MW_STR("resource", inf->name), MW_STR("handler", handler),
         MW_NUM("asked", asked), MW_NUM("period", period));
  return period;
}

struct mw_listener *mw_informer_add_listener(struct mw_informer *inf, const void *owner,
                                             const struct mw_listener_config *config, double resync,
                                             bool replay, struct mw_err *err) {
  if (inf->state >= STOPPING) {
    refuse(inf, err, "cannot add a handler");
    return NULL;
  }
  if (mw_applier_is_running(inf->applier)) {
    mw_err_set(err, MW_ESTATE,
               "cannot add a handler inside an index function or a transform: the informer of %s "
               "is just applying events",
               inf->name);
    return NULL;
  }
  struct mw_listener_config chosen = *config;
  chosen.resync = choose_resync(inf, owner, config->name, resync);
  struct mw_listener *l = mw_processor_add(inf->processor, &chosen);
  if (!replay) return l;
  struct mw_object_list all = {0};
  mw_indexer_list(inf->indexer, mw_slice("", 0), NULL, NULL, &all);
  for (size_t i = 0; i < all.n; i++) mw_listener_replay(l, all.v[i]);
  mw_object_list_deinit(&all);
  return l;
}

static void build_again(void *arg);

static void post_build(struct mw_informer *inf) {
  if (inf->build_posted) return;
  inf->build_posted = true;
  pin(inf);
  mw_loop_post(inf->script, build_again, inf);
}

static void build_again(void *arg) {
  struct mw_informer *inf = arg;
  inf->build_posted = false;
  if (inf->state < STOPPING) {
    if (mw_indexer_build(inf->indexer, mw_clock_now() + BUILD_NS)) {
      changed(inf);
    } else {
      post_build(inf);
    }
  }
  unpin(inf);
}

int mw_informer_add_indexes(struct mw_informer *inf, const void *owner,
                            const struct mw_index_spec *specs, size_t count, struct mw_err *err) {
  if (inf->state >= STOPPING) {
    for (size_t i = 0; i < count; i++) {
      if (specs[i].free_ctx != NULL) specs[i].free_ctx(specs[i].ctx);
    }
    return refuse(inf, err, "cannot add an index");
  }
  int rc = mw_indexer_add_indexes(inf->indexer, owner, specs, count, err);
  if (rc == 0 && !mw_indexer_is_built(inf->indexer, owner)) post_build(inf);
  return rc;
}

bool mw_informer_indexes_ready(const struct mw_informer *inf, const void *owner) {
  return inf->state >= STOPPING || mw_indexer_is_built(inf->indexer, owner);
}

struct mw_indexer *mw_informer_indexer(struct mw_informer *inf) {
  return inf->indexer;
}

bool mw_informer_may_have(const struct mw_informer *inf, const struct mw_path *path) {
  return mw_source_may_have(inf->source, path);
}

void mw_informer_on_change(struct mw_informer *inf, mw_loop_cb cb, void *ctx) {
  inf->on_change = cb;
  inf->on_change_ctx = ctx;
}

void mw_informer_on_stopped(struct mw_informer *inf, mw_loop_cb cb, void *ctx) {
  inf->on_stopped = cb;
  inf->on_stopped_ctx = ctx;
}

void mw_informer_stats(struct mw_informer *inf, struct mw_informer_stats *out) {
  struct mw_delta_fifo *fifo = mw_source_fifo(inf->source);
  mw_source_stats(inf->source, &out->reflector);
  mw_indexer_stats(inf->indexer, &out->store);
  out->queued = mw_delta_fifo_depth(fifo);
  out->coalesced = mw_delta_fifo_coalesced(fifo);
  out->process_errors = mw_applier_errors(inf->applier);
  out->deltas = mw_applier_deltas(inf->applier);
  snprintf(out->last_error, sizeof out->last_error, "%s", inf->last_error);
}

void mw_informer_each_listener(const struct mw_informer *inf, mw_listener_stats_cb cb, void *ctx) {
  mw_processor_each(inf->processor, cb, ctx);
}

void mw_informer_publish(struct mw_informer *inf) {
  if (inf->metrics != NULL) mw_informer_metrics_publish(inf->metrics, inf);
}
