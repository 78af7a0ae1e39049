// SPDX-License-Identifier: Apache-2.0
// What others see of a running process, over plain HTTP:
//
//   /metrics          every metric of the process (base/metric.h), in Prometheus' text format
//   /healthz, /livez  200 "ok" when every check that speaks for living passes, else 500
//   /readyz           the same for readiness, and 503
//   /status           what the process does, as JSON, if somebody tells (mw_metrics_on_status)
//   /debug/loglevel   GET shows it, PUT sets it ("debug"); for clients on this machine only
//
// With ?verbose, and whenever one fails, the probes list their checks. It runs on the loop that it
// is given, which is never the one of scripts: it answers whatever a script does.
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "server/health.h"
#include "transport/loop.h"

struct mw_metrics_server;

// Listens on ADDRESS:PORT or [ADDRESS]:PORT, numeric; without an address on all of IPv4, and port 0
// takes any free one. health outlives it. On the loop's thread. NULL on failure, and err.
struct mw_metrics_server *mw_metrics_listen(struct mw_loop *loop, const char *address,
                                            struct mw_health *health, struct mw_err *err);
// Where it listens, with the port that it got.
const char *mw_metrics_address(const struct mw_metrics_server *s);
// cb appends what /status is to answer; it is called on the loop's thread. MW_E* when it cannot.
typedef int (*mw_metrics_status_cb)(void *ctx, struct mw_buf *out);
// On the loop's thread, before anybody can have asked.
void mw_metrics_on_status(struct mw_metrics_server *s, mw_metrics_status_cb cb, void *ctx);
// On the loop's thread. done(arg) runs from the loop when everything is closed and s freed.
void mw_metrics_close(struct mw_metrics_server *s, mw_loop_cb done, void *arg);
