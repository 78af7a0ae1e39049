// SPDX-License-Identifier: Apache-2.0
// kube._server: servers and exchanges.
//
// An exchange is a userdata that is kept alive until it is over. method, target and body can be
// read for ever. Once the client has left, reply, start, write, finish and reset do nothing and
// return false; once it was answered, reply and start raise and the rest returns false.
#include <lauxlib.h>
#include <lua.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/log.h"
#include "bind/bind_server.h"
#include "bind/util.h"
#include "script/ref.h"
#include "script/worker.h"
#include "server/http_server.h"
#include "server/server_tls.h"

#define SERVER_TYPE "kube.sandbox.server"
#define EXCHANGE_TYPE "kube.sandbox.exchange"

enum {
  HEADERS_MAX = 256 * 1024,
  PEM_MAX = 64 * 1024,
  HOSTS_MAX = 64,
};

static const double grace_default = 1;  // for replies under way when the worker stops

struct server {
  struct mw_worker_owned owned;
  struct mw_worker *worker;
  struct mw_http_server *http;  // NULL once it is closing
  struct mw_server_tls *tls;
  struct mw_buf headers;  // of the reply at hand
  int handler;
  int self;  // keeps Lua's handle alive until the server is gone
  struct server **handle;
};

enum state { OPEN = 0, STREAMING, ANSWERED, GONE };

struct exchange {
  struct mw_exchange *x;  // NULL once it is over
  struct server *server;  // likewise
  enum state state;
  int self, gone, drain;
};

// Exchanges --------------------------------------------------------------------------------------

// The exchange is over: Lua may forget it.
static void settle(lua_State *L, struct exchange *e, enum state state) {
  e->state = state;
  e->x = NULL;
  e->server = NULL;
  mw_luaref_drop(L, &e->gone);
  mw_luaref_drop(L, &e->drain);
  mw_luaref_drop(L, &e->self);
}

static struct exchange *check_exchange(lua_State *L) {
  return luaL_checkudata(L, 1, EXCHANGE_TYPE);
}

static int push_bool(lua_State *L, bool value) {
  lua_pushboolean(L, value);
  return 1;
}

static bool is_token(struct mw_slice s) {
  for (size_t i = 0; i < s.n; i++) {
    unsigned char c = (unsigned char)s.p[i];
    if (c <= ' ' || c >= 0x7F || strchr("()<>@,;:\\\"/[]?={}", c) != NULL) return false;
  }
  return s.n > 0;
}

static bool is_header_value(struct mw_slice s) {
  for (size_t i = 0; i < s.n; i++) {
    unsigned char c = (unsigned char)s.p[i];
    if ((c < ' ' && c != '\t') || c == 0x7F) return false;
  }
  return true;
}

static bool is_servers_own(const char *name) {
  static const char *const own[] = {"Content-Length", "Transfer-Encoding", "Connection", "Date"};
  for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
    if (strcasecmp(name, own[i]) == 0) return true;
  return false;
}

// The pair {name, value} on top as a line of the block.
static void add_header(lua_State *L, struct mw_buf *block) {
  luaL_argcheck(L, lua_istable(L, -1), 3, "headers are an array of {name, value}");
  lua_rawgeti(L, -1, 1);
  lua_rawgeti(L, -2, 2);  // [pair, name, value]
  luaL_argcheck(L, lua_isstring(L, -2) && lua_isstring(L, -1), 3,
                "headers are an array of {name, value}");
  struct mw_slice name, value;
  name.p = lua_tolstring(L, -2, &name.n);
  value.p = lua_tolstring(L, -1, &value.n);
  if (!is_token(name) || !is_header_value(value)) luaL_error(L, "not a header: '%s'", name.p);
  if (is_servers_own(name.p)) luaL_error(L, "the header '%s' is the server's own", name.p);
  int rc = mw_buf_printf(block, "%s: %s\r\n", name.p, value.p);
  if (rc < 0) luaL_error(L, "the headers are too long");
  lua_pop(L, 2);
}

