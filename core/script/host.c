// SPDX-License-Identifier: Apache-2.0
// Life: both loops, the pool of connections, the registry of informers; then the generation; then
// the script loop until `begin_shutdown`, whose steps follow one another from the loop: scripts at
// its side, generation, lease, registry, loop. The rest is taken down in reverse order once the
// loop has returned.
//
// Signals are handled on the ingest loop, because a script can keep the script loop busy.
#include "script/host.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "script/control.h"
#include "script/observe.h"
#include "script/program.h"
#include "script/progress.h"

enum { SIGNALS = 2, SETTLE_TURNS = 200, SETTLE_MS = 10 };

static const double default_grace = 10;
static const char nowhere[] = "https://moonwatch.invalid";
static const double lost_grace = 0.5;  // enough for tasks to be cancelled

struct mw_host {
  const struct mw_host_config *config;
  struct mw_loop *script, *ingest;
  struct mw_runtime runtime;
  struct mw_factory *factory;
  struct mw_rest_pool *requests;
  struct mw_leader *leader;
  struct mw_queues *queues;
  struct mw_endpoint *endpoint;  // NULL until asked for
  struct mw_program **programs;
  size_t program_count, stopped_count;
  struct mw_sides *sides;
  struct mw_progress *progress;
  struct mw_health *health;
  struct mw_observe *observe;    // NULL when nobody asked for it
  struct mw_control *control;    // NULL when it could not be, or is not to be
  uv_signal_t signals[SIGNALS];  // of the ingest loop
  uint64_t signalled_at;         // ingest thread only; 0: not yet
  char config_error[MW_ERR_MESSAGE_MAX];
  bool running;   // from commit until shutdown begins
  bool shutdown;  // asked for
  bool poked;     // a look is posted
  int code;
};

static void on_control_closed(void *arg) {
  struct mw_host *h = arg;
  h->control = NULL;
  mw_loop_stop(h->script);
}

static void on_factory_closed(void *arg) {
  struct mw_host *h = arg;
  if (h->control != NULL) {
    mw_control_close(h->control, on_control_closed, h);
  } else {
    mw_loop_stop(h->script);
  }
}

// Renewed until here, and released when nothing of the script is left that could write.
static void on_lease_closed(void *arg) {
  struct mw_host *h = arg;
  mw_factory_close(h->factory, on_factory_closed, h);
}

// Something still points into a state; the process ends with it.
static void leave(const struct mw_host *h) {
  mw_log(MW_LOG_ERROR, "leaving without cleaning up");
  fflush(stdout);
  _exit(h->code != 0 ? h->code : MW_EXIT_SCRIPT);
}

static void look_stopped(struct mw_host *h) {
  if (h->stopped_count < h->program_count) return;
  for (size_t i = 0; i < h->program_count; i++) {
    if (!mw_program_has_ended(h->programs[i])) leave(h);
    if (h->code != MW_EXIT_OK) continue;
    if (mw_program_has_failed(h->programs[i])) h->code = MW_EXIT_SCRIPT;
    if (!mw_program_is_drained(h->programs[i])) h->code = MW_EXIT_UNDONE;
  }
  mw_leader_close(h->leader, on_lease_closed, h);
}

static void on_program_stopped(void *arg) {
  struct mw_host *h = arg;
  h->stopped_count++;
  look_stopped(h);
}

static double grace_of(const struct mw_host *h) {
  if (h->code == MW_EXIT_LEASE) return lost_grace;
  return h->config->grace > 0 ? h->config->grace : default_grace;
}

static void on_sides_closed(void *arg) {
  struct mw_host *h = arg;
  if (!mw_sides_have_ended(h->sides)) leave(h);
  double patience = h->code == MW_EXIT_LEASE ? lost_grace : 0;
  for (size_t i = 0; i < h->program_count; i++)
    mw_program_stop(h->programs[i], grace_of(h), patience, on_program_stopped, h);
  look_stopped(h);
}

static void begin_shutdown(void *arg) {
  struct mw_host *h = arg;
  h->running = false;
  mw_progress_free(h->progress);
  h->progress = NULL;
  mw_sides_close(h->sides, grace_of(h), on_sides_closed, h);
}

void mw_host_shutdown(struct mw_host *h, int code) {
  if (h->shutdown) return;
  h->shutdown = true;
  h->code = code;
  mw_observe_shutdown(h->observe);
  mw_loop_post(h->script, begin_shutdown, h);
}

