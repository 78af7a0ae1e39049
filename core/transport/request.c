// SPDX-License-Identifier: Apache-2.0
// The life of one request: credentials, attempts, retries, one report.
//
//   NEW -> AUTH -> RUNNING -> ENDED -> REPORTING -> freed
//           ^         |
//           +-WAITING-+            (Retry-After, lost connection, 401 with fresh credentials)
//
// What decides about a retry is what the caller has seen: nothing is ever told twice. Therefore the
// head of a plain GET is held back until its first byte of body, so that a connection lost in
// between can still be tried again; the head of a watch is told at once.
#include <ctype.h>
#include <curl/curl.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "transport/internal.h"

enum { MAX_RETRIES = 10, MAX_WATCH_LOSSES = 2, LOST_CONNECTION_PAUSE = 1 };

static void begin(void *arg);

static void set_state(struct mw_request *r, enum mw_request_state state) {
  static const char *const names[] = {"new",   "auth",      "running", "waiting",
                                      "ended", "reporting", "dead"};
  mw_log(MW_LOG_DEBUG, "request", MW_STR("method", r->method), MW_STR("path", r->path),
         MW_STR("from", names[r->state]), MW_STR("to", names[state]));
  r->state = state;
}

static char *copy(const char *s) { return s != NULL ? mw_xstrdup(s) : NULL; }

// ---- ending ----

// The attempt counts once: when it ends, that of a watch when it is answered.
static void count_attempt(struct mw_request *r) {
  if (r->began == 0) return;
  double seconds = (double)(mw_clock_now() - r->began) / 1e9;
  r->began = 0;
  if (mw_endpoint_config(r->endpoint)->foreign) return;
  mw_meter_count(r->http->meter, r->method, mw_endpoint_host(r->endpoint),
                 r->head_done ? r->status : 0, seconds);
}

// Takes the attempt away from libcurl. Never inside a curl frame.
static void close_attempt(struct mw_request *r) {
  count_attempt(r);
  mw_timer_cancel(&r->idle_timer);
  if (r->easy == NULL) return;
  mw_pool_remove(r->http, r->easy);
  mw_easy_close(r);
}

static void destroy(struct mw_request *r) {
  set_state(r, MW_REQUEST_DEAD);
  close_attempt(r);
  mw_pool_forget(r);
  mw_timer_cancel(&r->retry_timer);
  mw_timer_cancel(&r->deadline);
  if (r->ticket != 0) mw_auth_cancel(r->login->auth, r->ticket);
  mw_pool_logout(r->http, r->login);
  mw_endpoint_unref(r->endpoint);
  r->link.prev->next = r->link.next;
  r->link.next->prev = r->link.prev;
  mw_buf_deinit(&r->error_body);
  mw_buf_deinit(&r->head);
  for (size_t i = 0; i < r->extra_count; i++) {
    mw_free(r->extra[i].name);
    mw_free(r->extra[i].value);
  }
  mw_free(r->extra);
  mw_free(r->method);
  mw_free(r->path);
  mw_free(r->accept);
  mw_free(r->content_type);
  mw_free(r->body);
  mw_free(r);
  mw_live_add(MW_LIVE_REQUEST, -1);
}

// err->code 0: it went well.
static void end(struct mw_request *r, const struct mw_err *err) {
  set_state(r, MW_REQUEST_ENDED);
  close_attempt(r);
  mw_timer_cancel(&r->deadline);
  mw_timer_cancel(&r->retry_timer);
  if (r->ticket != 0) mw_auth_cancel(r->login->auth, r->ticket);
  r->ticket = 0;
  r->err = *err;
  mw_pool_todo(r, MW_TODO_END);
}

static void report_head(struct mw_request *r) {
  if (r->reported || !r->head_done) return;
  r->reported = true;
  struct mw_response response = {.status = r->status,
                                 .retry_after = r->retry_after,
                                 .content_type = mw_slice_str(r->type),
                                 .head = mw_buf_slice(&r->head)};
  if (r->on.on_response != NULL) r->on.on_response(r->ctx, &response);
}

