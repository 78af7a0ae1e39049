// SPDX-License-Identifier: Apache-2.0
// One allocation per object: the header, then the label fingerprints, the key with a NUL, the
// resource version, the uid and the packed bytes, in this order. Nothing changes after
// mw_object_new() but the reference count.
#include "cache/object.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/block.h"
#include "base/err.h"
#include "base/map.h"
#include "cache/shown.h"
#include "wire/json.h"

enum {
  FLAG_DELETING = 1,
  FLAG_UUID = 2,         // the uid is stored as 16 bytes
  FLAG_MORE_LABELS = 4,  // there are more labels than fingerprints
  FLAG_PARTIAL = 8,
};

enum {
  FINGERPRINTS_MAX = 64,
  UUID_TEXT = 36,
  UUID_BYTES = 16,
  METADATA_WANT = 2048,  // holds the metadata of most objects
  STACK_SCRATCH = 32 * 1024,
  TRIM_MIN = 10000,
  AHEAD = 8,  // objects that are fetched before their turn
};

struct mw_object {
  atomic_uint refs;
  uint32_t hash;
  struct mw_dict *dict;  // +1, or NULL
  uint32_t raw_len;
  uint32_t packed_len;
  uint16_t key_len;
  uint16_t ns_len;  // 0: no namespace
  uint8_t rv_len;
  uint8_t uid_len;  // as stored
  uint8_t print_count;
  uint8_t flags;
  uint32_t prints[];  // per label: hash of the key in the upper half, of the value in the lower
};

_Static_assert(sizeof(struct mw_object) == 32, "the fixed header stays small");
_Static_assert(MW_OBJECT_RV_MAX < 256 && MW_OBJECT_UID_MAX < 256, "lengths fit a byte");

static char *key_at(const struct mw_object *o) { return (char *)(o->prints + o->print_count); }
static char *rv_at(const struct mw_object *o) { return key_at(o) + o->key_len + 1; }
static char *uid_at(const struct mw_object *o) { return rv_at(o) + o->rv_len; }
static char *packed_at(const struct mw_object *o) { return uid_at(o) + o->uid_len; }

static uint32_t print_half(struct mw_slice s) {
  uint32_t h = mw_hash(s);
  return (h ^ (h >> 16)) & 0xFFFF;
}

