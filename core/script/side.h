// SPDX-License-Identifier: Apache-2.0
// Scripts beside the main one of a host, each in a generation of its own: they share loops,
// connections, informers and queues. A side script that fails stays, as one whose main task is
// over, until it is stopped; nobody else is concerned. Script thread only.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "script/generation.h"
#include "transport/loop.h"

enum { MW_SIDES_MAX = 8 };

struct mw_side;
struct mw_sides;

struct mw_sides *mw_sides_new(struct mw_host *host);
// After mw_sides_close has reported done.
void mw_sides_free(struct mw_sides *s);
// Wakes the tasks that wait for something in the host (mw_generation_changed).
void mw_sides_changed(struct mw_sides *s);
// Stops all; done is called from the loop when that is over. None can be added any more.
void mw_sides_close(struct mw_sides *s, double grace, mw_loop_cb done, void *ctx);
// After that: whether nothing is left of them.
bool mw_sides_have_ended(const struct mw_sides *s);

// A script that is not loaded yet, +1. config->failed is set in here. NULL and err when there are
// too many, or no state could be made for it.
struct mw_side *mw_side_new(struct mw_sides *s, const struct mw_generation_config *config,
                            struct mw_err *err);
void mw_side_unref(struct mw_side *side);
// Loads it, and nothing more: what it declared is there, and none of it runs.
int mw_side_load(struct mw_side *side, struct mw_err *err);
// Loads and commits it. One that does not load must be stopped all the same.
int mw_side_start(struct mw_side *side, struct mw_err *err);
// Begins to stop it; mw_host_poke when it has ended. May be repeated.
void mw_side_stop(struct mw_side *side, double grace);
// Whether it was stopped, and that is over.
bool mw_side_has_ended(const struct mw_side *side);
// Of one that has not ended.
struct mw_generation *mw_side_generation(struct mw_side *side);
// The report of its failure after the load; NULL: it has not failed.
const char *mw_side_failure(const struct mw_side *side);
