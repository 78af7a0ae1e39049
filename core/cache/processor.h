// SPDX-License-Identifier: Apache-2.0
// Fan-out: every notification to every listener, one queue per listener. Script thread only.
//
// Contract (S-INF-10..53): per listener strictly sequential and in emission order, never
// concurrent with itself; a slow listener delays only itself. Delivery happens from the loop, in
// slices of a few milliseconds, never inside the call that distributes. That order is the watch's,
// across all objects (S-INF-20): scripts may rely on it as long as nothing is coalesced.
//
// TRAPs decided: a delivery that failed counts as delivered, also towards the registration's
// synced state (S-INF-37), and the next one follows without the pause of S-INF-36: an error in a
// script is contained, and a second for each of a thousand objects would only make the rest stale.
// A queue beyond its bound coalesces per key (D15): old of the first, new of the last, deletions
// kept; counted. Same-RV updates go to listeners that are flagged syncing, and every listener is
// flagged until the first resync check (S-INF-23): with no resync at all, relists of unchanged
// objects reach everyone, as upstream.
//
// Listeners that follow one another, as the handlers of a script's revisions do, are a line, each
// with its place in it. One that is added while some with a lower place are not closed is held: it
// queues and coalesces as any other, and its first delivery comes when they are, so that a line as
// a whole is told in order, too. It is held for some time at most; then it, and all with the same
// place, go on beside them: `late` is called for one of these, and who is added to that place
// later is not held any more. Different lines, and those without one, never wait for each other.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/object.h"
#include "cache/objmap.h"
#include "transport/loop.h"

enum { MW_LISTENER_BOUND = 16384 };
#define MW_LISTENER_HOLD 1.0  // seconds

enum mw_notify_type { MW_NOTIFY_ADD = 0, MW_NOTIFY_UPDATE, MW_NOTIFY_DELETE };

struct mw_notification {
  enum mw_notify_type type;
  struct mw_object *old;     // UPDATE; DELETE: what was known before, or NULL, for filters
  struct mw_object *object;  // the new state; for DELETE the last known one
  bool initial;              // ADD: part of this listener's initial list
  bool stale;                // DELETE: inferred from a relist, the object may be out of date
  uint64_t queued_at;
};

struct mw_processor;
struct mw_listener;  // refcounted by the processor and the registration that holds it

struct mw_listener_config {
  char name[64];  // for messages
  double resync;  // effective period, 0: none
  size_t bound;   // 0: MW_LISTENER_BOUND
  // Delivers one notification (borrowed for the call). 0: finished, also when the handler failed;
  // 1: still running, mw_listener_finished() will be called.
  int (*deliver)(void *ctx, const struct mw_notification *n);
  // Whether the listener wants this object; NULL: all. Transitions become add and delete
  // (S-INF-71).
  bool (*filter)(void *ctx, struct mw_object *o);
  // The last delivery has ended and nothing will be called any more.
  void (*closed)(void *ctx);
  const void *line;     // NULL: none
  unsigned long place;  // in the line
  double hold;          // seconds that it is held at most; 0: MW_LISTENER_HOLD
  // Its place was held for too long and begins now; those before still have so many deliveries
  // before them, one under way included. From the loop; may be NULL.
  void (*late)(void *ctx, size_t left);
  void *ctx;
};

struct mw_processor *mw_processor_new(struct mw_loop *loop);
// All listeners must be closed.
void mw_processor_free(struct mw_processor *p);

// Adds a listener (+1 for the caller).
struct mw_listener *mw_processor_add(struct mw_processor *p,
                                     const struct mw_listener_config *config);
void mw_listener_unref(struct mw_listener *l);  // NULL is fine
// No new notifications; queued ones are dropped; a running one finishes, then `closed` is called
// (from the loop, never inside this call). Idempotent.
void mw_listener_remove(struct mw_listener *l);
// The same, but queued ones are still delivered. May be followed by mw_listener_remove.
void mw_listener_drain(struct mw_listener *l);
void mw_listener_finished(struct mw_listener *l);

// Queues a synthetic add for a late listener.
void mw_listener_replay(struct mw_listener *l, struct mw_object *o);
// Queues for all listeners; takes its own references. An update with equal resource versions goes
// to the syncing ones only (S-INF-22).
void mw_processor_distribute(struct mw_processor *p, const struct mw_notification *n);
// The informer has its first snapshot in the store and all its adds are queued.
void mw_processor_set_synced(struct mw_processor *p);
// Synced upstream, and every initial add was delivered (S-INF-61).
bool mw_listener_has_synced(const struct mw_listener *l);

// The resync check (S-INF-44): flags the listeners that are due; true if any is.
bool mw_processor_resync_due(struct mw_processor *p, uint64_t now);
void mw_listener_set_resync(struct mw_listener *l, double seconds, uint64_t now);
// Removes all listeners; `done` is called from the loop once all are closed.
void mw_processor_close(struct mw_processor *p, mw_loop_cb done, void *ctx);
// Called from the loop whenever a listener became synced or closed.
void mw_processor_on_change(struct mw_processor *p, mw_loop_cb changed, void *ctx);

struct mw_listener_stats {
  const char *name;  // as long as the listener
  bool synced;       // mw_listener_has_synced
  size_t pending;
  uint64_t delivered;
  uint64_t coalesced;
  uint64_t lag_ns;  // age of the notification now at the head, 0 when idle
};
void mw_listener_stats(const struct mw_listener *l, struct mw_listener_stats *out);
// Calls cb with the stats of each listener that was not removed.
typedef void (*mw_listener_stats_cb)(void *ctx, const struct mw_listener_stats *stats);
void mw_processor_each(const struct mw_processor *p, mw_listener_stats_cb cb, void *ctx);
