// SPDX-License-Identifier: Apache-2.0
// Replies. What the socket takes goes out at once, the rest by one write at a time; what comes
// meanwhile is collected behind it. Only a stream can grow without end, so only a stream is cut.
#include <stdio.h>
#include <time.h>

#include "base/alloc.h"
#include "server/internal.h"

enum {
  HEAD_MAX = 512,              // without the owner's headers
  STREAM_SNDBUF = 128 * 1024,  // else the kernel hides megabytes from the backlog
  BUFFER_KEPT = 64 * 1024      // larger ones go back to malloc when they are empty
};

static void on_written(uv_write_t *request, int status);

size_t mw_conn_backlog(const struct mw_conn *c) {
  return c->out.n + (c->writing ? c->stream.any.write_queue_size : 0);
}

// ---- bytes ----

static void start_write(struct mw_conn *c) {
  struct mw_buf empty = c->inflight;
  c->inflight = c->out;
  c->out = empty;
  c->writing = true;
  uv_buf_t buf = {.base = c->inflight.p, .len = c->inflight.n};
  c->write.data = c;
  if (uv_write(&c->write, &c->stream.any, &buf, 1, on_written) != 0) {
    c->writing = false;
    mw_conn_cut(c, true);
  }
}

static void on_written(uv_write_t *request, int status) {
  struct mw_conn *c = request->data;
  c->writing = false;
  if (c->closing) return;
  if (status < 0) {
    mw_conn_cut(c, true);
    return;
  }
  if (c->inflight.cap > BUFFER_KEPT) mw_buf_deinit(&c->inflight);
  mw_buf_reset(&c->inflight);
  if (c->out.n > 0) {
    start_write(c);
    return;
  }
  mw_exchange_cb on_drain = c->server->config.on_drain;
  if (c->phase == MW_CONN_STREAM && on_drain != NULL) {
    on_drain(c->server->config.ctx, c->exchange);
  } else {
    mw_conn_settle(c);
  }
}

void mw_conn_send_raw(struct mw_conn *c, const uv_buf_t *parts, unsigned count) {
  if (c->closing) return;
  size_t sent = 0;
  if (!c->writing) {
    int rc = uv_try_write(&c->stream.any, parts, count);
    if (rc < 0 && rc != UV_EAGAIN) {
      mw_conn_cut(c, true);
      return;
    }
    sent = rc > 0 ? (size_t)rc : 0;
  }
  for (unsigned i = 0; i < count; i++) {
    size_t skip = sent < parts[i].len ? sent : parts[i].len;
    sent -= skip;
    if (skip < parts[i].len && mw_buf_add(&c->out, parts[i].base + skip, parts[i].len - skip) < 0) {
      mw_conn_cut(c, true);
      return;
    }
  }
  if (c->out.n > 0 && !c->writing) start_write(c);
}

void mw_conn_send(struct mw_conn *c, const uv_buf_t *parts, unsigned count) {
  if (c->closing) return;
  if (c->ssl != NULL) {
    mw_tls_send(c, parts, count);
  } else {
    mw_conn_send_raw(c, parts, count);
  }
}

static uv_buf_t part_of(struct mw_slice s) { return (uv_buf_t){.base = (char *)s.p, .len = s.n}; }

// ---- heads ----

