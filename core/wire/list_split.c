// SPDX-License-Identifier: Apache-2.0
// The list document is followed byte by byte outside of its items (wire/skim.h), each item is
// found and scanned as one (wire/frame.h, wire/item.h).
//
// An item is first scanned where it lies, on the guess that the chunk holds all of it. If that
// fails for any reason, the slow way decides: gather the item, scan it again, and only then report.
// So what comes out, errors too, does not depend on how the bytes were cut.
#include "wire/list_split.h"

#include <stdint.h>

#include "base/alloc.h"
#include "wire/frame.h"
#include "wire/scan.h"
#include "wire/skim.h"

enum { MEMBER_MAX = 1024 * 1024 };

enum state {
  BEGIN = 0,     // '{' of the list
  FIRST_MEMBER,  // a member or '}'
  MEMBER,        // a member
  KEY,           // in the name of a member
  COLON,         // ':'
  VALUE,         // the value of a member begins
  IN_VALUE,      // in a value other than the items
  AFTER_VALUE,   // ',' or '}'
  FIRST_ITEM,    // an item or ']'
  ITEM,          // an item
  IN_ITEM,       // in an item that is being gathered
  AFTER_ITEM,    // ',' or ']'
  DONE,          // white space
};

enum field { OTHER = 0, KIND, API_VERSION, METADATA, MESSAGE, ITEMS };

struct mw_list_split {
  const struct mw_projection *projection;
  mw_list_item_cb cb;
  void *ctx;
  struct mw_item_scanner *scanner;
  struct mw_frame frame;
  struct mw_skim skim;
  struct mw_buf member;  // the name or value of a member as it comes
  struct mw_buf text;    // a string, unescaped
  enum state state;
  enum field field;
  bool has_items;
  int failed;        // what feed returned last, when that was not 0
  size_t last_size;  // of the last item: a good guess for the next
  uint64_t base;     // offset of the chunk
  const char *chunk;
  uint64_t start;  // offset of the item or member at hand
  struct mw_list_info info;
  struct mw_item_defaults defaults;
  char message[256];   // of a Status that came in place of a list
  struct mw_err *err;  // where the call at hand reports
};

struct mw_list_split *mw_list_split_new(const struct mw_projection *projection,
                                        struct mw_packer *packer, mw_list_item_cb cb, void *ctx) {
  struct mw_list_split *s = mw_xcalloc(1, sizeof *s);
  mw_live_add(MW_LIVE_LIST_SPLIT, 1);
  s->projection = projection;
  s->cb = cb;
  s->ctx = ctx;
  s->scanner = mw_item_scanner_new(packer);
  s->info.remaining = -1;
  mw_frame_init(&s->frame, MW_ITEM_SIZE_MAX);
  mw_buf_init(&s->member, MEMBER_MAX);
  mw_buf_init(&s->text, MEMBER_MAX);
  return s;
}

void mw_list_split_free(struct mw_list_split *s) {
  if (s == NULL) return;
  mw_item_scanner_free(s->scanner);
  mw_frame_deinit(&s->frame);
  mw_buf_deinit(&s->member);
  mw_buf_deinit(&s->text);
  mw_free(s->info.continue_token);
  mw_free(s);
  mw_live_add(MW_LIVE_LIST_SPLIT, -1);
}

const struct mw_list_info *mw_list_split_info(const struct mw_list_split *s) { return &s->info; }

static uint64_t offset_of(const struct mw_list_split *s, const char *p) {
  return s->base + (uint64_t)(p - s->chunk);
}

static int expected(struct mw_list_split *s, const char *p, const char *why) {
  return mw_fault_report(s->err, MW_FAULT_SYNTAX, why, offset_of(s, p));
}

static int misshapen(struct mw_list_split *s, const char *why) {
  return mw_fault_report(s->err, MW_FAULT_SHAPE, why, s->start);
}

// Unescapes a string value into s->text; null reads as "".
static int read_string(struct mw_list_split *s, struct mw_json *c, const char *why) {
  mw_buf_reset(&s->text);
  enum mw_json_kind kind = mw_json_peek(c);
  if (kind == MW_JSON_NULL) return mw_json_skip(c);
  if (kind != MW_JSON_STRING) return misshapen(s, why);
  struct mw_slice raw;
  bool escaped;
  int rc = mw_json_string(c, &raw, &escaped);
  return rc < 0 ? rc : mw_json_unescape(raw, &s->text);
}

