// SPDX-License-Identifier: Apache-2.0
// Keep and drop lists, merged into one tree that the scanner follows while it copies.
//
// The tree is canonical (children sorted, nothing redundant), so its rendering identifies it.
#include "wire/projection.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "wire/json.h"

enum { PATHS_MAX = 512, TEXT_MAX = 4 * 1024 * 1024 };

struct mw_projection {
  const struct mw_projection_node *root;
  struct mw_slice text;
  bool partial;
  char *memory;  // the text; NULL for the shared ones
};

// Paths that agree up to some depth.
struct set {
  struct mw_path **paths;
  size_t count;
};

// What holds for one place in the object.
struct rule {
  bool keep_all;    // a kept path ends here or above
  struct set keep;  // those that go on below
  struct set drop;
  struct set always;
};

const struct mw_projection_node mw_projection_drop = {.keep_rest = false};

static const char *const always_kept[] = {
    "apiVersion",         "kind",         "metadata.name",
    "metadata.namespace", "metadata.uid", "metadata.resourceVersion",
};
enum { ALWAYS_COUNT = sizeof always_kept / sizeof always_kept[0] };

static void set_free(struct set *s) {
  for (size_t i = 0; i < s->count; i++) mw_path_free(s->paths[i]);
  mw_free(s->paths);
}

static bool set_ends(const struct set *s, size_t depth) {
  for (size_t i = 0; i < s->count; i++) {
    if (s->paths[i]->count == depth) return true;
  }
  return false;
}

static bool segment_eq(const struct mw_segment *a, const struct mw_segment *b) {
  return a->kind == b->kind && mw_slice_eq(a->key, b->key);
}

// Those whose segment at `depth` is `segment`. The paths stay the owner's.
static struct set set_below(const struct set *s, size_t depth, const struct mw_segment *segment) {
  struct set below = {0};
  if (s->count == 0) return below;
  below.paths = mw_xmalloc(s->count * sizeof(struct mw_path *));
  for (size_t i = 0; i < s->count; i++) {
    if (s->paths[i]->count > depth && segment_eq(&s->paths[i]->segments[depth], segment)) {
      below.paths[below.count++] = s->paths[i];
    }
  }
  return below;
}

static void node_free(const struct mw_projection_node *node) {
  if (node == NULL || node == &mw_projection_drop) return;
  for (size_t i = 0; i < node->count; i++) {
    node_free(node->children[i].node);
    mw_free((void *)node->children[i].key.p);
  }
  node_free(node->star);
  mw_free((void *)node->children);
  mw_free((void *)node);
}

static const struct mw_projection_node *build(struct rule rule, size_t depth);

static const struct mw_projection_node *build_below(const struct rule *rule, size_t depth,
                                                    const struct mw_segment *segment) {
  struct rule below = {
      .keep_all = rule->keep_all,
      .keep = set_below(&rule->keep, depth, segment),
      .drop = set_below(&rule->drop, depth, segment),
      .always = set_below(&rule->always, depth, segment),
  };
  const struct mw_projection_node *node = build(below, depth + 1);
  mw_free(below.keep.paths);
  mw_free(below.drop.paths);
  mw_free(below.always.paths);
  return node;
}

static bool node_has(const struct mw_projection_child *children, size_t count,
                     struct mw_slice key) {
  for (size_t i = 0; i < count; i++) {
    if (mw_slice_eq(children[i].key, key)) return true;
  }
  return false;
}

// Adds what the paths of one set say of the next level. What equals the rest is left out.
static void add_children(struct mw_projection_node *node, struct mw_projection_child *children,
                         const struct rule *rule, const struct set *s, size_t depth) {
  const struct mw_projection_node *rest = node->keep_rest ? NULL : &mw_projection_drop;
  for (size_t i = 0; i < s->count; i++) {
    const struct mw_segment *segment = &s->paths[i]->segments[depth];
    if (segment->kind == MW_SEGMENT_STAR) {
      if (node->has_star) continue;
      node->star = build_below(rule, depth, segment);
      node->has_star = node->star != rest;
    } else if (!node_has(children, node->count, segment->key)) {
      const struct mw_projection_node *child = build_below(rule, depth, segment);
      if (child == rest) continue;
      struct mw_slice key = {mw_xstrndup(segment->key.p, segment->key.n), segment->key.n};
      children[node->count++] = (struct mw_projection_child){key, child};
    }
  }
}

static int by_key(const void *a, const void *b) {
  struct mw_slice x = ((const struct mw_projection_child *)a)->key;
  struct mw_slice y = ((const struct mw_projection_child *)b)->key;
  int order = memcmp(x.p, y.p, x.n < y.n ? x.n : y.n);
  return order != 0 ? order : (x.n > y.n) - (x.n < y.n);
}

static const struct mw_projection_node *build(struct rule rule, size_t depth) {
  if (set_ends(&rule.always, depth)) return NULL;
  if (set_ends(&rule.keep, depth)) rule.keep_all = true;
  if (rule.keep_all) rule.keep.count = 0;
  if (set_ends(&rule.drop, depth)) {
    rule.keep_all = false;
    rule.keep.count = 0;
    rule.drop.count = 0;
  }
  if (rule.keep_all && rule.drop.count == 0) return NULL;
  if (!rule.keep_all && rule.keep.count + rule.always.count == 0) return &mw_projection_drop;
  struct mw_projection_node *node = mw_xcalloc(1, sizeof *node);
  size_t most = rule.keep.count + rule.drop.count + rule.always.count;
  struct mw_projection_child *children = mw_xcalloc(most, sizeof *children);
  node->keep_rest = rule.keep_all;
  node->children = children;
  add_children(node, children, &rule, &rule.keep, depth);
  add_children(node, children, &rule, &rule.drop, depth);
  add_children(node, children, &rule, &rule.always, depth);
  qsort(children, node->count, sizeof *children, by_key);
  if (node->count > 0 || node->has_star) return node;
  const struct mw_projection_node *rest = node->keep_rest ? NULL : &mw_projection_drop;
  node_free(node);
  return rest;
}

