// SPDX-License-Identifier: Apache-2.0
#include "wire/scan.h"

#include <string.h>

#include "base/buf.h"
#include "wire/json.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

static const char unexpected_end[] = "unexpected end";

bool mw_narrow;

int mw_walk_fail(struct mw_walk *w, const char *p, enum mw_fault fault, const char *why) {
  w->p = p;
  w->fault = fault;
  w->why = why;
  return fault == MW_FAULT_LIMIT ? MW_ELIMIT : MW_EPARSE;
}

int mw_fault_report(struct mw_err *err, enum mw_fault fault, const char *why, uint64_t offset) {
  unsigned long long at = offset;
  switch (fault) {
    case MW_FAULT_UTF8:
      return mw_err_set(err, MW_EPARSE, "invalid UTF-8 at byte %llu", at);
    case MW_FAULT_SHAPE:
      return mw_err_set(err, MW_EPARSE, "unexpected content at byte %llu: %s", at, why);
    case MW_FAULT_LIMIT:
      return mw_err_set(err, MW_ELIMIT, "limit exceeded at byte %llu: %s", at, why);
    case MW_FAULT_SYNTAX:
    default:
      return mw_err_set(err, MW_EPARSE, "malformed JSON at byte %llu: %s", at, why);
  }
}

// Syntax error at p, or the end of the input there.
static int expected(struct mw_walk *w, const char *p, const char *why) {
  return mw_walk_fail(w, p, MW_FAULT_SYNTAX, p < w->end ? why : unexpected_end);
}

void mw_walk_flush(struct mw_walk *w, const char *to) {
  if (w->out != NULL) {
    size_t n = (size_t)(to - w->run);
    memcpy(w->out, w->run, n);
    w->out += n;
  }
  w->run = w->p;
}

static inline bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

bool mw_walk_pass_blank(struct mw_walk *w) {
  const char *p = w->p;
  while (p < w->end && is_space(*p)) p++;
  bool any = p > w->p;
  w->p = p;
  return any;
}

bool mw_walk_pass_space(struct mw_walk *w) {
  const char *from = w->p;
  if (!mw_walk_pass_blank(w)) return false;
  mw_walk_flush(w, from);
  return true;
}

// The same for a position at hand; false most of the time, so the call is kept out of the way.
static inline const char *space(struct mw_walk *w, const char *p) {
  if (__builtin_expect(p < w->end && (unsigned char)*p <= ' ', 0)) {
    w->p = p;
    mw_walk_space(w);
    return w->p;
  }
  return p;
}

size_t mw_utf8_sequence(const char *s, const char *end) {
  const unsigned char *p = (const unsigned char *)s;
  size_t left = (size_t)(end - s);
  unsigned char lo = 0x80;
  unsigned char hi = 0xBF;
  size_t n;
  if (p[0] >= 0xC2 && p[0] <= 0xDF) {
    n = 2;
  } else if (p[0] >= 0xE0 && p[0] <= 0xEF) {
    n = 3;
    if (p[0] == 0xE0) lo = 0xA0;  // overlong below
    if (p[0] == 0xED) hi = 0x9F;  // surrogates above
  } else if (p[0] >= 0xF0 && p[0] <= 0xF4) {
    n = 4;
    if (p[0] == 0xF0) lo = 0x90;
    if (p[0] == 0xF4) hi = 0x8F;  // beyond U+10FFFF
  } else {
    return 0;
  }
  if (left < n || p[1] < lo || p[1] > hi) return 0;
  for (size_t i = 2; i < n; i++) {
    if ((p[i] & 0xC0) != 0x80) return 0;
  }
  return n;
}

#ifdef __x86_64__
// Bytes are classified 64 at a time, ahead of the cursor: the next stop is then a shift and a bit
// scan away, whereas a comparison per string would make each string wait for the one before.
static inline uint64_t stops16(const char *p) {
  __m128i x = _mm_loadu_si128((const __m128i *)p);
  __m128i quote = _mm_cmpeq_epi8(x, _mm_set1_epi8('"'));
  __m128i backslash = _mm_cmpeq_epi8(x, _mm_set1_epi8('\\'));
  // The signed comparison catches control characters and every byte from 0x80 on.
  __m128i other = _mm_cmplt_epi8(x, _mm_set1_epi8(0x20));
  return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), other));
}

