// SPDX-License-Identifier: Apache-2.0
// Informers that are kept running for nobody: those that a staged revision will want, while they
// fill, and those that no revision wants any more, for a while. Script thread only.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cache/informer.h"
#include "transport/loop.h"

struct mw_keep;

// seconds: how long an informer is held.
struct mw_keep *mw_keep_new(struct mw_loop *loop, double seconds);
void mw_keep_free(struct mw_keep *k);

// Starts one that is not running: it warms up, until one of the next two. place: who wants it,
// copied.
void mw_keep_start(struct mw_keep *k, struct mw_informer *inf, const char *place);
// Those that warm up are held from now on, as if by mw_keep_hold.
void mw_keep_settle(struct mw_keep *k);
// Lets go of those that warm up.
void mw_keep_drop(struct mw_keep *k);
// Whether all that warm up have synced.
bool mw_keep_is_synced(const struct mw_keep *k);
// One that has not.
struct mw_keep_lack {
  const char *name, *place;
  const char *error;  // what it heard last from the server; "": nothing
};
void mw_keep_each_missing(const struct mw_keep *k,
                          void (*cb)(void *ctx, const struct mw_keep_lack *lack), void *ctx);
// Writes which they are: "v1/pods (what it heard), v1/secrets".
void mw_keep_missing(const struct mw_keep *k, char *out, size_t size);

// Holds one that runs; again: its time begins anew.
void mw_keep_hold(struct mw_keep *k, struct mw_informer *inf);
// Lets go of all.
void mw_keep_release(struct mw_keep *k);
