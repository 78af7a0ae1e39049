// SPDX-License-Identifier: Apache-2.0
// Shows how the initial sync goes: a status line on a terminal, and one log line per informer when
// it has synced. Script thread only.
#pragma once

#include "cache/factory.h"
#include "transport/loop.h"

struct mw_progress;

// factory and loop outlive it.
struct mw_progress *mw_progress_new(struct mw_loop *loop, struct mw_factory *factory);
void mw_progress_free(struct mw_progress *p);
// Something may have started or synced. While any informer is syncing it looks again by itself.
void mw_progress_look(struct mw_progress *p);
