// SPDX-License-Identifier: Apache-2.0
// What Prometheus' client libraries tell of every process (process_*), and which Moonwatch it is.
#pragma once

struct mw_process_metrics;

// lua: the version of Lua, for moonwatch_build_info. Values are read from /proc when metrics are
// written. Any thread.
struct mw_process_metrics *mw_process_metrics_new(const char *lua);
void mw_process_metrics_free(struct mw_process_metrics *p);
