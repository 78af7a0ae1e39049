// SPDX-License-Identifier: Apache-2.0
// What GET /status answers to others than the owner of the process: made on the script thread once
// a second, and read on the one that serves. And the metric that names the revisions.
#pragma once

#include "base/buf.h"

struct mw_host;
struct mw_observe_status;

struct mw_observe_status *mw_observe_status_new(struct mw_host *host);
void mw_observe_status_free(struct mw_observe_status *s);
// Script thread: brings both up to date.
void mw_observe_status_publish(struct mw_observe_status *s);
// Any thread: a mw_metrics_status_cb.
int mw_observe_status_write(void *ctx, struct mw_buf *out);
