// SPDX-License-Identifier: Apache-2.0
// The watch request in its two forms: as a streaming list until the marker comes (S-WL), and plain
// (S-REF-30..39). A streaming list turns into a plain watch on the same connection.
//
// How a stream ends decides what follows. A cut of an open stream is an end like any other
// (S-REST-07): the next watch starts at the last version seen, so nothing is lost. A request that
// was never answered is a failure.
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cache/reflector_internal.h"

enum {
  PATH_LIMIT = 64 * 1024,
  WATCH_MIN = 300,
  WATCH_HEAD = 30,    // seconds until a server that is there has begun its answer
  WATCH_GRACE = 30,   // seconds that a server may be late with ending a watch
  WINDOW_QUIET = 60,  // seconds after which internal errors count anew
  NANOS = 1000000000,
};

static const char accept_json[] = "application/json";
static const char accept_metadata[] =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

long mw_reflect_watch_timeout(double min, double unit) {
  if (!(min > WATCH_MIN)) min = WATCH_MIN;
  return (long)(min + unit * min);
}

bool mw_reflect_window_allows(struct mw_reflect_window *w, double budget, uint64_t now) {
  if (w->first == 0 || now - w->last >= (uint64_t)WINDOW_QUIET * NANOS) w->first = now;
  w->last = now;
  if (budget <= 0) return false;
  if ((double)(now - w->first) <= budget * NANOS) return true;
  *w = (struct mw_reflect_window){0};
  return false;
}

void mw_reflect_watch_clear(struct mw_reflector *r) {
  mw_watch_split_free(r->watch.split);
  r->watch.split = NULL;
}

// How a stream ends.

static double lived(const struct mw_reflector *r) {
  return (double)(mw_clock_now() - r->watch.since) * 1e-9;
}

static bool is_short(const struct mw_reflector *r) {
  return r->watch.events == 0 && lived(r) < r->config.short_watch;
}

static void short_error(struct mw_err *err) {
  mw_err_set(err, MW_ESHORTWATCH,
             "the watch ended at once and without an event (is a proxy cutting it?)");
}

static void stream_ended(struct mw_reflector *r) {
  struct mw_err err = {0};
  struct mw_reflect_failure failure = {MW_PLACE_STREAM_LIST, true, &err};
  if (is_short(r)) {
    short_error(&err);
    mw_reflect_decide(r, MW_DECISION_STREAM_FALLBACK, &failure);
    return;
  }
  mw_err_set(&err, MW_EEOF, "the streaming list ended before it was complete");
  mw_reflect_decide(r, MW_DECISION_STREAM_CUT, &failure);
}

// The server is away or busy: to ask for something else would not help.
static bool is_later(const struct mw_reflector *r, int code) {
  if (code == MW_EREFUSED || code == MW_ETHROTTLED) return true;
  return !r->watch.opened && (code == MW_EEOF || code == MW_ETIMEOUT);
}

static void stream_failed(struct mw_reflector *r, const struct mw_err *err) {
  struct mw_reflect_failure failure = {MW_PLACE_STREAM_LIST, r->watch.opened, err};
  bool expired = err->code == MW_EEXPIRED || err->code == MW_ETOOLARGERV;
  if (is_later(r, err->code)) {
    mw_reflect_decide(r, MW_DECISION_STREAM_WAIT, &failure);
  } else if (expired && !r->rv_unavailable) {
    r->rv_unavailable = true;
    mw_reflect_decide(r, MW_DECISION_STREAM_EXPIRED, &failure);
  } else {
    // Also when the newest state itself is said to be expired: asking again at once would spin.
    mw_reflect_decide(r, MW_DECISION_STREAM_FALLBACK, &failure);
  }
}

static void watch_ended(struct mw_reflector *r) {
  if (!is_short(r)) {
    mw_reflect_decide(r, MW_DECISION_WATCH_ENDED, NULL);
    return;
  }
  struct mw_err err = {0};
  short_error(&err);
  struct mw_reflect_failure failure = {MW_PLACE_WATCH, true, &err};
  mw_reflect_decide(r, MW_DECISION_WATCH_SHORT, &failure);
}