static int read_short(struct mw_list_split *s, struct mw_json *c, char *to, size_t cap,
                      const char *why) {
  int rc = read_string(s, c, why);
  if (rc < 0) return rc;
  if (s->text.n >= cap) {
    return mw_fault_report(s->err, MW_FAULT_LIMIT, "the value is too long", s->start);
  }
  if (s->text.n > 0) memcpy(to, s->text.p, s->text.n);
  to[s->text.n] = '\0';
  return 0;
}

static int read_continue(struct mw_list_split *s, struct mw_json *c) {
  int rc = read_string(s, c, "metadata.continue is not a string");
  if (rc < 0) return rc;
  mw_free(s->info.continue_token);
  s->info.continue_token = s->text.n > 0 ? mw_xstrndup(s->text.p, s->text.n) : NULL;
  return 0;
}

static int read_remaining(struct mw_list_split *s, struct mw_json *c) {
  s->info.remaining = -1;
  if (mw_json_peek(c) == MW_JSON_NULL) return mw_json_skip(c);
  struct mw_slice text;
  bool is_int = false;
  if (mw_json_peek(c) != MW_JSON_NUMBER || mw_json_number(c, &text, &is_int) < 0 || !is_int ||
      text.p[0] == '-' || text.n > 18) {
    return misshapen(s, "metadata.remainingItemCount is not a count");
  }
  long long count = 0;
  for (size_t i = 0; i < text.n; i++) count = 10 * count + (text.p[i] - '0');
  s->info.remaining = count;
  return 0;
}

static int read_metadata(struct mw_list_split *s, struct mw_json *c) {
  enum mw_json_kind kind = mw_json_peek(c);
  if (kind == MW_JSON_NULL) return 0;
  if (kind != MW_JSON_OBJECT) return misshapen(s, "metadata is not an object");
  int rc = mw_json_enter(c);
  bool first = true;
  struct mw_slice key;
  bool escaped;
  while (rc == 0 && (rc = mw_json_member(c, &first, &key, &escaped)) > 0) {
    if (mw_raw_is(key, escaped, MW_SLICE("resourceVersion"))) {
      rc = read_short(s, c, s->info.rv, sizeof s->info.rv,
                      "metadata.resourceVersion is not a string");
    } else if (mw_raw_is(key, escaped, MW_SLICE("continue"))) {
      rc = read_continue(s, c);
    } else if (mw_raw_is(key, escaped, MW_SLICE("remainingItemCount"))) {
      rc = read_remaining(s, c);
    } else {
      rc = mw_json_skip(c);
    }
  }
  return rc;
}

static int read_message(struct mw_list_split *s, struct mw_json *c) {
  if (mw_json_peek(c) != MW_JSON_STRING) return 0;
  int rc = read_string(s, c, "message is not a string");
  if (rc < 0) return rc;
  size_t n = s->text.n < sizeof s->message ? s->text.n : sizeof s->message - 1;
  while (n > 0 && n < s->text.n && ((unsigned char)s->text.p[n] & 0xC0) == 0x80) n--;
  if (n > 0) memcpy(s->message, s->text.p, n);
  s->message[n] = '\0';
  return 0;
}

// A table of cells instead of objects: somebody asked for the wrong representation.
static int check_table(struct mw_list_split *s) {
  static const char group[] = "meta.k8s.io/";
  if (strcmp(s->info.kind, "Table") != 0) return 0;
  if (strncmp(s->info.api_version, group, sizeof group - 1) != 0) return 0;
  return mw_err_set(s->err, MW_EINVAL,
                    "expected a list but the server sent a Table: the request must accept "
                    "application/json without as=Table");
}

// The value of a member we care about is complete and valid.
static int read_member(struct mw_list_split *s) {
  struct mw_json c = {s->member.p, s->member.p + s->member.n};
  int rc = 0;
  switch (s->field) {
    case KIND:
      rc = read_short(s, &c, s->info.kind, sizeof s->info.kind, "kind is not a string");
      return rc < 0 ? rc : check_table(s);
    case API_VERSION:
      rc = read_short(s, &c, s->info.api_version, sizeof s->info.api_version,
                      "apiVersion is not a string");
      return rc < 0 ? rc : check_table(s);
    case METADATA:
      return read_metadata(s, &c);
    case MESSAGE:
      return read_message(s, &c);
    default:
      return 0;
  }
}

static enum field field_of(const struct mw_buf *quoted) {
  struct mw_json c = {quoted->p, quoted->p + quoted->n};
  struct mw_slice raw;
  bool escaped;
  if (mw_json_string(&c, &raw, &escaped) < 0) return OTHER;
  if (mw_raw_is(raw, escaped, MW_SLICE("kind"))) return KIND;
  if (mw_raw_is(raw, escaped, MW_SLICE("apiVersion"))) return API_VERSION;
  if (mw_raw_is(raw, escaped, MW_SLICE("metadata"))) return METADATA;
  if (mw_raw_is(raw, escaped, MW_SLICE("items"))) return ITEMS;
  if (mw_raw_is(raw, escaped, MW_SLICE("message"))) return MESSAGE;
  return OTHER;
}

