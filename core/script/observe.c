// SPDX-License-Identifier: Apache-2.0
#include "script/observe.h"

#include <luajit.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "script/generation.h"
#include "script/heap.h"
#include "script/host.h"
#include "script/observe_status.h"
#include "script/program.h"
#include "script/sched.h"
#include "server/metrics.h"
#include "server/process_metrics.h"

enum { WHY_ROOM = 256 };
static const double interval = 1;

// Of each script: gauges are those of its active revision, as the limit is that of one revision;
// the counter goes on through all of them.
#define SCRIPT_MAP(X)                                                                          \
  X(MEMORY, "moonwatch_lua_memory_bytes", "Memory of the script's active Lua state.", GAUGE)   \
  X(LIMIT, "moonwatch_lua_memory_limit_bytes",                                                 \
    "What a Lua state may grow to; 0: without a limit.", GAUGE)                                \
  X(HITS, "moonwatch_lua_memory_limit_hits_total", "Times that the script reached its limit.", \
    COUNTER)                                                                                   \
  X(TASKS, "moonwatch_tasks", "Tasks of the script that have not ended.", GAUGE)

// Of the pool of connections.
#define POOL_MAP(X)                                                                                \
  X(REQUESTS, "moonwatch_http_requests_total", "Requests to API servers that were begun.",         \
    COUNTER)                                                                                       \
  X(RETRIES, "moonwatch_http_retries_total", "Requests to API servers that were tried again.",     \
    COUNTER)                                                                                       \
  X(CONNECTIONS, "moonwatch_http_connections_total", "Connections to API servers that were made.", \
    COUNTER)                                                                                       \
  X(RESCUES, "moonwatch_http_rescues_total",                                                       \
    "Times that a silent transfer moved only when its socket was poked.", COUNTER)

#define X(name, family, help, type) name,
enum { SCRIPT_MAP(X) SCRIPT_COUNT };
enum { POOL_MAP(X) POOL_COUNT };
#undef X

struct script_series {
  struct mw_series *of[SCRIPT_COUNT];
};

struct mw_observe {
  struct mw_host *host;
  struct mw_runtime runtime;
  struct mw_factory *factory;
  struct mw_health *health;
  const char *address;  // while listening
  struct mw_err *err;
  struct mw_metrics_server *server;  // ingest thread
  struct mw_process_metrics *process;
  struct mw_observe_status *status;
  struct script_series *scripts;  // script thread; NULL until the host runs
  size_t script_count;
  struct mw_series *pool[POOL_COUNT];  // ingest thread
  struct mw_timer *timer;
  atomic_uint_least64_t turned_at;  // when the script thread last turned its loop
  atomic_bool shutdown;
  pthread_mutex_t lock;
  char missing[WHY_ROOM];  // under the lock: what has not synced; "": nothing
  bool ready;              // script thread: missing was "" at the last look
  bool was_ready;          // and once before
  char found[WHY_ROOM];    // of one look
  uv_sem_t closed;
};

static bool check_script(void *ctx, char *why, size_t room) {
  struct mw_observe *o = ctx;
  uint64_t at = atomic_load(&o->turned_at), now = mw_clock_now();
  double age = now > at ? (double)(now - at) / 1e9 : 0;
  if (age <= MW_OBSERVE_STALL) return true;
  snprintf(why, room, "the script has kept its thread busy for %.0f s", age);
  return false;
}

static bool check_informers(void *ctx, char *why, size_t room) {
  struct mw_observe *o = ctx;
  pthread_mutex_lock(&o->lock);
  snprintf(why, room, "%s", o->missing);
  pthread_mutex_unlock(&o->lock);
  return why[0] == '\0';
}

static bool check_shutdown(void *ctx, char *why, size_t room) {
  struct mw_observe *o = ctx;
  if (!atomic_load(&o->shutdown)) return true;
  snprintf(why, room, "shutting down");
  return false;
}

struct handler_look {
  struct mw_observe *observe;
  const char *informer;
};

static void look_at_handler(void *ctx, const struct mw_listener_stats *stats) {
  struct handler_look *look = ctx;
  struct mw_observe *o = look->observe;
  if (stats->synced || o->found[0] != '\0') return;
  snprintf(o->found, sizeof o->found, "a handler of %s (%s) has not got the initial list yet",
           look->informer, stats->name);
}

