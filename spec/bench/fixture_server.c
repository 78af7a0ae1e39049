// SPDX-License-Identifier: Apache-2.0
// fixture_server CERT KEY KIND COUNT: an API server with COUNT pods and nothing else.
//
// HTTP/1.1 over TLS, and the same without TLS on a second port. Prints "ready TLS-PORT PLAIN-PORT
// BYTES" and serves until it is killed. One thread per connection; all bytes are in memory before
// the first request, so that a client waits for itself.
//
//   /api/v1/pods            a list, with limit and continue
//   /api/v1/pods?watch=...  a watch; with sendInitialEvents a streaming list
//   /bench/bytes            the bytes of the streaming list, then the end
//   /bench/storm?events=N&rate=R   MODIFIED events to the open watches, R a second (0: as fast as
//                           can be); each says when it was sent in annotation bench/sent. Of 0
//                           events, a bookmark
//   /bench/relist?part=N    the open watches end with 410, and from then on a streaming list has
//                           one pod of N changed; 0: none
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pods.h"

enum { OUT_SIZE = 128 * 1024, FLUSH_AT = 64 * 1024, REQUEST_MAX = 16 * 1024, POLL_MS = 100 };
enum { NANOS = 1000000000, STRIDE = 7919, RV_EVENTS = 2000000000 };
enum { SENT_DIGITS = 20, CHUNK_DIGITS = 8 };

static struct pods pods;

// The latest storm. Every watch sends it once.
static struct {
  pthread_mutex_t lock;
  pthread_cond_t wake;
  unsigned number;
  unsigned long events;
  unsigned long rate;
  bool expired;  // instead of events, the end
} storm = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

struct conn {
  int fd;
  SSL *ssl;  // NULL: plain
  bool dead;
  size_t n;
  char out[OUT_SIZE];
};

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * NANOS + (uint64_t)t.tv_nsec;
}

static void die(const char *what) {
  perror(what);
  exit(1);
}

// Writing.

static void flush(struct conn *c) {
  for (size_t at = 0; at < c->n && !c->dead;) {
    size_t left = c->n - at;
    int n = c->ssl != NULL ? SSL_write(c->ssl, c->out + at, (int)left)
                           : (int)send(c->fd, c->out + at, left, MSG_NOSIGNAL);
    if (n <= 0) c->dead = true;
    if (n > 0) at += (size_t)n;
  }
  c->n = 0;
}

static void put(struct conn *c, const void *p, size_t n) {
  if (c->n + n > OUT_SIZE) flush(c);
  if (n > OUT_SIZE) abort();
  memcpy(c->out + c->n, p, n);
  c->n += n;
}

__attribute__((format(printf, 2, 3))) static void print(struct conn *c, const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  put(c, text, (size_t)n);
}