static void report(struct mw_request *r) {
  report_head(r);
  if (r->state == MW_REQUEST_DEAD) {  // cancelled in on_response
    destroy(r);
    return;
  }
  set_state(r, MW_REQUEST_REPORTING);
  bool failed = r->err.code != 0;
  r->on.on_done(r->ctx, failed ? &r->err : NULL, mw_buf_slice(&r->error_body));
  destroy(r);
}

void mw_request_run_todo(struct mw_request *r, enum mw_request_todo todo) {
  switch (todo) {
    case MW_TODO_BEGIN:
      begin(r);
      return;
    case MW_TODO_END:
      report(r);
      return;
    case MW_TODO_DESTROY:
      destroy(r);
      return;
    case MW_TODO_NOTHING:
      return;
  }
}

// ---- retrying ----

static void on_retry(void *arg) {
  struct mw_request *r = arg;
  r->retry_timer = NULL;
  begin(r);
}

static void retry_after(struct mw_request *r, double seconds) {
  set_state(r, MW_REQUEST_WAITING);
  close_attempt(r);
  r->http->stats.retries++;
  r->retry_timer = mw_timer_start(r->http->loop, seconds, on_retry, r);
}

static bool can_refresh(const struct mw_request *r) {
  const struct mw_kubeconfig *k = mw_endpoint_config(r->endpoint);
  return !r->refreshed && (k->token_file != NULL || k->exec != NULL);
}

// Whether another attempt after so many seconds would begin before the deadline.
static bool has_time(const struct mw_request *r, double seconds) {
  return r->ends == 0 || (double)mw_clock_now() + seconds * 1e9 < (double)r->ends;
}

// S-REST-01: throttled or failing servers that say when to come back, in plain seconds.
static bool asks_for_retry(const struct mw_request *r) {
  return (r->status == 429 || r->status >= 500) && r->retry_after >= 0 && r->retries_left > 0 &&
         has_time(r, r->retry_after);
}

static bool succeeded(const struct mw_request *r) {
  if (r->any_status) return true;
  return r->is_watch ? r->status == 200 : r->status >= 200 && r->status < 300;
}

// A response that the caller does not see.
static void finish_again(struct mw_request *r) {
  if (r->status == 401) {
    r->refreshed = true;
    mw_auth_reject(r->login->auth, r->serial);
    retry_after(r, 0);
    return;
  }
  r->retries_left--;
  mw_log(MW_LOG_INFO, "the server asks to retry later", MW_INT("status", r->status),
         MW_INT("seconds", r->retry_after), MW_STR("path", r->path));
  retry_after(r, r->retry_after);
}

// S-REST-03: what may be tried again after the transport failed.
static bool lost(const struct mw_request *r, int code) {
  if (r->reported || r->delivered || code != MW_EEOF) return false;
  return r->is_watch || strcmp(r->method, "GET") == 0;
}

static void finish_failed(struct mw_request *r, const struct mw_err *err) {
  bool may = r->retries_left > 0 && r->losses_left > 0 && has_time(r, LOST_CONNECTION_PAUSE);
  if (!lost(r, err->code) || !may) {
    end(r, err);
    return;
  }
  r->retries_left--;
  r->losses_left--;
  mw_log(MW_LOG_INFO, "trying again", MW_STR("path", r->path), MW_STR("error", err->message));
  retry_after(r, LOST_CONNECTION_PAUSE);
}

static void finish_status(struct mw_request *r) {
  struct mw_err err;
  mw_err_set(&err, MW_EHTTP, "%s: %s %.300s: the server answered %d", mw_endpoint_host(r->endpoint),
             r->method, r->path, r->status);
  err.http_status = r->status;
  end(r, &err);
}

void mw_request_finished(struct mw_request *r, int curl_code) {
  struct mw_err err = {0};
  if (r->state == MW_REQUEST_DEAD) {
    mw_pool_todo(r, MW_TODO_DESTROY);
  } else if (r->refusal.code != 0) {
    end(r, &r->refusal);
  } else if (r->reader_rc != 0) {
    mw_err_set(&err, r->reader_rc, "%s: %s %.300s: the response was not accepted",
               mw_endpoint_host(r->endpoint), r->method, r->path);
    err.http_status = r->status;
    end(r, &err);
  } else if (r->again) {
    finish_again(r);
  } else if (r->head_done && !succeeded(r)) {
    finish_status(r);
  } else if (curl_code == CURLE_OK && r->head_done) {
    end(r, &err);
  } else {
    mw_failure(r, curl_code, &err);
    finish_failed(r, &err);
  }
}

