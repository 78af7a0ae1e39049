// SPDX-License-Identifier: Apache-2.0
// Life of a revision: offered -> staging (loaded, then warming up) -> active -> retiring -> gone;
// or staging -> retiring when it failed, which the active one does not notice.
//
// Everything that moves it on comes from the loop: an offer, mw_program_look when an informer has
// synced, a timer, the end of a generation.
#include "script/program.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "script/bundle_source.h"
#include "script/heap.h"
#include "script/host.h"
#include "script/keep.h"
#include "script/sched.h"
#include "script/store.h"
#include "wire/json_write.h"

enum { REPORT_MAX = 64 * 1024 };

static const double warm_up_seconds = 60;
static const double drain_seconds = 30;
static const double drain_patience = 5;
static const double probation_look = 0.5;

// A revision in its generation.
struct run {
  struct mw_program *program;
  struct mw_generation *generation;
  struct mw_bundle *bundle;  // NULL: a module
  bool stuck;                // it did not end: something still points into its state
};

struct mw_program {
  struct mw_host *host;
  struct mw_program_config config;
  struct mw_bundle_source *source;  // NULL: not watched
  struct run *active, *staging;
  struct run *retiring[MW_PROGRAM_RETIRING];
  struct mw_bundle *next;                         // offered, and waits for its turn
  struct mw_bundle *history[MW_PROGRAM_HISTORY];  // those that were active before, newest first
  char *bad[MW_PROGRAM_HISTORY];                  // revisions that failed in probation
  size_t bad_next;
  struct mw_keep *keep;
  struct mw_store *store;
  uint64_t offered_at;  // of the staging one
  struct mw_timer *warm_up;
  struct mw_timer *probation;  // running: the active one may be taken back
  uint64_t probation_ends;
  double failing_before;  // the part of reconciles that failed in the revision before
  char *failure;          // of the staging one at its commit
  char *fault;            // of the active one, to be looked at from the loop
  bool failed;            // the last one has ended for that, and the process goes on
  bool undone;
  mw_loop_cb done;  // stopping
  void *done_ctx;
  // What is told of it.
  double active_at;  // wall clock: when the active one became it
  unsigned long reloads, failures;
  struct failure {
    char revision[MW_BUNDLE_REVISION_SIZE];
    char *report;
    double at;
  } last_failure;          // report NULL: none since the last success
  struct mw_bundle *held;  // what was offered while nothing is taken
  double held_at;          // 0: offers are taken
  mw_loop_cb changed;
  void *changed_ctx;
};

static void go_on(struct mw_program *p);
static void note_active(struct mw_program *p);
static void note_failure(struct mw_program *p, const struct mw_bundle *b, const char *report);
static bool hold_back(struct mw_program *p, struct mw_bundle *b);
static void adopt(struct mw_program *p, struct mw_bundle *b);
static bool has_place(const struct mw_program *p);
static void retire(struct mw_program *p, struct run *r, bool was_active);

struct mw_program *mw_program_new(struct mw_host *host, const struct mw_program_config *config) {
  struct mw_program *p = mw_xcalloc(1, sizeof *p);
  p->host = host;
  p->config = *config;
  p->store = mw_store_new();
  p->keep = mw_keep_new(mw_host_loop(host), MW_PROGRAM_KEEP);
  return p;
}

static const char *revision_of(const struct run *r) {
  return r != NULL && r->bundle != NULL ? mw_bundle_revision(r->bundle) : "";
}

// ---- failures ----

static bool is_bad(const struct mw_program *p, const struct mw_bundle *b) {
  for (size_t i = 0; i < MW_PROGRAM_HISTORY; i++)
    if (p->bad[i] != NULL && strcmp(p->bad[i], mw_bundle_revision(b)) == 0) return true;
  return false;
}

static void mark_bad(struct mw_program *p, const struct mw_bundle *b) {
  mw_free(p->bad[p->bad_next]);
  p->bad[p->bad_next] = mw_xstrdup(mw_bundle_revision(b));
  p->bad_next = (p->bad_next + 1) % MW_PROGRAM_HISTORY;
}