static enum mw_decision watch_decision(struct mw_reflector *r, int code) {
  if (!r->watch.opened) {
    return is_later(r, code) ? MW_DECISION_WATCH_OPEN_WAIT : MW_DECISION_WATCH_OPEN_FAILED;
  }
  if (code == MW_ETHROTTLED) return MW_DECISION_WATCH_THROTTLED;
  if (code == MW_EEXPIRED) return MW_DECISION_WATCH_EXPIRED;
  if (code == MW_EINTERNAL &&
      mw_reflect_window_allows(&r->window, r->config.internal_error_budget, mw_clock_now())) {
    return MW_DECISION_WATCH_INTERNAL;
  }
  return MW_DECISION_WATCH_FAILED;
}

static void watch_failed(struct mw_reflector *r, const struct mw_err *err) {
  bool opened = r->watch.opened;
  struct mw_reflect_failure failure = {opened ? MW_PLACE_WATCH : MW_PLACE_WATCH_OPEN, opened, err};
  mw_reflect_decide(r, watch_decision(r, err->code), &failure);
}

// Puts what a request ended with into *why; its code is 0 for an end like any other.
static void find_reason(const struct mw_reflector *r, const struct mw_err *err,
                        struct mw_slice body, struct mw_err *why) {
  *why = r->body_err;
  if (why->code != 0) return;
  if (err == NULL) return;
  if (!r->watch.opened) {
    mw_reflect_explain(r, err, body, why);
  } else if (err->code != MW_EEOF && err->code != MW_ETIMEOUT) {
    mw_err_set(why, MW_EINTERNAL, "the stream broke: %s", err->message);
  }
}

static void on_done(void *ctx, const struct mw_err *err, struct mw_slice body) {
  struct mw_reflector *r = ctx;
  r->request = NULL;
  mw_timer_cancel(&r->tick);
  struct mw_err why;
  find_reason(r, err, body, &why);
  mw_reflect_watch_clear(r);
  if (r->watch.opened && !r->watch.streaming) {
    mw_reflect_meter_watch(r->meters, lived(r), r->watch.events);
  }
  if (r->watch.streaming) {
    r->watch.streaming = false;
    mw_reflect_snapshot_clear(r);
    if (why.code != 0) {
      stream_failed(r, &why);
    } else {
      stream_ended(r);
    }
  } else if (why.code != 0) {
    watch_failed(r, &why);
  } else {
    watch_ended(r);
  }
}

// While it runs.

static void on_response(void *ctx, const struct mw_response *response) {
  struct mw_reflector *r = ctx;
  r->http_status = response->status;
  r->watch.opened = response->status == 200;
  if (r->watch.opened && r->callbacks.on_opened != NULL) r->callbacks.on_opened(r->callbacks.ctx);
}

static int on_data(void *ctx, const char *p, size_t n) {
  struct mw_reflector *r = ctx;
  struct mw_err err = {0};
  int rc = mw_watch_split_feed(r->watch.split, p, n, &err);
  if (rc != 0 && r->body_err.code == 0) {
    mw_err_set(&r->body_err, MW_EINTERNAL, "the stream cannot be read: %s", err.message);
  }
  return rc;
}

// A streaming list that is silent is worth a word each time (S-WL-12), one that goes on and on the
// 2nd, 4th, 8th... time: on a busy resource of a server that does not know them, nothing else would
// say why there is no snapshot.
static void on_tick(void *arg) {
  struct mw_reflector *r = arg;
  const struct mw_reflect_snapshot *s = &r->snapshot;
  uint64_t now = mw_clock_now();
  double silent = (double)(now - (s->heard != 0 ? s->heard : s->since)) * 1e-9;
  unsigned ticks = ++r->watch.ticks;
  if (silent >= mw_reflect_slow(r) * 0.99) {
    const char *what = s->heard != 0 ? "the streaming list is silent and not yet complete"
                                     : "the streaming list has not sent anything yet";
    mw_log(MW_LOG_WARN, what, MW_STR("resource", r->name), MW_NUM("seconds", silent),
           MW_INT("objects", s->temp.count));
  } else if (ticks > 1 && (ticks & (ticks - 1)) == 0) {
    mw_log(MW_LOG_WARN,
           "the streaming list is not yet complete; a server that does not know them never ends "
           "one: streaming = false reads a list instead",
           MW_STR("resource", r->name), MW_NUM("seconds", (double)(now - s->since) * 1e-9),
           MW_INT("objects", s->temp.count));
  }
  r->tick = mw_timer_start(r->loop, mw_reflect_slow(r), on_tick, r);
}

