// SPDX-License-Identifier: Apache-2.0
// What the files of the reflector share among themselves; not for other components.
//
//   reflector.c       life cycle, the decision table, backoff, resync
//   reflect_list.c    a snapshot page by page
//   reflect_watch.c   the watch request, as a streaming list and as a plain watch
//   reflect_event.c   what one event of such a stream does
//   reflect_stats.c   counters that other threads may read
//
// One thing is under way at a time: a request or a wait. Whatever ends it calls
// mw_reflect_decide(), which is the only place where the next step is taken.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/backoff.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/rand.h"
#include "cache/objmap.h"
#include "cache/reflector.h"
#include "transport/http.h"
#include "transport/loop.h"
#include "wire/list_split.h"
#include "wire/pack.h"
#include "wire/watch_split.h"

enum { MW_REFLECT_PAGE = 500, MW_REFLECT_SLOW = 10, MW_REFLECT_KIND_MAX = 127 };

struct mw_reflect_stats;

// The snapshot under way, by list or by stream.
struct mw_reflect_snapshot {
  struct mw_object_list order;  // as it arrived
  struct mw_objmap temp;        // streaming: which of `order` still hold
  uint64_t since;
  uint64_t heard;                      // when the last event came, 0: none yet
  char rv[MW_OBJECT_RV_MAX + 1];       // asked for
  char list_rv[MW_OBJECT_RV_MAX + 1];  // of the first page (S-REF-17)
  long limit;                          // 0: none
  char *token;                         // continue; NULL on the first page
  bool paginated;                      // a second page was asked for
  bool retried;                        // already at RV "" after an expiry (S-REF-14)
  bool full;                           // already without a limit after an expiry (S-PAG-04)
};

// The watch request under way.
struct mw_reflect_watch {
  struct mw_watch_split *split;
  uint64_t since;   // before the request was sent, or when the marker came
  uint64_t events;  // counted since then
  bool streaming;   // the end marker of the initial events is still to come
  bool opened;      // the server answered 200
  bool record;      // events move the resource version (S-REF-53)
  bool mixed;       // an event was of another kind than the first
  unsigned ticks;   // of a streaming list, so far
};

// How long internal errors have been answered by watching on (S-REF-37).
struct mw_reflect_window {
  uint64_t first;  // 0: no error yet
  uint64_t last;
};

struct mw_reflector {
  struct mw_loop *loop;
  struct mw_http *http;
  struct mw_endpoint *endpoint;
  struct mw_reflector_config config;  // its strings are ours
  struct mw_sink sink;
  struct mw_reflector_callbacks callbacks;
  char name[600];  // "apps/v1/deployments"
  struct mw_packer *packer;
  struct mw_backoff backoff;
  struct mw_rand rand;
  struct mw_reflect_stats *stats;
  struct mw_reflect_meters *meters;  // NULL: none

  enum mw_reflector_state state;
  bool stopping;  // nothing may be started and no callback called but on_stopped
  struct mw_request *request;
  struct mw_timer *wait;
  void (*next)(struct mw_reflector *r);  // after the wait

  // The request under way.
  int http_status;         // 0: none yet
  struct mw_err body_err;  // what is wrong with its body; code 0: nothing
  bool drop_told;          // on_error heard of one object that was left out
  bool fallback_told;      // the log says that streaming lists are refused

  char last_rv[MW_OBJECT_RV_MAX + 1];  // "" until a snapshot was taken
  bool rv_unavailable;                 // ask for "" instead of last_rv (S-REF-10)
  bool zero_paginated;                 // a list at "0" came in pages (S-REF-13)
  struct mw_objmap known;              // what the server was last seen to have
  char kind[MW_REFLECT_KIND_MAX + 1];  // of this snapshot's objects; "" until seen
  bool kind_sure;                      // a list or a marker says so, not an event alone

  struct mw_reflect_snapshot snapshot;
  struct mw_list_split *list_split;
  struct mw_reflect_watch watch;
  struct mw_timer *tick;  // while a streaming list waits for its marker

  bool in_watch_phase;
  struct mw_reflect_window window;
  struct mw_timer *resync;
  uint64_t resynced;  // when the period that runs began
};

// What made a decision necessary.
struct mw_reflect_failure {
  enum mw_error_place place;
  bool in_stream;  // inside an open stream: always told (S-REF-03)
  const struct mw_err *err;
};

// reflector.c

// Takes a row of the decision table: counts it, tells what failed (NULL: nothing did), waits if
// the row says so, and goes on. The caller returns to the loop right after it.
void mw_reflect_decide(struct mw_reflector *r, enum mw_decision d,
                       const struct mw_reflect_failure *failure);