// The array at 3 (or nothing) as a block, valid until the next one.
static struct mw_slice headers_arg(lua_State *L, struct server *s) {
  mw_buf_reset(&s->headers);
  if (lua_isnoneornil(L, 3)) return mw_slice("", 0);
  luaL_checktype(L, 3, LUA_TTABLE);
  int n = (int)lua_objlen(L, 3);
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, 3, i);
    add_header(L, &s->headers);
    lua_pop(L, 1);
  }
  return s->headers.n > 0 ? mw_buf_slice(&s->headers) : mw_slice("", 0);
}

static unsigned status_arg(lua_State *L) {
  long status = (long)luaL_checkinteger(L, 2);
  luaL_argcheck(L, status >= 200 && status <= 599, 2, "a status from 200 to 599");
  return (unsigned)status;
}

// Raises when there is a reply already.
static void check_unanswered(lua_State *L, const struct exchange *e) {
  if (e->state == STREAMING || e->state == ANSWERED) luaL_error(L, "there is a reply already");
}

// x:reply(status, headers, body): the whole reply.
static int exchange_reply(lua_State *L) {
  struct exchange *e = check_exchange(L);
  unsigned status = status_arg(L);
  struct mw_slice body = lua_isnoneornil(L, 4) ? mw_slice("", 0) : mw_bind_slice(L, 4);
  check_unanswered(L, e);
  if (e->x == NULL) return push_bool(L, false);
  struct mw_slice headers = headers_arg(L, e->server);
  mw_exchange_reply(e->x, status, headers, body);
  settle(L, e, ANSWERED);
  return push_bool(L, true);
}

// x:start(status, headers): the head of a stream.
static int exchange_start(lua_State *L) {
  struct exchange *e = check_exchange(L);
  unsigned status = status_arg(L);
  check_unanswered(L, e);
  if (e->x == NULL) return push_bool(L, false);
  struct mw_slice headers = headers_arg(L, e->server);
  e->state = STREAMING;
  mw_exchange_start(e->x, status, headers);
  return push_bool(L, true);
}

static struct exchange *check_stream(lua_State *L) {
  struct exchange *e = check_exchange(L);
  if (e->state == OPEN) luaL_error(L, "start() comes first");
  return e;
}

// x:write(bytes): false when the client is gone or was cut for being slow.
static int exchange_write(lua_State *L) {
  struct exchange *e = check_stream(L);
  struct mw_slice bytes = mw_bind_slice(L, 2);
  return push_bool(L, e->x != NULL && (bytes.n == 0 || mw_exchange_write(e->x, bytes)));
}

// x:backlog(): bytes that wait for the client.
static int exchange_backlog(lua_State *L) {
  struct exchange *e = check_exchange(L);
  lua_pushnumber(L, e->x != NULL ? (double)mw_exchange_backlog(e->x) : 0);
  return 1;
}

static int exchange_finish(lua_State *L) {
  struct exchange *e = check_stream(L);
  if (e->x == NULL) return push_bool(L, false);
  mw_exchange_finish(e->x);
  settle(L, e, ANSWERED);
  return push_bool(L, true);
}

static int exchange_reset(lua_State *L) {
  struct exchange *e = check_exchange(L);
  if (e->x == NULL) return push_bool(L, false);
  mw_exchange_reset(e->x);
  settle(L, e, ANSWERED);
  return push_bool(L, true);
}

// x:header(name): its first value, or nil.
static int exchange_header(lua_State *L) {
  struct exchange *e = check_exchange(L);
  const char *name = luaL_checkstring(L, 2);
  struct mw_slice value = {NULL, 0};
  if (e->x != NULL) value = mw_exchange_header(e->x, name);
  if (value.p == NULL) {
    lua_pushnil(L);
  } else {
    lua_pushlstring(L, value.p, value.n);
  }
  return 1;
}

// Keeps the function at 2 as *ref; false, and it is never called, when the exchange is over.
static int set_callback(lua_State *L, struct exchange *e, int *ref) {
  luaL_checktype(L, 2, LUA_TFUNCTION);
  if (e->x == NULL) return push_bool(L, false);
  lua_settop(L, 2);
  mw_luaref_drop(L, ref);
  *ref = mw_luaref_take(L);
  return push_bool(L, true);
}

