// SPDX-License-Identifier: Apache-2.0
// Input: a path, a newline, a document. Whatever a path finds is valid JSON; projected with the
// path kept or dropped, a valid object stays valid and keeps its identity.
#include "fuzz.h"

#include "wire/item.h"
#include "wire/json.h"
#include "wire/path.h"

static bool is_json(struct mw_slice s) {
  struct mw_json c = {s.p, s.p + s.n};
  return mw_json_skip(&c) == 0 && c.p == c.end;
}

static bool on_value(void *ctx, struct mw_slice value) {
  ++*(int *)ctx;
  require(is_json(value));
  return true;
}

static void check_projection(struct mw_slice path, bool keep, struct mw_slice json) {
  struct mw_projection *p = mw_projection_new(&path, keep, &path, !keep, NULL);
  if (p == NULL) return;
  require(mw_projection_text(p).n > 0);
  struct mw_item_scanner *all = mw_item_scanner_new(NULL);
  struct mw_item_scanner *some = mw_item_scanner_new(NULL);
  struct mw_item a;
  struct mw_item b;
  struct mw_json c = {json.p, json.p + json.n};
  struct mw_json d = c;
  struct mw_item_defaults defaults = {MW_SLICE("Pod"), MW_SLICE("v1")};
  int rc = mw_item_scan(all, &c, mw_projection_all(), &defaults, &a, NULL);
  require(mw_item_scan(some, &d, p, &defaults, &b, NULL) == rc && c.p == d.p);
  if (rc == 0) {
    require(is_json(a.json) && is_json(b.json) && b.json.n <= a.json.n);
    require(mw_slice_eq(a.name, b.name) && mw_slice_eq(a.ns, b.ns) && mw_slice_eq(a.uid, b.uid));
    require(mw_slice_eq(a.rv, b.rv) && mw_slice_eq(a.kind, b.kind));
    require(a.label_count == b.label_count);
  }
  mw_item_scanner_free(all);
  mw_item_scanner_free(some);
  mw_projection_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = (const char *)data;
  const char *newline = size > 0 ? memchr(text, '\n', size) : NULL;
  if (newline == NULL) return 0;
  struct mw_slice path = {text, (size_t)(newline - text)};
  struct mw_slice json = {newline + 1, size - path.n - 1};
  struct mw_err err;
  struct mw_path *compiled = mw_path_new(path, &err);
  if (compiled == NULL) {
    require(err.message[0] != '\0');
    return 0;
  }
  int visited = 0;
  int found = mw_path_each(compiled, json, on_value, &visited);
  require(found < 0 || found == visited);
  mw_path_free(compiled);
  check_projection(path, true, json);
  check_projection(path, false, json);
  return 0;
}