static void begin_skim(struct mw_list_split *s, const char *p, enum state state) {
  mw_skim_start(&s->skim);
  mw_buf_reset(&s->member);
  s->start = offset_of(s, p);
  s->state = state;
}

// Takes more of a name or value: 1 when it is complete. Unknown values are not gathered.
static int skim(struct mw_list_split *s, const char **p, const char *end) {
  bool gathered = s->state == KEY || s->field != OTHER;
  const char *from = *p;
  size_t room = MEMBER_MAX - s->member.n;
  if (gathered && (size_t)(end - from) > room) end = from + room;
  int rc = mw_skim_feed(&s->skim, p, end);
  if (rc < 0) {
    return mw_fault_report(s->err, s->skim.fault, s->skim.why, offset_of(s, *p) - s->skim.back);
  }
  if (!gathered) return rc;
  int add = mw_buf_add(&s->member, from, (size_t)(*p - from));
  if (add < 0 || (rc == 0 && s->member.n == MEMBER_MAX)) {
    return mw_fault_report(s->err, MW_FAULT_LIMIT, "a member of the list is larger than 1 MiB",
                           s->start);
  }
  return rc;
}

static int in_key(struct mw_list_split *s, const char **p, const char *end) {
  int rc = skim(s, p, end);
  if (rc <= 0) return rc;
  s->field = field_of(&s->member);
  s->state = COLON;
  return 0;
}

static int in_value(struct mw_list_split *s, const char **p, const char *end) {
  int rc = skim(s, p, end);
  if (rc <= 0) return rc;
  s->state = AFTER_VALUE;
  return read_member(s);
}

// What the items are, when the list says so before them: "PodList" holds "Pod".
static void set_defaults(struct mw_list_split *s) {
  static const char suffix[] = "List";
  size_t n = strlen(s->info.kind);
  size_t tail = sizeof suffix - 1;
  if (n <= tail || memcmp(s->info.kind + n - tail, suffix, tail) != 0) return;
  s->defaults.kind = mw_slice(s->info.kind, n - tail);
  s->defaults.api_version = mw_slice_str(s->info.api_version);
}

static int begin_value(struct mw_list_split *s, const char **p) {
  begin_skim(s, *p, IN_VALUE);
  if (s->field != ITEMS) return 0;
  if (s->has_items) return misshapen(s, "a second member 'items'");
  s->has_items = true;
  if (**p == 'n') return 0;
  if (**p != '[') return misshapen(s, "items is not an array");
  ++*p;
  set_defaults(s);
  s->state = FIRST_ITEM;
  return 0;
}

static int deliver(struct mw_list_split *s, const struct mw_item *item) {
  s->state = AFTER_ITEM;
  s->info.items++;
  return s->cb(s->ctx, item);
}

// The last scan failed at p of the item that begins at `from`.
static int report_item(struct mw_list_split *s, const char *from, const char *p) {
  const struct mw_walk *w = mw_item_scanner_walk(s->scanner);
  return mw_fault_report(s->err, w->fault, w->why, s->start + (uint64_t)(p - from));
}

// A gathered item, or its beginning when it is to be refused. start is its offset.
static int scan_item(struct mw_list_split *s, struct mw_slice whole, const char *refused) {
  struct mw_json c = {whole.p, whole.p + whole.n};
  struct mw_item item;
  s->last_size = whole.n;
  int rc = mw_item_scan(s->scanner, &c, s->projection, &s->defaults, &item, NULL);
  if (rc == MW_ELIMIT && refused == NULL) refused = mw_item_scanner_walk(s->scanner)->why;
  if (refused != NULL) {
    mw_item_scanner_refused(s->scanner, refused, &item);
    return deliver(s, &item);
  }
  if (rc < 0) return report_item(s, whole.p, c.p);
  if (c.p < c.end) return mw_fault_report(s->err, MW_FAULT_SYNTAX, "unbalanced brackets", s->start);
  return deliver(s, &item);
}

static int in_item(struct mw_list_split *s, const char **p, const char *end) {
  struct mw_slice whole;
  int rc = mw_frame_feed(&s->frame, p, end, &whole);
  if (rc == 0) return 0;
  return scan_item(s, whole, rc < 0 ? "the object is larger than 16 MiB" : NULL);
}

