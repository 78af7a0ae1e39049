// SPDX-License-Identifier: Apache-2.0
// The host's registry of informers, found by identity. Script thread only.
//
// Lua factories are option sets that belong to a script, and independent of each other: the
// bindings number equal informers of one script, so that each has an identity of its own. What
// lives here outlives the script: one that is loaded anew finds its caches warm.
#pragma once

#include "base/err.h"
#include "cache/informer.h"

struct mw_factory;

// The registry holds +1 on each informer that is not stopped; one that was never started goes with
// the last other reference.
struct mw_factory *mw_factory_new(const struct mw_runtime *runtime);
// Stops every informer and lets go of it; done is called from the loop when all have stopped.
void mw_factory_close(struct mw_factory *f, mw_loop_cb done, void *ctx);
// After close has reported done.
void mw_factory_free(struct mw_factory *f);

// The informer of this identity, made if there is none that is not stopped: +1. Takes over
// config->projection in either case. resync is not part of the identity: the informer checks as
// often as the most eager of those who share it asked for, and each listener has its own period.
struct mw_informer *mw_factory_get(struct mw_factory *f, const struct mw_informer_config *config,
                                   struct mw_err *err);
// The informer is not found any more: it is no longer what its identity says.
void mw_factory_hide(struct mw_factory *f, const struct mw_informer *inf);
// Informers made from now on have metrics, under their resource's name: "v1/pods", "v1/pods in
// default", and with a number when there are several ("v1/pods #2").
void mw_factory_meter(struct mw_factory *f);
// Calls cb with each live informer (borrowed).
void mw_factory_each(struct mw_factory *f, void (*cb)(void *ctx, struct mw_informer *inf),
                     void *ctx);
