// SPDX-License-Identifier: Apache-2.0
// Other revisions, asked for by hand: who asks hears what became of each. An exchange waits until
// all of its revisions are decided; each change of a program has a look posted.
#include <stdio.h>

#include "base/alloc.h"
#include "script/bundle.h"
#include "script/control_internal.h"
#include "script/host.h"
#include "script/program.h"

// A revision that one program was asked for.
struct wish {
  struct mw_program *program;
  enum mw_program_outcome outcome;
  char before[MW_BUNDLE_REVISION_SIZE];
  char revision[MW_BUNDLE_REVISION_SIZE];  // "": it could not even be read
  char *report;                            // NULL: nothing to say
};

struct mw_control_wait {
  struct mw_control_wait *next;
  struct mw_exchange *exchange;
  size_t count;
  struct wish wishes[];
};

static const char *const outcomes[] = {
    [MW_PROGRAM_PENDING] = "pending",   [MW_PROGRAM_ACTIVE] = "active",
    [MW_PROGRAM_FAILED] = "failed",     [MW_PROGRAM_HELD] = "held",
    [MW_PROGRAM_REPLACED] = "replaced", [MW_PROGRAM_ENDED] = "ended",
};

// ---- which script ----

// Whether a script of this path is called so: the whole path, its last part, or that without .lua.
static bool is_called(const char *path, const char *name) {
  if (strcmp(path, name) == 0) return true;
  const char *slash = strrchr(path, '/');
  const char *last = slash != NULL ? slash + 1 : path;
  size_t n = strlen(name);
  return strncmp(last, name, n) == 0 && (last[n] == '\0' || strcmp(last + n, ".lua") == 0);
}

static void refuse_script(struct mw_control *c, struct mw_exchange *x, const char *problem,
                          const char *name) {
  struct mw_buf text;
  mw_buf_init(&text, MW_CONTROL_ANSWER_MAX);
  int rc = mw_buf_printf(&text, "%s%s; it runs: ", problem, name);
  for (size_t i = 0; i < mw_host_program_count(c->host) && rc == 0; i++) {
    rc = mw_buf_printf(&text, "%s%s", i > 0 ? ", " : "",
                       mw_program_path(mw_host_program(c->host, i)));
  }
  mw_control_refuse(x, 404, rc == 0 ? text.p : problem);
  mw_buf_deinit(&text);
}

// The programs that are meant: how many, the first of them in *first when it is one by name. 0: the
// exchange has been answered.
static size_t meant(struct mw_control *c, struct mw_exchange *x, size_t *first) {
  char name[MW_CONTROL_VALUE_MAX];
  int given = mw_control_parameter(x, "script", name);
  size_t count = mw_host_program_count(c->host), found = 0;
  *first = 0;
  if (given < 0) return 0;
  if (given == 0) return count;
  for (size_t i = 0; i < count; i++) {
    if (!is_called(mw_program_path(mw_host_program(c->host, i)), name)) continue;
    *first = i;
    found++;
  }
  if (found == 1) return 1;
  refuse_script(c, x, found == 0 ? "this process runs no script " : "there are several scripts ",
                name);
  return 0;
}

// ---- waiting ----

static void wait_free(struct mw_control_wait *w) {
  for (size_t i = 0; i < w->count; i++) mw_free(w->wishes[i].report);
  mw_free(w);
}

static void answer_wait(struct mw_control_wait *w) {
  struct mw_json_out o;
  mw_json_open(&o, MW_CONTROL_ANSWER_MAX);
  mw_json_begin(&o, NULL, '{');
  mw_json_begin(&o, "scripts", '[');
  for (size_t i = 0; i < w->count; i++) {
    const struct wish *wish = &w->wishes[i];
    bool same = wish->outcome == MW_PROGRAM_ACTIVE && strcmp(wish->before, wish->revision) == 0;
    mw_json_begin(&o, NULL, '{');
    mw_json_put_str(&o, "script", mw_program_path(wish->program));
    mw_json_put_str(&o, "result", same ? "unchanged" : outcomes[wish->outcome]);
    mw_json_put_str(&o, "before", wish->before);
    if (wish->revision[0] != '\0') mw_json_put_str(&o, "revision", wish->revision);
    mw_json_put_str(&o, "active", mw_program_revision(wish->program));
    if (wish->report != NULL) mw_json_put_str(&o, "report", wish->report);
    mw_json_end(&o, '}');
  }
  mw_json_end(&o, ']');
  mw_json_end(&o, '}');
  mw_control_answer(w->exchange, &o);
}

