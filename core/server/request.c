// SPDX-License-Identifier: Apache-2.0
// What llhttp reports becomes an exchange. It delivers names and values in fragments, so they are
// collected in one buffer whose ceiling is that of the head.
#include <arpa/inet.h>
#include <strings.h>

#include "base/alloc.h"
#include "server/internal.h"

enum { LINE_COST = 4 };  // what a header costs beside its name and value

static struct mw_conn *conn_of(llhttp_t *parser) { return parser->data; }

// Ends the parsing; `status` is what the client hears.
static int refuse(llhttp_t *parser, unsigned status) {
  conn_of(parser)->refusal = status;
  return HPE_USER;
}

static struct mw_exchange *exchange_new(struct mw_conn *c) {
  struct mw_exchange *x = mw_xcalloc(1, sizeof *x);
  x->conn = c;
  mw_buf_init(&x->head, c->server->config.header_max);
  mw_buf_init(&x->body, c->server->config.body_max);
  mw_live_add(MW_LIVE_REQUEST, 1);
  return x;
}

void mw_exchange_free(struct mw_exchange *x) {
  if (x == NULL) return;
  mw_buf_deinit(&x->head);
  mw_buf_deinit(&x->body);
  mw_free(x->headers);
  mw_free(x);
  mw_live_add(MW_LIVE_REQUEST, -1);
}

static int on_message_begin(llhttp_t *parser) {
  struct mw_conn *c = conn_of(parser);
  mw_exchange_free(c->exchange);
  c->exchange = exchange_new(c);
  c->phase = MW_CONN_HEAD;
  mw_conn_deadline(c, c->server->config.header_seconds);
  return 0;
}

static int on_url(llhttp_t *parser, const char *at, size_t n) {
  struct mw_exchange *x = conn_of(parser)->exchange;
  if (mw_buf_add(&x->head, at, n) < 0) return refuse(parser, 431);
  x->target_n += (uint32_t)n;
  return 0;
}

static int on_header_field(llhttp_t *parser, const char *at, size_t n) {
  struct mw_exchange *x = conn_of(parser)->exchange;
  if (x->head_done) return 0;
  if (x->header_count == 0 || x->in_value) {
    if (x->header_count == x->header_cap) {
      x->header_cap = x->header_cap > 0 ? x->header_cap * 2 : 16;
      x->headers = mw_xrealloc(x->headers, x->header_cap * sizeof *x->headers);
    }
    x->headers[x->header_count++] = (struct mw_header_span){.name = (uint32_t)x->head.n};
    x->in_value = false;
  }
  size_t lines = x->header_count * LINE_COST;
  if (lines + x->head.n + n > x->head.limit || mw_buf_add(&x->head, at, n) < 0) {
    return refuse(parser, 431);
  }
  x->headers[x->header_count - 1].name_n += (uint32_t)n;
  return 0;
}

static int on_header_field_complete(llhttp_t *parser) {
  struct mw_exchange *x = conn_of(parser)->exchange;
  if (x->head_done) return 0;
  // llhttp 8 lets a header without a name pass.
  if (x->header_count == 0 || x->in_value || x->headers[x->header_count - 1].name_n == 0) {
    return refuse(parser, 400);
  }
  x->in_value = true;
  x->headers[x->header_count - 1].value = (uint32_t)x->head.n;
  return 0;
}

static int on_header_value(llhttp_t *parser, const char *at, size_t n) {
  struct mw_exchange *x = conn_of(parser)->exchange;
  if (x->head_done) return 0;
  if (mw_buf_add(&x->head, at, n) < 0) return refuse(parser, 431);
  x->headers[x->header_count - 1].value_n += (uint32_t)n;
  return 0;
}

static struct mw_slice name_at(const struct mw_exchange *x, size_t i) {
  return mw_slice(x->head.p + x->headers[i].name, x->headers[i].name_n);
}

static struct mw_slice value_at(const struct mw_exchange *x, size_t i) {
  struct mw_slice value = mw_slice(x->head.p + x->headers[i].value, x->headers[i].value_n);
  while (value.n > 0 && (value.p[value.n - 1] == ' ' || value.p[value.n - 1] == '\t')) value.n--;
  return value;
}

static bool same_word(struct mw_slice a, const char *word) {
  return a.n == strlen(word) && strncasecmp(a.p, word, a.n) == 0;
}

static size_t count_of(const struct mw_exchange *x, const char *name) {
  size_t count = 0;
  for (size_t i = 0; i < x->header_count; i++) count += same_word(name_at(x, i), name);
  return count;
}

// "http://host/path" is as good as "/path". False when the target is neither that nor "*".
static bool take_target(struct mw_exchange *x) {
  const char *p = x->head.p;
  const char *end = p + x->target_n;
  if (x->target_n == 0) return false;
  if (*p == '/' || (x->target_n == 1 && *p == '*')) return true;
  const char *host = memmem(p, x->target_n, "://", 3);
  if (host == NULL) return false;
  const char *path = memchr(host + 3, '/', (size_t)(end - host - 3));
  if (path == NULL) return false;
  x->target = (uint32_t)(path - p);
  x->target_n = (uint32_t)(end - path);
  return true;
}

