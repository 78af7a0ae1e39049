// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"

#include <stdio.h>
#include <string.h>

const char *mw_err_name(int code) {
  switch (code) {
    case MW_OK:
      return "OK";
#define X(name, number, text) \
  case number:                \
    return #name;
      MW_ERR_MAP(X)
#undef X
    default:
      return "EUNKNOWN";
  }
}

const char *mw_err_text(int code) {
  switch (code) {
    case MW_OK:
      return "ok";
#define X(name, number, text) \
  case number:                \
    return text;
      MW_ERR_MAP(X)
#undef X
    default:
      return "unknown error";
  }
}

// Cuts a partial UTF-8 sequence off the end of a full buffer.
static void trim_utf8(char *s) {
  size_t n = strlen(s);
  size_t back = 0;
  while (back < 3 && n > back && ((unsigned char)s[n - 1 - back] & 0xC0) == 0x80) back++;
  if (n <= back) return;
  unsigned char lead = (unsigned char)s[n - 1 - back];
  size_t need = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
  if (need > back) s[n - 1 - back] = '\0';
}

int mw_err_vset(struct mw_err *err, int code, const char *fmt, va_list args) {
  if (err == NULL) return code;
  err->code = code;
  err->http_status = 0;
  int n = vsnprintf(err->message, sizeof err->message, fmt, args);
  if (n >= (int)sizeof err->message) trim_utf8(err->message);
  return code;
}

int mw_err_set(struct mw_err *err, int code, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  mw_err_vset(err, code, fmt, args);
  va_end(args);
  return code;
}
