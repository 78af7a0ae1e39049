// SPDX-License-Identifier: Apache-2.0
// One pass over an object: validate, copy, project, note the metadata.
//
// Only the levels that matter (the root, metadata, labels, annotations, and what the projection
// names) are walked member by member here; everything else is one mw_walk_value(). The copy is
// never longer than what was walked over, and neither are all strings that lose their escapes, so
// the room for either is made once and pointers into it stay valid.
#include "wire/item.h"

#include "base/alloc.h"
#include "wire/pack.h"
#include "wire/projection.h"
#include "wire/scan.h"

enum { KEEP_MAX = 4 * 1024 * 1024 };

// What a value is to us.
enum spot {
  SPOT_OTHER = 0,
  SPOT_KIND,  // strings that are noted
  SPOT_API_VERSION,
  SPOT_NAME,
  SPOT_NAMESPACE,
  SPOT_UID,
  SPOT_RV,
  SPOT_LABEL,  // the last of them
  SPOT_ROOT,
  SPOT_METADATA,
  SPOT_DELETION,
  SPOT_LABELS,
  SPOT_ANNOTATIONS,
  SPOT_END_MARK,
  SPOT_MANAGED,  // metadata.managedFields
  SPOT_SECTION,  // of the root: spec, status ...
};

struct mw_item_scanner {
  struct mw_walk w;
  struct mw_buf out;    // the copy, behind room for the defaults
  struct mw_buf text;   // noted strings that were escaped, unescaped
  size_t most;          // bytes that the object has at most
  struct mw_buf front;  // the defaults as JSON
  struct mw_item_label *labels;
  size_t label_cap;
  struct mw_item item;
  bool has_kind;
  bool has_api_version;
  struct mw_packer *packer;  // NULL: none
  struct mw_runs runs;
  bool chosen;  // item.beside.template is, by the name
};

struct member {
  struct mw_slice raw;   // the name as it stands between its quotes
  struct mw_slice name;  // unescaped
  bool tight;            // no white space from the last value to this one
};

static int visit_spot(struct mw_item_scanner *s, const struct mw_projection_node *node,
                      enum spot spot, struct mw_slice name, unsigned depth);

struct mw_item_scanner *mw_item_scanner_new(struct mw_packer *packer) {
  struct mw_item_scanner *s = mw_xcalloc(1, sizeof *s);
  mw_live_add(MW_LIVE_SCANNER, 1);
  s->packer = packer;
  mw_buf_init(&s->out, 2 * (size_t)MW_ITEM_SIZE_MAX);
  mw_buf_init(&s->text, MW_ITEM_SIZE_MAX);
  mw_buf_init(&s->front, MW_ITEM_SIZE_MAX);
  return s;
}

void mw_item_scanner_free(struct mw_item_scanner *s) {
  if (s == NULL) return;
  mw_buf_deinit(&s->out);
  mw_buf_deinit(&s->text);
  mw_buf_deinit(&s->front);
  mw_free(s->labels);
  mw_free(s->runs.v);
  mw_free(s);
  mw_live_add(MW_LIVE_SCANNER, -1);
}

const struct mw_walk *mw_item_scanner_walk(const struct mw_item_scanner *s) { return &s->w; }

void mw_item_scanner_refused(const struct mw_item_scanner *s, const char *why,
                             struct mw_item *item) {
  *item = s->item;
  item->label_count = 0;
  item->refused = why;
}

static int expected(struct mw_walk *w, const char *why) {
  return mw_walk_fail(w, w->p, MW_FAULT_SYNTAX, w->p < w->end ? why : "unexpected end");
}

static void emit(struct mw_walk *w, const char *p, size_t n) {
  if (w->out == NULL) return;
  memcpy(w->out, p, n);
  w->out += n;
}

// Puts a string that has escapes into `text`. The first one makes the room for all.
static int unescape(struct mw_item_scanner *s, struct mw_slice raw, struct mw_slice *to) {
  size_t from = s->text.n;
  int rc = from == 0 ? mw_buf_reserve(&s->text, s->most) : 0;
  if (rc == 0) rc = mw_json_unescape(raw, &s->text);
  *to = mw_slice(s->text.p + from, s->text.n - from);
  return rc;
}