static inline uint64_t stops64(const char *p) {
  return stops16(p) | stops16(p + 16) << 16 | stops16(p + 32) << 32 | stops16(p + 48) << 48;
}

MW_WIDE static inline uint64_t stops32(const char *p) {
  __m256i x = _mm256_loadu_si256((const __m256i *)p);
  __m256i quote = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('"'));
  __m256i backslash = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('\\'));
  __m256i other = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), x);
  return (unsigned)_mm256_movemask_epi8(_mm256_or_si256(_mm256_or_si256(quote, backslash), other));
}

MW_WIDE static inline uint64_t stops64_wide(const char *p) {
  return stops32(p) | stops32(p + 32) << 32;
}

// Not inlined: what they prepare takes longer than a call, when it is for one block.
MW_WIDE static __attribute__((noinline)) uint64_t stops_wide(const char *p) {
  return stops64_wide(p);
}

static __attribute__((noinline)) uint64_t stops_narrow(const char *p) { return stops64(p); }

static const char *first_stop(struct mw_walk *w, const char *block, uint64_t stops) {
  w->block = block;
  w->stops = stops;
  return block + __builtin_ctzll(stops);
}

// In the last block what is behind the end counts as a stop.
static __attribute__((noinline)) const char *pass_tail(struct mw_walk *w, const char *p) {
  char block[64] = {0};
  memcpy(block, p, (size_t)(w->end - p));
  return first_stop(w, p, stops_narrow(block));
}

const char *mw_walk_pass_plain(struct mw_walk *w, const char *p) {
  const bool wide = mw_is_wide();
  // What is left of the block has no stop, or p would not be here.
  if ((uintptr_t)p - (uintptr_t)w->block < 64) p = w->block + 64;
  for (; w->end - p >= 64; p += 64) {
    uint64_t stops = wide ? stops_wide(p) : stops_narrow(p);
    if (stops != 0) return first_stop(w, p, stops);
  }
  return p < w->end ? pass_tail(w, p) : w->end;
}

const char *mw_walk_short_text(const char *p, const char *end) {
  for (int i = 0; i < 2 && end - p >= 16; i++, p += 16) {
    uint64_t stops = stops16(p);
    if (stops == 0) continue;
    p += __builtin_ctzll(stops);
    return *p == '"' ? p : NULL;
  }
  return NULL;
}
#else
static inline bool is_plain(char c) { return (signed char)c >= 0x20 && c != '"' && c != '\\'; }

const char *mw_walk_pass_plain(struct mw_walk *w, const char *p) {
  while (p < w->end && is_plain(*p)) p++;
  return p;
}

const char *mw_walk_short_text(const char *p, const char *end) {
  (void)p;
  (void)end;
  return NULL;
}
#endif

static inline bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// p stands behind a backslash. Behind the escape, or NULL.
static const char *escape(struct mw_walk *w, const char *p) {
  if (p < w->end && *p == 'u') {
    p++;
    for (int i = 0; i < 4; i++, p++) {
      if (p < w->end && is_hex(*p)) continue;
      expected(w, p, "expected four hexadecimal digits");
      return NULL;
    }
    return p;
  }
  if (p < w->end && *p != '\0' && strchr("\"\\/bfnrt", *p) != NULL) return p + 1;
  expected(w, p, "unknown escape");
  return NULL;
}

// p stands in a string, at something that is not plain. Behind its closing quote, or NULL.
static const char *string_rest(struct mw_walk *w, const char *p) {
  const char *end = w->end;
  for (;; p = mw_walk_plain(w, p)) {
    if (p == end) {
      expected(w, p, NULL);
      return NULL;
    }
    if (*p == '"') return p + 1;
    if (*p == '\\') {
      p = escape(w, p + 1);
      if (p == NULL) return NULL;
    } else if ((signed char)*p >= 0) {
      expected(w, p, "control character in a string");
      return NULL;
    } else {
      size_t n = mw_utf8_sequence(p, end);
      if (n == 0) {
        mw_walk_fail(w, p, MW_FAULT_UTF8, "invalid UTF-8");
        return NULL;
      }
      p += n;
    }
  }
}

