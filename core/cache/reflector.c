// SPDX-License-Identifier: Apache-2.0
// The reflector's life cycle and its decision table.
//
// Callbacks may stop the reflector wherever they are called, so everything that follows a callback
// looks at `stopping` first. What a request owns (its splitter) is freed from the loop, never
// while that splitter may be on the stack.
#include "cache/reflector.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/reflector_internal.h"
#include "wire/status.h"

struct row {
  void (*next)(struct mw_reflector *r);
  bool wait;                // one backoff delay first
  bool tell;                // on_error hears of it even if no stream was open
  enum mw_log_level level;  // of the log line when on_error does not
  const char *again;        // `next` in words; the delay is appended
};

static void cycle(struct mw_reflector *r);

static const struct row rows[MW_DECISION_COUNT] = {
    [MW_DECISION_START] = {cycle, false, false, MW_LOG_DEBUG, "starting"},
    [MW_DECISION_STREAM_WAIT] = {mw_reflect_stream, true, true, MW_LOG_DEBUG, "retrying"},
    [MW_DECISION_STREAM_EXPIRED] = {mw_reflect_stream, false, false, MW_LOG_INFO,
                                    "asking for the newest state"},
    [MW_DECISION_STREAM_FALLBACK] = {mw_reflect_list, false, false, MW_LOG_INFO,
                                     "listing page by page instead"},
    [MW_DECISION_STREAM_CUT] = {mw_reflect_stream, true, true, MW_LOG_DEBUG, "retrying"},
    [MW_DECISION_LIST_EXPIRED] = {mw_reflect_list_newest, false, false, MW_LOG_INFO,
                                  "asking for the newest state"},
    [MW_DECISION_LIST_FAILED] = {cycle, true, true, MW_LOG_DEBUG, "retrying"},
    [MW_DECISION_WATCH_ENDED] = {mw_reflect_watch, false, false, MW_LOG_DEBUG, "watching on"},
    [MW_DECISION_WATCH_SHORT] = {cycle, true, false, MW_LOG_DEBUG, "reading all again"},
    [MW_DECISION_WATCH_OPEN_WAIT] = {mw_reflect_watch, true, true, MW_LOG_DEBUG, "watching on"},
    [MW_DECISION_WATCH_OPEN_FAILED] = {cycle, true, true, MW_LOG_DEBUG, "reading all again"},
    [MW_DECISION_WATCH_THROTTLED] = {mw_reflect_watch, true, false, MW_LOG_DEBUG, "watching on"},
    [MW_DECISION_WATCH_INTERNAL] = {mw_reflect_watch, false, false, MW_LOG_DEBUG, "watching on"},
    [MW_DECISION_WATCH_EXPIRED] = {cycle, true, false, MW_LOG_DEBUG, "reading all again"},
    [MW_DECISION_WATCH_FAILED] = {cycle, true, false, MW_LOG_DEBUG, "reading all again"},
    [MW_DECISION_PAGE_EXPIRED] = {mw_reflect_list_full, false, false, MW_LOG_INFO,
                                  "listing all in one response"},
};

static const char *const place_names[] = {
    [MW_PLACE_LIST] = "list",
    [MW_PLACE_STREAM_LIST] = "streaming list",
    [MW_PLACE_WATCH_OPEN] = "watch request",
    [MW_PLACE_WATCH] = "watch",
};

const char *mw_decision_name(enum mw_decision d) {
  static const char *const names[] = {
#define X(name, text) #name,
      MW_DECISION_MAP(X)
#undef X
  };
  return (unsigned)d < MW_DECISION_COUNT ? names[d] : "UNKNOWN";
}

const char *mw_decision_text(enum mw_decision d) {
  static const char *const texts[] = {
#define X(name, text) text,
      MW_DECISION_MAP(X)
#undef X
  };
  return (unsigned)d < MW_DECISION_COUNT ? texts[d] : "unknown decision";
}

const char *mw_reflector_state_name(enum mw_reflector_state s) {
  static const char *const names[] = {
      [MW_REF_IDLE] = "idle",       [MW_REF_STREAMING] = "streaming",
      [MW_REF_LISTING] = "listing", [MW_REF_WATCHING] = "watching",
      [MW_REF_WAITING] = "waiting", [MW_REF_STOPPED] = "stopped",
  };
  return (unsigned)s <= MW_REF_STOPPED ? names[s] : "unknown";
}

void mw_reflect_set_state(struct mw_reflector *r, enum mw_reflector_state state) {
  if (r->state == state) return;
  mw_log(MW_LOG_DEBUG, "reflector", MW_STR("resource", r->name),
         MW_STR("from", mw_reflector_state_name(r->state)),
         MW_STR("to", mw_reflector_state_name(state)), MW_STR("rv", r->last_rv));
  r->state = state;
  mw_reflect_put(r->stats, MW_REFLECT_STATE, state);
  if (r->callbacks.on_state != NULL) r->callbacks.on_state(r->callbacks.ctx, state);
}