static void add_label(struct mw_item_scanner *s, struct mw_slice key, struct mw_slice value) {
  size_t n = s->item.label_count;
  if (n == MW_ITEM_LABELS_MAX) {
    s->item.more_labels = true;
    return;
  }
  for (size_t i = 0; i < n; i++) {
    if (!mw_slice_eq(s->labels[i].key, key)) continue;
    s->labels[i].value = value;
    return;
  }
  if (n == s->label_cap) {
    s->label_cap = n == 0 ? 16 : 2 * n;
    s->labels = mw_xrealloc(s->labels, s->label_cap * sizeof *s->labels);
  }
  s->labels[n] = (struct mw_item_label){key, value};
  s->item.label_count = n + 1;
}

static void note(struct mw_item_scanner *s, enum spot spot, struct mw_slice name,
                 struct mw_slice text) {
  switch (spot) {
    case SPOT_KIND:
      s->has_kind = true;
      s->item.kind = text;
      return;
    case SPOT_API_VERSION:
      s->has_api_version = true;
      s->item.api_version = text;
      return;
    case SPOT_NAME:
      s->item.name = text;
      return;
    case SPOT_NAMESPACE:
      s->item.ns = text;
      return;
    case SPOT_UID:
      s->item.uid = text;
      return;
    case SPOT_RV:
      s->item.rv = text;
      return;
    default:
      add_label(s, name, text);
  }
}

// A value that must be a string; null counts as absent.
static int visit_string(struct mw_item_scanner *s, enum spot spot, struct mw_slice name,
                        unsigned depth) {
  static const char *const why[] = {
      [SPOT_KIND] = "kind is not a string",
      [SPOT_API_VERSION] = "apiVersion is not a string",
      [SPOT_NAME] = "metadata.name is not a string",
      [SPOT_NAMESPACE] = "metadata.namespace is not a string",
      [SPOT_UID] = "metadata.uid is not a string",
      [SPOT_RV] = "metadata.resourceVersion is not a string",
      [SPOT_LABEL] = "a label is not a string",
  };
  struct mw_walk *w = &s->w;
  struct mw_slice text = {NULL, 0};
  bool escaped = false;
  if (*w->p != '"' && *w->p != 'n') return mw_walk_fail(w, w->p, MW_FAULT_SHAPE, why[spot]);
  int rc = *w->p == '"' ? mw_walk_string(w, &text, &escaped) : mw_walk_value(w, depth);
  if (rc == 0 && escaped) rc = unescape(s, text, &text);
  if (rc == 0) note(s, spot, name, text);
  return rc;
}

static int visit_end_mark(struct mw_item_scanner *s, unsigned depth) {
  struct mw_walk *w = &s->w;
  s->item.initial_events_end = false;
  if (*w->p != '"') return mw_walk_value(w, depth);
  struct mw_slice raw;
  bool escaped;
  int rc = mw_walk_string(w, &raw, &escaped);
  if (rc == 0) s->item.initial_events_end = mw_raw_is(raw, escaped, MW_SLICE("true"));
  return rc;
}

// The last metadata wins as a whole.
static void reset_metadata(struct mw_item *item) {
  *item = (struct mw_item){.kind = item->kind, .api_version = item->api_version};
}

