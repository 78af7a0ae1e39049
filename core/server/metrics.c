// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/metric.h"
#include "server/http_server.h"

enum {
  ADDRESS_ROOM = 64,
  SHOWN_ROOM = ADDRESS_ROOM + 16,
  METRICS_MAX = 64 * 1024 * 1024,
  HEALTH_MAX = 64 * 1024,
  CONNECTIONS_MAX = 64,
  BODY_MAX = 1024
};

#define TEXT "Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n"

struct mw_metrics_server {
  struct mw_http_server *http;
  struct mw_health *health;
  char address[SHOWN_ROOM];
  mw_metrics_status_cb status;  // NULL: nothing to tell
  void *status_ctx;
  mw_loop_cb done;
  void *arg;
};

static void reply(struct mw_exchange *x, unsigned status, const char *headers, const char *body) {
  mw_exchange_reply(x, status, mw_slice_str(headers), mw_slice_str(body));
}

static void serve_metrics(struct mw_metrics_server *s, struct mw_exchange *x) {
  (void)s;
  struct mw_buf out;
  mw_buf_init(&out, METRICS_MAX);
  if (mw_metric_write(&out) < 0) {
    reply(x, 500, TEXT, "there are more metrics than one answer may hold\n");
  } else {
    mw_exchange_reply(x, 200,
                      MW_SLICE("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
                      mw_buf_slice(&out));
  }
  mw_buf_deinit(&out);
}

static void serve_status(struct mw_metrics_server *s, struct mw_exchange *x) {
  struct mw_buf out;
  mw_buf_init(&out, METRICS_MAX);
  if (s->status == NULL || s->status(s->status_ctx, &out) < 0) {
    reply(x, 503, TEXT, "there is no status\n");
  } else {
    mw_exchange_reply(x, 200, MW_SLICE("Content-Type: application/json\r\n"), mw_buf_slice(&out));
  }
  mw_buf_deinit(&out);
}

// Whether the query of a target has this parameter, with or without a value.
static bool has_parameter(struct mw_slice target, const char *name) {
  const char *end = target.p + target.n;
  const char *p = memchr(target.p, '?', target.n);
  size_t n = strlen(name);
  while (p != NULL && ++p < end) {
    size_t left = (size_t)(end - p);
    if (left >= n && memcmp(p, name, n) == 0 && (left == n || p[n] == '=' || p[n] == '&')) {
      return true;
    }
    p = memchr(p, '&', left);
  }
  return false;
}

static void serve_probe(struct mw_metrics_server *s, struct mw_exchange *x, unsigned speaks_for,
                        const char *name, unsigned failed) {
  struct mw_buf lines, body;
  mw_buf_init(&lines, HEALTH_MAX);
  mw_buf_init(&body, HEALTH_MAX + 64);
  bool ok = mw_health_run(s->health, speaks_for, &lines);
  if (ok && !has_parameter(mw_exchange_target(x), "verbose")) {
    reply(x, 200, TEXT, "ok");
  } else {
    int full = mw_buf_printf(&body, "%s%s check %s\n", lines.n > 0 ? lines.p : "", name,
                             ok ? "passed" : "failed");
    reply(x, ok ? 200 : failed, TEXT, full == 0 ? body.p : name);
  }
  mw_buf_deinit(&lines);
  mw_buf_deinit(&body);
}

static void serve_healthz(struct mw_metrics_server *s, struct mw_exchange *x) {
  serve_probe(s, x, MW_HEALTH_LIVE, "healthz", 500);
}

static void serve_livez(struct mw_metrics_server *s, struct mw_exchange *x) {
  serve_probe(s, x, MW_HEALTH_LIVE, "livez", 500);
}

static void serve_readyz(struct mw_metrics_server *s, struct mw_exchange *x) {
  serve_probe(s, x, MW_HEALTH_READY, "readyz", 503);
}

static void reply_level(struct mw_exchange *x) {
  char text[16];
  snprintf(text, sizeof text, "%s\n", mw_log_level_name(mw_log_get_level()));
  reply(x, 200, TEXT, text);
}

static void show_level(struct mw_metrics_server *s, struct mw_exchange *x) {
  (void)s;
  reply_level(x);
}

static void set_level(struct mw_metrics_server *s, struct mw_exchange *x) {
  (void)s;
  struct mw_slice body = mw_exchange_body(x);
  while (body.n > 0 && (body.p[body.n - 1] == '\n' || body.p[body.n - 1] == '\r')) body.n--;
  int level = mw_log_level_find(body);
  if (level < 0) {
    reply(x, 400, TEXT, "a level is error, warn, info or debug\n");
    return;
  }
  mw_log_set_level((enum mw_log_level)level);
  mw_log(MW_LOG_INFO, "log level set", MW_SLC("level", body));
  reply_level(x);
}

typedef void (*serve_cb)(struct mw_metrics_server *s, struct mw_exchange *x);

static const struct route {
  const char *path;
  serve_cb get, put;  // put may be NULL
  bool local;         // for clients on this machine only
} routes[] = {
    {"/metrics", serve_metrics, NULL, false}, {"/healthz", serve_healthz, NULL, false},
    {"/livez", serve_livez, NULL, false},     {"/readyz", serve_readyz, NULL, false},
    {"/status", serve_status, NULL, false},   {"/debug/loglevel", show_level, set_level, true},
};

static const struct route *find_route(struct mw_slice target) {
  const char *query = memchr(target.p, '?', target.n);
  struct mw_slice path = {target.p, query != NULL ? (size_t)(query - target.p) : target.n};
  for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
    if (mw_slice_is(path, routes[i].path)) return &routes[i];
  }
  return NULL;
}

