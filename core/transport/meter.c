// SPDX-License-Identifier: Apache-2.0
#include "transport/meter.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/metric.h"

// Labels come from servers' statuses and from kubeconfigs; no process has that many.
enum { SERIES_MAX = 1000, NAME_MAX_BYTES = 512 };

static const double bounds[] = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};

struct mw_meter {
  struct mw_metric *requests, *duration;
  struct mw_map series;  // "t code method host" and "d method host" -> mw_series
};

struct mw_meter *mw_meter_new(void) {
  static const char *const by_code[] = {"code", "method", "host"}, *const by_verb[] = {"verb",
                                                                                       "host"};
  struct mw_meter *m = mw_xcalloc(1, sizeof *m);
  m->requests = mw_metric_family(
      &(struct mw_metric_spec){.name = "rest_client_requests_total",
                               .help = "HTTP requests to API servers, each attempt by itself.",
                               .type = MW_METRIC_COUNTER,
                               .labels = by_code,
                               .label_count = 3});
  m->duration = mw_metric_family(
      &(struct mw_metric_spec){.name = "rest_client_request_duration_seconds",
                               .help = "Seconds until an HTTP request to an API server had ended.",
                               .type = MW_METRIC_HISTOGRAM,
                               .labels = by_verb,
                               .label_count = 2,
                               .buckets = bounds,
                               .bucket_count = sizeof bounds / sizeof bounds[0]});
  mw_map_init(&m->series);
  return m;
}

void mw_meter_free(struct mw_meter *m) {
  if (m == NULL) return;
  struct mw_slice key;
  void *series;
  for (size_t cursor = 0; mw_map_next(&m->series, &cursor, &key, &series);) {
    mw_series_unref(series);
  }
  mw_map_deinit(&m->series);
  mw_free(m);
}

// The series of these labels; NULL: there are too many of them.
static struct mw_series *series_of(struct mw_meter *m, struct mw_metric *family, const char *name,
                                   const char *const *labels) {
  struct mw_slice key = mw_slice_str(name);
  struct mw_series *s = mw_map_get(&m->series, key);
  if (s != NULL || m->series.count >= SERIES_MAX) return s;
  s = mw_metric_series(family, labels);
  mw_map_set(&m->series, key, s);
  return s;
}

void mw_meter_count(struct mw_meter *m, const char *method, const char *host, int status,
                    double seconds) {
  char code[16] = "<error>", name[NAME_MAX_BYTES];
  if (status != 0) snprintf(code, sizeof code, "%d", status);
  snprintf(name, sizeof name, "t %s %s %s", code, method, host);
  struct mw_series *s = series_of(m, m->requests, name, (const char *const[]){code, method, host});
  if (s != NULL) mw_series_add(s, 1);
  snprintf(name, sizeof name, "d %s %s", method, host);
  s = series_of(m, m->duration, name, (const char *const[]){method, host});
  if (s != NULL) mw_series_observe(s, seconds);
}
