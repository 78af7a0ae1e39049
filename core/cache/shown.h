// SPDX-License-Identifier: Apache-2.0
// Text from outside as error messages may show it: printable ASCII, and not too much of it.
#pragma once

#include <stddef.h>
#include <string.h>

#include "base/slice.h"

enum { MW_SHOWN_MAX = 80 };

struct mw_shown {
  char text[MW_SHOWN_MAX + 4];
};

// For printf("%s", mw_shown(s).text).
static inline struct mw_shown mw_shown(struct mw_slice s) {
  struct mw_shown out;
  size_t n = s.n < MW_SHOWN_MAX ? s.n : MW_SHOWN_MAX;
  for (size_t i = 0; i < n; i++) out.text[i] = s.p[i] >= ' ' && s.p[i] <= '~' ? s.p[i] : '?';
  memcpy(out.text + n, s.n > n ? "..." : "", s.n > n ? 4 : 1);
  return out;
}