static void tell_failure(struct mw_program *p, const struct mw_bundle *b, const char *report) {
  mw_log(MW_LOG_ERROR, "reload failed; what runs goes on", MW_STR("script", mw_bundle_origin(b)),
         MW_STR("failed", mw_bundle_revision(b)), MW_STR("active", revision_of(p->active)),
         MW_STR("error", report));
  note_failure(p, b, report);
}

// The active revision fails in its probation: the one before comes back.
static bool take_back(struct mw_program *p, const char *report) {
  if (p->probation == NULL || p->history[0] == NULL || p->done != NULL) return false;
  mw_timer_cancel(&p->probation);
  mark_bad(p, p->active->bundle);
  mw_log(MW_LOG_ERROR, "the new revision failed; going back to the one before",
         MW_STR("failed", revision_of(p->active)),
         MW_STR("back", mw_bundle_revision(p->history[0])), MW_STR("error", report));
  adopt(p, p->history[0]);
  return true;
}

// With others in the process only this one ends, and waits for a better revision.
static void end_active(struct mw_program *p, const char *report) {
  if (mw_host_program_count(p->host) < 2) {
    mw_host_failed(p->host, report);
    return;
  }
  mw_log(MW_LOG_ERROR, "script failed; the others go on", MW_STR("script", p->config.path),
         MW_STR("revision", revision_of(p->active)), MW_STR("error", report));
  p->failed = true;
  struct run *r = p->active;
  if (!has_place(p)) return;
  p->active = NULL;
  retire(p, r, false);
}

static void on_fault(void *arg) {
  struct mw_program *p = arg;
  char *fault = p->fault;
  p->fault = NULL;
  if (p->done == NULL && p->active != NULL && !take_back(p, fault)) end_active(p, fault);
  mw_free(fault);
  mw_host_poke(p->host);
  go_on(p);
}

// Called from within the generation: what follows is for the loop.
static void on_failed(void *ctx, const char *report) {
  struct run *r = ctx;
  struct mw_program *p = r->program;
  if (r == p->staging) {
    if (p->failure == NULL) p->failure = mw_xstrdup(report);
  } else if (r != p->active) {
    mw_log(MW_LOG_ERROR, "a revision that was replaced failed while it ended",
           MW_STR("revision", revision_of(r)), MW_STR("error", report));
  } else if (p->fault == NULL) {
    p->fault = mw_xstrdup(report);
    mw_loop_post(mw_host_loop(p->host), on_fault, p);
  }
}

// ---- runs ----

static void run_free(struct run *r) {
  mw_generation_free(r->generation);
  if (r->bundle != NULL) mw_bundle_unref(r->bundle);
  mw_free(r);
}

// NULL and err when it does not load; what is left of it then retires.
static struct run *run_new(struct mw_program *p, struct mw_bundle *b, struct mw_err *err) {
  struct run *r = mw_xcalloc(1, sizeof *r);
  r->program = p;
  struct mw_generation_config config = {.bundle = b,
                                        .module = p->config.module,
                                        .agent = p->config.agent,
                                        .open = p->config.open,
                                        .jit = p->config.jit,
                                        .metered = p->config.metered,
                                        .memory_limit = p->config.memory_limit,
                                        .replaces = p->active != NULL,
                                        .store = p->store,
                                        .failed = on_failed,
                                        .failed_ctx = r};
  r->generation = mw_generation_new(p->host, &config, err);
  if (r->generation == NULL) {
    mw_free(r);
    return NULL;
  }
  if (b != NULL) r->bundle = mw_bundle_ref(b);
  return r;
}

static size_t place_of(const struct mw_program *p, const struct run *r) {
  size_t i = 0;
  while (i < MW_PROGRAM_RETIRING && p->retiring[i] != r) i++;
  return i;
}

static bool has_place(const struct mw_program *p) {
  return place_of(p, NULL) < MW_PROGRAM_RETIRING;
}

static void on_retired(void *arg) {
  struct run *r = arg;
  struct mw_program *p = r->program;
  if (!mw_generation_has_ended(r->generation)) {
    r->stuck = true;  // it keeps its place
  } else {
    p->retiring[place_of(p, r)] = NULL;
    run_free(r);
  }
  mw_host_poke(p->host);
  go_on(p);
}

