// SPDX-License-Identifier: Apache-2.0
// Life of a revision: offered -> staging (loaded, then warming up) -> active -> retiring -> gone;
// or staging -> retiring when it failed, which the active one does not notice.
//
// Everything that moves it on comes from the loop: an offer, mw_program_look when an informer has
// synced, a timer, the end of a generation.
#include "script/program.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "script/bundle_source.h"
#include "script/host.h"
#include "script/keep.h"
#include "script/operate.h"
#include "script/program_internal.h"
#include "script/store.h"

enum { REPORT_MAX = 64 * 1024 };

static const double warm_up_default = 60;
static const double drain_seconds = 30;
static const double drain_patience = 5;
static const double probation_look = 0.5;

static void go_on(struct mw_program *p);
static bool has_places(const struct mw_program *p, size_t wanted);
static void retire(struct mw_program *p, struct mw_program_run *r, bool was_active);

// Seconds that the caches of a new revision may take.
static double warm_up_seconds(void) {
  const char *text = getenv("MOONWATCH_WARM_UP");  // specs set it
  double seconds = text != NULL ? strtod(text, NULL) : 0;
  return seconds > 0 ? seconds : warm_up_default;
}

struct mw_program *mw_program_new(struct mw_host *host, const struct mw_program_config *config) {
  struct mw_program *p = mw_xcalloc(1, sizeof *p);
  p->host = host;
  p->config = *config;
  p->remote = config->path != NULL &&
              strncmp(config->path, MW_PROGRAM_REMOTE, sizeof MW_PROGRAM_REMOTE - 1) == 0;
  p->awaited = p->remote;
  p->store = mw_store_new();
  p->keep = mw_keep_new(mw_host_loop(host), MW_PROGRAM_KEEP);
  return p;
}

const char *mw_program_revision_of(const struct mw_program_run *r) {
  return r != NULL && r->bundle != NULL ? mw_bundle_revision(r->bundle) : "";
}

// ---- failures ----

bool mw_program_is_bad(const struct mw_program *p, const struct mw_bundle *b) {
  for (size_t i = 0; i < MW_PROGRAM_HISTORY; i++)
    if (p->bad[i] != NULL && strcmp(p->bad[i], mw_bundle_revision(b)) == 0) return true;
  return false;
}

static void mark_bad(struct mw_program *p, const struct mw_bundle *b) {
  mw_free(p->bad[p->bad_next]);
  p->bad[p->bad_next] = mw_xstrdup(mw_bundle_revision(b));
  p->bad_next = (p->bad_next + 1) % MW_PROGRAM_HISTORY;
}

// revision: "" when the files cannot even be read.
static void tell_failure(struct mw_program *p, const char *revision, const char *report) {
  const char *failed = revision[0] != '\0' ? revision : "unread";
  if (p->active != NULL) {
    mw_log(MW_LOG_ERROR, "reload failed; what runs goes on", MW_STR("script", p->config.path),
           MW_STR("failed", failed), MW_STR("active", mw_program_revision_of(p->active)),
           MW_STR("error", report));
  } else {
    mw_log(MW_LOG_ERROR,
           p->config.watched ? "the script does not load; it starts as soon as its files are mended"
                             : "the script does not load; mend its files and run moonwatch reload",
           MW_STR("script", p->config.path), MW_STR("failed", failed), MW_STR("error", report));
  }
  mw_program_note_failure(p, revision, report);
}

// The active revision fails in its probation: the one before comes back.
static bool take_back(struct mw_program *p, const char *report) {
  struct mw_bundle *before = mw_program_before(p);
  if (p->probation == NULL || before == NULL || p->done != NULL) return false;
  mw_timer_cancel(&p->probation);
  mark_bad(p, p->active->bundle);
  mw_log(MW_LOG_ERROR, "the new revision failed; going back to the one before",
         MW_STR("failed", mw_program_revision_of(p->active)),
         MW_STR("back", mw_bundle_revision(before)), MW_STR("error", report));
  mw_program_note_failure(p, mw_program_revision_of(p->active), report);
  p->taken_back = true;
  mw_program_adopt(p, before);
  return true;
}

