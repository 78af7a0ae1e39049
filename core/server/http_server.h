// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server on a loop: llhttp parses, libuv carries, OpenSSL encrypts.
//
// A request is handed over whole (its body is bounded); its reply is either whole or a chunked
// stream (to HTTP/1.0, a stream that ends with the connection). Requests of one connection are
// answered one after the other, pipelined ones wait in the socket. A client that takes a stream
// more slowly than it is written is cut once `backlog_max` bytes wait for it: nothing is ever
// buffered without bound. A client that closes its half while a reply is awaited counts as gone.
//
// What is malformed, too large or too slow never reaches on_request: the server answers it itself,
// in plain text, and hangs up.
//
// Everything runs on the loop's thread. Any write may find the connection dead and close it on the
// spot: what the exchange's owner hears of it is `on_gone`, once, from the loop, never from inside
// a call into this header.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/slice.h"
#include "transport/loop.h"

struct mw_http_server;
struct mw_server_tls;  // server/server_tls.h

// One request and the reply to it. It lives until its reply is complete (mw_exchange_reply,
// mw_exchange_finish, mw_exchange_reset) or on_gone was called; then the pointer is dead.
struct mw_exchange;

typedef void (*mw_exchange_cb)(void *ctx, struct mw_exchange *x);

struct mw_http_server_config {
  struct mw_loop *loop;
  const char *path;           // a unix socket that is made there, for its owner alone; else:
  const char *host;           // a numeric address
  unsigned port;              // 0: any free one
  struct mw_server_tls *tls;  // borrowed while the server lives; NULL: plain text
  mw_exchange_cb on_request;  // a whole request; must answer it, now or later
  mw_exchange_cb on_gone;     // the client left before the reply was complete
  mw_exchange_cb on_drain;    // nothing waits for a stream's client any more; NULL is fine
  void *ctx;
  // Limits; 0 takes the default in brackets.
  size_t header_max;         // request line and headers [64 KiB], else 431
  size_t body_max;           // [3 MiB], else 413
  unsigned connections_max;  // [1024], else 503 and close
  bool displaces;            // ... or the oldest that has sent no whole request gives way
  double header_seconds;     // from the first byte to the last header [10]
  double body_seconds;       // for the body, and for a whole reply to make progress [30]
  double idle_seconds;       // between requests [300]
  size_t backlog_max;        // bytes that wait for one client of a stream [4 MiB]
  // What 413 answers, copied; NULL takes a plain text.
  const char *oversize_body;
  const char *oversize_type;  // its Content-Type
};

// Binds and listens. NULL on failure, err names the address. At a path there may be nothing yet;
// what it makes there is removed when it closes.
struct mw_http_server *mw_http_server_new(const struct mw_http_server_config *config,
                                          struct mw_err *err);
unsigned mw_http_server_port(const struct mw_http_server *s);
// Stops accepting and closes idle connections; those with a reply under way get `grace` seconds,
// then they are cut. done(arg) runs from the loop when the last is gone and s is freed.
void mw_http_server_close(struct mw_http_server *s, double grace, mw_loop_cb done, void *arg);

// The request. Slices live as long as the exchange.
struct mw_slice mw_exchange_method(const struct mw_exchange *x);
struct mw_slice mw_exchange_target(const struct mw_exchange *x);  // path and query, undecoded
struct mw_slice mw_exchange_body(const struct mw_exchange *x);
// The i-th header; false past the end. Names as they came.
bool mw_exchange_header_at(const struct mw_exchange *x, size_t i, struct mw_slice *name,
                           struct mw_slice *value);
// The first header of that name, whatever its case; p is NULL when there is none.
struct mw_slice mw_exchange_header(const struct mw_exchange *x, const char *name);
// Whether the client is on this machine: it came by the loopback interface or a unix socket.
bool mw_exchange_is_local(const struct mw_exchange *x);

// A place for the owner's own pointer, NULL at first.
void *mw_exchange_data(const struct mw_exchange *x);
void mw_exchange_set_data(struct mw_exchange *x, void *data);

// Replies. `headers` is a block of "Name: value\r\n" lines, perhaps empty, without Content-Length,
// Transfer-Encoding, Connection and Date, which the server adds. A reply to HEAD sends no body.
void mw_exchange_reply(struct mw_exchange *x, unsigned status, struct mw_slice headers,
                       struct mw_slice body);
// A chunked stream: the head goes out at once.
void mw_exchange_start(struct mw_exchange *x, unsigned status, struct mw_slice headers);
// One chunk. False when the client is gone or was cut just now for being slow; on_gone follows.
// When nothing waits, a chunk of any size is taken.
bool mw_exchange_write(struct mw_exchange *x, struct mw_slice data);
// Bytes that wait for the client. One who has much to say writes while this is small and goes on in
// on_drain.
size_t mw_exchange_backlog(const struct mw_exchange *x);
void mw_exchange_finish(struct mw_exchange *x);
// Cuts the connection without an orderly end, whatever was sent.
void mw_exchange_reset(struct mw_exchange *x);
