// SPDX-License-Identifier: Apache-2.0
#include "transport/yaml_doc.h"

#include <strings.h>
#include <yaml.h>

#include "base/alloc.h"

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

bool mw_yaml_pair(const struct mw_yaml *y, int node, size_t i, int *key, int *value) {
  const yaml_node_t *n = node_of(y, node);
  if (n == NULL || n->type != YAML_MAPPING_NODE) return false;
  const yaml_node_pair_t *start = n->data.mapping.pairs.start;
  if (i >= (size_t)(n->data.mapping.pairs.top - start)) return false;
  *key = start[i].key;
  *value = start[i].value;
  return true;
}

int mw_yaml_get(const struct mw_yaml *y, int node, const char *key) {
  int k, v;
  for (size_t i = 0; mw_yaml_pair(y, node, i, &k, &v); i++) {
    if (mw_slice_is(mw_yaml_text(y, k), key)) return v;
  }
  return 0;
}

int mw_yaml_item(const struct mw_yaml *y, int node, size_t i) {
  const yaml_node_t *n = node_of(y, node);
  if (n == NULL || n->type != YAML_SEQUENCE_NODE) return 0;
  const yaml_node_item_t *start = n->data.sequence.items.start;
  return i < (size_t)(n->data.sequence.items.top - start) ? start[i] : 0;
}

static bool is_null(const yaml_node_t *n) {
  if (n->type != YAML_SCALAR_NODE || n->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return false;
  struct mw_slice s = mw_slice((const char *)n->data.scalar.value, n->data.scalar.length);
  return s.n == 0 || mw_slice_is(s, "~") || mw_slice_is(s, "null") || mw_slice_is(s, "Null") ||
         mw_slice_is(s, "NULL");
}

bool mw_yaml_has(const struct mw_yaml *y, int node) {
  const yaml_node_t *n = node_of(y, node);
  return n != NULL && !is_null(n);
}

struct mw_slice mw_yaml_text(const struct mw_yaml *y, int node) {
  const yaml_node_t *n = node_of(y, node);
  if (n == NULL || n->type != YAML_SCALAR_NODE || is_null(n)) return mw_slice(NULL, 0);
  return mw_slice((const char *)n->data.scalar.value, n->data.scalar.length);
}

int mw_yaml_bool(const struct mw_yaml *y, int node) {
  const yaml_node_t *n = node_of(y, node);
  if (n == NULL || is_null(n)) return 0;
  if (n->type != YAML_SCALAR_NODE || n->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return -1;
  const char *s = (const char *)n->data.scalar.value;
  if (strcasecmp(s, "true") == 0) return 1;
  return strcasecmp(s, "false") == 0 ? 0 : -1;
}
