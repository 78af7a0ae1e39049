// SPDX-License-Identifier: Apache-2.0
// An event is first read where it lies, on the guess that the chunk holds all of it. If that fails
// for any reason, the slow way decides: gather the event, read it again, and only then report. So
// what comes out, errors too, does not depend on how the bytes were cut.
#include "wire/watch_split.h"

#include <stdint.h>

#include "base/alloc.h"
#include "wire/frame.h"
#include "wire/scan.h"

enum { WRAPPER_MAX = 64 * 1024, TYPE_MAX = 1024 };

struct mw_watch_split {
  const struct mw_projection *projection;
  mw_watch_event_cb cb;
  void *ctx;
  struct mw_item_scanner *scanner;
  struct mw_frame frame;
  struct mw_buf type;  // the type of the event, unescaped
  bool in_event;       // the event is being gathered
  int failed;          // what feed returned last, when that was not 0
  size_t last_size;    // of the last event: a good guess for the next
  uint64_t base;       // offset of the chunk
  uint64_t start;      // offset of the event at hand
};

// An event while it is read.
struct reading {
  struct mw_walk w;
  struct mw_event event;
  bool has_type;
  bool scanned;            // event.item is that of `object`
  struct mw_slice object;  // p is NULL until seen
};

struct mw_watch_split *mw_watch_split_new(const struct mw_projection *projection,
                                          mw_watch_event_cb cb, void *ctx) {
  struct mw_watch_split *s = mw_xcalloc(1, sizeof *s);
  s->projection = projection;
  s->cb = cb;
  s->ctx = ctx;
  s->scanner = mw_item_scanner_new();
  mw_frame_init(&s->frame, (size_t)MW_ITEM_SIZE_MAX + WRAPPER_MAX);
  mw_buf_init(&s->type, TYPE_MAX);
  return s;
}

void mw_watch_split_free(struct mw_watch_split *s) {
  if (s == NULL) return;
  mw_item_scanner_free(s->scanner);
  mw_frame_deinit(&s->frame);
  mw_buf_deinit(&s->type);
  mw_free(s);
}

static enum mw_event_type type_of(struct mw_slice text) {
  if (mw_slice_eq(text, MW_SLICE("ADDED"))) return MW_EVENT_ADDED;
  if (mw_slice_eq(text, MW_SLICE("MODIFIED"))) return MW_EVENT_MODIFIED;
  if (mw_slice_eq(text, MW_SLICE("DELETED"))) return MW_EVENT_DELETED;
  if (mw_slice_eq(text, MW_SLICE("BOOKMARK"))) return MW_EVENT_BOOKMARK;
  if (mw_slice_eq(text, MW_SLICE("ERROR"))) return MW_EVENT_ERROR;
  return MW_EVENT_UNKNOWN;
}

static int read_type(struct mw_watch_split *s, struct reading *r) {
  struct mw_walk *w = &r->w;
  const char *from = w->p;
  if (*from != '"') return mw_walk_fail(w, from, MW_FAULT_SHAPE, "the type is not a string");
  struct mw_slice raw;
  bool escaped;
  int rc = mw_walk_string(w, &raw, &escaped);
  if (rc < 0) return rc;
  mw_buf_reset(&s->type);
  if (mw_json_unescape(raw, &s->type) < 0) {
    return mw_walk_fail(w, from, MW_FAULT_LIMIT, "the type is longer than 1 KiB");
  }
  r->has_type = true;
  r->event.type_text = mw_buf_slice(&s->type);
  r->event.type = type_of(r->event.type_text);
  return 0;
}

// Goes on behind the object that begins at `from`; false when it does not end here.
static bool pass_over(struct mw_walk *w, const char *from) {
  const char *behind = mw_frame_end(from, w->end);
  if (behind != NULL) w->p = behind;
  return behind != NULL;
}

// Scans the object at the cursor.
static int scan_object(struct mw_watch_split *s, struct reading *r) {
  const char *from = r->w.p;
  struct mw_json c = {from, r->w.end};
  int rc = mw_item_scan(s->scanner, &c, s->projection, NULL, &r->event.item, NULL);
  r->w.p = c.p;
  r->scanned = true;
  if (rc == 0) return 0;
  const struct mw_walk *w = mw_item_scanner_walk(s->scanner);
  if (rc == MW_ELIMIT) {
    mw_item_scanner_refused(s->scanner, w->why, &r->event.item);
    if (pass_over(&r->w, from)) return 0;
  }
  return mw_walk_fail(&r->w, c.p, w->fault, w->why);
}

// Validates the value at the cursor, unless it is too deep.
static int skip_object(struct reading *r) {
  const char *from = r->w.p;
  int rc = mw_walk_value(&r->w, 2);
  return rc == MW_ELIMIT && pass_over(&r->w, from) ? 0 : rc;
}

static int read_object(struct mw_watch_split *s, struct reading *r) {
  const char *from = r->w.p;
  // What to do with it depends on the type; without it, only pass over for now.
  bool now = r->has_type && r->event.type != MW_EVENT_ERROR;
  r->scanned = false;
  int rc = now ? scan_object(s, r) : skip_object(r);
  r->object = mw_slice(from, (size_t)(r->w.p - from));
  return rc;
}