// p stands behind the opening quote. Behind the closing one, or NULL.
static inline const char *string(struct mw_walk *w, const char *p) {
  p = mw_walk_plain(w, p);
  if (__builtin_expect(p < w->end && *p == '"', 1)) return p + 1;
  return string_rest(w, p);
}

static inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// At least one digit. Behind the digits, or NULL.
static const char *digits(struct mw_walk *w, const char *p) {
  if (p == w->end || !is_digit(*p)) {
    expected(w, p, "expected a digit");
    return NULL;
  }
  while (p < w->end && is_digit(*p)) p++;
  return p;
}

static const char *number(struct mw_walk *w, const char *p, bool *is_int) {
  const char *end = w->end;
  *is_int = true;
  if (p < end && *p == '-') p++;
  if (p < end && *p == '0') {
    p++;
  } else {
    p = digits(w, p);
    if (p == NULL) return NULL;
  }
  if (p < end && *p == '.') {
    *is_int = false;
    p = digits(w, p + 1);
    if (p == NULL) return NULL;
  }
  if (p < end && (*p == 'e' || *p == 'E')) {
    *is_int = false;
    p++;
    if (p < end && (*p == '+' || *p == '-')) p++;
    p = digits(w, p);
  }
  return p;
}

static const char *literal(struct mw_walk *w, const char *p, const char *text) {
  for (; *text != '\0'; text++, p++) {
    if (p < w->end && *p == *text) continue;
    expected(w, p, "expected a value");
    return NULL;
  }
  return p;
}

// Anything but a string, an object or an array; the end of the input is none of them.
static const char *scalar(struct mw_walk *w, const char *p) {
  bool is_int;
  switch (p < w->end ? *p : '\0') {
    case 't':
      return literal(w, p, "true");
    case 'f':
      return literal(w, p, "false");
    case 'n':
      return literal(w, p, "null");
    case '-':
      return number(w, p, &is_int);
    default:
      if (p < w->end && is_digit(*p)) return number(w, p, &is_int);
      expected(w, p, "expected a value");
      return NULL;
  }
}

const char *mw_walk_text(struct mw_walk *w, const char *p) {
  const char *quote = mw_walk_short_text(p, w->end);
  return quote != NULL ? quote + 1 : string(w, p);
}

const char *mw_walk_scalar(struct mw_walk *w, const char *p) { return scalar(w, p); }

// Where mw_walk_value() has got to.
enum place {
  AT_VALUE = 0,
  AT_FIRST,     // behind an opening bracket
  AT_KEY,       // a member name must follow
  AT_COLON,     // ':' must follow
  BEHIND_VALUE  // a comma or the closing bracket must follow, unless that was all
};

struct trail {
  const char *p;
  enum place place;
  unsigned depth;                       // how many containers are open,
  unsigned base;                        // and how many were at the beginning
  char closing[MW_JSON_DEPTH_MAX + 1];  // per level, the bracket that closes it
};

static inline bool at(const struct mw_walk *w, const char *p, char c) {
  return p < w->end && *p == c;
}

