// SPDX-License-Identifier: Apache-2.0
// Values of objects as plain strings, without a tree and, for labels and owners, without
// unpacking more than the metadata.
#include "cache/extract.h"

#include <stdint.h>

#include "base/alloc.h"
#include "cache/owner.h"
#include "cache/shown.h"
#include "wire/json.h"
#include "wire/path.h"

struct mw_extract {
  enum mw_extract_kind kind;
  struct mw_path *path;     // PATH
  char *label;              // LABEL
  bool controller_only;     // OWNER
  struct mw_unpacker *own;  // made when a caller has none
};

// ---- values ----

void mw_values_init(struct mw_values *v) {
  *v = (struct mw_values){0};
  mw_buf_init(&v->bytes, SIZE_MAX / 4);
}

void mw_values_deinit(struct mw_values *v) {
  mw_buf_deinit(&v->bytes);
  mw_free(v->ends);
  mw_values_init(v);
}

void mw_values_reset(struct mw_values *v) { v->count = v->bytes.n = 0; }

int mw_values_add(struct mw_values *v, struct mw_slice value) {
  if (v->count >= MW_VALUES_MAX || value.n > MW_VALUES_BYTES_MAX ||
      v->bytes.n > MW_VALUES_BYTES_MAX - value.n) {
    return MW_ELIMIT;
  }
  mw_values_push(v, value);
  return 0;
}

void mw_values_push(struct mw_values *v, struct mw_slice value) {
  if (v->count == v->cap) {
    v->cap = v->cap > 0 ? v->cap * 2 : 8;
    v->ends = mw_xrealloc(v->ends, v->cap * sizeof *v->ends);
  }
  if (mw_buf_add(&v->bytes, value.p, value.n) == 0) v->ends[v->count++] = v->bytes.n;
}

struct mw_slice mw_values_get(const struct mw_values *v, size_t i) {
  size_t start = i > 0 ? v->ends[i - 1] : 0;
  return mw_slice(v->bytes.p + start, v->ends[i] - start);
}

// ---- extracts ----

struct mw_extract *mw_extract_new(enum mw_extract_kind kind, struct mw_slice argument,
                                  struct mw_err *err) {
  struct mw_extract x = {.kind = kind};
  switch (kind) {
    case MW_EXTRACT_PATH:
      x.path = mw_path_new(argument, err);
      if (x.path == NULL) return NULL;
      break;
    case MW_EXTRACT_LABEL:
      if (argument.n == 0) {
        mw_err_set(err, MW_EINVAL, "a label needs a key");
        return NULL;
      }
      x.label = mw_xstrndup(argument.p, argument.n);
      break;
    case MW_EXTRACT_OWNER:
      x.controller_only = mw_slice_is(argument, "controller");
      if (argument.n > 0 && !x.controller_only) {
        mw_err_set(err, MW_EINVAL, "an owner is \"controller\" or \"any\", not \"%s\"",
                   mw_shown(argument).text);
        return NULL;
      }
      break;
  }
  struct mw_extract *out = mw_xmalloc(sizeof *out);
  *out = x;
  return out;
}

void mw_extract_free(struct mw_extract *x) {
  if (x == NULL) return;
  mw_path_free(x->path);
  mw_free(x->label);
  mw_unpacker_free(x->own);
  mw_free(x);
}

static int add_string(struct mw_slice raw, bool escaped, struct mw_values *out) {
  if (!escaped) return mw_values_add(out, raw);
  struct mw_buf text;
  mw_buf_init(&text, raw.n);
  int rc = mw_json_unescape(raw, &text);
  if (rc == 0) rc = mw_values_add(out, mw_buf_slice(&text));
  mw_buf_deinit(&text);
  return rc;
}

// The value at c if it is a scalar; null, objects and arrays have no value.
static int add_scalar(struct mw_json *c, struct mw_values *out) {
  struct mw_slice text;
  bool flag;
  int rc;
  switch (mw_json_peek(c)) {
    case MW_JSON_STRING:
      rc = mw_json_string(c, &text, &flag);
      return rc < 0 ? rc : add_string(text, flag, out);
    case MW_JSON_NUMBER:
      rc = mw_json_number(c, &text, &flag);
      return rc < 0 ? rc : mw_values_add(out, text);
    case MW_JSON_TRUE:
      return mw_values_add(out, MW_SLICE("true"));
    case MW_JSON_FALSE:
      return mw_values_add(out, MW_SLICE("false"));
    default:
      return 0;
  }
}

struct visit {
  struct mw_values *out;
  int rc;
};

static bool on_value(void *ctx, struct mw_slice value) {
  struct visit *v = ctx;
  struct mw_json c = {value.p, value.p + value.n};
  v->rc = add_scalar(&c, v->out);
  return v->rc == 0;
}