static void start_body(struct conn *c) {
  print(c,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
}

static void end_body(struct conn *c) {
  print(c, "0\r\n\r\n");
  flush(c);
}

static void answer(struct conn *c, const char *status, const char *body) {
  print(c, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status,
        strlen(body), body);
  flush(c);
}

static void chunk(struct conn *c, const char *text) {
  print(c, "%zx\r\n%s\r\n", strlen(text), text);
}

// A number in so many digits. The storm has many of them, and printf is no part of it.
static void put_number(struct conn *c, uint64_t value, unsigned base, size_t digits) {
  char text[SENT_DIGITS];
  for (size_t i = digits; i-- > 0; value /= base) text[i] = "0123456789abcdef"[value % base];
  put(c, text, digits);
}

// Pods.

static const char added[] = "{\"type\":\"ADDED\",\"object\":";
static const char modified[] = "{\"type\":\"MODIFIED\",\"object\":";

static atomic_ulong last_rv = RV_EVENTS;  // of the changes so far
static atomic_ulong changed_part;         // one pod of so many is changed in a streaming list

// One event is one chunk, as a Go server that flushes after each sends it.
static void put_added(struct conn *c, const struct pod *pod) {
  print(c, "%zx\r\n%s", sizeof added - 1 + pod->n + 2, added);
  put(c, pods.text + pod->start, pod->n);
  put(c, "}\n\r\n", 4);
  if (c->n >= FLUSH_AT) flush(c);
}

static void put_changed(struct conn *c, const struct pod *pod, const char *type) {
  static const char sent[] = "\"bench/sent\":\"", behind_sent[] = "\",";
  const size_t texts = strlen(type) + sizeof sent - 1 + sizeof behind_sent - 1;
  const char *json = pods.text + pod->start;
  size_t behind_rv = pod->rv + POD_RV_DIGITS;
  put_number(c, texts + SENT_DIGITS + pod->n + 2, 16, CHUNK_DIGITS);
  put(c, "\r\n", 2);
  put(c, type, strlen(type));
  put(c, json, pod->rv);
  put_number(c, last_rv++, 10, POD_RV_DIGITS);
  put(c, json + behind_rv, pod->annotations - behind_rv);
  put(c, sent, sizeof sent - 1);
  put_number(c, now(), 10, SENT_DIGITS);
  put(c, behind_sent, sizeof behind_sent - 1);
  put(c, json + pod->annotations, pod->n - pod->annotations);
  put(c, "}\n\r\n", 4);
}

static void put_bookmark(struct conn *c, const char *annotations) {
  char text[256];
  snprintf(
      text, sizeof text,
      "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{"
      "\"resourceVersion\":\"%lu\"%s}}}\n",
      (unsigned long)last_rv, annotations);
  chunk(c, text);
  flush(c);
}

static void put_all(struct conn *c) {
  unsigned long part = changed_part;
  for (size_t i = 0; i < pods.count && !c->dead; i++) {
    if (part > 0 && i % part == 0) {
      put_changed(c, &pods.v[i], added);
      if (c->n >= FLUSH_AT) flush(c);
    } else {
      put_added(c, &pods.v[i]);
    }
  }
  put_bookmark(c, ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}");
}

static void serve_bytes(struct conn *c) {
  start_body(c);
  put_all(c);
  end_body(c);
}

static void serve_list(struct conn *c, size_t from, size_t limit) {
  size_t end = limit > 0 && from + limit < pods.count ? from + limit : pods.count;
  char head[256];
  size_t n = (size_t)snprintf(head, sizeof head,
                              "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{"
                              "\"resourceVersion\":\"1999999999\"");
  if (end < pods.count) {
    n +=
        (size_t)snprintf(head + n, sizeof head - n,
                         ",\"continue\":\"%zu\",\"remainingItemCount\":%zu", end, pods.count - end);
  }
  snprintf(head + n, sizeof head - n, "},\"items\":[");
  start_body(c);
  chunk(c, head);
  for (size_t i = from; i < end && !c->dead; i++) {
    const struct pod *pod = &pods.v[i];
    size_t length = pod->n - pod->body;
    print(c, "%zx\r\n%s", length + (i > from ? 2 : 1), i > from ? ",{" : "{");
    put(c, pods.text + pod->start + pod->body, length);
    put(c, "\r\n", 2);
    if (c->n >= FLUSH_AT) flush(c);
  }
  chunk(c, "]}\n");
  end_body(c);
}

// Watches.

static void sleep_until(uint64_t at) {
  struct timespec t = {(time_t)(at / NANOS), (long)(at % NANOS)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void send_storm(struct conn *c, unsigned long events, unsigned long rate) {
  uint64_t start = now();
  if (events == 0) put_bookmark(c, "");
  for (unsigned long i = 0; i < events && !c->dead && pods.count > 0; i++) {
    if (rate > 0) sleep_until(start + i * NANOS / rate);
    put_changed(c, &pods.v[i * STRIDE % pods.count], modified);
    if (rate > 0 || c->n >= FLUSH_AT / 4) flush(c);
  }
  flush(c);
}

static void send_expired(struct conn *c) {
  chunk(c,
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":"
        "\"Failure\",\"reason\":\"Expired\",\"code\":410}}\n");
  end_body(c);
  c->dead = true;
}

static bool is_closed(struct conn *c) {
  struct pollfd p = {.fd = c->fd, .events = POLLIN};
  if (c->dead || poll(&p, 1, 0) <= 0) return c->dead;
  char byte;
  if (c->ssl == NULL) return recv(c->fd, &byte, 1, MSG_PEEK) <= 0;
  return SSL_peek(c->ssl, &byte, 1) <= 0;
}

static void serve_watch(struct conn *c, bool initial) {
  // Before anything is sent: whoever has heard from this watch gets the next storm.
  pthread_mutex_lock(&storm.lock);
  unsigned seen = storm.number;
  pthread_mutex_unlock(&storm.lock);
  start_body(c);
  if (initial) put_all(c);
  flush(c);
  pthread_mutex_lock(&storm.lock);
  while (!is_closed(c)) {
    if (storm.number == seen) {
      struct timespec until;
      clock_gettime(CLOCK_REALTIME, &until);
      until.tv_nsec += POLL_MS * 1000000L;
      until.tv_sec += until.tv_nsec / NANOS;
      until.tv_nsec %= NANOS;
      pthread_cond_timedwait(&storm.wake, &storm.lock, &until);
      continue;
    }
    seen = storm.number;
    unsigned long events = storm.events, rate = storm.rate;
    bool expired = storm.expired;
    pthread_mutex_unlock(&storm.lock);
    if (expired) {
      send_expired(c);
    } else {
      send_storm(c, events, rate);
    }
    pthread_mutex_lock(&storm.lock);
  }
  pthread_mutex_unlock(&storm.lock);
  c->dead = true;
}

static void start_storm(struct conn *c, unsigned long events, unsigned long rate, bool expired) {
  pthread_mutex_lock(&storm.lock);
  storm.number++;
  storm.events = events;
  storm.rate = rate;
  storm.expired = expired;
  pthread_cond_broadcast(&storm.wake);
  pthread_mutex_unlock(&storm.lock);
  answer(c, "200 OK", "{}\n");
}

// Requests.

// The number after name= in a query, or 0.
static unsigned long number(const char *query, const char *name) {
  size_t n = strlen(name);
  for (const char *at = query; (at = strstr(at, name)) != NULL; at += n) {
    if ((at[-1] == '?' || at[-1] == '&') && at[n] == '=') return strtoul(at + n + 1, NULL, 10);
  }
  return 0;
}

static void serve(struct conn *c, const char *path) {
  if (strncmp(path, "/bench/bytes", 12) == 0) {
    serve_bytes(c);
  } else if (strncmp(path, "/bench/storm", 12) == 0) {
    start_storm(c, number(path, "events"), number(path, "rate"), false);
  } else if (strncmp(path, "/bench/relist", 13) == 0) {
    changed_part = number(path, "part");
    start_storm(c, 0, 0, true);
  } else if (strncmp(path, "/api/v1/pods", 12) != 0) {
    answer(
        c, "404 Not Found",
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"NotFound\","
        "\"code\":404}\n");
  } else if (strstr(path, "watch=true") != NULL || strstr(path, "watch=1") != NULL) {
    serve_watch(c, strstr(path, "sendInitialEvents=true") != NULL);
  } else {
    serve_list(c, number(path, "continue"), number(path, "limit"));
  }
}

// Reads one request without a body; its path, or NULL at the end of the connection.
static char *read_request(struct conn *c, char *in) {
  size_t n = 0;
  while (n < REQUEST_MAX - 1) {
    int got = c->ssl != NULL ? SSL_read(c->ssl, in + n, (int)(REQUEST_MAX - 1 - n))
                             : (int)recv(c->fd, in + n, REQUEST_MAX - 1 - n, 0);
    if (got <= 0) return NULL;
    n += (size_t)got;
    in[n] = '\0';
    if (strstr(in, "\r\n\r\n") == NULL) continue;
    char *path = strchr(in, ' ');
    char *end = path != NULL ? strchr(path + 1, ' ') : NULL;
    if (end == NULL) return NULL;
    *end = '\0';
    return path + 1;
  }
  return NULL;
}

static void *connection(void *arg) {
  struct conn *c = arg;
  char in[REQUEST_MAX];
  int on = 1;
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (c->ssl != NULL && SSL_accept(c->ssl) <= 0) c->dead = true;
  char *path;
  while (!c->dead && (path = read_request(c, in)) != NULL) serve(c, path);
  SSL_free(c->ssl);
  close(c->fd);
  free(c);
  return NULL;
}

// Starting.

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *n,
                           const unsigned char *in, unsigned in_n, void *arg) {
  static const unsigned char http1[] = "\x08http/1.1";
  (void)ssl;
  (void)arg;
  int rc = SSL_select_next_proto((unsigned char **)out, n, http1, sizeof http1 - 1, in, in_n);
  return rc == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

static SSL_CTX *make_context(const char *cert, const char *key) {
  SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
  if (ctx == NULL || SSL_CTX_use_certificate_chain_file(ctx, cert) != 1 ||
      SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1) {
    ERR_print_errors_fp(stderr);
    exit(1);
  }
  SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
  // As kube-apiserver does, whatever the client would like best.
  SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE);
  if (SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384") != 1) abort();
  return ctx;
}

struct listener {
  int fd;
  int port;
  SSL_CTX *ctx;  // NULL: plain
};

static void listen_on(struct listener *l) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t n = sizeof at;
  l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (l->fd < 0 || bind(l->fd, (struct sockaddr *)&at, n) != 0 || listen(l->fd, 64) != 0 ||
      getsockname(l->fd, (struct sockaddr *)&at, &n) != 0) {
    die("listen");
  }
  l->port = ntohs(at.sin_port);
}

static void *accept_on(void *arg) {
  struct listener *l = arg;
  for (;;) {
    int fd = accept(l->fd, NULL, NULL);
    if (fd < 0) continue;
    struct conn *c = calloc(1, sizeof *c);
    if (c == NULL) abort();
    c->fd = fd;
    if (l->ctx != NULL) {
      c->ssl = SSL_new(l->ctx);
      SSL_set_fd(c->ssl, fd);
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, connection, c) != 0) abort();
    pthread_detach(thread);
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: fixture_server CERT KEY simple|diverse COUNT\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  struct listener tls = {.ctx = make_context(argv[1], argv[2])}, plain = {0};
  pods = pods_make(strtoul(argv[4], NULL, 10), strcmp(argv[3], "diverse") == 0);
  listen_on(&tls);
  listen_on(&plain);
  pthread_t thread;
  if (pthread_create(&thread, NULL, accept_on, &plain) != 0) die("thread");
  printf("ready %d %d %zu\n", tls.port, plain.port, pods.n);
  fflush(stdout);
  accept_on(&tls);
  return 0;
}