// Goes on from where t is, minding the end and white space everywhere.
static int walk_carefully(struct mw_walk *w, struct trail *t) {
  const char *p = t->p;
  switch (t->place) {
    case AT_VALUE:
      goto value;
    case AT_FIRST:
      goto first;
    case AT_KEY:
      goto key;
    case AT_COLON:
      goto colon;
    case BEHIND_VALUE:
      goto behind;
  }
value:
  p = space(w, p);
  if (at(w, p, '"')) {
    p = string(w, p + 1);
    if (p == NULL) return MW_EPARSE;
  } else if (at(w, p, '{') || at(w, p, '[')) {
    if (t->depth == MW_JSON_DEPTH_MAX) {
      return mw_walk_fail(w, p, MW_FAULT_LIMIT, "nested deeper than 256 levels");
    }
    t->closing[++t->depth] = *p++ == '{' ? '}' : ']';
  first:
    p = space(w, p);
    if (at(w, p, t->closing[t->depth])) goto close;
    if (t->closing[t->depth] == '}') goto key;
    goto value;
  } else {
    p = scalar(w, p);
    if (p == NULL) return MW_EPARSE;
  }
behind:
  if (t->depth == t->base) {
    w->p = p;
    return 0;
  }
  p = space(w, p);
  if (at(w, p, ',')) {
    p++;
    if (t->closing[t->depth] == ']') goto value;
    goto key;
  }
  if (!at(w, p, t->closing[t->depth])) {
    return expected(w, p,
                    t->closing[t->depth] == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
  }
close:
  p++;
  t->depth--;
  goto behind;
key:
  p = space(w, p);
  if (!at(w, p, '"')) return expected(w, p, "expected a member name");
  p = string(w, p + 1);
  if (p == NULL) return MW_EPARSE;
colon:
  p = space(w, p);
  if (!at(w, p, ':')) return expected(w, p, "expected ':'");
  p++;
  goto value;
}

#ifdef __x86_64__
// How many blocks without a string are looked over for the next one. It may belong to another
// value, and who goes from value to value would look over the same blocks again and again.
enum { AHEAD_MAX = 16 };

// The stops of what lies ahead.
struct ahead {
  const char *block;  // 64 bytes, with one more behind them
  uint64_t left;      // its stops, without those that were passed
  const char *stop;   // the one that was taken last
};

// Looks ahead from p; false near the end.
static inline __attribute__((always_inline)) bool look_ahead(struct mw_walk *w, const char *p,
                                                             struct ahead *a) {
  uintptr_t in = (uintptr_t)p - (uintptr_t)w->block;
  if (in >= 64) in = 0;
  a->block = p - in;
  if (w->end - a->block <= 64) return false;
  if (in == 0) {
    w->block = p;
    w->stops = stops64(p);
  }
  a->left = w->stops >> in << in;
  return true;
}

// Takes the next stop, at most so many blocks further on; false when there is none, and near the
// end.
static inline __attribute__((always_inline)) bool next_stop(const struct mw_walk *w,
                                                            struct ahead *a, size_t blocks,
                                                            bool wide) {
  while (__builtin_expect(a->left == 0, 0)) {
    a->block += 64;
    if (__builtin_expect(w->end - a->block <= 64 || blocks-- == 0, 0)) return false;
    a->left = wide ? stops64_wide(a->block) : stops64(a->block);
  }
  a->stop = a->block + __builtin_ctzll(a->left);
  a->left &= a->left - 1;
  return true;
}

// Behind the string that begins at the last stop; NULL when that is for the careful walker.
static inline __attribute__((always_inline)) const char *pass_string(struct mw_walk *w,
                                                                     struct ahead *a, bool wide) {
  if (!next_stop(w, a, SIZE_MAX, wide)) return NULL;
  if (__builtin_expect(*a->stop == '"', 1)) return a->stop + 1;
  const char *p = string_rest(w, a->stop);
  return p != NULL && look_ahead(w, p, a) ? p : NULL;
}

// Goes from string to string, as long as there is no white space and the end is not near: what is
// between two strings holds no stop, so that bytes up to the next one can be looked at without
// minding the end. True when that was all; otherwise the careful walker has to go on, and find what
// is wrong if something is.
static inline __attribute__((always_inline)) bool hurry(struct mw_walk *w, struct trail *t,
                                                        bool wide) {
  struct ahead a;
  const char *p = t->p;
  const char *behind;
  unsigned depth = t->depth;
  char closing = 0;
  enum place place;
  if (!look_ahead(w, p, &a) || !next_stop(w, &a, AHEAD_MAX, wide)) return false;
value:
  place = AT_VALUE;
  if (p == a.stop) {
    if (*p != '"' || (behind = pass_string(w, &a, wide)) == NULL) goto stuck;
    p = behind;
    place = BEHIND_VALUE;
    if (!next_stop(w, &a, AHEAD_MAX, wide)) goto stuck;
  } else if (*p == '{' || *p == '[') {
    if (depth == MW_JSON_DEPTH_MAX) goto stuck;
    closing = *p++ == '{' ? '}' : ']';
    t->closing[++depth] = closing;
    place = AT_FIRST;
    if ((unsigned char)*p <= ' ') goto stuck;
    if (*p == closing) goto close;
    if (closing == ']') goto value;
    goto key;
  } else {
    if ((behind = scalar(w, p)) == NULL) goto stuck;  // white space is none
    p = behind;
  }
behind:
  if (depth == t->base) {
    w->p = p;
    return true;
  }
  if (*p == ',') {
    p++;
    if (closing == ']') goto value;
    place = AT_KEY;
    goto key;
  }
  place = BEHIND_VALUE;
  if (*p != closing) goto stuck;
close:
  p++;
  closing = t->closing[--depth];
  goto behind;
key:
  if (p != a.stop || *p != '"' || (behind = pass_string(w, &a, wide)) == NULL) goto stuck;
  p = behind;
  place = AT_COLON;
  if (!next_stop(w, &a, AHEAD_MAX, wide) || *p != ':') goto stuck;
  p++;
  goto value;
stuck:
  t->p = p;
  t->place = place;
  t->depth = depth;
  return false;
}

MW_WIDE static bool hurry_wide(struct mw_walk *w, struct trail *t) { return hurry(w, t, true); }

static bool hurry_narrow(struct mw_walk *w, struct trail *t) { return hurry(w, t, false); }

static bool walk_fast(struct mw_walk *w, struct trail *t) {
  return mw_is_wide() ? hurry_wide(w, t) : hurry_narrow(w, t);
}
#else
static bool walk_fast(struct mw_walk *w, struct trail *t) {
  (void)w;
  (void)t;
  return false;
}
#endif

int mw_walk_value(struct mw_walk *w, unsigned depth) {
  if (at(w, w->p, '"')) {
    const char *behind = string(w, w->p + 1);
    if (behind == NULL) return MW_EPARSE;
    w->p = behind;
    return 0;
  }
  struct trail t;
  t.p = w->p;
  t.place = AT_VALUE;
  t.depth = t.base = depth - 1;
  t.closing[t.base] = 0;
  if ((at(w, t.p, '{') || at(w, t.p, '[')) && walk_fast(w, &t)) return 0;
  return walk_carefully(w, &t);
}

int mw_walk_any_string(struct mw_walk *w, struct mw_slice *raw, bool *escaped) {
  const char *p = w->p;
  if (p == w->end || *p != '"') return expected(w, p, "expected a string");
  const char *from = p + 1;
  const char *special = mw_walk_plain(w, from);
  p = string_rest(w, special);
  if (p == NULL) return MW_EPARSE;
  *raw = mw_slice(from, (size_t)(p - 1 - from));
  *escaped = memchr(special, '\\', (size_t)(p - special)) != NULL;
  w->p = p;
  return 0;
}

int mw_walk_number(struct mw_walk *w, bool *is_int) {
  const char *p = number(w, w->p, is_int);
  if (p == NULL) return MW_EPARSE;
  w->p = p;
  return 0;
}

int mw_walk_member(struct mw_walk *w, bool *first, struct mw_slice *key, bool *escaped) {
  mw_walk_space(w);
  if (at(w, w->p, '}')) {
    w->p++;
    return 0;
  }
  if (!*first) {
    if (!at(w, w->p, ',')) return expected(w, w->p, "expected ',' or '}'");
    w->p++;
    mw_walk_space(w);
  }
  *first = false;
  if (!at(w, w->p, '"')) return expected(w, w->p, "expected a member name");
  int rc = mw_walk_string(w, key, escaped);
  if (rc < 0) return rc;
  mw_walk_space(w);
  if (!at(w, w->p, ':')) return expected(w, w->p, "expected ':'");
  w->p++;
  mw_walk_space(w);
  if (w->p == w->end) return expected(w, w->p, NULL);
  return 1;
}

int mw_walk_element(struct mw_walk *w, bool *first) {
  mw_walk_space(w);
  if (at(w, w->p, ']')) {
    w->p++;
    return 0;
  }
  if (!*first) {
    if (!at(w, w->p, ',')) return expected(w, w->p, "expected ',' or ']'");
    w->p++;
    mw_walk_space(w);
  }
  *first = false;
  if (w->p == w->end) return expected(w, w->p, NULL);
  return 1;
}