void mw_host_lost_lease(struct mw_host *h) {
  mw_host_shutdown(h, MW_EXIT_LEASE);
  h->code = MW_EXIT_LEASE;  // also when it is lost while shutting down
}

int mw_host_failure_code(const struct mw_host *h, const char *report) {
  bool config = h->config_error[0] != '\0' && strstr(report, h->config_error) != NULL;
  return config ? MW_EXIT_CONFIG : MW_EXIT_SCRIPT;
}

// What to tell of a failure. When it is the kubeconfig, no line of the script is at fault: the one
// that needed a server first is as good as any other.
static const char *cause_of(const struct mw_host *h, const char *report) {
  return mw_host_failure_code(h, report) == MW_EXIT_CONFIG ? h->config_error : report;
}

void mw_host_failed(struct mw_host *h, const char *report) {
  char message[4096];
  int code = mw_host_failure_code(h, report);
  snprintf(message, sizeof message, "%s%s",
           code == MW_EXIT_CONFIG ? "" : "script failed: ", cause_of(h, report));
  mw_log(MW_LOG_ERROR, message);
  mw_host_shutdown(h, code);
}

static bool any_busy(const struct mw_host *h) {
  for (size_t i = 0; i < h->program_count; i++)
    if (mw_program_is_busy(h->programs[i])) return true;
  return false;
}

static bool any_failed(const struct mw_host *h) {
  for (size_t i = 0; i < h->program_count; i++)
    if (mw_program_has_failed(h->programs[i])) return true;
  return false;
}

static void look(void *arg) {
  struct mw_host *h = arg;
  h->poked = false;
  for (size_t i = 0; i < h->program_count; i++) mw_program_look(h->programs[i]);
  mw_sides_changed(h->sides);
  if (!h->running) return;
  mw_progress_look(h->progress);
  mw_observe_look(h->observe);
  if (any_busy(h) || h->shutdown) return;
  bool failed = any_failed(h);
  if (failed) {
    mw_log(MW_LOG_ERROR, "nothing left to run, and a task has failed");
  } else {
    mw_log(MW_LOG_INFO, "nothing left to run");
  }
  mw_host_shutdown(h, failed ? MW_EXIT_SCRIPT : MW_EXIT_OK);
}

void mw_host_poke(struct mw_host *h) {
  if (h->poked) return;
  h->poked = true;
  mw_loop_post(h->script, look, h);
}

static void on_first_signal(void *arg) {
  struct mw_host *h = arg;
  if (!h->shutdown) mw_log(MW_LOG_INFO, "shutting down");
  mw_host_shutdown(h, h->config->stopped);
}

static void on_signal(uv_signal_t *handle, int number) {
  (void)number;
  struct mw_host *h = handle->data;
  uint64_t now = mw_clock_now();
  if (h->signalled_at != 0) {
    if (now - h->signalled_at > MW_SAME_SIGNAL) _exit(MW_EXIT_SIGNAL);
    return;
  }
  h->signalled_at = now;
  mw_loop_post(h->script, on_first_signal, h);
}

static void on_signal_closed(uv_handle_t *handle) {
  (void)handle;
  mw_live_add(MW_LIVE_HANDLE, -1);
}

static void ingest_open(void *arg) {
  struct mw_host *h = arg;
  static const int numbers[SIGNALS] = {SIGINT, SIGTERM};
  for (int i = 0; i < SIGNALS; i++) {
    uv_signal_init(mw_loop_uv(h->ingest), &h->signals[i]);
    h->signals[i].data = h;
    mw_live_add(MW_LIVE_HANDLE, 1);
    uv_signal_start(&h->signals[i], on_signal, numbers[i]);
  }
  h->runtime.http =
      mw_http_new(h->ingest, &(struct mw_http_config){.http1_only = h->config->http1_only});
}

static void ingest_warm(void *arg) {
  struct mw_host *h = arg;
  mw_http_warm(h->runtime.http);
}

static void ingest_close(void *arg) {
  struct mw_host *h = arg;
  mw_http_free(h->runtime.http);
  for (int i = 0; i < SIGNALS; i++) uv_close((uv_handle_t *)&h->signals[i], on_signal_closed);
}

static void nothing(void *arg) { (void)arg; }