static void look_at_informer(void *ctx, struct mw_informer *inf) {
  struct mw_observe *o = ctx;
  if (!mw_informer_is_started(inf) || mw_informer_is_stopping(inf) || o->found[0] != '\0') return;
  if (!mw_informer_has_synced(inf)) {
    snprintf(o->found, sizeof o->found, "%s has not synced yet", mw_informer_name(inf));
    return;
  }
  if (o->was_ready) return;
  struct handler_look look = {o, mw_informer_name(inf)};
  mw_informer_each_listener(inf, look_at_handler, &look);
}

static void look_at_programs(struct mw_observe *o) {
  for (size_t i = 0; i < mw_host_program_count(o->host); i++) {
    const struct mw_program *p = mw_host_program(o->host, i);
    if (!mw_program_is_waiting(p)) continue;
    snprintf(o->found, sizeof o->found, "%s has not been loaded yet", mw_program_path(p));
  }
}

static void look_at_all(struct mw_observe *o) {
  o->found[0] = '\0';
  if (!mw_host_is_running(o->host)) {
    snprintf(o->found, sizeof o->found, "the script has not been loaded yet");
  } else {
    look_at_programs(o);
    mw_factory_each(o->factory, look_at_informer, o);
  }
  o->ready = o->found[0] == '\0';
  o->was_ready = o->was_ready || o->ready;
  pthread_mutex_lock(&o->lock);
  snprintf(o->missing, sizeof o->missing, "%s", o->found);
  pthread_mutex_unlock(&o->lock);
}

// Something changes with every task that ends: only what is not ready yet is worth a look each
// time.
void mw_observe_look(struct mw_observe *o) {
  if (o != NULL && !o->ready) look_at_all(o);
}

static void make_script_series(struct script_series *s, const char *script) {
  static const char *const labels[] = {"script"};
  static const struct mw_metric_spec specs[SCRIPT_COUNT] = {
#define X(tag, family, text, kind)   \
  [tag] = {.name = (family),         \
           .help = (text),           \
           .type = MW_METRIC_##kind, \
           .labels = labels,         \
           .label_count = 1},
      SCRIPT_MAP(X)
#undef X
  };
  for (int i = 0; i < SCRIPT_COUNT; i++) {
    s->of[i] = mw_metric_series(mw_metric_family(&specs[i]), (const char *const[]){script});
  }
}

static void publish_script(const struct script_series *s, struct mw_program *p, size_t limit) {
  struct mw_generation *g = mw_program_active(p);
  struct lua_State *L = g != NULL ? mw_generation_state(g) : NULL;
  mw_series_set(s->of[TASKS], L != NULL ? mw_sched_task_count(mw_sched_of(L)) : 0);
  mw_series_set(s->of[MEMORY], L != NULL ? (double)mw_heap_used(mw_heap_of(L)) : 0);
  mw_series_set(s->of[LIMIT], (double)limit);
  mw_series_set(s->of[HITS], (double)mw_program_memory_hits(p));
}

// All scripts are there once the host runs, and none is added later.
static void publish(struct mw_observe *o) {
  if (!mw_host_is_running(o->host)) return;
  if (o->scripts == NULL) {
    o->script_count = mw_host_program_count(o->host);
    o->scripts = mw_xcalloc(o->script_count, sizeof *o->scripts);
    for (size_t i = 0; i < o->script_count; i++)
      make_script_series(&o->scripts[i], mw_program_path(mw_host_program(o->host, i)));
  }
  for (size_t i = 0; i < o->script_count; i++)
    publish_script(&o->scripts[i], mw_host_program(o->host, i),
                   mw_host_config(o->host)->memory_limit);
}

static void free_script_series(struct mw_observe *o) {
  for (size_t i = 0; i < o->script_count; i++)
    for (int k = 0; k < SCRIPT_COUNT; k++) mw_series_unref(o->scripts[i].of[k]);
  mw_free(o->scripts);
}

static void publish_informer(void *ctx, struct mw_informer *inf) {
  (void)ctx;
  mw_informer_publish(inf);
}

