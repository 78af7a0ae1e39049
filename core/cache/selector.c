// SPDX-License-Identifier: Apache-2.0
// Selectors as requirements that must all hold. The parser is in selector_parse.c; it builds on
// mw_selector_require() like everyone else, so there is one place that checks and normalises.
#include "cache/selector.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "cache/shown.h"

enum {
  NAME_MAX_LEN = 63,
  PREFIX_MAX_LEN = 253,
  // Beyond this many values, reading the label is cheaper than trying each fingerprint.
  FINGERPRINT_TRIES = 8,
};

struct requirement {
  struct mw_slice key;  // into bytes
  enum mw_selector_op op;
  struct mw_slice *values;  // into bytes; sorted, each once
  size_t count;
  int64_t number;  // > and <
  char *bytes;
};

struct mw_selector {
  struct requirement *reqs;  // in the order they were added
  size_t count;
  size_t cap;
  bool nothing;
};

struct mw_selector *mw_selector_new(void) {
  mw_live_add(MW_LIVE_SELECTOR, 1);
  return mw_xcalloc(1, sizeof(struct mw_selector));
}

struct mw_selector *mw_selector_nothing(void) {
  struct mw_selector *s = mw_selector_new();
  s->nothing = true;
  return s;
}

void mw_selector_free(struct mw_selector *s) {
  if (s == NULL) return;
  for (size_t i = 0; i < s->count; i++) {
    mw_free(s->reqs[i].values);
    mw_free(s->reqs[i].bytes);
  }
  mw_free(s->reqs);
  mw_free(s);
  mw_live_add(MW_LIVE_SELECTOR, -1);
}

bool mw_selector_is_everything(const struct mw_selector *s) { return !s->nothing && s->count == 0; }

bool mw_selector_is_nothing(const struct mw_selector *s) { return s->nothing; }

// ---- checks ----

static bool lower_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
static bool alnum(char c) { return lower_alnum(c) || (c >= 'A' && c <= 'Z'); }

// The name part of a key, or a value that is not empty.
static bool valid_name(struct mw_slice s) {
  if (s.n == 0 || s.n > NAME_MAX_LEN || !alnum(s.p[0]) || !alnum(s.p[s.n - 1])) return false;
  for (size_t i = 0; i < s.n; i++) {
    if (!alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '_' && s.p[i] != '.') return false;
  }
  return true;
}

// A DNS-1123 subdomain: labels joined by dots, each of which begins and ends alphanumeric.
static bool valid_prefix(struct mw_slice s) {
  if (s.n == 0 || s.n > PREFIX_MAX_LEN) return false;
  for (size_t i = 0; i < s.n; i++) {
    bool edge = i == 0 || i + 1 == s.n || s.p[i - 1] == '.' || s.p[i + 1] == '.';
    if (lower_alnum(s.p[i])) continue;
    if (s.p[i] == '-' && !edge) continue;
    if (s.p[i] == '.' && i > 0 && i + 1 < s.n && lower_alnum(s.p[i - 1])) continue;
    return false;
  }
  return true;
}

static bool valid_key(struct mw_slice key) {
  const char *slash = key.n > 0 ? memchr(key.p, '/', key.n) : NULL;
  if (slash == NULL) return valid_name(key);
  size_t at = (size_t)(slash - key.p);
  return valid_prefix(mw_slice(key.p, at)) && valid_name(mw_slice(slash + 1, key.n - at - 1));
}

// A signed 64-bit decimal.
static bool parse_int(struct mw_slice s, int64_t *out) {
  size_t i = s.n > 0 && (s.p[0] == '-' || s.p[0] == '+');
  if (i == s.n) return false;
  uint64_t limit = s.p[0] == '-' ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
  uint64_t n = 0;
  for (; i < s.n; i++) {
    if (s.p[i] < '0' || s.p[i] > '9') return false;
    uint64_t digit = (uint64_t)(s.p[i] - '0');
    if (n > (limit - digit) / 10) return false;
    n = n * 10 + digit;
  }
  *out = s.p[0] == '-' ? (int64_t)(0 - n) : (int64_t)n;
  return true;
}

static int check_arity(enum mw_selector_op op, size_t count, struct mw_err *err) {
  switch (op) {
    case MW_SEL_EXISTS:
    case MW_SEL_NOT_EXISTS:
      if (count == 0) return 0;
      return mw_err_set(err, MW_EINVAL, "exists and does-not-exist take no values");
    case MW_SEL_IN:
    case MW_SEL_NOT_IN:
      if (count > 0) return 0;
      return mw_err_set(err, MW_EINVAL, "in and notin need at least one value");
    default:
      if (count == 1) return 0;
      return mw_err_set(err, MW_EINVAL, "=, ==, !=, > and < need exactly one value");
  }
}

