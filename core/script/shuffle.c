// SPDX-License-Identifier: Apache-2.0
// Which task runs next, drawn by a seed. What tasks may rely on is their awaits, not the order in
// which these happen to be answered; a spec that runs a script under many seeds finds those that
// rely on more.
#include <assert.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/rand.h"
#include "script/task_internal.h"

struct mw_shuffle {
  struct mw_rand rand;
  struct mw_task **ready;
  size_t count, cap;
};

void mw_sched_shuffle(struct mw_sched *s, uint64_t seed) {
  assert(s->shuffle == NULL && s->count == 0);
  s->shuffle = mw_xcalloc(1, sizeof *s->shuffle);
  mw_rand_init(&s->shuffle->rand, seed);
}

bool mw_sched_is_shuffled(const struct mw_sched *s) { return s->shuffle != NULL; }

void mw_shuffle_free(struct mw_shuffle *f) {
  if (f == NULL) return;
  assert(f->count == 0);
  mw_free(f->ready);
  mw_free(f);
}

// One each turn of the loop: sockets and timers may make others ready in between.
static void run_one(void *arg) {
  struct mw_sched *s = arg;
  struct mw_shuffle *f = s->shuffle;
  size_t i = (size_t)(mw_rand_next(&f->rand) % f->count);
  struct mw_task *t = f->ready[i];
  f->ready[i] = f->ready[--f->count];
  if (f->count > 0) mw_loop_post(s->loop, run_one, s);
  mw_task_run(t);
}

void mw_shuffle_add(struct mw_task *t) {
  struct mw_shuffle *f = t->sched->shuffle;
  if (f->count == f->cap) {
    f->cap = f->cap > 0 ? f->cap * 2 : 16;
    f->ready = mw_xrealloc(f->ready, f->cap * sizeof *f->ready);
  }
  f->ready[f->count++] = t;
  if (f->count == 1) mw_loop_post(t->sched->loop, run_one, t->sched);
}
