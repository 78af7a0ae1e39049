// SPDX-License-Identifier: Apache-2.0
// The reflector: makes a queue follow one resource of one API server. Ingest thread only.
//
// It is the decision table of the informer contract (S-REF, S-WL, S-PAG), taken literally; every
// row has a counter (MW_DECISION_MAP). The first snapshot is a streaming list; what refuses it is
// listed page by page. Then it watches, with bookmarks, for ever.
//
// It remembers what the server was last seen to have (key -> object, shared with the store by
// reference), so that a relist packs and holds only what changed.
//
// TRAPs decided:
// - every wait is cancellable; stopping is prompt in every state (S-WL-07).
// - a streaming list that ends cleanly before its marker waits one backoff delay (S-WL-10): a proxy
//   that cuts streams cannot make us spin.
// - the queue takes any snapshot (`replace` cannot fail), so no stream stays open behind one that
//   was refused (S-WL-05).
// - a server that knows nothing of streaming lists and refuses none (S-WL-15) sends no marker: we
//   say so, every ten seconds while it is silent and more and more seldom while it sends events,
//   and to list instead is for the user to choose (no_streaming). Those of Kubernetes refuse.
// - the RV "" retry after 410 is paged (S-REF-14).
// - which kind the objects are of we learn from the first one (S-REF-52), and where that came as an
//   event it may have been the wrong one. So a marker that is of another kind, or else fails a
//   check, is no event to skip (S-WL-14) but an error of the stream: all is listed page by page
//   (S-WL-09). After a list that names none, two kinds in a watch are an error of it.
// - the error callback hears more than S-REF-03 asks for, with the place: errors inside an open
//   stream, a streaming list that was cut, and every refused, throttled or lost request, once its
//   own retries are over (S-REST-01..04; transport logs each). An outage must be seen. What is
//   answered at once by other means (a streaming list that is not supported, an expired version) is
//   only logged.
// - a watch that never opened because the connection was lost or nothing came in time is like one
//   that was refused: wait and watch on (S-REST-04 makes it one that ended at once).
// - an object that cannot be stored (no name, too deep, too large) is logged, counted and, once per
//   request, reported, and the cycle goes on (S-REF-51); its resource version still counts. What is
//   known under its key stays until it is deleted or recreated.
// - unknown event types are counted and logged, their RV is recorded (S-REF-50).
// - a resync only queues a mark, which cannot fail: the row "resync failed" has no counter
//   (S-REF-58).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/backoff.h"
#include "base/err.h"
#include "cache/object.h"
#include "cache/resource.h"
#include "transport/http.h"
#include "wire/path.h"

// The rows of semantics 2.10 that can happen, in order. name, text.
#define MW_DECISION_MAP(X)                                                     \
  X(START, "start")                                                            \
  X(STREAM_WAIT, "streaming list: refused, lost or 429, wait and retry")       \
  X(STREAM_EXPIRED, "streaming list: expired or too large, retry at \"\"")     \
  X(STREAM_FALLBACK, "streaming list: other error, fall back to list")         \
  X(STREAM_CUT, "streaming list: ended before its marker, wait and retry")     \
  X(LIST_EXPIRED, "list: expired or too large, retry at \"\"")                 \
  X(LIST_FAILED, "list: other error, wait and start a new cycle")              \
  X(WATCH_ENDED, "watch: ended cleanly, watch on")                             \
  X(WATCH_SHORT, "watch: ended at once without an event, wait, new cycle")     \
  X(WATCH_OPEN_WAIT, "watch: refused, lost or 429 on open, wait and watch on") \
  X(WATCH_OPEN_FAILED, "watch: other error on open, wait, new cycle")          \
  X(WATCH_THROTTLED, "watch: 429 in the stream, wait and watch on")            \
  X(WATCH_INTERNAL, "watch: internal error within the budget, watch on")       \
  X(WATCH_EXPIRED, "watch: expired in the stream, wait, new cycle")            \
  X(WATCH_FAILED, "watch: other error in the stream, wait, new cycle")         \
  X(PAGE_EXPIRED, "list: expired on a later page, one full list")

enum mw_decision {
#define X(name, text) MW_DECISION_##name,
  MW_DECISION_MAP(X)
#undef X
      MW_DECISION_COUNT
};
const char *mw_decision_name(enum mw_decision d);
const char *mw_decision_text(enum mw_decision d);

