// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  DIGITS_SAFE = 15,     // this many significant digits survive a double
  LITERAL_MAX = 64,     // longer literals keep their text
  EXPONENT_MAX = 9999,  // far beyond any double
};

static const int64_t whole_max = (int64_t)1 << 53;  // every integer up to here is a double

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool mw_number_read_int(struct mw_slice text, struct mw_number *out) {
  const char *p = text.p;
  const char *end = text.p + text.n;
  bool negative = p < end && *p == '-';
  if (negative) p++;
  if (p == end) return false;
  uint64_t u = 0;
  for (; p < end; p++) {
    if (!is_digit(*p)) return false;
    uint64_t digit = (uint64_t)(*p - '0');
    if (u > (UINT64_MAX - digit) / 10) return false;
    u = 10 * u + digit;
  }
  if (negative && u > (uint64_t)INT64_MAX + 1) return false;
  bool fits = negative || u <= INT64_MAX;
  out->kind = fits ? MW_NUMBER_INT64 : MW_NUMBER_UINT64;
  out->u = u;
  out->i = (int64_t)(negative ? 0 - u : u);
  return true;
}

// A number as its significant digits and the power of ten: 0.digits * 10^exponent.
struct decimal {
  bool negative;
  long exponent;
  size_t n;
  char digits[LITERAL_MAX];
};

// text is a valid literal shorter than LITERAL_MAX.
static struct decimal decimal_of(const char *p) {
  struct decimal d = {.negative = *p == '-'};
  if (d.negative) p++;
  bool point = false;
  for (; is_digit(*p) || *p == '.'; p++) {
    if (*p == '.') {
      point = true;
      continue;
    }
    bool significant = d.n > 0 || *p != '0';
    if (significant) d.digits[d.n++] = *p;
    if (significant && !point) d.exponent++;
    if (!significant && point) d.exponent--;
  }
  while (d.n > 0 && d.digits[d.n - 1] == '0') d.n--;
  if (*p == 'e' || *p == 'E') {
    bool minus = p[1] == '-';
    long e = 0;
    for (p += p[1] == '-' || p[1] == '+' ? 2 : 1; is_digit(*p); p++) {
      if (e <= EXPONENT_MAX) e = 10 * e + (*p - '0');
    }
    d.exponent += minus ? -e : e;
  }
  if (d.n == 0) d.exponent = 0;
  return d;
}

static bool same_value(const char *a, const char *b) {
  struct decimal x = decimal_of(a);
  struct decimal y = decimal_of(b);
  return x.negative == y.negative && x.exponent == y.exponent && x.n == y.n &&
         memcmp(x.digits, y.digits, x.n) == 0;
}

static bool has_few_digits(struct mw_slice text) {
  return text.n <= DIGITS_SAFE && memchr(text.p, 'e', text.n) == NULL &&
         memchr(text.p, 'E', text.n) == NULL;
}

struct mw_number mw_number_read(struct mw_slice text, bool is_int) {
  struct mw_number number = {.kind = MW_NUMBER_TEXT};
  if (text.n >= LITERAL_MAX) return number;
  bool minus_zero = mw_slice_is(text, "-0");
  if (is_int && !minus_zero) {
    if (!mw_number_read_int(text, &number)) return number;
    bool small = number.kind == MW_NUMBER_INT64 && number.i >= -whole_max && number.i <= whole_max;
    if (!small) return number;
    number.kind = MW_NUMBER_DOUBLE;
    number.d = (double)number.i;
    return number;
  }
  char literal[LITERAL_MAX];
  memcpy(literal, text.p, text.n);
  literal[text.n] = '\0';
  number.d = strtod(literal, NULL);
  if (has_few_digits(text)) {
    number.kind = MW_NUMBER_DOUBLE;
    return number;
  }
  char written[MW_NUMBER_SIZE];
  if (!isfinite(number.d)) return number;
  mw_number_write(number.d, written);
  if (same_value(literal, written)) number.kind = MW_NUMBER_DOUBLE;
  return number;
}

size_t mw_number_write(double d, char out[MW_NUMBER_SIZE]) {
  if (d == 0 && signbit(d)) return (size_t)snprintf(out, MW_NUMBER_SIZE, "-0");
  if (d > -0x1p63 && d < 0x1p63 && d == trunc(d)) {
    return (size_t)snprintf(out, MW_NUMBER_SIZE, "%" PRId64, (int64_t)d);
  }
  int n = 0;
  bool subnormal = fabs(d) < DBL_MIN;  // has fewer digits to give
  for (int digits = subnormal ? 1 : DIGITS_SAFE; digits <= 17; digits++) {
    n = snprintf(out, MW_NUMBER_SIZE, "%.*g", digits, d);
    if (strtod(out, NULL) == d) break;
  }
  return (size_t)n;
}

size_t mw_number_write_go(double d, char out[MW_NUMBER_SIZE]) {
  size_t n = mw_number_write(d, out);
  if (d == trunc(d) && fabs(d) < 0x1p63) return n;
  struct decimal v = decimal_of(out);
  const char *sign = v.negative ? "-" : "";
  int digits = (int)v.n, point = (int)v.exponent;  // 0.digits * 10^point
  if (fabs(d) < 1e-6 || fabs(d) >= 1e21) {
    return (size_t)snprintf(out, MW_NUMBER_SIZE, "%s%.1s%s%.*se%+d", sign, v.digits,
                            digits > 1 ? "." : "", digits - 1, v.digits + 1, point - 1);
  }
  static const char zeros[] = "000000000000000000000";
  if (point <= 0) {
    return (size_t)snprintf(out, MW_NUMBER_SIZE, "%s0.%.*s%.*s", sign, -point, zeros, digits,
                            v.digits);
  }
  if (digits <= point) {
    return (size_t)snprintf(out, MW_NUMBER_SIZE, "%s%.*s%.*s", sign, digits, v.digits,
                            point - digits, zeros);
  }
  return (size_t)snprintf(out, MW_NUMBER_SIZE, "%s%.*s.%.*s", sign, point, v.digits, digits - point,
                          v.digits + point);
}
