// SPDX-License-Identifier: Apache-2.0
// What can be seen of a running host: metrics and probes (server/metrics.h), served on the ingest
// thread, fed from the script thread.
//
// What lives on the script thread is published from there once a second, into atomics; no thread
// reads another's data. The probes:
//   script     lives while the script thread turned its loop within the last MW_OBSERVE_STALL
//              seconds
//   informers  ready when the scripts were committed, every informer that was started has synced,
//              and each of its handlers has got the initial list. A handler that comes later makes
//              nothing less ready
//   shutdown   not ready once shutdown has begun
// Others add their own to the same set (mw_host_health).
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "cache/factory.h"
#include "server/health.h"

struct mw_host;
struct mw_observe;

enum { MW_OBSERVE_STALL = 5 };

// Listens on `address`, as mw_metrics_listen takes it, and logs where. Everything it is given
// outlives it. Script thread, as all that follows; a NULL observe is fine there. NULL and err when
// it cannot listen.
struct mw_observe *mw_observe_new(struct mw_host *host, struct mw_factory *factory,
                                  struct mw_health *health, const char *address,
                                  struct mw_err *err);
// Waits until the server has closed.
void mw_observe_free(struct mw_observe *o);
// Something may have synced, started or stopped.
void mw_observe_look(struct mw_observe *o);
void mw_observe_shutdown(struct mw_observe *o);
