// SPDX-License-Identifier: Apache-2.0
#include "script/control_path.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { PLACES = 2, ENTRIES_MAX = 10000 };

static const char suffix[] = ".sock";

// The i-th directory to look in; false when there is none.
static bool place(int i, char out[MW_CONTROL_PATH_MAX]) {
  const char *base = getenv(i == 0 ? "XDG_RUNTIME_DIR" : "TMPDIR");
  if (base == NULL || base[0] != '/') base = i == 0 ? NULL : "/tmp";
  if (base == NULL) return false;
  int n = i == 0 ? snprintf(out, MW_CONTROL_PATH_MAX, "%s/moonwatch", base)
                 : snprintf(out, MW_CONTROL_PATH_MAX, "%s/moonwatch-%lu", base,
                            (unsigned long)geteuid());
  return n < MW_CONTROL_PATH_MAX;
}

// Whether it is a directory of ours that nobody else can get into.
static int check_directory(const char *path, struct mw_err *err) {
  struct stat st;
  if (lstat(path, &st) != 0) {
    return mw_err_set(err, MW_EIO, "cannot use %s: %s", path, strerror(errno));
  }
  const char *problem = NULL;
  if (!S_ISDIR(st.st_mode)) {
    problem = "it is no directory";
  } else if (st.st_uid != geteuid()) {
    problem = "it belongs to another user";
  } else if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    problem = "others can look into it; run chmod 700 on it";
  }
  return problem == NULL ? 0 : mw_err_set(err, MW_EIO, "cannot use %s: %s", path, problem);
}

// The socket of a process in a directory; false when that is too long.
static bool join(char out[MW_CONTROL_PATH_MAX], const char *directory, pid_t pid) {
  int n = snprintf(out, MW_CONTROL_PATH_MAX, "%s/%ld%s", directory, (long)pid, suffix);
  return n < MW_CONTROL_PATH_MAX;
}

// 0 when somebody listens there, else errno.
static int try_connect(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) return ENAMETOOLONG;
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  int rc = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
  close(fd);
  return rc == EAGAIN ? 0 : rc;  // it has much to do
}

void mw_control_remove_stale(const char *path) {
  struct stat st;
  if (lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid()) return;
  if (try_connect(path) == ECONNREFUSED) unlink(path);
}

// The process of "123.sock", or 0.
static pid_t pid_of(const char *name) {
  char *end;
  long pid = strtol(name, &end, 10);
  return pid > 0 && strcmp(end, suffix) == 0 ? (pid_t)pid : 0;
}

// Calls cb with each process that has a socket there.
static void each_socket(const char *directory, void (*cb)(void *ctx, const char *path, pid_t pid),
                        void *ctx) {
  DIR *d = opendir(directory);
  struct dirent *e;
  for (int n = 0; d != NULL && n < ENTRIES_MAX && (e = readdir(d)) != NULL; n++) {
    char path[MW_CONTROL_PATH_MAX];
    pid_t pid = pid_of(e->d_name);
    if (pid > 0 && join(path, directory, pid)) cb(ctx, path, pid);
  }
  if (d != NULL) closedir(d);
}

// Of one that has died; between bind and listen one is refused, too, but is alive. A process of
// another PID namespace answers.
static void sweep_one(void *ctx, const char *path, pid_t pid) {
  (void)ctx;
  if (kill(pid, 0) != 0 && errno == ESRCH) mw_control_remove_stale(path);
}

int mw_control_default_path(char out[MW_CONTROL_PATH_MAX], struct mw_err *err) {
  int rc = MW_EIO;
  for (int i = 0; i < PLACES && rc != 0; i++) {
    char directory[MW_CONTROL_PATH_MAX];
    if (!place(i, directory)) continue;
    mkdir(directory, S_IRWXU);  // check_directory tells what became of it
    rc = check_directory(directory, err);
    if (rc < 0) continue;
    each_socket(directory, sweep_one, NULL);
    if (!join(out, directory, getpid())) rc = mw_err_set(err, MW_EIO, "%s is too long", directory);
  }
  return rc;
}

struct search {
  struct mw_control_found *out;
  size_t count;
};

static void take(void *ctx, const char *path, pid_t pid) {
  struct search *s = ctx;
  sweep_one(NULL, path, pid);
  if (s->count == MW_CONTROL_FOUND_MAX || try_connect(path) != 0) return;
  struct mw_control_found *f = &s->out[s->count++];
  f->pid = pid;
  snprintf(f->path, sizeof f->path, "%s", path);
}

static int by_pid(const void *a, const void *b) {
  pid_t x = ((const struct mw_control_found *)a)->pid,
        y = ((const struct mw_control_found *)b)->pid;
  return (x > y) - (x < y);
}

size_t mw_control_find(struct mw_control_found *out) {
  struct search search = {out, 0};
  for (int i = 0; i < PLACES; i++) {
    char directory[MW_CONTROL_PATH_MAX];
    struct mw_err err;
    if (place(i, directory) && check_directory(directory, &err) == 0) {
      each_socket(directory, take, &search);
    }
  }
  qsort(out, search.count, sizeof *out, by_pid);
  return search.count;
}