static const char *reason(unsigned status) {
  static const struct {
    unsigned status;
    const char *text;
  } reasons[] = {
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {412, "Precondition Failed"},
      {413, "Request Entity Too Large"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {422, "Unprocessable Entity"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
  };
  for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
    if (reasons[i].status == status) return reasons[i].text;
  }
  return "Status";
}

static const char *date(struct mw_http_server *s) {
  time_t now = time(NULL);
  if (s->date_second != (int64_t)now) {
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(s->date, sizeof s->date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    s->date_second = (int64_t)now;
  }
  return s->date;
}

static bool bodiless(unsigned status) { return status == 204 || status == 304 || status < 200; }

// How the connection goes on after this reply, as the client must hear it.
static const char *connection_line(const struct mw_exchange *x, bool keep) {
  if (!keep) return "Connection: close\r\n";
  return x->old ? "Connection: keep-alive\r\n" : "";
}

static size_t begin_head(struct mw_http_server *s, char *head, unsigned status) {
  int n =
      snprintf(head, HEAD_MAX, "HTTP/1.1 %u %s\r\nDate: %s\r\n", status, reason(status), date(s));
  return (size_t)n;
}

// The exchange is its owner's no longer.
static void complete(struct mw_exchange *x) {
  struct mw_conn *c = x->conn;
  c->exchange = NULL;
  c->phase = MW_CONN_DRAIN;
  mw_exchange_free(x);
  mw_conn_settle(c);
}

// ---- whole replies ----

void mw_exchange_reply(struct mw_exchange *x, unsigned status, struct mw_slice headers,
                       struct mw_slice body) {
  if (x->gone) return;
  struct mw_conn *c = x->conn;
  if (c->phase != MW_CONN_OWNED) mw_conn_cut(c, true);  // a second head within a stream
  bool keep = x->keep_alive && !c->server->closing;
  c->hang_up = !keep;
  char head[HEAD_MAX], tail[HEAD_MAX];
  size_t head_n = begin_head(c->server, head, status);
  int tail_n = 0;
  if (bodiless(status)) {
    tail_n = snprintf(tail, sizeof tail, "%s\r\n", connection_line(x, keep));
    body.n = 0;
  } else {
    tail_n = snprintf(tail, sizeof tail, "Content-Length: %zu\r\n%s\r\n", body.n,
                      connection_line(x, keep));
    if (x->no_body) body.n = 0;
  }
  uv_buf_t parts[] = {part_of(mw_slice(head, head_n)), part_of(headers),
                      part_of(mw_slice(tail, (size_t)tail_n)), part_of(body)};
  mw_conn_send(c, parts, 4);
  complete(x);
}

void mw_conn_refuse(struct mw_conn *c, unsigned status) {
  if (c->closing || c->phase > MW_CONN_BODY) return;
  const struct mw_http_server *s = c->server;
  struct mw_slice type = MW_SLICE("text/plain; charset=utf-8");
  char text[64];
  int text_n = snprintf(text, sizeof text, "%u %s\n", status, reason(status));
  struct mw_slice body = mw_slice(text, (size_t)text_n);
  if (status == 413 && s->oversize_body != NULL) {
    body = mw_slice_str(s->oversize_body);
    if (s->oversize_type != NULL) type = mw_slice_str(s->oversize_type);
  }
  char head[HEAD_MAX], tail[HEAD_MAX];
  size_t head_n = begin_head(c->server, head, status);
  int tail_n = snprintf(tail, sizeof tail,
                        "\r\nContent-Length: %zu\r\nCache-Control: no-cache, private\r\n"
                        "Connection: close\r\n\r\n",
                        body.n);
  uv_buf_t parts[] = {part_of(mw_slice(head, head_n)), part_of(MW_SLICE("Content-Type: ")),
                      part_of(type), part_of(mw_slice(tail, (size_t)tail_n)), part_of(body)};
  mw_conn_send(c, parts, 5);
  mw_exchange_free(c->exchange);
  c->exchange = NULL;
  mw_conn_hang_up(c);
}

// ---- streams ----

void mw_exchange_start(struct mw_exchange *x, unsigned status, struct mw_slice headers) {
  struct mw_conn *c = x->conn;
  if (x->gone || c->phase != MW_CONN_OWNED) return;
  c->phase = MW_CONN_STREAM;
  x->chunked = !x->old;
  bool keep = x->chunked && x->keep_alive && !c->server->closing;
  c->hang_up = !keep;
  if (c->closing) return;
  int sndbuf = STREAM_SNDBUF;
  uv_send_buffer_size((uv_handle_t *)&c->stream, &sndbuf);
  char head[HEAD_MAX], tail[HEAD_MAX];
  size_t head_n = begin_head(c->server, head, status);
  int tail_n =
      snprintf(tail, sizeof tail, "%s%s\r\n", x->chunked ? "Transfer-Encoding: chunked\r\n" : "",
               connection_line(x, keep));
  uv_buf_t parts[] = {part_of(mw_slice(head, head_n)), part_of(headers),
                      part_of(mw_slice(tail, (size_t)tail_n))};
  mw_conn_send(c, parts, 3);
}

bool mw_exchange_write(struct mw_exchange *x, struct mw_slice data) {
  struct mw_conn *c = x->conn;
  if (x->gone || c->closing || c->phase != MW_CONN_STREAM) return false;
  if (data.n == 0 || x->no_body) return true;
  size_t waiting = mw_conn_backlog(c);
  // A chunk is taken whole when nothing waits, whatever its size: its client is not slow.
  if (waiting > 0 && waiting + data.n > c->server->config.backlog_max) {
    mw_conn_cut(c, true);
    return false;
  }
  if (!x->chunked) {
    uv_buf_t part = part_of(data);
    mw_conn_send(c, &part, 1);
    return !c->closing;
  }
  char size[20];
  int n = snprintf(size, sizeof size, "%zx\r\n", data.n);
  uv_buf_t parts[] = {part_of(mw_slice(size, (size_t)n)), part_of(data), part_of(MW_SLICE("\r\n"))};
  mw_conn_send(c, parts, 3);
  return !c->closing;
}

void mw_exchange_finish(struct mw_exchange *x) {
  if (x->gone) return;
  struct mw_conn *c = x->conn;
  if (c->phase == MW_CONN_STREAM && x->chunked && !x->no_body) {
    uv_buf_t part = part_of(MW_SLICE("0\r\n\r\n"));
    mw_conn_send(c, &part, 1);
  } else if (c->phase != MW_CONN_STREAM) {
    mw_conn_cut(c, true);
  }
  complete(x);
}

void mw_exchange_reset(struct mw_exchange *x) {
  if (x->gone) return;
  mw_conn_cut(x->conn, true);
  complete(x);
}

size_t mw_exchange_backlog(const struct mw_exchange *x) { return mw_conn_backlog(x->conn); }
