// SPDX-License-Identifier: Apache-2.0
// A growing byte buffer with a ceiling. Appends that would pass the ceiling fail with MW_ELIMIT
// and leave the content as it was; nothing that comes from outside can make it grow further.
#pragma once

#include <stddef.h>

#include "base/slice.h"

struct mw_buf {
  char *p;       // always NUL-terminated once anything was appended; NULL before
  size_t n;      // bytes in use, without the NUL
  size_t cap;    // bytes allocated
  size_t limit;  // the ceiling for n
};

void mw_buf_init(struct mw_buf *b, size_t limit);
void mw_buf_deinit(struct mw_buf *b);
// Forgets the content, keeps the memory.
void mw_buf_reset(struct mw_buf *b);
int mw_buf_add(struct mw_buf *b, const void *p, size_t n) __attribute__((warn_unused_result));
int mw_buf_printf(struct mw_buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), warn_unused_result));
// Makes room for n more bytes at b->p + b->n; the caller then raises b->n itself.
int mw_buf_reserve(struct mw_buf *b, size_t n) __attribute__((warn_unused_result));

static inline struct mw_slice mw_buf_slice(const struct mw_buf *b) {
  return (struct mw_slice){b->p, b->n};
}
