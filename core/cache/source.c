// SPDX-License-Identifier: Apache-2.0
// The way out takes three hops: the reflector reports its end on the ingest thread; the script
// thread takes the last counters and forgets it; then the ingest thread frees it. So a reflector
// that the script thread can see is never freed under its eyes.
#include "cache/source.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { AGAIN_MAX = 160, WAKE_BATCH = 64 };

struct mw_source {
  atomic_uint refs;  // the informer's, the reflector's, one per post
  struct mw_runtime runtime;
  struct mw_endpoint *endpoint;
  struct mw_reflector_config config;  // its strings are ours
  struct mw_projection *projection;   // NULL: a shared one is in config
  struct mw_delta_fifo *fifo;
  struct mw_source_callbacks callbacks;
  bool detached;                           // script thread: no callbacks any more
  bool finished;                           // script thread: last is set
  struct mw_reflector_stats last;          // script thread: the counters at the end
  _Atomic(struct mw_reflector *) visible;  // what the script thread may look at
  // Ingest thread.
  struct mw_reflector *reflector;
  bool wake_due;     // the script thread is to be woken
  bool wake_posted;  // at the end of this turn of the loop
  unsigned held;     // events since the wake is due
};

struct error_report {
  struct mw_source *source;  // +1
  enum mw_error_place place;
  struct mw_err err;
  uint64_t at;
  char again[AGAIN_MAX];
};

static struct mw_source *ref(struct mw_source *s) {
  atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
  return s;
}

static void unref(struct mw_source *s) {
  if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) > 1) return;
  mw_delta_fifo_free(s->fifo);
  mw_endpoint_unref(s->endpoint);
  mw_projection_free(s->projection);
  mw_free((char *)s->config.ns);
  mw_free((char *)s->config.query);
  mw_free(s);
}

static void post_to_script(struct mw_source *s, mw_loop_cb cb) {
  mw_loop_post(s->runtime.script, cb, ref(s));
}

static void post_to_ingest(struct mw_source *s, mw_loop_cb cb) {
  mw_loop_post(s->runtime.ingest, cb, ref(s));
}

// On the script thread.

static void tell_wake(void *arg) {
  struct mw_source *s = arg;
  if (!s->detached) s->callbacks.wake(s->callbacks.ctx);
  unref(s);
}

static void tell_opened(void *arg) {
  struct mw_source *s = arg;
  if (!s->detached) s->callbacks.opened(s->callbacks.ctx);
  unref(s);
}

static void tell_error(void *arg) {
  struct error_report *e = arg;
  struct mw_source *s = e->source;
  if (!s->detached) s->callbacks.error(s->callbacks.ctx, e->place, &e->err, e->again, e->at);
  mw_free(e);
  unref(s);
}

static void free_reflector(void *arg);

static void tell_stopped(void *arg) {
  struct mw_source *s = arg;
  mw_source_stats(s, &s->last);
  s->finished = true;
  atomic_store(&s->visible, NULL);
  post_to_ingest(s, free_reflector);
  if (!s->detached) s->callbacks.stopped(s->callbacks.ctx);
  unref(s);
}

// On the ingest thread.

static void on_wake(void *ctx) { ((struct mw_source *)ctx)->wake_due = true; }

static void wake_now(struct mw_source *s) {
  if (s->wake_due) post_to_script(s, tell_wake);
  s->wake_due = false;
  s->held = 0;
}

static void end_turn(void *arg) {
  struct mw_source *s = arg;
  s->wake_posted = false;
  wake_now(s);
  unref(s);
}

// Events come in bursts, and to wake a thread for each of them costs more than the event: the wake
// waits until a batch is together or the sockets have nothing more to read.
static void wake_soon(struct mw_source *s) {
  if (!s->wake_due) return;
  if (++s->held >= WAKE_BATCH) {
    wake_now(s);
  } else if (!s->wake_posted) {
    s->wake_posted = true;
    post_to_ingest(s, end_turn);
  }
}

static void on_add(void *ctx, struct mw_object *o) {
  struct mw_source *s = ctx;
  mw_delta_fifo_add(s->fifo, o);
  wake_soon(s);
}

static void on_update(void *ctx, struct mw_object *o) {
  struct mw_source *s = ctx;
  mw_delta_fifo_update(s->fifo, o);
  wake_soon(s);
}

static void on_remove(void *ctx, struct mw_object *o) {
  struct mw_source *s = ctx;
  mw_delta_fifo_delete(s->fifo, o);
  wake_soon(s);
}

static void on_bookmark(void *ctx, struct mw_slice rv) {
  struct mw_source *s = ctx;
  mw_delta_fifo_bookmark(s->fifo, rv);
  wake_soon(s);
}

