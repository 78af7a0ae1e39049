// SPDX-License-Identifier: Apache-2.0
// Listening and the end of it. The listening socket is polled rather than given to libuv's own
// accept loop: that one cannot pause when file descriptors run out, and would spin.
#include "server/http_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/internal.h"

enum {
  ACCEPT_BATCH = 64,  // per turn, so that a flood does not starve those who are in
  REFUSED_MAX = 64,   // connections beyond the limit that may wait for their 503
  LISTEN_BACKLOG = 511
};

static const double RETRY_SECONDS = 0.1;

static void on_acceptable(uv_poll_t *poll, int status, int events);

// ---- accepting ----

static void resume_accepting(void *arg) {
  struct mw_http_server *s = arg;
  s->retry = NULL;
  uv_poll_start(&s->poll, UV_READABLE, on_acceptable);
}

static void suspend_accepting(struct mw_http_server *s, int error) {
  // Once, not ten times a second.
  if (!s->starved) {
    mw_log(MW_LOG_WARN, "cannot accept connections, trying again soon",
           MW_STR("error", strerror(error)), MW_INT("port", s->port),
           MW_INT("connections", s->count));
  }
  s->starved = true;
  uv_poll_stop(&s->poll);
  s->retry = mw_timer_start(s->config.loop, RETRY_SECONDS, resume_accepting, s);
}

static void on_acceptable(uv_poll_t *poll, int status, int events) {
  (void)status;
  (void)events;
  struct mw_http_server *s = poll->data;
  for (int i = 0; i < ACCEPT_BATCH && !s->closing; i++) {
    int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      s->starved = false;
      if (s->count < s->config.connections_max + REFUSED_MAX) {
        mw_conn_open(s, fd);
      } else {
        close(fd);
      }
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      suspend_accepting(s, errno);
      return;
    }
  }
}

// ---- listening ----

static int parse_address(const char *host, unsigned port, struct sockaddr_storage *address) {
  struct sockaddr_in in4;
  struct sockaddr_in6 in6;
  if (port > 65535) return MW_EINVAL;
  if (uv_ip4_addr(host, (int)port, &in4) == 0) {
    memcpy(address, &in4, sizeof in4);
    return 0;
  }
  if (uv_ip6_addr(host, (int)port, &in6) == 0) {
    memcpy(address, &in6, sizeof in6);
    return 0;
  }
  return MW_EINVAL;
}

// Tells the port that the kernel has chosen.
static unsigned port_of(int fd) {
  struct sockaddr_storage address = {0};
  socklen_t n = sizeof address;
  getsockname(fd, (struct sockaddr *)&address, &n);
  if (address.ss_family == AF_INET6) {
    struct sockaddr_in6 in6;
    memcpy(&in6, &address, sizeof in6);
    return ntohs(in6.sin6_port);
  }
  struct sockaddr_in in4;
  memcpy(&in4, &address, sizeof in4);
  return ntohs(in4.sin_port);
}

static int listen_on(const char *host, unsigned port, struct mw_err *err) {
  struct sockaddr_storage address = {0};
  if (parse_address(host, port, &address) < 0) {
    return mw_err_set(err, MW_EINVAL, "cannot listen on \"%s\" port %u: not a numeric address",
                      host, port);
  }
  int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int on = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  socklen_t n =
      address.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, n) != 0 || listen(fd, LISTEN_BACKLOG) != 0) {
    int error = errno;
    if (fd >= 0) close(fd);
    return mw_err_set(err, MW_EIO, "cannot listen on %s port %u: %s", host, port, strerror(error));
  }
  return fd;
}

// A socket has its mode before it has its name, so at no moment can anybody else connect.
static int listen_at(const char *path, struct mw_err *err) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t n = strlen(path);
  if (n >= sizeof address.sun_path) {
    return mw_err_set(err, MW_EINVAL, "cannot listen on %s: a path can have at most %zu bytes here",
                      path, sizeof address.sun_path - 1);
  }
  memcpy(address.sun_path, path, n + 1);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  bool bound = fd >= 0 && fchmod(fd, S_IRUSR | S_IWUSR) == 0 &&
               bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
  if (bound && listen(fd, LISTEN_BACKLOG) == 0) return fd;
  int error = errno;
  if (bound) unlink(path);
  if (fd >= 0) close(fd);
  return mw_err_set(err, MW_EIO, "cannot listen on %s: %s", path,
                    error == EADDRINUSE ? "there is something already" : strerror(error));
}