// Whether all is decided.
static bool look_at(struct mw_control_wait *w) {
  bool decided = true;
  for (size_t i = 0; i < w->count; i++) {
    struct wish *wish = &w->wishes[i];
    if (wish->outcome != MW_PROGRAM_PENDING) continue;
    wish->outcome = mw_program_outcome(wish->program, wish->revision);
    const char *report = mw_program_failure(wish->program, wish->revision);
    if (wish->outcome == MW_PROGRAM_FAILED && report != NULL) wish->report = mw_xstrdup(report);
    decided = decided && wish->outcome != MW_PROGRAM_PENDING;
  }
  return decided;
}

static void look(void *arg) {
  struct mw_control *c = arg;
  c->look_posted = false;
  struct mw_control_wait **link = &c->waits;
  while (*link != NULL) {
    struct mw_control_wait *w = *link;
    if (!look_at(w)) {
      link = &w->next;
      continue;
    }
    *link = w->next;
    answer_wait(w);
    wait_free(w);
  }
  if (c->closed) mw_control_over(c);
}

static void on_change(void *arg) {
  struct mw_control *c = arg;
  if (c->look_posted || c->waits == NULL) return;
  c->look_posted = true;
  mw_loop_post(mw_host_loop(c->host), look, c);
}

void mw_control_listen(struct mw_control *c) {
  for (size_t i = 0; i < mw_host_program_count(c->host); i++)
    mw_program_on_change(mw_host_program(c->host, i), on_change, c);
}

void mw_control_forget(struct mw_control *c, struct mw_exchange *x) {
  struct mw_control_wait **link = &c->waits;
  while (*link != NULL && (*link)->exchange != x) link = &(*link)->next;
  struct mw_control_wait *w = *link;
  if (w == NULL) return;
  *link = w->next;
  wait_free(w);
}

void mw_control_give_up(struct mw_control *c) {
  for (size_t i = 0; i < mw_host_program_count(c->host); i++)
    mw_program_on_change(mw_host_program(c->host, i), NULL, NULL);
  while (c->waits != NULL) {
    struct mw_control_wait *w = c->waits;
    c->waits = w->next;
    look_at(w);
    answer_wait(w);
    wait_free(w);
  }
}

// ---- asking ----

static struct mw_control_wait *wait_new(struct mw_control *c, struct mw_exchange *x, size_t first,
                                        size_t count) {
  struct mw_control_wait *w = mw_xcalloc(1, sizeof *w + count * sizeof w->wishes[0]);
  w->exchange = x;
  w->count = count;
  for (size_t i = 0; i < count; i++) {
    struct wish *wish = &w->wishes[i];
    wish->program = mw_host_program(c->host, first + i);
    snprintf(wish->before, sizeof wish->before, "%s", mw_program_revision(wish->program));
  }
  return w;
}

static void begin_wait(struct mw_control *c, struct mw_control_wait *w) {
  w->next = c->waits;
  c->waits = w;
  on_change(c);
}

void mw_control_reload(struct mw_control *c, struct mw_exchange *x) {
  size_t first, count = meant(c, x, &first);
  if (count == 0) return;
  struct mw_control_wait *w = wait_new(c, x, first, count);
  for (size_t i = 0; i < count; i++) {
    struct wish *wish = &w->wishes[i];
    struct mw_err err;
    if (mw_program_reload(wish->program, wish->revision, &err) == 0) continue;
    wish->outcome = MW_PROGRAM_FAILED;
    wish->report = mw_xstrdup(err.message);
  }
  begin_wait(c, w);
}

void mw_control_rollback(struct mw_control *c, struct mw_exchange *x) {
  char revision[MW_CONTROL_VALUE_MAX];
  size_t first, count = meant(c, x, &first);
  int given = count > 0 ? mw_control_parameter(x, "revision", revision) : MW_EINVAL;
  if (given < 0) return;
  if (count > 1) {
    refuse_script(c, x, "which script is to go back? Say --script", "");
    return;
  }
  struct mw_control_wait *w = wait_new(c, x, first, 1);
  struct mw_err err;
  if (mw_program_rollback(w->wishes[0].program, given > 0 ? revision : NULL, w->wishes[0].revision,
                          &err) < 0) {
    mw_control_refuse(x, err.code == MW_ENOTFOUND ? 404 : 400, err.message);
    wait_free(w);
    return;
  }
  begin_wait(c, w);
}

void mw_control_hold(struct mw_control *c, struct mw_exchange *x) {
  char on[MW_CONTROL_VALUE_MAX];
  size_t first, count = meant(c, x, &first);
  int given = count > 0 ? mw_control_parameter(x, "on", on) : MW_EINVAL;
  if (given < 0) return;
  if (given == 0 || (strcmp(on, "true") != 0 && strcmp(on, "false") != 0)) {
    mw_control_refuse(x, 400, "on is true or false");
    return;
  }
  for (size_t i = first; i < first + count; i++)
    mw_program_hold(mw_host_program(c->host, i), on[0] == 't');
  mw_control_status(c, x);
}
