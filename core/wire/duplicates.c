// SPDX-License-Identifier: Apache-2.0
// One hash set for the whole document: an entry is a key together with the number of its object.
// Those of objects that have ended stay; there are never more entries than keys in the text.
#include "wire/duplicates.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "wire/json.h"

enum { SLOTS_MIN = 64, ONCE = 1, TOLD = 2 };

struct slot {
  struct mw_slice key;
  uint32_t hash;
  uint32_t object;
  unsigned char seen;  // 0: free
};

struct search {
  struct mw_json c;
  struct slot *slots;
  size_t count, cap;  // cap is a power of two
  uint32_t objects;
  struct mw_buf path;
  struct mw_map plain;  // unescaped keys: the map owns the bytes that slots point to
  size_t left;          // places that may still be told
  mw_duplicate_cb cb;
  void *ctx;
};

static struct slot *find(const struct search *s, const struct slot *wanted) {
  size_t i = wanted->hash & (s->cap - 1);
  for (;; i = (i + 1) & (s->cap - 1)) {
    struct slot *slot = &s->slots[i];
    if (slot->seen == 0) return slot;
    if (slot->hash == wanted->hash && slot->object == wanted->object &&
        mw_slice_eq(slot->key, wanted->key)) {
      return slot;
    }
  }
}

static void grow(struct search *s) {
  struct slot *old = s->slots;
  size_t n = s->cap;
  s->cap = n > 0 ? 2 * n : SLOTS_MIN;
  s->slots = mw_xcalloc(s->cap, sizeof *s->slots);
  for (size_t i = 0; i < n; i++) {
    if (old[i].seen != 0) *find(s, &old[i]) = old[i];
  }
  mw_free(old);
}

// Notes the key of an object; true when it is there for the second time.
static bool is_repeated(struct search *s, uint32_t object, struct mw_slice key) {
  if (2 * (s->count + 1) > s->cap) grow(s);
  struct slot wanted = {.key = key, .object = object, .seen = ONCE};
  wanted.hash = mw_hash(key) ^ object * 0x9E3779B1u;
  struct slot *slot = find(s, &wanted);
  if (slot->seen == 0) {
    *slot = wanted;
    s->count++;
    return false;
  }
  bool first = slot->seen == ONCE;
  slot->seen = TOLD;
  return first;
}

// The key unescaped, in bytes that live as long as the search.
static int plain_key(struct search *s, struct mw_slice *key) {
  struct mw_buf text;
  mw_buf_init(&text, key->n);
  int rc = mw_json_unescape(*key, &text);
  if (rc == 0 && text.n == 0) *key = MW_SLICE("");
  if (rc == 0 && text.n > 0) {
    char *kept = mw_map_get(&s->plain, mw_buf_slice(&text));
    if (kept == NULL) {
      kept = mw_xstrndup(text.p, text.n);
      mw_map_set(&s->plain, mw_buf_slice(&text), kept);
    }
    *key = mw_slice(kept, text.n);
  }
  mw_buf_deinit(&text);
  return rc;
}

// Where we are, as a chain of C frames from the innermost outwards: few documents need a path.
struct place {
  const struct place *parent;
  struct mw_slice key;  // p is NULL for an element
  size_t index;
};

static int add_place(struct mw_buf *path, const struct place *at) {
  if (at == NULL) return 0;
  int rc = add_place(path, at->parent);
  if (rc < 0) return rc;
  if (at->key.p == NULL) return mw_buf_printf(path, "[%zu]", at->index);
  if (path->n > 0) rc = mw_buf_add(path, ".", 1);
  return rc < 0 ? rc : mw_buf_add(path, at->key.p, at->key.n);
}

static int report(struct search *s, const struct place *at) {
  if (s->left == 0) return 0;
  s->left--;
  mw_buf_reset(&s->path);
  int rc = add_place(&s->path, at);
  if (rc == 0) s->cb(s->ctx, mw_buf_slice(&s->path));
  return rc;
}

static int value(struct search *s, const struct place *at, unsigned depth);

static int object(struct search *s, const struct place *at, unsigned depth) {
  const uint32_t number = s->objects++;
  bool first = true, escaped;
  struct place here = {.parent = at};
  int rc;
  while ((rc = mw_json_member(&s->c, &first, &here.key, &escaped)) > 0) {
    if (escaped && plain_key(s, &here.key) < 0) return MW_EPARSE;
    rc = is_repeated(s, number, here.key) ? report(s, &here) : 0;
    if (rc == 0) rc = value(s, &here, depth + 1);
    if (rc < 0) return rc;
  }
  return rc;
}

static int array(struct search *s, const struct place *at, unsigned depth) {
  bool first = true;
  struct place here = {.parent = at};
  int rc;
  for (; (rc = mw_json_element(&s->c, &first)) > 0; here.index++) {
    rc = value(s, &here, depth + 1);
    if (rc < 0) return rc;
  }
  return rc;
}

static int value(struct search *s, const struct place *at, unsigned depth) {
  enum mw_json_kind kind = mw_json_peek(&s->c);
  if (kind != MW_JSON_OBJECT && kind != MW_JSON_ARRAY) return mw_json_skip(&s->c);
  if (depth > MW_JSON_DEPTH_MAX) return MW_ELIMIT;
  int rc = mw_json_enter(&s->c);
  if (rc < 0) return rc;
  return kind == MW_JSON_OBJECT ? object(s, at, depth) : array(s, at, depth);
}

int mw_json_duplicates(struct mw_slice json, size_t max, mw_duplicate_cb cb, void *ctx) {
  struct search s = {.c = {json.p, json.p + json.n}, .left = max, .cb = cb, .ctx = ctx};
  mw_buf_init(&s.path, json.n + (size_t)MW_JSON_DEPTH_MAX * 24);
  mw_map_init(&s.plain);
  int rc = value(&s, NULL, 1);
  if (rc == 0) {
    mw_json_peek(&s.c);
    if (s.c.p != s.c.end) rc = MW_EPARSE;
  }
  size_t cursor = 0;
  struct mw_slice key;
  void *kept;
  while (mw_map_next(&s.plain, &cursor, &key, &kept)) mw_free(kept);
  mw_map_deinit(&s.plain);
  mw_buf_deinit(&s.path);
  mw_free(s.slots);
  return rc;
}
