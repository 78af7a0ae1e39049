// SPDX-License-Identifier: Apache-2.0
// One timer waits for quiet, one looks; both are started anew when they fire. After each reading
// the watches are made to fit what was looked at. A change between the reading and a new watch
// would be missed: so what is there is compared with what was read once the watches stand.
#include "script/bundle_source.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

static const double default_quiet = 0.1, default_patience = 1, default_interval = 2;
// Time stamps of files are this coarse at worst: what changed so shortly before it was read may
// have changed again with the same stamp.
static const double stamp_grain = 2;

// A watched directory; freed by its close callback, so that it may outlive the source.
struct watch {
  uv_fs_event_t handle;
  struct mw_bundle_source *source;
  char *path;
  uint64_t device, inode;
  bool stale;  // the directory itself may be another by now
};

struct mw_bundle_source {
  struct mw_loop *loop;
  char *path;
  mw_bundle_source_cb cb;
  void *ctx;
  double quiet, patience, interval;
  bool no_inotify;
  bool complained;  // about inotify, once
  struct watch *watches[MW_BUNDLE_SOURCE_WATCHES_MAX];
  size_t watch_count;
  struct mw_bundle_places places;  // of the last reading
  bool young;                      // some were changed just before they were read
  struct mw_timer *waiting;        // for quiet; NULL: nothing has happened
  uint64_t first, last;            // event, while waiting
  struct mw_timer *looking;
  uint64_t readings;
  char revision[MW_BUNDLE_REVISION_SIZE];  // reported; "" when an error was, or nothing
  struct mw_err error;                     // reported; code 0 when a bundle was
};

// 0 is long ago, also soon after the machine has started.
static double seconds_since(uint64_t then) {
  return then > 0 ? (double)(mw_clock_now() - then) / 1e9 : INFINITY;
}

// ---- waiting for quiet ----

static void read_and_report(struct mw_bundle_source *s);

static void on_quiet(void *arg) {
  struct mw_bundle_source *s = arg;
  s->waiting = NULL;
  double rest = s->quiet - seconds_since(s->last);
  double limit = s->patience - seconds_since(s->first);
  if (rest > limit) rest = limit;
  if (rest > 0) {
    s->waiting = mw_timer_start(s->loop, rest, on_quiet, s);
  } else {
    read_and_report(s);
  }
}

static void maybe_changed(struct mw_bundle_source *s) {
  s->last = mw_clock_now();
  if (s->waiting != NULL) return;
  s->first = s->last;
  s->waiting = mw_timer_start(s->loop, s->quiet, on_quiet, s);
}

// ---- watching ----

static void on_watch_closed(uv_handle_t *handle) {
  struct watch *w = handle->data;
  mw_live_add(MW_LIVE_HANDLE, -1);
  mw_free(w->path);
  mw_free(w);
}

static void watch_close(struct watch *w) { uv_close((uv_handle_t *)&w->handle, on_watch_closed); }

static void on_event(uv_fs_event_t *handle, const char *name, int events, int status) {
  (void)events;
  struct watch *w = handle->data;
  const char *slash = strrchr(w->path, '/');
  // That the directory itself went away looks like an event of a file of the same name.
  if (status < 0 || name == NULL || strcmp(name, slash != NULL ? slash + 1 : w->path) == 0)
    w->stale = true;
  maybe_changed(w->source);
}

static void complain(struct mw_bundle_source *s, const char *why, const char *remedy) {
  if (s->complained) return;
  s->complained = true;
  mw_log(
      MW_LOG_WARN,
      "some directories of the script cannot be watched: changes there are noticed a little later",
      MW_STR("script", s->path), MW_STR("why", why), MW_STR("remedy", remedy),
      MW_NUM("seconds", s->interval));
}

static void watch_open(struct mw_bundle_source *s, const struct mw_bundle_place *place) {
  if (s->watch_count == MW_BUNDLE_SOURCE_WATCHES_MAX) {
    complain(s, "there are too many", "give a directory that holds nothing but the script");
    return;
  }
  struct watch *w = mw_xcalloc(1, sizeof *w);
  w->source = s;
  w->path = mw_xstrdup(place->path);
  w->device = place->stamp.device;
  w->inode = place->stamp.inode;
  w->handle.data = w;
  uv_fs_event_init(mw_loop_uv(s->loop), &w->handle);
  mw_live_add(MW_LIVE_HANDLE, 1);
  int rc = uv_fs_event_start(&w->handle, on_event, w->path, 0);
  if (rc == 0) {
    s->watches[s->watch_count++] = w;
    return;
  }
  watch_close(w);
  // A directory that is gone already is no reason to complain: the next look sees it.
  if (rc == UV_ENOENT || rc == UV_ENOTDIR) return;
  complain(s, uv_strerror(rc),
           rc == UV_ENOSPC   ? "raise the sysctl fs.inotify.max_user_watches"
           : rc == UV_EMFILE ? "raise the sysctl fs.inotify.max_user_instances"
                             : "none");
}

static bool is_watched(const struct mw_bundle_source *s, const struct mw_bundle_place *place) {
  for (size_t i = 0; i < s->watch_count; i++)
    if (strcmp(s->watches[i]->path, place->path) == 0) return true;
  return false;
}

