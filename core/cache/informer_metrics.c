// SPDX-License-Identifier: Apache-2.0
// Names and labels are client-go's where it has them, so that its dashboards fit.
#include "cache/informer_metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/metric.h"

enum { VERSION_DIGITS = 15, HANDLER_NAME = 64 };  // what a double can tell apart

// tag, family, type, help. Those of client-go's informers have more labels.
#define INFORMER_MAP(X)                                                                        \
  X(QUEUED, "informer_queued_items", GAUGE, "Deltas that wait for the store.")                 \
  X(STORE_RV, "informer_store_resource_version", GAUGE,                                        \
    "The last 15 digits of the store's resource version.")                                     \
  X(LISTS, "reflector_lists_total", COUNTER, "Requests for lists, one per page.")              \
  X(WATCHES, "reflector_watches_total", COUNTER,                                               \
    "Requests for watches, streaming lists included.")                                         \
  X(SHORT, "reflector_short_watches_total", COUNTER,                                           \
    "Watches that ended at once and without an event.")                                        \
  X(LAST_RV, "reflector_last_resource_version", GAUGE,                                         \
    "The last 15 digits of the last resource version that the server sent.")                   \
  X(OBJECTS, "moonwatch_informer_objects", GAUGE, "Objects in the store.")                     \
  X(BYTES, "moonwatch_informer_store_bytes", GAUGE, "Memory of the store with its indexes.")   \
  X(SYNCED, "moonwatch_informer_synced", GAUGE, "1 once the first snapshot is in the store.")  \
  X(AGE, "moonwatch_informer_last_event_age_seconds", GAUGE,                                   \
    "Seconds since the server sent anything.")                                                 \
  X(EVENTS, "moonwatch_informer_events_total", COUNTER, "Events of watches.")                  \
  X(ERRORS, "moonwatch_informer_errors_total", COUNTER,                                        \
    "Lists and watches that failed or ended early.")                                           \
  X(DROPPED, "moonwatch_informer_dropped_total", COUNTER, "Objects that could not be stored.") \
  X(COALESCED, "moonwatch_informer_coalesced_total", COUNTER,                                  \
    "Deltas that were merged because too many waited, and resyncs because one did.")

#define HANDLER_MAP(X)                                                                       \
  X(PENDING, "moonwatch_handler_pending", GAUGE, "Notifications that wait for the handler.") \
  X(LAG, "moonwatch_handler_lag_seconds", GAUGE,                                             \
    "Age of the notification that the handler has now or gets next.")                        \
  X(DELIVERED, "moonwatch_handler_delivered_total", COUNTER, "Notifications delivered.")     \
  X(MERGED, "moonwatch_handler_coalesced_total", COUNTER,                                    \
    "Notifications that were merged because too many waited.")

enum {
#define X(tag, name, type, help) tag,
  INFORMER_MAP(X) INFORMER_COUNT
};
enum { HANDLER_MAP(X) HANDLER_COUNT };
#undef X

#define X(tag, text, kind, about) {.name = (text), .help = (about), .type = MW_METRIC_##kind},
static const struct mw_metric_spec informer_specs[] = {INFORMER_MAP(X)};
static const struct mw_metric_spec handler_specs[] = {HANDLER_MAP(X)};
#undef X

static const char *const informer_labels[] = {"name", "group", "version", "resource"};
static const char *const handler_labels[] = {"name", "handler"};
static const double latency_buckets[] = {0.001, 0.005, 0.01, 0.025, 0.05, 0.1,
                                         0.25,  0.5,   1,    2.5,   5,    10};

// All handlers of one name.
struct handler {
  char name[HANDLER_NAME];
  struct mw_series *series[HANDLER_COUNT];
  double values[HANDLER_COUNT];  // of this round
  bool present;
};

struct mw_informer_metrics {
  char *name;
  struct mw_series *latency;
  struct mw_series *series[INFORMER_COUNT];
  struct handler *handlers;
  size_t count, cap;
};

static struct mw_series *series_of(struct mw_metric_spec spec, const char *const *labels,
                                   size_t label_count, const char *const *values) {
  spec.labels = labels;
  spec.label_count = label_count;
  return mw_metric_series(mw_metric_family(&spec), values);
}

struct mw_informer_metrics *mw_informer_metrics_new(const char *name,
                                                    const struct mw_resource *resource) {
  struct mw_informer_metrics *m = mw_xcalloc(1, sizeof *m);
  const char *values[] = {name, resource->group, resource->version, resource->plural};
  m->name = mw_xstrdup(name);
  for (int i = 0; i < INFORMER_COUNT; i++) {
    bool whole = strncmp(informer_specs[i].name, "informer_", strlen("informer_")) == 0;
    m->series[i] = series_of(informer_specs[i], informer_labels, whole ? 4 : 1, values);
  }
  struct mw_metric_spec latency = {
      .name = "informer_processing_latency_seconds",
      .help = "Seconds from the queue to the store and its handlers' queues.",
      .type = MW_METRIC_HISTOGRAM,
      .buckets = latency_buckets,
      .bucket_count = sizeof latency_buckets / sizeof latency_buckets[0]};
  m->latency = series_of(latency, informer_labels, 4, values);
  return m;
}

