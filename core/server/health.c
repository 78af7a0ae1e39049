// SPDX-License-Identifier: Apache-2.0
#include "server/health.h"

#include <assert.h>
#include <pthread.h>

#include "base/alloc.h"

enum { WHY_ROOM = 512 };

struct check {
  char *name;
  unsigned speaks_for;
  mw_health_cb cb;
  void *ctx;
  struct check *next;
};

struct mw_health {
  pthread_mutex_t lock;
  struct check *checks;
};

struct mw_health *mw_health_new(void) {
  struct mw_health *h = mw_xcalloc(1, sizeof *h);
  pthread_mutex_init(&h->lock, NULL);
  return h;
}

void mw_health_free(struct mw_health *h) {
  assert(h->checks == NULL);
  pthread_mutex_destroy(&h->lock);
  mw_free(h);
}

void mw_health_add(struct mw_health *h, const char *name, unsigned speaks_for, mw_health_cb cb,
                   void *ctx) {
  struct check *c = mw_xmalloc(sizeof *c);
  *c = (struct check){.name = mw_xstrdup(name), .speaks_for = speaks_for, .cb = cb, .ctx = ctx};
  pthread_mutex_lock(&h->lock);
  struct check **at = &h->checks;
  while (*at != NULL) at = &(*at)->next;
  *at = c;
  pthread_mutex_unlock(&h->lock);
}

void mw_health_remove(struct mw_health *h, mw_health_cb cb, void *ctx) {
  pthread_mutex_lock(&h->lock);
  struct check **at = &h->checks;
  while (*at != NULL && ((*at)->cb != cb || (*at)->ctx != ctx)) at = &(*at)->next;
  struct check *c = *at;
  if (c != NULL) *at = c->next;
  pthread_mutex_unlock(&h->lock);
  if (c == NULL) return;
  mw_free(c->name);
  mw_free(c);
}

bool mw_health_run(struct mw_health *h, unsigned speaks_for, struct mw_buf *out) {
  bool all = true;
  int full = 0;
  pthread_mutex_lock(&h->lock);
  for (struct check *c = h->checks; c != NULL; c = c->next) {
    if ((c->speaks_for & speaks_for) == 0) continue;
    char why[WHY_ROOM] = "";
    bool ok = c->cb(c->ctx, why, sizeof why);
    all = all && ok;
    if (ok) {
      full |= mw_buf_printf(out, "[+]%s ok\n", c->name);
    } else {
      full |= mw_buf_printf(out, "[-]%s failed: %s\n", c->name, why);
    }
  }
  pthread_mutex_unlock(&h->lock);
  (void)full;
  return all;
}
