// SPDX-License-Identifier: Apache-2.0
// A shared informer: reflector -> delta fifo -> indexer -> processor, for one resource.
//
// Everything here is called on the script thread; the reflector lives on the ingest thread and is
// reached by posting. Informers are refcounted and shared: see factory.h for who finds them.
//
// Contract: S-INF-01..81, S-PRC-01..09. Deltas are applied in batches from the loop: first the
// store and its indexes, then the notifications, in order.
//
// TRAPs decided: processing errors (a transform that fails, an object that cannot be stored) are
// contained, logged and counted; they are not requeued (client-go's RetryOnError of old): the store
// keeps what it had until the object changes or all is read again, and a resync, which gives what
// the store has, does not heal that. A resync is carried out in its place in the queue: the
// reflector queues SYNC_ALL at each check period, and the listeners that were due then get it, so
// it never overtakes an update that was queued before it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cache/indexer.h"
#include "cache/processor.h"
#include "cache/reflector.h"
#include "transport/runtime.h"

struct mw_informer_config {
  const void *owner;                     // who asks for reflector.resync (mw_informer_want_resync)
  struct mw_endpoint *endpoint;          // takes its own reference
  struct mw_reflector_config reflector;  // strings copied; projection: see below
  struct mw_projection *projection;      // owned by the informer afterwards; NULL: the default
  bool keep_managed_fields;              // with projection NULL: keep everything
  size_t fifo_bound;                     // 0: MW_FIFO_BOUND
  double min_resync;                     // the least period a listener can ask for; 0: 1 s
  const char *variant;                   // whatever else sets it apart (a transform); NULL: nothing
};

struct mw_informer;

// A transform turns an object into another of the same key, on the script thread, before the store
// sees it. stored is what the store has, NULL for nothing. 0 and *out with +1 (may be `in` itself,
// referenced again); 1: drop the object, as if it had not been sent; negative: failed, err says
// why.
typedef int (*mw_transform_cb)(void *ctx, struct mw_object *in, const struct mw_object *stored,
                               struct mw_object **out, struct mw_err *err);
typedef void (*mw_informer_error_cb)(void *ctx, enum mw_error_place place, const struct mw_err *err,
                                     const char *again);

// +1 for the caller.
struct mw_informer *mw_informer_new(const struct mw_runtime *runtime,
                                    const struct mw_informer_config *config);
struct mw_informer *mw_informer_ref(struct mw_informer *inf);
// The last unref stops a running informer and frees it when the ingest side has let go. One that
// never ran goes when the registry (on_stopped) is the last to hold it.
void mw_informer_unref(struct mw_informer *inf);

// A stable text of resource, namespace, selectors, projection, endpoint, variant: equal means
// shareable.
int mw_informer_identity(const struct mw_informer_config *config, struct mw_buf *out);
// "v1/pods", for people.
const char *mw_informer_name(const struct mw_informer *inf);
// Where its objects are; "": everywhere.
const char *mw_informer_namespace(const struct mw_informer *inf);

// Users: an informer runs from its first start until as many stops (S-INF-01, 02). A stopped
// informer is never started again (MW_ESTATE); its store stays readable. owner: whose handlers come
// late from now on (resync.h); one who wants no resync may be anything.
int mw_informer_start(struct mw_informer *inf, const void *owner, struct mw_err *err);
void mw_informer_stop(struct mw_informer *inf);
// Stops it whatever its users, also one that never ran: that closes its listeners.
void mw_informer_shutdown(struct mw_informer *inf);
bool mw_informer_is_started(const struct mw_informer *inf);  // stays true
// Stopping or stopped: no new users, listeners or indexes.
bool mw_informer_is_stopping(const struct mw_informer *inf);
bool mw_informer_is_stopped(const struct mw_informer *inf);  // fully: all listeners closed
bool mw_informer_has_synced(const struct mw_informer *inf);

// Both belong to an owner, as indexes do (indexer.h), who has one; another that it sets takes the
// place of the first. MW_ESTATE after stop. free_ctx (may be NULL) is called when it is dropped,
// and not when it is refused.
//
// Of the transforms the one that was set last is in force; when its owner leaves, the one before is
// again. It is part of what the informer is (config.variant): all that are set must do the same,
// and once the last one has been dropped the informer stops, for it cannot go on as what it is.
int mw_informer_set_transform(struct mw_informer *inf, const void *owner, mw_transform_cb cb,
                              void *ctx, void (*free_ctx)(void *), struct mw_err *err);
// The watch error handler: that of each owner hears of each error, in the order in which they were
// set.
int mw_informer_set_error_handler(struct mw_informer *inf, const void *owner,
                                  mw_informer_error_cb cb, void *ctx, void (*free_ctx)(void *),
                                  struct mw_err *err);
void mw_informer_drop_error_handler(struct mw_informer *inf, const void *owner);
// Drops all that the owner has here: indexes, transform, error handler, what it wants resynced.
// Handlers are another thing.
void mw_informer_drop_owner(struct mw_informer *inf, const void *owner);

// Another who shares the informer asks for resyncs of that many seconds, 0 for none: resync.h.
void mw_informer_want_resync(struct mw_informer *inf, const void *owner, double seconds);

// Handlers. requested resync < 0 means what the owner asked the informer for. The rules of
// S-INF-40..45 decide the effective period. After start the listener first gets every stored object
// as an initial add unless replay is false. MW_ESTATE after stop, and inside an index function or a
// transform that events run: store and notifications are apart then, and the replay would repeat
// some of them.
struct mw_listener *mw_informer_add_listener(struct mw_informer *inf, const void *owner,
                                             const struct mw_listener_config *config, double resync,
                                             bool replay, struct mw_err *err);

// Indexes: as indexer.h, also refused after stop (S-INF-04). Those that are added to a large store
// are built from the loop, a little in each turn.
int mw_informer_add_indexes(struct mw_informer *inf, const void *owner,
                            const struct mw_index_spec *specs, size_t count, struct mw_err *err);
// Whether the owner's are built, so that nobody has to wait for them; also once it is stopping.
bool mw_informer_indexes_ready(const struct mw_informer *inf, const void *owner);
struct mw_indexer *mw_informer_indexer(struct mw_informer *inf);
// Whether stored objects may have something at `path`, as far as metadata_only and the projection
// say.
bool mw_informer_may_have(const struct mw_informer *inf, const struct mw_path *path);

// Called from the loop when synced, stopped, indexes built, a listener synced or closed. One
// observer.
void mw_informer_on_change(struct mw_informer *inf, mw_loop_cb changed, void *ctx);
// For the registry: called once, from the loop, when it has stopped.
void mw_informer_on_stopped(struct mw_informer *inf, mw_loop_cb stopped, void *ctx);

struct mw_informer_stats {
  struct mw_reflector_stats reflector;
  struct mw_indexer_stats store;
  size_t queued;            // deltas in the fifo
  uint64_t coalesced;       // by the fifo
  uint64_t process_errors;  // transforms that failed
  uint64_t deltas;          // applied
  // What failed last; "" once the server has opened a watch since, or an event from it was applied.
  char last_error[MW_ERR_MESSAGE_MAX];
};
void mw_informer_stats(struct mw_informer *inf, struct mw_informer_stats *out);
// Brings its metrics up to date, if config.reflector.metric_name gave it any; they go when it has
// stopped.
void mw_informer_publish(struct mw_informer *inf);
// Calls cb with the stats of each of its listeners.
void mw_informer_each_listener(const struct mw_informer *inf, mw_listener_stats_cb cb, void *ctx);
