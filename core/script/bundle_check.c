// SPDX-License-Identifier: Apache-2.0
// Compiles all files of a bundle for the errors. A message of Lua's parser has a line and the token
// that it did not expect, but no column: that is found by compiling only as much as ends with the
// token, for each place where the line has it. The first that fails with the same message is it, if
// it does so with one byte more as well: else it is the head of a longer token.
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <stdlib.h>

#include "script/bundle_internal.h"

enum {
  MESSAGE_ROOM = 512,
  TOKEN_ROOM = 80,
  TRIES_MAX = 8,                  // places in a line that are tried
  TRIED_BYTES_MAX = 1024 * 1024,  // files that are larger take too long to be compiled so often
  WIDTH_MAX = 120,                // bytes of a line that are shown
};

struct fault {
  const struct mw_bundle_file *file;
  char message[MESSAGE_ROOM];  // without file and line
  size_t line;                 // 0: none
  char token[TOKEN_ROOM];      // not expected there; "" when unknown
};

// A byte of the source as it may be printed.
static char shown(char c) { return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f ? '?' : c; }

// Compiles the first n bytes; true and *f (but its file) when that fails.
static bool compile(lua_State *L, const struct mw_bundle_file *file, size_t n, struct fault *f) {
  *f = (struct fault){.file = file};
  bool failed = luaL_loadbufferx(L, file->text, n, "=f", "t") != 0;
  if (failed) {
    const char *text = lua_tostring(L, -1);
    char *rest;
    if (text == NULL) text = "cannot be compiled";
    if (strncmp(text, "f:", 2) == 0) {
      f->line = strtoul(text + 2, &rest, 10);
      text = rest[0] == ':' && rest[1] == ' ' ? rest + 2 : rest;
    }
    snprintf(f->message, sizeof f->message, "%s", text);
    const char *near = strstr(f->message, " near '");
    size_t length = near != NULL ? strlen(near + 7) : 0;
    if (length > 1) snprintf(f->token, sizeof f->token, "%.*s", (int)length - 1, near + 7);
    for (char *p = f->message; *p != '\0'; p++) *p = shown(*p);
  }
  lua_settop(L, 0);
  return failed;
}

// The text of a line, without its end; lines beyond the last are the last.
static struct mw_slice line_at(const struct mw_bundle_file *file, size_t number) {
  const char *p = file->text, *end = file->text + file->size;
  for (size_t i = 1;; i++) {
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    if (i == number || newline == NULL) {
      const char *stop = newline != NULL ? newline : end;
      if (stop > p && stop[-1] == '\r') stop--;
      return mw_slice(p, (size_t)(stop - p));
    }
    p = newline + 1;
  }
}

static size_t first_not_blank(struct mw_slice line) {
  size_t i = 0;
  while (i < line.n && (line.p[i] == ' ' || line.p[i] == '\t')) i++;
  return i < line.n ? i : 0;
}

// Whether the first n bytes fail as the whole does.
static bool fails_alike(lua_State *L, const struct fault *f, size_t n) {
  struct fault part;
  if (n > f->file->size) n = f->file->size;
  return compile(L, f->file, n, &part) && part.line == f->line &&
         strcmp(part.message, f->message) == 0;
}

// Where in the line the token is that was not expected; its start when that cannot be told.
static size_t find_column(lua_State *L, const struct fault *f, struct mw_slice line) {
  size_t n = f->file->size <= TRIED_BYTES_MAX ? strlen(f->token) : 0;
  const char *p = line.p, *end = line.p + line.n;
  for (int i = 0; n > 0 && i < TRIES_MAX; i++) {
    const char *found = memmem(p, (size_t)(end - p), f->token, n);
    if (found == NULL) break;
    size_t size = (size_t)(found + n - f->file->text);
    if (fails_alike(L, f, size) && fails_alike(L, f, size + 1)) return (size_t)(found - line.p);
    p = found + 1;
  }
  return first_not_blank(line);
}

