// SPDX-License-Identifier: Apache-2.0
// The pool: libcurl's sockets and timeouts on libuv, the guard, and the to-do list.
//
// `depth` is above zero while libcurl is on the stack. Only then may a request not be added,
// removed or freed; mw_pool_todo() keeps such work for later. What libcurl reports as finished is
// taken in reap(), which runs after every call that may have moved a transfer.
#include "transport/http.h"

#include <curl/curl.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "transport/internal.h"

enum {
  DEFAULT_BUFFER = 256 * 1024,
  SMALLEST_BUFFER = 128 * 1024,
  LARGEST_BUFFER = 512 * 1024,   // libcurl's own limit
  STREAMS_PER_CONNECTION = 256,  // the server's limit is usually lower and wins
  IDLE_CONNECTIONS = 32,
  IDLE_LOGINS = 32,
  ROUNDS = 16  // of a socket that has more and more, before the others have their turn
};

// One socket of libcurl.
struct sock {
  struct mw_link link;
  uv_poll_t poll;
  curl_socket_t fd;
  struct mw_http *http;
  bool active;  // since the guard's last visit
};

static struct sock *sock_of(struct mw_link *link) {
  return (struct sock *)((char *)link - offsetof(struct sock, link));
}

static struct mw_request *todo_of(struct mw_link *link) {
  return (struct mw_request *)((char *)link - offsetof(struct mw_request, todo_link));
}

static void link_init(struct mw_link *l) { l->prev = l->next = l; }

static void link_append(struct mw_link *list, struct mw_link *l) {
  l->prev = list->prev;
  l->next = list;
  list->prev->next = l;
  list->prev = l;
}

static void link_remove(struct mw_link *l) {
  l->prev->next = l->next;
  l->next->prev = l->prev;
  link_init(l);
}

// ---- the to-do list ----

void mw_pool_forget(struct mw_request *r) {
  if (r->todo == MW_TODO_NOTHING) return;
  r->todo = MW_TODO_NOTHING;
  link_remove(&r->todo_link);
  r->http->todo_count--;
}

static void run_todo(struct mw_http *h);

static void on_kick(uv_timer_t *timer) { run_todo(timer->data); }

// Later work replaces earlier work of the same request: that of one that is cancelled is to go.
void mw_pool_todo(struct mw_request *r, enum mw_request_todo todo) {
  mw_pool_forget(r);
  r->todo = todo;
  link_append(&r->http->todo, &r->todo_link);
  r->http->todo_count++;
  if (!uv_is_active((uv_handle_t *)r->http->kick)) uv_timer_start(r->http->kick, on_kick, 0, 0);
}

// Runs what was on the list at the start; what is added meanwhile waits for the next turn, so that
// a caller that starts anew in on_done cannot hold up the loop.
static void run_todo(struct mw_http *h) {
  for (size_t left = h->todo_count; left > 0 && h->todo_count > 0; left--) {
    struct mw_request *r = todo_of(h->todo.next);
    enum mw_request_todo todo = r->todo;
    mw_pool_forget(r);
    mw_request_run_todo(r, todo);
  }
  if (h->todo_count > 0) {
    uv_timer_start(h->kick, on_kick, 0, 0);
  } else {
    uv_timer_stop(h->kick);
  }
}

// ---- libcurl's side ----

static void reap(struct mw_http *h) {
  int left;
  CURLMsg *m;
  while ((m = curl_multi_info_read(h->multi, &left)) != NULL) {
    if (m->msg != CURLMSG_DONE) continue;
    char *r = NULL;
    CURLcode code = m->data.result;
    curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &r);
    mw_request_finished((struct mw_request *)r, (int)code);
  }
}

// Lets libcurl work on one socket or on its timeouts.
static void act(struct mw_http *h, curl_socket_t fd, int events) {
  int running;
  h->depth++;
  CURLMcode rc = curl_multi_socket_action(h->multi, fd, events, &running);
  h->depth--;
  if (rc != CURLM_OK) {
    mw_log(MW_LOG_ERROR, "libcurl failed", MW_STR("error", curl_multi_strerror(rc)));
  }
}

// The same, and reports what came of it.
static void act_once(struct mw_http *h, curl_socket_t fd, int events) {
  act(h, fd, events);
  reap(h);
}

// The same for a socket that is ready. libcurl returns after each TLS record: while more bytes
// come, to let it go on at once spares a turn of the loop for each.
static void act_on(struct mw_http *h, curl_socket_t fd, int events) {
  uint64_t before;
  int rounds = 0;
  do {
    before = h->moved;
    act(h, fd, events);
  } while (h->moved != before && ++rounds < ROUNDS);
  reap(h);
}

