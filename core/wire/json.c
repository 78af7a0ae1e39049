// SPDX-License-Identifier: Apache-2.0
// The public cursor: a thin face on the walker (wire/scan.h) in its validate-only mode.
#include "wire/json.h"

#include <string.h>

#include "base/err.h"
#include "wire/frame.h"
#include "wire/scan.h"

static struct mw_walk walk_of(const struct mw_json *c) {
  return (struct mw_walk){.p = c->p, .end = c->end, .run = c->p};
}

static int settle(struct mw_json *c, const struct mw_walk *w, int rc) {
  c->p = w->p;
  return rc;
}

static inline bool at(const struct mw_json *c, const char *p, char wanted) {
  return p < c->end && *p == wanted;
}

// Whether there is a byte at p and it is no white space.
static inline bool at_text(const struct mw_json *c, const char *p) {
  return p < c->end && (unsigned char)*p > ' ';
}

enum mw_json_kind mw_json_peek(struct mw_json *c) {
  if (!at_text(c, c->p)) {
    struct mw_walk w = walk_of(c);
    mw_walk_blank(&w);
    c->p = w.p;
  }
  if (c->p == c->end) return MW_JSON_NONE;
  switch (*c->p) {
    case '{':
      return MW_JSON_OBJECT;
    case '[':
      return MW_JSON_ARRAY;
    case '"':
      return MW_JSON_STRING;
    case 't':
      return MW_JSON_TRUE;
    case 'f':
      return MW_JSON_FALSE;
    case 'n':
      return MW_JSON_NULL;
    case '-':
      return MW_JSON_NUMBER;
    default:
      return *c->p >= '0' && *c->p <= '9' ? MW_JSON_NUMBER : MW_JSON_NONE;
  }
}

int mw_json_skip(struct mw_json *c) {
  struct mw_walk w = walk_of(c);
  return settle(c, &w, mw_walk_value(&w, 1));
}

int mw_json_pass(struct mw_json *c) {
  const char *quote = at(c, c->p, '"') ? mw_walk_short_text(c->p + 1, c->end) : NULL;
  if (quote != NULL) {
    c->p = quote + 1;
    return 0;
  }
  if (c->p == c->end || (*c->p != '{' && *c->p != '[')) return mw_json_skip(c);
  const char *end = mw_frame_end(c->p, c->end);
  if (end == NULL) return MW_EPARSE;
  c->p = end;
  return 0;
}

int mw_json_string(struct mw_json *c, struct mw_slice *raw, bool *escaped) {
  const char *quote = at(c, c->p, '"') ? mw_walk_short_text(c->p + 1, c->end) : NULL;
  if (quote != NULL) {
    *raw = mw_slice(c->p + 1, (size_t)(quote - c->p - 1));
    *escaped = false;
    c->p = quote + 1;
    return 0;
  }
  struct mw_walk w = walk_of(c);
  mw_walk_blank(&w);
  return settle(c, &w, mw_walk_string(&w, raw, escaped));
}

int mw_json_number(struct mw_json *c, struct mw_slice *text, bool *is_int) {
  struct mw_walk w = walk_of(c);
  mw_walk_blank(&w);
  const char *from = w.p;
  int rc = mw_walk_number(&w, is_int);
  if (rc == 0) *text = mw_slice(from, (size_t)(w.p - from));
  return settle(c, &w, rc);
}

int mw_json_enter(struct mw_json *c) {
  enum mw_json_kind kind = mw_json_peek(c);
  if (kind != MW_JSON_OBJECT && kind != MW_JSON_ARRAY) return MW_EPARSE;
  c->p++;
  return 0;
}

int mw_json_member(struct mw_json *c, bool *first, struct mw_slice *key, bool *escaped) {
  bool follows = *first || at(c, c->p, ',');
  const char *name = follows && !*first ? c->p + 1 : c->p;
  if (follows && at(c, name, '"')) {
    const char *quote = mw_walk_short_text(name + 1, c->end);
    if (quote != NULL && at(c, quote + 1, ':') && at_text(c, quote + 2)) {
      *key = mw_slice(name + 1, (size_t)(quote - name - 1));
      *escaped = *first = false;
      c->p = quote + 2;
      return 1;
    }
  }
  struct mw_walk w = walk_of(c);
  return settle(c, &w, mw_walk_member(&w, first, key, escaped));
}

