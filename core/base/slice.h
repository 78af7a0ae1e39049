// SPDX-License-Identifier: Apache-2.0
// A borrowed run of bytes. A slice owns nothing; it is valid as long as what it points into.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct mw_slice {
  const char *p;  // not NUL-terminated; may be NULL when n is 0
  size_t n;
};

#define MW_SLICE(literal) ((struct mw_slice){(literal), sizeof(literal) - 1})
// For printf("%.*s", MW_SLICE_ARGS(s)).
#define MW_SLICE_ARGS(s) (int)(s).n, (s).p != NULL ? (s).p : ""

static inline struct mw_slice mw_slice(const char *p, size_t n) { return (struct mw_slice){p, n}; }

static inline struct mw_slice mw_slice_str(const char *s) {
  return (struct mw_slice){s, s != NULL ? strlen(s) : 0};
}

static inline bool mw_slice_eq(struct mw_slice a, struct mw_slice b) {
  return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool mw_slice_is(struct mw_slice a, const char *s) {
  return mw_slice_eq(a, mw_slice_str(s));
}
