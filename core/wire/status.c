// SPDX-License-Identifier: Apache-2.0
#include "wire/status.h"

#include <stdint.h>

#include "base/buf.h"
#include "wire/json.h"
#include "wire/scan.h"

enum { TEXT_MAX = 64 * 1024, BODY_SHOWN = 200 };

static const char too_large[] = "Too large resource version";

// Copies text and cuts it at a UTF-8 boundary.
static void set_text(char *to, size_t cap, struct mw_slice text) {
  size_t n = text.n < cap ? text.n : cap - 1;
  if (n < text.n) {
    while (n > 0 && ((unsigned char)text.p[n] & 0xC0) == 0x80) n--;
  }
  if (n > 0) memcpy(to, text.p, n);
  to[n] = '\0';
}

// Reads a string member's value into `text`; another kind of value is passed over.
static int read_text(struct mw_json *c, struct mw_buf *text) {
  mw_buf_reset(text);
  if (mw_json_peek(c) != MW_JSON_STRING) return mw_json_skip(c);
  struct mw_slice raw;
  bool escaped;
  int rc = mw_json_string(c, &raw, &escaped);
  if (rc < 0) return rc;
  if (raw.n > TEXT_MAX) return 0;
  return mw_json_unescape(raw, text);
}

static int read_int(struct mw_json *c, int *to) {
  if (mw_json_peek(c) != MW_JSON_NUMBER) return mw_json_skip(c);
  struct mw_slice text;
  bool is_int;
  int rc = mw_json_number(c, &text, &is_int);
  if (rc < 0 || !is_int || text.p[0] == '-') return rc;
  int64_t v = 0;
  for (size_t i = 0; i < text.n && v < INT32_MAX; i++) v = 10 * v + (text.p[i] - '0');
  *to = v < INT32_MAX ? (int)v : INT32_MAX;
  return 0;
}

static bool says_too_large(const struct mw_buf *text) {
  return text->n > 0 && memmem(text->p, text->n, too_large, sizeof too_large - 1) != NULL;
}

static int read_cause(struct mw_json *c, struct mw_status *out, struct mw_buf *text) {
  if (mw_json_peek(c) != MW_JSON_OBJECT) return mw_json_skip(c);
  int rc = mw_json_enter(c);
  bool first = true;
  struct mw_slice key;
  bool escaped;
  while (rc == 0 && (rc = mw_json_member(c, &first, &key, &escaped)) > 0) {
    rc = read_text(c, text);
    if (mw_slice_is(key, "reason")) {
      out->too_large_rv |= mw_slice_is(mw_buf_slice(text), "ResourceVersionTooLarge");
    } else if (mw_slice_is(key, "message")) {
      out->says_too_large_rv |= says_too_large(text);
    }
  }
  return rc;
}

static int read_causes(struct mw_json *c, struct mw_status *out, struct mw_buf *text) {
  if (mw_json_peek(c) != MW_JSON_ARRAY) return mw_json_skip(c);
  int rc = mw_json_enter(c);
  bool first = true;
  while (rc == 0 && (rc = mw_json_element(c, &first)) > 0) rc = read_cause(c, out, text);
  return rc;
}

static int read_details(struct mw_json *c, struct mw_status *out, struct mw_buf *text) {
  if (mw_json_peek(c) != MW_JSON_OBJECT) return mw_json_skip(c);
  int rc = mw_json_enter(c);
  bool first = true;
  struct mw_slice key;
  bool escaped;
  while (rc == 0 && (rc = mw_json_member(c, &first, &key, &escaped)) > 0) {
    if (mw_slice_is(key, "retryAfterSeconds")) {
      rc = read_int(c, &out->retry_after);
    } else if (mw_slice_is(key, "causes")) {
      rc = read_causes(c, out, text);
    } else {
      rc = mw_json_skip(c);
    }
  }
  return rc;
}

// Reasons that stand for themselves; with any other the code decides.
static bool is_known(const char *reason) {
  static const char *const known[] = {
      "Unauthorized",
      "Forbidden",
      "NotFound",
      "AlreadyExists",
      "Conflict",
      "Gone",
      "Invalid",
      "ServerTimeout",
      "StoreReadError",
      "Timeout",
      "TooManyRequests",
      "BadRequest",
      "MethodNotAllowed",
      "NotAcceptable",
      "RequestEntityTooLarge",
      "UnsupportedMediaType",
      "InternalError",
      "Expired",
      "ServiceUnavailable",
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (strcmp(reason, known[i]) == 0) return true;
  }
  return false;
}

