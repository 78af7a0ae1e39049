// SPDX-License-Identifier: Apache-2.0
// A list gives the same items and the same error however its bytes are cut, and every copy of an
// item is JSON that yajl takes; a refused item has none. Where all is kept, yajl reads the same
// items in the list. The first byte chooses the projection, the second the size of the chunks.
#include "fuzz.h"
#include "oracle.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "wire/list_split.h"

enum { SEEN_MAX = 1 << 24 };

static void note(struct mw_buf *seen, struct mw_slice text) {
  require(mw_buf_add(seen, text.p, text.n) == 0 && mw_buf_add(seen, "\n", 1) == 0);
}

static int on_item(void *ctx, const struct mw_item *item) {
  struct mw_buf *seen = ctx;
  if (item->refused == NULL) {
    struct mw_buf reading;
    mw_buf_init(&reading, READING_MAX);
    size_t n;
    require(oracle_read(item->json, &reading, &n) && n == item->json.n);
    mw_buf_deinit(&reading);
  } else {
    require(item->json.n == 0 && item->label_count == 0);
    note(seen, mw_slice_str(item->refused));
  }
  note(seen, item->json);
  note(seen, item->kind);
  note(seen, item->api_version);
  note(seen, item->name);
  note(seen, item->ns);
  note(seen, item->uid);
  note(seen, item->rv);
  for (size_t i = 0; i < item->label_count; i++) {
    note(seen, item->labels[i].key);
    note(seen, item->labels[i].value);
  }
  return 0;
}

static void run(const struct mw_projection *projection, const char *p, size_t n, size_t chunk,
                struct mw_buf *seen) {
  struct mw_err err = {0};
  struct mw_list_split *s = mw_list_split_new(projection, NULL, on_item, seen);
  int rc = 0;
  for (size_t at = 0; at < n && rc == 0; at += chunk) {
    size_t k = n - at < chunk ? n - at : chunk;
    char *exact = mw_xmalloc(k);
    memcpy(exact, p + at, k);
    rc = mw_list_split_feed(s, exact, k, &err);
    mw_free(exact);
  }
  if (rc == 0) rc = mw_list_split_finish(s, &err);
  const struct mw_list_info *info = mw_list_split_info(s);
  require(mw_buf_printf(seen, "%d %s %s %s %s %s %lld %zu", rc, err.message, info->kind,
                        info->api_version, info->rv,
                        info->continue_token != NULL ? info->continue_token : "", info->remaining,
                        info->items) == 0);
  mw_list_split_free(s);
}

// The items of a list as they come, their bytes kept apart by NUL; a refused one has none.
struct items {
  struct mw_buf json;
  struct mw_buf reading;
  size_t at;     // what of `json` was compared
  bool refused;  // one was; what is in it we know as little as yajl what comes behind
};

static int keep_item(void *ctx, const struct mw_item *item) {
  struct items *items = ctx;
  items->refused |= item->refused != NULL;
  require(mw_buf_add(&items->json, item->json.p, item->json.n) == 0 &&
          mw_buf_add(&items->json, "", 1) == 0);
  return 0;
}

// Our item may say its kind and apiVersion in front, if the list said them for it.
static void compare_item(void *ctx, struct mw_slice theirs) {
  struct items *items = ctx;
  if (items->at == items->json.n) return;  // we refused the list here
  struct mw_slice json = mw_slice_str(items->json.p + items->at);
  items->at += json.n + 1;
  if (json.n == 0) return;
  mw_buf_reset(&items->reading);
  size_t n;
  require(oracle_read(json, &items->reading, &n));
  struct mw_slice ours = mw_buf_slice(&items->reading);
  require(ours.n >= theirs.n && memcmp(ours.p, theirs.p, 2) == 0);
  require(memcmp(ours.p + (ours.n - theirs.n) + 2, theirs.p + 2, theirs.n - 2) == 0);
}

static void check_items(const char *p, size_t n) {
  struct items items = {0};
  mw_buf_init(&items.json, SEEN_MAX);
  mw_buf_init(&items.reading, READING_MAX);
  struct mw_list_split *s = mw_list_split_new(mw_projection_all(), NULL, keep_item, &items);
  struct mw_err err = {0};
  if (mw_list_split_feed(s, p, n, &err) == 0) (void)mw_list_split_finish(s, &err);
  oracle_read_items(mw_slice(p, n), compare_item, &items);
  require(items.at == items.json.n || items.refused);
  mw_list_split_free(s);
  mw_buf_deinit(&items.json);
  mw_buf_deinit(&items.reading);
}

static const struct mw_projection *choose(uint8_t which) {
  static struct mw_projection *some;
  if (some == NULL) {
    struct mw_slice keep[] = {MW_SLICE("metadata.labels"), MW_SLICE("spec.a[*].b"),
                              MW_SLICE("spec.c"), MW_SLICE("status")};
    struct mw_slice drop[] = {MW_SLICE("status.x"), MW_SLICE("spec.c[*]")};
    some = mw_projection_new(keep, 4, drop, 2, NULL);
  }
  if (which % 3 == 0) return mw_projection_default();
  return which % 3 == 1 ? mw_projection_all() : some;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  const struct mw_projection *projection = choose(data[0]);
  const char *p = (const char *)data + 2;
  struct mw_buf whole;
  struct mw_buf bytes;
  struct mw_buf chunks;
  mw_buf_init(&whole, SEEN_MAX);
  mw_buf_init(&bytes, SEEN_MAX);
  mw_buf_init(&chunks, SEEN_MAX);
  run(projection, p, size - 2, size, &whole);
  run(projection, p, size - 2, 1, &bytes);
  run(projection, p, size - 2, 2 + (size_t)data[1], &chunks);
  require(mw_slice_eq(mw_buf_slice(&whole), mw_buf_slice(&bytes)));
  require(mw_slice_eq(mw_buf_slice(&whole), mw_buf_slice(&chunks)));
  if (projection == mw_projection_all()) check_items(p, size - 2);
  mw_buf_deinit(&whole);
  mw_buf_deinit(&bytes);
  mw_buf_deinit(&chunks);
  return 0;
}