// Ends a run for which there is a place.
static void retire(struct mw_program *p, struct run *r, bool was_active) {
  p->retiring[place_of(p, NULL)] = r;
  if (was_active) {
    mw_generation_retire(r->generation, drain_seconds, drain_patience, on_retired, r);
  } else {
    mw_generation_stop(r->generation, 0, drain_patience, on_retired, r);
  }
}

// ---- staging ----

static void drop_staging(struct mw_program *p) {
  struct run *r = p->staging;
  p->staging = NULL;
  mw_timer_cancel(&p->warm_up);
  mw_keep_drop(p->keep);
  retire(p, r, false);
}

static void fail_staging(struct mw_program *p, const char *report) {
  tell_failure(p, p->staging->bundle, report);
  drop_staging(p);
}

static void on_warm_up_over(void *arg) {
  struct mw_program *p = arg;
  p->warm_up = NULL;
  char missing[MW_ERR_MESSAGE_MAX];
  mw_keep_missing(p->keep, missing, sizeof missing);
  char report[2 * MW_ERR_MESSAGE_MAX];
  snprintf(report, sizeof report, "no cache within %g seconds of %s", warm_up_seconds,
           missing[0] != '\0' ? missing : "the indexes that it wants");
  fail_staging(p, report);
  go_on(p);
}

static void start_wanted(void *ctx, struct mw_informer *inf) {
  struct mw_program *p = ctx;
  if (!mw_informer_is_started(inf)) mw_keep_start(p->keep, inf);
}

static void keep_wanted(void *ctx, struct mw_informer *inf) {
  struct mw_program *p = ctx;
  if (mw_informer_is_started(inf) && !mw_informer_is_stopping(inf)) mw_keep_hold(p->keep, inf);
}

static void remember(struct mw_program *p, struct mw_bundle *b) {
  for (size_t i = 0; i < MW_PROGRAM_HISTORY; i++) {
    if (p->history[i] == NULL) continue;
    if (strcmp(mw_bundle_revision(p->history[i]), mw_bundle_revision(b)) != 0) continue;
    mw_bundle_unref(p->history[i]);
    memmove(&p->history[i], &p->history[i + 1],
            (MW_PROGRAM_HISTORY - i - 1) * sizeof p->history[0]);
    p->history[MW_PROGRAM_HISTORY - 1] = NULL;
    break;
  }
  struct mw_bundle *oldest = p->history[MW_PROGRAM_HISTORY - 1];
  if (oldest != NULL) mw_bundle_unref(oldest);
  memmove(&p->history[1], &p->history[0], (MW_PROGRAM_HISTORY - 1) * sizeof p->history[0]);
  p->history[0] = mw_bundle_ref(b);
}

static double failing(const struct mw_generation *g) {
  struct mw_generation_runs runs = mw_generation_runs(g);
  return runs.all > 0 ? (double)runs.failed / (double)runs.all : 0;
}

// Why the active one cannot stay, or NULL.
static const char *fault_of(const struct mw_program *p, char *out, size_t size) {
  struct mw_generation *g = p->active->generation;
  struct mw_generation_runs runs = mw_generation_runs(g);
  if (runs.stopped > 0) return "a reconcile was stopped: it ran too long without awaiting";
  if (mw_heap_hits(mw_heap_of(mw_generation_state(g))) > 0) return "it reached its memory limit";
  if (runs.all < MW_PROGRAM_RUNS || failing(g) <= 0.5 || failing(g) <= 3 * p->failing_before)
    return NULL;
  snprintf(out, size, "%lu of %lu reconciles failed, before it were %.0f of 100", runs.failed,
           runs.all, 100 * p->failing_before);
  return out;
}

static void on_probation(void *arg) {
  struct mw_program *p = arg;
  char text[MW_ERR_MESSAGE_MAX];
  const char *fault = fault_of(p, text, sizeof text);
  p->probation = NULL;
  if (fault == NULL && mw_clock_now() >= p->probation_ends) return;
  p->probation = mw_timer_start(mw_host_loop(p->host), probation_look, on_probation, p);
  if (fault != NULL) take_back(p, fault);
}

