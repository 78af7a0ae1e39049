// SPDX-License-Identifier: Apache-2.0
#include "queue/queue_metrics.h"

#include <stddef.h>
#include <stdio.h>

static const double buckets[] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10};

static struct mw_series *series(const char *name, enum mw_metric_type type, const char *metric,
                                const char *help) {
  static const char *const labels[] = {"name"};
  struct mw_metric_spec spec = {
      .name = metric, .help = help, .type = type, .labels = labels, .label_count = 1};
  if (type == MW_METRIC_HISTOGRAM) {
    spec.buckets = buckets;
    spec.bucket_count = sizeof buckets / sizeof buckets[0];
  }
  return mw_metric_series(mw_metric_family(&spec), &name);
}

void mw_queue_metrics_init(struct mw_queue_metrics *m, const char *name) {
  *m = (struct mw_queue_metrics){0};
  if (name == NULL) return;
  m->adds = series(name, MW_METRIC_COUNTER, "workqueue_adds_total",
                   "Keys that became ready, each counted once until it is handed out.");
  m->retries = series(name, MW_METRIC_COUNTER, "workqueue_retries_total", "Adds that had to wait.");
  m->queue_duration = series(name, MW_METRIC_HISTOGRAM, "workqueue_queue_duration_seconds",
                             "How long keys were ready before they were handed out.");
  m->work_duration = series(name, MW_METRIC_HISTOGRAM, "workqueue_work_duration_seconds",
                            "How long the work on a key took.");
  m->unfinished =
      series(name, MW_METRIC_GAUGE, "workqueue_unfinished_work_seconds",
             "The time that the work under way has taken so far, summed over its keys.");
  m->longest = series(name, MW_METRIC_GAUGE, "workqueue_longest_running_processor_seconds",
                      "The time that the longest work under way has taken so far.");
}

void mw_queue_metrics_deinit(struct mw_queue_metrics *m) {
  struct mw_series *all[] = {m->adds,          m->retries,    m->queue_duration,
                             m->work_duration, m->unfinished, m->longest};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) mw_series_unref(all[i]);
  *m = (struct mw_queue_metrics){0};
}

struct mw_series *mw_queue_metrics_depth(const char *name, int priority) {
  static const char *const labels[] = {"name", "priority"};
  if (name == NULL) return NULL;
  struct mw_metric *m = mw_metric_family(
      &(struct mw_metric_spec){.name = "workqueue_depth",
                               .help = "Keys that are ready, or to be run again when done.",
                               .type = MW_METRIC_GAUGE,
                               .labels = labels,
                               .label_count = 2});
  char text[16];
  snprintf(text, sizeof text, "%d", priority);
  return mw_metric_series(m, (const char *const[]){name, text});
}

void mw_queue_metrics_add(struct mw_series *s, double v) {
  if (s != NULL) mw_series_add(s, v);
}

void mw_queue_metrics_set(struct mw_series *s, double v) {
  if (s != NULL) mw_series_set(s, v);
}

void mw_queue_metrics_observe(struct mw_series *s, double seconds) {
  if (s != NULL) mw_series_observe(s, seconds);
}