static int begin_item(struct mw_list_split *s, const char **p, const char *end) {
  if (**p != '{') return expected(s, *p, "expected '{'");
  s->start = offset_of(s, *p);
  s->state = IN_ITEM;
  struct mw_json c = {*p, end};
  struct mw_item item;
  if ((size_t)(end - *p) < s->last_size ||
      mw_item_scan(s->scanner, &c, s->projection, &s->defaults, &item, NULL) < 0) {
    return in_item(s, p, end);
  }
  s->last_size = (size_t)(c.p - *p);
  *p = c.p;
  return deliver(s, &item);
}

// A comma leads to `next`, the closing bracket to `up`.
static int separator(struct mw_list_split *s, const char **p, char close, enum state next,
                     enum state up) {
  if (**p != ',' && **p != close) {
    return expected(s, *p, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
  }
  s->state = **p == ',' ? next : up;
  ++*p;
  return 0;
}

static int begin_member(struct mw_list_split *s, const char **p) {
  if (**p != '"') return expected(s, *p, "expected a member name");
  begin_skim(s, *p, KEY);
  return 0;
}

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// *p stands at something that is not white space.
static int token(struct mw_list_split *s, const char **p, const char *end) {
  switch (s->state) {
    case BEGIN:
      if (**p != '{') return expected(s, *p, "expected '{'");
      ++*p;
      s->state = FIRST_MEMBER;
      return 0;
    case FIRST_MEMBER:
      return **p == '}' ? separator(s, p, '}', MEMBER, DONE) : begin_member(s, p);
    case MEMBER:
      return begin_member(s, p);
    case COLON:
      if (**p != ':') return expected(s, *p, "expected ':'");
      ++*p;
      s->state = VALUE;
      return 0;
    case VALUE:
      return begin_value(s, p);
    case AFTER_VALUE:
      return separator(s, p, '}', MEMBER, DONE);
    case FIRST_ITEM:
      if (**p == ']') return separator(s, p, ']', ITEM, AFTER_VALUE);
      return begin_item(s, p, end);
    case ITEM:
      return begin_item(s, p, end);
    case AFTER_ITEM:
      return separator(s, p, ']', ITEM, AFTER_VALUE);
    default:
      return expected(s, *p, "the document has ended");
  }
}

static int step(struct mw_list_split *s, const char **p, const char *end) {
  switch (s->state) {
    case KEY:
      return in_key(s, p, end);
    case IN_VALUE:
      return in_value(s, p, end);
    case IN_ITEM:
      return in_item(s, p, end);
    default:
      while (*p < end && is_space(**p)) ++*p;
      return *p < end ? token(s, p, end) : 0;
  }
}

int mw_list_split_feed(struct mw_list_split *s, const char *p, size_t n, struct mw_err *err) {
  if (s->failed != 0) return mw_err_set(err, s->failed, "the list has failed before");
  const char *end = mw_slice_end(mw_slice(p, n));
  s->chunk = p;
  s->err = err;
  while (p < end && s->failed == 0) s->failed = step(s, &p, end);
  s->base += n;
  return s->failed;
}

// The response was cut inside an item; what is there of it may be wrong before that.
static int check_rest(struct mw_list_split *s) {
  struct mw_slice rest = mw_buf_slice(&s->frame.buf);
  struct mw_json c = {rest.p, rest.p + rest.n};
  struct mw_item item;
  if (s->frame.size > rest.n) return 0;
  int rc = mw_item_scan(s->scanner, &c, s->projection, &s->defaults, &item, NULL);
  return rc < 0 ? report_item(s, rest.p, c.p) : 0;
}

static int finish(struct mw_list_split *s) {
  int rc = s->state == IN_ITEM ? check_rest(s) : 0;
  if (rc < 0) return rc;
  if (s->state != DONE) return mw_fault_report(s->err, MW_FAULT_SYNTAX, "unexpected end", s->base);
  if (strcmp(s->info.kind, "Status") == 0) {
    return mw_err_set(s->err, MW_EINVAL, "expected a list but the server sent a Status: %s",
                      s->message[0] != '\0' ? s->message : "without a message");
  }
  if (!s->has_items) {
    return mw_err_set(s->err, MW_EINVAL, "expected a list but the server sent %s without items",
                      s->info.kind[0] != '\0' ? s->info.kind : "an object");
  }
  return 0;
}

int mw_list_split_finish(struct mw_list_split *s, struct mw_err *err) {
  if (s->failed != 0) return mw_err_set(err, s->failed, "the list has failed before");
  s->err = err;
  s->failed = finish(s);
  return s->failed;
}