static bool uuid_dash(size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

// Whether uid is a UUID in lower case, and then its bytes: only what prints back the same.
static bool uuid_pack(struct mw_slice uid, uint8_t out[UUID_BYTES]) {
  enum { DIGIT = 16 };  // the rest of a digit's entry is what it stands for
  static const uint8_t digits[256] = {['0'] = 16, 17, 18,         19, 20, 21, 22, 23,
                                      24,         25, ['a'] = 26, 27, 28, 29, 30, 31};
  static const uint8_t at[UUID_BYTES] = {0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34};
  if (uid.n != UUID_TEXT) return false;
  const uint8_t *p = (const uint8_t *)uid.p;
  unsigned all = DIGIT;
  for (size_t i = 0; i < UUID_BYTES; i++) {
    unsigned high = digits[p[at[i]]], low = digits[p[at[i] + 1]];
    all &= high & low;
    out[i] = (uint8_t)(high << 4 | (low & 15));
  }
  return all == DIGIT && p[8] == '-' && p[13] == '-' && p[18] == '-' && p[23] == '-';
}

static void uuid_print(const uint8_t *bytes, char out[UUID_TEXT]) {
  static const char digits[] = "0123456789abcdef";
  size_t n = 0;
  for (size_t i = 0; i < UUID_TEXT; i++) {
    if (uuid_dash(i)) {
      out[i] = '-';
      continue;
    }
    out[i++] = digits[bytes[n] >> 4];
    out[i] = digits[bytes[n++] & 15];
  }
}

static int check_item(const struct mw_item *item, struct mw_err *err) {
  if (item->refused != NULL) return mw_err_set(err, MW_ELIMIT, "%s", item->refused);
  if (!item->has_metadata) return mw_err_set(err, MW_EINVAL, "the object has no metadata");
  if (item->name.n == 0) return mw_err_set(err, MW_EINVAL, "the object has no metadata.name");
  const char *what = NULL;
  if (item->name.n + 1 + item->ns.n > MW_OBJECT_KEY_MAX) what = "namespace and name are";
  if (item->uid.n > MW_OBJECT_UID_MAX) what = "the uid is";
  if (item->rv.n > MW_OBJECT_RV_MAX) what = "the resourceVersion is";
  if (item->json.n > MW_ITEM_SIZE_MAX) what = "the object is";
  if (what == NULL) return 0;
  return mw_err_set(err, MW_ELIMIT, "%s too long: %s", what, mw_shown(item->name).text);
}

static void copy(char *to, struct mw_slice s) {
  if (s.n > 0) memcpy(to, s.p, s.n);
}

static void fill_key(struct mw_object *o, const struct mw_item *item) {
  char *p = key_at(o);
  copy(p, item->ns);
  if (item->ns.n > 0) p[item->ns.n] = '/';
  copy(p + (o->key_len - item->name.n), item->name);
  p[o->key_len] = '\0';
  o->hash = mw_hash(mw_object_key(o));
}

// Makes the object from an item and its packed bytes.
static struct mw_object *assemble(const struct mw_item *item, struct mw_slice packed,
                                  struct mw_dict *dict) {
  uint8_t uuid[UUID_BYTES];
  bool is_uuid = uuid_pack(item->uid, uuid);
  size_t prints = item->label_count;
  bool more = item->more_labels || prints > FINGERPRINTS_MAX;
  if (prints > FINGERPRINTS_MAX) prints = FINGERPRINTS_MAX;
  size_t key_len = item->name.n + (item->ns.n > 0 ? item->ns.n + 1 : 0);
  size_t uid_len = is_uuid ? UUID_BYTES : item->uid.n;
  struct mw_object *o = mw_block_get(sizeof *o + prints * sizeof o->prints[0] + key_len + 1 +
                                     item->rv.n + uid_len + packed.n);
  atomic_init(&o->refs, 1);
  o->dict = mw_dict_ref(dict);
  o->raw_len = (uint32_t)item->json.n;
  o->packed_len = (uint32_t)packed.n;
  o->key_len = (uint16_t)key_len;
  o->ns_len = (uint16_t)item->ns.n;
  o->rv_len = (uint8_t)item->rv.n;
  o->uid_len = (uint8_t)uid_len;
  o->print_count = (uint8_t)prints;
  o->flags = (uint8_t)((item->deleting ? FLAG_DELETING : 0) | (is_uuid ? FLAG_UUID : 0) |
                       (more ? FLAG_MORE_LABELS : 0) | (item->partial ? FLAG_PARTIAL : 0));
  for (size_t i = 0; i < prints; i++) {
    o->prints[i] = print_half(item->labels[i].key) << 16 | print_half(item->labels[i].value);
  }
  fill_key(o, item);
  copy(rv_at(o), item->rv);
  copy(uid_at(o), is_uuid ? mw_slice((const char *)uuid, UUID_BYTES) : item->uid);
  copy(packed_at(o), packed);
  mw_live_add(MW_LIVE_OBJECT, 1);
  return o;
}

struct mw_object *mw_object_new(const struct mw_item *item, struct mw_packer *packer, bool is_new,
                                struct mw_err *err) {
  if (check_item(item, err) < 0) return NULL;
  char small[STACK_SCRATCH];
  size_t bound = mw_pack_bound(item->json.n);
  char *scratch = bound <= sizeof small ? small : mw_xmalloc(bound);
  struct mw_dict *dict = NULL;
  struct mw_pack_hint hint = {item->name, is_new, item->beside};
  size_t packed = mw_pack(packer, &hint, item->json, scratch, &dict);
  struct mw_object *o = assemble(item, mw_slice(scratch, packed), dict);
  if (scratch != small) mw_free(scratch);
  return o;
}

struct mw_object *mw_object_ref(struct mw_object *o) {
  if (o != NULL) atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
  return o;
}

void mw_object_unref(struct mw_object *o) {
  if (o == NULL) return;
  // Release: what this thread read happened before the free; acquire: so did the others' reads.
  if (atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1) return;
  mw_dict_unref(o->dict);
  mw_block_put(o, mw_object_memory(o));
  mw_live_add(MW_LIVE_OBJECT, -1);
}

void mw_object_unref_all(struct mw_object *const *v, size_t n) {
  for (size_t i = 0; i < n && i < AHEAD; i++) __builtin_prefetch(v[i], 1);
  for (size_t i = 0; i < n; i++) {
    if (i + AHEAD < n) __builtin_prefetch(v[i + AHEAD], 1);
    if (i + AHEAD / 2 < n && v[i + AHEAD / 2] != NULL) {
      __builtin_prefetch(v[i + AHEAD / 2]->dict, 1);
    }
    mw_object_unref(v[i]);
  }
}

struct mw_slice mw_object_key(const struct mw_object *o) {
  return mw_slice(key_at(o), o->key_len);
}

struct mw_slice mw_object_ns(const struct mw_object *o) {
  return mw_slice(key_at(o), o->ns_len);
}

struct mw_slice mw_object_name(const struct mw_object *o) {
  size_t skip = o->ns_len > 0 ? o->ns_len + 1u : 0;
  return mw_slice(key_at(o) + skip, o->key_len - skip);
}

struct mw_slice mw_object_rv(const struct mw_object *o) {
  return mw_slice(rv_at(o), o->rv_len);
}

uint32_t mw_object_hash(const struct mw_object *o) { return o->hash; }

bool mw_object_deleting(const struct mw_object *o) { return o->flags & FLAG_DELETING; }

bool mw_object_partial(const struct mw_object *o) { return o->flags & FLAG_PARTIAL; }

size_t mw_object_uid(const struct mw_object *o, char *out) {
  size_t n = o->uid_len;
  if (o->flags & FLAG_UUID) {
    n = UUID_TEXT;
    uuid_print((const uint8_t *)uid_at(o), out);
  } else {
    copy(out, mw_slice(uid_at(o), n));
  }
  out[n] = '\0';
  return n;
}

bool mw_object_same_uid(const struct mw_object *a, const struct mw_object *b) {
  return (a->flags & FLAG_UUID) == (b->flags & FLAG_UUID) &&
         mw_slice_eq(mw_slice(uid_at(a), a->uid_len), mw_slice(uid_at(b), b->uid_len));
}

bool mw_object_same_version(const struct mw_object *o, const struct mw_item *item) {
  if (item->rv.n == 0 || !mw_slice_eq(mw_object_rv(o), item->rv)) return false;
  char uid[MW_OBJECT_UID_MAX + 1];
  size_t n = mw_object_uid(o, uid);
  return mw_slice_eq(mw_slice(uid, n), item->uid);
}

size_t mw_object_raw_size(const struct mw_object *o) { return o->raw_len; }

size_t mw_object_memory(const struct mw_object *o) {
  return (size_t)(packed_at(o) - (const char *)o) + o->packed_len;
}

struct mw_slice mw_object_json(const struct mw_object *o, struct mw_unpacker *u) {
  mw_object_unpack(o, u);
  return mw_unpack_more(u, o->raw_len);
}

static struct mw_slice packed_of(const struct mw_object *o) {
  return mw_slice(packed_at(o), o->packed_len);
}

void mw_object_unpack(const struct mw_object *o, struct mw_unpacker *u) {
  mw_unpack_begin(u, o->dict, packed_of(o), o->raw_len);
}

void mw_object_prefetch(const struct mw_object *o) { mw_packed_prefetch(o->dict, packed_of(o)); }

size_t mw_object_section(const struct mw_object *o, struct mw_slice name) {
  return mw_packed_section(o->dict, packed_of(o), name);
}

int mw_object_member(const struct mw_object *o, size_t section, struct mw_slice name,
                     struct mw_packed_member *m) {
  return mw_packed_member(o->dict, packed_of(o), section, name, m);
}

int mw_object_member_at(const struct mw_object *o, const struct mw_path *path,
                        struct mw_packed_member *m) {
  struct mw_slice section, name;
  size_t at = mw_path_is_pair(path, &section, &name) ? mw_object_section(o, section) : 0;
  return at > 0 ? mw_object_member(o, at, name, m) : -1;
}

bool mw_object_may_have_label(const struct mw_object *o, struct mw_slice key) {
  if (o->flags & FLAG_MORE_LABELS) return true;
  uint32_t half = print_half(key);
  for (size_t i = 0; i < o->print_count; i++) {
    if (o->prints[i] >> 16 == half) return true;
  }
  return false;
}

bool mw_object_may_have_label_value(const struct mw_object *o, struct mw_slice key,
                                    struct mw_slice value) {
  if (o->flags & FLAG_MORE_LABELS) return true;
  uint32_t print = print_half(key) << 16 | print_half(value);
  for (size_t i = 0; i < o->print_count; i++) {
    if (o->prints[i] == print) return true;
  }
  return false;
}

int mw_object_metadata(struct mw_json *c, struct mw_slice key) {
  if (mw_json_peek(c) != MW_JSON_OBJECT) return MW_EPARSE;
  int rc = mw_json_find(c, MW_SLICE("metadata"));
  if (rc <= 0) return rc;
  enum mw_json_kind kind = mw_json_peek(c);
  if (kind == MW_JSON_NONE) return MW_EPARSE;
  return kind == MW_JSON_OBJECT ? mw_json_find(c, key) : 0;
}

// Unescapes in place: the memory is the unpacker's, ours until its next use, and the text only
// gets shorter.
static struct mw_slice unescape_in_place(struct mw_slice raw) {
  struct mw_buf text;
  mw_buf_init(&text, raw.n);
  if (mw_json_unescape(raw, &text) == 0) {
    copy((char *)raw.p, mw_buf_slice(&text));
    raw.n = text.n;
  }
  mw_buf_deinit(&text);
  return raw;
}

// The last string member `key` of metadata.labels: 1, 0, or negative when json is cut or damaged.
static int find_label(struct mw_slice json, struct mw_slice key, struct mw_slice *value) {
  struct mw_json c = {json.p, json.p + json.n};
  int rc = mw_object_metadata(&c, MW_SLICE("labels"));
  if (rc <= 0) return rc;
  enum mw_json_kind kind = mw_json_peek(&c);
  if (kind != MW_JSON_OBJECT) return kind == MW_JSON_NONE ? MW_EPARSE : 0;
  if ((rc = mw_json_enter(&c)) < 0) return rc;
  bool first = true, found = false, found_escaped = false, escaped = false;
  struct mw_slice name;
  while ((rc = mw_json_member(&c, &first, &name, &escaped)) > 0) {
    if (mw_json_peek(&c) == MW_JSON_STRING && mw_raw_is(name, escaped, key)) {
      found = true;
      rc = mw_json_string(&c, value, &found_escaped);
    } else {
      rc = mw_json_skip(&c);
    }
    if (rc < 0) break;
  }
  if (rc < 0) return rc;
  if (found && found_escaped) *value = unescape_in_place(*value);
  return found;
}

int mw_object_label(const struct mw_object *o, struct mw_unpacker *u, struct mw_slice key,
                    struct mw_slice *value) {
  if (!mw_object_may_have_label(o, key)) return 0;
  mw_object_unpack(o, u);
  for (size_t want = METADATA_WANT;; want = o->raw_len) {
    struct mw_slice json = mw_unpack_more(u, want);
    int rc = json.n > 0 ? find_label(json, key, value) : MW_EPARSE;
    if (rc >= 0) return rc;
    if (want >= o->raw_len) return 0;
  }
}

int mw_key_split(struct mw_slice key, struct mw_slice *ns, struct mw_slice *name) {
  const char *slash = key.n > 0 ? memchr(key.p, '/', key.n) : NULL;
  if (slash == NULL) {
    *ns = mw_slice(key.p, 0);
    *name = key;
    return 0;
  }
  size_t at = (size_t)(slash - key.p);
  struct mw_slice rest = mw_slice(slash + 1, key.n - at - 1);
  if (rest.n > 0 && memchr(rest.p, '/', rest.n) != NULL) return MW_EINVAL;
  *ns = mw_slice(key.p, at);
  *name = rest;
  return 0;
}

static bool is_rv(struct mw_slice s) {
  if (s.n == 0 || s.p[0] == '0') return false;
  for (size_t i = 0; i < s.n; i++) {
    if (s.p[i] < '0' || s.p[i] > '9') return false;
  }
  return true;
}

int mw_rv_compare(struct mw_slice a, struct mw_slice b, int *order) {
  if (!is_rv(a) || !is_rv(b)) return MW_EINVAL;
  int d = a.n != b.n ? (a.n < b.n ? -1 : 1) : memcmp(a.p, b.p, a.n);
  *order = (d > 0) - (d < 0);
  return 0;
}

void mw_object_list_add(struct mw_object_list *l, struct mw_object *o) {
  mw_object_list_give(l, mw_object_ref(o));
}

void mw_object_list_give(struct mw_object_list *l, struct mw_object *o) {
  if (l->n == l->cap) {
    l->cap = l->cap > 0 ? l->cap * 2 : 16;
    l->v = mw_xrealloc(l->v, l->cap * sizeof(struct mw_object *));
  }
  l->v[l->n++] = o;
}

void mw_object_list_deinit(struct mw_object_list *l) {
  mw_object_unref_all(l->v, l->n);
  mw_free(l->v);
  *l = (struct mw_object_list){0};
}

bool mw_object_trim(void) {
  static atomic_long peak;
  long live = mw_live_get(MW_LIVE_OBJECT);
  long top = atomic_load_explicit(&peak, memory_order_relaxed);
  bool due = top - live > TRIM_MIN && live < top - top / 4;
  // Only the thread that moves the mark trims.
  if (live <= top && !due) return false;
  if (!atomic_compare_exchange_strong(&peak, &top, live) || !due) return false;
  mw_block_trim();
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  return true;
}
