// SPDX-License-Identifier: Apache-2.0
// Servers send an event per line. One that lies in a chunk is read there; one that a chunk cuts is
// gathered up to the end of its line and read then. Lines are only a guess, though: if it turns out
// wrong for any reason, the slow way decides: find the event by its brackets, read it again, and
// only then report. So what comes out, errors too, does not depend on how the bytes were cut.
#include "wire/watch_split.h"

#include <stdint.h>

#include "base/alloc.h"
#include "wire/frame.h"
#include "wire/scan.h"

enum {
  WRAPPER_MAX = 64 * 1024,
  TYPE_MAX = 1024,
  KEEP_MAX = 1024 * 1024,  // memory for a line that outlives a large event
};

struct mw_watch_split {
  const struct mw_projection *projection;
  mw_watch_event_cb cb;
  void *ctx;
  struct mw_item_scanner *scanner;
  struct mw_frame frame;
  struct mw_buf type;  // the type of the event, when it was escaped
  struct mw_buf line;  // the event that a chunk has cut
  bool in_line;        // the event is gathered there
  bool in_event;       // the event is gathered by its brackets
  int failed;          // what feed returned last, when that was not 0
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
                                          struct mw_packer *packer, mw_watch_event_cb cb,
                                          void *ctx) {
  struct mw_watch_split *s = mw_xcalloc(1, sizeof *s);
  mw_live_add(MW_LIVE_WATCH_SPLIT, 1);
  s->projection = projection;
  s->cb = cb;
  s->ctx = ctx;
  s->scanner = mw_item_scanner_new(packer);
  mw_frame_init(&s->frame, (size_t)MW_ITEM_SIZE_MAX + WRAPPER_MAX);
  mw_buf_init(&s->type, TYPE_MAX);
  mw_buf_init(&s->line, s->frame.buf.limit);
  return s;
}

void mw_watch_split_free(struct mw_watch_split *s) {
  if (s == NULL) return;
  mw_item_scanner_free(s->scanner);
  mw_frame_deinit(&s->frame);
  mw_buf_deinit(&s->type);
  mw_buf_deinit(&s->line);
  mw_free(s);
  mw_live_add(MW_LIVE_WATCH_SPLIT, -1);
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
  if (escaped) {
    mw_buf_reset(&s->type);
    rc = mw_json_unescape(raw, &s->type);
    raw = mw_buf_slice(&s->type);
  }
  if (rc < 0 || raw.n > TYPE_MAX) {
    return mw_walk_fail(w, from, MW_FAULT_LIMIT, "the type is longer than 1 KiB");
  }
  r->has_type = true;
  r->event.type_text = raw;
  r->event.type = type_of(raw);
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
  s->in_line = false;
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

// Whether the event at p goes on in the next chunk, by the look of it: its line does not end here,
// and neither does an object.
static bool is_cut(const char *p, const char *end) {
  return end[-1] != '\n' && end[-1] != '}' && memchr(p, '\n', (size_t)(end - p)) == NULL;
}

static int take(struct mw_watch_split *s, const char *chunk, const char *end, struct mw_err *err);

// The slow way with what was gathered of the line. The event at hand is found by its brackets, so
// that whatever follows it gets its turn.
static int reread_line(struct mw_watch_split *s, struct mw_err *err) {
  struct mw_buf line = s->line;
  mw_buf_init(&s->line, line.limit);
  uint64_t base = s->base;
  s->base = s->start;
  s->in_line = false;
  s->in_event = true;
  int rc = take(s, line.p, line.p + line.n, err);
  s->base = base;
  mw_buf_deinit(&line);
  return rc;
}

static int in_line(struct mw_watch_split *s, const char **p, const char *end, struct mw_err *err) {
  size_t n = (size_t)(end - *p);
  const char *newline = memchr(*p, '\n', n);
  if (newline != NULL) n = (size_t)(newline - *p);
  bool room = mw_buf_add(&s->line, *p, n) == 0;
  if (!room) return reread_line(s, err);
  *p += n;
  if (newline == NULL && end[-1] != '}') return 0;
  struct reading r;
  reading_init(&r, s->line.p, s->line.p + s->line.n);
  if (read_event(s, &r) < 0 || r.w.p < r.w.end) return reread_line(s, err);
  int rc = deliver(s, &r);
  if (s->line.cap > KEEP_MAX) mw_buf_deinit(&s->line);
  mw_buf_reset(&s->line);
  return rc;
}

// *p stands between events. chunk is where the bytes at hand begin.
static int begin_event(struct mw_watch_split *s, const char *chunk, const char **p, const char *end,
                       struct mw_err *err) {
  while (*p < end && is_space(**p)) ++*p;
  if (*p == end) return 0;
  s->start = s->base + (uint64_t)(*p - chunk);
  if (**p != '{') return mw_fault_report(err, MW_FAULT_SYNTAX, "expected '{'", s->start);
  if (is_cut(*p, end)) {
    s->in_line = true;
    if (mw_buf_add(&s->line, *p, (size_t)(end - *p)) < 0) return reread_line(s, err);
    *p = end;
    return 0;
  }
  s->in_event = true;
  struct reading r;
  reading_init(&r, *p, end);
  if (read_event(s, &r) < 0 || (size_t)(r.w.p - *p) > s->frame.buf.limit) {
    return in_event(s, p, end, err);
  }
  *p = r.w.p;
  return deliver(s, &r);
}

// Takes the bytes at hand, which begin at offset s->base.
static int take(struct mw_watch_split *s, const char *chunk, const char *end, struct mw_err *err) {
  const char *p = chunk;
  int rc = 0;
  while (p < end && rc == 0) {
    if (s->in_event) {
      rc = in_event(s, &p, end, err);
    } else if (s->in_line) {
      rc = in_line(s, &p, end, err);
    } else {
      rc = begin_event(s, chunk, &p, end, err);
    }
  }
  return rc;
}

int mw_watch_split_feed(struct mw_watch_split *s, const char *p, size_t n, struct mw_err *err) {
  if (s->failed != 0) return mw_err_set(err, s->failed, "the watch has failed before");
  s->failed = take(s, p, mw_slice_end(mw_slice(p, n)), err);
  s->base += n;
  return s->failed;
}

int mw_watch_split_finish(struct mw_watch_split *s, struct mw_err *err) {
  if (s->failed != 0) return mw_err_set(err, s->failed, "the watch has failed before");
  // What a line has may be wrong before it was cut, and may hold whole events.
  while (s->in_line && s->failed == 0) s->failed = reread_line(s, err);
  if (s->failed != 0 || !s->in_event) return s->failed;
  s->failed = mw_err_set(err, MW_EEOF, "the watch was cut inside an event at byte %llu",
                         (unsigned long long)s->base);
  return s->failed;
}