static int check_texts(struct mw_slice key, const struct mw_slice *values, size_t count,
                       struct mw_err *err) {
  if (!valid_key(key)) {
    return mw_err_set(err, MW_EINVAL,
                      "\"%s\" is not a label key: an optional DNS prefix and \"/\", then at most "
                      "63 of A-Z a-z 0-9 - _ . that begin and end alphanumeric",
                      mw_shown(key).text);
  }
  for (size_t i = 0; i < count; i++) {
    if (values[i].n == 0 || valid_name(values[i])) continue;
    return mw_err_set(err, MW_EINVAL,
                      "\"%s\" is not a label value: at most 63 of A-Z a-z 0-9 - _ . that begin "
                      "and end alphanumeric, or empty",
                      mw_shown(values[i]).text);
  }
  return 0;
}

// ---- requirements ----

static int compare_slices(struct mw_slice a, struct mw_slice b) {
  size_t n = a.n < b.n ? a.n : b.n;
  int d = n > 0 ? memcmp(a.p, b.p, n) : 0;
  if (d != 0) return d;
  return (a.n > b.n) - (a.n < b.n);
}

static int order_values(const void *a, const void *b) {
  return compare_slices(*(const struct mw_slice *)a, *(const struct mw_slice *)b);
}

static struct mw_slice keep(char **to, struct mw_slice s) {
  struct mw_slice kept = mw_slice(*to, s.n);
  if (s.n > 0) memcpy(*to, s.p, s.n);
  *to += s.n;
  return kept;
}

static void fill(struct requirement *r, struct mw_slice key, const struct mw_slice *values,
                 size_t count) {
  size_t total = key.n;
  for (size_t i = 0; i < count; i++) total += values[i].n;
  char *to = r->bytes = mw_xmalloc(total);
  r->key = keep(&to, key);
  r->values = count > 0 ? mw_xmalloc(count * sizeof *values) : NULL;
  for (size_t i = 0; i < count; i++) r->values[i] = keep(&to, values[i]);
  if (count > 1) qsort(r->values, count, sizeof *values, order_values);
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && mw_slice_eq(r->values[i], r->values[r->count - 1])) continue;
    r->values[r->count++] = r->values[i];
  }
}

int mw_selector_require(struct mw_selector *s, struct mw_slice key, enum mw_selector_op op,
                        const struct mw_slice *values, size_t count, bool check,
                        struct mw_err *err) {
  int rc = check_arity(op, count, err);
  if (rc == 0 && check) rc = check_texts(key, values, count, err);
  if (rc < 0) return rc;
  struct requirement r = {.op = op};
  if ((op == MW_SEL_GREATER || op == MW_SEL_LESS) && !parse_int(values[0], &r.number)) {
    return mw_err_set(err, MW_EINVAL, "> and < compare with a 64-bit integer, not \"%s\"",
                      mw_shown(values[0]).text);
  }
  fill(&r, key, values, count);
  if (s->count == s->cap) {
    s->cap = s->cap > 0 ? s->cap * 2 : 4;
    s->reqs = mw_xrealloc(s->reqs, s->cap * sizeof *s->reqs);
  }
  s->reqs[s->count++] = r;
  return 0;
}

// ---- matching ----

static bool in_set(const struct requirement *r, struct mw_slice value) {
  return bsearch(&value, r->values, r->count, sizeof *r->values, order_values) != NULL;
}

static bool holds(const struct requirement *r, bool present, struct mw_slice value) {
  int64_t number;
  switch (r->op) {
    case MW_SEL_EXISTS:
      return present;
    case MW_SEL_NOT_EXISTS:
      return !present;
    case MW_SEL_EQUALS:
    case MW_SEL_DOUBLE_EQUALS:
    case MW_SEL_IN:
      return present && in_set(r, value);
    case MW_SEL_NOT_EQUALS:
    case MW_SEL_NOT_IN:
      return !present || !in_set(r, value);
    case MW_SEL_GREATER:
      return present && parse_int(value, &number) && number > r->number;
    case MW_SEL_LESS:
      return present && parse_int(value, &number) && number < r->number;
  }
  return false;
}