// ---- timeouts ----

static void on_deadline(void *arg) {
  struct mw_request *r = arg;
  r->deadline = NULL;
  struct mw_err err;
  mw_err_set(&err, MW_ETIMEOUT, "%s: %s %.300s: not finished in time",
             mw_endpoint_host(r->endpoint), r->method, r->path);
  end(r, &err);
}

// How long nothing may arrive at this point; 0: for ever.
static double patience(const struct mw_request *r) {
  bool head = !r->head_done && r->head_timeout > 0 &&
              (r->idle_timeout <= 0 || r->head_timeout < r->idle_timeout);
  return head ? r->head_timeout : r->idle_timeout;
}

static void on_idle(void *arg);

static void watch_silence(struct mw_request *r, double seconds) {
  if (seconds > 0) r->idle_timer = mw_timer_start(r->http->loop, seconds, on_idle, r);
}

static void on_idle(void *arg) {
  struct mw_request *r = arg;
  r->idle_timer = NULL;
  uint64_t now = mw_clock_now();
  double allowed = patience(r);
  if (allowed <= 0) return;
  double left = allowed - (double)(now - r->last_byte) / 1e9;
  if (left > 0) {
    watch_silence(r, left);
    return;
  }
  struct mw_err err;
  mw_err_set(&err, MW_ETIMEOUT, "%s: %s %.300s: %s for %g seconds", mw_endpoint_host(r->endpoint),
             r->method, r->path, r->head_done ? "nothing arrived" : "no answer", allowed);
  finish_failed(r, &err);
}

// ---- one attempt ----

static bool may_send(struct mw_request *r) {
  if (r->refusal.code == 0 && r->on.on_send != NULL) {
    int rc = r->on.on_send(r->ctx, &r->refusal);
    if (rc < 0) r->refusal.code = rc;
  }
  return r->refusal.code == 0;
}

static void on_credentials(void *ctx, const struct mw_credentials *c, const struct mw_err *why) {
  struct mw_request *r = ctx;
  struct mw_err err = {0};
  r->ticket = 0;
  if (why != NULL) {
    end(r, why);
    return;
  }
  if (!may_send(r)) {
    end(r, &r->refusal);
    return;
  }
  r->serial = c->serial;
  if (mw_easy_open(r, c, &err) < 0) {
    end(r, &err);
    return;
  }
  if (mw_pool_add(r->http, r->easy) < 0) {
    mw_easy_close(r);
    mw_err_set(&err, MW_EINTERNAL, "%s: libcurl refused the request",
               mw_endpoint_host(r->endpoint));
    end(r, &err);
    return;
  }
  set_state(r, MW_REQUEST_RUNNING);
  r->began = r->last_byte = mw_clock_now();
  watch_silence(r, patience(r));
}

static void begin(void *arg) {
  struct mw_request *r = arg;
  r->status = 0;
  r->retry_after = -1;
  r->type[0] = '\0';
  r->head_done = r->again = r->sent = false;
  r->dropped = r->body_sent = 0;
  mw_buf_reset(&r->error_body);
  mw_buf_reset(&r->head);
  set_state(r, MW_REQUEST_AUTH);
  unsigned ticket = mw_auth_get(r->login->auth, on_credentials, r);
  if (r->state == MW_REQUEST_AUTH) r->ticket = ticket;
}

// Digits only (S-REST-01); a date or anything else is not understood.
static int plain_seconds(struct mw_slice s) {
  int value = 0;
  if (s.n == 0 || s.n > 9) return -1;
  for (size_t i = 0; i < s.n; i++) {
    if (!isdigit((unsigned char)s.p[i])) return -1;
    value = value * 10 + (s.p[i] - '0');
  }
  return value;
}

static bool is_header(struct mw_slice line, const char *name, struct mw_slice *value) {
  size_t n = strlen(name);
  if (line.n <= n || line.p[n] != ':' || strncasecmp(line.p, name, n) != 0) return false;
  const char *p = line.p + n + 1, *stop = line.p + line.n;
  while (p < stop && (*p == ' ' || *p == '\t')) p++;
  while (stop > p && isspace((unsigned char)stop[-1])) stop--;
  *value = mw_slice(p, (size_t)(stop - p));
  return true;
}