struct type {
  bool kind;         // kind is Status
  bool api_version;  // apiVersion is v1 or meta.k8s.io/v1
};

static int read_member(struct mw_json *c, struct mw_slice key, struct mw_status *out,
                       struct mw_buf *text, struct type *type) {
  if (mw_slice_is(key, "details")) return read_details(c, out, text);
  if (mw_slice_is(key, "code")) return read_int(c, &out->code);
  int rc = read_text(c, text);
  if (rc < 0) return rc;
  struct mw_slice value = mw_buf_slice(text);
  if (mw_slice_is(key, "kind")) {
    type->kind = mw_slice_is(value, "Status");
  } else if (mw_slice_is(key, "apiVersion")) {
    type->api_version = mw_slice_is(value, "v1") || mw_slice_is(value, "meta.k8s.io/v1");
  } else if (mw_slice_is(key, "reason")) {
    set_text(out->reason, sizeof out->reason, value);
  } else if (mw_slice_is(key, "message")) {
    set_text(out->message, sizeof out->message, value);
    out->says_too_large_rv |= says_too_large(text);
  }
  return 0;
}

bool mw_status_parse(struct mw_slice json, struct mw_status *out) {
  struct mw_json c = {json.p, mw_slice_end(json)};
  struct type type = {0};
  struct mw_buf text;
  bool first = true;
  struct mw_slice key;
  bool escaped;
  *out = (struct mw_status){.retry_after = -1};
  mw_buf_init(&text, TEXT_MAX);
  int rc = mw_json_peek(&c) == MW_JSON_OBJECT ? mw_json_enter(&c) : MW_EPARSE;
  while (rc == 0 && (rc = mw_json_member(&c, &first, &key, &escaped)) > 0) {
    rc = read_member(&c, key, out, &text, &type);
  }
  mw_buf_deinit(&text);
  if (rc < 0 || !type.kind || !type.api_version) {
    *out = (struct mw_status){0};
    return false;
  }
  return true;
}

static int code_of(const struct mw_status *status, int http_status) {
  const char *reason = status->reason;
  bool known = is_known(reason);
  if (strcmp(reason, "Expired") == 0 || strcmp(reason, "Gone") == 0 ||
      (!known && http_status == 410)) {
    return MW_EEXPIRED;
  }
  bool timeout = strcmp(reason, "Timeout") == 0 || (!known && http_status == 504);
  if (status->too_large_rv || (status->says_too_large_rv && timeout)) return MW_ETOOLARGERV;
  if (strcmp(reason, "TooManyRequests") == 0 || http_status == 429) return MW_ETHROTTLED;
  if (strcmp(reason, "InternalError") == 0 || (!known && http_status == 500)) return MW_EINTERNAL;
  return MW_EHTTP;
}

int mw_status_classify(const struct mw_status *status, int http_status, struct mw_err *err) {
  int http = status->code != 0 ? status->code : http_status;
  int code = code_of(status, http);
  if (status->message[0] != '\0') {
    mw_err_set(err, code, "%s", status->message);
  } else if (status->reason[0] != '\0') {
    mw_err_set(err, code, "the server answered %d (%s)", http, status->reason);
  } else {
    mw_err_set(err, code, "the server answered %d", http);
  }
  if (err != NULL) err->http_status = http;
  return code;
}

// The beginning of a body that is not a Status, as one printable line.
static void shorten(struct mw_slice body, char *to, size_t cap) {
  size_t n = 0;
  for (size_t i = 0; i < body.n && n + 1 < cap; i++) {
    char c = body.p[i];
    bool blank = (unsigned char)c <= ' ' || c == 0x7F;
    if (blank && (n == 0 || to[n - 1] == ' ')) continue;
    to[n++] = blank ? ' ' : c;
  }
  if (n > 0 && to[n - 1] == ' ') n--;
  to[n] = '\0';
  if (!mw_utf8_valid(mw_slice(to, n))) to[0] = '\0';
}

int mw_status_from_body(struct mw_slice body, int http_status, struct mw_err *err) {
  struct mw_status status;
  if (mw_status_parse(body, &status)) return mw_status_classify(&status, http_status, err);
  char shown[BODY_SHOWN];
  shorten(body, shown, sizeof shown);
  int code = code_of(&status, http_status);
  mw_err_set(err, code, "the server answered %d%s%s", http_status, shown[0] != '\0' ? ": " : "",
             shown);
  if (err != NULL) err->http_status = http_status;
  return code;
}
