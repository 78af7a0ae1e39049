// SPDX-License-Identifier: Apache-2.0
// floor: the least that any client has to pay for the bytes of fixture_server.
//
//   floor memcpy PLAIN-PORT COUNT   copies the bytes, and single pods at random places
//   floor tcp PLAIN-PORT            reads the bytes from a plain socket
//   floor tls TLS-PORT CA           reads the bytes through TLS
//   floor watch TLS-PORT CA PLAIN-PORT EVENTS RATE   opens a watch, asks for events, reads them
//   floor ready TLS-PORT CA         sends a request through TLS and says so to measure
//
// Prints "name value" lines: seconds, bytes, microseconds.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { READ_SIZE = 64 * 1024, NANOS = 1000000000, QUIET_MS = 500, COPIES = 5, SINGLES = 100000 };

struct conn {
  int fd;
  SSL *ssl;  // NULL: plain
};

static void die(const char *what) {
  fprintf(stderr, "floor: %s failed\n", what);
  ERR_print_errors_fp(stderr);
  exit(1);
}

static double clock_seconds(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double wall(void) { return clock_seconds(CLOCK_MONOTONIC); }
static double cpu(void) { return clock_seconds(CLOCK_PROCESS_CPUTIME_ID); }

static struct conn dial(const char *port, const char *ca) {
  struct sockaddr_in to = {.sin_family = AF_INET,
                           .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct conn c = {.fd = socket(AF_INET, SOCK_STREAM, 0)};
  if (connect(c.fd, (struct sockaddr *)&to, sizeof to) != 0) die("connect");
  if (ca == NULL) return c;
  SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
  if (SSL_CTX_load_verify_locations(ctx, ca, NULL) != 1) die("reading the CA");
  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
  c.ssl = SSL_new(ctx);
  SSL_set_fd(c.ssl, c.fd);
  if (SSL_connect(c.ssl) != 1) die("the TLS handshake");
  return c;
}

static void ask(struct conn *c, const char *path) {
  char text[512];
  int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
  int sent = c->ssl != NULL ? SSL_write(c->ssl, text, n) : (int)send(c->fd, text, (size_t)n, 0);
  if (sent != n) die("a request");
}

static size_t receive(struct conn *c, char *to, size_t room) {
  int n = c->ssl != NULL ? SSL_read(c->ssl, to, (int)room) : (int)recv(c->fd, to, room, 0);
  if (n <= 0) die("reading");
  return (size_t)n;
}

static bool is_last(const char *p, size_t n) {
  return n >= 5 && memcmp(p + n - 5, "0\r\n\r\n", 5) == 0;
}

static void download(const char *port, const char *ca) {
  char *in = malloc(READ_SIZE);
  struct conn c = dial(port, ca);
  double start = wall(), spent = cpu();
  size_t total = 0, n = 0;
  ask(&c, "/bench/bytes");
  do {
    n = receive(&c, in, READ_SIZE);
    total += n;
  } while (!is_last(in, n));
  printf("wall %.6f\ncpu %.6f\nbytes %zu\n", wall() - start, cpu() - spent, total);
}

static char *fetch(const char *port, size_t *n) {
  struct conn c = dial(port, NULL);
  size_t cap = 1 << 20, got = 0;
  char *text = malloc(cap);
  ask(&c, "/bench/bytes");
  *n = 0;
  do {
    if (cap - *n < READ_SIZE) text = realloc(text, cap *= 2);
    if (text == NULL) die("memory");
    got = receive(&c, text + *n, READ_SIZE);
    *n += got;
  } while (!is_last(text + *n - got, got));
  return text;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void copy_bytes(const char *port, size_t count) {
  size_t n;
  char *from = fetch(port, &n);
  char *to = malloc(n);
  if (to == NULL) die("memory");
  memset(to, 1, n);
  double took[COPIES];
  for (int i = 0; i < COPIES; i++) {
    double start = wall();
    memcpy(to, from, n);
    took[i] = wall() - start;
    // Looked at, so that no copy is left out.
    if (to[(size_t)i * 97 % n] != from[(size_t)i * 97 % n]) die("memcpy");
  }
  qsort(took, COPIES, sizeof took[0], by_value);
  size_t size = count > 0 ? n / count : 1, sum = 0;
  double start = wall();
  for (size_t i = 0; i < SINGLES && n > 2 * size; i++) {
    memcpy(to, from + i * 2654435761u % (n - size), size);
    sum += (unsigned char)to[i % size];
  }
  double single = (wall() - start) / SINGLES * 1e6;
  printf("wall %.6f\ncpu %.6f\nbytes %zu\npod_us %.4f\nsum %zu\n", took[COPIES / 2],
         took[COPIES / 2], n, single, sum);
}

struct latencies {
  double *v;
  size_t n, cap;
};

// A mark that two reads cut in two is not counted: there are enough others.
static void note(struct latencies *l, const char *p, size_t n, double at) {
  static const char mark[] = "\"bench/sent\":\"";
  const char *end = p + n;
  while ((p = memmem(p, (size_t)(end - p), mark, sizeof mark - 1)) != NULL) {
    p += sizeof mark - 1;
    if (end - p < 20) return;
    char digits[21] = {0};
    memcpy(digits, p, 20);
    if (l->n < l->cap) l->v[l->n++] = at - (double)strtoull(digits, NULL, 10) * 1e-9;
  }
}

static void watch(char **args) {
  unsigned long events = strtoul(args[3], NULL, 10), rate = strtoul(args[4], NULL, 10);
  struct latencies l = {.v = calloc(events, sizeof(double)), .cap = events};
  char *in = malloc(READ_SIZE);
  char path[128];
  snprintf(path, sizeof path, "/bench/storm?events=%lu&rate=%lu", events, rate);
  struct conn c = dial(args[0], args[1]), control = dial(args[2], NULL);
  ask(&c, "/api/v1/pods?watch=true");
  receive(&c, in, READ_SIZE);
  ask(&control, path);
  receive(&control, in, READ_SIZE);
  double start = wall(), spent = cpu(), last = start;
  size_t bytes = 0;
  struct pollfd p = {.fd = c.fd, .events = POLLIN};
  while (SSL_pending(c.ssl) > 0 || poll(&p, 1, QUIET_MS) > 0) {
    size_t n = receive(&c, in, READ_SIZE);
    last = wall();
    bytes += n;
    if (rate > 0) note(&l, in, n, last);
  }
  printf("wall %.6f\ncpu %.6f\nbytes %zu\n", last - start, cpu() - spent, bytes);
  if (l.n == 0) return;
  qsort(l.v, l.n, sizeof l.v[0], by_value);
  printf("p50_us %.1f\np99_us %.1f\n", l.v[l.n / 2] * 1e6, l.v[l.n * 99 / 100] * 1e6);
}

static void ready(const char *port, const char *ca) {
  char in[4096];
  struct conn c = dial(port, ca);
  ask(&c, "/api/v1/pods?watch=true&sendInitialEvents=true");
  receive(&c, in, sizeof in);
  printf("phase ready\nphase end\n");
  fflush(stdout);
  pause();
}

int main(int argc, char **argv) {
  const char *mode = argc > 2 ? argv[1] : "";
  if (strcmp(mode, "memcpy") == 0 && argc == 4) {
    copy_bytes(argv[2], strtoul(argv[3], NULL, 10));
  } else if (strcmp(mode, "tcp") == 0 && argc == 3) {
    download(argv[2], NULL);
  } else if (strcmp(mode, "tls") == 0 && argc == 4) {
    download(argv[2], argv[3]);
  } else if (strcmp(mode, "watch") == 0 && argc == 7) {
    watch(argv + 2);
  } else if (strcmp(mode, "ready") == 0 && argc == 4) {
    ready(argv[2], argv[3]);
  } else {
    fprintf(stderr, "usage: floor memcpy|tcp|tls|watch|ready PORT ...; see floor.c\n");
    return 2;
  }
  return 0;
}
