// SPDX-License-Identifier: Apache-2.0
// The half of an informer that lives on the ingest thread: a reflector that fills a delta fifo.
// Private to cache.
//
// Called on the script thread, and calls back there, from the loop. The reflector is made, started,
// stopped and freed by posting to the ingest loop; each post holds a reference, so either side may
// let go first.
#pragma once

#include "cache/delta_fifo.h"
#include "cache/informer.h"

struct mw_source;

struct mw_source_callbacks {
  void (*wake)(void *ctx);  // the fifo has something, or was closed
  void (*error)(void *ctx, enum mw_error_place place, const struct mw_err *err, const char *again,
                uint64_t at);
  void (*opened)(void *ctx);   // the server has answered a watch or a streaming list
  void (*stopped)(void *ctx);  // nothing will be queued any more
  void *ctx;
};

// Takes over config->projection.
struct mw_source *mw_source_new(const struct mw_runtime *runtime,
                                const struct mw_informer_config *config,
                                const struct mw_source_callbacks *callbacks);
// No callback after this. Stopped, or never started.
void mw_source_free(struct mw_source *s);
// Once. resync is the check period.
void mw_source_start(struct mw_source *s, double resync);
// The check period from now on, while it runs.
void mw_source_set_resync(struct mw_source *s, double resync);
// After start, once. The fifo is closed and then `stopped` called.
void mw_source_stop(struct mw_source *s);
struct mw_delta_fifo *mw_source_fifo(struct mw_source *s);
// Whether what it brings may have something at `path`.
bool mw_source_may_have(const struct mw_source *s, const struct mw_path *path);
void mw_source_stats(struct mw_source *s, struct mw_reflector_stats *out);