static void head_complete(struct mw_request *r) {
  if (r->status < 200) return;  // an interim response
  r->head_done = true;
  r->again = (r->status == 401 && can_refresh(r)) || asks_for_retry(r);
  if (r->is_watch) count_attempt(r);
  if (r->is_watch && !r->again && succeeded(r)) report_head(r);
}

// "HTTP/1.1 200 OK": each response begins anew.
static void status_line(struct mw_request *r, struct mw_slice line) {
  const char *space = memchr(line.p, ' ', line.n);
  size_t rest = space != NULL ? (size_t)(line.p + line.n - space - 1) : 0;
  r->status = rest >= 3 ? plain_seconds(mw_slice(space + 1, 3)) : 0;
  r->retry_after = -1;
  r->type[0] = '\0';
  mw_buf_reset(&r->head);
}

static void note_header(struct mw_request *r, struct mw_slice line) {
  struct mw_slice value;
  if (is_header(line, "Retry-After", &value)) {
    r->retry_after = plain_seconds(value);
  } else if (is_header(line, "Content-Type", &value)) {
    size_t keep = value.n < sizeof r->type - 1 ? value.n : sizeof r->type - 1;
    memcpy(r->type, value.p, keep);
    r->type[keep] = '\0';
  }
  if (r->keep_head && mw_buf_add(&r->head, line.p, line.n) < 0) r->reader_rc = MW_ELIMIT;
}

static bool is_read(const struct mw_request *r) {
  return strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0 ||
         strcmp(r->method, "OPTIONS") == 0;
}

