// SPDX-License-Identifier: Apache-2.0
// What is packed beside a text comes back from liblz4, and the members of marked sections from the
// middle of it.
#pragma once

#include <lz4.h>

#include "base/alloc.h"
#include "fuzz.h"
#include "wire/json.h"
#include "wire/lz.h"

// A member that stands in `near`: what is found of it is its value.
static inline void check_member(struct mw_slice near, struct mw_slice raw, struct mw_slice packed,
                                struct mw_mark mark, struct mw_slice name,
                                const struct mw_outline_member *member) {
  struct mw_lz_place s = {.near = near, .packed = packed};
  struct mw_json c = {raw.p + mark.at, raw.p + raw.n};
  require(mark.at < raw.n && mw_json_find(&c, name) == 1);
  if (!mw_lz_find(&s, mark, member)) return;
  size_t left = (size_t)(c.end - c.p);
  char *value = mw_xmalloc(left + 1);
  size_t half = mw_lz_copy(&s, value, left / 2);
  require(half == left / 2 && mw_lz_copy(&s, value + half, left + 1 - half) == left - half);
  require(memcmp(value, c.p, left) == 0);
  mw_free(value);
}

static inline void check_members(struct mw_slice near, struct mw_slice raw, struct mw_slice packed,
                                 const struct mw_mark *marks, const struct mw_outline *outline) {
  for (size_t i = 0; outline != NULL && i < mw_outline_count(outline); i++) {
    static const char *const names[] = {"v", "text", "none"};
    for (size_t k = 0; k < 3 && marks[i].n > 0; k++) {
      struct mw_outline_member member;
      struct mw_slice name = mw_slice_str(names[k]);
      if (mw_outline_member(outline, near, (int)i, name, &member) < 0) continue;
      check_member(near, raw, packed, marks[i], name, &member);
    }
  }
}

static inline void check_near(struct mw_slice near, struct mw_slice raw,
                              const struct mw_beside *beside, const struct mw_outline *outline) {
  size_t room = mw_lz_bound(raw.n);
  char *out = mw_xmalloc(room), *back = mw_xmalloc(raw.n + 1);
  struct mw_mark marks[MW_OUTLINE_SECTIONS];
  size_t n = mw_lz_pack_near(near, raw, beside, out, marks);
  require((n == 0) == (near.n + raw.n > MW_LZ_REACH) && n <= room);
  if (n > 0) {
    int got = LZ4_decompress_safe_usingDict(out, back, (int)n, (int)raw.n, near.p, (int)near.n);
    require(got == (int)raw.n && memcmp(back, raw.p, raw.n) == 0);
    check_members(near, raw, mw_slice(out, n), marks, outline);
  }
  mw_free(out);
  mw_free(back);
}
