// SPDX-License-Identifier: Apache-2.0
// Changes are a tree of edits along the object's own: an edit either puts a JSON text in the place
// of a member, or goes on inside it. A member that is not there, or is null, is made.
#include "client/lease_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "wire/json.h"

enum { EDITS_MAX = 80, TEXT_LIMIT = 32 * 1024, NUMBER_SIZE = 24 };

// ---- reading ----

// The string at the cursor, which must fit.
static int read_string(struct mw_json *c, char *out, size_t room) {
  struct mw_slice raw;
  bool escaped;
  int rc = mw_json_string(c, &raw, &escaped);
  if (rc < 0) return rc;
  struct mw_buf text;
  mw_buf_init(&text, room);
  rc = mw_json_unescape(raw, &text);
  if (rc == 0) {
    if (text.n > 0) memcpy(out, text.p, text.n);
    out[text.n] = '\0';
    if (strlen(out) != text.n) rc = MW_EPARSE;
  }
  mw_buf_deinit(&text);
  return rc;
}

static int read_count(struct mw_json *c, long *out) {
  struct mw_slice text;
  bool is_int;
  int rc = mw_json_number(c, &text, &is_int);
  if (rc < 0) return rc;
  char digits[NUMBER_SIZE];
  if (!is_int || text.n >= sizeof digits) return MW_EPARSE;
  memcpy(digits, text.p, text.n);
  digits[text.n] = '\0';
  *out = strtol(digits, NULL, 10);
  return *out >= 0 && *out <= INT32_MAX ? 0 : MW_EPARSE;
}

// A cursor at member `key` of the object at c: 1, 0 when it is absent or null, negative.
static int member(struct mw_json c, const char *key, struct mw_json *out) {
  if (mw_json_peek(&c) != MW_JSON_OBJECT) return MW_EPARSE;
  int rc = mw_json_find(&c, mw_slice_str(key));
  *out = c;
  if (rc <= 0) return rc;
  return mw_json_peek(out) == MW_JSON_NULL ? 0 : 1;
}

static int read_spec(struct mw_json spec, struct mw_lease_record *out) {
  struct mw_json c;
  int rc = member(spec, "holderIdentity", &c);
  if (rc > 0) rc = read_string(&c, out->holder, MW_LEASE_HOLDER_MAX);
  if (rc < 0) return rc;
  rc = member(spec, "leaseDurationSeconds", &c);
  if (rc > 0) rc = read_count(&c, &out->duration);
  if (rc < 0) return rc;
  rc = member(spec, "leaseTransitions", &c);
  if (rc > 0) rc = read_count(&c, &out->transitions);
  return rc < 0 ? rc : 0;
}

// Whether it says that it is a Lease, and has a version to update from.
static bool is_lease(struct mw_json c) {
  char kind[16], version[128];
  struct mw_json at, metadata;
  return member(c, "kind", &at) > 0 && read_string(&at, kind, sizeof kind - 1) == 0 &&
         strcmp(kind, "Lease") == 0 && member(c, "metadata", &metadata) > 0 &&
         member(metadata, "resourceVersion", &at) > 0 &&
         read_string(&at, version, sizeof version - 1) == 0 && version[0] != '\0';
}

int mw_lease_read(struct mw_slice json, struct mw_lease_record *out, struct mw_err *err) {
  *out = (struct mw_lease_record){.spec = MW_SLICE("")};
  if (json.n == 0) return mw_err_set(err, MW_EPARSE, "an empty answer is not a Lease");
  struct mw_json all = {json.p, json.p + json.n}, c = all, spec;
  if (mw_json_skip(&c) < 0 || !is_lease(all))
    return mw_err_set(err, MW_EPARSE, "the answer is not a Lease: %.*s",
                      json.n < 100 ? (int)json.n : 100, json.p);
  int rc = member(all, "spec", &spec);
  if (rc == 0) return 0;
  c = spec;
  if (rc < 0 || read_spec(spec, out) < 0 || mw_json_pass(&c) < 0)
    return mw_err_set(err, MW_EPARSE, "the spec of the Lease is not understood");
  out->spec = mw_slice(spec.p, (size_t)(c.p - spec.p));
  return 0;
}

// ---- writing ----

struct edit {
  struct mw_slice key;
  struct mw_slice text;      // the JSON of the value; empty: see edits
  const struct edit *edits;  // what to set within it
  size_t count;
};

static int apply(struct mw_json *c, const struct edit *edits, size_t count, struct mw_buf *out);

static int put_value(struct mw_json *c, const struct edit *e, struct mw_buf *out) {
  if (e->text.n == 0) return apply(c, e->edits, e->count, out);
  return mw_buf_add(out, e->text.p, e->text.n);
}

static const struct edit *edit_of(const struct edit *edits, size_t count, struct mw_slice key,
                                  bool escaped) {
  for (size_t i = 0; i < count; i++)
    if (mw_raw_is(key, escaped, edits[i].key)) return &edits[i];
  return NULL;
}

// One member that is there: c stands at its value and is behind it afterwards.
static int put_member(struct mw_json *c, const struct edit *e, struct mw_slice raw_key, bool first,
                      struct mw_buf *out) {
  int rc = mw_buf_printf(out, "%s\"%.*s\":", first ? "" : ",", MW_SLICE_ARGS(raw_key));
  if (rc < 0) return rc;
  (void)mw_json_peek(c);
  struct mw_json value = *c;
  rc = mw_json_skip(c);
  if (rc < 0) return rc;
  value.end = c->p;
  if (e != NULL) return put_value(&value, e, out);
  return mw_buf_add(out, value.p, (size_t)(value.end - value.p));
}