static bool is_continuation(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

// The line, or of a long one what is around the column; and a mark below the column.
static int show_line(struct mw_buf *out, size_t number, struct mw_slice line,
                     const size_t *column) {
  size_t start = 0, mark = column != NULL ? *column : 0;
  if (mark > WIDTH_MAX - 20) start = mark - WIDTH_MAX / 2;
  while (start > 0 && is_continuation(line.p[start])) start--;
  size_t stop = line.n - start > WIDTH_MAX ? start + WIDTH_MAX : line.n;
  while (stop > start && stop < line.n && is_continuation(line.p[stop])) stop--;
  int rc = mw_buf_printf(out, "%6zu | ", number);
  for (size_t i = start; rc == 0 && i < stop; i++) {
    char c = shown(line.p[i]);
    rc = mw_buf_add(out, &c, 1);
  }
  if (rc == 0) rc = mw_buf_add(out, "\n", 1);
  if (rc < 0 || column == NULL) return rc;
  rc = mw_buf_printf(out, "%6s | ", "");
  for (size_t i = start; rc == 0 && i < mark; i++) {
    if (!is_continuation(line.p[i])) rc = mw_buf_add(out, line.p[i] == '\t' ? "\t" : " ", 1);
  }
  return rc < 0 ? rc : mw_buf_add(out, "^\n", 2);
}

int mw_bundle_show_line(struct mw_buf *out, const struct mw_bundle_file *file, size_t number) {
  return show_line(out, number, line_at(file, number), NULL);
}

// The last line that has anything: what a file that ends too early ends with.
static size_t last_line(const struct mw_bundle_file *file) {
  size_t number = 1, last = 1;
  for (const char *p = file->text; p < file->text + file->size; p++) {
    if (*p == '\n') number++;
    if ((unsigned char)*p > ' ') last = number;
  }
  return last;
}

static int show_excerpt(lua_State *L, struct mw_buf *out, const struct fault *f) {
  bool at_end = strcmp(f->token, "<eof>") == 0;
  size_t number = at_end ? last_line(f->file) : f->line;
  struct mw_slice line = line_at(f->file, number);
  size_t column = at_end ? line.n : find_column(L, f, line);
  // "'end' expected (to close 'function' at line 1)"
  const char *opened = strstr(f->message, " at line ");
  size_t first = opened != NULL ? strtoul(opened + strlen(" at line "), NULL, 10) : 0;
  int rc = 0;
  if (first > 0 && first < number) rc = show_line(out, first, line_at(f->file, first), NULL);
  return rc < 0 ? rc : show_line(out, number, line, &column);
}

// Whether Lua finds bytecode where its code would begin: behind a byte order mark and a line with a
// '#', if there are any.
static bool is_compiled(const struct mw_bundle_file *file) {
  const char *p = file->text, *end = p + file->size;
  if (end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) p += 3;
  if (p < end && *p == '#') {
    while (p < end && *p != '\n' && *p != '\r') p++;
    if (end - p >= 2 && (p[1] == '\n' || p[1] == '\r') && p[1] != p[0]) p++;
    if (p < end) p++;
  }
  return p < end && *p == '\x1b';
}

static int show(lua_State *L, struct mw_buf *out, const struct fault *f) {
  if (out->n > 0 && mw_buf_add(out, "\n", 1) < 0) return MW_ELIMIT;
  if (is_compiled(f->file))
    return mw_buf_printf(out, "%s: is compiled Lua; give the source\n", f->file->path);
  if (f->line == 0) return mw_buf_printf(out, "%s: %s\n", f->file->path, f->message);
  int rc = mw_buf_printf(out, "%s:%zu: %s\n", f->file->path, f->line, f->message);
  return rc < 0 ? rc : show_excerpt(L, out, f);
}

int mw_bundle_check(const struct mw_bundle *b, struct mw_buf *report) {
  lua_State *L = luaL_newstate();
  if (L == NULL) abort();
  size_t faults = 0, missing = 0;
  // The note about what is missing must fit in any case.
  size_t limit = report->limit;
  if (limit > TOKEN_ROOM) report->limit = limit - TOKEN_ROOM;
  for (size_t i = 0; i < mw_bundle_count(b); i++) {
    struct fault f;
    const struct mw_bundle_file *file = mw_bundle_at(b, i);
    if (!compile(L, file, file->size, &f)) continue;
    faults++;
    size_t before = report->n;
    if (missing == 0 && show(L, report, &f) == 0) continue;
    missing++;
    report->n = before;
    if (report->p != NULL) report->p[before] = '\0';
  }
  report->limit = limit;
  lua_close(L);
  if (missing > 0 && mw_buf_printf(report, "\n... and %zu more files\n", missing) < 0)
    return MW_ELIMIT;
  return faults > 0 ? MW_ESCRIPT : 0;
}