// x:on_gone(function): called, from the loop, when the client leaves before the reply is complete.
static int exchange_on_gone(lua_State *L) {
  struct exchange *e = check_exchange(L);
  return set_callback(L, e, &e->gone);
}

// x:on_drain(function): called, from the loop, whenever nothing waits for the client any more.
static int exchange_on_drain(lua_State *L) {
  struct exchange *e = check_exchange(L);
  return set_callback(L, e, &e->drain);
}

// x.method, x.target, x.body, or a method. The upvalue is the table of methods.
static int exchange_index(lua_State *L) {
  lua_settop(L, 2);
  lua_getfenv(L, 1);
  lua_pushvalue(L, 2);
  lua_rawget(L, 3);
  if (!lua_isnil(L, -1)) return 1;
  lua_pushvalue(L, 2);
  lua_rawget(L, lua_upvalueindex(1));
  return 1;
}

static void set_slice(lua_State *L, const char *name, struct mw_slice s) {
  lua_pushlstring(L, s.n > 0 ? s.p : "", s.n);
  lua_setfield(L, -2, name);
}

// A request on its way into Lua.
struct delivery {
  struct server *server;
  struct mw_exchange *x;
  struct exchange *e;
};

static int deliver(lua_State *L) {
  struct delivery *d = lua_touserdata(L, 1);
  struct exchange *e = lua_newuserdata(L, sizeof *e);
  *e = (struct exchange){
      .server = d->server, .self = MW_LUAREF_NONE, .gone = MW_LUAREF_NONE, .drain = MW_LUAREF_NONE};
  luaL_getmetatable(L, EXCHANGE_TYPE);
  lua_setmetatable(L, -2);
  lua_createtable(L, 0, 3);
  set_slice(L, "method", mw_exchange_method(d->x));
  set_slice(L, "target", mw_exchange_target(d->x));
  set_slice(L, "body", mw_exchange_body(d->x));
  lua_setfenv(L, -2);  // [delivery, exchange]
  mw_luaref_push(L, d->server->handler);
  lua_pushvalue(L, -2);
  lua_pushvalue(L, -3);
  e->self = mw_luaref_take(L);
  e->x = d->x;
  d->e = e;
  mw_exchange_set_data(d->x, e);
  lua_call(L, 1, 0);
  return 0;
}

static void reply_failure(struct mw_exchange *x) {
  static const char status[] =
      "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
      "\"message\":\"Internal error occurred: the sandbox failed; its log says where\","
      "\"reason\":\"InternalError\",\"details\":{\"causes\":[{\"message\":\"the sandbox failed; "
      "its "
      "log says where\"}]},\"code\":500}\n";
  mw_exchange_reply(x, 500, MW_SLICE("Content-Type: application/json\r\n"), MW_SLICE(status));
}

static void on_request(void *ctx, struct mw_exchange *x) {
  struct server *s = ctx;
  struct delivery d = {.server = s, .x = x};
  struct mw_worker *worker = s->worker;
  if (mw_worker_call(worker, "a request", deliver, &d) == 0) return;
  if (d.e == NULL) {
    reply_failure(x);
  } else if (d.e->x != NULL) {  // the exchange is still kept alive
    if (d.e->state == OPEN) {
      reply_failure(x);
    } else {
      mw_exchange_reset(x);
    }
    settle(mw_worker_state(worker), d.e, ANSWERED);
  }
}

static int call_gone(lua_State *L) {
  struct exchange *e = lua_touserdata(L, 1);
  mw_luaref_push(L, e->gone);
  settle(L, e, GONE);
  if (lua_isfunction(L, -1)) lua_call(L, 0, 0);
  return 0;
}

static void on_gone(void *ctx, struct mw_exchange *x) {
  struct server *s = ctx;
  struct exchange *e = mw_exchange_data(x);
  if (e != NULL) mw_worker_call(s->worker, "on_gone", call_gone, e);
}

static int call_drain(lua_State *L) {
  struct exchange *e = lua_touserdata(L, 1);
  mw_luaref_push(L, e->drain);
  lua_call(L, 0, 0);
  return 0;
}

