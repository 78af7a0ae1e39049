// SPDX-License-Identifier: Apache-2.0
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/err.h"

void mw_buf_init(struct mw_buf *b, size_t limit) { *b = (struct mw_buf){.limit = limit}; }

void mw_buf_deinit(struct mw_buf *b) {
  mw_free(b->p);
  *b = (struct mw_buf){.limit = b->limit};
}

void mw_buf_reset(struct mw_buf *b) {
  b->n = 0;
  if (b->p != NULL) b->p[0] = '\0';
}

int mw_buf_reserve(struct mw_buf *b, size_t n) {
  if (n > b->limit || b->n > b->limit - n) return MW_ELIMIT;
  size_t need = b->n + n + 1;
  if (need <= b->cap) return 0;
  size_t cap = b->cap ? b->cap : 64;
  while (cap < need) cap *= 2;
  b->p = mw_xrealloc(b->p, cap);
  b->cap = cap;
  return 0;
}

int mw_buf_add(struct mw_buf *b, const void *p, size_t n) {
  int rc = mw_buf_reserve(b, n);
  if (rc < 0) return rc;
  if (n > 0) memcpy(b->p + b->n, p, n);
  b->n += n;
  b->p[b->n] = '\0';
  return 0;
}

int mw_buf_printf(struct mw_buf *b, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(NULL, 0, fmt, args);
  va_end(args);
  if (n < 0) return MW_EINVAL;
  int rc = mw_buf_reserve(b, (size_t)n);
  if (rc < 0) return rc;
  va_start(args, fmt);
  vsnprintf(b->p + b->n, (size_t)n + 1, fmt, args);
  va_end(args);
  b->n += (size_t)n;
  return 0;
}