static void begin_probation(struct mw_program *p, const struct run *old) {
  p->failing_before = failing(old->generation);
  p->probation_ends = mw_clock_now() + (uint64_t)MW_PROGRAM_PROBATION * 1000000000;
  mw_timer_cancel(&p->probation);
  p->probation = mw_timer_start(mw_host_loop(p->host), probation_look, on_probation, p);
}

static void tell_success(const struct mw_program *p, const struct run *old) {
  mw_log(MW_LOG_INFO, "reloaded", MW_STR("script", mw_bundle_origin(p->active->bundle)),
         MW_STR("revision", revision_of(p->active)), MW_STR("before", revision_of(old)),
         MW_NUM("seconds", (double)(mw_clock_now() - p->offered_at) / 1e9));
}

// The generation that takes over has been committed: the one before may go. Its informers are held
// before it lets go of them.
static void replace(struct mw_program *p, struct run *old) {
  mw_generation_each_wanted(old->generation, keep_wanted, p);
  if (!is_bad(p, old->bundle)) remember(p, old->bundle);
  begin_probation(p, old);
  retire(p, old, true);
}

// All in this turn of the loop.
static void commit_staging(struct mw_program *p) {
  struct run *old = p->active, *new = p->staging;
  struct mw_err err;
  mw_timer_cancel(&p->warm_up);
  if (old != NULL && mw_generation_hand_over(old->generation, new->generation, &err) < 0) {
    fail_staging(p, err.message);
    return;
  }
  mw_generation_commit(new->generation);
  if (p->failure != NULL) {
    fail_staging(p, p->failure);
    mw_free(p->failure);
    p->failure = NULL;
    return;
  }
  p->staging = NULL;
  p->active = new;
  p->failed = false;
  mw_keep_settle(p->keep);
  if (old != NULL) replace(p, old);
  tell_success(p, old);
  note_active(p);
}

static void stage(struct mw_program *p, struct mw_bundle *b) {
  struct mw_buf report;
  struct mw_err err;
  mw_buf_init(&report, REPORT_MAX);
  p->offered_at = mw_clock_now();
  if (mw_bundle_check(b, &report) < 0) {
    tell_failure(p, b, report.p);
  } else if ((p->staging = run_new(p, b, &err)) == NULL) {
    tell_failure(p, b, err.message);
  } else if (mw_generation_load(p->staging->generation, &err) < 0) {
    fail_staging(p, mw_generation_report(p->staging->generation));
  } else {
    mw_generation_each_wanted(p->staging->generation, start_wanted, p);
    p->warm_up = mw_timer_start(mw_host_loop(p->host), warm_up_seconds, on_warm_up_over, p);
  }
  mw_buf_deinit(&report);
}

// ---- moving on ----

struct warmth {
  const struct mw_generation *owner;
  bool built;
};

static void look_at_indexes(void *ctx, struct mw_informer *inf) {
  struct warmth *w = ctx;
  w->built = w->built && mw_informer_indexes_ready(inf, w->owner);
}

// Whether what the staged one wants to read is there, and its own indexes are built.
static bool is_warm(const struct mw_program *p) {
  struct warmth w = {p->staging->generation, mw_keep_is_synced(p->keep)};
  if (w.built) mw_generation_each_wanted(p->staging->generation, look_at_indexes, &w);
  return w.built;
}

// Whatever can be done next. Called from the loop.
static void go_on(struct mw_program *p) {
  if (p->done != NULL) {
    bool waits = p->active != NULL || p->staging != NULL || p->fault != NULL;
    for (size_t i = 0; i < MW_PROGRAM_RETIRING; i++)
      waits = waits || (p->retiring[i] != NULL && !p->retiring[i]->stuck);
    if (waits) return;
    mw_loop_cb done = p->done;
    p->done = NULL;
    done(p->done_ctx);
    return;
  }
  // A revision that is staged needs a place to retire to, as the active one does after it.
  if (p->next != NULL && p->staging == NULL && has_place(p)) {
    struct mw_bundle *b = p->next;
    p->next = NULL;
    stage(p, b);
    mw_bundle_unref(b);
  }
  if (p->staging != NULL && is_warm(p) && has_place(p)) commit_staging(p);
}

