// SPDX-License-Identifier: Apache-2.0
// Applies deltas to a store and tells the processor what happened (S-PRC-01..09). Private to cache;
// script thread only.
//
// Always the store and its indexes first, for the whole batch, then the notifications in order. The
// transform runs here, once per object that arrives. TRAPs decided: when it fails, the store keeps
// what it has for that key; when it drops an object, the object leaves the store as if deleted; a
// deletion always takes the object out of the store.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cache/delta_fifo.h"
#include "cache/hooks.h"
#include "cache/indexer.h"
#include "cache/informer.h"
#include "cache/processor.h"

struct mw_applier;

// name is for messages; all three outlive the applier.
struct mw_applier *mw_applier_new(struct mw_indexer *indexer, struct mw_processor *processor,
                                  const char *name);
void mw_applier_free(struct mw_applier *a);
// The place of the transform (mw_transform_cb); the applier's own.
struct mw_hooks *mw_applier_transforms(struct mw_applier *a);

// Applies a batch that was popped from a fifo. False when the deadline (mw_clock_now()) came in the
// middle of transforming a snapshot: call it again, with the same batch.
bool mw_applier_run(struct mw_applier *a, struct mw_delta_batch *batch, uint64_t deadline);

// Between store and notifications: a listener that came now would hear of some objects twice.
bool mw_applier_is_running(const struct mw_applier *a);
uint64_t mw_applier_errors(const struct mw_applier *a);  // transforms that failed
uint64_t mw_applier_deltas(const struct mw_applier *a);  // applied
