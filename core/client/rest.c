// SPDX-License-Identifier: Apache-2.0
// Two hold a request: whoever began it, until it is told or cancels, and the transfer, until its
// end was told or it was cancelled. Posts run in their order, so a cancellation finds a transfer
// that has begun. While a request waits for its turn there is no transfer.
#include "client/rest.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

static const double never = 1e9;  // seconds

struct mw_rest_pool {
  struct mw_runtime runtime;
  struct mw_fence *fence;
  unsigned running;
  struct mw_rest *first, *last;  // those that wait
};

struct mw_rest {
  atomic_uint refs;
  struct mw_runtime runtime;
  // Script thread.
  struct mw_rest_pool *pool;  // that counts it, or in whose line it waits; NULL: neither
  struct mw_rest *prev, *next;
  struct mw_timer *patience;  // running: it waits
  uint64_t ends;              // 0: never
  struct mw_endpoint *endpoint;
  struct mw_request_options options;  // its strings are ours
  mw_rest_cb cb;                      // script thread; NULL: cancelled
  void *ctx;
  struct mw_fence *fence;  // NULL: it only reads
  // Ingest thread.
  struct mw_request *request;    // NULL: not begun, or over
  struct mw_fence_watch watch;   // of the fence, while it is under way
  bool passed;                   // the fence was open when it was to be sent
  struct mw_rest_result result;  // the ingest thread's until it posts it
};

static char *copy(const char *s) { return s != NULL ? mw_xstrdup(s) : NULL; }

static void copy_options(struct mw_rest *r, const struct mw_request_options *o) {
  r->options = *o;
  r->options.method = copy(o->method);
  r->options.path = copy(o->path);
  r->options.accept = copy(o->accept);
  r->options.content_type = copy(o->content_type);
  if (o->body.n > 0) r->options.body.p = mw_xstrndup(o->body.p, o->body.n);
  if (o->header_count > 0) {
    struct mw_http_header *headers = mw_xcalloc(o->header_count, sizeof *headers);
    for (size_t i = 0; i < o->header_count; i++) {
      headers[i] = (struct mw_http_header){copy(o->headers[i].name), copy(o->headers[i].value)};
    }
    r->options.headers = headers;
  }
  r->options.any_status = true;
  r->options.keep_head = true;
}

static void free_options(struct mw_request_options *o) {
  mw_free((char *)o->method);
  mw_free((char *)o->path);
  mw_free((char *)o->accept);
  mw_free((char *)o->content_type);
  if (o->body.n > 0) mw_free((char *)o->body.p);
  for (size_t i = 0; i < o->header_count; i++) {
    mw_free((char *)o->headers[i].name);
    mw_free((char *)o->headers[i].value);
  }
  if (o->header_count > 0) mw_free((struct mw_http_header *)o->headers);
  *o = (struct mw_request_options){0};
}

static bool is_write(const char *method) {
  static const char *const reads[] = {"GET", "HEAD", "OPTIONS"};
  if (method == NULL) return false;
  for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++)
    if (strcmp(method, reads[i]) == 0) return false;
  return true;
}

static struct mw_rest *ref(struct mw_rest *r) {
  atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
  return r;
}

static void unref(struct mw_rest *r) {
  if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) > 1) return;
  assert(r->watch.next == NULL);
  free_options(&r->options);
  mw_endpoint_unref(r->endpoint);
  if (r->fence != NULL) mw_fence_unref(r->fence);
  mw_buf_deinit(&r->result.head);
  mw_buf_deinit(&r->result.body);
  mw_free(r);
  mw_live_add(MW_LIVE_CALL, -1);
}

static void begin(void *arg);

// On the script thread.

static void begin_next(struct mw_rest_pool *p);

// It is under way no more.
static void leave(struct mw_rest *r) {
  struct mw_rest_pool *p = r->pool;
  r->pool = NULL;
  if (p == NULL) return;
  p->running--;
  begin_next(p);
}