void mw_program_offer(struct mw_program *p, struct mw_bundle *b) {
  if (!hold_back(p, b)) adopt(p, b);
}

// Makes it the active one, if it can be.
static void adopt(struct mw_program *p, struct mw_bundle *b) {
  if (p->done != NULL || (p->active == NULL && !p->failed)) return;
  if (p->next != NULL) mw_bundle_unref(p->next);
  p->next = NULL;
  if (p->staging != NULL) drop_staging(p);
  if (strcmp(mw_bundle_revision(b), revision_of(p->active)) == 0) return;
  if (is_bad(p, b)) {
    mw_log(MW_LOG_DEBUG, "a revision that failed before is left alone",
           MW_STR("revision", mw_bundle_revision(b)));
    return;
  }
  p->next = mw_bundle_ref(b);
  go_on(p);
}

static void on_source(void *ctx, struct mw_bundle *b, const struct mw_err *err) {
  struct mw_program *p = ctx;
  if (b != NULL) {
    mw_program_offer(p, b);
    return;
  }
  mw_log(MW_LOG_ERROR, "reload failed; what runs goes on", MW_STR("script", p->config.path),
         MW_STR("active", revision_of(p->active)), MW_STR("error", err->message));
}

static void watch(struct mw_program *p) {
  struct mw_bundle_source_config config = {.path = p->config.path, .known = p->active->bundle};
  p->source = mw_bundle_source_new(mw_host_loop(p->host), &config, on_source, p);
}

int mw_program_load(struct mw_program *p, struct mw_err *err) {
  struct mw_bundle *b = NULL;
  if (p->config.path != NULL && (b = mw_bundle_read(p->config.path, err)) == NULL) return err->code;
  p->active = run_new(p, b, err);
  if (b != NULL) mw_bundle_unref(b);
  if (p->active == NULL) return err->code;
  return mw_generation_load(p->active->generation, err);
}

const char *mw_program_report(const struct mw_program *p) {
  return p->active != NULL ? mw_generation_report(p->active->generation) : "";
}

void mw_program_commit(struct mw_program *p) {
  if (p->config.watched && p->config.path != NULL) watch(p);
  mw_generation_commit(p->active->generation);
  note_active(p);
}

struct mw_generation *mw_program_active(struct mw_program *p) {
  return p->active != NULL ? p->active->generation : NULL;
}

bool mw_program_is_busy(const struct mw_program *p) {
  return p->fault != NULL || (p->active != NULL && mw_generation_is_busy(p->active->generation));
}

bool mw_program_has_failed(const struct mw_program *p) {
  return p->failed || (p->active != NULL && mw_generation_has_failed(p->active->generation));
}

void mw_program_look(struct mw_program *p) {
  if (p->active != NULL) mw_generation_changed(p->active->generation);
  for (size_t i = 0; i < MW_PROGRAM_RETIRING; i++)
    if (p->retiring[i] != NULL) mw_generation_changed(p->retiring[i]->generation);
  go_on(p);
}

// ---- the end ----

static void on_active_stopped(void *arg) {
  struct mw_program *p = arg;
  struct run *r = p->active;
  if (!mw_generation_is_drained(r->generation)) p->undone = true;
  p->active = NULL;
  if (mw_generation_has_ended(r->generation)) {
    run_free(r);
  } else {
    r->stuck = true;
    p->retiring[0] = r;
  }
  go_on(p);
}

void mw_program_stop(struct mw_program *p, double grace, double patience, mw_loop_cb done,
                     void *ctx) {
  assert(p->done == NULL);
  p->done = done;
  p->done_ctx = ctx;
  mw_timer_cancel(&p->probation);
  mw_bundle_source_free(p->source);
  p->source = NULL;
  for (size_t i = 0; i < MW_PROGRAM_RETIRING; i++)
    if (p->retiring[i] != NULL) mw_generation_hurry(p->retiring[i]->generation, grace);
  if (p->staging != NULL) drop_staging(p);
  mw_keep_release(p->keep);
  if (p->active != NULL) {
    mw_generation_stop(p->active->generation, grace, patience, on_active_stopped, p);
  } else {
    mw_host_poke(p->host);  // which looks
  }
}

