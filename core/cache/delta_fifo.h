// SPDX-License-Identifier: Apache-2.0
// The queue between a reflector (ingest thread) and its store (script thread): the only place
// where objects cross threads.
//
// Contract (S-RF-01..28, atomic mode): strict arrival order, no merging, a relist is one
// REPLACED_ALL and a resync one SYNC_ALL, each in order behind what came before. Deletions are
// found when a REPLACED_ALL is processed, against the store as it then is.
//
// Overload (D15): beyond `bound` queued deltas the queue coalesces per key instead of growing,
// until it has shrunk to half of that: of the upserts of one key only the newest stays, at the
// place of the oldest; a deletion stays, so per key at most a deletion followed by one upsert is
// queued (coalesce.h). REPLACED_ALL and SYNC_ALL are barriers: nothing is merged across them.
// Meanwhile a BOOKMARK only moves the RV that the queue leads to. A third snapshot takes the place
// of the second queued one and of all behind that. A SYNC_ALL makes one that is queued as young as
// itself and goes, also without overload: who was held up for long gets one, not all that it
// missed. Every delta that was merged away is counted.
//
// A delta that stands at an older one's place carries that one's RV, so that the store never claims
// to be further than it is; the last batch carries the RV that was reached.
//
// TRAPs decided: a delta whose processing fails is not requeued (client-go's old RetryOnError): it
// is logged and counted by the informer, and the next relist heals. Closing wakes the consumer;
// what is queued can still be popped.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/object.h"

enum { MW_FIFO_BATCH = 256, MW_FIFO_BOUND = 16384 };

enum mw_delta_type {
  MW_DELTA_ADDED = 0,
  MW_DELTA_UPDATED,
  MW_DELTA_DELETED,
  MW_DELTA_REPLACED_ALL,
  MW_DELTA_SYNC_ALL,
  MW_DELTA_BOOKMARK,
};

struct mw_delta {
  enum mw_delta_type type;
  struct mw_object *object;   // +1; ADDED, UPDATED, DELETED (its last state)
  struct mw_object_list all;  // REPLACED_ALL, in server order
  char *rv;                   // REPLACED_ALL, BOOKMARK; a merged delta: the RV of its place
  uint64_t queued_at;         // mw_clock_now() when it was enqueued
};

struct mw_delta_batch {
  struct mw_delta deltas[MW_FIFO_BATCH];
  size_t count;
  bool initial;                   // taken before the queue was synced (S-RF-15)
  size_t counted;                 // how many of them the synced state waits for; the queue's own
  char rv[MW_OBJECT_RV_MAX + 1];  // the RV reached with this batch; "": its last delta's
};

struct mw_delta_fifo;

// wake is called on the producer's thread when an empty queue got its first delta, and on close.
typedef void (*mw_fifo_wake_cb)(void *ctx);

struct mw_delta_fifo *mw_delta_fifo_new(size_t bound, mw_fifo_wake_cb wake, void *ctx);
// Drops what is queued. No thread may use it any more.
void mw_delta_fifo_free(struct mw_delta_fifo *f);

// Producer. Each takes its own +1 on the object.
void mw_delta_fifo_add(struct mw_delta_fifo *f, struct mw_object *o);
void mw_delta_fifo_update(struct mw_delta_fifo *f, struct mw_object *o);
void mw_delta_fifo_delete(struct mw_delta_fifo *f, struct mw_object *o);
// Takes over the list (emptied) and copies rv.
void mw_delta_fifo_replace(struct mw_delta_fifo *f, struct mw_object_list *all, struct mw_slice rv);
void mw_delta_fifo_resync(struct mw_delta_fifo *f);
void mw_delta_fifo_bookmark(struct mw_delta_fifo *f, struct mw_slice rv);
void mw_delta_fifo_close(struct mw_delta_fifo *f);

// Consumer: takes up to MW_FIFO_BATCH deltas, stopping before a key that is already in the batch,
// at the end of the initial population, and before a delta that is not a plain object (which is
// taken alone). Returns the count; 0 when empty.
size_t mw_delta_fifo_pop(struct mw_delta_fifo *f, struct mw_delta_batch *out);
// The batch has been applied: counts towards synced (S-RF-13) and drops its references.
void mw_delta_fifo_done(struct mw_delta_fifo *f, struct mw_delta_batch *batch);

// Latches once the first snapshot has been popped and applied; or at the first plain delta, if
// that came before any snapshot (S-RF-11..14).
bool mw_delta_fifo_has_synced(struct mw_delta_fifo *f);
size_t mw_delta_fifo_depth(struct mw_delta_fifo *f);
uint64_t mw_delta_fifo_coalesced(struct mw_delta_fifo *f);
