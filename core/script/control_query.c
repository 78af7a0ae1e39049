// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "script/control_internal.h"

static int hex(char c) {
  static const char digits[] = "0123456789abcdef0123456789ABCDEF";
  const char *at = c != '\0' ? strchr(digits, c) : NULL;
  return at != NULL ? (int)((at - digits) % 16) : -1;
}

// Percent-decodes; false when it cannot be, or does not fit, or has a NUL in it.
static bool decode(struct mw_slice text, char out[MW_CONTROL_VALUE_MAX]) {
  size_t n = 0;
  for (size_t i = 0; i < text.n; i++) {
    int c = (unsigned char)text.p[i];
    if (c == '%') {
      if (i + 2 >= text.n || hex(text.p[i + 1]) < 0 || hex(text.p[i + 2]) < 0) return false;
      c = hex(text.p[i + 1]) * 16 + hex(text.p[i + 2]);
      i += 2;
    }
    if (c == 0 || n + 1 >= MW_CONTROL_VALUE_MAX) return false;
    out[n++] = (char)c;
  }
  out[n] = '\0';
  return true;
}

int mw_control_parameter(struct mw_exchange *x, const char *name, char out[MW_CONTROL_VALUE_MAX]) {
  struct mw_slice target = mw_exchange_target(x);
  const char *end = target.p + target.n, *p = memchr(target.p, '?', target.n);
  size_t n = strlen(name);
  while (p != NULL && ++p < end) {
    const char *stop = memchr(p, '&', (size_t)(end - p));
    size_t length = (size_t)((stop != NULL ? stop : end) - p);
    if (length > n && memcmp(p, name, n) == 0 && p[n] == '=') {
      if (decode(mw_slice(p + n + 1, length - n - 1), out)) return out[0] != '\0';
      mw_control_refuse(x, 400, "a value of the query cannot be decoded, or is too long");
      return MW_EINVAL;
    }
    p = stop;
  }
  out[0] = '\0';
  return 0;
}
