// SPDX-License-Identifier: Apache-2.0
// measure [-c PORT] [-t SECONDS] PROGRAM ARGUMENTS...: runs a program and measures it at its own
// marks.
//
// A line "phase NAME" on the program's stdout is a mark: the wall time since the start, the CPU
// time so far, the resident memory now and at its highest since the mark before are printed as
// NAME.wall, NAME.cpu (s), NAME.rss and NAME.peak (kB). "phase NAME GET /path" also sends that
// request to PORT on loopback, after measuring. "phase end" ends the program with SIGTERM. Lines
// "result NAME VALUE" are printed as "NAME VALUE"; others go to stderr.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
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

enum { LINE_MAX_LEN = 4096, DEFAULT_TIMEOUT = 120 };

struct run {
  pid_t pid;
  double start;
  const char *port;
  bool ended;
};

static double clock_seconds(clockid_t id) {
  struct timespec t;
  return clock_gettime(id, &t) == 0 ? (double)t.tv_sec + (double)t.tv_nsec * 1e-9 : 0;
}

static double cpu_of(pid_t pid) {
  clockid_t id;
  return clock_getcpuclockid(pid, &id) == 0 ? clock_seconds(id) : 0;
}

// A field of a /proc file in kB, or 0. The kernel's own sums in smaps_rollup are exact; those in
// status lag behind by some pages per thread.
static long field(pid_t pid, const char *file, const char *name) {
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
  FILE *f = fopen(path, "r");
  long value = 0;
  while (f != NULL && fgets(line, sizeof line, f) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0) value = strtol(line + strlen(name), NULL, 10);
  }
  if (f != NULL) fclose(f);
  return value;
}

// The highest resident memory counts anew.
static void forget_peak(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/clear_refs", (int)pid);
  FILE *f = fopen(path, "w");
  if (f == NULL || fputs("5", f) < 0) perror("measure: clear_refs");
  if (f != NULL) fclose(f);
}

static void get(const char *port, const char *path) {
  struct sockaddr_in to = {.sin_family = AF_INET,
                           .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  char text[512];
  int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0 || send(fd, text, (size_t)n, 0) != n ||
      recv(fd, text, sizeof text, 0) <= 0) {
    perror("measure: request");
  }
  close(fd);
}

static void mark(struct run *r, char *name) {
  double wall = clock_seconds(CLOCK_MONOTONIC) - r->start, cpu = cpu_of(r->pid);
  char *request = strstr(name, " GET ");
  if (request != NULL) *request = '\0';
  printf("%s.wall %.6f\n%s.cpu %.6f\n%s.rss %ld\n%s.peak %ld\n", name, wall, name, cpu, name,
         field(r->pid, "smaps_rollup", "Rss:"), name, field(r->pid, "status", "VmHWM:"));
  fflush(stdout);
  forget_peak(r->pid);
  if (request != NULL && r->port != NULL) get(r->port, request + 5);
  if (strcmp(name, "end") == 0) {
    r->ended = true;
    kill(r->pid, SIGTERM);
  }
}

static void take_line(struct run *r, char *line) {
  line[strcspn(line, "\n")] = '\0';
  if (strncmp(line, "phase ", 6) == 0) {
    mark(r, line + 6);
  } else if (strncmp(line, "result ", 7) == 0) {
    puts(line + 7);
  } else {
    fprintf(stderr, "%s\n", line);
  }
}

static int spawn(struct run *r, char **argv) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  r->start = clock_seconds(CLOCK_MONOTONIC);
  r->pid = vfork();
  if (r->pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(argv[0], argv);
    _exit(127);
  }
  close(ends[1]);
  return ends[0];
}

static void on_alarm(int number) { (void)number; }

int main(int argc, char **argv) {
  struct run r = {0};
  unsigned timeout = DEFAULT_TIMEOUT;
  int option;
  while ((option = getopt(argc, argv, "+c:t:")) != -1) {
    if (option == 'c') r.port = optarg;
    if (option == 't') timeout = (unsigned)strtoul(optarg, NULL, 10);
    if (option == '?') return 2;
  }
  if (optind >= argc) {
    fprintf(stderr, "usage: measure [-c PORT] [-t SECONDS] PROGRAM ARGUMENTS...\n");
    return 2;
  }
  struct sigaction action = {.sa_handler = on_alarm};
  sigaction(SIGALRM, &action, NULL);
  int fd = spawn(&r, argv + optind);
  FILE *lines = fd >= 0 ? fdopen(fd, "r") : NULL;
  if (lines == NULL) return 1;
  alarm(timeout);
  char line[LINE_MAX_LEN];
  while (fgets(line, sizeof line, lines) != NULL) take_line(&r, line);
  bool late = !feof(lines);
  if (late) kill(r.pid, SIGKILL);
  int status = 0;
  struct rusage used;
  while (wait4(r.pid, &status, 0, &used) < 0 && errno == EINTR) kill(r.pid, SIGKILL);
  if (late) fprintf(stderr, "measure: nothing for %u s, killed\n", timeout);
  bool fine = r.ended || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
  if (!fine) fprintf(stderr, "measure: %s ended with status %#x\n", argv[optind], status);
  return fine && !late ? 0 : 1;
}