static enum spot metadata_spot(struct mw_slice name) {
  switch (name.n) {
    case 3:
      return mw_slice_eq(name, MW_SLICE("uid")) ? SPOT_UID : SPOT_OTHER;
    case 4:
      return mw_slice_eq(name, MW_SLICE("name")) ? SPOT_NAME : SPOT_OTHER;
    case 6:
      return mw_slice_eq(name, MW_SLICE("labels")) ? SPOT_LABELS : SPOT_OTHER;
    case 9:
      return mw_slice_eq(name, MW_SLICE("namespace")) ? SPOT_NAMESPACE : SPOT_OTHER;
    case 11:
      return mw_slice_eq(name, MW_SLICE("annotations")) ? SPOT_ANNOTATIONS : SPOT_OTHER;
    case 13:
      return mw_slice_eq(name, MW_SLICE("managedFields")) ? SPOT_MANAGED : SPOT_OTHER;
    case 15:
      return mw_slice_eq(name, MW_SLICE("resourceVersion")) ? SPOT_RV : SPOT_OTHER;
    case 17:
      return mw_slice_eq(name, MW_SLICE("deletionTimestamp")) ? SPOT_DELETION : SPOT_OTHER;
    default:
      return SPOT_OTHER;
  }
}

static enum spot spot_of(enum spot parent, struct mw_slice name) {
  switch (parent) {
    case SPOT_ROOT:
      if (mw_slice_eq(name, MW_SLICE("metadata"))) return SPOT_METADATA;
      if (mw_slice_eq(name, MW_SLICE("kind"))) return SPOT_KIND;
      if (mw_slice_eq(name, MW_SLICE("apiVersion"))) return SPOT_API_VERSION;
      return SPOT_SECTION;
    case SPOT_METADATA:
      return metadata_spot(name);
    case SPOT_LABELS:
      return SPOT_LABEL;
    case SPOT_ANNOTATIONS:
      return mw_slice_eq(name, MW_SLICE("k8s.io/initial-events-end")) ? SPOT_END_MARK : SPOT_OTHER;
    default:
      return SPOT_OTHER;
  }
}

// The next member as servers write it: its name has no escape, and there is no white space up to
// its value. False: nothing has happened.
static inline bool next_plain(struct mw_walk *w, bool first, struct member *m) {
  const char *p = w->p;
  if (w->end - p < 2 || (!first && *p++ != ',') || *p++ != '"') return false;
  const char *quote = mw_walk_plain(w, p);
  if (w->end - quote < 3 || quote[0] != '"' || quote[1] != ':') return false;
  if ((unsigned char)quote[2] <= ' ') return false;
  m->name = m->raw = mw_slice(p, (size_t)(quote - p));
  m->tight = true;
  w->p = quote + 2;
  return true;
}

// From behind a value (or the opening bracket) to the next value. The copy is not touched: the
// caller decides first whether the member stays. 1: a value follows, 0: the bracket was consumed.
static int next_member(struct mw_item_scanner *s, bool first, struct member *m) {
  struct mw_walk *w = &s->w;
  if (__builtin_expect(next_plain(w, first, m), 1)) return 1;
  bool blank = mw_walk_blank(w);
  m->tight = !blank;
  if (w->p < w->end && *w->p == '}') return 0;
  if (!first) {
    if (w->p == w->end || *w->p != ',') return expected(w, "expected ',' or '}'");
    w->p++;
    blank |= mw_walk_blank(w);
  }
  bool escaped;
  if (w->p == w->end || *w->p != '"') return expected(w, "expected a member name");
  int rc = mw_walk_string(w, &m->raw, &escaped);
  if (rc < 0) return rc;
  m->name = m->raw;
  if (escaped && (rc = unescape(s, m->raw, &m->name)) < 0) return rc;
  blank |= mw_walk_blank(w);
  if (w->p == w->end || *w->p != ':') return expected(w, "expected ':'");
  w->p++;
  blank |= mw_walk_blank(w);
  if (w->p == w->end) return expected(w, NULL);
  m->tight = !blank;
  return 1;
}

// Whether a value that starts with c goes, given what the projection says of its place.
static bool is_dropped(const struct mw_projection_node *node, char c) {
  if (node == NULL) return false;
  if (node == &mw_projection_drop) return true;
  if (node->keep_rest) return false;
  return c == '[' ? !node->has_star : c != '{' || node->count == 0;
}