// With others in the process only this one ends, and waits for a better revision.
static void end_active(struct mw_program *p, const char *report) {
  if (mw_host_program_count(p->host) < 2) {
    mw_host_failed(p->host, report);
    return;
  }
  mw_log(MW_LOG_ERROR, "script failed; the others go on", MW_STR("script", p->config.path),
         MW_STR("revision", mw_program_revision_of(p->active)), MW_STR("error", report));
  mw_program_note_failure(p, mw_program_revision_of(p->active), report);
  p->failed = true;
  struct mw_program_run *r = p->active;
  if (!has_places(p, p->staging != NULL ? 2 : 1)) return;  // the staged one may need its own
  mw_timer_cancel(&p->probation);
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
  struct mw_program_run *r = ctx;
  struct mw_program *p = r->program;
  if (r == p->staging) {
    if (p->failure == NULL) p->failure = mw_xstrdup(report);
  } else if (r != p->active) {
    mw_log(MW_LOG_ERROR, "a revision that was replaced failed while it ended",
           MW_STR("revision", mw_program_revision_of(r)), MW_STR("error", report));
  } else if (p->fault == NULL) {
    p->fault = mw_xstrdup(report);
    mw_loop_post(mw_host_loop(p->host), on_fault, p);
  }
}

// ---- runs ----

static void run_free(struct mw_program_run *r) {
  r->program->past_hits += mw_program_hits_of(r);
  mw_generation_free(r->generation);
  if (r->bundle != NULL) mw_bundle_unref(r->bundle);
  mw_free(r);
}