// Closing the state let go of the last informers: they free themselves by posts between the loops.
static void settle(struct mw_host *h) {
  for (int i = 0; i < SETTLE_TURNS && mw_live_get(MW_LIVE_INFORMER) > 0; i++) {
    mw_loop_call(h->ingest, nothing, NULL);
    mw_loop_turn(h->script, SETTLE_MS);
  }
  mw_loop_turn(h->script, 0);
}

int mw_host_check_leaks(int code) {
  const char *wanted = getenv("MOONWATCH_LEAK_CHECK");
  if (wanted == NULL || strcmp(wanted, "1") != 0) return code;
  bool any = false;
  for (int kind = 0; kind < MW_LIVE_COUNT; kind++) {
    long n = mw_live_get((enum mw_live)kind);
    if (n == 0) continue;
    fprintf(stderr, "leak: %ld %s(s) still alive\n", n, mw_live_name((enum mw_live)kind));
    any = true;
  }
  return any ? MW_EXIT_LEAK : code;
}

// 0, or the exit code of a script that does not load, and will not.
static int load_one(struct mw_host *h, const char *path) {
  struct mw_program_config config = {
      .path = path,
      .module = h->config->module,
      .agent = h->config->agent,
      .open = h->config->open,
      .memory_limit = h->config->memory_limit,
      .metered = h->observe != NULL,
      .watched = !h->config->no_reload,
  };
  struct mw_err err;
  struct mw_program *p = mw_program_new(h, &config);
  h->programs[h->program_count++] = p;
  if (mw_program_load(p, &err) == 0) return 0;
  const char *report = mw_program_report(p)[0] != '\0' ? mw_program_report(p) : err.message;
  int code = mw_host_failure_code(h, report);
  if (code == MW_EXIT_SCRIPT && h->config->attended && mw_program_wait(p)) return 0;
  fprintf(stderr, "moonwatch: %s\n", cause_of(h, report));
  return code;
}

static int load(struct mw_host *h) {
  size_t count = h->config->module != NULL ? 1 : h->config->script_count;
  h->programs = mw_xcalloc(count, sizeof(struct mw_program *));
  int code = 0;
  for (size_t i = 0; i < count && code == 0; i++) {
    code = load_one(h, h->config->module != NULL ? NULL : h->config->scripts[i]);
  }
  return code;
}

// 0, or the exit code when the address cannot be listened on.
static int observe(struct mw_host *h) {
  if (h->config->listen == NULL) return 0;
  struct mw_err err;
  h->observe = mw_observe_new(h, h->factory, h->health, h->config->listen, &err);
  if (h->observe != NULL) return 0;
  fprintf(stderr, "moonwatch: cannot serve metrics: %s\n", err.message);
  return MW_EXIT_SCRIPT;
}

// 0, or the exit code when the socket that was asked for cannot be.
static int control(struct mw_host *h) {
  if (h->config->control == NULL) return 0;
  struct mw_err err;
  h->control = mw_control_new(h, h->config->control, &err);
  if (h->control != NULL) {
    mw_log(MW_LOG_DEBUG, "can be operated", MW_STR("socket", mw_control_path(h->control)));
    return 0;
  }
  if (h->config->control[0] == '\0') {
    mw_log(MW_LOG_WARN, "moonwatch status and its like will not find this process",
           MW_STR("error", err.message));
    return 0;
  }
  fprintf(stderr, "moonwatch: --control: %s\n", err.message);
  return MW_EXIT_SCRIPT;
}

// What is not read from files is offered by a part of Moonwatch that runs beside the scripts.
static void deploy(struct mw_host *h) {
  bool any = false;
  for (size_t i = 0; i < h->program_count; i++) any = any || mw_program_is_remote(h->programs[i]);
  if (!any) return;
  struct mw_generation_config config = {.module = "kube._deploy", .open = h->config->open_deploy};
  struct mw_err err;
  struct mw_side *side = mw_side_new(h->sides, &config, &err);
  if (side != NULL && mw_side_start(side, &err) == 0) {
    mw_side_unref(side);
    return;
  }
  fprintf(stderr, "moonwatch: %s\n", cause_of(h, err.message));
  if (side != NULL) mw_side_unref(side);
  mw_host_shutdown(h, mw_host_failure_code(h, err.message));
}

