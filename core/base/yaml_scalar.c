// SPDX-License-Identifier: Apache-2.0
#include "base/yaml_scalar.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 128 };  // a longer word is no number

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_one_of(struct mw_slice s, const char *const *words) {
  for (; *words != NULL; words++)
    if (mw_slice_is(s, *words)) return true;
  return false;
}

// The words with a meaning of their own. False when it is none.
static bool resolve_word(struct mw_slice s, struct mw_yaml_scalar *out) {
  static const char *const yes[] = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                    "True", "TRUE", "on",  "On",  "ON",  NULL};
  static const char *const no[] = {"n",     "N",     "no",  "No",  "NO",  "false",
                                   "False", "FALSE", "off", "Off", "OFF", NULL};
  static const char *const null[] = {"", "~", "null", "Null", "NULL", NULL};
  static const char *const nan[] = {".nan", ".NaN", ".NAN", NULL};
  static const char *const infinity[] = {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", NULL};
  static const char *const minus_infinity[] = {"-.inf", "-.Inf", "-.INF", NULL};
  if (s.n > 5) return false;
  if (is_one_of(s, null)) {
    out->kind = MW_YAML_NULL;
  } else if (is_one_of(s, yes) || is_one_of(s, no)) {
    out->kind = MW_YAML_BOOL;
    out->b = is_one_of(s, yes);
  } else if (is_one_of(s, nan) || is_one_of(s, infinity) || is_one_of(s, minus_infinity)) {
    out->kind = MW_YAML_FLOAT;
    out->d = is_one_of(s, nan) ? NAN : is_one_of(s, infinity) ? INFINITY : -INFINITY;
  } else if (mw_slice_is(s, "<<")) {
    out->kind = MW_YAML_MERGE;
  } else {
    return false;
  }
  return true;
}

static int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

// Go's base 0: 0x, 0o, 0b or a leading 0 for octal, after an optional sign.
static bool resolve_int(const char *p, struct mw_yaml_scalar *out) {
  bool minus = *p == '-', sign = minus || *p == '+';
  if (sign) p++;
  unsigned base = 10;
  if (p[0] == '0' && p[1] != '\0') {
    char mark = (char)(p[1] | 0x20);
    base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
    p += mark == 'x' || mark == 'b' || mark == 'o' ? 2 : 1;
  }
  if (*p == '\0') return false;
  uint64_t u = 0;
  for (; *p != '\0'; p++) {
    unsigned digit = (unsigned)digit_value(*p);
    if (digit >= base || __builtin_mul_overflow(u, (uint64_t)base, &u) ||
        __builtin_add_overflow(u, (uint64_t)digit, &u)) {
      return false;
    }
  }
  if (u > (uint64_t)INT64_MAX + (minus ? 1 : 0)) {
    *out = (struct mw_yaml_scalar){.kind = MW_YAML_UINT, .u = u};
    return !sign;
  }
  *out = (struct mw_yaml_scalar){.kind = MW_YAML_INT, .i = minus ? (int64_t)(0 - u) : (int64_t)u};
  return true;
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
static bool resolve_float(const char *text, struct mw_yaml_scalar *out) {
  const char *p = text;
  if (*p == '-' || *p == '+') p++;
  const char *whole = p;
  while (is_digit(*p)) p++;
  bool digits = p > whole;
  if (*p == '.') {
    const char *fraction = ++p;
    while (is_digit(*p)) p++;
    digits = digits || p > fraction;
  }
  if (!digits) return false;
  if (*p == 'e' || *p == 'E') {
    p++;
    if (*p == '-' || *p == '+') p++;
    if (!is_digit(*p)) return false;
    while (is_digit(*p)) p++;
  }
  if (*p != '\0') return false;
  double d = strtod(text, NULL);
  if (!isfinite(d)) return false;
  *out = (struct mw_yaml_scalar){.kind = MW_YAML_FLOAT, .d = d};
  return true;
}

// A run of one or two digits no larger than max; moves *p behind it.
static bool take_part(const char **p, int max) {
  if (!is_digit(**p)) return false;
  int v = *(*p)++ - '0';
  if (is_digit(**p)) v = 10 * v + (*(*p)++ - '0');
  return v <= max;
}

// A zone: Z, or an offset such as +02:00.
static bool take_zone(const char **p) {
  if (**p == 'Z') {
    (*p)++;
    return true;
  }
  if (**p != '+' && **p != '-') return false;
  (*p)++;
  return take_part(p, 24) && *(*p)++ == ':' && take_part(p, 60);
}

// 2006-1-2, 2006-1-2T15:4:5[.9]Z07:00 and 2006-1-2 15:4:5[.9].
static bool is_timestamp(const char *p) {
  for (int i = 0; i < 4; i++)
    if (!is_digit(*p++)) return false;
  if (*p++ != '-' || !take_part(&p, 12) || *p++ != '-' || !take_part(&p, 31)) return false;
  if (*p == '\0') return true;
  char between = *p++;
  if (between != 'T' && between != 't' && between != ' ') return false;
  if (!take_part(&p, 23) || *p++ != ':' || !take_part(&p, 59) || *p++ != ':') return false;
  if (!take_part(&p, 59)) return false;
  if (*p == '.') {
    if (!is_digit(*++p)) return false;
    while (is_digit(*p)) p++;
  }
  if (between != ' ' && !take_zone(&p)) return false;
  return *p == '\0';
}

struct mw_yaml_scalar mw_yaml_resolve(struct mw_slice text) {
  struct mw_yaml_scalar out = {.kind = MW_YAML_STRING};
  if (resolve_word(text, &out)) return out;
  char first = text.p[0];
  if (text.n >= NUMBER_MAX || memchr(text.p, '\0', text.n) != NULL) return out;
  if (!is_digit(first) && first != '+' && first != '-' && first != '.') return out;
  char plain[NUMBER_MAX];
  size_t n = 0;
  memcpy(plain, text.p, text.n);
  plain[text.n] = '\0';
  if (is_timestamp(plain)) {
    out.kind = MW_YAML_TIME;
    return out;
  }
  for (size_t i = 0; i < text.n; i++) {
    if (text.p[i] != '_' || first == '.') plain[n++] = text.p[i];
  }
  plain[n] = '\0';
  if (first != '.' && resolve_int(plain, &out)) return out;
  if (!resolve_float(plain, &out)) out.kind = MW_YAML_STRING;
  return out;
}
