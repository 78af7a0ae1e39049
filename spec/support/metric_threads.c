// SPDX-License-Identifier: Apache-2.0
// Work on metrics for threads of specs, as a call that can be posted to a loop.
#include <stdio.h>

#include "base/metric.h"

// Declared for the FFI in spec/unit/metric_spec.lua.
struct spec_metric_work {
  struct mw_metric *counter, *histogram;
  struct mw_series *shared;
  int rounds;
  int failed;  // writes that did not succeed
};

void spec_metric_work(void *arg);

// Counts, observes, asks for series that others ask for too, lets go of them, and writes.
void spec_metric_work(void *arg) {
  struct spec_metric_work *w = arg;
  for (int i = 0; i < w->rounds; i++) {
    char name[16];
    snprintf(name, sizeof name, "s%d", i % 7);
    const char *values[] = {name};
    struct mw_series *s = mw_metric_series(w->counter, values);
    struct mw_series *h = mw_metric_series(w->histogram, values);
    mw_series_add(s, 1);
    mw_series_add(w->shared, 1);
    mw_series_observe(h, i % 3);
    if (i % 50 == 0) {
      struct mw_buf out;
      mw_buf_init(&out, 1 << 20);
      if (mw_metric_write(&out) < 0) w->failed++;
      mw_buf_deinit(&out);
    }
    mw_series_unref(s);
    mw_series_unref(h);
  }
}