static void on_resync(void *ctx) {
  struct mw_source *s = ctx;
  mw_delta_fifo_resync(s->fifo);
  wake_now(s);
}

static void on_replace(void *ctx, struct mw_object_list *all, struct mw_slice rv) {
  struct mw_source *s = ctx;
  mw_delta_fifo_replace(s->fifo, all, rv);
  wake_now(s);
}

static void on_error(void *ctx, enum mw_error_place place, const struct mw_err *err,
                     const char *again) {
  struct mw_source *s = ctx;
  struct error_report *e = mw_xcalloc(1, sizeof *e);
  e->source = ref(s);
  e->place = place;
  e->err = *err;
  e->at = mw_clock_now();
  snprintf(e->again, sizeof e->again, "%s", again);
  mw_loop_post(s->runtime.script, tell_error, e);
}

static void on_opened(void *ctx) { post_to_script(ctx, tell_opened); }

static void on_stopped(void *ctx) {
  struct mw_source *s = ctx;
  mw_delta_fifo_close(s->fifo);
  wake_now(s);
  post_to_script(s, tell_stopped);
}

static void start_reflector(void *arg) {
  struct mw_source *s = arg;
  struct mw_sink sink = {on_add, on_update, on_remove, on_replace, on_resync, on_bookmark, s};
  struct mw_reflector_callbacks callbacks = {
      .on_error = on_error, .on_opened = on_opened, .on_stopped = on_stopped, .ctx = s};
  s->reflector = mw_reflector_new(s->runtime.ingest, s->runtime.http, s->endpoint, &s->config,
                                  &sink, &callbacks);
  atomic_store(&s->visible, s->reflector);
  mw_reflector_start(s->reflector);
  // The post's reference becomes the reflector's.
}

static void stop_reflector(void *arg) {
  struct mw_source *s = arg;
  mw_reflector_stop(s->reflector);
  unref(s);
}

static void free_reflector(void *arg) {
  struct mw_source *s = arg;
  mw_reflector_free(s->reflector);
  s->reflector = NULL;
  unref(s);
  unref(s);
}

// The interface.

static char *copy(const char *s) { return s != NULL ? mw_xstrdup(s) : NULL; }

struct mw_source *mw_source_new(const struct mw_runtime *runtime,
                                const struct mw_informer_config *config,
                                const struct mw_source_callbacks *callbacks) {
  struct mw_source *s = mw_xcalloc(1, sizeof *s);
  atomic_init(&s->refs, 1);
  s->runtime = *runtime;
  s->endpoint = mw_endpoint_ref(config->endpoint);
  s->config = config->reflector;
  s->config.ns = copy(config->reflector.ns);
  s->config.query = copy(config->reflector.query);
  s->projection = config->projection;
  s->config.projection = config->projection != NULL    ? config->projection
                         : config->keep_managed_fields ? mw_projection_all()
                                                       : mw_projection_default();
  s->fifo = mw_delta_fifo_new(config->fifo_bound, on_wake, s);
  s->callbacks = *callbacks;
  return s;
}

void mw_source_free(struct mw_source *s) {
  s->detached = true;
  unref(s);
}

void mw_source_start(struct mw_source *s, double resync) {
  s->config.resync = resync;
  post_to_ingest(s, start_reflector);
}

struct resync_change {
  struct mw_source *source;
  double seconds;
};

static void change_resync(void *arg) {
  struct resync_change *c = arg;
  if (c->source->reflector != NULL) mw_reflector_set_resync(c->source->reflector, c->seconds);
  unref(c->source);
  mw_free(c);
}

void mw_source_set_resync(struct mw_source *s, double resync) {
  struct resync_change *c = mw_xcalloc(1, sizeof *c);
  *c = (struct resync_change){ref(s), resync};
  mw_loop_post(s->runtime.ingest, change_resync, c);
}

void mw_source_stop(struct mw_source *s) { post_to_ingest(s, stop_reflector); }

struct mw_delta_fifo *mw_source_fifo(struct mw_source *s) {
  return s->fifo;
}

bool mw_source_may_have(const struct mw_source *s, const struct mw_path *path) {
  struct mw_slice first = mw_path_first(path);
  // What a PartialObjectMetadata has.
  bool there = mw_slice_is(first, "metadata") || mw_slice_is(first, "kind") ||
               mw_slice_is(first, "apiVersion");
  return (there || !s->config.metadata_only) && mw_projection_may_have(s->config.projection, path);
}

void mw_source_stats(struct mw_source *s, struct mw_reflector_stats *out) {
  struct mw_reflector *r = atomic_load(&s->visible);
  if (r != NULL) {
    mw_reflector_stats(r, out);
  } else if (s->finished) {
    *out = s->last;
  } else {
    *out = (struct mw_reflector_stats){.state = MW_REF_IDLE};
  }
}