bool mw_program_has_ended(const struct mw_program *p) {
  for (size_t i = 0; i < MW_PROGRAM_RETIRING; i++)
    if (p->retiring[i] != NULL) return false;
  return p->active == NULL && p->staging == NULL;
}

bool mw_program_is_drained(const struct mw_program *p) { return !p->undone; }

void mw_program_free(struct mw_program *p) {
  for (size_t i = 0; i < MW_PROGRAM_HISTORY; i++) {
    if (p->history[i] != NULL) mw_bundle_unref(p->history[i]);
    mw_free(p->bad[i]);
  }
  if (p->next != NULL) mw_bundle_unref(p->next);
  if (p->held != NULL) mw_bundle_unref(p->held);
  mw_free(p->last_failure.report);
  mw_keep_free(p->keep);
  mw_store_free(p->store);
  mw_free(p);
}

// ---- operating it ----

static void changed(struct mw_program *p) {
  if (p->changed != NULL) p->changed(p->changed_ctx);
}

static void note_active(struct mw_program *p) {
  p->reloads += p->active_at > 0;
  p->active_at = mw_clock_wall();
  mw_free(p->last_failure.report);
  p->last_failure.report = NULL;
  changed(p);
}

static void note_failure(struct mw_program *p, const struct mw_bundle *b, const char *report) {
  p->failures++;
  mw_free(p->last_failure.report);
  p->last_failure.report = mw_xstrdup(report);
  p->last_failure.at = mw_clock_wall();
  snprintf(p->last_failure.revision, sizeof p->last_failure.revision, "%s", mw_bundle_revision(b));
  changed(p);
}

static bool hold_back(struct mw_program *p, struct mw_bundle *b) {
  if (p->held_at <= 0) return false;
  if (p->held != NULL) mw_bundle_unref(p->held);
  bool same = strcmp(mw_bundle_revision(b), revision_of(p->active)) == 0;
  p->held = same ? NULL : mw_bundle_ref(b);
  changed(p);
  return true;
}

void mw_program_on_change(struct mw_program *p, mw_loop_cb cb, void *ctx) {
  p->changed = cb;
  p->changed_ctx = ctx;
}

const char *mw_program_path(const struct mw_program *p) { return p->config.path; }

const char *mw_program_revision(const struct mw_program *p) { return revision_of(p->active); }

static const char *pending_revision(const struct mw_program *p) {
  if (p->next != NULL) return mw_bundle_revision(p->next);
  if (p->staging != NULL) return revision_of(p->staging);
  if (p->held != NULL) return mw_bundle_revision(p->held);
  return p->last_failure.report != NULL ? p->last_failure.revision : NULL;
}

// Why the pending revision is not the active one.
static void tell_pending(const struct mw_program *p, struct mw_json_out *o) {
  const char *revision = pending_revision(p);
  if (revision == NULL) return;
  char why[2 * MW_ERR_MESSAGE_MAX] = "";
  mw_json_begin(o, "pending", '{');
  mw_json_put_str(o, "revision", revision);
  if (p->next != NULL) {
    snprintf(why, sizeof why, "%d revisions before it have not ended yet", MW_PROGRAM_RETIRING);
  } else if (p->staging != NULL) {
    char missing[MW_ERR_MESSAGE_MAX];
    mw_keep_missing(p->keep, missing, sizeof missing);
    snprintf(why, sizeof why, "it waits for the cache of %s", missing);
    mw_json_put_str(o, "missing", missing);
  } else if (p->held != NULL) {
    snprintf(why, sizeof why, "reloads are held; release them with: moonwatch hold off");
  }
  mw_json_put_str(o, "why", why[0] != '\0' ? why : p->last_failure.report);
  mw_json_end(o, '}');
}

static const char *state_of(const struct mw_program *p) {
  if (p->done != NULL) return "stopping";
  if (p->active == NULL) return "ended";
  if (mw_generation_is_loading(p->active->generation)) return "loading";
  if (p->staging != NULL) return "warming";
  if (p->next != NULL) return "staging";
  if (p->held_at > 0) return "held";
  return p->last_failure.report != NULL ? "failed" : "active";
}