// How it begins.

static int watch_path(const struct mw_reflector *r, const char *rv, const char *timeout,
                      struct mw_buf *path) {
  int rc = mw_reflect_path(r, path);
  if (rc == 0) rc = mw_reflect_param(path, "watch", "true");
  if (rc == 0) rc = mw_reflect_param(path, "allowWatchBookmarks", "true");
  if (rc == 0 && r->watch.streaming) {
    rc = mw_reflect_param(path, "sendInitialEvents", "true");
    if (rc == 0) rc = mw_reflect_param(path, "resourceVersionMatch", "NotOlderThan");
  }
  if (rc == 0 && rv[0] != '\0') rc = mw_reflect_param(path, "resourceVersion", rv);
  if (rc == 0) rc = mw_reflect_param(path, "timeoutSeconds", timeout);
  return rc != 0 ? rc : mw_reflect_fixed_params(r, path);
}

static int send_request(struct mw_reflector *r, const char *rv) {
  static const struct mw_request_callbacks callbacks = {
      .on_response = on_response, .on_data = on_data, .on_done = on_done};
  long seconds = mw_reflect_watch_timeout(r->config.min_watch_timeout, mw_rand_unit(&r->rand));
  double grace = r->config.watch_grace;
  char timeout[24];
  snprintf(timeout, sizeof timeout, "%ld", seconds);
  struct mw_buf path;
  mw_buf_init(&path, PATH_LIMIT);
  int rc = watch_path(r, rv, timeout, &path);
  if (rc == 0) {
    struct mw_request_options options = {
        .path = path.p,
        .accept = r->config.metadata_only ? accept_metadata : accept_json,
        .idle_timeout = (double)seconds + (grace > 0 ? grace : WATCH_GRACE),
        .head_timeout = r->config.head_timeout > 0 ? r->config.head_timeout : WATCH_HEAD,
        .is_watch = true,
    };
    r->watch.split = mw_watch_split_new(r->config.projection, r->packer, mw_reflect_event, r);
    mw_reflect_count(r->stats, MW_REFLECT_WATCHES);
    r->request = mw_http_start(r->http, r->endpoint, &options, &callbacks, r);
  }
  mw_buf_deinit(&path);
  return rc;
}

static void open_stream(struct mw_reflector *r, const char *rv, bool streaming) {
  mw_reflect_set_state(r, streaming ? MW_REF_STREAMING : MW_REF_WATCHING);
  if (r->stopping) return;
  bool real = rv[0] != '\0' && strcmp(rv, "0") != 0;
  r->watch = (struct mw_reflect_watch){
      .since = mw_clock_now(), .streaming = streaming, .record = real && !streaming};
  r->http_status = 0;
  r->body_err = (struct mw_err){0};
  r->drop_told = false;
  int rc = send_request(r, rv);
  if (rc == 0) {
    if (streaming) r->tick = mw_timer_start(r->loop, mw_reflect_slow(r), on_tick, r);
    return;
  }
  struct mw_err err = {0};
  mw_err_set(&err, rc, "the watch of %s cannot be written: %s", r->name, mw_err_text(rc));
  if (streaming) {
    stream_failed(r, &err);
  } else {
    watch_failed(r, &err);
  }
}

void mw_reflect_stream(struct mw_reflector *r) {
  mw_reflect_snapshot_begin(r, r->rv_unavailable ? "" : r->last_rv);
  open_stream(r, r->snapshot.rv, true);
}

void mw_reflect_watch(struct mw_reflector *r) { open_stream(r, r->last_rv, false); }