void mw_reflect_set_rv(struct mw_reflector *r, struct mw_slice rv) {
  if (rv.n > MW_OBJECT_RV_MAX) return;
  if (rv.n > 0) memcpy(r->last_rv, rv.p, rv.n);
  r->last_rv[rv.n] = '\0';
  mw_reflect_put_rv(r->stats, rv);
}

// Resync (S-REF-57).

static void arm_resync(struct mw_reflector *r);

static void begin_resync_period(struct mw_reflector *r) {
  r->resynced = mw_clock_now();
  arm_resync(r);
}

static void on_resync(void *arg) {
  struct mw_reflector *r = arg;
  r->resync = NULL;
  r->sink.resync(r->sink.ctx);
  begin_resync_period(r);
}

// For the rest of the period: who changes it often puts no resync off.
static void arm_resync(struct mw_reflector *r) {
  mw_timer_cancel(&r->resync);
  if (r->stopping || !r->in_watch_phase || r->config.resync <= 0) return;
  double rest = r->config.resync - (double)(mw_clock_now() - r->resynced) * 1e-9;
  r->resync = mw_timer_start(r->loop, rest > 0 ? rest : 0, on_resync, r);
}

void mw_reflector_set_resync(struct mw_reflector *r, double seconds) {
  r->config.resync = seconds;
  arm_resync(r);
}

void mw_reflect_enter_watch_phase(struct mw_reflector *r) {
  r->in_watch_phase = true;
  r->window = (struct mw_reflect_window){0};
  begin_resync_period(r);
}

static void leave_watch_phase(struct mw_reflector *r) {
  r->in_watch_phase = false;
  mw_timer_cancel(&r->resync);
}

// Deciding.

static void cycle(struct mw_reflector *r) {
  if (r->config.no_streaming) {
    mw_reflect_list(r);
  } else {
    mw_reflect_stream(r);
  }
}

static void on_wait_over(void *arg) {
  struct mw_reflector *r = arg;
  r->wait = NULL;
  r->next(r);
}

static const char *hope(int http_status) {
  if (http_status == 401) return ", in case the credentials are renewed";
  if (http_status == 403) return ", in case access is granted";
  return "";
}

static void say_again(char *out, size_t room, const struct row *row, double delay,
                      const struct mw_err *err) {
  if (!row->wait) {
    snprintf(out, room, "%s at once", row->again);
  } else if (delay < 1) {
    snprintf(out, room, "%s in %.0f ms%s", row->again, delay * 1e3, hope(err->http_status));
  } else {
    snprintf(out, room, "%s in %.1f s%s", row->again, delay, hope(err->http_status));
  }
}

static void tell(struct mw_reflector *r, const struct row *row,
                 const struct mw_reflect_failure *failure, double delay) {
  char again[128];
  say_again(again, sizeof again, row, delay, failure->err);
  bool told = row->tell || failure->in_stream;
  enum mw_log_level level = told ? MW_LOG_DEBUG : row->level;
  const char *what = place_names[failure->place];
  if (row == &rows[MW_DECISION_STREAM_FALLBACK] && !told) {
    // Only who has answered has refused.
    bool refused = failure->err->http_status != 0;
    what = refused ? "streaming list refused, listing instead"
                   : "streaming list failed, listing instead";
    if (r->fallback_told) level = MW_LOG_DEBUG;
    r->fallback_told = true;
  }
  mw_log(level, what, MW_STR("resource", r->name), MW_STR("error", failure->err->message),
         MW_STR("code", mw_err_name(failure->err->code)), MW_STR("next", again));
  if (told) r->callbacks.on_error(r->callbacks.ctx, failure->place, failure->err, again);
}

void mw_reflect_decide(struct mw_reflector *r, enum mw_decision d,
                       const struct mw_reflect_failure *failure) {
  if (r->stopping) return;
  const struct row *row = &rows[d];
  mw_reflect_count_decision(r->stats, d);
  mw_log(MW_LOG_DEBUG, "decision", MW_STR("resource", r->name),
         MW_STR("decision", mw_decision_text(d)), MW_STR("rv", r->last_rv));
  double delay = row->wait ? mw_backoff_next(&r->backoff, mw_clock_now()) : 0;
  if (row->next == cycle) leave_watch_phase(r);
  if (failure != NULL) tell(r, row, failure, delay);
  if (r->stopping) return;
  if (!row->wait) {
    row->next(r);
    return;
  }
  mw_reflect_set_state(r, MW_REF_WAITING);
  if (r->stopping) return;
  r->next = row->next;
  r->wait = mw_timer_start(r->loop, delay, on_wait_over, r);
}

// Requests.