static void on_request(void *ctx, struct mw_exchange *x) {
  struct mw_metrics_server *s = ctx;
  const struct route *r = find_route(mw_exchange_target(x));
  if (r == NULL) {
    reply(x, 404, TEXT,
          "there are /metrics, /healthz, /livez, /readyz, /status and /debug/loglevel\n");
    return;
  }
  struct mw_slice method = mw_exchange_method(x);
  bool put = mw_slice_is(method, "PUT") && r->put != NULL;
  if (!put && !mw_slice_is(method, "GET") && !mw_slice_is(method, "HEAD")) {
    const char *headers =
        r->put != NULL ? TEXT "Allow: GET, HEAD, PUT\r\n" : TEXT "Allow: GET, HEAD\r\n";
    reply(x, 405, headers, "method not allowed\n");
  } else if (r->local && !mw_exchange_is_local(x)) {
    reply(x, 403, TEXT, "this is for clients on the same machine only\n");
  } else {
    (put ? r->put : r->get)(s, x);
  }
}

// Every request is answered at once.
static void on_gone(void *ctx, struct mw_exchange *x) {
  (void)ctx;
  (void)x;
}

// ADDRESS:PORT in two. False when it is none; the command line has been checked before.
static bool split(const char *text, char host[ADDRESS_ROOM], unsigned *port) {
  const char *colon = strrchr(text, ':');
  if (colon == NULL || colon[1] == '\0') return false;
  const char *from = text, *to = colon;
  if (to - from >= 2 && *from == '[' && to[-1] == ']') {
    from++;
    to--;
  }
  if (to - from >= ADDRESS_ROOM) return false;
  snprintf(host, ADDRESS_ROOM, "%.*s", (int)(to - from), from);
  if (to == from) snprintf(host, ADDRESS_ROOM, "0.0.0.0");
  char *end;
  unsigned long number = strtoul(colon + 1, &end, 10);
  *port = (unsigned)number;
  return *end == '\0' && number <= 65535;
}

struct mw_metrics_server *mw_metrics_listen(struct mw_loop *loop, const char *address,
                                            struct mw_health *health, struct mw_err *err) {
  char host[ADDRESS_ROOM];
  unsigned port;
  if (!split(address, host, &port)) {
    mw_err_set(err, MW_EINVAL, "\"%s\" is no ADDRESS:PORT to listen on", address);
    return NULL;
  }
  struct mw_metrics_server *s = mw_xcalloc(1, sizeof *s);
  s->health = health;
  struct mw_http_server_config config = {
      .loop = loop,
      .host = host,
      .port = port,
      .on_request = on_request,
      .on_gone = on_gone,
      .ctx = s,
      .body_max = BODY_MAX,
      .connections_max = CONNECTIONS_MAX,
      .displaces = true,  // who only connects must not keep the probes out
  };
  s->http = mw_http_server_new(&config, err);
  if (s->http == NULL) {
    mw_free(s);
    return NULL;
  }
  bool v6 = strchr(host, ':') != NULL;
  snprintf(s->address, sizeof s->address, v6 ? "[%s]:%u" : "%s:%u", host,
           mw_http_server_port(s->http));
  return s;
}

void mw_metrics_on_status(struct mw_metrics_server *s, mw_metrics_status_cb cb, void *ctx) {
  s->status = cb;
  s->status_ctx = ctx;
}

const char *mw_metrics_address(const struct mw_metrics_server *s) { return s->address; }

static void on_closed(void *arg) {
  struct mw_metrics_server *s = arg;
  mw_loop_cb done = s->done;
  void *done_arg = s->arg;
  mw_free(s);
  done(done_arg);
}

void mw_metrics_close(struct mw_metrics_server *s, mw_loop_cb done, void *arg) {
  s->done = done;
  s->arg = arg;
  mw_http_server_close(s->http, 0, on_closed, s);
}
