// SPDX-License-Identifier: Apache-2.0
// Metrics of the whole process, as Prometheus reads them.
//
//   static const char *const labels[] = {"name"};
//   struct mw_metric *m = mw_metric_family(&(struct mw_metric_spec){
//       .name = "workqueue_adds_total", .help = "Items added.", .labels = labels, .label_count =
//       1});
//   struct mw_series *adds = mw_metric_series(m, (const char *const[]){"web"});
//   mw_series_add(adds, 1);
//
// A family is a name with its labels; a series is one combination of their values. The registry
// owns families; whoever asks for a series holds a reference, and the last one takes it out of what
// is shown. Values are atomics: any thread may change or read them, without a lock. Asking for
// series and letting go of them takes a mutex for a short time, so keep the ones that are used
// often.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum mw_metric_type { MW_METRIC_COUNTER = 0, MW_METRIC_GAUGE, MW_METRIC_HISTOGRAM };

enum {
  MW_METRIC_LABEL_MAX = 10,         // labels of a family
  MW_METRIC_BUCKET_MAX = 64,        // bounds of a histogram
  MW_METRIC_VALUE_MAX = 512,        // bytes of a label's value; what is longer is cut
  MW_METRIC_SERIES_DEFAULT = 10000  // series of a family, see mw_metric_spec.series_max
};

struct mw_metric_spec {
  const char *name;  // [a-zA-Z_:][a-zA-Z0-9_:]*
  const char *help;  // one sentence
  enum mw_metric_type type;
  const char *const *labels;  // [a-zA-Z_][a-zA-Z0-9_]*, not "le", none of them twice
  size_t label_count;
  const double *buckets;  // histograms: finite upper bounds, growing; +Inf is always there
  size_t bucket_count;
  // At most so many series, 0 for MW_METRIC_SERIES_DEFAULT. Further combinations share one series
  // whose labels all read "overflow", and a warning is logged once.
  size_t series_max;
};

struct mw_metric;
struct mw_series;

// The family of that name, made when there is none; it lives for ever. Copies what it needs. The
// same name with another type, other labels or other buckets is a bug of ours and aborts. Any
// thread.
struct mw_metric *mw_metric_family(const struct mw_metric_spec *spec);
// For scripts, whose families come and go: that of the name, made when there is none, +1. NULL and
// err when the spec is wrong or the name is one of mw_metric_family's. When a script that is on its
// way out holds one of the same name and another shape, that one is shown no more, and this one is.
struct mw_metric *mw_metric_hold(const struct mw_metric_spec *spec, struct mw_err *err);
// With the last one the family is shown no more, and goes when its series do.
void mw_metric_release(struct mw_metric *m);
size_t mw_metric_label_count(const struct mw_metric *m);
// The series of these values, one per label in their order (NULL when there are no labels), made at
// 0: +1. Values may be any bytes without NUL; what is not UTF-8 becomes U+FFFD. Any thread.
struct mw_series *mw_metric_series(struct mw_metric *m, const char *const *values);
// NULL is fine. The series must not be used afterwards by who let go of it. Any thread.
void mw_series_unref(struct mw_series *s);

// Counters (v >= 0) and gauges. Any thread, lock-free; so are the others.
void mw_series_add(struct mw_series *s, double v);
// Gauges; and counters whose total is counted elsewhere.
void mw_series_set(struct mw_series *s, double v);
// Histograms. NaN is not counted.
void mw_series_observe(struct mw_series *s, double v);
// What a counter or gauge has; of a histogram the sum of what it observed.
double mw_series_value(const struct mw_series *s);

// Appends all that has series in Prometheus' text format (version 0.0.4), families by name and
// series by their labels. 0, or MW_ELIMIT when `out` is full: then it holds a part. Any thread.
int mw_metric_write(struct mw_buf *out) __attribute__((warn_unused_result));

// cb(ctx) runs before each write, on the thread that writes, for gauges that are computed when they
// are asked for. It may use everything above but mw_metric_write. Once mw_metric_off_write
// returned, cb neither runs nor will; therefore cb itself must not call it, nor may a thread that
// holds a lock which cb takes.
typedef void (*mw_metric_cb)(void *ctx);
void mw_metric_on_write(mw_metric_cb cb, void *ctx);
void mw_metric_off_write(mw_metric_cb cb, void *ctx);
