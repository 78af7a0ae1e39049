// SPDX-License-Identifier: Apache-2.0
#include "base/alloc.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HEAP_SMALL = 16 * 1024 * 1024 };

static atomic_long live[MW_LIVE_COUNT];

static void *checked(void *p, size_t n) {
  if (p != NULL || n == 0) return p;
  fprintf(stderr, "moonwatch: out of memory while asking for %zu bytes\n", n);
  abort();
}

// Has the kernel back what the heap has grown by in one piece: a page fault per 4 KiB costs ten
// times as much, and objects by the thousand fill it at once. A small heap stays as it is. It is
// advice: whatever the kernel makes of it is fine.
static void populate(void) {
#ifdef MADV_POPULATE_WRITE
  static atomic_uintptr_t first, end;
  uintptr_t now = (uintptr_t)sbrk(0);
  uintptr_t before = atomic_load_explicit(&end, memory_order_relaxed);
  if (now == before || !atomic_compare_exchange_strong(&end, &before, now)) return;
  if (before == 0) atomic_store(&first, now);
  if (before == 0 || now < before || now - atomic_load(&first) < HEAP_SMALL) return;
  madvise((void *)before, now - before, MADV_POPULATE_WRITE);
#endif
}

void *mw_xmalloc(size_t n) {
  void *p = checked(malloc(n ? n : 1), n ? n : 1);
  populate();
  return p;
}

void *mw_xcalloc(size_t count, size_t n) {
  return checked(calloc(count ? count : 1, n ? n : 1), SIZE_MAX);
}

void *mw_xrealloc(void *p, size_t n) { return checked(realloc(p, n ? n : 1), n ? n : 1); }

char *mw_xstrndup(const char *s, size_t n) {
  char *copy = mw_xmalloc(n + 1);
  if (n > 0) memcpy(copy, s, n);
  copy[n] = '\0';
  return copy;
}

char *mw_xstrdup(const char *s) { return mw_xstrndup(s, strlen(s)); }

void mw_free(void *p) { free(p); }

void mw_alloc_setup(void) {
#ifdef __GLIBC__
  // An arena of its own would grow by a system call per page, and the lock is shared anyway.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TOP_PAD, 1024 * 1024);
#endif
}

void mw_live_add(enum mw_live kind, int delta) {
  atomic_fetch_add_explicit(&live[kind], delta, memory_order_relaxed);
}

long mw_live_get(enum mw_live kind) {
  return atomic_load_explicit(&live[kind], memory_order_relaxed);
}

const char *mw_live_name(enum mw_live kind) {
  static const char *const names[] = {
#define X(name, text) text,
      MW_LIVE_MAP(X)
#undef X
  };
  return names[kind];
}
