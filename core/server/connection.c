// SPDX-License-Identifier: Apache-2.0
// One client: its bytes, its deadlines, its end.
//
// llhttp pauses behind every request. What lies behind it waits in `rest` until the reply is
// complete; the socket is left alone once that is full. While a reply is its owner's, reading goes
// on, as only that tells that the client has gone. A client that closes its half counts as gone.
//
// Deadlines are absolute, so that a byte now and then buys no time. When one passes, the loop looks
// at its sockets once more: a server that was busy must not blame its clients.
#include <unistd.h>

#include "base/alloc.h"
#include "server/internal.h"

enum {
  LINGER_MS = 1000,
  OVERDUE_MS = 20,
  KEEPALIVE_SECONDS = 30,
  FRAMING_FACTOR = 8  // chunk sizes and line ends per byte of body, at the most
};

static void on_timer(uv_timer_t *timer);
static void parse_rest(struct mw_conn *c);

void mw_conn_deadline(struct mw_conn *c, double seconds) {
  c->overdue = false;
  if (c->closing || c->kicked) return;
  uv_update_time(c->timer.loop);  // the turn may have begun long ago
  uv_timer_start(&c->timer, on_timer, (uint64_t)(seconds * 1000) + 1, 0);
}

static void no_deadline(struct mw_conn *c) {
  c->overdue = false;
  uv_timer_stop(&c->timer);
}

// ---- the end ----

static void on_handle_closed(uv_handle_t *handle) {
  struct mw_conn *c = handle->data;
  if (--c->open_handles > 0) return;
  struct mw_exchange *x = c->exchange;
  if (x != NULL && (c->phase == MW_CONN_OWNED || c->phase == MW_CONN_STREAM)) {
    x->gone = true;
    c->server->config.on_gone(c->server->config.ctx, x);
  }
  mw_exchange_free(x);
  SSL_free(c->ssl);
  mw_buf_deinit(&c->rest);
  mw_buf_deinit(&c->out);
  mw_buf_deinit(&c->inflight);
  mw_http_server_forget(c);
  mw_free(c);
  mw_live_add(MW_LIVE_HANDLE, -1);
}

void mw_conn_cut(struct mw_conn *c, bool reset) {
  if (c->closing) return;
  c->closing = true;
  c->reading = false;
  uv_close((uv_handle_t *)&c->timer, on_handle_closed);
  bool tcp = c->stream.any.type == UV_TCP;
  // libuv refuses to reset what is being shut down.
  if (!reset || !tcp || uv_tcp_close_reset(&c->stream.tcp, on_handle_closed) != 0) {
    uv_close((uv_handle_t *)&c->stream, on_handle_closed);
  }
}

static void on_shutdown(uv_shutdown_t *request, int status) {
  (void)request;
  (void)status;
}

// Nothing waits any more: closes our half and gives the client a moment to close its own. Closing
// at once would make the kernel answer late input with a reset, which may overtake the reply.
static void shut_down(struct mw_conn *c) {
  if (c->shut) return;
  c->shut = true;
  if (uv_shutdown(&c->shutdown, &c->stream.any, on_shutdown) != 0) {
    mw_conn_cut(c, false);
    return;
  }
  mw_conn_deadline(c, LINGER_MS / 1000.0);
}

static void drain_deadline(struct mw_conn *c) {
  c->drain_mark = mw_conn_backlog(c);
  mw_conn_deadline(c, c->server->config.body_seconds);
}

void mw_conn_hang_up(struct mw_conn *c) {
  if (c->closing || c->phase == MW_CONN_LINGER) return;
  c->phase = MW_CONN_LINGER;
  c->kicked = false;
  mw_buf_deinit(&c->rest);
  if (c->ssl != NULL) mw_tls_end(c);
  if (!c->closing) mw_conn_settle(c);
}

// ---- reading ----

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  (void)suggested;
  struct mw_conn *c = handle->data;
  *buf = uv_buf_init(c->server->input, sizeof c->server->input);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);

static void update_reading(struct mw_conn *c) {
  if (c->closing) return;
  bool want = !c->kicked && c->rest.n < MW_CONN_REST_MAX && c->phase != MW_CONN_DRAIN;
  // The end of the input would be the end of a reply that is not out yet.
  if (c->phase == MW_CONN_LINGER && !c->shut) want = false;
  if (want == c->reading) return;
  c->reading = want;
  if (!want) {
    uv_read_stop(&c->stream.any);
  } else if (uv_read_start(&c->stream.any, on_alloc, on_read) != 0) {
    mw_conn_cut(c, false);
  }
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  struct mw_conn *c = stream->data;
  if (c->closing || n == 0) return;
  if (n < 0) {
    mw_conn_cut(c, false);
  } else if (c->phase == MW_CONN_LINGER) {
    return;
  } else if (c->ssl != NULL) {
    mw_tls_input(c, buf->base, (size_t)n);
  } else {
    mw_conn_feed(c, buf->base, (size_t)n);
  }
  update_reading(c);
}

