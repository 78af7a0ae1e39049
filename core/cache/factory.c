// SPDX-License-Identifier: Apache-2.0
// An array: a host has tens of informers. One that is stopping stays in it, so that closing waits
// for it, but is not found any more; its successor may already stand beside it.
#include "cache/factory.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { IDENTITY_MAX = 64 * 1024, RESOURCE_ROOM = 600, NUMBER_ROOM = 16 };

struct entry {
  struct mw_factory *factory;
  struct mw_informer *informer;  // +1
  char *identity;
  char *metric_name;  // NULL: none
  bool hidden;
};

struct mw_factory {
  struct mw_runtime runtime;
  struct entry **entries;
  size_t count;
  size_t cap;
  bool closing;
  bool metered;
  mw_loop_cb done;
  void *done_ctx;
};

struct mw_factory *mw_factory_new(const struct mw_runtime *runtime) {
  struct mw_factory *f = mw_xcalloc(1, sizeof *f);
  f->runtime = *runtime;
  return f;
}

void mw_factory_free(struct mw_factory *f) {
  assert(f->count == 0);
  mw_free(f->entries);
  mw_free(f);
}

static void report_done(void *arg) {
  struct mw_factory *f = arg;
  mw_loop_cb done = f->done;
  f->done = NULL;
  if (done != NULL) done(f->done_ctx);
}

static void on_stopped(void *ctx) {
  struct entry *e = ctx;
  struct mw_factory *f = e->factory;
  size_t i = 0;
  while (f->entries[i] != e) i++;
  f->entries[i] = f->entries[--f->count];
  mw_informer_unref(e->informer);
  mw_free(e->identity);
  mw_free(e->metric_name);
  mw_free(e);
  if (f->closing && f->count == 0) report_done(f);
}

void mw_factory_close(struct mw_factory *f, mw_loop_cb done, void *ctx) {
  f->closing = true;
  f->done = done;
  f->done_ctx = ctx;
  for (size_t i = 0; i < f->count; i++) mw_informer_shutdown(f->entries[i]->informer);
  if (f->count == 0) mw_loop_post(f->runtime.script, report_done, f);
}

static struct entry *find(struct mw_factory *f, const char *identity) {
  for (size_t i = 0; i < f->count; i++) {
    struct entry *e = f->entries[i];
    if (e->hidden || mw_informer_is_stopping(e->informer)) continue;
    if (strcmp(e->identity, identity) == 0) return e;
  }
  return NULL;
}

static bool is_taken(const struct mw_factory *f, const char *metric_name) {
  for (size_t i = 0; i < f->count; i++) {
    const char *taken = f->entries[i]->metric_name;
    if (taken != NULL && strcmp(taken, metric_name) == 0) return true;
  }
  return false;
}

// A name that no other informer's metrics have; a very long one is cut before its number.
static void choose_metric_name(const struct mw_factory *f, const struct mw_reflector_config *r,
                               char *out, size_t room) {
  char name[RESOURCE_ROOM];
  mw_resource_name(&r->resource, name, sizeof name);
  bool one = r->ns != NULL && r->ns[0] != '\0';
  for (unsigned i = 1; i == 1 || is_taken(f, out); i++) {
    int n = snprintf(out, room - NUMBER_ROOM, "%.420s%s%.63s", name, one ? " in " : "",
                     one ? r->ns : "");
    size_t end = (size_t)n < room - NUMBER_ROOM ? (size_t)n : room - NUMBER_ROOM - 1;
    if (i > 1) snprintf(out + end, NUMBER_ROOM, " #%u", i);
  }
}

static struct entry *add(struct mw_factory *f, const struct mw_informer_config *config,
                         const char *identity) {
  struct entry *e = mw_xcalloc(1, sizeof *e);
  e->factory = f;
  e->identity = mw_xstrdup(identity);
  struct mw_informer_config chosen = *config;
  if (f->metered) {
    choose_metric_name(f, &chosen.reflector, chosen.reflector.metric_name,
                       sizeof chosen.reflector.metric_name);
    e->metric_name = mw_xstrdup(chosen.reflector.metric_name);
  }
  e->informer = mw_informer_new(&f->runtime, &chosen);
  mw_informer_on_stopped(e->informer, on_stopped, e);
  if (f->count == f->cap) {
    f->cap = f->cap > 0 ? f->cap * 2 : 8;
    f->entries = mw_xrealloc(f->entries, f->cap * sizeof(struct entry *));
  }
  f->entries[f->count++] = e;
  return e;
}

struct mw_informer *mw_factory_get(struct mw_factory *f, const struct mw_informer_config *config,
                                   struct mw_err *err) {
  struct mw_buf identity;
  mw_buf_init(&identity, IDENTITY_MAX);
  struct entry *e = NULL;
  bool made = false;
  if (f->closing) {
    mw_err_set(err, MW_ESTATE, "the host is shutting down: no new informers");
  } else if (mw_informer_identity(config, &identity) < 0) {
    mw_err_set(err, MW_ELIMIT, "the selectors are longer than %d bytes", IDENTITY_MAX);
  } else {
    e = find(f, identity.p);
    made = e == NULL;
    if (made) e = add(f, config, identity.p);
    if (!made) mw_informer_want_resync(e->informer, config->owner, config->reflector.resync);
  }
  if (!made) mw_projection_free(config->projection);
  mw_buf_deinit(&identity);
  return e != NULL ? mw_informer_ref(e->informer) : NULL;
}

void mw_factory_hide(struct mw_factory *f, const struct mw_informer *inf) {
  for (size_t i = 0; i < f->count; i++) {
    if (f->entries[i]->informer == inf) f->entries[i]->hidden = true;
  }
}

void mw_factory_meter(struct mw_factory *f) { f->metered = true; }

void mw_factory_each(struct mw_factory *f, void (*cb)(void *ctx, struct mw_informer *inf),
                     void *ctx) {
  for (size_t i = 0; i < f->count; i++) cb(ctx, f->entries[i]->informer);
}
