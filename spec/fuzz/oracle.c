// SPDX-License-Identifier: Apache-2.0
#include "oracle.h"

#include <string.h>
#include <yajl/yajl_parse.h>

#include "fuzz.h"

struct reader {
  struct mw_buf *reading;
  oracle_item_cb cb;  // NULL: the whole text is read, not its items
  void *ctx;
  unsigned depth;
  bool at_items;  // the name at depth 1 was "items"
  bool in_items;
  bool done;  // the first array of that name has ended
};

static int put(struct reader *r, char what, const void *p, size_t n) {
  if (r->cb != NULL && (!r->in_items || r->depth < 2)) return 1;
  require(mw_buf_add(r->reading, &what, 1) == 0 && mw_buf_add(r->reading, p, n) == 0 &&
          mw_buf_add(r->reading, "\n", 1) == 0);
  return 1;
}

// A value ended; in the array of items that is an item.
static int ended(struct reader *r) {
  if (r->cb == NULL || !r->in_items || r->depth != 2) return 1;
  r->cb(r->ctx, mw_buf_slice(r->reading));
  mw_buf_reset(r->reading);
  return 1;
}

static int scalar(struct reader *r, char what, const void *p, size_t n) {
  put(r, what, p, n);
  return ended(r);
}

static int on_null(void *ctx) { return scalar(ctx, 'n', "", 0); }
static int on_bool(void *ctx, int value) { return scalar(ctx, value ? 't' : 'f', "", 0); }
static int on_number(void *ctx, const char *p, size_t n) { return scalar(ctx, '#', p, n); }
static int on_string(void *ctx, const unsigned char *p, size_t n) { return scalar(ctx, '"', p, n); }

static int on_key(void *ctx, const unsigned char *p, size_t n) {
  struct reader *r = ctx;
  if (r->depth == 1) r->at_items = !r->done && n == 5 && memcmp(p, "items", 5) == 0;
  return put(r, ':', p, n);
}

static int on_open(struct reader *r, char what) {
  put(r, what, "", 0);
  r->depth++;
  if (r->depth == 2 && r->at_items) {
    r->in_items = what == '[';
    r->at_items = false;
  }
  return 1;
}

static int on_close(struct reader *r, char what) {
  r->depth--;
  if (r->depth == 1 && r->in_items) {
    r->in_items = false;
    r->done = true;
  }
  put(r, what, "", 0);
  return ended(r);
}

static int on_map(void *ctx) { return on_open(ctx, '{'); }
static int on_map_end(void *ctx) { return on_close(ctx, '}'); }
static int on_array(void *ctx) { return on_open(ctx, '['); }
static int on_array_end(void *ctx) { return on_close(ctx, ']'); }

static bool parse(struct reader *r, struct mw_slice text, size_t *n) {
  static const yajl_callbacks callbacks = {
      .yajl_null = on_null,
      .yajl_boolean = on_bool,
      .yajl_number = on_number,
      .yajl_string = on_string,
      .yajl_start_map = on_map,
      .yajl_map_key = on_key,
      .yajl_end_map = on_map_end,
      .yajl_start_array = on_array,
      .yajl_end_array = on_array_end,
  };
  yajl_handle y = yajl_alloc(&callbacks, NULL, r);
  require(y != NULL);
  yajl_config(y, yajl_allow_trailing_garbage, 1);
  bool ok = yajl_parse(y, (const unsigned char *)text.p, text.n) == yajl_status_ok;
  *n = yajl_get_bytes_consumed(y);
  ok = ok && yajl_complete_parse(y) == yajl_status_ok;
  yajl_free(y);
  return ok;
}

bool oracle_read(struct mw_slice text, struct mw_buf *reading, size_t *n) {
  struct reader r = {.reading = reading};
  return parse(&r, text, n);
}

void oracle_read_items(struct mw_slice text, oracle_item_cb cb, void *ctx) {
  struct mw_buf reading;
  mw_buf_init(&reading, READING_MAX);
  struct reader r = {.reading = &reading, .cb = cb, .ctx = ctx};
  size_t n;
  parse(&r, text, &n);
  mw_buf_deinit(&reading);
}

bool oracle_is_lax(const char *p, const char *end) {
  if (p == end) return false;
  unsigned char c = (unsigned char)*p;
  if (c == '\v' || c == '\f') return true;
  long n = c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : c >> 3 == 30 ? 4 : 0;
  if (n == 0 || end - p < n) return false;
  for (long i = 1; i < n; i++) {
    if (((unsigned char)p[i] & 0xC0) != 0x80) return false;
  }
  return true;
}

static bool is_surrogate(const char *p, const char *end, char low, char high) {
  if (end - p < 6 || p[0] != '\\' || p[1] != 'u' || (p[2] | 0x20) != 'd') return false;
  char c = (char)(p[3] >= 'A' ? p[3] | 0x20 : p[3]);
  return c >= low && c <= high;
}

bool oracle_is_torn(struct mw_slice raw) {
  const char *end = raw.p + raw.n;
  for (const char *p = raw.p; p < end; p++) {
    if (*p != '\\') continue;
    if (is_surrogate(p, end, '8', 'b') && is_surrogate(p + 6, end, 'c', 'f')) {
      p += 11;
    } else if (is_surrogate(p, end, '8', 'f')) {
      return true;
    } else {
      p++;
    }
  }
  return false;
}
