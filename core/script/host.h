// SPDX-License-Identifier: Apache-2.0
// The host: loops, connections, informers, and the generation that runs on them.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "cache/factory.h"
#include "client/rest.h"
#include "queue/queues.h"
#include "script/generation.h"
#include "script/leader.h"
#include "script/side.h"
#include "server/health.h"
#include "transport/http.h"
#include "transport/kubeconfig.h"
#include "transport/loop.h"

struct mw_host;
struct mw_program;

struct mw_host_config {
  const char *const *scripts;  // script_count files or directories
  size_t script_count;
  const char *module;       // instead of scripts: see generation.h
  const char *agent;        // likewise
  const char *const *args;  // arg_count; for the module
  size_t arg_count;
  mw_state_open_cb open;         // what scripts get, see generation.h
  mw_state_open_cb open_deploy;  // and what reads scripts from ConfigMaps gets
  struct mw_kubeconfig_source kubeconfig;
  bool offline;         // no cluster is asked for: clients can be made, and nothing is sent
  const char *ns;       // -n: the namespace a factory uses when the script names none
  size_t memory_limit;  // of a generation; 0: none
  bool no_reload;       // files that change are left alone
  bool attended;        // somebody is there to mend what does not load: see mw_program_wait
  double stuck_after;   // seconds, 0: 10, below 0: never; see watchdog.h
  bool http1_only;
  const char *listen;  // where metrics and probes are served, ADDRESS:PORT; NULL: nowhere
  // Where it is operated: the path of a socket, "" for the default place (control.h); NULL:
  // nowhere.
  const char *control;
  int stopped;   // the exit code after a signal; 0: MW_EXIT_OK
  double grace;  // seconds for tasks to end at shutdown, 0: 10
};

// Exit codes.
enum {
  MW_EXIT_OK = 0,
  // The script, the sandbox or a listener failed to start, or failed; or the script has nothing
  // left to run, and a task of it had failed.
  MW_EXIT_SCRIPT = 1,
  MW_EXIT_USAGE = 2,     // wrong arguments
  MW_EXIT_CONFIG = 3,    // no usable kubeconfig
  MW_EXIT_LEASE = 4,     // the lease of the leader election was lost
  MW_EXIT_UNDONE = 5,    // stopped, but tasks that drain were cancelled, or keys were left queued
  MW_EXIT_STUCK = 6,     // the script kept its thread busy, and nothing could stop it
  MW_EXIT_LEAK = 70,     // MOONWATCH_LEAK_CHECK found something alive at exit
  MW_EXIT_SIGNAL = 130,  // a second signal
};

// Some send one request to stop twice at once (timeout(1), to the process and to its group): a
// second signal that comes within so many nanoseconds is the first.
enum { MW_SAME_SIGNAL = 100000000 };

// Runs a script until it ends, fails, or SIGINT/SIGTERM; returns the exit code. A second signal
// ends the process at once.
int mw_host_run(const struct mw_host_config *config);
// At the very end: MW_EXIT_LEAK when MOONWATCH_LEAK_CHECK=1 and something is still alive, which it
// then names; else code.
int mw_host_check_leaks(int code);

// From the commit of its scripts until shutdown begins.
bool mw_host_is_running(const struct mw_host *h);
size_t mw_host_program_count(const struct mw_host *h);
struct mw_program *mw_host_program(struct mw_host *h, size_t i);

// For the bindings.
struct mw_factory *mw_host_factory(struct mw_host *h);
struct mw_loop *mw_host_loop(struct mw_host *h);
struct mw_rest_pool *mw_host_requests(struct mw_host *h);
struct mw_leader *mw_host_leader(struct mw_host *h);
const struct mw_runtime *mw_host_runtime(struct mw_host *h);
struct mw_queues *mw_host_queues(struct mw_host *h);
// Scripts beside the main one.
struct mw_sides *mw_host_sides(struct mw_host *h);
const struct mw_host_config *mw_host_config(const struct mw_host *h);
const char *mw_host_namespace(struct mw_host *h);  // "" when not given
// The checks behind /readyz and /healthz; always there, whether they are served or not.
struct mw_health *mw_host_health(struct mw_host *h);
// The default endpoint, loaded on first use: +1, or NULL and err.
struct mw_endpoint *mw_host_endpoint(struct mw_host *h, struct mw_err *err);
// Asks for an orderly shutdown with this exit code.
void mw_host_shutdown(struct mw_host *h, int code);
// The lease is lost: a shutdown that waits for nobody, with MW_EXIT_LEASE. Whatever the script
// still tries to write does not pass the fence.
void mw_host_lost_lease(struct mw_host *h);
// The exit code for that: a kubeconfig that cannot be used is told apart.
int mw_host_failure_code(const struct mw_host *h, const char *report);
// The script's main task failed: logs the report and shuts down.
void mw_host_failed(struct mw_host *h, const char *report);
// Something changed (a task ended, an informer synced or stopped): wakes the tasks that wait for it
// (mw_generation_changed) and looks, from the loop, whether anything is left to run.
void mw_host_poke(struct mw_host *h);