// ---- parsing ----

static unsigned status_of(const struct mw_conn *c, llhttp_errno_t error) {
  if (c->refusal != 0) return c->refusal;
  return error == HPE_INVALID_VERSION || error == HPE_PAUSED_H2_UPGRADE ? 505 : 400;
}

static bool receiving(const struct mw_conn *c) { return !c->closing && c->phase <= MW_CONN_BODY; }

// Whitespace, chunk extensions and trailers are kept nowhere, but they are not free either.
static bool too_much_framing(const struct mw_conn *c) {
  if (c->exchange == NULL) return false;
  uint64_t body = c->exchange->body.n;
  return c->received - body > c->server->config.header_max + FRAMING_FACTOR * body;
}

static void dispatch(struct mw_conn *c) {
  struct mw_exchange *x = c->exchange;
  c->phase = MW_CONN_OWNED;
  c->scan = MW_SCAN_BEFORE;
  c->received = 0;
  no_deadline(c);
  c->server->config.on_request(c->server->config.ctx, x);
}

static void say_continue(struct mw_conn *c) {
  struct mw_exchange *x = c->exchange;
  if (x == NULL || c->phase != MW_CONN_BODY || !x->expects || x->body.n > 0) return;
  x->expects = false;
  static char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
  uv_buf_t part = uv_buf_init(text, sizeof text - 1);
  mw_conn_send(c, &part, 1);
}

// Returns how many bytes were taken: all, unless a reply is awaited now.
static size_t parse(struct mw_conn *c, const char *p, size_t n) {
  size_t taken = 0;
  while (taken < n && receiving(c)) {
    const char *from = p + taken;
    if (!mw_conn_scan_head(c, from, n - taken)) {
      mw_conn_refuse(c, 400);
      break;
    }
    llhttp_errno_t error = llhttp_execute(&c->parser, from, n - taken);
    size_t used = n - taken;
    if (error == HPE_PAUSED) used = (size_t)(llhttp_get_error_pos(&c->parser) - from);
    taken += used;
    c->received += used;
    if (error != HPE_OK && error != HPE_PAUSED) {
      mw_conn_refuse(c, status_of(c, error));
    } else if (too_much_framing(c)) {
      mw_conn_refuse(c, 431);
    } else if (error == HPE_PAUSED) {
      llhttp_resume(&c->parser);
      dispatch(c);
    } else {
      say_continue(c);
    }
  }
  return taken;
}

static void parse_rest(struct mw_conn *c) {
  c->parsing = true;
  size_t taken = parse(c, c->rest.p, c->rest.n);
  c->parsing = false;
  if (c->closing || c->phase == MW_CONN_LINGER) return;
  size_t left = c->rest.n - taken;
  if (left == 0) {
    mw_buf_deinit(&c->rest);
  } else if (taken > 0) {
    memmove(c->rest.p, c->rest.p + taken, left);
    c->rest.n = left;
  }
}

void mw_conn_feed(struct mw_conn *c, const char *p, size_t n) {
  if (c->closing || c->phase == MW_CONN_LINGER) return;
  size_t taken = 0;
  if (c->rest.n == 0 && receiving(c)) {
    c->parsing = true;
    taken = parse(c, p, n);
    c->parsing = false;
    if (c->closing || c->phase == MW_CONN_LINGER) return;
  }
  // Never fails: reading stops at MW_CONN_REST_MAX, and one read brings its own size at the most,
  // and a TLS record that was incomplete before.
  if (taken < n && mw_buf_add(&c->rest, p + taken, n - taken) < 0) mw_conn_cut(c, true);
}

void mw_conn_settle(struct mw_conn *c) {
  if (c->closing) return;
  bool drained = mw_conn_backlog(c) == 0 && !c->writing;
  if (c->phase == MW_CONN_LINGER || c->phase == MW_CONN_DRAIN) {
    if (!drained) {
      drain_deadline(c);
    } else if (c->phase == MW_CONN_LINGER) {
      shut_down(c);
    } else if (c->hang_up || c->server->closing) {
      mw_conn_hang_up(c);
    } else {
      c->phase = MW_CONN_IDLE;
      mw_conn_deadline(c, c->server->config.idle_seconds);
      // Not here: the next request must not come from inside the reply to the last one.
      if (c->rest.n > 0 && !c->parsing) {
        c->kicked = true;
        uv_timer_start(&c->timer, on_timer, 0, 0);
      }
    }
  }
  if (!c->parsing) update_reading(c);
}

