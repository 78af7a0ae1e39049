// SPDX-License-Identifier: Apache-2.0
// One YAML (or JSON) document in memory, read by key. Private to transport.
//
// Nodes are small numbers; 0 is "not there" and is accepted everywhere, so lookups chain without
// tests in between. Slices point into the document and live as long as it does. Only
// mw_yaml_to_json walks a document recursively, to a depth of its own: elsewhere an alias that
// refers to its own parent costs nothing.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

struct mw_yaml;

enum { MW_YAML_MAX_BYTES = 1024 * 1024, MW_YAML_JSON_DEPTH = 64 };

// Parses the first document of the text. label names the text in messages. NULL on failure.
struct mw_yaml *mw_yaml_parse(const char *p, size_t n, const char *label, struct mw_err *err);
void mw_yaml_free(struct mw_yaml *y);  // NULL is fine

// 0 when the text holds no document.
int mw_yaml_root(const struct mw_yaml *y);
// The value of a key of a mapping, or of what it merges ("<<"); 0 when node is no mapping or has no
// such key.
int mw_yaml_get(const struct mw_yaml *y, int node, const char *key);
// The i-th item of a sequence; 0 past the end or when node is no sequence.
int mw_yaml_item(const struct mw_yaml *y, int node, size_t i);
// The i-th pair of a mapping; false past the end or when node is no mapping.
bool mw_yaml_pair(const struct mw_yaml *y, int node, size_t i, int *key, int *value);
bool mw_yaml_is_map(const struct mw_yaml *y, int node);
bool mw_yaml_is_list(const struct mw_yaml *y, int node);
// True when the node is there and not null.
bool mw_yaml_has(const struct mw_yaml *y, int node);
// The text of a scalar; p is NULL for null and for anything that is not a scalar.
struct mw_slice mw_yaml_text(const struct mw_yaml *y, int node);
// 1, 0, or -1 when the node is not a boolean. Not there and null are false.
int mw_yaml_bool(const struct mw_yaml *y, int node);
// Appends the node as JSON, with plain scalars typed as kubectl types them; tags do not count, and
// a key that is there twice is written twice. The message of a failure goes on where a name of the
// node ends: "is nested deeper than 64 levels". MW_ELIMIT for that and for a full out, MW_EINVAL
// for what JSON has not and for merge keys; out holds the beginning then.
int mw_yaml_to_json(const struct mw_yaml *y, int node, struct mw_buf *out, struct mw_err *err);
