// SPDX-License-Identifier: Apache-2.0
#include "cache/owner.h"

#include "base/buf.h"

enum { HEAD_WANT = 2048 };  // bytes of JSON in which most objects' metadata stands

// 1, 0, or negative when json is cut or damaged before that is known.
static int find_value(struct mw_slice json, struct mw_slice key, struct mw_slice *value) {
  struct mw_json c = {json.p, json.p + json.n};
  int rc = mw_object_metadata(&c, key);
  if (rc <= 0) return rc;
  if (mw_json_peek(&c) == MW_JSON_NONE) return MW_EPARSE;
  const char *start = c.p;
  rc = mw_json_skip(&c);
  if (rc < 0) return rc;
  if (c.p == c.end) return MW_EPARSE;  // a number may go on
  *value = mw_slice(start, (size_t)(c.p - start));
  return 1;
}

int mw_metadata_value(const struct mw_object *o, struct mw_unpacker *u, struct mw_slice key,
                      struct mw_slice *value) {
  size_t all = mw_object_raw_size(o);
  mw_object_unpack(o, u);
  for (size_t want = HEAD_WANT;; want = all) {
    struct mw_slice json = mw_unpack_more(u, want);
    int rc = json.n > 0 ? find_value(json, key, value) : MW_EPARSE;
    if (rc >= 0 || want >= all) return rc;
  }
}

// The text of a member, unescaped into `text` where it must be: room for all that can come is made
// at once, so that what stands there stays in its place.
static int read_text(struct mw_json *c, struct mw_buf *text, struct mw_slice *out) {
  bool escaped;
  int rc = mw_json_string(c, out, &escaped);
  if (rc < 0 || !escaped) return rc;
  size_t start = text->n;
  rc = text->p == NULL ? mw_buf_reserve(text, text->limit) : 0;
  if (rc == 0) rc = mw_json_unescape(*out, text);
  if (rc == 0) *out = mw_slice(text->p + start, text->n - start);
  return rc;
}

static struct mw_slice *field_of(struct mw_owner *owner, struct mw_slice key) {
  if (mw_slice_is(key, "uid")) return &owner->uid;
  if (mw_slice_is(key, "name")) return &owner->name;
  if (mw_slice_is(key, "kind")) return &owner->kind;
  if (mw_slice_is(key, "apiVersion")) return &owner->api_version;
  return NULL;
}

static int read_owner(struct mw_json *c, struct mw_buf *text, struct mw_owner *owner) {
  struct mw_slice key;
  bool first = true, escaped;
  int rc = mw_json_enter(c);
  while (rc >= 0 && (rc = mw_json_member(c, &first, &key, &escaped)) > 0) {
    enum mw_json_kind kind = mw_json_peek(c);
    struct mw_slice *field = kind == MW_JSON_STRING ? field_of(owner, key) : NULL;
    if (mw_slice_is(key, "controller")) owner->controller = kind == MW_JSON_TRUE;
    rc = field != NULL ? read_text(c, text, field) : mw_json_skip(c);
  }
  return rc;
}

int mw_owner_each(const struct mw_object *o, struct mw_unpacker *u, mw_owner_cb cb, void *ctx) {
  struct mw_slice list;
  int rc = mw_metadata_value(o, u, MW_SLICE("ownerReferences"), &list);
  if (rc <= 0) return rc;
  struct mw_json c = {list.p, list.p + list.n};
  if (mw_json_peek(&c) != MW_JSON_ARRAY) return 0;
  struct mw_buf text;
  mw_buf_init(&text, list.n);
  bool first = true;
  rc = mw_json_enter(&c);
  while (rc >= 0 && (rc = mw_json_element(&c, &first)) > 0) {
    struct mw_owner owner = {.controller = false};
    bool object = mw_json_peek(&c) == MW_JSON_OBJECT;
    rc = object ? read_owner(&c, &text, &owner) : mw_json_skip(&c);
    if (rc >= 0 && object && (rc = cb(ctx, &owner)) != 0) break;
  }
  mw_buf_deinit(&text);
  return rc;
}