// A value; its first byte is there. name: of the member that it belongs to.
static inline int visit(struct mw_item_scanner *s, const struct mw_projection_node *node,
                        enum spot spot, struct mw_slice name, unsigned depth) {
  if (spot == SPOT_OTHER && node == NULL) return mw_walk_value(&s->w, depth);
  if (spot != SPOT_OTHER && spot <= SPOT_LABEL) return visit_string(s, spot, name, depth);
  return visit_spot(s, node, spot, name, depth);
}

// Walks a value that is not copied. `sep` is where the copy ends before it.
static int visit_dropped(struct mw_item_scanner *s, enum spot spot, struct mw_slice name,
                         const char *sep, unsigned depth) {
  struct mw_walk *w = &s->w;
  mw_walk_flush(w, sep);
  char *out = w->out;
  w->out = NULL;
  int rc = visit(s, NULL, spot, name, depth);
  w->out = out;
  w->run = w->p;
  return rc;
}

static void emit_member(struct mw_walk *w, const struct member *m, const char *sep, bool comma) {
  mw_walk_flush(w, sep);
  if (comma) emit(w, ",", 1);
  emit(w, m->raw.p - 1, m->raw.n + 2);
  emit(w, ":", 1);
}

// At '{'. depth is that of the object.
static int copy_object(struct mw_item_scanner *s, const struct mw_projection_node *node,
                       enum spot spot, unsigned depth) {
  struct mw_walk *w = &s->w;
  const char *sep = ++w->p;  // behind the last value
  size_t kept = 0;
  struct member m;
  int rc;
  for (bool first = true; (rc = next_member(s, first, &m)) > 0; first = false) {
    const struct mw_projection_node *child =
        node != NULL ? mw_projection_child(node, m.name) : NULL;
    enum spot inner = spot_of(spot, m.name);
    if (is_dropped(child, *w->p)) {
      rc = visit_dropped(s, inner, m.name, sep, depth + 1);
    } else {
      if (!m.tight || (!first && kept == 0)) emit_member(w, &m, sep, kept > 0);
      kept++;
      rc = visit(s, child, inner, m.name, depth + 1);
    }
    if (rc < 0) return rc;
    sep = w->p;
  }
  if (rc < 0) return rc;
  if (!m.tight) mw_walk_flush(w, sep);
  w->p++;
  return 0;
}

// At '['; every element goes by node->star.
static int copy_array(struct mw_item_scanner *s, const struct mw_projection_node *node,
                      unsigned depth) {
  struct mw_walk *w = &s->w;
  const char *sep = ++w->p;
  size_t kept = 0;
  bool blank;
  for (bool first = true;; first = false) {
    blank = mw_walk_blank(w);
    if (w->p < w->end && *w->p == ']') break;
    if (!first) {
      if (w->p == w->end || *w->p != ',') return expected(w, "expected ',' or ']'");
      w->p++;
      blank |= mw_walk_blank(w);
    }
    if (w->p == w->end) return expected(w, NULL);
    int rc;
    if (is_dropped(node->star, *w->p)) {
      rc = visit_dropped(s, SPOT_OTHER, mw_slice(NULL, 0), sep, depth + 1);
    } else {
      if (blank || (!first && kept == 0)) {
        mw_walk_flush(w, sep);
        if (kept > 0) emit(w, ",", 1);
      }
      kept++;
      rc = visit(s, node->star, SPOT_OTHER, mw_slice(NULL, 0), depth + 1);
    }
    if (rc < 0) return rc;
    sep = w->p;
  }
  if (blank) mw_walk_flush(w, sep);
  w->p++;
  return 0;
}

static int visit_labels(struct mw_item_scanner *s, const struct mw_projection_node *node,
                        unsigned depth) {
  struct mw_walk *w = &s->w;
  s->item.label_count = 0;
  s->item.more_labels = false;
  if (*w->p == '{') return copy_object(s, node, SPOT_LABELS, depth);
  if (*w->p == 'n') return mw_walk_value(w, depth);
  return mw_walk_fail(w, w->p, MW_FAULT_SHAPE, "metadata.labels is not an object");
}

