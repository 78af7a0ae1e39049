// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>

#include "script/bundle_internal.h"

enum { NAME_MAX_BYTES = 200 };

// What a script has without any file: see lua/kube/_env.lua.
static const char *const builtin[] = {"kube", "cjson", "cjson.safe", "string", "table",
                                      "math", "os",    "coroutine",  "debug",  "bit",
                                      "_G",   "io",    "package",    "jit",    "ffi"};

static bool is_builtin(struct mw_slice name) {
  for (size_t i = 0; i < sizeof builtin / sizeof builtin[0]; i++)
    if (mw_slice_is(name, builtin[i])) return true;
  return name.n > 5 && memcmp(name.p, "kube.", 5) == 0;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static bool is_name(struct mw_slice s) {
  if (s.n == 0 || s.n > NAME_MAX_BYTES || s.p[0] == '.' || s.p[s.n - 1] == '.') return false;
  for (size_t i = 0; i < s.n; i++) {
    if (!is_word(s.p[i]) && s.p[i] != '-' && s.p[i] != '.') return false;
    if (s.p[i] == '.' && s.p[i - 1] == '.') return false;
  }
  return true;
}

static void skip(struct mw_slice *s, size_t n) {
  s->p += n;
  s->n -= n;
}

static void skip_space(struct mw_slice *s) {
  while (s->n > 0 && isspace((unsigned char)s->p[0])) skip(s, 1);
}

// 'x', "x" or [[x]] at the start of s.
static bool take_literal(struct mw_slice *s, struct mw_slice *name) {
  if (s->n < 2) return false;
  char close = s->p[0];
  size_t opening = 1;
  if (s->p[0] == '[' && s->p[1] == '[') {
    close = ']';
    opening = 2;
  } else if (close != '"' && close != '\'') {
    return false;
  }
  skip(s, opening);
  // No further than a name can reach: else a text of nothing but openings takes for ever.
  const char *end = memchr(s->p, close, s->n > NAME_MAX_BYTES ? NAME_MAX_BYTES + 1 : s->n);
  if (end == NULL) return false;
  *name = mw_slice(s->p, (size_t)(end - s->p));
  return true;
}

bool mw_bundle_next_require(struct mw_slice *source, struct mw_slice *name) {
  static const char word[] = "require";
  const size_t length = sizeof word - 1;
  const char *start = source->p;
  while (source->n > 0) {
    const char *found = memmem(source->p, source->n, word, length);
    if (found == NULL) break;
    skip(source, (size_t)(found - source->p) + length);
    if (found > start && is_word(found[-1])) continue;
    struct mw_slice rest = *source;
    skip_space(&rest);
    if (rest.n > 0 && (rest.p[0] == '(' || rest.p[0] == ',')) skip(&rest, 1);
    skip_space(&rest);
    if (take_literal(&rest, name) && is_name(*name) && !is_builtin(*name)) return true;
  }
  *source = mw_slice(source->p + source->n, 0);
  return false;
}