int mw_reflect_param(struct mw_buf *path, const char *key, const char *value) {
  char separator = memchr(path->p, '?', path->n) == NULL ? '?' : '&';
  int rc = mw_buf_printf(path, "%c%s=", separator, key);
  return rc != 0 ? rc : mw_query_escape(mw_slice_str(value), path);
}

int mw_reflect_path(const struct mw_reflector *r, struct mw_buf *path) {
  return mw_resource_path(&r->config.resource, mw_slice_str(r->config.ns), path);
}

int mw_reflect_fixed_params(const struct mw_reflector *r, struct mw_buf *path) {
  if (r->config.query == NULL || r->config.query[0] == '\0') return 0;
  char separator = memchr(path->p, '?', path->n) == NULL ? '?' : '&';
  return mw_buf_printf(path, "%c%s", separator, r->config.query);
}

void mw_reflect_explain(const struct mw_reflector *r, const struct mw_err *err,
                        struct mw_slice body, struct mw_err *out) {
  *out = *err;
  if (err->code != MW_EHTTP) return;
  int status = err->http_status != 0 ? err->http_status : r->http_status;
  mw_status_from_body(body, status, out);
  out->http_status = status;
  if (status == 401) mw_endpoint_unknown(r->endpoint, out);
  if (status != 404) return;
  bool own = mw_group_is_own(mw_slice_str(r->config.resource.group));
  bool inside = mw_slice_str(r->config.ns).n > 0;
  mw_err_set(out, out->code, "the server has no resource \"%s\"%s%s", r->name,
             own ? " (kubectl api-resources shows what it serves)"
                 : " (is the CustomResourceDefinition installed?)",
             inside ? "; if it is in no namespace, ask with namespace = \"\"" : "");
  out->http_status = status;
}

// Life cycle.

struct mw_reflector *mw_reflector_new(struct mw_loop *loop, struct mw_http *http,
                                      struct mw_endpoint *endpoint,
                                      const struct mw_reflector_config *config,
                                      const struct mw_sink *sink,
                                      const struct mw_reflector_callbacks *callbacks) {
  struct mw_reflector *r = mw_xcalloc(1, sizeof *r);
  r->loop = loop;
  r->http = http;
  r->endpoint = mw_endpoint_ref(endpoint);
  r->config = *config;
  r->config.ns = mw_xstrdup(config->ns != NULL ? config->ns : "");
  r->config.query = mw_xstrdup(config->query != NULL ? config->query : "");
  if (config->projection == NULL) r->config.projection = mw_projection_default();
  if (config->short_watch <= 0) r->config.short_watch = 1;
  r->sink = *sink;
  r->callbacks = *callbacks;
  mw_resource_name(&config->resource, r->name, sizeof r->name);
  r->packer = mw_packer_new();
  uint64_t seed = config->seed != 0 ? config->seed : mw_rand_entropy();
  const struct mw_backoff_config *backoff =
      config->backoff.duration > 0 ? &config->backoff : &mw_backoff_default;
  mw_backoff_init(&r->backoff, backoff, seed);
  mw_rand_init(&r->rand, seed + 1);
  r->stats = mw_reflect_stats_new();
  r->meters = mw_reflect_meters_new(config->metric_name);
  mw_objmap_init(&r->known);
  mw_objmap_init(&r->snapshot.temp);
  return r;
}

static void release_work(struct mw_reflector *r) {
  mw_reflect_watch_clear(r);
  mw_list_split_free(r->list_split);
  r->list_split = NULL;
  mw_reflect_snapshot_clear(r);
}

void mw_reflector_free(struct mw_reflector *r) {
  assert(r->state == MW_REF_IDLE || r->state == MW_REF_STOPPED);
  assert(r->request == NULL && r->wait == NULL && r->resync == NULL && r->tick == NULL);
  release_work(r);
  mw_objmap_deinit(&r->known);
  mw_packer_free(r->packer);
  mw_reflect_stats_free(r->stats);
  mw_reflect_meters_free(r->meters);
  mw_endpoint_unref(r->endpoint);
  mw_free((char *)r->config.ns);
  mw_free((char *)r->config.query);
  mw_free(r);
}

void mw_reflector_start(struct mw_reflector *r) {
  if (r->state != MW_REF_IDLE) return;
  mw_reflect_decide(r, MW_DECISION_START, NULL);
}

static void on_stop(void *arg) {
  struct mw_reflector *r = arg;
  release_work(r);
  if (r->callbacks.on_stopped != NULL) r->callbacks.on_stopped(r->callbacks.ctx);
}

void mw_reflector_stop(struct mw_reflector *r) {
  if (r->stopping) return;
  r->stopping = true;
  mw_http_cancel(&r->request);
  mw_timer_cancel(&r->wait);
  mw_timer_cancel(&r->tick);
  leave_watch_phase(r);
  mw_reflect_set_state(r, MW_REF_STOPPED);
  mw_loop_post(r->loop, on_stop, r);
}
