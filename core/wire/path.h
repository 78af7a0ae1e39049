// SPDX-License-Identifier: Apache-2.0
// Field paths: how index specs, predicates, kube.get and projections name a place in an object.
//
//   spec.nodeName
//   metadata.labels["app.kubernetes.io/name"]
//   spec.containers[*].image           every element
//   status.conditions[0].type          one element (from 0, as in the JSON)
//
// A compiled path is immutable and may be used by any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/slice.h"

enum { MW_PATH_SEGMENTS_MAX = 32, MW_PATH_LENGTH_MAX = 1024 };

struct mw_path;

// NULL on a syntax error, which err explains with the column.
struct mw_path *mw_path_new(struct mw_slice text, struct mw_err *err);
void mw_path_free(struct mw_path *path);  // NULL is fine
// The text it was made from; valid as long as the path.
struct mw_slice mw_path_text(const struct mw_path *path);

// The member that it begins with; empty when that is an element.
struct mw_slice mw_path_first(const struct mw_path *path);
// Whether it is the name of a member, and that of a member of it, and then which.
bool mw_path_is_pair(const struct mw_path *path, struct mw_slice *first, struct mw_slice *second);

// Called with each value found: its JSON text. Return false to stop.
typedef bool (*mw_path_cb)(void *ctx, struct mw_slice value);

// Visits every value at `path` in document `json` (valid JSON) in document order. Returns the
// number of values visited, or a negative error if the document is not what it should be.
int mw_path_each(const struct mw_path *path, struct mw_slice json, mw_path_cb cb, void *ctx);

// A projection: which parts of an object are kept while it is copied (D14). Paths may use [*] but
// no numeric index. metadata.name, .namespace, .uid and .resourceVersion, apiVersion and kind are
// always kept. With `keep`, only these paths (and what lies below them) stay; `drop` is applied
// after it.
struct mw_projection;

// paths are copied. keep_count 0 means keep everything.
struct mw_projection *mw_projection_new(const struct mw_slice *keep, size_t keep_count,
                                        const struct mw_slice *drop, size_t drop_count,
                                        struct mw_err *err);
// The default: metadata.managedFields is dropped, all else stays. Shared, never freed.
const struct mw_projection *mw_projection_default(void);
// Everything stays.
const struct mw_projection *mw_projection_all(void);
void mw_projection_free(struct mw_projection *p);  // not for the shared ones; NULL is fine
// A canonical text, equal for equal projections: part of an informer's identity.
struct mw_slice mw_projection_text(const struct mw_projection *p);
// Whether an object may have something at `path` when the projection is done with it.
bool mw_projection_may_have(const struct mw_projection *p, const struct mw_path *path);
// Whether something other than managedFields is removed (a PUT of such an object would lose data).
bool mw_projection_is_partial(const struct mw_projection *p);
