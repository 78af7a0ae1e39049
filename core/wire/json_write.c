// SPDX-License-Identifier: Apache-2.0
#include "wire/json_write.h"

#include <math.h>

#include "wire/json.h"

void mw_json_open(struct mw_json_out *o, size_t limit) {
  *o = (struct mw_json_out){.comma = false};
  mw_buf_init(&o->text, limit);
}

void mw_json_close(struct mw_json_out *o) { mw_buf_deinit(&o->text); }

void mw_json_reset(struct mw_json_out *o) {
  mw_buf_reset(&o->text);
  o->comma = o->failed = false;
}

bool mw_json_ok(const struct mw_json_out *o) { return !o->failed; }

static void add(struct mw_json_out *o, const char *p, size_t n) {
  if (!o->failed && mw_buf_add(&o->text, p, n) < 0) o->failed = true;
}

// What stands before a value.
static void lead(struct mw_json_out *o, const char *key) {
  if (o->comma) add(o, ",", 1);
  o->comma = true;
  if (key == NULL) return;
  if (!o->failed && mw_json_quote(mw_slice_str(key), &o->text) < 0) o->failed = true;
  add(o, ":", 1);
}

void mw_json_begin(struct mw_json_out *o, const char *key, char bracket) {
  lead(o, key);
  add(o, &bracket, 1);
  o->comma = false;
}

void mw_json_end(struct mw_json_out *o, char bracket) {
  add(o, &bracket, 1);
  o->comma = true;
}

// A copy in which all that is not ASCII has become '?'.
static int quote_plain(struct mw_slice s, struct mw_buf *out) {
  struct mw_buf plain;
  mw_buf_init(&plain, s.n);
  int rc = mw_buf_add(&plain, s.p, s.n);
  for (size_t i = 0; i < plain.n; i++)
    if ((unsigned char)plain.p[i] >= 0x80) plain.p[i] = '?';
  if (rc == 0) rc = mw_json_quote(mw_buf_slice(&plain), out);
  mw_buf_deinit(&plain);
  return rc;
}

void mw_json_put_slice(struct mw_json_out *o, const char *key, struct mw_slice value) {
  lead(o, key);
  if (o->failed) return;
  size_t n = o->text.n;
  if (mw_json_quote(value, &o->text) == 0) return;
  o->text.n = n;
  if (quote_plain(value, &o->text) < 0) o->failed = true;
}

void mw_json_put_str(struct mw_json_out *o, const char *key, const char *value) {
  if (value != NULL) {
    mw_json_put_slice(o, key, mw_slice_str(value));
  } else {
    mw_json_put_raw(o, key, MW_SLICE("null"));
  }
}

void mw_json_put_num(struct mw_json_out *o, const char *key, double value) {
  lead(o, key);
  if (!o->failed && mw_buf_printf(&o->text, "%.15g", isfinite(value) ? value : 0) < 0) {
    o->failed = true;
  }
}

void mw_json_put_bool(struct mw_json_out *o, const char *key, bool value) {
  mw_json_put_raw(o, key, value ? MW_SLICE("true") : MW_SLICE("false"));
}

void mw_json_put_raw(struct mw_json_out *o, const char *key, struct mw_slice value) {
  lead(o, key);
  add(o, value.p, value.n);
}
