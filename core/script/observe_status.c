// SPDX-License-Identifier: Apache-2.0
#include "script/observe_status.h"

#include <pthread.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/metric.h"
#include "script/control.h"
#include "script/host.h"
#include "script/program.h"
#include "wire/json_write.h"

enum { STATUS_MAX = 4 * 1024 * 1024 };

// The revision of a program as the metric shows it.
struct shown {
  char revision[MW_BUNDLE_REVISION_SIZE];
  struct mw_series *series;
};

struct mw_observe_status {
  struct mw_host *host;
  struct mw_metric *family;
  struct shown *shown;
  size_t count;
  struct mw_json_out next;  // script thread only
  pthread_mutex_t lock;
  struct mw_buf text;  // under the lock; empty: not yet
};

struct mw_observe_status *mw_observe_status_new(struct mw_host *host) {
  static const char *const labels[] = {"script", "revision"};
  struct mw_observe_status *s = mw_xcalloc(1, sizeof *s);
  s->host = host;
  s->family = mw_metric_family(
      &(struct mw_metric_spec){.name = "moonwatch_bundle_info",
                               .help = "1 for the revision of each script that is active.",
                               .type = MW_METRIC_GAUGE,
                               .labels = labels,
                               .label_count = 2});
  pthread_mutex_init(&s->lock, NULL);
  mw_buf_init(&s->text, STATUS_MAX);
  mw_json_open(&s->next, STATUS_MAX);
  return s;
}

void mw_observe_status_free(struct mw_observe_status *s) {
  for (size_t i = 0; i < s->count; i++) mw_series_unref(s->shown[i].series);
  mw_free(s->shown);
  mw_json_close(&s->next);
  mw_buf_deinit(&s->text);
  pthread_mutex_destroy(&s->lock);
  mw_free(s);
}

static void show_revision(struct mw_observe_status *s, struct shown *shown,
                          const struct mw_program *p) {
  const char *revision = mw_program_revision(p);
  if (strcmp(shown->revision, revision) == 0) return;
  mw_series_unref(shown->series);
  shown->series = NULL;
  snprintf(shown->revision, sizeof shown->revision, "%s", revision);
  if (revision[0] == '\0') return;
  shown->series = mw_metric_series(s->family, (const char *const[]){mw_program_path(p), revision});
  mw_series_set(shown->series, 1);
}

// All are there once the host runs, and none is added later.
static void show_revisions(struct mw_observe_status *s) {
  if (!mw_host_is_running(s->host)) return;
  if (s->shown == NULL) {
    s->count = mw_host_program_count(s->host);
    s->shown = mw_xcalloc(s->count, sizeof *s->shown);
  }
  for (size_t i = 0; i < s->count; i++) show_revision(s, &s->shown[i], mw_host_program(s->host, i));
}

void mw_observe_status_publish(struct mw_observe_status *s) {
  show_revisions(s);
  mw_json_reset(&s->next);
  mw_control_tell(s->host, &s->next);
  pthread_mutex_lock(&s->lock);
  struct mw_buf old = s->text;
  s->text = s->next.text;
  s->next.text = old;
  if (!mw_json_ok(&s->next)) mw_buf_reset(&s->text);
  pthread_mutex_unlock(&s->lock);
}

int mw_observe_status_write(void *ctx, struct mw_buf *out) {
  struct mw_observe_status *s = ctx;
  pthread_mutex_lock(&s->lock);
  int rc = s->text.n > 0 ? mw_buf_add(out, s->text.p, s->text.n) : MW_ESTATE;
  pthread_mutex_unlock(&s->lock);
  return rc;
}