static bool is_wanted(const struct mw_bundle_source *s, const struct watch *w) {
  for (size_t i = 0; i < s->places.count && !w->stale; i++) {
    const struct mw_bundle_place *p = &s->places.list[i];
    if (p->directory && strcmp(p->path, w->path) == 0)
      return p->stamp.device == w->device && p->stamp.inode == w->inode;
  }
  return false;
}

static void fit_watches(struct mw_bundle_source *s) {
  if (s->no_inotify) return;
  size_t kept = 0;
  for (size_t i = 0; i < s->watch_count; i++) {
    struct watch *w = s->watches[i];
    if (is_wanted(s, w)) {
      s->watches[kept++] = w;
    } else {
      watch_close(w);
    }
  }
  s->watch_count = kept;
  for (size_t i = 0; i < s->places.count; i++)
    if (s->places.list[i].directory && !is_watched(s, &s->places.list[i]))
      watch_open(s, &s->places.list[i]);
}

// ---- looking ----

static bool has_moved(const struct mw_bundle_source *s) {
  for (size_t i = 0; i < s->places.count; i++) {
    const struct mw_bundle_place *p = &s->places.list[i];
    struct mw_bundle_stamp now = mw_bundle_stamp(p->path);
    if (memcmp(&now, &p->stamp, sizeof now) != 0) return true;
  }
  return false;
}

static void on_look(void *arg) {
  struct mw_bundle_source *s = arg;
  s->looking = mw_timer_start(s->loop, s->interval, on_look, s);
  if (s->young || has_moved(s)) maybe_changed(s);
}

static bool is_young(const struct mw_bundle_places *places) {
  double now = mw_clock_wall();
  for (size_t i = 0; i < places->count; i++) {
    const struct mw_bundle_stamp *t = &places->list[i].stamp;
    int64_t newest = t->modified > t->changed ? t->modified : t->changed;
    if (now - (double)newest / 1e9 < stamp_grain) return true;
  }
  return false;
}

// ---- reading ----

static bool has_empty_file(const struct mw_bundle *b) {
  for (size_t i = 0; i < mw_bundle_count(b); i++)
    if (mw_bundle_at(b, i)->size == 0) return true;
  return false;
}

static bool is_news(const struct mw_bundle_source *s, const struct mw_bundle *b,
                    const struct mw_err *err) {
  if (b != NULL) return strcmp(mw_bundle_revision(b), s->revision) != 0;
  return s->error.code == 0 || strcmp(err->message, s->error.message) != 0;
}

// May free s.
static void report(struct mw_bundle_source *s, struct mw_bundle *b, const struct mw_err *err) {
  if (b != NULL) {
    memcpy(s->revision, mw_bundle_revision(b), sizeof s->revision);
    s->error.code = 0;
  } else {
    s->revision[0] = '\0';
    s->error = *err;
  }
  s->cb(s->ctx, b, b == NULL ? err : NULL);
}

static bool is_pipe(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static void read_and_report(struct mw_bundle_source *s) {
  if (is_pipe(s->path)) return;
  struct mw_err err = {.code = 0};
  mw_bundle_places_deinit(&s->places);
  struct mw_bundle *b = mw_bundle_read_from(s->path, &s->places, &err);
  s->readings++;
  s->young = is_young(&s->places);
  fit_watches(s);
  bool news = is_news(s, b, &err);
  bool unfinished = news && (b == NULL || has_empty_file(b));
  if (unfinished && seconds_since(s->first) < s->patience) {
    s->waiting = mw_timer_start(s->loop, s->quiet, on_quiet, s);
    news = false;
  } else if (has_moved(s)) {
    maybe_changed(s);
  }
  if (news) report(s, b, &err);
  mw_bundle_unref(b);
}

// ---- life ----

struct mw_bundle_source *mw_bundle_source_new(struct mw_loop *loop,
                                              const struct mw_bundle_source_config *config,
                                              mw_bundle_source_cb cb, void *ctx) {
  struct mw_bundle_source *s = mw_xcalloc(1, sizeof *s);
  s->loop = loop;
  s->path = mw_xstrdup(config->path);
  s->cb = cb;
  s->ctx = ctx;
  s->quiet = config->quiet > 0 ? config->quiet : default_quiet;
  s->patience = config->patience > 0 ? config->patience : default_patience;
  if (s->quiet > s->patience) s->quiet = s->patience;
  s->interval = config->interval > 0 ? config->interval : default_interval;
  s->no_inotify = config->no_inotify;
  // The watches stand after the first reading, which on_quiet does at once: it counts from an event
  // long ago, with which patience is over; where something is known, that is not.
  if (config->known != NULL) {
    memcpy(s->revision, mw_bundle_revision(config->known), sizeof s->revision);
    s->first = mw_clock_now();
  }
  s->waiting = mw_timer_start(loop, 0, on_quiet, s);
  s->looking = mw_timer_start(loop, s->interval, on_look, s);
  return s;
}

void mw_bundle_source_free(struct mw_bundle_source *s) {
  if (s == NULL) return;
  mw_timer_cancel(&s->waiting);
  mw_timer_cancel(&s->looking);
  for (size_t i = 0; i < s->watch_count; i++) watch_close(s->watches[i]);
  mw_bundle_places_deinit(&s->places);
  mw_free(s->path);
  mw_free(s);
}

void mw_bundle_source_stats(const struct mw_bundle_source *s, struct mw_bundle_source_stats *out) {
  *out = (struct mw_bundle_source_stats){s->watch_count, s->readings};
}
