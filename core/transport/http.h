// SPDX-License-Identifier: Apache-2.0
// HTTP requests to API servers: libcurl multi on a libuv loop.
//
// Everything here happens on the loop's thread. A request is started and then reports: status
// once, data any number of times, done exactly once. Callbacks never run inside
// mw_http_start() or mw_http_cancel().
//
// What it does for every request: TLS verified against the configured CA, credentials fetched and
// refreshed (a 401 makes one retry with fresh ones), HTTP/2 with many requests on one connection
// (or HTTP/1.1), keepalive so that a dead peer is found, Retry-After honoured (S-REST-01..03).
//
// libcurl 7.88 can stall with many HTTP/2 streams: bytes stay inside libcurl while the kernel's
// queue is empty. We ask for a buffer of at least 128 KiB and poke every socket that has running
// transfers and was silent for a while (`guard`), which frees it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "transport/kubeconfig.h"
#include "transport/loop.h"

struct mw_http;      // the pool of connections of one loop
struct mw_endpoint;  // one API server as one user; refcounted
struct mw_request;

struct mw_http_config {
  bool http1_only;         // never negotiate HTTP/2
  double connect_timeout;  // seconds, 0: 10
  double idle_timeout;     // a stream without a byte for so long is dead; 0: per request only
  double guard_interval;   // seconds between pokes, 0: 1
  size_t buffer_size;      // 0: 256 KiB
};

struct mw_http *mw_http_new(struct mw_loop *loop, const struct mw_http_config *config);
// Starts libcurl and TLS, which the first request would do otherwise and wait for.
void mw_http_warm(struct mw_http *h);
// All requests must have ended or been cancelled. Not inside a callback of one.
void mw_http_free(struct mw_http *h);

// Takes ownership of config. Any thread; the identity string is stable for equal configs and
// holds no secret. Refcount is atomic; the last unref may happen on any thread.
struct mw_endpoint *mw_endpoint_new(struct mw_kubeconfig *config);
struct mw_endpoint *mw_endpoint_ref(struct mw_endpoint *e);
void mw_endpoint_unref(struct mw_endpoint *e);
const struct mw_kubeconfig *mw_endpoint_config(const struct mw_endpoint *e);
const char *mw_endpoint_identity(const struct mw_endpoint *e);
// Makes more of what an API server said that answered 401, which names nobody. What any other
// server said stays as it is.
void mw_endpoint_unknown(const struct mw_endpoint *e, struct mw_err *err);

struct mw_response {
  int status;                    // HTTP status of the final response
  int retry_after;               // seconds, -1 when absent or not a plain integer
  struct mw_slice content_type;  // valid during the callback
  struct mw_slice head;          // with keep_head: "Name: value\r\n" for each; likewise
};

enum { MW_HTTP_HEAD_MAX = 64 * 1024 };

struct mw_http_header {
  const char *name;
  const char *value;
};

struct mw_request_callbacks {
  // The response's head is here. Not called when there was no response. May be NULL.
  void (*on_response)(void *ctx, const struct mw_response *response);
  // Body bytes of a 2xx response (with any_status: of the final one) as they arrive. A nonzero
  // return ends the request: it becomes the code of on_done.
  int (*on_data)(void *ctx, const char *p, size_t n);
  // The end. err is NULL when a 2xx body arrived whole. Otherwise err->code is one of ETIMEOUT,
  // EREFUSED, ECONNECT, EEOF, ETLS, EAUTH, ECANCELLED (never after mw_http_cancel), what
  // on_data returned, or for another HTTP status the class of its Status body (wire is not known
  // here: `body` holds up to 64 KiB of it and err->code is EHTTP).
  void (*on_done)(void *ctx, const struct mw_err *err, struct mw_slice body);
  // The last word before bytes leave: called before each attempt, again when its connection stands,
  // and for each piece of its body. A negative return ends the request with err, which it fills;
  // what libcurl has not been given by then is never sent. May be NULL.
  int (*on_send)(void *ctx, struct mw_err *err);
};

struct mw_request_options {
  const char *method;        // NULL: GET
  const char *path;          // with query, begins with '/'; appended to the server's prefix
  const char *accept;        // NULL: application/json
  const char *content_type;  // with a body
  struct mw_slice body;      // copied
  double timeout;            // whole request, seconds; 0: none
  double idle_timeout;       // no byte for so long ends it with ETIMEOUT; 0: the pool's
  double head_timeout;       // the same, while there is no head of a response; 0: idle_timeout
  bool is_watch;             // S-REST-03: how transport errors are retried, see below
  int max_retries;           // on Retry-After and transport errors; negative: none; 0: 10
  bool any_status;           // an answer is a success whatever its status: on_data gets its body
  bool keep_head;            // on_response gets all headers; more than MW_HTTP_HEAD_MAX is ELIMIT
  const struct mw_http_header *headers;  // further ones; copied
  size_t header_count;
};

// A lost connection (EEOF) is tried again after a second while the caller has seen nothing: of a
// GET as often as max_retries says, of a watch twice at most, of a write never. A timeout is not
// tried again, and nothing is that would begin after the request's own timeout: what there is then
// says more than that. What is left reaches on_done, also of a watch that never opened: it does not
// count as one that opened and ended (a deviation from S-REST-03 and 04), because a server that
// cannot be reached has to be seen.

// Starts a request. Never fails at once: what goes wrong comes to on_done. The callbacks are
// copied; ctx is the caller's.
struct mw_request *mw_http_start(struct mw_http *h, struct mw_endpoint *e,
                                 const struct mw_request_options *options,
                                 const struct mw_request_callbacks *callbacks, void *ctx);
// Ends a request without any further callback and sets *r to NULL. A NULL *r is fine. Also legal
// inside its own callbacks except on_done.
void mw_http_cancel(struct mw_request **r);

// Counters, for logs, specs and metrics.
struct mw_http_stats {
  uint64_t requests;
  uint64_t retries;
  uint64_t connections;  // opened
  uint64_t pokes;        // by the guard
  uint64_t rescues;      // pokes that moved a silent transfer
};
void mw_http_stats(const struct mw_http *h, struct mw_http_stats *out);
