// SPDX-License-Identifier: Apache-2.0
#include "wire/common.h"

#ifdef __x86_64__
#include <immintrin.h>

MW_WIDE size_t mw_common_wide(const char *a, const char *b, size_t n) {
  size_t i = 16;
  for (; i + 32 <= n; i += 32) {
    __m256i x = _mm256_loadu_si256((const __m256i *)(a + i));
    __m256i y = _mm256_loadu_si256((const __m256i *)(b + i));
    unsigned differs = ~(unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(x, y));
    if (differs != 0) return i + (size_t)__builtin_ctz(differs);
  }
  return i + mw_common(a + i, b + i, n - i);
}
#endif
