// SPDX-License-Identifier: Apache-2.0
// What those who operate a program ask for: how it is, another revision by hand, none for a while.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "script/heap.h"
#include "script/host.h"
#include "script/operate.h"
#include "script/program_internal.h"
#include "script/sched.h"
#include "wire/json_write.h"

enum { PAST_MAX = 1024 * 1024 };

static void changed(struct mw_program *p) {
  if (p->changed != NULL) p->changed(p->changed_ctx);
}

static void forget_failure(struct mw_program *p) {
  mw_free(p->last_failure.report);
  p->last_failure.report = NULL;
}

void mw_program_note_active(struct mw_program *p) {
  p->reloads += p->active_at > 0;
  p->active_at = mw_clock_wall();
  if (!p->taken_back) forget_failure(p);
  p->taken_back = p->awaited = false;
  changed(p);
}

void mw_program_note_failure(struct mw_program *p, const char *revision, const char *report) {
  p->failures++;
  mw_free(p->last_failure.report);
  p->last_failure.report = mw_xstrdup(report);
  p->last_failure.at = mw_clock_wall();
  snprintf(p->last_failure.revision, sizeof p->last_failure.revision, "%s", revision);
  changed(p);
}

void mw_program_keep_past(struct mw_program *p, const struct mw_program_run *r) {
  struct mw_err err;
  struct mw_buf text;
  mw_buf_init(&text, PAST_MAX);
  // Most often there is nothing: it was never active, or has no controllers.
  bool any = r->bundle != NULL && p->done == NULL &&
             mw_operate_call(r->generation, "past", NULL, 0, &text, &err) == 0;
  if (any) {
    mw_free(p->past[MW_PROGRAM_HISTORY - 1].text);
    memmove(&p->past[1], &p->past[0], (MW_PROGRAM_HISTORY - 1) * sizeof p->past[0]);
    p->past[0].text = mw_xstrdup(text.p);
    snprintf(p->past[0].revision, sizeof p->past[0].revision, "%s", mw_program_revision_of(r));
  }
  mw_buf_deinit(&text);
}

size_t mw_program_past(const struct mw_program *p, const char *out[2 * MW_PROGRAM_HISTORY]) {
  size_t n = 0;
  for (size_t i = 0; i < MW_PROGRAM_HISTORY; i++) {
    if (p->past[i].text == NULL) break;
    out[n++] = p->past[i].revision;
    out[n++] = p->past[i].text;
  }
  return n;
}

bool mw_program_hold_back(struct mw_program *p, struct mw_bundle *b) {
  bool same = strcmp(mw_bundle_revision(b), mw_program_revision_of(p->active)) == 0;
  if (same && p->last_failure.report != NULL) {
    mw_log(MW_LOG_INFO, "the files are what runs again", MW_STR("script", p->config.path),
           MW_STR("revision", mw_program_revision_of(p->active)));
    forget_failure(p);
  }
  if (p->held_at <= 0) return false;
  if (p->held != NULL) mw_bundle_unref(p->held);
  p->held = same ? NULL : mw_bundle_ref(b);
  changed(p);
  return true;
}

void mw_program_forget(struct mw_program *p) {
  if (p->held != NULL) mw_bundle_unref(p->held);
  mw_free(p->last_failure.report);
  for (size_t i = 0; i < MW_PROGRAM_HISTORY; i++) mw_free(p->past[i].text);
}

void mw_program_on_change(struct mw_program *p, mw_loop_cb cb, void *ctx) {
  p->changed = cb;
  p->changed_ctx = ctx;
}

const char *mw_program_path(const struct mw_program *p) { return p->config.path; }

const char *mw_program_revision(const struct mw_program *p) {
  return mw_program_revision_of(p->active);
}

static const char *pending_revision(const struct mw_program *p) {
  if (p->next != NULL) return mw_bundle_revision(p->next);
  if (p->staging != NULL) return mw_program_revision_of(p->staging);
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
    bool cache = missing[0] != '\0';
    snprintf(why, sizeof why, "%s%s",
             cache ? "it waits for the cache of " : "its indexes are not built yet", missing);
    if (cache) mw_json_put_str(o, "missing", missing);
  } else if (p->held != NULL) {
    snprintf(why, sizeof why, "reloads are held; release them with: moonwatch hold off");
  }
  mw_json_put_str(o, "why", why[0] != '\0' ? why : p->last_failure.report);
  mw_json_end(o, '}');
}

