// SPDX-License-Identifier: Apache-2.0
// A watch gives the same events and the same error however its bytes are cut, and every copy of an
// object is JSON that yajl takes; a refused one has none. The first byte is the size of the chunks.
#include "fuzz.h"
#include "oracle.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "wire/watch_split.h"

enum { SEEN_MAX = 1 << 24 };

static void note(struct mw_buf *seen, struct mw_slice text) {
  require(mw_buf_add(seen, text.p, text.n) == 0 && mw_buf_add(seen, "\n", 1) == 0);
}

static int on_event(void *ctx, const struct mw_event *event) {
  struct mw_buf *seen = ctx;
  note(seen, event->type_text);
  require(mw_buf_printf(seen, "%d %d %d %d ", event->type, event->is_status,
                        event->item.has_metadata, event->item.initial_events_end) == 0);
  if (event->type == MW_EVENT_ERROR) {
    struct mw_err err = {0};
    mw_status_classify(&event->status, 0, &err);
    note(seen, mw_slice_str(err.message));
    return 0;
  }
  if (event->item.refused == NULL) {
    struct mw_buf reading;
    mw_buf_init(&reading, READING_MAX);
    size_t n;
    require(oracle_read(event->item.json, &reading, &n) && n == event->item.json.n);
    mw_buf_deinit(&reading);
  } else {
    require(event->item.json.n == 0);
    note(seen, mw_slice_str(event->item.refused));
    note(seen, event->item.name);
  }
  note(seen, event->item.json);
  note(seen, event->item.rv);
  return 0;
}

static void run(const char *p, size_t n, size_t chunk, struct mw_buf *seen) {
  struct mw_err err = {0};
  struct mw_watch_split *s = mw_watch_split_new(mw_projection_default(), NULL, on_event, seen);
  int rc = 0;
  for (size_t at = 0; at < n && rc == 0; at += chunk) {
    size_t k = n - at < chunk ? n - at : chunk;
    char *exact = mw_xmalloc(k);
    memcpy(exact, p + at, k);
    rc = mw_watch_split_feed(s, exact, k, &err);
    mw_free(exact);
  }
  if (rc == 0) rc = mw_watch_split_finish(s, &err);
  require(mw_buf_printf(seen, "%d %s", rc, err.message) == 0);
  mw_watch_split_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  const char *p = (const char *)data + 1;
  struct mw_buf whole;
  struct mw_buf bytes;
  struct mw_buf chunks;
  mw_buf_init(&whole, SEEN_MAX);
  mw_buf_init(&bytes, SEEN_MAX);
  mw_buf_init(&chunks, SEEN_MAX);
  run(p, size - 1, size, &whole);
  run(p, size - 1, 1, &bytes);
  run(p, size - 1, 2 + (size_t)data[0], &chunks);
  require(mw_slice_eq(mw_buf_slice(&whole), mw_buf_slice(&bytes)));
  require(mw_slice_eq(mw_buf_slice(&whole), mw_buf_slice(&chunks)));
  mw_buf_deinit(&whole);
  mw_buf_deinit(&bytes);
  mw_buf_deinit(&chunks);
  return 0;
}