static void on_drain(void *ctx, struct mw_exchange *x) {
  struct server *s = ctx;
  struct exchange *e = mw_exchange_data(x);
  if (e != NULL && e->drain != MW_LUAREF_NONE) {
    mw_worker_call(s->worker, "on_drain", call_drain, e);
  }
}

// Servers ----------------------------------------------------------------------------------------

static void server_free(struct server *s) {
  lua_State *L = mw_worker_state(s->worker);
  mw_luaref_drop(L, &s->handler);
  mw_luaref_drop(L, &s->self);
  if (s->handle != NULL) *s->handle = NULL;
  mw_server_tls_free(s->tls);
  mw_buf_deinit(&s->headers);
  mw_free(s);
}

static void on_closed(void *arg) {
  struct server *s = arg;
  mw_worker_drop(s->worker, &s->owned);
  server_free(s);
}

static void begin_close(struct server *s, double grace) {
  if (s->http == NULL) return;
  struct mw_http_server *http = s->http;
  s->http = NULL;
  mw_http_server_close(http, grace, on_closed, s);
}

static void server_close_owned(struct mw_worker_owned *o) {
  begin_close((struct server *)o, grace_default);
}

// server:close(grace): once it is closed, this does nothing.
static int server_close(lua_State *L) {
  struct server **handle = luaL_checkudata(L, 1, SERVER_TYPE);
  double grace = luaL_optnumber(L, 2, grace_default);
  luaL_argcheck(L, grace >= 0 && grace <= MW_BIND_SECONDS_MAX, 2, "seconds, not negative");
  if (*handle != NULL) begin_close(*handle, grace);
  return 0;
}

static int server_port(lua_State *L) {
  struct server **handle = luaL_checkudata(L, 1, SERVER_TYPE);
  if (*handle == NULL || (*handle)->http == NULL) return luaL_error(L, "the server is closed");
  lua_pushinteger(L, (int)mw_http_server_port((*handle)->http));
  return 1;
}

static int server_gc(lua_State *L) {
  struct server **handle = lua_touserdata(L, 1);
  if (*handle != NULL) (*handle)->handle = NULL;
  return 0;
}

static struct mw_slice field_slice(lua_State *L, int idx, const char *name) {
  const char *text = mw_bind_opt_string(L, idx, name, NULL);
  return mw_slice_str(text);
}

// tls = {certificate =, key =} of the table at 1; NULL without.
static struct mw_server_tls *tls_arg(lua_State *L) {
  lua_getfield(L, 1, "tls");
  if (lua_isnil(L, -1)) return NULL;
  luaL_argcheck(L, lua_istable(L, -1), 1, "tls is a table with certificate and key");
  int idx = lua_gettop(L);
  struct mw_slice certificate = field_slice(L, idx, "certificate");
  struct mw_slice key = field_slice(L, idx, "key");
  struct mw_err err;
  struct mw_server_tls *tls = mw_server_tls_new(certificate, key, &err);
  if (tls == NULL) luaL_error(L, "%s", err.message);
  return tls;
}

static size_t size_arg(lua_State *L, const char *name) {
  return (size_t)mw_bind_opt_count(L, 1, name, 0, 0, 1L << 31);
}

static struct mw_http_server_config listen_config(lua_State *L) {
  return (struct mw_http_server_config){
      .host = mw_bind_opt_string(L, 1, "host", "127.0.0.1"),
      .port = (unsigned)mw_bind_opt_count(L, 1, "port", 0, 0, 65535),
      .on_request = on_request,
      .on_gone = on_gone,
      .on_drain = on_drain,
      .header_max = size_arg(L, "header_max"),
      .body_max = size_arg(L, "body_max"),
      .connections_max = (unsigned)mw_bind_opt_count(L, 1, "connections_max", 0, 0, 1000000),
      .header_seconds = mw_bind_opt_seconds(L, 1, "header_seconds", 0),
      .body_seconds = mw_bind_opt_seconds(L, 1, "body_seconds", 0),
      .idle_seconds = mw_bind_opt_seconds(L, 1, "idle_seconds", 0),
      .backlog_max = size_arg(L, "backlog_max"),
      .oversize_body = mw_bind_opt_string(L, 1, "oversize_body", NULL),
      .oversize_type = mw_bind_opt_string(L, 1, "oversize_type", NULL),
  };
}

