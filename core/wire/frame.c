// SPDX-License-Identifier: Apache-2.0
#include "wire/frame.h"

#include "base/err.h"
#include "wire/scan.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

// Memory above this is given back after a large object.
enum { KEEP_MAX = 1024 * 1024 };

void mw_frame_init(struct mw_frame *f, size_t limit) {
  *f = (struct mw_frame){0};
  mw_buf_init(&f->buf, limit);
}

void mw_frame_deinit(struct mw_frame *f) { mw_buf_deinit(&f->buf); }

// Behind the closing bracket, or NULL when it is not in [p, end). A backslash counts in and
// outside of strings alike, so that this and the block version agree on any input.
static const char *track_bytes(struct mw_frame *f, const char *p, const char *end) {
  for (; p < end; p++) {
    bool escaped = f->escape;
    f->escape = false;
    if (*p == '\\') {
      f->escape = !escaped;
    } else if (*p == '"') {
      if (!escaped) f->in_string = !f->in_string;
    } else if (f->in_string) {
      continue;
    } else if (*p == '{' || *p == '[') {
      f->depth++;
    } else if (*p == '}' || *p == ']') {
      if (--f->depth == 0) return p + 1;
    }
  }
  return NULL;
}

#ifdef __x86_64__
// One bit per byte of a block of 64.
struct masks {
  uint64_t quote;
  uint64_t backslash;
  uint64_t open;
  uint64_t close;
};

static inline uint64_t equal(__m128i x, char c) {
  return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_set1_epi8(c)));
}

static inline void classify16(struct masks *m, const char *p, int at) {
  __m128i x = _mm_loadu_si128((const __m128i *)(p + at));
  // '[' and '{' differ in one bit, and so do ']' and '}'.
  __m128i folded = _mm_or_si128(x, _mm_set1_epi8(0x20));
  m->quote |= equal(x, '"') << at;
  m->backslash |= equal(x, '\\') << at;
  m->open |= equal(folded, '{') << at;
  m->close |= equal(folded, '}') << at;
}

static inline struct masks classify(const char *p) {
  struct masks m = {0};
  classify16(&m, p, 0);
  classify16(&m, p, 16);
  classify16(&m, p, 32);
  classify16(&m, p, 48);
  return m;
}

MW_WIDE static inline unsigned equal32(__m256i x, char c) {
  return (unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(x, _mm256_set1_epi8(c)));
}

MW_WIDE static inline struct masks classify_wide(const char *p) {
  struct masks m = {0};
  for (int at = 0; at < 64; at += 32) {
    __m256i x = _mm256_loadu_si256((const __m256i *)(p + at));
    __m256i folded = _mm256_or_si256(x, _mm256_set1_epi8(0x20));
    m.quote |= (uint64_t)equal32(x, '"') << at;
    m.backslash |= (uint64_t)equal32(x, '\\') << at;
    m.open |= (uint64_t)equal32(folded, '{') << at;
    m.close |= (uint64_t)equal32(folded, '}') << at;
  }
  return m;
}

// As a wide function compiles it, one instruction; there is none that every processor has.
static inline __attribute__((always_inline)) unsigned count_bits(uint64_t x, bool wide) {
  if (wide) return (unsigned)__builtin_popcountll(x);
  x -= x >> 1 & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
  x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
  return (unsigned)(x * 0x0101010101010101u >> 56);
}

// The bytes that a backslash escapes. Updates f->escape for the next block.
static uint64_t escaped_bytes(struct mw_frame *f, uint64_t backslash) {
  uint64_t escaped = f->escape ? 1 : 0;
  f->escape = false;
  uint64_t left = backslash & ~escaped;
  while (left != 0) {
    int i = __builtin_ctzll(left);
    if (i == 63) {
      f->escape = true;
      break;
    }
    escaped |= (uint64_t)2 << i;
    left &= ~((uint64_t)3 << i);
  }
  return escaped;
}

// Each bit becomes the parity of the bits up to and with it.
static inline uint64_t parity_up_to(uint64_t x) {
  x ^= x << 1;
  x ^= x << 2;
  x ^= x << 4;
  x ^= x << 8;
  x ^= x << 16;
  x ^= x << 32;
  return x;
}

// The same by one multiplication without carries.
MW_WIDE static inline uint64_t parity_wide(uint64_t x) {
  __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)x), _mm_set1_epi8(-1), 0);
  return (uint64_t)_mm_cvtsi128_si64(product);
}