static void drop_handler(struct handler *h) {
  for (int i = 0; i < HANDLER_COUNT; i++) mw_series_unref(h->series[i]);
}

void mw_informer_metrics_free(struct mw_informer_metrics *m) {
  if (m == NULL) return;
  for (size_t i = 0; i < m->count; i++) drop_handler(&m->handlers[i]);
  for (int i = 0; i < INFORMER_COUNT; i++) mw_series_unref(m->series[i]);
  mw_series_unref(m->latency);
  mw_free(m->handlers);
  mw_free(m->name);
  mw_free(m);
}

void mw_informer_metrics_applied(struct mw_informer_metrics *m,
                                 const struct mw_delta_batch *batch) {
  uint64_t now = mw_clock_now();
  for (size_t i = 0; i < batch->count; i++) {
    uint64_t at = batch->deltas[i].queued_at;
    mw_series_observe(m->latency, now > at ? (double)(now - at) / 1e9 : 0);
  }
}

// Versions are numbers too large for a double; their last digits show whether they move.
static double version_number(struct mw_slice rv) {
  char digits[VERSION_DIGITS + 1];
  size_t n = rv.n < VERSION_DIGITS ? rv.n : VERSION_DIGITS;
  if (n > 0) memcpy(digits, rv.p + rv.n - n, n);
  digits[n] = '\0';
  return strtod(digits, NULL);
}

static double errors_of(const struct mw_reflector_stats *stats) {
  double sum = 0;
  for (int d = 0; d < MW_DECISION_COUNT; d++) {
    if (d != MW_DECISION_START && d != MW_DECISION_WATCH_ENDED) sum += (double)stats->decisions[d];
  }
  return sum;
}

static double age_of(const struct mw_reflector_stats *stats) {
  uint64_t now = mw_clock_now(), at = stats->last_event_at;
  return at > 0 && at < now ? (double)(now - at) / 1e9 : 0;
}

static struct handler *handler_of(struct mw_informer_metrics *m, const char *name) {
  for (size_t i = 0; i < m->count; i++) {
    if (strcmp(m->handlers[i].name, name) == 0) return &m->handlers[i];
  }
  if (m->count == m->cap) {
    m->cap = m->cap > 0 ? m->cap * 2 : 4;
    m->handlers = mw_xrealloc(m->handlers, m->cap * sizeof *m->handlers);
  }
  struct handler *h = &m->handlers[m->count++];
  *h = (struct handler){.present = false};
  snprintf(h->name, sizeof h->name, "%s", name);
  for (int i = 0; i < HANDLER_COUNT; i++) {
    h->series[i] =
        series_of(handler_specs[i], handler_labels, 2, (const char *const[]){m->name, name});
  }
  return h;
}

static void add_handler(void *ctx, const struct mw_listener_stats *stats) {
  struct handler *h = handler_of(ctx, stats->name);
  double lag = (double)stats->lag_ns / 1e9;
  h->present = true;
  h->values[PENDING] += (double)stats->pending;
  h->values[DELIVERED] += (double)stats->delivered;
  h->values[MERGED] += (double)stats->coalesced;
  if (h->values[LAG] < lag) h->values[LAG] = lag;
}

static void publish_handlers(struct mw_informer_metrics *m, struct mw_informer *inf) {
  for (size_t i = 0; i < m->count; i++) {
    m->handlers[i].present = false;
    memset(m->handlers[i].values, 0, sizeof m->handlers[i].values);
  }
  mw_informer_each_listener(inf, add_handler, m);
  size_t kept = 0;
  for (size_t i = 0; i < m->count; i++) {
    struct handler *h = &m->handlers[i];
    if (!h->present) {
      drop_handler(h);
      continue;
    }
    for (int v = 0; v < HANDLER_COUNT; v++) mw_series_set(h->series[v], h->values[v]);
    m->handlers[kept++] = *h;
  }
  m->count = kept;
}

void mw_informer_metrics_publish(struct mw_informer_metrics *m, struct mw_informer *inf) {
  struct mw_informer_stats stats;
  mw_informer_stats(inf, &stats);
  const double values[INFORMER_COUNT] = {
      [QUEUED] = (double)stats.queued,
      [STORE_RV] = version_number(mw_indexer_rv(mw_informer_indexer(inf))),
      [LISTS] = (double)stats.reflector.lists,
      [WATCHES] = (double)stats.reflector.watches,
      [SHORT] = (double)stats.reflector.decisions[MW_DECISION_WATCH_SHORT],
      [LAST_RV] = version_number(mw_slice_str(stats.reflector.last_rv)),
      [OBJECTS] = (double)stats.store.objects,
      [BYTES] = (double)(stats.store.object_bytes + stats.store.map_bytes),
      [SYNCED] = mw_informer_has_synced(inf) ? 1 : 0,
      [AGE] = age_of(&stats.reflector),
      [EVENTS] = (double)stats.reflector.events,
      [ERRORS] = errors_of(&stats.reflector),
      [DROPPED] = (double)stats.reflector.dropped,
      [COALESCED] = (double)stats.coalesced,
  };
  for (int i = 0; i < INFORMER_COUNT; i++) mw_series_set(m->series[i], values[i]);
  publish_handlers(m, inf);
}