// Both members are there: make the event what its type says.
static int settle(struct mw_watch_split *s, struct reading *r) {
  if (r->event.type == MW_EVENT_ERROR) {
    r->event.item = (struct mw_item){0};
    r->event.is_status = mw_status_parse(r->object, &r->event.status);
    return 0;
  }
  if (r->scanned) return 0;
  struct reading again = {.w = r->w};
  again.w.p = r->object.p;
  int rc = scan_object(s, &again);
  r->event.item = again.event.item;
  return rc < 0 ? mw_walk_fail(&r->w, again.w.p, again.w.fault, again.w.why) : 0;
}

// Reads the event at r->w, which stands at its '{'.
static int read_event(struct mw_watch_split *s, struct reading *r) {
  struct mw_walk *w = &r->w;
  const char *from = w->p++;
  bool first = true;
  struct mw_slice key;
  bool escaped;
  int rc;
  while ((rc = mw_walk_member(w, &first, &key, &escaped)) > 0) {
    if (mw_raw_is(key, escaped, MW_SLICE("type"))) {
      rc = read_type(s, r);
    } else if (mw_raw_is(key, escaped, MW_SLICE("object"))) {
      rc = read_object(s, r);
    } else {
      rc = mw_walk_value(w, 2);
    }
    if (rc < 0) return rc;
  }
  if (rc < 0) return rc;
  if (!r->has_type) return mw_walk_fail(w, from, MW_FAULT_SHAPE, "an event without a type");
  if (r->object.p == NULL) {
    return mw_walk_fail(w, from, MW_FAULT_SHAPE, "an event without an object");
  }
  return settle(s, r);
}

static int deliver(struct mw_watch_split *s, const struct reading *r) {
  s->in_event = false;
  return s->cb(s->ctx, &r->event);
}

static void reading_init(struct reading *r, const char *p, const char *end) {
  *r = (struct reading){.w = {.p = p, .end = end, .run = p}};
}

// Hands out what can be seen at the beginning of an event that is too large.
static int refuse_event(struct mw_watch_split *s, struct mw_slice head) {
  struct reading r;
  reading_init(&r, head.p, head.p + head.n);
  if (read_event(s, &r) < 0 && !r.has_type) r.event.type = MW_EVENT_UNKNOWN;
  if (r.event.type == MW_EVENT_ERROR) r.event.item = (struct mw_item){0};
  r.event.item.refused = "the event is larger than 16 MiB";
  return deliver(s, &r);
}

static int in_event(struct mw_watch_split *s, const char **p, const char *end, struct mw_err *err) {
  struct mw_slice whole;
  int rc = mw_frame_feed(&s->frame, p, end, &whole);
  if (rc == 0) return 0;
  s->last_size = whole.n;
  if (rc < 0) return refuse_event(s, whole);
  struct reading r;
  reading_init(&r, whole.p, whole.p + whole.n);
  if (read_event(s, &r) < 0) {
    return mw_fault_report(err, r.w.fault, r.w.why, s->start + (uint64_t)(r.w.p - whole.p));
  }
  if (r.w.p < r.w.end) {
    return mw_fault_report(err, MW_FAULT_SYNTAX, "unbalanced brackets", s->start);
  }
  return deliver(s, &r);
}

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// *p stands between events. chunk is where the bytes at hand begin.
static int begin_event(struct mw_watch_split *s, const char *chunk, const char **p, const char *end,
                       struct mw_err *err) {
  while (*p < end && is_space(**p)) ++*p;
  if (*p == end) return 0;
  s->start = s->base + (uint64_t)(*p - chunk);
  if (**p != '{') return mw_fault_report(err, MW_FAULT_SYNTAX, "expected '{'", s->start);
  s->in_event = true;
  struct reading r;
  reading_init(&r, *p, end);
  if ((size_t)(end - *p) < s->last_size || read_event(s, &r) < 0 ||
      (size_t)(r.w.p - *p) > s->frame.buf.limit) {
    return in_event(s, p, end, err);
  }
  s->last_size = (size_t)(r.w.p - *p);
  *p = r.w.p;
  return deliver(s, &r);
}

int mw_watch_split_feed(struct mw_watch_split *s, const char *p, size_t n, struct mw_err *err) {
  if (s->failed != 0) return mw_err_set(err, s->failed, "the watch has failed before");
  const char *chunk = p;
  const char *end = mw_slice_end(mw_slice(p, n));
  while (p < end && s->failed == 0) {
    s->failed = s->in_event ? in_event(s, &p, end, err) : begin_event(s, chunk, &p, end, err);
  }
  s->base += n;
  return s->failed;
}

int mw_watch_split_finish(struct mw_watch_split *s, struct mw_err *err) {
  if (s->failed != 0) return mw_err_set(err, s->failed, "the watch has failed before");
  if (!s->in_event) return 0;
  s->failed = mw_err_set(err, MW_EEOF, "the watch was cut inside an event at byte %llu",
                         (unsigned long long)s->base);
  return s->failed;
}
