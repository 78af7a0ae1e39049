// SPDX-License-Identifier: Apache-2.0
// What is packed beside a text comes back from liblz4.
#pragma once

#include <lz4.h>

#include "base/alloc.h"
#include "fuzz.h"
#include "wire/lz.h"

static inline void check_near(struct mw_slice near, struct mw_slice raw,
                              const struct mw_beside *beside) {
  size_t room = mw_lz_bound(raw.n);
  char *out = mw_xmalloc(room), *back = mw_xmalloc(raw.n + 1);
  size_t n = mw_lz_pack_near(near, raw, beside, out);
  require((n == 0) == (near.n + raw.n > MW_LZ_REACH) && n <= room);
  if (n > 0) {
    int got = LZ4_decompress_safe_usingDict(out, back, (int)n, (int)raw.n, near.p, (int)near.n);
    require(got == (int)raw.n && memcmp(back, raw.p, raw.n) == 0);
  }
  mw_free(out);
  mw_free(back);
}