void mw_reflect_set_state(struct mw_reflector *r, enum mw_reflector_state state);
// From how many seconds on a list is slow.
static inline double mw_reflect_slow(const struct mw_reflector *r) {
  return r->config.slow > 0 ? r->config.slow : MW_REFLECT_SLOW;
}
// The version that the next request begins at, "": any. One longer than MW_OBJECT_RV_MAX is
// ignored.
void mw_reflect_set_rv(struct mw_reflector *r, struct mw_slice rv);
// Begins the part of a cycle that follows its snapshot: the resync timer, the error budget.
void mw_reflect_enter_watch_phase(struct mw_reflector *r);
// Appends "?key=value" or "&key=value", the value escaped.
int mw_reflect_param(struct mw_buf *path, const char *key, const char *value)
    __attribute__((warn_unused_result));
// Appends the path of the resource, and the configured parameters behind one's own.
int mw_reflect_path(const struct mw_reflector *r, struct mw_buf *path)
    __attribute__((warn_unused_result));
int mw_reflect_fixed_params(const struct mw_reflector *r, struct mw_buf *path)
    __attribute__((warn_unused_result));
// What a request failed with, put into words: err as the transport reported it.
void mw_reflect_explain(const struct mw_reflector *r, const struct mw_err *err,
                        struct mw_slice body, struct mw_err *out);

// Snapshots (reflect_list.c); the steps are rows' next actions.
void mw_reflect_list(struct mw_reflector *r);
void mw_reflect_list_newest(struct mw_reflector *r);
void mw_reflect_list_full(struct mw_reflector *r);
void mw_reflect_snapshot_begin(struct mw_reflector *r, const char *rv);
// Forgets what was collected.
void mw_reflect_snapshot_clear(struct mw_reflector *r);
// Hands the collected objects to the sink as of rv and remembers them.
void mw_reflect_snapshot_done(struct mw_reflector *r, struct mw_slice rv);
// The object of an item, +1: the one already known if its version is the same. When it cannot be
// stored, that has been logged, counted and told; then what is known of it, or NULL.
struct mw_object *mw_reflect_snapshot_object(struct mw_reflector *r, const struct mw_item *item,
                                             enum mw_error_place place);
// The key of an item, in `room`; empty when it has no name or one that is too long.
struct mw_slice mw_reflect_key(const struct mw_item *item, char room[MW_OBJECT_KEY_MAX]);
// The kind that the item has, if it has one, is that of all unless there is one already. sure: it
// comes from a list or a marker.
void mw_reflect_learn_kind(struct mw_reflector *r, const struct mw_item *item, bool sure);
// Counts and tells an item that is left out; err says why.
void mw_reflect_drop(struct mw_reflector *r, enum mw_error_place place, const struct mw_item *item,
                     const struct mw_err *err);

// Streams (reflect_watch.c)
void mw_reflect_stream(struct mw_reflector *r);
void mw_reflect_watch(struct mw_reflector *r);
void mw_reflect_watch_clear(struct mw_reflector *r);
// timeoutSeconds of a watch: truncated, in [min, 2 min), min at least 300 (S-REF-30).
long mw_reflect_watch_timeout(double min, double unit);
// Whether an internal error at `now` is within the budget (seconds) and may be answered by
// watching on.
bool mw_reflect_window_allows(struct mw_reflect_window *w, double budget, uint64_t now);

// The mw_watch_event_cb of both kinds of stream, ctx is the reflector (reflect_event.c).
int mw_reflect_event(void *ctx, const struct mw_event *event);

// Counters (reflect_stats.c)
enum mw_reflect_counter {
  MW_REFLECT_STATE = 0,
  MW_REFLECT_LISTS,
  MW_REFLECT_WATCHES,
  MW_REFLECT_EVENTS,
  MW_REFLECT_DROPPED,
  MW_REFLECT_REUSED,
  MW_REFLECT_RECEIVED,
  MW_REFLECT_LAST_EVENT_AT,
  MW_REFLECT_COUNTERS,
};
struct mw_reflect_stats *mw_reflect_stats_new(void);
void mw_reflect_stats_free(struct mw_reflect_stats *s);
void mw_reflect_count(struct mw_reflect_stats *s, enum mw_reflect_counter c);
void mw_reflect_count_decision(struct mw_reflect_stats *s, enum mw_decision d);
void mw_reflect_put(struct mw_reflect_stats *s, enum mw_reflect_counter c, uint64_t value);
// rv is not longer than MW_OBJECT_RV_MAX.
void mw_reflect_put_rv(struct mw_reflect_stats *s, struct mw_slice rv);

// Histograms of how lists and watches go (reflect_meters.c). NULL meters are fine everywhere.
struct mw_reflect_meters *mw_reflect_meters_new(const char *name);  // NULL for ""
void mw_reflect_meters_free(struct mw_reflect_meters *m);
void mw_reflect_meter_list(struct mw_reflect_meters *m, double seconds, size_t items);
void mw_reflect_meter_watch(struct mw_reflect_meters *m, double seconds, size_t items);