// ---- time ----

static void on_deadline(struct mw_conn *c) {
  switch (c->phase) {
    case MW_CONN_HEAD:
    case MW_CONN_BODY:
      mw_conn_refuse(c, 408);
      break;
    case MW_CONN_IDLE:
      if (c->ssl == NULL || c->greeted) {
        mw_conn_hang_up(c);
      } else {
        mw_conn_cut(c, false);
      }
      break;
    case MW_CONN_DRAIN:
    case MW_CONN_LINGER:
      // Slow is fine, standing still is not.
      if (!c->shut && mw_conn_backlog(c) < c->drain_mark) {
        drain_deadline(c);
      } else {
        mw_conn_cut(c, !c->shut);
      }
      break;
    case MW_CONN_OWNED:
    case MW_CONN_STREAM:
      break;
  }
}

static void on_timer(uv_timer_t *timer) {
  struct mw_conn *c = timer->data;
  if (c->closing) return;
  if (c->kicked) {
    c->kicked = false;
    mw_conn_deadline(c, c->server->config.idle_seconds);
    parse_rest(c);
    mw_conn_settle(c);
  } else if (!c->overdue) {
    c->overdue = true;
    // With 0, libuv would call it again before it polls.
    uv_timer_start(&c->timer, on_timer, OVERDUE_MS, 0);
  } else {
    on_deadline(c);
  }
}

// ---- the beginning ----

// Closes the oldest connection on which nothing is asked; false when there is none but the newest.
static bool displace(struct mw_http_server *s) {
  struct mw_conn *oldest = NULL;
  for (struct mw_conn *c = s->conns->next; c != NULL; c = c->next)
    if (!c->closing && (c->phase == MW_CONN_IDLE || c->phase == MW_CONN_HEAD)) oldest = c;
  if (oldest != NULL) mw_conn_cut(oldest, false);
  return oldest != NULL;
}

// Makes the stream of a connected socket; false when libuv refuses it.
static bool open_stream(struct mw_conn *c, uv_loop_t *loop, int fd) {
  if (c->server->path != NULL) {
    uv_pipe_init(loop, &c->stream.pipe, 0);
    return uv_pipe_open(&c->stream.pipe, fd) == 0;
  }
  uv_tcp_init(loop, &c->stream.tcp);
  if (uv_tcp_open(&c->stream.tcp, fd) != 0) return false;
  uv_tcp_nodelay(&c->stream.tcp, 1);
  uv_tcp_keepalive(&c->stream.tcp, 1, KEEPALIVE_SECONDS);
  return true;
}

void mw_conn_open(struct mw_http_server *s, int fd) {
  struct mw_conn *c = mw_xcalloc(1, sizeof *c);
  mw_live_add(MW_LIVE_HANDLE, 1);
  c->server = s;
  c->stream.any.data = c->timer.data = c;
  c->open_handles = 2;
  mw_buf_init(&c->rest, MW_CONN_REST_MAX + 2 * MW_CONN_READ_MAX);
  mw_buf_init(&c->out, SIZE_MAX / 4);
  mw_buf_init(&c->inflight, SIZE_MAX / 4);
  llhttp_init(&c->parser, HTTP_REQUEST, &mw_request_settings);
  c->parser.data = c;
  uv_loop_t *loop = mw_loop_uv(s->config.loop);
  bool opened = open_stream(c, loop, fd);
  uv_timer_init(loop, &c->timer);
  c->next = s->conns;
  if (c->next != NULL) c->next->prev = c;
  s->conns = c;
  s->count++;
  if (!opened) {
    close(fd);
    mw_conn_cut(c, false);
    return;
  }
  bool full = s->count > s->config.connections_max && !(s->config.displaces && displace(s));
  if (s->config.tls != NULL && !full) c->ssl = mw_tls_accept(s->config.tls);
  if (s->config.tls != NULL && c->ssl == NULL) {
    mw_conn_cut(c, false);
  } else if (full) {
    mw_conn_refuse(c, 503);
  } else {
    mw_conn_deadline(c, c->ssl != NULL ? s->config.header_seconds : s->config.idle_seconds);
    update_reading(c);
  }
}
