// SPDX-License-Identifier: Apache-2.0
// What /metrics shows of a named work queue (S-WQ-50, S-PQ-09). Private to queue. Names and meaning
// are client-go's, so that its dashboards fit; workqueue_depth has the priority as a label, too.
#pragma once

#include "base/metric.h"

// All are NULL for a queue without a name, and NULL is fine for every function here.
struct mw_queue_metrics {
  struct mw_series *adds, *retries;
  struct mw_series *queue_duration, *work_duration;
  struct mw_series *unfinished, *longest;
};

// name may be NULL.
void mw_queue_metrics_init(struct mw_queue_metrics *m, const char *name);
void mw_queue_metrics_deinit(struct mw_queue_metrics *m);
// How many keys of this priority are to be handed out: +1, or NULL without a name.
struct mw_series *mw_queue_metrics_depth(const char *name, int priority);

void mw_queue_metrics_add(struct mw_series *s, double v);
void mw_queue_metrics_set(struct mw_series *s, double v);
void mw_queue_metrics_observe(struct mw_series *s, double seconds);
