// SPDX-License-Identifier: Apache-2.0
#include "script/control.h"

#include <stdio.h>

#include "base/alloc.h"
#include "script/control_internal.h"
#include "script/host.h"

enum { CONNECTIONS_MAX = 16, BODY_MAX = 1024 };

#define JSON "Content-Type: application/json\r\n"

// ---- answers ----

void mw_control_refuse(struct mw_exchange *x, unsigned status, const char *sentence) {
  struct mw_json_out o;
  mw_json_open(&o, MW_CONTROL_ANSWER_MAX);
  mw_json_begin(&o, NULL, '{');
  mw_json_put_str(&o, "error", sentence);
  mw_json_end(&o, '}');
  mw_exchange_reply(x, status, MW_SLICE(JSON), mw_buf_slice(&o.text));
  mw_json_close(&o);
}

void mw_control_answer(struct mw_exchange *x, struct mw_json_out *o) {
  if (mw_json_ok(o)) {
    mw_exchange_reply(x, 200, MW_SLICE(JSON), mw_buf_slice(&o->text));
  } else {
    mw_control_refuse(x, 500, "there is more to tell than one answer may hold");
  }
  mw_json_close(o);
}

// ---- routes ----

static const struct route {
  const char *path, *method;
  mw_control_serve serve;
} routes[] = {
    {"/status", "GET", mw_control_status},
    {"/reload", "POST", mw_control_reload},
    {"/rollback", "POST", mw_control_rollback},
    {"/hold", "POST", mw_control_hold},
    {"/why", "GET", mw_control_why},
    {"/enqueue", "POST", mw_control_enqueue},
    {"/top", "GET", mw_control_top},
};

static void on_request(void *ctx, struct mw_exchange *x) {
  struct mw_slice target = mw_exchange_target(x);
  const char *query = memchr(target.p, '?', target.n);
  struct mw_slice path = {target.p, query != NULL ? (size_t)(query - target.p) : target.n};
  for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
    const struct route *r = &routes[i];
    if (!mw_slice_is(path, r->path)) continue;
    if (mw_slice_is(mw_exchange_method(x), r->method)) {
      r->serve(ctx, x);
    } else {
      mw_control_refuse(x, 405, r->method[0] == 'G' ? "this is for GET" : "this is for POST");
    }
    return;
  }
  mw_control_refuse(x, 404,
                    "there are /status, /top, /why, /enqueue, /reload, /rollback and /hold");
}

static void on_gone(void *ctx, struct mw_exchange *x) { mw_control_forget(ctx, x); }

// ---- life ----

struct mw_control *mw_control_new(struct mw_host *host, const char *path, struct mw_err *err) {
  struct mw_control *c = mw_xcalloc(1, sizeof *c);
  c->host = host;
  int rc = 0;
  if (path[0] == '\0') {
    rc = mw_control_default_path(c->path, err);
  } else if (snprintf(c->path, sizeof c->path, "%s", path) >= (int)sizeof c->path) {
    rc = mw_err_set(err, MW_EINVAL, "%s is too long for the path of a socket", path);
  }
  if (rc == 0) {
    mw_control_remove_stale(c->path);
    c->http = mw_http_server_new(&(struct mw_http_server_config){.loop = mw_host_loop(host),
                                                                 .path = c->path,
                                                                 .on_request = on_request,
                                                                 .on_gone = on_gone,
                                                                 .ctx = c,
                                                                 .body_max = BODY_MAX,
                                                                 .connections_max = CONNECTIONS_MAX,
                                                                 .displaces = true},
                                 err);
  }
  if (c->http == NULL) {
    mw_free(c);
    return NULL;
  }
  mw_control_listen(c);
  return c;
}

const char *mw_control_path(const struct mw_control *c) { return c->path; }

void mw_control_over(struct mw_control *c) {
  mw_loop_cb done = c->done;
  void *ctx = c->done_ctx;
  mw_free(c);
  done(ctx);
}

static void on_closed(void *arg) {
  struct mw_control *c = arg;
  c->closed = true;
  if (!c->look_posted) mw_control_over(c);
}

void mw_control_close(struct mw_control *c, mw_loop_cb done, void *ctx) {
  c->done = done;
  c->done_ctx = ctx;
  mw_control_give_up(c);
  mw_http_server_close(c->http, 0, on_closed, c);
}
