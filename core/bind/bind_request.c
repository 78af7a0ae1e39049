// SPDX-License-Identifier: Apache-2.0
// kube._core.request: one request and its answer.
//
//   local call = request.new()
//   call:send(client, options)   awaits: `true`, or `false, err` when the task was cancelled
//   call:result()                status, headers, body; or nil and the error of the transport
//
// The answer is made into Lua values by result() and not by what wakes the task, because that may
// fail for want of memory, and then it must fail inside the script.
#include <ctype.h>

#include "base/alloc.h"
#include "bind/bind.h"
#include "bind/bind_client.h"
#include "bind/util.h"
#include "client/rest.h"
#include "script/generation.h"
#include "script/host.h"
#include "script/sched.h"

#define TYPE "kube.call"

enum { HEADERS_MAX = 64, NAME_MAX_BYTES = 256 };

// Held by its box and by the await.
struct call {
  unsigned refs;
  struct mw_task *task;  // that waits
  struct mw_rest *rest;  // under way
  struct mw_rest_result result;
};

static void unref(struct call *c) {
  if (--c->refs > 0) return;
  mw_buf_deinit(&c->result.head);
  mw_buf_deinit(&c->result.body);
  mw_free(c);
}

static int call_gc(lua_State *L) {
  void **box = luaL_checkudata(L, 1, TYPE);
  if (*box != NULL) unref(*box);
  *box = NULL;
  return 0;
}

static int request_new(lua_State *L) {
  void **box = mw_bind_new_box(L, TYPE, NULL);
  struct call *c = mw_xcalloc(1, sizeof *c);
  c->refs = 1;
  *box = c;
  return 1;
}

static void on_cancel(void *arg) {
  struct call *c = arg;
  mw_rest_cancel(&c->rest);
  unref(c);
}

static void on_result(void *ctx, struct mw_rest_result *result) {
  struct call *c = ctx;
  struct mw_task *t = c->task;
  c->rest = NULL;
  c->task = NULL;
  c->result = *result;
  result->head = result->body = (struct mw_buf){0};
  unref(c);
  lua_pushboolean(mw_task_stack(t), 1);
  mw_task_wake(t, 1);
}

// The array of { name, value } pairs in options.headers; what it points to stays in there.
static size_t read_headers(lua_State *L, int options, struct mw_http_header *out) {
  lua_getfield(L, options, "headers");  // [headers]
  size_t n = lua_isnil(L, -1) ? 0 : lua_objlen(L, -1);
  if (n > HEADERS_MAX) mw_bind_misuse(L, "more than %d headers", HEADERS_MAX);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, -1, (int)i + 1);
    lua_rawgeti(L, -1, 1);
    lua_rawgeti(L, -2, 2);  // [headers, pair, name, value]
    out[i] = (struct mw_http_header){luaL_checkstring(L, -2), luaL_checkstring(L, -1)};
    lua_pop(L, 3);
  }
  lua_pop(L, 1);
  return n;
}

static struct mw_slice opt_body(lua_State *L, int options) {
  lua_getfield(L, options, "body");
  struct mw_slice body = lua_isnil(L, -1) ? (struct mw_slice){0} : mw_bind_slice(L, -1);
  lua_pop(L, 1);
  return body;
}

// call:send(client or nil, { what, method, path, accept, content_type, body, timeout, headers,
// unfenced, retries, limit }). unfenced: a write that also a process sends that does not lead
// (rest.h); retries -1: none; limit: of the answer's body.
static int call_send(lua_State *L) {
  struct call *c = mw_bind_check_box(L, 1, TYPE);
  struct mw_endpoint *endpoint = mw_bind_endpoint(L, 2);
  luaL_checktype(L, 3, LUA_TTABLE);
  struct mw_http_header headers[HEADERS_MAX + 1];
  struct mw_request_options options = {
      .method = mw_bind_opt_string(L, 3, "method", "GET"),
      .path = mw_bind_opt_string(L, 3, "path", "/"),
      .accept = mw_bind_opt_string(L, 3, "accept", NULL),
      .content_type = mw_bind_opt_string(L, 3, "content_type", NULL),
      .body = opt_body(L, 3),
      .timeout = mw_bind_opt_seconds(L, 3, "timeout", 0),
      .headers = headers,
      .header_count = read_headers(L, 3, headers),
      .max_retries = (int)mw_bind_opt_count(L, 3, "retries", 0, -1, 100),
  };
  bool unfenced = mw_bind_opt_bool(L, 3, "unfenced", false);
  struct mw_generation *g = mw_generation_of(L);
  if (mw_generation_is_module(g)) unfenced = true;
  if (mw_generation_agent(g) != NULL) {
    headers[options.header_count++] = (struct mw_http_header){"User-Agent", mw_generation_agent(g)};
  }
  size_t limit = (size_t)mw_bind_opt_count(L, 3, "limit", 0, 0, MW_REST_BODY_MAX);
  struct mw_task *t = mw_task_check(L, mw_bind_opt_string(L, 3, "what", "a request"));
  if (t == NULL) return 2;
  struct mw_rest_pool *pool = mw_host_requests(mw_generation_host(g));
  c->refs++;
  c->task = t;
  c->rest = mw_rest_start(pool, endpoint, &options, unfenced, limit, on_result, c);
  return mw_task_await(L, t, on_cancel, c);
}

// Adds "Name: value" to the table on top: names in lower case, values of equal names joined.
static void add_header(lua_State *L, struct mw_slice line) {
  char name[NAME_MAX_BYTES];
  const char *colon = memchr(line.p, ':', line.n);
  size_t n = colon != NULL ? (size_t)(colon - line.p) : 0;
  if (n == 0 || n > sizeof name) return;
  for (size_t i = 0; i < n; i++) name[i] = (char)tolower((unsigned char)line.p[i]);
  const char *p = colon + 1, *stop = line.p + line.n;
  while (p < stop && isspace((unsigned char)*p)) p++;
  while (stop > p && isspace((unsigned char)stop[-1])) stop--;
  lua_pushlstring(L, name, n);
  lua_pushvalue(L, -1);
  lua_rawget(L, -3);  // [headers, name, known]
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    lua_pushlstring(L, p, (size_t)(stop - p));
  } else {
    lua_pushliteral(L, ", ");
    lua_pushlstring(L, p, (size_t)(stop - p));
    lua_concat(L, 3);
  }
  lua_rawset(L, -3);
}

static void push_headers(lua_State *L, struct mw_slice head) {
  lua_newtable(L);
  if (head.n == 0) return;
  const char *p = head.p, *end = head.p + head.n;
  while (p < end) {
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    const char *stop = newline != NULL ? newline : end;
    add_header(L, mw_slice(p, (size_t)(stop - p)));
    p = newline != NULL ? newline + 1 : end;
  }
}

static int call_result(lua_State *L) {
  struct call *c = mw_bind_check_box(L, 1, TYPE);
  if (c->result.err.code != 0) {
    lua_pushnil(L);
    mw_bind_push_error(L, &c->result.err);
    return 2;
  }
  lua_pushinteger(L, c->result.status);
  push_headers(L, mw_buf_slice(&c->result.head));
  lua_pushlstring(L, c->result.body.p != NULL ? c->result.body.p : "", c->result.body.n);
  mw_buf_deinit(&c->result.body);
  return 3;
}

void mw_bind_request(struct lua_State *L) {
  static const luaL_Reg functions[] = {{"new", request_new}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{"send", call_send}, {"result", call_result}, {NULL, NULL}};
  mw_bind_new_type(L, TYPE, methods, call_gc);
  lua_newtable(L);
  luaL_register(L, NULL, functions);
}