static void fill_limits(struct mw_http_server_config *config) {
  if (config->header_max == 0) config->header_max = 64 * 1024;
  if (config->body_max == 0) config->body_max = 3 * 1024 * 1024;
  if (config->connections_max == 0) config->connections_max = 1024;
  if (config->header_seconds <= 0) config->header_seconds = 10;
  if (config->body_seconds <= 0) config->body_seconds = 30;
  if (config->idle_seconds <= 0) config->idle_seconds = 300;
  if (config->backlog_max == 0) config->backlog_max = 4 * 1024 * 1024;
}

static void free_server(struct mw_http_server *s) {
  if (s->fd >= 0) close(s->fd);
  if (s->fd >= 0 && s->path != NULL) unlink(s->path);
  mw_free(s->oversize_body);
  mw_free(s->oversize_type);
  mw_free(s->path);
  mw_free(s);
}

struct mw_http_server *mw_http_server_new(const struct mw_http_server_config *config,
                                          struct mw_err *err) {
  int fd = config->path != NULL ? listen_at(config->path, err)
                                : listen_on(config->host, config->port, err);
  if (fd < 0) return NULL;
  struct mw_http_server *s = mw_xcalloc(1, sizeof *s);
  s->config = *config;
  s->config.host = NULL;
  fill_limits(&s->config);
  if (config->oversize_body != NULL) s->oversize_body = mw_xstrdup(config->oversize_body);
  if (config->oversize_type != NULL) s->oversize_type = mw_xstrdup(config->oversize_type);
  s->fd = fd;
  if (config->path != NULL) {
    s->path = mw_xstrdup(config->path);
    s->config.path = NULL;
  } else {
    s->port = port_of(fd);
  }
  s->poll.data = s;
  if (uv_poll_init(mw_loop_uv(config->loop), &s->poll, fd) != 0) {
    free_server(s);
    mw_err_set(err, MW_EIO, "cannot listen: the loop refuses the socket");
    return NULL;
  }
  mw_live_add(MW_LIVE_HANDLE, 1);
  uv_poll_start(&s->poll, UV_READABLE, on_acceptable);
  return s;
}

unsigned mw_http_server_port(const struct mw_http_server *s) { return s->port; }

// ---- the end ----

static void free_when_over(struct mw_http_server *s) {
  if (!s->poll_closed || s->count > 0) return;
  mw_timer_cancel(&s->grace);
  mw_loop_cb done = s->done;
  void *arg = s->done_arg;
  free_server(s);
  mw_live_add(MW_LIVE_HANDLE, -1);
  if (done != NULL) done(arg);
}

void mw_http_server_forget(struct mw_conn *c) {
  struct mw_http_server *s = c->server;
  if (c->prev != NULL) c->prev->next = c->next;
  if (c->next != NULL) c->next->prev = c->prev;
  if (s->conns == c) s->conns = c->next;
  s->count--;
  if (s->closing) free_when_over(s);
}

static void on_poll_closed(uv_handle_t *handle) {
  struct mw_http_server *s = handle->data;
  s->poll_closed = true;
  if (s->path != NULL) unlink(s->path);
  close(s->fd);
  s->fd = -1;
  free_when_over(s);
}

static void cut_all(void *arg) {
  struct mw_http_server *s = arg;
  s->grace = NULL;
  for (struct mw_conn *c = s->conns; c != NULL; c = c->next) mw_conn_cut(c, false);
}

void mw_http_server_close(struct mw_http_server *s, double grace, mw_loop_cb done, void *arg) {
  if (s->closing) return;
  s->closing = true;
  s->done = done;
  s->done_arg = arg;
  mw_timer_cancel(&s->retry);
  uv_close((uv_handle_t *)&s->poll, on_poll_closed);
  for (struct mw_conn *c = s->conns; c != NULL; c = c->next) {
    if (c->phase <= MW_CONN_BODY) mw_conn_hang_up(c);
  }
  s->grace = mw_timer_start(s->config.loop, grace > 0 ? grace : 0, cut_all, s);
}