// Where the events go. All calls on the ingest thread; objects are borrowed.
struct mw_sink {
  void (*add)(void *ctx, struct mw_object *o);
  void (*update)(void *ctx, struct mw_object *o);
  void (*remove)(void *ctx, struct mw_object *o);
  void (*replace)(void *ctx, struct mw_object_list *all,
                  struct mw_slice rv);  // takes the list over
  void (*resync)(void *ctx);
  void (*bookmark)(void *ctx, struct mw_slice rv);
  void *ctx;
};

enum mw_reflector_state {
  MW_REF_IDLE = 0,   // not started
  MW_REF_STREAMING,  // streaming list under way
  MW_REF_LISTING,    // a page under way
  MW_REF_WATCHING,   // watch open or being opened
  MW_REF_WAITING,    // in a backoff delay
  MW_REF_STOPPED,    // for good
};
const char *mw_reflector_state_name(enum mw_reflector_state s);

enum mw_error_place {
  MW_PLACE_LIST = 0,
  MW_PLACE_STREAM_LIST,
  MW_PLACE_WATCH_OPEN,
  MW_PLACE_WATCH
};

struct mw_reflector_config {
  struct mw_resource resource;
  const char *ns;                          // "" or NULL: all
  const char *query;                       // fixed parameters, escaped, "a=b&c=d"; NULL: none
  bool metadata_only;                      // ask for PartialObjectMetadata
  const struct mw_projection *projection;  // outlives the reflector
  struct mw_backoff_config backoff;        // duration 0: the default
  long page_size;                // 0: 500 by the rules of S-REF-12; > 0: this on every list
  bool no_streaming;             // list only (S-WL-01)
  double min_watch_timeout;      // seconds; below 300 means 300 (S-REF-30)
  double internal_error_budget;  // seconds (S-REF-37), 0: never retry in place
  double short_watch;            // seconds under which a watch is very short; 0: 1
  double slow;                   // seconds that a list may take unmentioned; 0: 10
  double head_timeout;           // seconds until an answer begins; 0: 30 of a watch, 75 of a list
  double watch_grace;            // seconds that a silent watch may outlive its timeout; 0: 30
  double list_idle;              // seconds that a list may be silent; 0: 75
  double resync;                 // check period, 0: never
  uint64_t seed;                 // of jitter; 0: random
  char metric_name[512];         // what its metrics are called, unique; "": it has none
};

struct mw_reflector_callbacks {
  // Something failed; `again` tells what happens next in words ("retrying in 1.4 s"). err is
  // borrowed. Called for visibility only.
  void (*on_error)(void *ctx, enum mw_error_place place, const struct mw_err *err,
                   const char *again);
  void (*on_state)(void *ctx, enum mw_reflector_state state);  // may be NULL
  void (*on_opened)(void *ctx);  // a watch or streaming list was answered with 200; may be NULL
  // Stopped; nothing will be called any more. From the loop, never inside stop.
  void (*on_stopped)(void *ctx);
  void *ctx;
};

struct mw_reflector;

// Copies the strings of config. endpoint: takes its own reference.
struct mw_reflector *mw_reflector_new(struct mw_loop *loop, struct mw_http *http,
                                      struct mw_endpoint *endpoint,
                                      const struct mw_reflector_config *config,
                                      const struct mw_sink *sink,
                                      const struct mw_reflector_callbacks *callbacks);
// Only when never started, or after on_stopped.
void mw_reflector_free(struct mw_reflector *r);
void mw_reflector_start(struct mw_reflector *r);
void mw_reflector_stop(struct mw_reflector *r);
// The resync check period, counted from the last resync; 0: never.
void mw_reflector_set_resync(struct mw_reflector *r, double seconds);

// Readable from any thread.
struct mw_reflector_stats {
  enum mw_reflector_state state;
  uint64_t decisions[MW_DECISION_COUNT];
  uint64_t lists;          // list requests, pages included
  uint64_t watches;        // watch requests, streaming lists included
  uint64_t events;         // counted events
  uint64_t dropped;        // objects that could not be stored
  uint64_t reused;         // relisted objects that were unchanged
  uint64_t received;       // objects of the snapshot under way, for progress
  uint64_t last_event_at;  // mw_clock_now() of the last byte that counted, 0: never
  char last_rv[MW_OBJECT_RV_MAX + 1];
};
void mw_reflector_stats(struct mw_reflector *r, struct mw_reflector_stats *out);