static int visit_other(struct mw_item_scanner *s, const struct mw_projection_node *node,
                       enum spot spot, unsigned depth) {
  struct mw_walk *w = &s->w;
  if (*w->p == '{' && (node != NULL || spot != SPOT_OTHER)) {
    return copy_object(s, node, spot, depth);
  }
  if (*w->p == '[' && node != NULL && node->has_star) return copy_array(s, node, depth);
  return mw_walk_value(w, depth);
}

static const struct mw_template *template_of(struct mw_item_scanner *s) {
  if (!s->chosen && s->packer != NULL && s->item.name.n > 0) {
    s->item.beside.template = mw_packer_template(s->packer, s->item.name);
    s->chosen = true;
  }
  return s->item.beside.template;
}

// What objects of one family have alike, so that it is worth a look at the template.
static int visit_section(struct mw_item_scanner *s, const struct mw_projection_node *node,
                         enum spot spot, struct mw_slice name, unsigned depth) {
  const struct mw_template *t = node == NULL ? template_of(s) : NULL;
  // Custom resources have their managedFields before their name, but those are nobody's members.
  if (t == NULL && spot != SPOT_MANAGED) mw_runs_lose_count(&s->runs);
  int section = t != NULL ? mw_template_section(t, spot == SPOT_MANAGED, name) : -1;
  if (section >= 0 && mw_template_walk(t, section, &s->w, s->out.p, &s->runs)) return 0;
  return visit_other(s, node, SPOT_OTHER, depth);
}

static int visit_managed(struct mw_item_scanner *s, const struct mw_projection_node *node,
                         struct mw_slice name, unsigned depth) {
  const char *from = s->w.p;
  int rc = visit_section(s, node, SPOT_MANAGED, name, depth);
  bool is_left_out = s->w.out == NULL;
  if (rc == 0 && is_left_out) s->item.beside.managed = mw_slice(from, (size_t)(s->w.p - from));
  return rc;
}

// As visit(), for what takes more than to pass or to note it.
static int visit_spot(struct mw_item_scanner *s, const struct mw_projection_node *node,
                      enum spot spot, struct mw_slice name, unsigned depth) {
  struct mw_item *item = &s->item;
  switch (spot) {
    case SPOT_DELETION:
      item->deleting = *s->w.p != 'n';
      return mw_walk_value(&s->w, depth);
    case SPOT_LABELS:
      return visit_labels(s, node, depth);
    case SPOT_MANAGED:
      return visit_managed(s, node, name, depth);
    case SPOT_SECTION:
      return visit_section(s, node, spot, name, depth);
    case SPOT_END_MARK:
      return visit_end_mark(s, depth);
    case SPOT_METADATA:
      reset_metadata(item);
      if (s->chosen) mw_runs_lose_count(&s->runs);  // they were another template's
      s->chosen = false;
      mw_runs_forget(&s->runs);
      item->has_metadata = *s->w.p == '{';
      return visit_other(s, node, spot, depth);
    case SPOT_ANNOTATIONS:
      item->initial_events_end = false;
      return visit_other(s, node, spot, depth);
    default:
      return visit_other(s, node, spot, depth);
  }
}

static int add_default(struct mw_buf *front, struct mw_slice key, struct mw_slice value) {
  int rc = mw_buf_add(front, key.p, key.n);
  if (rc == 0) rc = mw_json_quote(value, front);
  return rc == 0 ? mw_buf_add(front, ",", 1) : rc;
}

// Writes what the object leaves out in front of its copy, into the room kept there. The copy
// begins with '{' at out.p + room.
static int put_defaults(struct mw_item_scanner *s, const struct mw_item_defaults *d, size_t room,
                        size_t *start) {
  mw_buf_reset(&s->front);
  int rc = 0;
  if (!s->has_kind && d->kind.n > 0) rc = add_default(&s->front, MW_SLICE("\"kind\":"), d->kind);
  if (rc == 0 && !s->has_api_version && d->api_version.n > 0) {
    rc = add_default(&s->front, MW_SLICE("\"apiVersion\":"), d->api_version);
  }
  if (rc < 0 || s->front.n == 0) return rc;
  size_t n = s->front.n;
  if (s->out.p[room + 1] == '}') n--;  // no member follows: no comma
  if (n > room) return MW_ELIMIT;
  *start = room - n;
  s->out.p[*start] = '{';
  memcpy(s->out.p + *start + 1, s->front.p, n);
  if (!s->has_kind) s->item.kind = d->kind;
  if (!s->has_api_version) s->item.api_version = d->api_version;
  return 0;
}

