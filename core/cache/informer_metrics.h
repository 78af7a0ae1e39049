// SPDX-License-Identifier: Apache-2.0
// The series of one informer and its handlers (S-INF-80). Private to cache; script thread only.
//
// Values are published now and then (mw_informer_publish) from what the informer counts anyway;
// only the latency is observed as it happens.
#pragma once

#include "cache/delta_fifo.h"
#include "cache/informer.h"

struct mw_informer_metrics;

// name tells it from every other informer of the process; resource is for the labels.
struct mw_informer_metrics *mw_informer_metrics_new(const char *name,
                                                    const struct mw_resource *resource);
void mw_informer_metrics_free(struct mw_informer_metrics *m);  // NULL is fine
// A batch has just been applied: how long each of its deltas took from the queue to the store.
void mw_informer_metrics_applied(struct mw_informer_metrics *m, const struct mw_delta_batch *batch);
void mw_informer_metrics_publish(struct mw_informer_metrics *m, struct mw_informer *inf);