static void tell_files(const struct mw_bundle *b, struct mw_json_out *o) {
  mw_json_begin(o, "files", '[');
  for (size_t i = 0; i < mw_bundle_count(b); i++) {
    const struct mw_bundle_file *f = mw_bundle_at(b, i);
    mw_json_begin(o, NULL, '{');
    mw_json_put_str(o, "name", f->name);
    mw_json_put_str(o, "path", f->path);
    mw_json_put_num(o, "bytes", (double)f->size);
    mw_json_end(o, '}');
  }
  mw_json_end(o, ']');
}

// Whether there is a revision to go back to: one that became active again is also remembered.
static bool is_past(const struct mw_program *p, const struct mw_bundle *b) {
  return b != NULL && strcmp(mw_bundle_revision(b), revision_of(p->active)) != 0;
}

static void tell_revisions(const struct mw_program *p, struct mw_json_out *o) {
  mw_json_begin(o, "history", '[');
  for (size_t i = 0; i < MW_PROGRAM_HISTORY; i++)
    if (is_past(p, p->history[i])) mw_json_put_str(o, NULL, mw_bundle_revision(p->history[i]));
  mw_json_end(o, ']');
  mw_json_begin(o, "bad", '[');
  for (size_t i = 0; i < MW_PROGRAM_HISTORY; i++)
    if (p->bad[i] != NULL) mw_json_put_str(o, NULL, p->bad[i]);
  mw_json_end(o, ']');
  mw_json_begin(o, "retiring", '[');
  for (size_t i = 0; i < MW_PROGRAM_RETIRING; i++)
    if (p->retiring[i] != NULL) mw_json_put_str(o, NULL, revision_of(p->retiring[i]));
  mw_json_end(o, ']');
}

static void tell_failures(const struct mw_program *p, struct mw_json_out *o) {
  mw_json_put_num(o, "reloads", (double)p->reloads);
  mw_json_put_num(o, "failures", (double)p->failures);
  if (p->last_failure.report == NULL) return;
  mw_json_begin(o, "failure", '{');
  mw_json_put_str(o, "revision", p->last_failure.revision);
  mw_json_put_num(o, "at", p->last_failure.at);
  mw_json_put_str(o, "report", p->last_failure.report);
  mw_json_end(o, '}');
}

static void tell_state(struct lua_State *L, struct mw_json_out *o) {
  const struct mw_heap *heap = mw_heap_of(L);
  mw_json_put_num(o, "tasks", mw_sched_task_count(mw_sched_of(L)));
  if (heap == NULL) return;
  mw_json_put_num(o, "memory_bytes", (double)mw_heap_used(heap));
  mw_json_put_num(o, "memory_limit_bytes", (double)mw_heap_limit(heap));
}

void mw_program_tell(const struct mw_program *p, struct mw_json_out *o) {
  mw_json_put_str(o, "script", p->config.path);
  mw_json_put_str(o, "state", state_of(p));
  if (p->active != NULL) mw_json_put_str(o, "revision", revision_of(p->active));
  mw_json_put_num(o, "active_since", p->active_at);
  mw_json_put_bool(o, "watched", p->config.watched);
  mw_json_put_bool(o, "probation", p->probation != NULL);
  if (p->held_at > 0) mw_json_put_num(o, "held_since", p->held_at);
  tell_pending(p, o);
  tell_failures(p, o);
  tell_revisions(p, o);
  if (p->active == NULL) return;
  if (p->active->bundle != NULL) tell_files(p->active->bundle, o);
  tell_state(mw_generation_state(p->active->generation), o);
}

static void set_revision(char out[MW_BUNDLE_REVISION_SIZE], const struct mw_bundle *b) {
  snprintf(out, MW_BUNDLE_REVISION_SIZE, "%s", mw_bundle_revision(b));
}

// Who asks for a revision by hand means it, also one that has failed before.
static void forgive(struct mw_program *p, const struct mw_bundle *b) {
  for (size_t i = 0; i < MW_PROGRAM_HISTORY; i++) {
    if (p->bad[i] == NULL || strcmp(p->bad[i], mw_bundle_revision(b)) != 0) continue;
    mw_free(p->bad[i]);
    p->bad[i] = NULL;
  }
}