// As track_bytes(), for a whole block.
static inline __attribute__((always_inline)) const char *track_block(struct mw_frame *f,
                                                                     const char *p, struct masks m,
                                                                     bool wide) {
  if ((m.backslash | (uint64_t)f->escape) != 0) m.quote &= ~escaped_bytes(f, m.backslash);
  uint64_t inside = wide ? parity_wide(m.quote) : parity_up_to(m.quote);
  if (f->in_string) inside = ~inside;
  uint64_t open = m.open & ~inside;
  uint64_t close = m.close & ~inside;
  f->in_string = inside >> 63;
  unsigned closed = count_bits(close, wide);
  if (closed < f->depth) {
    f->depth += count_bits(open, wide);
    f->depth -= closed;
    return NULL;
  }
  // The object may end here: go from bracket to bracket.
  for (uint64_t left = open | close; left != 0; left &= left - 1) {
    int i = __builtin_ctzll(left);
    if (open >> i & 1) {
      f->depth++;
    } else if (--f->depth == 0) {
      return p + i + 1;
    }
  }
  return NULL;
}

// Of the bytes of a block: those of strings, without the opening quotes, with the closing ones.
static uint64_t strings_of(struct mw_frame *f, const char *p) {
  struct masks m = classify(p);
  bool in_string = f->in_string;
  if ((m.backslash | (uint64_t)f->escape) != 0) m.quote &= ~escaped_bytes(f, m.backslash);
  uint64_t inside = parity_up_to(m.quote);
  if (in_string) inside = ~inside;
  f->in_string = inside >> 63;
  return inside << 1 | (uint64_t)in_string;
}

// Takes all whole blocks; *p is behind them.
static const char *track_blocks(struct mw_frame *f, const char **p, const char *end) {
  for (; end - *p >= 64; *p += 64) {
    const char *done = track_block(f, *p, classify(*p), false);
    if (done != NULL) return done;
  }
  return NULL;
}

MW_WIDE static const char *track_blocks_wide(struct mw_frame *f, const char **p, const char *end) {
  for (; end - *p >= 64; *p += 64) {
    const char *done = track_block(f, *p, classify_wide(*p), true);
    if (done != NULL) return done;
  }
  return NULL;
}
#endif

static const char *track(struct mw_frame *f, const char *p, const char *end) {
#ifdef __x86_64__
  // At the '{' itself nothing is open yet.
  if (f->depth == 0) {
    const char *single = track_bytes(f, p, p + 1);
    if (single != NULL) return single;
    p++;
  }
  const char *done = mw_is_wide() ? track_blocks_wide(f, &p, end) : track_blocks(f, &p, end);
  if (done != NULL) return done;
#endif
  return track_bytes(f, p, end);
}

const char *mw_frame_end(const char *p, const char *end) {
  struct mw_frame f = {0};
  return track(&f, p, end);
}

void mw_frame_strings(struct mw_slice text, uint64_t *bits) {
  struct mw_frame f = {0};
  size_t i = 0;
#ifdef __x86_64__
  for (; i + 64 <= text.n; i += 64) bits[i / 64] = strings_of(&f, text.p + i);
#endif
  for (; i < text.n; i++) {
    bits[i / 64] |= (uint64_t)f.in_string << i % 64;
    track_bytes(&f, text.p + i, text.p + i + 1);
  }
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static int gather(struct mw_frame *f, const char *p, const char *end) {
  size_t n = (size_t)(end - p);
  f->size += n;
  return mw_buf_add(&f->buf, p, least(n, f->buf.limit - f->buf.n));
}

int mw_frame_feed(struct mw_frame *f, const char **p, const char *end, struct mw_slice *whole) {
  if (*p == end) return 0;
  bool begins = f->depth == 0;
  if (begins) {
    if (f->buf.cap > KEEP_MAX) mw_buf_deinit(&f->buf);
    mw_buf_reset(&f->buf);
    f->size = 0;
  }
  const char *from = *p;
  const char *done = track(f, from, end);
  *p = done != NULL ? done : end;
  if (done == NULL) return gather(f, from, end);
  f->in_string = false;
  f->escape = false;
  if (begins) {
    f->size = (uint64_t)(done - from);
    *whole = mw_slice(from, least((size_t)(done - from), f->buf.limit));
  } else {
    int rc = gather(f, from, done);
    if (rc < 0) return rc;
    *whole = mw_buf_slice(&f->buf);
  }
  return f->size <= f->buf.limit ? 1 : MW_ELIMIT;
}
