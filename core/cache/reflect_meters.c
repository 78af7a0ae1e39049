// SPDX-License-Identifier: Apache-2.0
// Names are client-go's.
#include "base/alloc.h"
#include "base/metric.h"
#include "cache/reflector_internal.h"

enum { LIST_SECONDS = 0, LIST_ITEMS, WATCH_SECONDS, WATCH_ITEMS, COUNT };

static const double list_seconds[] = {0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60};
static const double watch_seconds[] = {1, 10, 60, 120, 300, 450, 600, 1200, 3600};
static const double items[] = {0, 1, 10, 100, 1000, 10000, 100000, 1000000};

#define BUCKETS(of) .buckets = (of), .bucket_count = sizeof(of) / sizeof *(of)
static const struct mw_metric_spec specs[COUNT] = {
    [LIST_SECONDS] = {.name = "reflector_list_duration_seconds",
                      .help = "How long snapshots took that were listed or streamed.",
                      BUCKETS(list_seconds)},
    [LIST_ITEMS] = {.name = "reflector_items_per_list",
                    .help = "Objects of a snapshot.",
                    BUCKETS(items)},
    [WATCH_SECONDS] = {.name = "reflector_watch_duration_seconds",
                       .help = "How long watches lasted.",
                       BUCKETS(watch_seconds)},
    [WATCH_ITEMS] = {.name = "reflector_items_per_watch",
                     .help = "Events of a watch.",
                     BUCKETS(items)},
};

struct mw_reflect_meters {
  struct mw_series *series[COUNT];
};

struct mw_reflect_meters *mw_reflect_meters_new(const char *name) {
  static const char *const labels[] = {"name"};
  if (name[0] == '\0') return NULL;
  struct mw_reflect_meters *m = mw_xcalloc(1, sizeof *m);
  for (int i = 0; i < COUNT; i++) {
    struct mw_metric_spec spec = specs[i];
    spec.type = MW_METRIC_HISTOGRAM;
    spec.labels = labels;
    spec.label_count = 1;
    m->series[i] = mw_metric_series(mw_metric_family(&spec), &name);
  }
  return m;
}

void mw_reflect_meters_free(struct mw_reflect_meters *m) {
  if (m == NULL) return;
  for (int i = 0; i < COUNT; i++) mw_series_unref(m->series[i]);
  mw_free(m);
}

void mw_reflect_meter_list(struct mw_reflect_meters *m, double seconds, size_t count) {
  if (m == NULL) return;
  mw_series_observe(m->series[LIST_SECONDS], seconds);
  mw_series_observe(m->series[LIST_ITEMS], (double)count);
}

void mw_reflect_meter_watch(struct mw_reflect_meters *m, double seconds, size_t count) {
  if (m == NULL) return;
  mw_series_observe(m->series[WATCH_SECONDS], seconds);
  mw_series_observe(m->series[WATCH_ITEMS], (double)count);
}