static void on_socket_closed(uv_handle_t *handle) {
  mw_live_add(MW_LIVE_HANDLE, -1);
  mw_free(handle->data);
}

static void sock_close(struct sock *s) {
  if (s->http->guard_next == &s->link) s->http->guard_next = s->link.next;
  link_remove(&s->link);
  uv_poll_stop(&s->poll);
  uv_close((uv_handle_t *)&s->poll, on_socket_closed);
}

static void on_poll(uv_poll_t *poll, int status, int events) {
  struct sock *s = poll->data;
  s->active = true;
  int flags = status < 0 ? CURL_CSELECT_ERR : 0;
  if (events & UV_READABLE) flags |= CURL_CSELECT_IN;
  if (events & UV_WRITABLE) flags |= CURL_CSELECT_OUT;
  struct mw_http *h = s->http;
  act_on(h, s->fd, flags);
  run_todo(h);
}

static struct sock *sock_open(struct mw_http *h, curl_socket_t fd) {
  struct sock *s = mw_xcalloc(1, sizeof *s);
  s->fd = fd;
  s->http = h;
  s->active = true;
  if (uv_poll_init(mw_loop_uv(h->loop), &s->poll, fd) != 0) {
    mw_free(s);
    return NULL;
  }
  s->poll.data = s;
  mw_live_add(MW_LIVE_HANDLE, 1);
  link_append(&h->sockets, &s->link);
  return s;
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *assigned) {
  (void)easy;
  struct mw_http *h = ctx;
  struct sock *s = assigned;
  if (what == CURL_POLL_REMOVE) {
    if (s != NULL) sock_close(s);
    curl_multi_assign(h->multi, fd, NULL);
    return 0;
  }
  if (s == NULL) {
    s = sock_open(h, fd);
    if (s == NULL) return -1;
    curl_multi_assign(h->multi, fd, s);
  }
  int events = 0;
  if (what & CURL_POLL_IN) events |= UV_READABLE;
  if (what & CURL_POLL_OUT) events |= UV_WRITABLE;
  return uv_poll_start(&s->poll, events, on_poll) == 0 ? 0 : -1;
}

static void on_curl_timeout(uv_timer_t *timer) {
  struct mw_http *h = timer->data;
  act_once(h, CURL_SOCKET_TIMEOUT, 0);
  run_todo(h);
}

static int on_curl_timer(CURLM *multi, long ms, void *ctx) {
  (void)multi;
  struct mw_http *h = ctx;
  if (ms < 0) {
    uv_timer_stop(h->curl_timer);
  } else {
    uv_update_time(mw_loop_uv(h->loop));
    uv_timer_start(h->curl_timer, on_curl_timeout, (uint64_t)ms, 0);
  }
  return 0;
}

// ---- the guard ----

static void visit(struct mw_http *h, struct sock *s) {
  bool silent = !s->active;
  s->active = false;
  if (!silent) return;
  uint64_t before = h->moved;
  h->stats.pokes++;
  act_once(h, s->fd, CURL_CSELECT_IN);
  if (h->moved != before) h->stats.rescues++;
}

static void on_guard(uv_timer_t *timer) {
  struct mw_http *h = timer->data;
  h->guard_next = h->sockets.next;
  while (h->guard_next != &h->sockets) {
    struct sock *s = sock_of(h->guard_next);
    h->guard_next = s->link.next;
    visit(h, s);
  }
  h->guard_next = NULL;
  run_todo(h);
}

// ---- libcurl's start ----

static void give_up(void) {
  fprintf(stderr, "moonwatch: libcurl does not start\n");
  abort();
}

static void init_curl(void) {
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) give_up();
}

void mw_pool_open(struct mw_http *h) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (h->multi != NULL) return;
  pthread_once(&once, init_curl);
  h->multi = curl_multi_init();
  if (h->multi == NULL) give_up();
  curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
  curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
  curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
  curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
  curl_multi_setopt(h->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
  // No limit on connections per host: a limit would make the watch behind it wait for ever.
  curl_multi_setopt(h->multi, CURLMOPT_MAX_HOST_CONNECTIONS, 0L);
  curl_multi_setopt(h->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)STREAMS_PER_CONNECTION);
  curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)IDLE_CONNECTIONS);
}

// The first context of a process looks all of its algorithms up, which takes longer than a
// handshake; OpenSSL keeps what it has found.
void mw_http_warm(struct mw_http *h) {
  mw_pool_open(h);
  SSL_CTX_free(SSL_CTX_new(TLS_client_method()));
}