// listen{host=, port=, tls=, on_request=, limits as in server/http_server.h}
static int host_listen(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  struct mw_http_server_config config = listen_config(L);
  lua_getfield(L, 1, "on_request");
  luaL_argcheck(L, lua_isfunction(L, -1), 1, "on_request is a function");  // [options, function]
  struct server **handle = lua_newuserdata(L, sizeof *handle);
  *handle = NULL;
  luaL_getmetatable(L, SERVER_TYPE);
  lua_setmetatable(L, -2);  // [options, function, handle]
  struct mw_worker *worker = mw_worker_of(L);
  config.tls = tls_arg(L);
  struct server *s = mw_xcalloc(1, sizeof *s);
  *s = (struct server){.owned = {.close = server_close_owned},
                       .worker = worker,
                       .tls = config.tls,
                       .handler = MW_LUAREF_NONE,
                       .self = MW_LUAREF_NONE};
  mw_buf_init(&s->headers, HEADERS_MAX);
  config.loop = mw_worker_loop(worker);
  config.ctx = s;
  struct mw_err err = {.message = "the sandbox is stopping"};
  if (mw_worker_own(worker, &s->owned)) {
    s->http = mw_http_server_new(&config, &err);
    if (s->http == NULL) mw_worker_drop(worker, &s->owned);
  }
  if (s->http == NULL) {
    server_free(s);
    lua_pushstring(L, err.message);
    return lua_error(L);  // as it is: where we were called says nothing to those who read it
  }
  s->handle = handle;
  *handle = s;
  lua_settop(L, 3);
  lua_pushvalue(L, 3);
  s->self = mw_luaref_take(L);
  lua_pushvalue(L, 2);
  s->handler = mw_luaref_take(L);
  return 1;
}

// certificate{"127.0.0.1", "localhost"}: a new CA and what it signed, as PEM.
static int host_certificate(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  const char *hosts[HOSTS_MAX];
  size_t count = lua_objlen(L, 1);
  luaL_argcheck(L, count > 0 && count <= HOSTS_MAX, 1, "one to 64 hosts");
  luaL_checkstack(L, HOSTS_MAX + 8, NULL);
  for (size_t i = 0; i < count; i++) {
    lua_rawgeti(L, 1, (int)i + 1);
    luaL_argcheck(L, lua_type(L, -1) == LUA_TSTRING, 1, "hosts are strings");
    hosts[i] = lua_tostring(L, -1);
  }
  struct mw_buf *pem = mw_bind_push_buffers(L, 3, PEM_MAX);
  struct mw_err err;
  if (mw_server_certificate(hosts, count, &pem[0], &pem[1], &pem[2], &err) < 0) {
    return luaL_error(L, "%s", err.message);
  }
  static const char *const names[] = {"ca", "certificate", "key"};
  lua_createtable(L, 0, 3);
  for (int i = 0; i < 3; i++) set_slice(L, names[i], mw_buf_slice(&pem[i]));
  return 1;
}

void mw_bind_server_http(struct lua_State *L) {
  static const luaL_Reg functions[] = {
      {"listen", host_listen}, {"certificate", host_certificate}, {NULL, NULL}};
  static const luaL_Reg server_methods[] = {
      {"port", server_port}, {"close", server_close}, {NULL, NULL}};
  static const luaL_Reg exchange_methods[] = {
      {"reply", exchange_reply},       {"start", exchange_start},
      {"write", exchange_write},       {"backlog", exchange_backlog},
      {"finish", exchange_finish},     {"reset", exchange_reset},
      {"header", exchange_header},     {"on_gone", exchange_on_gone},
      {"on_drain", exchange_on_drain}, {NULL, NULL},
  };
  luaL_register(L, NULL, functions);
  mw_bind_new_type(L, SERVER_TYPE, server_methods, server_gc);
  luaL_newmetatable(L, EXCHANGE_TYPE);
  lua_newtable(L);
  luaL_register(L, NULL, exchange_methods);
  lua_pushcclosure(L, exchange_index, 1);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
}
