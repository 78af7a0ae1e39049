// SPDX-License-Identifier: Apache-2.0
// Messages of Lua with the line of the script that they name.
#include <stdlib.h>
#include <string.h>

#include "script/bundle_internal.h"

enum { TEXT_MAX = 16 * 1024 };

static const char cut[] = "...";  // how Lua begins a path that is too long for it

// The colon behind the path of "path:12: message", or NULL; *line is its number.
static const char *find_place(struct mw_slice first, size_t *line) {
  const char *end = first.p + first.n;
  for (const char *p = first.p; (p = memchr(p, ':', (size_t)(end - p))) != NULL; p++) {
    char *rest;
    if (p + 1 == end || p[1] < '1' || p[1] > '9') continue;
    *line = strtoul(p + 1, &rest, 10);
    if (rest + 1 < end && rest[0] == ':' && rest[1] == ' ') return p;
  }
  return NULL;
}

static bool is_path_of(const struct mw_bundle_file *file, struct mw_slice path) {
  size_t size = strlen(file->path);
  if (path.n == size && memcmp(path.p, file->path, size) == 0) return true;
  size_t n = sizeof cut - 1;
  if (path.n <= n || memcmp(path.p, cut, n) != 0 || path.n - n > size) return false;
  return memcmp(path.p + n, file->path + size - (path.n - n), path.n - n) == 0;
}

static const struct mw_bundle_file *find_file(const struct mw_bundle *b, struct mw_slice path) {
  for (size_t i = 0; b != NULL && i < mw_bundle_count(b); i++)
    if (is_path_of(mw_bundle_at(b, i), path)) return mw_bundle_at(b, i);
  return NULL;
}

int mw_bundle_explain(const struct mw_bundle *b, const char *text, struct mw_buf *out) {
  const char *stack = strstr(text, "\nstack traceback:"), *end = text + strnlen(text, TEXT_MAX);
  if (stack != NULL && stack > end) stack = NULL;
  size_t n = stack != NULL ? (size_t)(stack - text) : (size_t)(end - text), line = 0;
  const char *newline = memchr(text, '\n', n);
  struct mw_slice first = mw_slice(text, newline != NULL ? (size_t)(newline - text) : n);
  const char *colon = find_place(first, &line);
  const struct mw_bundle_file *file =
      colon != NULL ? find_file(b, mw_slice(text, (size_t)(colon - text))) : NULL;
  if (file == NULL) return mw_buf_add(out, text, (size_t)(end - text));
  int rc = mw_buf_printf(out, "%s%.*s\n", file->path, (int)(text + n - colon), colon);
  if (rc == 0) rc = mw_bundle_show_line(out, file, line);
  if (rc < 0) return rc;
  if (stack != NULL) return mw_buf_add(out, stack + 1, (size_t)(end - stack - 1));
  out->p[--out->n] = '\0';
  return 0;
}