// The status that refuses the request, or 0.
static unsigned check_coding(const struct mw_exchange *x) {
  size_t codings = count_of(x, "transfer-encoding");
  if (codings == 0) return 0;
  if (x->old || codings > 1) return 400;
  return same_word(mw_exchange_header(x, "transfer-encoding"), "chunked") ? 0 : 501;
}

static unsigned check_head(struct mw_conn *c, struct mw_exchange *x) {
  const llhttp_t *parser = &c->parser;
  if (parser->http_major != 1) return 505;
  // Methods from PRI on belong to other protocols.
  if (parser->method == HTTP_CONNECT || parser->method >= HTTP_PRI) return 501;
  size_t hosts = count_of(x, "host");
  if (hosts > 1 || (hosts == 0 && !x->old)) return 400;
  if (!take_target(x)) return 400;
  unsigned status = check_coding(x);
  if (status != 0) return status;
  if ((parser->flags & F_CONTENT_LENGTH) && parser->content_length > x->body.limit) return 413;
  struct mw_slice expect = mw_exchange_header(x, "expect");
  x->expects = expect.p != NULL && !x->old;
  if (x->expects && !same_word(expect, "100-continue")) return 417;
  return 0;
}

static int on_headers_complete(llhttp_t *parser) {
  struct mw_conn *c = conn_of(parser);
  struct mw_exchange *x = c->exchange;
  // Nobody here speaks another protocol. A paused upgrade would outlive the pause.
  parser->upgrade = 0;
  x->head_done = true;
  x->old = parser->http_major == 1 && parser->http_minor == 0;
  x->no_body = parser->method == HTTP_HEAD;
  unsigned status = check_head(c, x);
  if (status != 0) {
    c->refusal = status;
    return -1;
  }
  x->method = llhttp_method_name((llhttp_method_t)parser->method);
  c->phase = MW_CONN_BODY;
  mw_conn_deadline(c, c->server->config.body_seconds);
  return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t n) {
  if (mw_buf_add(&conn_of(parser)->exchange->body, at, n) < 0) return refuse(parser, 413);
  return 0;
}

static int on_message_complete(llhttp_t *parser) {
  conn_of(parser)->exchange->keep_alive = llhttp_should_keep_alive(parser);
  return HPE_PAUSED;
}

const llhttp_settings_t mw_request_settings = {
    .on_message_begin = on_message_begin,
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_field_complete = on_header_field_complete,
    .on_header_value = on_header_value,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

bool mw_conn_scan_head(struct mw_conn *c, const char *p, size_t n) {
  for (size_t i = 0; i < n && c->scan != MW_SCAN_OVER; i++) {
    bool blank = p[i] == ' ' || p[i] == '\t';
    if (p[i] == '\n') {
      if (c->scan == MW_SCAN_LINE_START) c->scan = MW_SCAN_OVER;
      if (c->scan == MW_SCAN_IN_LINE) c->scan = MW_SCAN_LINE_START;
    } else if (p[i] != '\r') {
      if (blank && c->scan == MW_SCAN_LINE_START) return false;
      c->scan = MW_SCAN_IN_LINE;
    }
  }
  return true;
}

struct mw_slice mw_exchange_method(const struct mw_exchange *x) {
  return mw_slice_str(x->method);
}

struct mw_slice mw_exchange_target(const struct mw_exchange *x) {
  return mw_slice(x->head.p + x->target, x->target_n);
}

struct mw_slice mw_exchange_body(const struct mw_exchange *x) {
  return mw_buf_slice(&x->body);
}

bool mw_exchange_header_at(const struct mw_exchange *x, size_t i, struct mw_slice *name,
                           struct mw_slice *value) {
  if (i >= x->header_count) return false;
  *name = name_at(x, i);
  *value = value_at(x, i);
  return true;
}

struct mw_slice mw_exchange_header(const struct mw_exchange *x, const char *name) {
  for (size_t i = 0; i < x->header_count; i++) {
    if (same_word(name_at(x, i), name)) return value_at(x, i);
  }
  return mw_slice(NULL, 0);
}

bool mw_exchange_is_local(const struct mw_exchange *x) {
  struct sockaddr_storage peer;
  int n = sizeof peer;
  if (x->conn->server->path != NULL) return true;
  if (uv_tcp_getpeername(&x->conn->stream.tcp, (struct sockaddr *)&peer, &n) != 0) return false;
  if (peer.ss_family == AF_INET) {
    return ntohl(((struct sockaddr_in *)&peer)->sin_addr.s_addr) >> 24 == 127;
  }
  if (peer.ss_family != AF_INET6) return false;
  const struct in6_addr *v6 = &((struct sockaddr_in6 *)&peer)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

void *mw_exchange_data(const struct mw_exchange *x) { return x->data; }

void mw_exchange_set_data(struct mw_exchange *x, void *data) { x->data = data; }
