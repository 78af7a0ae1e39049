// SPDX-License-Identifier: Apache-2.0
// How far two texts are the same. Private to core/wire.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/scan.h"

static inline uint64_t mw_read8(const char *p) {
  uint64_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

// How many bits are 0 before the first that is not, in the order in which memory has its bytes.
static inline int mw_first_bits(uint64_t v) {
  return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_ctzll(v) : __builtin_clzll(v);
}

// How many bytes from a and b on are the same; neither goes beyond n.
static inline size_t mw_common(const char *a, const char *b, size_t n) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    uint64_t d = mw_read8(a + i) ^ mw_read8(b + i);
    uint64_t e = mw_read8(a + i + 8) ^ mw_read8(b + i + 8);
    if ((d | e) == 0) continue;
    return d != 0 ? i + (size_t)(mw_first_bits(d) >> 3) : i + 8 + (size_t)(mw_first_bits(e) >> 3);
  }
  for (; i + 8 <= n; i += 8) {
    uint64_t d = mw_read8(a + i) ^ mw_read8(b + i);
    if (d != 0) return i + (size_t)(mw_first_bits(d) >> 3);
  }
  while (i < n && a[i] == b[i]) i++;
  return i;
}

// The same where the first 16 bytes are, on a processor that is wide.
size_t mw_common_wide(const char *a, const char *b, size_t n);

// The same for texts that may be alike for long; wide: what mw_is_wide() says.
static inline size_t mw_common_long(const char *a, const char *b, size_t n, bool wide) {
#ifdef __x86_64__
  if (wide && n >= 48 && ((mw_read8(a) ^ mw_read8(b)) | (mw_read8(a + 8) ^ mw_read8(b + 8))) == 0) {
    return mw_common_wide(a, b, n);
  }
#endif
  (void)wide;
  return mw_common(a, b, n);
}