static const char *state_of(const struct mw_program *p) {
  if (p->done != NULL) return "stopping";
  if (p->staging != NULL) return "warming";
  if (mw_program_is_waiting(p)) return "waiting";
  if (p->active == NULL) return p->failed ? "failed" : "ended";
  if (mw_generation_is_loading(p->active->generation)) return "loading";
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
  return b != NULL && strcmp(mw_bundle_revision(b), mw_program_revision_of(p->active)) != 0;
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
    if (p->retiring[i] != NULL) mw_json_put_str(o, NULL, mw_program_revision_of(p->retiring[i]));
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

unsigned long mw_program_hits_of(const struct mw_program_run *r) {
  return r != NULL ? mw_heap_hits(mw_heap_of(mw_generation_state(r->generation))) : 0;
}

unsigned long mw_program_memory_hits(const struct mw_program *p) {
  unsigned long hits =
      p->past_hits + mw_program_hits_of(p->active) + mw_program_hits_of(p->staging);
  for (size_t i = 0; i < MW_PROGRAM_RETIRING; i++) hits += mw_program_hits_of(p->retiring[i]);
  return hits;
}

void mw_program_tell(const struct mw_program *p, struct mw_json_out *o) {
  mw_json_put_str(o, "script", p->config.path);
  mw_json_put_str(o, "state", state_of(p));
  if (p->active != NULL) mw_json_put_str(o, "revision", mw_program_revision_of(p->active));
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
  if (p->remote) {
    return mw_err_set(err, MW_ESTATE, "%s is no file: it is watched, and needs no reload by hand",
                      p->config.path);
  }
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
  return text != NULL ? strncmp(mw_bundle_revision(b), text, strlen(text)) == 0
                      : !mw_program_is_bad(p, b);
}

struct mw_bundle *mw_program_before(const struct mw_program *p) {
  for (size_t i = 0; i < MW_PROGRAM_HISTORY; i++)
    if (is_meant(p, p->history[i], NULL)) return p->history[i];
  return NULL;
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
  if (text != NULL && found == NULL &&
      strncmp(mw_program_revision_of(p->active), text, strlen(text)) == 0) {
    return mw_err_set(err, MW_EINVAL, "%s is the active revision",
                      mw_program_revision_of(p->active));
  }
  if (found == NULL) return no_such_revision(p, text, err);
  mw_bundle_ref(found);  // what happens next may forget it
  set_revision(out, found);
  forgive(p, found);
  mw_program_adopt(p, found);
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
  mw_program_adopt(p, b);
  mw_bundle_unref(b);
}

static bool is_revision(const struct mw_bundle *b, const char *revision) {
  return b != NULL && strcmp(mw_bundle_revision(b), revision) == 0;
}

enum mw_program_outcome mw_program_outcome(const struct mw_program *p, const char *revision) {
  if (p->done != NULL) return MW_PROGRAM_ENDED;
  if (is_revision(p->next, revision)) return MW_PROGRAM_PENDING;
  if (p->staging != NULL && is_revision(p->staging->bundle, revision)) return MW_PROGRAM_PENDING;
  if (strcmp(mw_program_revision_of(p->active), revision) == 0) return MW_PROGRAM_ACTIVE;
  if (is_revision(p->held, revision)) return MW_PROGRAM_HELD;
  if (mw_program_failure(p, revision) != NULL) return MW_PROGRAM_FAILED;
  return mw_host_is_running(p->host) ? MW_PROGRAM_REPLACED : MW_PROGRAM_ENDED;
}

const char *mw_program_failure(const struct mw_program *p, const char *revision) {
  const struct mw_program_failure *f = &p->last_failure;
  return f->report != NULL && strcmp(f->revision, revision) == 0 ? f->report : NULL;
}