// The transfer's reference comes along.
static void tell(void *arg) {
  struct mw_rest *r = arg;
  leave(r);
  mw_rest_cb cb = r->cb;
  r->cb = NULL;
  if (cb != NULL) {
    cb(r->ctx, &r->result);
    unref(r);
  }
  unref(r);
}

static void set_off(struct mw_rest *r) {
  r->pool->running++;
  if (r->ends != 0) {
    double left = ((double)r->ends - (double)mw_clock_now()) / 1e9;
    r->options.timeout = left > 1e-3 ? left : 1e-3;
  }
  mw_loop_post(r->runtime.ingest, begin, ref(r));
}

static void leave_line(struct mw_rest *r) {
  struct mw_rest_pool *p = r->pool;
  *(r->prev != NULL ? &r->prev->next : &p->first) = r->next;
  *(r->next != NULL ? &r->next->prev : &p->last) = r->prev;
  mw_timer_cancel(&r->patience);
}

static void begin_next(struct mw_rest_pool *p) {
  struct mw_rest *r = p->first;
  if (r == NULL || p->running >= MW_REST_RUNNING_MAX) return;
  leave_line(r);
  set_off(r);
}

static void on_waited(void *arg) {
  struct mw_rest *r = arg;
  r->patience = NULL;
  leave_line(r);
  r->pool = NULL;
  mw_err_set(&r->result.err, MW_ETIMEOUT,
             "%s: %s %.200s: its turn did not come in time, behind %d others",
             mw_endpoint_config(r->endpoint)->server, r->options.method, r->options.path,
             MW_REST_RUNNING_MAX);
  mw_loop_post(r->runtime.script, tell, ref(r));
}

static void join_line(struct mw_rest *r) {
  struct mw_rest_pool *p = r->pool;
  r->prev = p->last;
  *(p->last != NULL ? &p->last->next : &p->first) = r;
  p->last = r;
  // Without a timeout it waits as long as it takes; the timer is what tells that it waits.
  double seconds = r->ends != 0 ? r->options.timeout : never;
  r->patience = mw_timer_start(r->runtime.script, seconds, on_waited, r);
}

// On the ingest thread.

static void on_response(void *ctx, const struct mw_response *response) {
  struct mw_rest *r = ctx;
  r->result.status = response->status;
  int rc = mw_buf_add(&r->result.head, response->head.p, response->head.n);
  (void)rc;  // the transport has the same limit
}

static int on_data(void *ctx, const char *p, size_t n) {
  struct mw_rest *r = ctx;
  return mw_buf_add(&r->result.body, p, n);
}

static void tell_limit(struct mw_rest *r) {
  bool body = r->result.status != 0;
  size_t limit = body ? r->result.body.limit : r->result.head.limit;
  bool even = limit % 1024 == 0;
  mw_err_set(&r->result.err, MW_ELIMIT, "%s: %s %.200s: the answer has more than %zu %s of %s",
             mw_endpoint_config(r->endpoint)->server, r->options.method, r->options.path,
             even ? limit / 1024 : limit, even ? "KiB" : "bytes", body ? "body" : "headers");
  r->result.err.http_status = r->result.status;
}

static void on_done(void *ctx, const struct mw_err *err, struct mw_slice body) {
  (void)body;
  struct mw_rest *r = ctx;
  r->request = NULL;
  mw_fence_unwatch(&r->watch);
  if (err != NULL) {
    r->result.err = *err;
    mw_buf_deinit(&r->result.body);
  }
  if (err != NULL && err->code == MW_ELIMIT) tell_limit(r);
  mw_loop_post(r->runtime.script, tell, r);
}

static int refuse(const struct mw_rest *r, struct mw_err *err) {
  return mw_err_set(err, MW_ENOT_LEADING,
                    "%s: %s %.200s was not sent: this process does not lead, and only the leader "
                    "of its election writes",
                    mw_endpoint_config(r->endpoint)->server, r->options.method, r->options.path);
}