// A connection may take long to stand, and a transfer long to get one. When one that was used
// before ends without an answer, libcurl comes here again by itself: a write may have happened by
// then. (With a body it cannot: easy.c.)
int mw_request_on_connected(void *ctx, char *ip, char *local_ip, int port, int local_port) {
  (void)ip, (void)local_ip, (void)port, (void)local_port;
  struct mw_request *r = ctx;
  if (r->sent && !is_read(r)) {
    mw_err_set(&r->refusal, MW_EEOF, "%s: %s %.300s: the connection ended early",
               mw_endpoint_host(r->endpoint), r->method, r->path);
  }
  r->sent = true;
  return may_send(r) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

size_t mw_request_on_send(char *p, size_t size, size_t count, void *ctx) {
  struct mw_request *r = ctx;
  if (!may_send(r)) return CURL_READFUNC_ABORT;
  size_t left = r->body_size - r->body_sent, room = size * count;
  size_t n = left < room ? left : room;
  memcpy(p, r->body + r->body_sent, n);
  r->body_sent += n;
  return n;
}

size_t mw_request_on_header(char *p, size_t size, size_t n, void *ctx) {
  struct mw_request *r = ctx;
  struct mw_slice line = mw_slice(p, size * n);
  if (r->state != MW_REQUEST_RUNNING) return 0;
  r->last_byte = mw_clock_now();
  if (r->head_done) return line.n;  // a trailer
  if (line.n >= 5 && strncmp(line.p, "HTTP/", 5) == 0) {
    status_line(r, line);
  } else if (line.n <= 2 && (line.n == 0 || line.p[0] == '\r' || line.p[0] == '\n')) {
    head_complete(r);
  } else {
    note_header(r, line);
  }
  return r->state == MW_REQUEST_RUNNING && r->reader_rc == 0 ? line.n : 0;
}

// Body that is not for on_data: the beginning of an error's, or nothing of a retried response.
static size_t keep_error(struct mw_request *r, const char *p, size_t n) {
  if (r->again) {
    r->dropped += n;
    return r->dropped <= MW_ERROR_BODY_MAX ? n : CURL_WRITEFUNC_ERROR;
  }
  size_t room = MW_ERROR_BODY_MAX - r->error_body.n;
  if (mw_buf_add(&r->error_body, p, n < room ? n : room) < 0 || n > room) {
    return CURL_WRITEFUNC_ERROR;
  }
  return n;
}

size_t mw_request_on_body(char *p, size_t size, size_t count, void *ctx) {
  struct mw_request *r = ctx;
  size_t n = size * count;
  if (r->state != MW_REQUEST_RUNNING || r->reader_rc != 0) return CURL_WRITEFUNC_ERROR;
  r->last_byte = mw_clock_now();
  r->http->moved += n;
  if (!succeeded(r) || r->again) return keep_error(r, p, n);
  report_head(r);
  if (r->state != MW_REQUEST_RUNNING) return CURL_WRITEFUNC_ERROR;
  r->delivered = true;
  int rc = r->on.on_data != NULL ? r->on.on_data(r->ctx, p, n) : 0;
  if (r->state != MW_REQUEST_RUNNING) return CURL_WRITEFUNC_ERROR;
  r->reader_rc = rc;
  return rc == 0 ? n : CURL_WRITEFUNC_ERROR;
}

// ---- what callers use ----

static void copy_headers(struct mw_request *r, const struct mw_request_options *o) {
  if (o->header_count == 0) return;
  r->extra = mw_xcalloc(o->header_count, sizeof *r->extra);
  r->extra_count = o->header_count;
  for (size_t i = 0; i < o->header_count; i++) {
    r->extra[i].name = mw_xstrdup(o->headers[i].name);
    r->extra[i].value = mw_xstrdup(o->headers[i].value);
  }
}

static void copy_options(struct mw_request *r, const struct mw_request_options *o) {
  r->method = mw_xstrdup(o->method != NULL ? o->method : "GET");
  r->path = mw_xstrdup(o->path);
  r->accept = mw_xstrdup(o->accept != NULL ? o->accept : "application/json");
  r->content_type = copy(o->content_type);
  bool carries = strcmp(r->method, "POST") == 0 || strcmp(r->method, "PUT") == 0 ||
                 strcmp(r->method, "PATCH") == 0;
  if (o->body.n > 0 || carries) r->body = mw_xstrndup(o->body.n > 0 ? o->body.p : "", o->body.n);
  r->body_size = o->body.n;
  r->head_timeout = o->head_timeout;
  r->idle_timeout = o->idle_timeout > 0 ? o->idle_timeout : r->http->config.idle_timeout;
  r->is_watch = o->is_watch;
  r->any_status = o->any_status;
  r->keep_head = o->keep_head;
  r->retries_left = o->max_retries == 0 ? MAX_RETRIES : o->max_retries;
  r->losses_left = r->is_watch ? MAX_WATCH_LOSSES : r->retries_left;
}

struct mw_request *mw_http_start(struct mw_http *h, struct mw_endpoint *e,
                                 const struct mw_request_options *options,
                                 const struct mw_request_callbacks *callbacks, void *ctx) {
  mw_pool_open(h);
  struct mw_request *r = mw_xcalloc(1, sizeof *r);
  mw_live_add(MW_LIVE_REQUEST, 1);
  r->http = h;
  r->on = *callbacks;
  r->ctx = ctx;
  r->endpoint = mw_endpoint_ref(e);
  r->login = mw_pool_login(h, e);
  copy_options(r, options);
  copy_headers(r, options);
  mw_buf_init(&r->error_body, MW_ERROR_BODY_MAX);
  mw_buf_init(&r->head, MW_HTTP_HEAD_MAX);
  r->link.prev = h->requests.prev;
  r->link.next = &h->requests;
  h->requests.prev->next = &r->link;
  h->requests.prev = &r->link;
  h->stats.requests++;
  if (options->timeout > 0) {
    r->deadline = mw_timer_start(h->loop, options->timeout, on_deadline, r);
    r->ends = mw_clock_now() + (uint64_t)(options->timeout * 1e9);
  }
  mw_pool_todo(r, MW_TODO_BEGIN);
  return r;
}

void mw_http_cancel(struct mw_request **request) {
  struct mw_request *r = *request;
  *request = NULL;
  if (r == NULL || r->state == MW_REQUEST_REPORTING || r->state == MW_REQUEST_DEAD) return;
  bool in_report = r->state == MW_REQUEST_ENDED && r->todo == MW_TODO_NOTHING;
  if (r->http->depth == 0 && !in_report) {
    destroy(r);
    return;
  }
  set_state(r, MW_REQUEST_DEAD);
  if (!in_report) mw_pool_todo(r, MW_TODO_DESTROY);
}
