// SPDX-License-Identifier: Apache-2.0
#include "transport/yaml_doc.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <strings.h>
#include <yaml.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/yaml_scalar.h"
#include "transport/internal.h"

enum { MERGES_MAX = 64 };

struct mw_yaml {
  yaml_document_t document;
};

// The document is for reading, but libyaml's accessor wants it writable.
static const yaml_node_t *node_of(const struct mw_yaml *y, int node) {
  return yaml_document_get_node((yaml_document_t *)&y->document, node);
}

struct mw_yaml *mw_yaml_parse(const char *p, size_t n, const char *label, struct mw_err *err) {
  if (n > MW_YAML_MAX_BYTES) {
    mw_err_set(err, MW_ELIMIT, "%s: larger than %d bytes", label, MW_YAML_MAX_BYTES);
    return NULL;
  }
  yaml_parser_t parser;
  if (!yaml_parser_initialize(&parser)) {
    mw_err_set(err, MW_ELIMIT, "%s: out of memory", label);
    return NULL;
  }
  yaml_parser_set_input_string(&parser, (const unsigned char *)p, n);
  struct mw_yaml *y = mw_xcalloc(1, sizeof *y);
  if (!yaml_parser_load(&parser, &y->document)) {
    mw_err_set(err, MW_EPARSE, "%s:%zu:%zu: not valid YAML: %s", label,
               parser.problem_mark.line + 1, parser.problem_mark.column + 1,
               parser.problem != NULL ? parser.problem : "malformed");
    mw_free(y);
    y = NULL;
  }
  yaml_parser_delete(&parser);
  return y;
}

void mw_yaml_free(struct mw_yaml *y) {
  if (y == NULL) return;
  yaml_document_delete(&y->document);
  mw_free(y);
}

int mw_yaml_root(const struct mw_yaml *y) { return node_of(y, 1) != NULL ? 1 : 0; }

bool mw_yaml_is_map(const struct mw_yaml *y, int node) {
  const yaml_node_t *n = node_of(y, node);
  return n != NULL && n->type == YAML_MAPPING_NODE;
}

bool mw_yaml_is_list(const struct mw_yaml *y, int node) {
  const yaml_node_t *n = node_of(y, node);
  return n != NULL && n->type == YAML_SEQUENCE_NODE;
}

bool mw_yaml_pair(const struct mw_yaml *y, int node, size_t i, int *key, int *value) {
  const yaml_node_t *n = node_of(y, node);
  if (n == NULL || n->type != YAML_MAPPING_NODE) return false;
  const yaml_node_pair_t *start = n->data.mapping.pairs.start;
  if (i >= (size_t)(n->data.mapping.pairs.top - start)) return false;
  *key = start[i].key;
  *value = start[i].value;
  return true;
}

// merges: how many maps merge keys ("<<") may still bring in; an anchor can hold itself.
static int find(const struct mw_yaml *y, int node, const char *key, int *merges) {
  int k, v, merged = 0;
  for (size_t i = 0; mw_yaml_pair(y, node, i, &k, &v); i++) {
    struct mw_slice name = mw_yaml_text(y, k);
    if (mw_slice_is(name, key)) return v;
    if (mw_slice_is(name, "<<")) merged = v;
  }
  if (merged == 0 || --*merges < 0) return 0;
  if (!mw_yaml_is_list(y, merged)) return find(y, merged, key, merges);
  int item, found = 0;
  for (size_t i = 0; found == 0 && (item = mw_yaml_item(y, merged, i)) != 0; i++) {
    if (--*merges < 0) return 0;
    found = find(y, item, key, merges);
  }
  return found;
}

int mw_yaml_get(const struct mw_yaml *y, int node, const char *key) {
  int merges = MERGES_MAX;
  return find(y, node, key, &merges);
}

int mw_yaml_item(const struct mw_yaml *y, int node, size_t i) {
  const yaml_node_t *n = node_of(y, node);
  if (n == NULL || n->type != YAML_SEQUENCE_NODE) return 0;
  const yaml_node_item_t *start = n->data.sequence.items.start;
  return i < (size_t)(n->data.sequence.items.top - start) ? start[i] : 0;
}

static struct mw_slice scalar_text(const yaml_node_t *n) {
  return mw_slice((const char *)n->data.scalar.value, n->data.scalar.length);
}

static struct mw_yaml_scalar meaning(const yaml_node_t *n) {
  bool plain = n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  if (!plain) return (struct mw_yaml_scalar){.kind = MW_YAML_STRING};
  return mw_yaml_resolve(scalar_text(n));
}

static bool is_null(const yaml_node_t *n) {
  return n->type == YAML_SCALAR_NODE && meaning(n).kind == MW_YAML_NULL;
}

bool mw_yaml_has(const struct mw_yaml *y, int node) {
  const yaml_node_t *n = node_of(y, node);
  return n != NULL && !is_null(n);
}

struct mw_slice mw_yaml_text(const struct mw_yaml *y, int node) {
  const yaml_node_t *n = node_of(y, node);
  if (n == NULL || n->type != YAML_SCALAR_NODE || is_null(n)) return mw_slice(NULL, 0);
  return scalar_text(n);
}