static int put_absent(const struct edit *e, bool first, struct mw_buf *out) {
  struct mw_json none = {NULL, NULL};
  int rc = first ? 0 : mw_buf_add(out, ",", 1);
  if (rc == 0) rc = mw_json_quote(e->key, out);
  if (rc == 0) rc = mw_buf_add(out, ":", 1);
  return rc == 0 ? put_value(&none, e, out) : rc;
}

static int apply(struct mw_json *c, const struct edit *edits, size_t count, struct mw_buf *out) {
  bool done[EDITS_MAX] = {false}, first = true, enter = true, escaped;
  struct mw_slice key;
  int rc = mw_buf_add(out, "{", 1);
  bool there = c->p != NULL && mw_json_peek(c) != MW_JSON_NULL;
  if (rc == 0 && there) rc = mw_json_enter(c);
  while (rc == 0 && there && (rc = mw_json_member(c, &enter, &key, &escaped)) > 0) {
    const struct edit *e = edit_of(edits, count, key, escaped);
    if (e != NULL && done[e - edits]) {  // twice in one object: the first was read
      rc = mw_json_skip(c);
      continue;
    }
    if (e != NULL) done[e - edits] = true;
    rc = put_member(c, e, key, first, out);
    first = false;
  }
  for (size_t i = 0; i < count && rc == 0; i++) {
    if (done[i]) continue;
    rc = put_absent(&edits[i], first, out);
    first = false;
  }
  return rc == 0 ? mw_buf_add(out, "}", 1) : rc;
}

// The texts of edits, which lie behind one another.
struct texts {
  struct mw_buf buf;
  int rc;
};

static struct mw_slice tail(const struct texts *t, size_t from) {
  return mw_slice(t->buf.p + from, t->buf.n - from);
}

static struct mw_slice quoted(struct texts *t, const char *s) {
  size_t from = t->buf.n;
  int rc = mw_json_quote(mw_slice_str(s), &t->buf);
  if (rc < 0) t->rc = rc;
  return tail(t, from);
}

static struct mw_slice number(struct texts *t, long n) {
  size_t from = t->buf.n;
  int rc = mw_buf_printf(&t->buf, "%ld", n);
  if (rc < 0) t->rc = rc;
  return tail(t, from);
}

static struct mw_slice time_text(struct texts *t, double seconds) {
  char text[MW_LEASE_TIME_SIZE];
  mw_lease_time(seconds, text);
  return quoted(t, text);
}

static size_t label_edits(struct texts *t, const struct mw_lease_change *change,
                          struct edit out[EDITS_MAX]) {
  for (size_t i = 0; i < change->label_count; i++)
    out[i] = (struct edit){.key = mw_slice_str(change->labels[i].key),
                           .text = quoted(t, change->labels[i].value)};
  return change->label_count;
}

static size_t spec_edits(struct texts *t, const struct mw_lease_change *change,
                         struct edit out[EDITS_MAX]) {
  size_t n = 0;
  out[n++] = (struct edit){.key = MW_SLICE("holderIdentity"), .text = quoted(t, change->holder)};
  out[n++] =
      (struct edit){.key = MW_SLICE("leaseDurationSeconds"), .text = number(t, change->duration)};
  out[n++] = (struct edit){.key = MW_SLICE("renewTime"), .text = time_text(t, change->renewed)};
  if (change->acquired > 0)
    out[n++] =
        (struct edit){.key = MW_SLICE("acquireTime"), .text = time_text(t, change->acquired)};
  if (change->transitions >= 0)
    out[n++] =
        (struct edit){.key = MW_SLICE("leaseTransitions"), .text = number(t, change->transitions)};
  return n;
}

int mw_lease_write(struct mw_slice json, const struct mw_lease_change *change, struct mw_buf *out) {
  if (change->label_count > EDITS_MAX) return MW_ELIMIT;
  struct texts t = {.rc = 0};
  mw_buf_init(&t.buf, TEXT_LIMIT);
  // Slices into the texts must not move: all of the room is made at once.
  int rc = mw_buf_reserve(&t.buf, TEXT_LIMIT - 1);
  if (rc == 0) {
    struct edit labels[EDITS_MAX], spec[EDITS_MAX];
    struct edit metadata = {.key = MW_SLICE("labels"), .edits = labels};
    metadata.count = label_edits(&t, change, labels);
    struct edit root[] = {{.key = MW_SLICE("metadata"), .edits = &metadata},
                          {.key = MW_SLICE("spec"), .edits = spec}};
    root[0].count = metadata.count > 0 ? 1 : 0;
    root[1].count = spec_edits(&t, change, spec);
    struct mw_json c = {json.p, json.p + json.n};
    rc = t.rc < 0 ? t.rc : apply(&c, root, 2, out);
  }
  mw_buf_deinit(&t.buf);
  return rc;
}

int mw_lease_begin(const char *ns, const char *name, struct mw_buf *out) {
  return mw_buf_printf(out,
                       "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
                       "\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\"}}",
                       name, ns);
}

void mw_lease_time(double seconds, char out[MW_LEASE_TIME_SIZE]) {
  time_t whole = (time_t)seconds;
  struct tm tm;
  gmtime_r(&whole, &tm);
  int micros = (int)((seconds - (double)whole) * 1e6);
  size_t n = strftime(out, MW_LEASE_TIME_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
  snprintf(out + n, MW_LEASE_TIME_SIZE - n, ".%06dZ", micros);
}
