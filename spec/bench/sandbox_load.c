// SPDX-License-Identifier: Apache-2.0
// sandbox_load start BINARY TIMES: starts a sandbox so often; prints start.wall and start.cpu (s)
// of each, and idle.rss (kB) of the last one. sandbox_load run PID PORT TOKEN OBJECTS WRITES: loads
// the sandbox that runs as PID, over plain HTTP on loopback, and prints "name value" lines: rates
// per second, list.wall, full.rss (kB), and beside each rate the share of the time that this
// program (.client) and the sandbox (.server) computed.
//
// Every watcher's events are checked: as many as there were changes, their resourceVersions rising,
// and the same ones as the writers were told. Anything else ends it with an error.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CONNS = 50, WATCHERS = 50, REQUEST_MAX = 4096 };

static int server_pid, server_port;
static const char *token;

static void die(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("sandbox_load: ", stderr);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// ---- processes ----

static double own_cpu(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void read_proc(int pid, const char *name, char *text, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  FILE *f = fopen(path, "r");
  if (f == NULL) die("no process %d", pid);
  size_t n = fread(text, 1, size - 1, f);
  text[n] = '\0';
  fclose(f);
}

static double cpu_of(int pid) {
  char text[1024];
  read_proc(pid, "stat", text, sizeof text);
  char *p = strrchr(text, ')');
  unsigned long user = 0, system = 0;
  if (p == NULL ||
      sscanf(p, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2) {
    die("/proc/%d/stat cannot be read", pid);
  }
  return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

// The same to the microsecond, while it runs.
static double exact_cpu_of(pid_t pid) {
  clockid_t clock;
  struct timespec t;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) die("no process");
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static long rss_of(int pid) {
  char text[4096];
  read_proc(pid, "status", text, sizeof text);
  char *p = strstr(text, "VmRSS:");
  return p != NULL ? strtol(p + 6, NULL, 10) : 0;
}

static void start_once(char *binary, bool last) {
  int out[2];
  if (pipe(out) != 0) die("pipe");
  double begin = now();
  pid_t pid = fork();
  if (pid == 0) {
    dup2(out[1], 1);
    close(out[0]);
    execl(binary, binary, "sandbox", "--plain-http", "--listen", "127.0.0.1:0", (char *)NULL);
    _exit(127);
  }
  close(out[1]);
  FILE *f = fdopen(out[0], "r");
  char line[512];
  bool ready = false;
  while (!ready && fgets(line, sizeof line, f) != NULL) {
    ready = strncmp(line, "The sandbox serves ", 19) == 0;
  }
  if (!ready) die("%s did not start", binary);
  printf("start.wall %.6f\nstart.cpu %.6f\n", now() - begin, exact_cpu_of(pid));
  if (last) {
    usleep(500 * 1000);
    printf("idle.rss %ld\n", rss_of(pid));
  }
  kill(pid, SIGTERM);
  int status = 0;
  waitpid(pid, &status, 0);
  fclose(f);
  if (status != 0) die("the sandbox ended with status %d", status);
}

// ---- connections ----

struct conn {
  int fd;
  char *in;
  size_t n, cap;
  bool busy;
  // A stream's state.
  size_t chunk_left;
  bool headed;
  char *line;
  size_t line_n, line_cap;
  uint64_t events, last, sum;
};

static struct conn conns[CONNS], watchers[WATCHERS];

static void open_conn(struct conn *c) {
  *c = (struct conn){.fd = socket(AF_INET, SOCK_STREAM, 0)};
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)server_port)};
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(c->fd, (struct sockaddr *)&a, sizeof a) != 0) die("cannot connect");
  int one = 1;
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void close_conn(struct conn *c) {
  close(c->fd);
  free(c->in);
  free(c->line);
  *c = (struct conn){.fd = -1};
}

static void add(char **p, size_t *n, size_t *cap, const char *data, size_t size) {
  if (*n + size + 1 > *cap) {
    *cap = (*n + size + 1) * 2;
    *p = realloc(*p, *cap);
    if (*p == NULL) die("no memory");
  }
  memcpy(*p + *n, data, size);
  *n += size;
  (*p)[*n] = '\0';
}

static void send_request(struct conn *c, const char *method, const char *path, const char *type,
                         const char *body) {
  char text[REQUEST_MAX];
  int n = snprintf(text, sizeof text,
                   "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                   "User-Agent: bench\r\nAccept: application/json\r\nContent-Type: %s\r\n"
                   "Content-Length: %zu\r\n\r\n%s",
                   method, path, token, type, strlen(body), body);
  if (n >= (int)sizeof text) die("a request is too long");
  for (int at = 0; at < n;) {
    ssize_t sent = write(c->fd, text + at, (size_t)(n - at));
    if (sent <= 0) die("the sandbox hung up on a request");
    at += (int)sent;
  }
  c->busy = true;
}

static uint64_t version_in(const char *text) {
  const char *p = strstr(text, "\"resourceVersion\":\"");
  return p != NULL ? strtoull(p + 19, NULL, 10) : 0;
}

// Reads what is there. True when the reply is complete: its body is at c->in + *body.
static bool read_reply(struct conn *c, size_t *body) {
  char data[64 * 1024];
  ssize_t n = read(c->fd, data, sizeof data);
  if (n <= 0) die("the sandbox hung up");
  add(&c->in, &c->n, &c->cap, data, (size_t)n);
  char *end = strstr(c->in, "\r\n\r\n");
  if (end == NULL) return false;
  char *length = strstr(c->in, "Content-Length: ");
  if (length == NULL || length > end) die("a reply without a length: %.300s", c->in);
  *body = (size_t)(end - c->in) + 4;
  if (c->n < *body + strtoul(length + 16, NULL, 10)) return false;
  if (c->in[9] != '2') die("not a success: %s", c->in);
  c->busy = false;
  return true;
}

// ---- watches ----

static void take_line(struct conn *c) {
  uint64_t version = version_in(c->line);
  if (version <= c->last)
    die("an event out of order: %llu after %llu", (unsigned long long)version,
        (unsigned long long)c->last);
  c->last = version;
  c->sum += version;
  c->events++;
  c->line_n = 0;
}

static void take_text(struct conn *c, const char *p, size_t n) {
  while (n > 0) {
    const char *end = memchr(p, '\n', n);
    size_t part = end != NULL ? (size_t)(end - p) : n;
    add(&c->line, &c->line_n, &c->line_cap, p, part);
    if (end == NULL) return;
    take_line(c);
    p += part + 1;
    n -= part + 1;
  }
}

static void read_events(struct conn *c) {
  char data[256 * 1024];
  ssize_t n = read(c->fd, data, sizeof data);
  if (n <= 0) die("the sandbox cut a watch after %llu events", (unsigned long long)c->events);
  add(&c->in, &c->n, &c->cap, data, (size_t)n);
  size_t at = 0;
  if (!c->headed) {
    char *end = strstr(c->in, "\r\n\r\n");
    if (end == NULL) return;
    if (strncmp(c->in + 9, "200", 3) != 0) die("no watch: %s", c->in);
    c->headed = true;
    at = (size_t)(end - c->in) + 4;
  }
  while (at < c->n) {
    if (c->chunk_left == 0) {
      char *end = memmem(c->in + at, c->n - at, "\r\n", 2);
      if (end == NULL) break;
      c->chunk_left = strtoul(c->in + at, NULL, 16) + 2;  // and its line end
      if (c->chunk_left == 2) die("the sandbox ended a watch");
      at = (size_t)(end - c->in) + 2;
      continue;
    }
    size_t part = c->n - at < c->chunk_left ? c->n - at : c->chunk_left;
    size_t text = c->chunk_left > 2 ? c->chunk_left - 2 : 0;
    take_text(c, c->in + at, part < text ? part : text);
    c->chunk_left -= part;
    at += part;
  }
  memmove(c->in, c->in + at, c->n - at);
  c->n -= at;
}

// ---- loads ----

static const char base[] = "/api/v1/namespaces/default/configmaps";

enum verb { CREATE, UPDATE, MERGE, APPLY, DELETE };
static const char *const verbs[] = {"create", "update", "merge", "apply", "delete"};

static void send_write(struct conn *c, enum verb verb, const char *prefix, unsigned i) {
  char path[256], body[1024];
  snprintf(path, sizeof path, "%s/%s%u%s", base, prefix, i,
           verb == APPLY ? "?fieldManager=bench&force=true" : "");
  snprintf(
      body, sizeof body,
      "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s%u\",\"labels\":"
      "{\"app\":\"bench\"}},\"data\":{\"step\":\"%s\",\"text\":\"some text of a usual length\"}}",
      prefix, i, verbs[verb]);
  switch (verb) {
    case CREATE:
      send_request(c, "POST", base, "application/json", body);
      return;
    case UPDATE:
      send_request(c, "PUT", path, "application/json", body);
      return;
    case MERGE:
      snprintf(body, sizeof body, "{\"data\":{\"step\":\"merge-%.0f\"}}", now() * 1e6);
      send_request(c, "PATCH", path, "application/merge-patch+json", body);
      return;
    case APPLY:
      send_request(c, "PATCH", path, "application/apply-patch+yaml", body);
      return;
    case DELETE:
      send_request(c, "DELETE", path, "application/json", "");
      return;
  }
}

struct times {
  double wall, client, server;
};

static struct times times_now(void) { return (struct times){now(), own_cpu(), cpu_of(server_pid)}; }

static void report(const char *name, double count, struct times begin) {
  struct times end = times_now();
  double wall = end.wall - begin.wall;
  printf("%s %.1f\n%s.client %.3f\n%s.server %.3f\n", name, count / wall, name,
         (end.client - begin.client) / wall, name, (end.server - begin.server) / wall);
  fflush(stdout);
}

// Does `count` writes over so many connections while so many watchers listen, until these have
// everything. Returns the sum of the versions that the writers were told.
static uint64_t run_writes(enum verb verb, const char *prefix, unsigned count, unsigned width,
                           unsigned watching) {
  struct pollfd fds[CONNS + WATCHERS];
  unsigned sent = 0, done = 0, full = 0;
  uint64_t sum = 0;
  for (unsigned i = 0; i < width && sent < count; i++) send_write(&conns[i], verb, prefix, sent++);
  for (unsigned i = 0; i < watching; i++) watchers[i].events = watchers[i].sum = 0;
  while (done < count || full < watching) {
    for (unsigned i = 0; i < width; i++)
      fds[i] = (struct pollfd){.fd = conns[i].busy ? conns[i].fd : -1, .events = POLLIN};
    for (unsigned i = 0; i < watching; i++)
      fds[width + i] = (struct pollfd){.fd = watchers[i].fd, .events = POLLIN};
    if (poll(fds, width + watching, 20000) <= 0)
      die("nothing happens: %u writes, %u done", count, done);
    for (unsigned i = 0; i < width; i++) {
      size_t body;
      if (fds[i].revents == 0 || !read_reply(&conns[i], &body)) continue;
      sum += version_in(conns[i].in + body);
      conns[i].n = 0;
      done++;
      if (sent < count) send_write(&conns[i], verb, prefix, sent++);
    }
    full = 0;
    for (unsigned i = 0; i < watching; i++) {
      if (fds[width + i].revents != 0) read_events(&watchers[i]);
      if (watchers[i].events > count) die("a watcher has more events than there were changes");
      if (watchers[i].events == count) full++;
    }
  }
  return sum;
}

static uint64_t list(bool measured) {
  struct times begin = times_now();
  send_request(&conns[0], "GET", base, "application/json", "");
  size_t body;
  while (!read_reply(&conns[0], &body)) continue;
  if (measured) {
    printf("list.wall %.6f\nlist.bytes %zu\n", now() - begin.wall, conns[0].n - body);
  }
  // The list's own version stands behind its items.
  char *p = conns[0].in + body, *last = NULL;
  while ((p = strstr(p, "\"metadata\":{\"resourceVersion\":\"")) != NULL) last = p++;
  if (last == NULL) die("a list without a version");
  conns[0].n = 0;
  return version_in(last);
}

static void watch(unsigned count, unsigned writes) {
  uint64_t version = list(false);
  char path[256], name[32];
  snprintf(path, sizeof path, "%s?watch=1&resourceVersion=%llu", base, (unsigned long long)version);
  for (unsigned i = 0; i < count; i++) {
    open_conn(&watchers[i]);
    send_request(&watchers[i], "GET", path, "application/json", "");
  }
  snprintf(name, sizeof name, "watch%u", count);
  struct times begin = times_now();
  uint64_t sum = run_writes(MERGE, "o", writes, CONNS, count);
  report(name, (double)writes * count, begin);
  for (unsigned i = 0; i < count; i++) {
    if (watchers[i].sum != sum) die("a watcher saw other changes than were made");
    close_conn(&watchers[i]);
  }
}

static void run(unsigned objects, unsigned writes) {
  for (unsigned i = 0; i < CONNS; i++) open_conn(&conns[i]);
  struct times begin = times_now();
  run_writes(CREATE, "o", objects, CONNS, 0);
  report("fill", objects, begin);
  list(true);
  printf("full.rss %ld\n", rss_of(server_pid));
  const unsigned widths[] = {1, CONNS};
  for (unsigned w = 0; w < 2; w++) {
    for (enum verb verb = CREATE; verb <= DELETE; verb++) {
      char name[32], prefix[16];
      snprintf(prefix, sizeof prefix, "w%u-", widths[w]);
      snprintf(name, sizeof name, "%s%u", verbs[verb], widths[w]);
      begin = times_now();
      run_writes(verb, prefix, writes, widths[w], 0);
      report(name, writes, begin);
    }
  }
  watch(1, writes);
  watch(WATCHERS, writes);
  printf("end.rss %ld\n", rss_of(server_pid));
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
  if (argc == 4 && strcmp(argv[1], "start") == 0) {
    long times = strtol(argv[3], NULL, 10);
    for (long i = 1; i <= times; i++) start_once(argv[2], i == times);
    return 0;
  }
  if (argc != 7 || strcmp(argv[1], "run") != 0) die("see the head of its source");
  server_pid = (int)strtol(argv[2], NULL, 10);
  server_port = (int)strtol(argv[3], NULL, 10);
  token = argv[4];
  run((unsigned)strtoul(argv[5], NULL, 10), (unsigned)strtoul(argv[6], NULL, 10));
  return 0;
}