// NULL and err when it does not load; what is left of it then retires.
static struct mw_program_run *run_new(struct mw_program *p, struct mw_bundle *b,
                                      struct mw_err *err) {
  struct mw_program_run *r = mw_xcalloc(1, sizeof *r);
  r->program = p;
  struct mw_generation_config config = {.bundle = b,
                                        .module = p->config.module,
                                        .agent = p->config.agent,
                                        .open = p->config.open,
                                        .metered = p->config.metered,
                                        .memory_limit = p->config.memory_limit,
                                        .replaces = p->active != NULL,
                                        .store = p->store,
                                        .number = ++p->generations,
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

static size_t place_of(const struct mw_program *p, const struct mw_program_run *r) {
  size_t i = 0;
  while (i < MW_PROGRAM_RETIRING && p->retiring[i] != r) i++;
  return i;
}

// Whether so many more can retire.
static bool has_places(const struct mw_program *p, size_t wanted) {
  size_t free = 0;
  for (size_t i = 0; i < MW_PROGRAM_RETIRING; i++) free += p->retiring[i] == NULL;
  return free >= wanted;
}

static void on_retired(void *arg) {
  struct mw_program_run *r = arg;
  struct mw_program *p = r->program;
  if (p->done != NULL && !mw_generation_is_drained(r->generation)) p->undone = true;
  if (!mw_generation_has_ended(r->generation)) {
    r->stuck = true;  // it keeps its place
  } else {
    p->retiring[place_of(p, r)] = NULL;
    mw_program_keep_past(p, r);
    run_free(r);
  }
  mw_host_poke(p->host);
  go_on(p);
}

// Ends a run for which there is a place.
static void retire(struct mw_program *p, struct mw_program_run *r, bool was_active) {
  p->retiring[place_of(p, NULL)] = r;
  if (was_active) {
    mw_generation_retire(r->generation, drain_seconds, drain_patience, on_retired, r);
  } else {
    mw_generation_stop(r->generation, 0, drain_patience, on_retired, r);
  }
}

// ---- staging ----

static void drop_staging(struct mw_program *p) {
  struct mw_program_run *r = p->staging;
  p->staging = NULL;
  mw_timer_cancel(&p->warm_up);
  mw_keep_drop(p->keep);
  retire(p, r, false);
}

static void fail_staging(struct mw_program *p, const char *report) {
  tell_failure(p, mw_program_revision_of(p->staging), report);
  drop_staging(p);
}

// Whether what is staged is the first that runs, and starts as if the process began with it.
static bool is_first(const struct mw_program *p) { return p->awaited && !p->remote; }

// A kubeconfig that cannot be used is not mended by another revision.
static void fail_load(struct mw_program *p) {
  const char *report = mw_generation_report(p->staging->generation);
  bool hopeless = is_first(p) && mw_host_program_count(p->host) < 2 &&
                  mw_host_failure_code(p->host, report) == MW_EXIT_CONFIG;
  if (hopeless) {
    mw_host_failed(p->host, report);
    drop_staging(p);
  } else {
    fail_staging(p, report);
  }
}

static void complain_of_cache(void *ctx, const struct mw_keep_lack *lack) {
  struct mw_program *p = ctx;
  char text[2 * MW_ERR_MESSAGE_MAX];
  bool why = lack->error[0] != '\0';
  snprintf(text, sizeof text,
           "%s: no cache of %s within %g seconds%s%s%s; see that the server has it and lets you "
           "list and watch it, then run moonwatch reload",
           lack->place, lack->name, warm_up_seconds(), why ? " (" : "", lack->error,
           why ? ")" : "");
  mw_generation_complain(p->staging->generation, text);
}

static void complain_of_indexes(void *ctx, struct mw_informer *inf, const char *place) {
  struct mw_program *p = ctx;
  struct mw_generation *g = p->staging->generation;
  char text[MW_ERR_MESSAGE_MAX];
  if (mw_informer_indexes_ready(inf, g)) return;
  snprintf(text, sizeof text,
           "%s: the indexes of %s were not built within %g seconds; see what its index functions "
           "do, or run moonwatch reload",
           place, mw_informer_name(inf), warm_up_seconds());
  mw_generation_complain(g, text);
}

struct warmth {
  const struct mw_generation *owner;
  bool built;
};

static void look_at_indexes(void *ctx, struct mw_informer *inf, const char *place) {
  (void)place;
  struct warmth *w = ctx;
  w->built = w->built && mw_informer_indexes_ready(inf, w->owner);
}

// Whether what the staged one wants to read is there, and its own indexes are built.
static bool is_warm(const struct mw_program *p) {
  struct warmth w = {p->staging->generation, mw_keep_is_synced(p->keep)};
  if (w.built) mw_generation_each_wanted(p->staging->generation, look_at_indexes, &w);
  return w.built;
}

static void on_warm_up_over(void *arg) {
  struct mw_program *p = arg;
  struct mw_generation *g = p->staging->generation;
  p->warm_up = NULL;
  if (is_warm(p) && has_places(p, 1)) {  // in this turn, which was a long one
    go_on(p);
    return;
  }
  mw_keep_each_missing(p->keep, complain_of_cache, p);
  if (mw_generation_report(g)[0] == '\0') mw_generation_each_wanted(g, complain_of_indexes, p);
  if (mw_generation_report(g)[0] == '\0')
    mw_generation_complain(g, "the revisions before it have not ended; run moonwatch reload");
  fail_staging(p, mw_generation_report(g));
  go_on(p);
}

static void start_wanted(void *ctx, struct mw_informer *inf, const char *place) {
  struct mw_program *p = ctx;
  if (!mw_informer_is_started(inf)) mw_keep_start(p->keep, inf, place);
}

static void keep_wanted(void *ctx, struct mw_informer *inf, const char *place) {
  (void)place;
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

// How many reconciles failed, then the controllers whose they are: each with its last error, the
// line where that came from, and the line itself.
static void explain_runs(const struct mw_program *p, struct mw_buf *out) {
  struct mw_generation *g = p->active->generation;
  struct mw_generation_runs runs = mw_generation_runs(g);
  struct mw_buf lines;
  struct mw_err err;
  mw_buf_init(&lines, REPORT_MAX / 2);
  int rc = mw_buf_printf(out,
                         "%lu of %lu reconciles failed, and in the revision before %.0f of 100; "
                         "mend that, or run moonwatch reload to try it again as it is",
                         runs.failed, runs.all, 100 * p->failing_before);
  if (rc == 0) rc = mw_operate_call(g, "failing", NULL, 0, &lines, &err);
  char *rest = lines.p, *line;
  while (rc == 0 && (line = strsep(&rest, "\n")) != NULL) {
    rc = mw_buf_add(out, "\n\n", 2);
    if (rc == 0) rc = mw_bundle_explain(p->active->bundle, line, out);
  }
  mw_buf_deinit(&lines);
}

// Writes why the active one cannot stay; nothing when it can.
static void look_for_fault(const struct mw_program *p, struct mw_buf *out) {
  struct mw_generation *g = p->active->generation;
  const char *stopped = mw_generation_stopped(g);
  if (stopped[0] != '\0') {
    if (mw_bundle_explain(p->active->bundle, stopped, out) < 0) mw_buf_reset(out);
  } else if (mw_generation_runs(g).all >= MW_PROGRAM_RUNS && failing(g) > 0.5 &&
             failing(g) > 3 * p->failing_before) {
    explain_runs(p, out);
  }
}

static void on_probation(void *arg) {
  struct mw_program *p = arg;
  struct mw_buf fault;
  p->probation = NULL;
  if (mw_clock_now() >= p->probation_ends) return;
  p->probation = mw_timer_start(mw_host_loop(p->host), probation_look, on_probation, p);
  mw_buf_init(&fault, REPORT_MAX);
  look_for_fault(p, &fault);
  if (fault.n > 0) take_back(p, fault.p);
  mw_buf_deinit(&fault);
}

static void begin_probation(struct mw_program *p, const struct mw_program_run *old) {
  p->failing_before = failing(old->generation);
  p->probation_ends = mw_clock_now() + (uint64_t)MW_PROGRAM_PROBATION * 1000000000;
  mw_timer_cancel(&p->probation);
  p->probation = mw_timer_start(mw_host_loop(p->host), probation_look, on_probation, p);
}

// begun: when the turn began in which it became active.
static void tell_success(const struct mw_program *p, const struct mw_program_run *old,
                         uint64_t begun) {
  uint64_t now = mw_clock_now();
  if (old == NULL) {
    mw_log(MW_LOG_INFO, "loaded", MW_STR("script", p->config.path),
           MW_STR("revision", mw_program_revision_of(p->active)));
    return;
  }
  mw_log(MW_LOG_INFO, "reloaded", MW_STR("script", p->config.path),
         MW_STR("revision", mw_program_revision_of(p->active)),
         MW_STR("before", mw_program_revision_of(old)),
         MW_NUM("seconds", (double)(now - p->offered_at) / 1e9),
         MW_NUM("commit", (double)(now - begun) / 1e9));
}

// The generation that takes over has been committed: the one before may go. Its informers are held
// before it lets go of them.
static void replace(struct mw_program *p, struct mw_program_run *old) {
  mw_generation_each_wanted(old->generation, keep_wanted, p);
  if (!mw_program_is_bad(p, old->bundle)) remember(p, old->bundle);
  begin_probation(p, old);
  retire(p, old, true);
}

// All in this turn of the loop.
static void commit_staging(struct mw_program *p) {
  struct mw_program_run *old = p->active, *new = p->staging;
  uint64_t begun = mw_clock_now();
  struct mw_err err;
  mw_timer_cancel(&p->warm_up);
  if (old != NULL &&
      mw_generation_hand_over(old->generation, new->generation, p->taken_back, &err) < 0) {
    fail_staging(p, err.message);
    return;
  }
  mw_generation_commit(new->generation);
  if (p->failure != NULL) {
    if (old != NULL) mw_generation_give_way(new->generation);
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
  tell_success(p, old, begun);
  mw_program_note_active(p);
}

// Reads what the staged one wants and nobody has yet.
static void warm_up(struct mw_program *p) {
  mw_generation_each_wanted(p->staging->generation, start_wanted, p);
  p->warm_up = mw_timer_start(mw_host_loop(p->host), warm_up_seconds(), on_warm_up_over, p);
  char missing[MW_ERR_MESSAGE_MAX];
  mw_keep_missing(p->keep, missing, sizeof missing);
  if (missing[0] == '\0') return;
  mw_log(MW_LOG_INFO, "the new revision takes over when it has its caches",
         MW_STR("script", p->config.path), MW_STR("revision", mw_program_revision_of(p->staging)),
         MW_STR("missing", missing));
}

static void stage(struct mw_program *p, struct mw_bundle *b) {
  struct mw_buf report;
  struct mw_err err;
  mw_buf_init(&report, REPORT_MAX);
  p->offered_at = mw_clock_now();
  if (mw_bundle_check(b, &report) < 0) {
    tell_failure(p, mw_bundle_revision(b), report.p);
  } else if ((p->staging = run_new(p, b, &err)) == NULL) {
    tell_failure(p, mw_bundle_revision(b), err.message);
  } else if (mw_generation_load(p->staging->generation, &err) < 0) {
    fail_load(p);
  } else if (mw_generation_is_empty(p->staging->generation) && !is_first(p)) {
    // A first revision may do its work and end. Who saves a file hardly means that.
    mw_err_set(&err, MW_ESCRIPT,
               "%s declares nothing, and would end at once; stop it if that is meant",
               mw_bundle_origin(b));
    fail_staging(p, err.message);
  } else if (!is_first(p)) {
    warm_up(p);
  }
  mw_buf_deinit(&report);
}

// ---- moving on ----

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
  if (p->next != NULL && p->staging == NULL && has_places(p, 1)) {
    struct mw_bundle *b = p->next;
    p->next = NULL;
    stage(p, b);
    mw_bundle_unref(b);
  }
  if (p->staging != NULL && (is_first(p) || is_warm(p)) && has_places(p, 1)) commit_staging(p);
}

void mw_program_offer(struct mw_program *p, struct mw_bundle *b) {
  if (!mw_program_hold_back(p, b)) mw_program_adopt(p, b);
}

void mw_program_adopt(struct mw_program *p, struct mw_bundle *b) {
  if (p->done != NULL || (p->active == NULL && !p->failed && !p->remote)) return;
  if (p->next != NULL) mw_bundle_unref(p->next);
  p->next = NULL;
  if (p->staging != NULL) drop_staging(p);
  if (strcmp(mw_bundle_revision(b), mw_program_revision_of(p->active)) == 0) return;
  if (mw_program_is_bad(p, b)) {
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
  tell_failure(p, "", err->message);
}

static void watch(struct mw_program *p, const struct mw_bundle *known) {
  struct mw_bundle_source_config config = {.path = p->config.path, .known = known};
  p->source = mw_bundle_source_new(mw_host_loop(p->host), &config, on_source, p);
}

int mw_program_load(struct mw_program *p, struct mw_err *err) {
  if (p->remote) return 0;
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

// What came from a pipe was read for the last time.
static bool can_be_mended(const struct mw_program *p) {
  struct stat s;
  return p->config.watched && p->config.path != NULL && stat(p->config.path, &s) == 0 &&
         (S_ISREG(s.st_mode) || S_ISDIR(s.st_mode));
}

bool mw_program_wait(struct mw_program *p) {
  struct mw_program_run *r = p->active;
  if (r == NULL || !can_be_mended(p)) return false;
  p->active = NULL;
  p->awaited = p->failed = true;
  tell_failure(p, mw_program_revision_of(r), mw_generation_report(r->generation));
  watch(p, r->bundle);
  retire(p, r, false);
  return true;
}

void mw_program_commit(struct mw_program *p) {
  if (p->active == NULL) return;
  if (p->config.watched && p->config.path != NULL) watch(p, p->active->bundle);
  mw_generation_commit(p->active->generation);
  mw_program_note_active(p);
}

struct mw_generation *mw_program_active(struct mw_program *p) {
  return p->active != NULL ? p->active->generation : NULL;
}

bool mw_program_is_waiting(const struct mw_program *p) { return p->awaited && p->done == NULL; }

bool mw_program_is_remote(const struct mw_program *p) { return p->remote; }

bool mw_program_is_busy(const struct mw_program *p) {
  return p->fault != NULL || mw_program_is_waiting(p) ||
         (p->active != NULL && mw_generation_is_busy(p->active->generation));
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
  struct mw_program_run *r = p->active;
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
  mw_program_forget(p);
  mw_keep_free(p->keep);
  mw_store_free(p->store);
  mw_free(p);
}
