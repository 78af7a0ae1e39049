// SPDX-License-Identifier: Apache-2.0
// The parts of the HTTP server and what they share: http_server.c (listening, the end),
// connection.c (bytes in, deadlines, the life of a connection), request.c (what llhttp reports),
// reply.c (replies and bytes out), server_tls.c (encryption).
//
// A connection is closed by mw_conn_cut or mw_conn_hang_up, both of which may be called at any time
// and any number of times; its memory goes in libuv's close callback and nowhere else. So whoever
// wrote something looks at `closing` before going on, and may always still look.
#pragma once

#include <llhttp.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "server/http_server.h"
#include "server/server_tls.h"

enum {
  MW_CONN_READ_MAX = 64 * 1024,   // one read, for all connections: a read is consumed at once
  MW_CONN_PLAIN_MAX = 16 * 1024,  // one TLS record
  MW_CONN_REST_MAX = 64 * 1024    // pipelined bytes that wait before the socket is left alone
};

struct mw_http_server {
  struct mw_http_server_config config;  // the limits filled in
  char *oversize_body;
  char *oversize_type;
  uv_poll_t poll;
  int fd;                  // the listening socket, -1 when closed
  unsigned port;           // 0: it has a path
  char *path;              // NULL: it has a port
  struct mw_timer *retry;  // accepting is suspended until then
  bool starved;            // ... and has been since the last success
  struct mw_conn *conns;
  unsigned count;
  bool closing;
  bool poll_closed;
  struct mw_timer *grace;
  mw_loop_cb done;
  void *done_arg;
  int64_t date_second;
  char date[32];
  char input[MW_CONN_READ_MAX];
  char plain[MW_CONN_PLAIN_MAX];    // decrypted input
  char scratch[MW_CONN_PLAIN_MAX];  // output on its way through TLS
  char sealed[MW_CONN_READ_MAX];    // encrypted output
};

enum mw_conn_phase {
  MW_CONN_IDLE,    // before the first byte of a request
  MW_CONN_HEAD,    // in the request line and the headers
  MW_CONN_BODY,    // in the body
  MW_CONN_OWNED,   // the exchange is its owner's
  MW_CONN_STREAM,  // ... who has started a stream
  MW_CONN_DRAIN,   // the reply is complete, bytes of it still wait
  MW_CONN_LINGER   // the last reply is out; what comes in is thrown away
};

// Where the scan for folded headers is, see mw_conn_scan_head.
enum mw_conn_scan { MW_SCAN_BEFORE, MW_SCAN_IN_LINE, MW_SCAN_LINE_START, MW_SCAN_OVER };

struct mw_conn {
  struct mw_http_server *server;
  struct mw_conn *next, *prev;
  union {
    uv_stream_t any;
    uv_tcp_t tcp;
    uv_pipe_t pipe;  // of a server with a path
  } stream;
  uv_timer_t timer;  // the deadline of the phase, or a kick
  uv_write_t write;
  uv_shutdown_t shutdown;
  llhttp_t parser;
  SSL *ssl;  // NULL: plain text
  enum mw_conn_phase phase;
  enum mw_conn_scan scan;
  unsigned refusal;   // the status for what a callback of llhttp has refused
  uint64_t received;  // bytes of this request, framing included
  struct mw_exchange *exchange;
  struct mw_buf rest;      // input that waits for the reply under way
  struct mw_buf out;       // output that waits for the write under way
  struct mw_buf inflight;  // the write under way
  size_t drain_mark;       // bytes that waited at the last look
  int open_handles;
  bool writing;
  bool reading;
  bool parsing;  // mw_conn_feed is on the stack
  bool kicked;   // the timer is a kick: go on with `rest`
  bool overdue;  // the deadline has passed, the input that came meanwhile is read first
  bool hang_up;  // after the reply under way
  bool shut;     // our half is closed
  bool greeted;  // the TLS handshake is over
  bool closing;
};

struct mw_header_span {
  uint32_t name, name_n, value, value_n;  // in the exchange's head
};

struct mw_exchange {
  struct mw_conn *conn;
  struct mw_buf head;  // the target, then names and values
  uint32_t target, target_n;
  struct mw_header_span *headers;
  size_t header_count;
  size_t header_cap;
  struct mw_buf body;
  const char *method;
  void *data;
  bool in_value;   // llhttp is in a header's value
  bool head_done;  // what follows are trailers
  bool expects;    // 100 Continue is owed
  bool no_body;    // HEAD
  bool old;        // HTTP/1.0
  bool keep_alive;
  bool chunked;  // the reply
  bool gone;     // on_gone is running
};

extern const llhttp_settings_t mw_request_settings;

// request.c
void mw_exchange_free(struct mw_exchange *x);
// Reads on over the head. False when a header is folded, which llhttp 8 lets pass.
bool mw_conn_scan_head(struct mw_conn *c, const char *p, size_t n);

// http_server.c
void mw_http_server_forget(struct mw_conn *c);

// connection.c
// Takes a connected socket over.
void mw_conn_open(struct mw_http_server *s, int fd);
void mw_conn_deadline(struct mw_conn *c, double seconds);
// Closes on the spot; with reset also what the kernel still holds is thrown away.
void mw_conn_cut(struct mw_conn *c, bool reset);
// Closes our half once everything is out, and the rest when the client has closed its own.
void mw_conn_hang_up(struct mw_conn *c);
// What comes after a complete reply.
void mw_conn_settle(struct mw_conn *c);
// A request (or a part of one), decrypted.
void mw_conn_feed(struct mw_conn *c, const char *p, size_t n);

// reply.c
void mw_conn_send(struct mw_conn *c, const uv_buf_t *parts, unsigned count);
void mw_conn_send_raw(struct mw_conn *c, const uv_buf_t *parts, unsigned count);
size_t mw_conn_backlog(const struct mw_conn *c);
// The server's own answer to a request that it does not hand over; then it hangs up.
void mw_conn_refuse(struct mw_conn *c, unsigned status);

// server_tls.c
SSL *mw_tls_accept(struct mw_server_tls *t);
void mw_tls_input(struct mw_conn *c, const char *p, size_t n);
void mw_tls_send(struct mw_conn *c, const uv_buf_t *parts, unsigned count);
// Says goodbye; nothing may be sent afterwards.
void mw_tls_end(struct mw_conn *c);
