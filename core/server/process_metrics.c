// SPDX-License-Identifier: Apache-2.0
#include "server/process_metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/metric.h"

#ifndef MW_VERSION
#define MW_VERSION "0.0.0"  // the build says which
#endif

enum { CPU = 0, RESIDENT, VIRTUAL, FDS, FDS_MAX, START, BUILD, COUNT };

struct mw_process_metrics {
  struct mw_series *series[COUNT];
};

static const struct {
  const char *name, *help;
  enum mw_metric_type type;
} families[BUILD] = {
    [CPU] = {"process_cpu_seconds_total", "User and system CPU time spent.", MW_METRIC_COUNTER},
    [RESIDENT] = {"process_resident_memory_bytes", "Resident memory.", MW_METRIC_GAUGE},
    [VIRTUAL] = {"process_virtual_memory_bytes", "Virtual memory.", MW_METRIC_GAUGE},
    [FDS] = {"process_open_fds", "Open file descriptors.", MW_METRIC_GAUGE},
    [FDS_MAX] = {"process_max_fds", "The most file descriptors it may open.", MW_METRIC_GAUGE},
    [START] = {"process_start_time_seconds", "When it started, in seconds since the epoch.",
               MW_METRIC_GAUGE},
};

// What stands in a file of /proc; false when it cannot be read.
static bool read_file(const char *path, char *out, size_t room) {
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  size_t n = fread(out, 1, room - 1, file);
  fclose(file);
  out[n] = '\0';
  return n > 0;
}

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

// When the machine booted, to which the start of a process is relative.
static double boot_time(void) {
  struct timespec since;
  clock_gettime(CLOCK_BOOTTIME, &since);
  return mw_clock_wall() - ((double)since.tv_sec + (double)since.tv_nsec / 1e9);
}

static double start_time(void) {
  char text[4096];
  if (!read_file("/proc/self/stat", text, sizeof text)) return 0;
  const char *rest = strrchr(text, ')');  // the name may hold anything
  unsigned long long ticks = 0;
  static const char format[] =
      ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu";
  if (rest == NULL || sscanf(rest, format, &ticks) != 1) return 0;
  return boot_time() + (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static double open_files(void) {
  DIR *dir = opendir("/proc/self/fd");
  if (dir == NULL) return 0;
  double n = -1;  // the one that reads them
  for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
    if (e->d_name[0] != '.') n++;
  }
  closedir(dir);
  return n;
}

static void read_all(void *ctx) {
  struct mw_process_metrics *p = ctx;
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    mw_series_set(p->series[CPU], seconds(usage.ru_utime) + seconds(usage.ru_stime));
  }
  char text[256];
  unsigned long long virtual, resident;
  if (read_file("/proc/self/statm", text, sizeof text) &&
      sscanf(text, "%llu %llu", &virtual, &resident) == 2) {
    double page = (double)sysconf(_SC_PAGESIZE);
    mw_series_set(p->series[VIRTUAL], (double)virtual * page);
    mw_series_set(p->series[RESIDENT], (double)resident * page);
  }
  mw_series_set(p->series[FDS], open_files());
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    mw_series_set(p->series[FDS_MAX], (double)limit.rlim_cur);
  }
}

struct mw_process_metrics *mw_process_metrics_new(const char *lua) {
  struct mw_process_metrics *p = mw_xcalloc(1, sizeof *p);
  for (int i = 0; i < BUILD; i++) {
    struct mw_metric_spec spec = {
        .name = families[i].name, .help = families[i].help, .type = families[i].type};
    p->series[i] = mw_metric_series(mw_metric_family(&spec), NULL);
  }
  static const char *const labels[] = {"version", "lua"};
  struct mw_metric_spec build = {.name = "moonwatch_build_info",
                                 .help = "Always 1; which Moonwatch this is.",
                                 .type = MW_METRIC_GAUGE,
                                 .labels = labels,
                                 .label_count = 2};
  p->series[BUILD] =
      mw_metric_series(mw_metric_family(&build), (const char *const[]){MW_VERSION, lua});
  mw_series_set(p->series[BUILD], 1);
  mw_series_set(p->series[START], start_time());
  mw_metric_on_write(read_all, p);
  return p;
}

void mw_process_metrics_free(struct mw_process_metrics *p) {
  mw_metric_off_write(read_all, p);
  for (int i = 0; i < COUNT; i++) mw_series_unref(p->series[i]);
  mw_free(p);
}