static void on_timer(void *arg) {
  struct mw_observe *o = arg;
  atomic_store(&o->turned_at, mw_clock_now());
  look_at_all(o);
  publish(o);
  mw_observe_status_publish(o->status);
  mw_factory_each(o->factory, publish_informer, o);
  o->timer = mw_timer_start(o->runtime.script, interval, on_timer, o);
}

// Metrics are written by the server, so this runs on the ingest thread, whose pool it is.
static void read_pool(void *ctx) {
  struct mw_observe *o = ctx;
  struct mw_http_stats stats;
  mw_http_stats(o->runtime.http, &stats);
  mw_series_set(o->pool[REQUESTS], (double)stats.requests);
  mw_series_set(o->pool[RETRIES], (double)stats.retries);
  mw_series_set(o->pool[CONNECTIONS], (double)stats.connections);
  mw_series_set(o->pool[RESCUES], (double)stats.rescues);
}

static void make_pool_series(struct mw_observe *o) {
  static const struct mw_metric_spec specs[POOL_COUNT] = {
#define X(tag, family, text, kind) \
  [tag] = {.name = (family), .help = (text), .type = MW_METRIC_##kind},
      POOL_MAP(X)
#undef X
  };
  for (int i = 0; i < POOL_COUNT; i++) {
    o->pool[i] = mw_metric_series(mw_metric_family(&specs[i]), NULL);
  }
}

static void listen_on_ingest(void *arg) {
  struct mw_observe *o = arg;
  o->server = mw_metrics_listen(o->runtime.ingest, o->address, o->health, o->err);
  if (o->server != NULL) mw_metrics_on_status(o->server, mw_observe_status_write, o->status);
}

static void on_closed(void *arg) { uv_sem_post(arg); }

static void close_on_ingest(void *arg) {
  struct mw_observe *o = arg;
  mw_metrics_close(o->server, on_closed, &o->closed);
}

struct mw_observe *mw_observe_new(struct mw_host *host, struct mw_factory *factory,
                                  struct mw_health *health, const char *address,
                                  struct mw_err *err) {
  struct mw_observe *o = mw_xcalloc(1, sizeof *o);
  const struct mw_runtime *runtime = mw_host_runtime(host);
  o->host = host;
  o->runtime = *runtime;
  o->factory = factory;
  o->health = health;
  o->address = address;
  o->err = err;
  pthread_mutex_init(&o->lock, NULL);
  atomic_store(&o->turned_at, mw_clock_now());
  look_at_all(o);
  o->status = mw_observe_status_new(host);
  mw_loop_call(runtime->ingest, listen_on_ingest, o);
  if (o->server == NULL) {
    mw_observe_status_free(o->status);
    pthread_mutex_destroy(&o->lock);
    mw_free(o);
    return NULL;
  }
  mw_health_add(health, "script", MW_HEALTH_LIVE | MW_HEALTH_READY, check_script, o);
  mw_health_add(health, "informers", MW_HEALTH_READY, check_informers, o);
  mw_health_add(health, "shutdown", MW_HEALTH_READY, check_shutdown, o);
  o->process = mw_process_metrics_new(LUAJIT_VERSION);
  make_pool_series(o);
  mw_metric_on_write(read_pool, o);
  mw_factory_meter(factory);
  o->timer = mw_timer_start(runtime->script, 0, on_timer, o);
  mw_log(MW_LOG_INFO, "serving metrics and probes",
         MW_STR("address", mw_metrics_address(o->server)));
  return o;
}

void mw_observe_free(struct mw_observe *o) {
  if (o == NULL) return;
  uv_sem_init(&o->closed, 0);
  mw_loop_post(o->runtime.ingest, close_on_ingest, o);
  uv_sem_wait(&o->closed);
  uv_sem_destroy(&o->closed);
  mw_timer_cancel(&o->timer);
  mw_metric_off_write(read_pool, o);
  mw_health_remove(o->health, check_script, o);
  mw_health_remove(o->health, check_informers, o);
  mw_health_remove(o->health, check_shutdown, o);
  mw_process_metrics_free(o->process);
  mw_observe_status_free(o->status);
  free_script_series(o);
  for (int i = 0; i < POOL_COUNT; i++) mw_series_unref(o->pool[i]);
  pthread_mutex_destroy(&o->lock);
  mw_free(o);
}

void mw_observe_shutdown(struct mw_observe *o) {
  if (o != NULL) atomic_store(&o->shutdown, true);
}
