// SPDX-License-Identifier: Apache-2.0
// Named checks behind /healthz, /livez and /readyz.
//
// Any thread may add, remove and run checks. A check runs on the thread that asks (the one that
// serves the probes), under the set's own lock: it must be quick, never wait for another thread,
// and never call into this header. Once mw_health_remove has returned, the check neither runs nor
// will.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

// What a check speaks for: whether the process should go on living, whether it is ready to work.
enum { MW_HEALTH_LIVE = 1, MW_HEALTH_READY = 2 };

// True when all is well; otherwise `why` (of `room` bytes, empty at first) says what is not.
typedef bool (*mw_health_cb)(void *ctx, char *why, size_t room);

struct mw_health;

struct mw_health *mw_health_new(void);
// Every check must have been removed.
void mw_health_free(struct mw_health *h);
// name (copied) is one word; `speaks_for` are bits of the enum above. Checks run in the order in
// which they were added.
void mw_health_add(struct mw_health *h, const char *name, unsigned speaks_for, mw_health_cb cb,
                   void *ctx);
void mw_health_remove(struct mw_health *h, mw_health_cb cb, void *ctx);

// Runs the checks that speak for one of these, and appends a line for each, as Kubernetes' own
// components write them: "[+]name ok" or "[-]name failed: why". True when all passed. A buffer that
// is full loses lines, never the result.
bool mw_health_run(struct mw_health *h, unsigned speaks_for, struct mw_buf *out);