int mw_program_reload(struct mw_program *p, char out[MW_BUNDLE_REVISION_SIZE], struct mw_err *err) {
  struct mw_bundle *b = mw_bundle_read(p->config.path, err);
  if (b == NULL) return err->code;
  set_revision(out, b);
  forgive(p, b);
  mw_program_offer(p, b);
  changed(p);
  mw_bundle_unref(b);
  return 0;
}

// Whether it is the one that is meant: with a text its beginning, else the last that is not bad.
static bool is_meant(const struct mw_program *p, const struct mw_bundle *b, const char *text) {
  if (!is_past(p, b)) return false;
  return text != NULL ? strncmp(mw_bundle_revision(b), text, strlen(text)) == 0 : !is_bad(p, b);
}

static int no_such_revision(const struct mw_program *p, const char *text, struct mw_err *err) {
  char known[MW_PROGRAM_HISTORY * (MW_BUNDLE_REVISION_SIZE + 2)] = "";
  size_t n = 0;
  for (size_t i = 0; i < MW_PROGRAM_HISTORY; i++) {
    if (!is_past(p, p->history[i])) continue;
    n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n > 0 ? ", " : "",
                          mw_bundle_revision(p->history[i]));
  }
  if (n == 0 || text == NULL) {
    return mw_err_set(err, MW_ENOTFOUND, "%s has no revision to go back to", p->config.path);
  }
  return mw_err_set(err, MW_ENOTFOUND, "%s remembers no revision %s; it has: %s", p->config.path,
                    text, known);
}

int mw_program_rollback(struct mw_program *p, const char *text, char out[MW_BUNDLE_REVISION_SIZE],
                        struct mw_err *err) {
  struct mw_bundle *found = NULL;
  for (size_t i = 0; i < MW_PROGRAM_HISTORY; i++) {
    if (!is_meant(p, p->history[i], text)) continue;
    if (found != NULL && text != NULL) {
      return mw_err_set(err, MW_EINVAL, "%s is the beginning of %s and of %s; give more of it",
                        text, mw_bundle_revision(found), mw_bundle_revision(p->history[i]));
    }
    if (found == NULL) found = p->history[i];
  }
  if (text != NULL && found == NULL && strncmp(revision_of(p->active), text, strlen(text)) == 0) {
    return mw_err_set(err, MW_EINVAL, "%s is the active revision", revision_of(p->active));
  }
  if (found == NULL) return no_such_revision(p, text, err);
  mw_bundle_ref(found);  // what happens next may forget it
  set_revision(out, found);
  forgive(p, found);
  adopt(p, found);
  changed(p);
  mw_bundle_unref(found);
  return 0;
}

void mw_program_hold(struct mw_program *p, bool on) {
  if (on == (p->held_at > 0)) return;
  p->held_at = on ? mw_clock_wall() : 0;
  struct mw_bundle *b = p->held;
  p->held = NULL;
  if (b == NULL) return;
  adopt(p, b);
  mw_bundle_unref(b);
}

static bool is_revision(const struct mw_bundle *b, const char *revision) {
  return b != NULL && strcmp(mw_bundle_revision(b), revision) == 0;
}

enum mw_program_outcome mw_program_outcome(const struct mw_program *p, const char *revision) {
  if (p->done != NULL || p->active == NULL) return MW_PROGRAM_ENDED;
  if (is_revision(p->next, revision)) return MW_PROGRAM_PENDING;
  if (p->staging != NULL && is_revision(p->staging->bundle, revision)) return MW_PROGRAM_PENDING;
  if (is_revision(p->active->bundle, revision)) return MW_PROGRAM_ACTIVE;
  if (is_revision(p->held, revision)) return MW_PROGRAM_HELD;
  return mw_program_failure(p, revision) != NULL ? MW_PROGRAM_FAILED : MW_PROGRAM_REPLACED;
}

const char *mw_program_failure(const struct mw_program *p, const char *revision) {
  const struct failure *f = &p->last_failure;
  return f->report != NULL && strcmp(f->revision, revision) == 0 ? f->report : NULL;
}
