// SPDX-License-Identifier: Apache-2.0
// A compiled projection as the scanner walks it. Private to core/wire; made in projection.c.
//
// A node says what becomes of a value: NULL keeps all of it, mw_projection_drop removes it, any
// other goes on member by member.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "wire/path.h"

struct mw_projection_node;

struct mw_projection_child {
  struct mw_slice key;  // owned by the node
  const struct mw_projection_node *node;
};

struct mw_projection_node {
  bool keep_rest;  // what no child names stays
  bool has_star;   // [*] was given: `star` is for the elements of an array
  const struct mw_projection_node *star;
  const struct mw_projection_child *children;
  size_t count;
};

enum mw_segment_kind { MW_SEGMENT_KEY = 0, MW_SEGMENT_INDEX, MW_SEGMENT_STAR };

struct mw_segment {
  enum mw_segment_kind kind;
  struct mw_slice key;  // MW_SEGMENT_KEY; points into the path
  size_t index;         // MW_SEGMENT_INDEX
};

struct mw_path {
  struct mw_slice text;
  char *memory;  // the text, then the unescaped keys
  size_t count;
  struct mw_segment segments[MW_PATH_SEGMENTS_MAX];
};

extern const struct mw_projection_node mw_projection_drop;

const struct mw_projection_node *mw_projection_root(const struct mw_projection *p);

static inline const struct mw_projection_node *mw_projection_child(
    const struct mw_projection_node *node, struct mw_slice key) {
  for (size_t i = 0; i < node->count; i++) {
    if (mw_slice_eq(node->children[i].key, key)) return node->children[i].node;
  }
  return node->keep_rest ? NULL : &mw_projection_drop;
}
