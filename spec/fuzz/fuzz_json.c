// SPDX-License-Identifier: Apache-2.0
// The walker and the byte-wise skimmer are two implementations of one grammar: they must agree on
// what is valid and where it ends. With yajl they must agree on what is valid and on what it says.
// Strings must survive unescaping and quoting.
#include "fuzz.h"
#include "oracle.h"

#include "base/buf.h"
#include "base/err.h"
#include "wire/json.h"
#include "wire/scan.h"
#include "wire/skim.h"

enum { TEXT_MAX = 1 << 20 };

static void check_agreement(const char *p, size_t n, bool narrow) {
  struct mw_json c = {p, p + n};
  mw_narrow = narrow;
  int walked = mw_json_skip(&c);
  struct mw_skim skim;
  mw_skim_start(&skim);
  const char *at = p;
  int skimmed = mw_skim_feed(&skim, &at, p + n);
  if (skimmed == 1) {
    require(walked == 0 && c.p == at);
  } else if (skimmed == 0) {
    // Only a number may be complete at the end of the input without saying so.
    require(at == p + n && (walked != 0 || c.p == c.end));
  } else {
    require(walked == skimmed && c.p == at - skim.back);
  }
}

// Our reading of the value at c, as yajl's would be; it was validated. False when a string in it
// has none.
static bool read_value(struct mw_json *c, struct mw_buf *out);

static void put(struct mw_buf *out, char what, struct mw_slice text) {
  require(mw_buf_add(out, &what, 1) == 0 && mw_buf_add(out, text.p, text.n) == 0 &&
          mw_buf_add(out, "\n", 1) == 0);
}

static bool put_string(struct mw_buf *out, char what, struct mw_slice raw) {
  if (oracle_is_torn(raw)) return false;
  require(mw_buf_add(out, &what, 1) == 0 && mw_json_unescape(raw, out) == 0 &&
          mw_buf_add(out, "\n", 1) == 0);
  return true;
}

static bool read_members(struct mw_json *c, struct mw_buf *out) {
  struct mw_slice raw;
  bool escaped;
  bool first = true;
  put(out, '{', mw_slice(NULL, 0));
  require(mw_json_enter(c) == 0);
  int rc;
  while ((rc = mw_json_member(c, &first, &raw, &escaped)) > 0) {
    if (!put_string(out, ':', raw) || !read_value(c, out)) return false;
  }
  require(rc == 0);
  put(out, '}', mw_slice(NULL, 0));
  return true;
}

static bool read_elements(struct mw_json *c, struct mw_buf *out) {
  bool first = true;
  put(out, '[', mw_slice(NULL, 0));
  require(mw_json_enter(c) == 0);
  int rc;
  while ((rc = mw_json_element(c, &first)) > 0) {
    if (!read_value(c, out)) return false;
  }
  require(rc == 0);
  put(out, ']', mw_slice(NULL, 0));
  return true;
}

static bool read_value(struct mw_json *c, struct mw_buf *out) {
  struct mw_slice text;
  bool flag;
  enum mw_json_kind kind = mw_json_peek(c);
  switch (kind) {
    case MW_JSON_OBJECT:
      return read_members(c, out);
    case MW_JSON_ARRAY:
      return read_elements(c, out);
    case MW_JSON_STRING:
      require(mw_json_string(c, &text, &flag) == 0);
      return put_string(out, '"', text);
    case MW_JSON_NUMBER:
      require(mw_json_number(c, &text, &flag) == 0);
      put(out, '#', text);
      return true;
    default:
      require(kind != MW_JSON_NONE && mw_json_skip(c) == 0);
      put(out, kind == MW_JSON_NULL ? 'n' : kind == MW_JSON_TRUE ? 't' : 'f', mw_slice(NULL, 0));
      return true;
  }
}

static void check_oracle(const char *p, size_t n) {
  struct mw_json c = {p, p + n};
  int rc = mw_json_skip(&c);
  struct mw_buf theirs;
  size_t theirs_n;
  mw_buf_init(&theirs, READING_MAX);
  bool accepted = oracle_read(mw_slice(p, n), &theirs, &theirs_n);
  if (rc == 0) {
    struct mw_buf ours;
    mw_buf_init(&ours, READING_MAX);
    struct mw_json again = {p, c.p};
    require(accepted && c.p == p + theirs_n);
    if (read_value(&again, &ours)) {
      require(again.p == c.p && mw_slice_eq(mw_buf_slice(&ours), mw_buf_slice(&theirs)));
    }
    mw_buf_deinit(&ours);
  } else if (accepted) {
    require(rc == MW_ELIMIT || oracle_is_lax(c.p, c.end));
  }
  mw_buf_deinit(&theirs);
}

static void check_string(const char *p, size_t n) {
  struct mw_json c = {p, p + n};
  struct mw_slice raw;
  bool escaped;
  if (mw_json_string(&c, &raw, &escaped) < 0) return;
  struct mw_buf plain;
  struct mw_buf quoted;
  struct mw_buf again;
  mw_buf_init(&plain, TEXT_MAX);
  mw_buf_init(&quoted, 6 * TEXT_MAX);
  mw_buf_init(&again, TEXT_MAX);
  if (mw_json_unescape(raw, &plain) == 0) {
    require(escaped || mw_slice_eq(raw, mw_buf_slice(&plain)));
    require(mw_utf8_valid(mw_buf_slice(&plain)));
    require(mw_json_quote(mw_buf_slice(&plain), &quoted) == 0);
    struct mw_json q = {quoted.p, quoted.p + quoted.n};
    require(mw_json_string(&q, &raw, &escaped) == 0 && q.p == q.end);
    require(mw_json_unescape(raw, &again) == 0);
    require(mw_slice_eq(mw_buf_slice(&plain), mw_buf_slice(&again)));
  }
  mw_buf_deinit(&plain);
  mw_buf_deinit(&quoted);
  mw_buf_deinit(&again);
}

static void check_members(const char *p, size_t n) {
  struct mw_json c = {p, p + n};
  struct mw_json whole = c;
  if (mw_json_peek(&c) != MW_JSON_OBJECT) return;
  int skipped = mw_json_skip(&whole);
  bool first = true;
  struct mw_slice key;
  bool escaped;
  int rc = mw_json_enter(&c);
  while (rc == 0 && (rc = mw_json_member(&c, &first, &key, &escaped)) > 0) rc = mw_json_skip(&c);
  if (skipped == 0) require(rc == 0 && c.p == whole.p);
  struct mw_json find = {p, p + n};
  if (mw_json_find(&find, MW_SLICE("a")) == 1) require(find.p < find.end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *p = (const char *)data;
  check_agreement(p, size, true);
  check_agreement(p, size, false);
  check_oracle(p, size);
  check_string(p, size);
  check_members(p, size);
  struct mw_json number = {p, p + size};
  struct mw_slice text;
  bool is_int;
  if (mw_json_number(&number, &text, &is_int) == 0) require(text.n > 0);
  return 0;
}