int mw_json_element(struct mw_json *c, bool *first) {
  struct mw_walk w = walk_of(c);
  return settle(c, &w, mw_walk_element(&w, first));
}

int mw_json_find(struct mw_json *c, struct mw_slice key) {
  struct mw_walk w = walk_of(c);
  mw_walk_blank(&w);
  if (w.p == w.end || *w.p != '{') return settle(c, &w, MW_EPARSE);
  w.p++;
  bool first = true;
  struct mw_slice raw;
  bool escaped;
  int rc;
  while ((rc = mw_walk_member(&w, &first, &raw, &escaped)) > 0) {
    if (mw_raw_is(raw, escaped, key)) break;
    rc = mw_walk_value(&w, 1);
    if (rc < 0) break;
  }
  return settle(c, &w, rc);
}

bool mw_raw_is(struct mw_slice raw, bool escaped, struct mw_slice text) {
  if (!escaped) return mw_slice_eq(raw, text);
  struct mw_buf plain;
  mw_buf_init(&plain, raw.n);
  bool same = mw_json_unescape(raw, &plain) == 0 && mw_slice_eq(mw_buf_slice(&plain), text);
  mw_buf_deinit(&plain);
  return same;
}

static uint32_t hex4(const char *p) {
  uint32_t v = 0;
  for (int i = 0; i < 4; i++) {
    char c = p[i];
    uint32_t digit = (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    v = v << 4 | digit;
  }
  return v;
}

static int add_rune(struct mw_buf *out, uint32_t rune) {
  char b[4];
  size_t n;
  if (rune < 0x80) {
    b[0] = (char)rune;
    n = 1;
  } else if (rune < 0x800) {
    b[0] = (char)(0xC0 | rune >> 6);
    b[1] = (char)(0x80 | (rune & 0x3F));
    n = 2;
  } else if (rune < 0x10000) {
    b[0] = (char)(0xE0 | rune >> 12);
    b[1] = (char)(0x80 | (rune >> 6 & 0x3F));
    b[2] = (char)(0x80 | (rune & 0x3F));
    n = 3;
  } else {
    b[0] = (char)(0xF0 | rune >> 18);
    b[1] = (char)(0x80 | (rune >> 12 & 0x3F));
    b[2] = (char)(0x80 | (rune >> 6 & 0x3F));
    b[3] = (char)(0x80 | (rune & 0x3F));
    n = 4;
  }
  return mw_buf_add(out, b, n);
}

// *p stands behind "\u". A surrogate without its partner becomes U+FFFD, as Go reads it.
static int add_unicode(struct mw_buf *out, const char **p, const char *end) {
  if (end - *p < 4) return MW_EPARSE;
  uint32_t rune = hex4(*p);
  *p += 4;
  if (rune < 0xD800 || rune > 0xDFFF) return add_rune(out, rune);
  if (rune <= 0xDBFF && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
    uint32_t low = hex4(*p + 2);
    if (low >= 0xDC00 && low <= 0xDFFF) {
      *p += 6;
      return add_rune(out, 0x10000 + ((rune - 0xD800) << 10) + (low - 0xDC00));
    }
  }
  return add_rune(out, 0xFFFD);
}

int mw_json_unescape(struct mw_slice raw, struct mw_buf *out) {
  static const char from[] = "\"\\/bfnrt";
  static const char to[] = "\"\\/\b\f\n\r\t";
  const char *p = raw.p;
  const char *end = mw_slice_end(raw);
  while (p < end) {
    const char *backslash = memchr(p, '\\', (size_t)(end - p));
    const char *stop = backslash != NULL ? backslash : end;
    int rc = mw_buf_add(out, p, (size_t)(stop - p));
    if (rc < 0) return rc;
    if (backslash == NULL) return 0;
    if (end - stop < 2) return MW_EPARSE;
    char c = stop[1];
    p = stop + 2;
    if (c == 'u') {
      rc = add_unicode(out, &p, end);
    } else {
      const char *which = memchr(from, c, sizeof from - 1);
      rc = which != NULL ? mw_buf_add(out, &to[which - from], 1) : MW_EPARSE;
    }
    if (rc < 0) return rc;
  }
  return 0;
}

static int quote_char(unsigned char c, struct mw_buf *out) {
  static const char from[] = "\"\\\b\f\n\r\t";
  static const char to[] = "\"\\bfnrt";
  const char *which = memchr(from, c, sizeof from - 1);
  if (which == NULL) return mw_buf_printf(out, "\\u%04x", c);
  char pair[2] = {'\\', to[which - from]};
  return mw_buf_add(out, pair, 2);
}

// What ends a run of bytes that stand for themselves.
enum { STOP_PLAIN = 1, STOP_HTML = 2, STOP_BYTES = 4 };

static inline unsigned stop_of(unsigned char c) {
  static const unsigned char stops[256] = {
      [0 ... 0x1F] = STOP_PLAIN,
      ['"'] = STOP_PLAIN,
      ['\\'] = STOP_PLAIN,
      ['&'] = STOP_HTML,
      ['<'] = STOP_HTML,
      ['>'] = STOP_HTML,
      [0x80 ... 0xFF] = STOP_BYTES,
  };
  return stops[c];
}

// U+2028 and U+2029 end a line in JavaScript.
static bool is_separator(const char *p, size_t n) {
  return n == 3 && memcmp(p, "\xE2\x80", 2) == 0 && (p[2] == '\xA8' || p[2] == '\xA9');
}

// Appends what stands for the n bytes at p within quotes.
static int quote_stop(const char *p, size_t n, struct mw_buf *out) {
  if (n == 3) return mw_buf_add(out, p[2] == '\xA8' ? "\\u2028" : "\\u2029", 6);
  return quote_char((unsigned char)*p, out);
}

// Most strings stand for themselves: they are added in one piece.
static int quote_plain(struct mw_slice s, struct mw_buf *out) {
  int rc = mw_buf_reserve(out, s.n + 2);
  if (rc < 0) return rc;
  char *to = out->p + out->n;
  *to = '"';
  if (s.n > 0) memcpy(to + 1, s.p, s.n);
  memcpy(to + 1 + s.n, "\"", 2);
  out->n += s.n + 2;
  return 0;
}

static int quote(struct mw_slice s, bool html, struct mw_buf *out) {
  const char *p = s.p;
  const char *end = mw_slice_end(s);
  const char *run = p;
  const unsigned always = STOP_PLAIN | (html ? STOP_HTML : 0);
  while (p < end && (stop_of((unsigned char)*p) & (always | STOP_BYTES)) == 0) p++;
  if (p == end) return quote_plain(s, out);
  int rc = mw_buf_add(out, "\"", 1);
  while (rc == 0 && p < end) {
    unsigned stop = stop_of((unsigned char)*p);
    if ((stop & (always | STOP_BYTES)) == 0) {
      p++;
      continue;
    }
    size_t n = stop == STOP_BYTES ? mw_utf8_sequence(p, end) : 1;
    if (n == 0) return MW_EPARSE;
    if ((stop & always) != 0 || (html && is_separator(p, n))) {
      rc = mw_buf_add(out, run, (size_t)(p - run));
      if (rc == 0) rc = quote_stop(p, n, out);
      run = p + n;
    }
    p += n;
  }
  if (rc == 0 && p > run) rc = mw_buf_add(out, run, (size_t)(p - run));
  return rc == 0 ? mw_buf_add(out, "\"", 1) : rc;
}

int mw_json_quote(struct mw_slice s, struct mw_buf *out) { return quote(s, false, out); }

int mw_json_quote_html(struct mw_slice s, struct mw_buf *out) { return quote(s, true, out); }

bool mw_utf8_valid(struct mw_slice s) {
  const char *p = s.p;
  const char *end = mw_slice_end(s);
  while (p < end) {
    if ((signed char)*p >= 0) {
      p++;
      continue;
    }
    size_t n = mw_utf8_sequence(p, end);
    if (n == 0) return false;
    p += n;
  }
  return true;
}