static int on_send(void *ctx, struct mw_err *err) {
  struct mw_rest *r = ctx;
  if (r->fence != NULL && !mw_fence_is_open(r->fence)) return refuse(r, err);
  r->passed = true;
  return 0;
}

static void on_fence_closed(struct mw_fence_watch *w) {
  struct mw_rest *r = (struct mw_rest *)((char *)w - offsetof(struct mw_rest, watch));
  mw_http_cancel(&r->request);
  struct mw_err err;
  if (r->passed) {
    mw_err_set(&err, MW_ETIMEOUT,
               "%s: %s %.200s: this process stopped leading while it was under way; whether the "
               "server did it is not known",
               mw_endpoint_config(r->endpoint)->server, r->options.method, r->options.path);
  } else {
    refuse(r, &err);
  }
  on_done(r, &err, (struct mw_slice){0});
}

static void begin(void *arg) {
  struct mw_rest *r = arg;
  static const struct mw_request_callbacks callbacks = {on_response, on_data, on_done, on_send};
  r->request = mw_http_start(r->runtime.http, r->endpoint, &r->options, &callbacks, r);
  if (r->options.body.n > 0) mw_free((char *)r->options.body.p);  // it was copied
  r->options.body = (struct mw_slice){0};
  if (r->fence == NULL) return;
  r->watch.closed = on_fence_closed;
  mw_fence_watch(r->fence, &r->watch);
}

static void cancel(void *arg) {
  struct mw_rest *r = arg;
  if (r->request != NULL) {
    mw_http_cancel(&r->request);
    mw_fence_unwatch(&r->watch);
    unref(r);
  }
  unref(r);
}

// For the thread that began it.

struct mw_rest_pool *mw_rest_pool_new(const struct mw_runtime *runtime) {
  struct mw_rest_pool *p = mw_xcalloc(1, sizeof *p);
  p->runtime = *runtime;
  p->fence = mw_fence_new();
  return p;
}

bool mw_rest_pool_is_busy(const struct mw_rest_pool *p) {
  return p->running > 0 || p->first != NULL;
}

struct mw_fence *mw_rest_pool_fence(struct mw_rest_pool *p) {
  return p->fence;
}

void mw_rest_pool_free(struct mw_rest_pool *p) {
  assert(p->running == 0 && p->first == NULL);
  mw_fence_unref(p->fence);
  mw_free(p);
}

struct mw_rest *mw_rest_start(struct mw_rest_pool *pool, struct mw_endpoint *endpoint,
                              const struct mw_request_options *options, bool unfenced,
                              size_t body_max, mw_rest_cb cb, void *ctx) {
  struct mw_rest *r = mw_xcalloc(1, sizeof *r);
  mw_live_add(MW_LIVE_CALL, 1);
  atomic_init(&r->refs, 1);
  r->runtime = pool->runtime;
  r->pool = pool;
  r->endpoint = mw_endpoint_ref(endpoint);
  r->cb = cb;
  r->ctx = ctx;
  copy_options(r, options);
  if (!unfenced && is_write(options->method)) r->fence = mw_fence_ref(pool->fence);
  mw_buf_init(&r->result.head, MW_HTTP_HEAD_MAX);
  mw_buf_init(&r->result.body, body_max > 0 ? body_max : MW_REST_BODY_MAX);
  if (options->timeout > 0) r->ends = mw_clock_now() + (uint64_t)(options->timeout * 1e9);
  if (pool->running < MW_REST_RUNNING_MAX) {
    set_off(r);
  } else {
    join_line(r);
  }
  return r;
}

void mw_rest_cancel(struct mw_rest **rest) {
  struct mw_rest *r = *rest;
  *rest = NULL;
  if (r == NULL) return;
  r->cb = NULL;
  if (r->patience != NULL) {
    leave_line(r);
    unref(r);
    return;
  }
  leave(r);
  mw_loop_post(r->runtime.ingest, cancel, r);  // with our reference
}