int mw_yaml_bool(const struct mw_yaml *y, int node) {
  const yaml_node_t *n = node_of(y, node);
  if (n == NULL || is_null(n)) return 0;
  if (n->type != YAML_SCALAR_NODE || n->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return -1;
  const char *s = (const char *)n->data.scalar.value;
  if (strcasecmp(s, "true") == 0) return 1;
  return strcasecmp(s, "false") == 0 ? 0 : -1;
}

// A walk over a node and all below it.
struct walk {
  const struct mw_yaml *y;
  struct mw_buf *out;
  struct mw_err err;  // code 0: nothing was refused
};

static int add_node(struct walk *w, int node, unsigned depth);

// What JSON writes for a scalar; p is NULL for a text, and for a number that JSON has not.
static struct mw_slice literal(struct mw_yaml_scalar s, char number[MW_NUMBER_SIZE]) {
  switch (s.kind) {
    case MW_YAML_NULL:
      return MW_SLICE("null");
    case MW_YAML_BOOL:
      return mw_slice_str(s.b ? "true" : "false");
    case MW_YAML_INT:
      return mw_slice(number, (size_t)snprintf(number, MW_NUMBER_SIZE, "%" PRId64, s.i));
    case MW_YAML_UINT:
      return mw_slice(number, (size_t)snprintf(number, MW_NUMBER_SIZE, "%" PRIu64, s.u));
    case MW_YAML_FLOAT:
      if (!isfinite(s.d)) break;
      return mw_slice(number, mw_number_write_go(s.d, number));
    case MW_YAML_STRING:
    case MW_YAML_MERGE:
    case MW_YAML_TIME:
      break;
  }
  return mw_slice(NULL, 0);
}

static int add_scalar(struct walk *w, const yaml_node_t *n) {
  char number[MW_NUMBER_SIZE];
  struct mw_yaml_scalar s = meaning(n);
  if (s.kind == MW_YAML_FLOAT && !isfinite(s.d)) {
    return mw_err_set(&w->err, MW_EINVAL, "has a number that JSON has not: NaN or infinity");
  }
  struct mw_slice written = literal(s, number);
  if (written.p == NULL) return mw_text_quote(scalar_text(n), w->out);
  return mw_buf_add(w->out, written.p, written.n);
}

// Keys are texts: those of numbers and booleans are what they would be as values.
static int add_key(struct walk *w, const yaml_node_t *n) {
  char number[MW_NUMBER_SIZE];
  if (n->type != YAML_SCALAR_NODE || is_null(n)) {
    return mw_err_set(&w->err, MW_EINVAL, "has a key that is not a text");
  }
  struct mw_yaml_scalar s = meaning(n);
  if (s.kind == MW_YAML_MERGE) {
    return mw_err_set(&w->err, MW_EINVAL, "has a merge key (<<): write out what it merges");
  }
  struct mw_slice written = literal(s, number);
  return mw_text_quote(written.p != NULL ? written : scalar_text(n), w->out);
}

static int add_mapping(struct walk *w, int node, unsigned depth) {
  int key, value, rc = mw_buf_add(w->out, "{", 1);
  for (size_t i = 0; rc == 0 && mw_yaml_pair(w->y, node, i, &key, &value); i++) {
    if (i > 0) rc = mw_buf_add(w->out, ",", 1);
    if (rc == 0) rc = add_key(w, node_of(w->y, key));
    if (rc == 0) rc = mw_buf_add(w->out, ":", 1);
    if (rc == 0) rc = add_node(w, value, depth + 1);
  }
  return rc < 0 ? rc : mw_buf_add(w->out, "}", 1);
}

static int add_sequence(struct walk *w, int node, unsigned depth) {
  int item, rc = mw_buf_add(w->out, "[", 1);
  for (size_t i = 0; rc == 0 && (item = mw_yaml_item(w->y, node, i)) != 0; i++) {
    if (i > 0) rc = mw_buf_add(w->out, ",", 1);
    if (rc == 0) rc = add_node(w, item, depth + 1);
  }
  return rc < 0 ? rc : mw_buf_add(w->out, "]", 1);
}

// Every call writes something, so that the limit of the buffer also ends a document in which
// aliases multiply.
static int add_node(struct walk *w, int node, unsigned depth) {
  const yaml_node_t *n = node_of(w->y, node);
  if (depth > MW_YAML_JSON_DEPTH) {
    return mw_err_set(&w->err, MW_ELIMIT, "is nested deeper than %d levels", MW_YAML_JSON_DEPTH);
  }
  if (n->type == YAML_MAPPING_NODE) return add_mapping(w, node, depth);
  if (n->type == YAML_SEQUENCE_NODE) return add_sequence(w, node, depth);
  return add_scalar(w, n);
}

int mw_yaml_to_json(const struct mw_yaml *y, int node, struct mw_buf *out, struct mw_err *err) {
  struct walk w = {.y = y, .out = out};
  int rc = add_node(&w, node, 1);
  if (rc == 0) return 0;
  if (w.err.code != 0) return mw_err_set(err, rc, "%s", w.err.message);
  return mw_err_set(err, rc, "is larger than %zu bytes as JSON", out->limit);
}