int mw_pool_add(struct mw_http *h, void *easy) {
  CURLMcode rc = curl_multi_add_handle(h->multi, easy);
  if (rc != CURLM_OK) return MW_EINTERNAL;
  if (h->transfers++ == 0) {
    uint64_t ms = (uint64_t)(h->config.guard_interval * 1000);
    uv_timer_start(h->guard, on_guard, ms > 0 ? ms : 1, ms > 0 ? ms : 1);
  }
  return 0;
}

void mw_pool_remove(struct mw_http *h, void *easy) {
  h->depth++;
  curl_multi_remove_handle(h->multi, easy);
  h->depth--;
  if (--h->transfers == 0) uv_timer_stop(h->guard);
}

// ---- credentials ----

static struct mw_login *login_of(struct mw_link *link) {
  return (struct mw_login *)((char *)link - offsetof(struct mw_login, link));
}

static void login_free(struct mw_http *h, struct mw_login *login) {
  link_remove(&login->link);
  h->login_count--;
  mw_auth_free(login->auth);
  mw_endpoint_unref(login->endpoint);
  mw_free(login);
}

static void forget_idle_logins(struct mw_http *h) {
  for (struct mw_link *l = h->logins.next, *next; l != &h->logins; l = next) {
    next = l->next;
    if (h->login_count > IDLE_LOGINS && login_of(l)->users == 0) login_free(h, login_of(l));
  }
}

struct mw_login *mw_pool_login(struct mw_http *h, struct mw_endpoint *e) {
  for (struct mw_link *l = h->logins.next; l != &h->logins; l = l->next) {
    struct mw_login *found = login_of(l);
    if (found->endpoint != e) continue;
    found->users++;
    return found;
  }
  struct mw_login *login = mw_xcalloc(1, sizeof *login);
  login->endpoint = mw_endpoint_ref(e);
  login->auth = mw_auth_new(h->loop, mw_endpoint_config(e));
  login->users = 1;
  link_append(&h->logins, &login->link);
  h->login_count++;
  return login;
}

void mw_pool_logout(struct mw_http *h, struct mw_login *login) {
  login->users--;
  if (h->login_count > IDLE_LOGINS) forget_idle_logins(h);
}

// ---- life ----

static uv_timer_t *timer_open(struct mw_http *h) {
  uv_timer_t *timer = mw_xcalloc(1, sizeof *timer);
  uv_timer_init(mw_loop_uv(h->loop), timer);
  timer->data = h;
  mw_live_add(MW_LIVE_HANDLE, 1);
  return timer;
}

static void on_timer_closed(uv_handle_t *handle) {
  mw_live_add(MW_LIVE_HANDLE, -1);
  mw_free(handle);
}

static void timer_close(uv_timer_t *timer) { uv_close((uv_handle_t *)timer, on_timer_closed); }

static void set_config(struct mw_http *h, const struct mw_http_config *config) {
  if (config != NULL) h->config = *config;
  struct mw_http_config *c = &h->config;
  if (c->connect_timeout <= 0) c->connect_timeout = 10;
  if (c->guard_interval <= 0) c->guard_interval = 1;
  if (c->buffer_size == 0) c->buffer_size = DEFAULT_BUFFER;
  if (c->buffer_size < SMALLEST_BUFFER) c->buffer_size = SMALLEST_BUFFER;
  if (c->buffer_size > LARGEST_BUFFER) c->buffer_size = LARGEST_BUFFER;
}

struct mw_http *mw_http_new(struct mw_loop *loop, const struct mw_http_config *config) {
  struct mw_http *h = mw_xcalloc(1, sizeof *h);
  h->loop = loop;
  set_config(h, config);
  link_init(&h->sockets);
  link_init(&h->requests);
  link_init(&h->todo);
  link_init(&h->logins);
  h->meter = mw_meter_new();
  h->curl_timer = timer_open(h);
  h->guard = timer_open(h);
  h->kick = timer_open(h);
  return h;
}

void mw_http_free(struct mw_http *h) {
  if (h->requests.next != &h->requests) {
    fprintf(stderr, "moonwatch: a connection pool is freed while it has requests\n");
    abort();
  }
  while (h->logins.next != &h->logins) login_free(h, login_of(h->logins.next));
  if (h->multi != NULL) curl_multi_cleanup(h->multi);
  while (h->sockets.next != &h->sockets) sock_close(sock_of(h->sockets.next));
  timer_close(h->curl_timer);
  timer_close(h->guard);
  timer_close(h->kick);
  mw_meter_free(h->meter);
  mw_free(h);
}

void mw_http_stats(const struct mw_http *h, struct mw_http_stats *out) { *out = h->stats; }