// Room in front of the copy: every byte may need an escape of six.
static size_t front_room(const struct mw_item_defaults *d) {
  if (d == NULL || d->kind.n + d->api_version.n == 0) return 0;
  return 64 + 6 * (d->kind.n + d->api_version.n);
}

// Memory that a large object needed is given back when one of n bytes needs less.
static void empty(struct mw_buf *b, size_t n) {
  if (b->cap > KEEP_MAX && n < KEEP_MAX / 4) mw_buf_deinit(b);
  mw_buf_reset(b);
}

// Makes room for an object of at most `most` bytes.
static int prepare(struct mw_item_scanner *s, size_t most, size_t room) {
  s->item = (struct mw_item){0};
  s->has_kind = false;
  s->has_api_version = false;
  s->chosen = false;
  mw_runs_begin(&s->runs);
  s->most = most;
  empty(&s->text, most);
  empty(&s->out, most);
  return mw_buf_reserve(&s->out, most + room);
}

static int scan(struct mw_item_scanner *s, const struct mw_projection_node *root) {
  struct mw_walk *w = &s->w;
  mw_walk_blank(w);
  w->run = w->p;
  if (w->p == w->end || *w->p != '{') return expected(w, "expected '{'");
  int rc = copy_object(s, root, SPOT_ROOT, 1);
  if (rc == 0) mw_walk_flush(w, w->p);
  return rc;
}

// The JSON begins so far into the copy's memory.
static void set_runs(struct mw_item_scanner *s, size_t start) {
  struct mw_runs *runs = &s->runs;
  for (size_t i = 0; i < runs->n; i++) runs->v[i].at -= (uint32_t)start;
  for (size_t i = 0; i < runs->alike_count; i++) runs->alike[i].at -= (uint32_t)start;
  s->item.beside.runs = runs->v;
  s->item.beside.run_count = runs->n;
  s->item.beside.alike = runs->alike;
  s->item.beside.alike_count = runs->alike_count;
}

int mw_item_scan(struct mw_item_scanner *s, struct mw_json *c, const struct mw_projection *p,
                 const struct mw_item_defaults *defaults, struct mw_item *item,
                 struct mw_err *err) {
  struct mw_walk *w = &s->w;
  size_t most = (size_t)(c->end - c->p);
  bool cut = most > MW_ITEM_SIZE_MAX;
  if (cut) most = MW_ITEM_SIZE_MAX;
  size_t room = front_room(defaults);
  *item = (struct mw_item){0};
  *w = (struct mw_walk){.p = c->p, .end = c->p + most};
  int rc = prepare(s, most, room);
  if (rc < 0) return mw_err_set(err, rc, "the defaults are too large");
  w->out = s->out.p + room;
  rc = scan(s, p != NULL ? mw_projection_root(p) : NULL);
  size_t start = room;
  if (rc == 0 && room > 0) rc = put_defaults(s, defaults, room, &start);
  if (rc < 0 && cut && w->p == w->end) {
    rc = mw_walk_fail(w, w->p, MW_FAULT_LIMIT, "the object is larger than 16 MiB");
  }
  c->p = w->p;
  if (rc < 0) return mw_err_set(err, rc, "%s", w->why != NULL ? w->why : mw_err_text(rc));
  s->out.n = (size_t)(w->out - s->out.p);
  s->item.json = mw_slice(s->out.p + start, s->out.n - start);
  s->item.labels = s->labels;
  set_runs(s, start);
  *item = s->item;
  item->partial = p != NULL && mw_projection_is_partial(p);
  return 0;
}
