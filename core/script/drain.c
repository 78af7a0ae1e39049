// SPDX-License-Identifier: Apache-2.0
// The end of a script for tasks: who may finish its work, and who is cancelled.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "script/task_internal.h"

enum { SHOWN_MAX = 10 };

static void on_drained(void *arg) {
  struct mw_sched *s = arg;
  s->drained_posted = false;
  s->drained(s->drained_ctx);
}

void mw_drain_count(struct mw_task *t, int by) {
  for (struct mw_task *a = t; a != NULL; a = a->parent) a->draining += (unsigned)by;
  struct mw_sched *s = t->sched;
  if (by > 0 || !s->closing || s->drained_posted) return;
  s->drained_posted = true;
  mw_loop_post(s->loop, on_drained, s);
}

static bool may_go_on(const struct mw_task *t) {
  if (t->draining > 0) return true;
  while (t != NULL && !t->drains) t = t->parent;
  return t != NULL;
}

unsigned mw_sched_drain(struct mw_sched *s, mw_loop_cb drained, void *ctx) {
  s->closing = true;
  s->drained = drained;
  s->drained_ctx = ctx;
  unsigned count = 0;
  for (struct mw_task *t = s->tasks; t != NULL; t = t->next) {
    if (t->drains) count++;
    if (!may_go_on(t)) mw_task_cancel(t);
  }
  return count;
}

void mw_task_abandon(struct mw_task *t) {
  assert(t->state == MW_TASK_WAITING && t->children == NULL);
  mw_task_drop_await(t);
  mw_scope_forget_deferred(t);
  t->abandoned = true;
  mw_task_finish(t);
}

static void begin_to_drain(struct mw_task *t) {
  if (t->drains) return;
  t->drains = true;
  mw_drain_count(t, 1);
}

void mw_sched_finish(struct mw_sched *s) {
  s->finishing = true;
  for (struct mw_task *t = s->tasks; t != NULL; t = t->next)
    if (t->finishes) begin_to_drain(t);
}

void mw_task_finishes(struct mw_task *t) {
  t->finishes = true;
  if (t->sched->finishing) begin_to_drain(t);
}

void mw_sched_cancel_all(struct mw_sched *s) {
  for (struct mw_task *t = s->tasks; t != NULL; t = t->next) mw_task_cancel(t);
}

void mw_sched_draining(const struct mw_sched *s, char *out, size_t size) {
  size_t at = 0;
  int shown = 0;
  out[0] = '\0';
  for (const struct mw_task *t = s->tasks; t != NULL; t = t->next) {
    if (!t->drains || t->draining > 1) continue;  // the innermost says most
    if (shown++ == SHOWN_MAX || at + 4 >= size) {
      snprintf(out + at, size - at, "...");
      return;
    }
    int n = snprintf(out + at, size - at, "%s%s", shown > 1 ? "; " : "",
                     t->trigger != NULL ? t->trigger : t->name);
    at = n < 0 || (size_t)n >= size - at ? size - 1 : at + (size_t)n;
  }
}