// "+" all stays, "-" all goes, {+...} or {-...} the rest stays or goes but for these.
static int render(const struct mw_projection_node *node, struct mw_buf *out) {
  if (node == NULL) return mw_buf_add(out, "+", 1);
  if (node == &mw_projection_drop) return mw_buf_add(out, "-", 1);
  int rc = mw_buf_add(out, node->keep_rest ? "{+" : "{-", 2);
  for (size_t i = 0; rc == 0 && i < node->count; i++) {
    rc = mw_json_quote(node->children[i].key, out);
    if (rc == 0) rc = render(node->children[i].node, out);
  }
  if (rc == 0 && node->has_star) {
    rc = mw_buf_add(out, "*", 1);
    if (rc == 0) rc = render(node->star, out);
  }
  return rc == 0 ? mw_buf_add(out, "}", 1) : rc;
}

static int set_parse(struct set *s, const struct mw_slice *texts, size_t count,
                     struct mw_err *err) {
  if (count > PATHS_MAX) {
    return mw_err_set(err, MW_EINVAL, "a projection has more than %d paths", PATHS_MAX);
  }
  s->paths = mw_xcalloc(count + 1, sizeof(struct mw_path *));
  for (size_t i = 0; i < count; i++) {
    struct mw_path *path = mw_path_new(texts[i], err);
    if (path == NULL) return MW_EINVAL;
    s->paths[s->count++] = path;
    for (size_t k = 0; k < path->count; k++) {
      if (path->segments[k].kind != MW_SEGMENT_INDEX) continue;
      return mw_err_set(err, MW_EINVAL, "path '%.*s': a projection takes [*] but no index",
                        MW_SLICE_ARGS(path->text));
    }
  }
  return 0;
}

static const char default_text[] = "{+\"metadata\"{+\"managedFields\"-}}";

static struct mw_projection *finish(const struct mw_projection_node *root, struct mw_err *err) {
  struct mw_buf text;
  mw_buf_init(&text, TEXT_MAX);
  if (render(root, &text) < 0) {
    mw_err_set(err, MW_ELIMIT, "the projection is too large");
    mw_buf_deinit(&text);
    node_free(root);
    return NULL;
  }
  struct mw_projection *p = mw_xcalloc(1, sizeof *p);
  p->root = root;
  p->memory = text.p;
  p->text = mw_buf_slice(&text);
  p->partial = root != NULL && !mw_slice_is(p->text, default_text);
  return p;
}

struct mw_projection *mw_projection_new(const struct mw_slice *keep, size_t keep_count,
                                        const struct mw_slice *drop, size_t drop_count,
                                        struct mw_err *err) {
  struct mw_slice always[ALWAYS_COUNT];
  for (size_t i = 0; i < ALWAYS_COUNT; i++) always[i] = mw_slice_str(always_kept[i]);
  struct rule rule = {.keep_all = keep_count == 0};
  struct mw_projection *p = NULL;
  int rc = set_parse(&rule.keep, keep, keep_count, err);
  if (rc == 0) rc = set_parse(&rule.drop, drop, drop_count, err);
  if (rc == 0) rc = set_parse(&rule.always, always, ALWAYS_COUNT, err);
  if (rc == 0) p = finish(build(rule, 0), err);
  set_free(&rule.keep);
  set_free(&rule.drop);
  set_free(&rule.always);
  if (p != NULL) mw_live_add(MW_LIVE_PROJECTION, 1);
  return p;
}

const struct mw_projection *mw_projection_default(void) {
  static const struct mw_projection_child managed = {
      .key = {"managedFields", sizeof "managedFields" - 1}, .node = &mw_projection_drop};
  static const struct mw_projection_node metadata = {
      .keep_rest = true, .children = &managed, .count = 1};
  static const struct mw_projection_child child = {.key = {"metadata", sizeof "metadata" - 1},
                                                   .node = &metadata};
  static const struct mw_projection_node root = {.keep_rest = true, .children = &child, .count = 1};
  static const struct mw_projection shared = {.root = &root,
                                              .text = {default_text, sizeof default_text - 1}};
  return &shared;
}

const struct mw_projection *mw_projection_all(void) {
  static const struct mw_projection shared = {.root = NULL, .text = {"+", 1}};
  return &shared;
}

void mw_projection_free(struct mw_projection *p) {
  if (p == NULL) return;
  node_free(p->root);
  mw_free(p->memory);
  mw_free(p);
  mw_live_add(MW_LIVE_PROJECTION, -1);
}

struct mw_slice mw_projection_text(const struct mw_projection *p) {
  return p->text;
}
bool mw_projection_is_partial(const struct mw_projection *p) { return p->partial; }
const struct mw_projection_node *mw_projection_root(const struct mw_projection *p) {
  return p->root;
}

bool mw_projection_may_have(const struct mw_projection *p, const struct mw_path *path) {
  const struct mw_projection_node *node = p->root;
  for (size_t i = 0; i < path->count && node != NULL && node != &mw_projection_drop; i++) {
    const struct mw_segment *segment = &path->segments[i];
    if (segment->kind == MW_SEGMENT_KEY) {
      node = mw_projection_child(node, segment->key);
    } else if (node->has_star) {
      node = node->star;
    } else {
      node = node->keep_rest ? NULL : &mw_projection_drop;
    }
  }
  return node != &mw_projection_drop;
}