static int path_values(const struct mw_extract *x, const struct mw_object *o, struct mw_unpacker *u,
                       struct mw_values *out) {
  struct mw_packed_member m;
  int found = mw_object_member_at(o, x->path, &m);
  if (found == 0) return 0;
  if (found > 0) return add_scalar(&(struct mw_json){m.value.p, m.value.p + m.value.n}, out);
  struct mw_slice json = mw_object_json(o, u);
  if (json.n == 0) return MW_EPARSE;
  struct visit v = {.out = out};
  int rc = mw_path_each(x->path, json, on_value, &v);
  if (rc < 0) return rc;
  return v.rc;
}

static int label_value(const struct mw_extract *x, const struct mw_object *o, struct mw_unpacker *u,
                       struct mw_values *out) {
  struct mw_slice value;
  if (mw_object_label(o, u, mw_slice_str(x->label), &value) <= 0) return 0;
  return mw_values_add(out, value);
}

struct owners {
  bool controller_only;
  struct mw_values *out;
};

static int add_uid(void *ctx, const struct mw_owner *owner) {
  struct owners *w = ctx;
  if (owner->uid.n == 0 || (w->controller_only && !owner->controller)) return 0;
  return mw_values_add(w->out, owner->uid);
}

static int owner_uids(const struct mw_extract *x, const struct mw_object *o, struct mw_unpacker *u,
                      struct mw_values *out) {
  struct owners w = {x->controller_only, out};
  return mw_owner_each(o, u, add_uid, &w);
}

int mw_extract_values(struct mw_extract *x, const struct mw_object *o, struct mw_unpacker *u,
                      struct mw_values *out) {
  if (u == NULL) {
    if (x->own == NULL) x->own = mw_unpacker_new();
    u = x->own;
  }
  switch (x->kind) {
    case MW_EXTRACT_PATH:
      return path_values(x, o, u, out);
    case MW_EXTRACT_LABEL:
      return label_value(x, o, u, out);
    case MW_EXTRACT_OWNER:
      return owner_uids(x, o, u, out);
  }
  return MW_EINVAL;
}

// ---- predicates ----

struct part {
  struct mw_extract *extract;
  struct mw_values values;  // none: any value will do
  bool negate;
};

struct mw_predicate {
  struct part *parts;
  size_t count;
  struct mw_selector *labels;  // NULL: any
  char *ns;                    // NULL: any
};

struct mw_predicate *mw_predicate_new(void) {
  return mw_xcalloc(1, sizeof(struct mw_predicate));
}

void mw_predicate_free(struct mw_predicate *p) {
  if (p == NULL) return;
  for (size_t i = 0; i < p->count; i++) {
    mw_extract_free(p->parts[i].extract);
    mw_values_deinit(&p->parts[i].values);
  }
  mw_free(p->parts);
  mw_selector_free(p->labels);
  mw_free(p->ns);
  mw_free(p);
}

void mw_predicate_add(struct mw_predicate *p, const struct mw_predicate_part *part) {
  p->parts = mw_xrealloc(p->parts, (p->count + 1) * sizeof *p->parts);
  struct part *added = &p->parts[p->count++];
  *added = (struct part){.extract = part->extract, .negate = part->negate};
  mw_values_init(&added->values);
  for (size_t i = 0; i < part->count; i++) mw_values_push(&added->values, part->values[i]);
}

void mw_predicate_set_labels(struct mw_predicate *p, struct mw_selector *s) {
  mw_selector_free(p->labels);
  p->labels = s;
}

void mw_predicate_set_ns(struct mw_predicate *p, struct mw_slice ns) {
  mw_free(p->ns);
  p->ns = ns.n > 0 ? mw_xstrndup(ns.p, ns.n) : NULL;
}

static bool share_a_value(const struct mw_values *a, const struct mw_values *b) {
  for (size_t i = 0; i < a->count; i++) {
    for (size_t j = 0; j < b->count; j++) {
      if (mw_slice_eq(mw_values_get(a, i), mw_values_get(b, j))) return true;
    }
  }
  return false;
}

static bool part_holds(const struct part *part, const struct mw_object *o, struct mw_unpacker *u,
                       struct mw_values *scratch) {
  mw_values_reset(scratch);
  if (mw_extract_values(part->extract, o, u, scratch) < 0) return false;
  bool found = part->values.count > 0 ? share_a_value(&part->values, scratch) : scratch->count > 0;
  return found != part->negate;
}

bool mw_predicate_test(const struct mw_predicate *p, const struct mw_object *o,
                       struct mw_unpacker *u) {
  if (p->ns != NULL && !mw_slice_is(mw_object_ns(o), p->ns)) return false;
  if (p->labels != NULL && !mw_selector_matches_object(p->labels, o, u)) return false;
  if (p->count == 0) return true;
  struct mw_values scratch;
  mw_values_init(&scratch);
  bool holds = true;
  for (size_t i = 0; i < p->count && holds; i++) {
    holds = part_holds(&p->parts[i], o, u, &scratch);
  }
  mw_values_deinit(&scratch);
  return holds;
}