static void run(struct mw_host *h) {
  int code = observe(h);
  if (code == 0) code = load(h);
  if (code == 0) code = control(h);
  if (code != 0) {
    mw_host_shutdown(h, code);
  } else {
    h->running = true;
    // No script writes before the election that another one has declared.
    for (size_t i = 0; i < h->program_count; i++)
      mw_leader_enter(h->leader, mw_program_active(h->programs[i]));
    for (size_t i = 0; i < h->program_count; i++) mw_program_commit(h->programs[i]);
    deploy(h);
    mw_host_poke(h);
  }
  mw_loop_run(h->script);
}

int mw_host_run(const struct mw_host_config *config) {
  struct mw_host *h = mw_xcalloc(1, sizeof *h);
  h->config = config;
  h->script = mw_loop_new("script");
  h->ingest = mw_loop_new("ingest");
  h->runtime.script = h->script;
  h->runtime.ingest = h->ingest;
  // Before its thread runs, so that this one need not wait for it.
  mw_loop_call(h->ingest, ingest_open, h);
  mw_loop_post(h->ingest, ingest_warm, h);  // beside the loading of the script
  if (mw_loop_start_thread(h->ingest) < 0) {
    fprintf(stderr, "moonwatch: cannot create a thread\n");
    abort();
  }
  h->factory = mw_factory_new(&h->runtime);
  h->requests = mw_rest_pool_new(&h->runtime);
  h->leader = mw_leader_new(h);
  h->queues = mw_queues_new(h->script, MW_PROGRAM_KEEP);
  h->sides = mw_sides_new(h);
  h->progress = mw_progress_new(h->script, h->factory);
  h->health = mw_health_new();
  run(h);
  mw_observe_free(h->observe);
  for (size_t i = 0; i < h->program_count; i++) mw_program_free(h->programs[i]);
  mw_free(h->programs);
  mw_sides_free(h->sides);
  mw_factory_free(h->factory);
  mw_rest_pool_free(h->requests);
  mw_leader_free(h->leader);
  mw_queues_free(h->queues);
  settle(h);
  if (h->endpoint != NULL) mw_endpoint_unref(h->endpoint);
  mw_health_free(h->health);
  mw_loop_call(h->ingest, ingest_close, h);
  mw_loop_join_thread(h->ingest);
  mw_loop_free(h->ingest);
  mw_loop_free(h->script);
  int code = h->code;
  mw_free(h);
  return code;
}

bool mw_host_is_running(const struct mw_host *h) { return h->running; }

size_t mw_host_program_count(const struct mw_host *h) { return h->program_count; }

struct mw_program *mw_host_program(struct mw_host *h, size_t i) {
  return h->programs[i];
}

struct mw_factory *mw_host_factory(struct mw_host *h) {
  return h->factory;
}

struct mw_loop *mw_host_loop(struct mw_host *h) {
  return h->script;
}

struct mw_rest_pool *mw_host_requests(struct mw_host *h) {
  return h->requests;
}

struct mw_leader *mw_host_leader(struct mw_host *h) {
  return h->leader;
}

const struct mw_runtime *mw_host_runtime(struct mw_host *h) { return &h->runtime; }

struct mw_queues *mw_host_queues(struct mw_host *h) {
  return h->queues;
}

struct mw_sides *mw_host_sides(struct mw_host *h) {
  return h->sides;
}

const struct mw_host_config *mw_host_config(const struct mw_host *h) { return h->config; }

struct mw_health *mw_host_health(struct mw_host *h) {
  return h->health;
}

const char *mw_host_namespace(struct mw_host *h) {
  return h->config->ns != NULL ? h->config->ns : "";
}

struct mw_endpoint *mw_host_endpoint(struct mw_host *h, struct mw_err *err) {
  if (h->endpoint == NULL) {
    struct mw_err failure = {.code = 0};
    struct mw_kubeconfig *k = h->config->offline
                                  ? mw_kubeconfig_foreign(nowhere, NULL, false)
                                  : mw_kubeconfig_load(&h->config->kubeconfig, &failure);
    if (k == NULL) {
      snprintf(h->config_error, sizeof h->config_error, "%s", failure.message);
      mw_err_set(err, failure.code, "%s", failure.message);
      return NULL;
    }
    h->endpoint = mw_endpoint_new(k);
  }
  return mw_endpoint_ref(h->endpoint);
}