bool mw_selector_matches(const struct mw_selector *s, mw_label_cb get, void *ctx) {
  if (s->nothing) return false;
  for (size_t i = 0; i < s->count; i++) {
    struct mw_slice value = {0};
    bool present = get(ctx, &s->reqs[i].key, &value);
    if (!holds(&s->reqs[i], present, value)) return false;
  }
  return true;
}

enum verdict { NO, YES, UNKNOWN };

static bool may_have_a_value(const struct requirement *r, const struct mw_object *o) {
  if (r->count > FINGERPRINT_TRIES) return true;
  for (size_t i = 0; i < r->count; i++) {
    if (mw_object_may_have_label_value(o, r->key, r->values[i])) return true;
  }
  return false;
}

// What the fingerprints alone say.
static enum verdict glance(const struct requirement *r, const struct mw_object *o) {
  if (!mw_object_may_have_label(o, r->key)) return holds(r, false, (struct mw_slice){0}) ? YES : NO;
  switch (r->op) {
    case MW_SEL_EQUALS:
    case MW_SEL_DOUBLE_EQUALS:
    case MW_SEL_IN:
      return may_have_a_value(r, o) ? UNKNOWN : NO;
    case MW_SEL_NOT_EQUALS:
    case MW_SEL_NOT_IN:
      return may_have_a_value(r, o) ? UNKNOWN : YES;
    default:
      return UNKNOWN;
  }
}

bool mw_selector_matches_object(const struct mw_selector *s, const struct mw_object *o,
                                struct mw_unpacker *u) {
  if (s->nothing) return false;
  bool sure = true;
  for (size_t i = 0; i < s->count; i++) {
    enum verdict v = glance(&s->reqs[i], o);
    if (v == NO) return false;
    if (v == UNKNOWN) sure = false;
  }
  if (sure) return true;
  for (size_t i = 0; i < s->count; i++) {
    const struct requirement *r = &s->reqs[i];
    if (glance(r, o) == YES) continue;
    struct mw_slice value = {0};
    bool present = mw_object_label(o, u, r->key, &value) > 0;
    if (!holds(r, present, value)) return false;
  }
  return true;
}

// ---- canonical text ----

// By key; then by operator and values, so that equal selectors give equal texts.
static int order_requirements(const void *a, const void *b) {
  const struct requirement *x = *(struct requirement *const *)a;
  const struct requirement *y = *(struct requirement *const *)b;
  int d = compare_slices(x->key, y->key);
  if (d == 0) d = (x->op > y->op) - (x->op < y->op);
  for (size_t i = 0; d == 0 && i < x->count && i < y->count; i++) {
    d = compare_slices(x->values[i], y->values[i]);
  }
  return d != 0 ? d : (x->count > y->count) - (x->count < y->count);
}

static int format_one(const struct requirement *r, struct mw_buf *out) {
  static const char *const between[] = {
      [MW_SEL_EXISTS] = "",          [MW_SEL_NOT_EXISTS] = "",   [MW_SEL_EQUALS] = "=",
      [MW_SEL_DOUBLE_EQUALS] = "==", [MW_SEL_NOT_EQUALS] = "!=", [MW_SEL_IN] = " in (",
      [MW_SEL_NOT_IN] = " notin (",  [MW_SEL_GREATER] = ">",     [MW_SEL_LESS] = "<",
  };
  int rc = mw_buf_printf(out, "%s%.*s%s", r->op == MW_SEL_NOT_EXISTS ? "!" : "",
                         MW_SLICE_ARGS(r->key), between[r->op]);
  for (size_t i = 0; i < r->count && rc == 0; i++) {
    rc = mw_buf_printf(out, "%s%.*s", i > 0 ? "," : "", MW_SLICE_ARGS(r->values[i]));
  }
  if (rc == 0 && (r->op == MW_SEL_IN || r->op == MW_SEL_NOT_IN)) rc = mw_buf_add(out, ")", 1);
  return rc;
}

int mw_selector_format(const struct mw_selector *s, struct mw_buf *out) {
  if (s->count == 0) return mw_buf_add(out, "", 0);
  const struct requirement **sorted = mw_xmalloc(s->count * sizeof(struct requirement *));
  for (size_t i = 0; i < s->count; i++) sorted[i] = &s->reqs[i];
  qsort(sorted, s->count, sizeof *sorted, order_requirements);
  int rc = 0;
  for (size_t i = 0; i < s->count && rc == 0; i++) {
    if (i > 0) rc = mw_buf_add(out, ",", 1);
    if (rc == 0) rc = format_one(sorted[i], out);
  }
  mw_free(sorted);
  return rc;
}
