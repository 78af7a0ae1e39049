// SPDX-License-Identifier: Apache-2.0
// Field paths: the parser and the lookup. Projections are in projection.c.
#include "wire/path.h"

#include "base/alloc.h"
#include "wire/frame.h"
#include "wire/json.h"
#include "wire/projection.h"
#include "wire/scan.h"

struct parser {
  struct mw_path *path;
  const char *p;
  const char *end;
  char *keys;  // where the next unescaped key goes
  struct mw_err *err;
};

static int fail(struct parser *in, const char *what) {
  struct mw_slice text = in->path->text;
  return mw_err_set(in->err, MW_EINVAL, "path '%.*s', column %d: %s", MW_SLICE_ARGS(text),
                    (int)(in->p - text.p) + 1, what);
}

static int add_segment(struct parser *in, struct mw_segment segment) {
  if (in->path->count == MW_PATH_SEGMENTS_MAX) return fail(in, "more than 32 segments");
  in->path->segments[in->path->count++] = segment;
  return 0;
}

static bool is_name_char(char c) {
  return (unsigned char)c > ' ' && c != '.' && c != '[' && c != ']' && c != '"' && c != 0x7F;
}

static int parse_name(struct parser *in) {
  const char *from = in->p;
  while (in->p < in->end && is_name_char(*in->p)) in->p++;
  if (in->p == from) return fail(in, "expected a field name");
  struct mw_slice key = mw_slice(from, (size_t)(in->p - from));
  return add_segment(in, (struct mw_segment){.kind = MW_SEGMENT_KEY, .key = key});
}

// ["key"], with the escapes of JSON.
static int parse_quoted(struct parser *in) {
  struct mw_json c = {in->p, in->end};
  struct mw_slice raw;
  bool escaped;
  if (mw_json_string(&c, &raw, &escaped) < 0) {
    in->p = c.p;
    return fail(in, "malformed string");
  }
  struct mw_buf plain;
  mw_buf_init(&plain, MW_PATH_LENGTH_MAX);
  int rc = mw_json_unescape(raw, &plain);
  if (rc == 0) {
    if (plain.n > 0) memcpy(in->keys, plain.p, plain.n);
    struct mw_slice key = mw_slice(in->keys, plain.n);
    in->keys += plain.n;
    in->p = c.p;
    rc = add_segment(in, (struct mw_segment){.kind = MW_SEGMENT_KEY, .key = key});
  } else {
    rc = fail(in, "malformed string");
  }
  mw_buf_deinit(&plain);
  return rc;
}

static int parse_index(struct parser *in) {
  size_t index = 0;
  for (; in->p < in->end && *in->p >= '0' && *in->p <= '9'; in->p++) {
    index = 10 * index + (size_t)(*in->p - '0');
    if (index > 1000000) return fail(in, "the index is too large");
  }
  return add_segment(in, (struct mw_segment){.kind = MW_SEGMENT_INDEX, .index = index});
}

// At '['.
static int parse_bracket(struct parser *in) {
  in->p++;
  int rc;
  if (in->p < in->end && *in->p == '*') {
    in->p++;
    rc = add_segment(in, (struct mw_segment){.kind = MW_SEGMENT_STAR});
  } else if (in->p < in->end && *in->p == '"') {
    rc = parse_quoted(in);
  } else if (in->p < in->end && *in->p >= '0' && *in->p <= '9') {
    rc = parse_index(in);
  } else {
    rc = fail(in, "expected an index, '*' or a key in double quotes");
  }
  if (rc < 0) return rc;
  if (in->p == in->end || *in->p != ']') return fail(in, "expected ']'");
  in->p++;
  return 0;
}

static int parse(struct parser *in) {
  int rc = in->p < in->end && *in->p == '[' ? parse_bracket(in) : parse_name(in);
  while (rc == 0 && in->p < in->end) {
    if (*in->p == '[') {
      rc = parse_bracket(in);
    } else if (*in->p == '.') {
      in->p++;
      rc = parse_name(in);
    } else {
      rc = fail(in, "expected '.' or '['");
    }
  }
  return rc;
}

struct mw_path *mw_path_new(struct mw_slice text, struct mw_err *err) {
  if (text.n > MW_PATH_LENGTH_MAX) {
    mw_err_set(err, MW_EINVAL, "a path is longer than %d bytes", MW_PATH_LENGTH_MAX);
    return NULL;
  }
  if (!mw_utf8_valid(text)) {
    mw_err_set(err, MW_EINVAL, "a path is not valid UTF-8");
    return NULL;
  }
  struct mw_path *path = mw_xcalloc(1, sizeof *path);
  mw_live_add(MW_LIVE_PATH, 1);
  path->memory = mw_xmalloc(2 * text.n + 1);
  if (text.n > 0) memcpy(path->memory, text.p, text.n);
  path->text = mw_slice(path->memory, text.n);
  struct parser in = {
      .path = path,
      .p = path->memory,
      .end = path->memory + text.n,
      .keys = path->memory + text.n,
      .err = err,
  };
  if (parse(&in) < 0) {
    mw_path_free(path);
    return NULL;
  }
  return path;
}

void mw_path_free(struct mw_path *path) {
  if (path == NULL) return;
  mw_free(path->memory);
  mw_free(path);
  mw_live_add(MW_LIVE_PATH, -1);
}

struct mw_slice mw_path_text(const struct mw_path *path) {
  return path->text;
}

struct mw_slice mw_path_first(const struct mw_path *path) {
  return path->segments[0].key;
}

bool mw_path_is_pair(const struct mw_path *path, struct mw_slice *first, struct mw_slice *second) {
  const struct mw_segment *s = path->segments;
  if (path->count != 2 || s[0].kind != MW_SEGMENT_KEY || s[1].kind != MW_SEGMENT_KEY) return false;
  *first = s[0].key;
  *second = s[1].key;
  return true;
}

struct lookup {
  const struct mw_path *path;
  mw_path_cb cb;
  void *ctx;
  int found;
  bool stop;
};

static int look(struct lookup *l, struct mw_walk *w, size_t i);

// Passes over a value. The document was validated when it came in, so its brackets are enough.
static int pass(struct mw_walk *w) {
  if (*w->p != '{' && *w->p != '[') return mw_walk_value(w, 1);
  const char *end = mw_frame_end(w->p, w->end);
  if (end == NULL) return MW_EPARSE;
  w->p = end;
  return 0;
}

static int look_found(struct lookup *l, struct mw_walk *w) {
  const char *from = w->p;
  int rc = mw_walk_value(w, 1);
  if (rc < 0) return rc;
  l->found++;
  l->stop = !l->cb(l->ctx, mw_slice(from, (size_t)(w->p - from)));
  return 0;
}

static int look_key(struct lookup *l, struct mw_walk *w, size_t i) {
  bool first = true;
  struct mw_slice raw;
  bool escaped;
  int rc;
  w->p++;
  while ((rc = mw_walk_member(w, &first, &raw, &escaped)) > 0) {
    if (mw_raw_is(raw, escaped, l->path->segments[i].key)) return look(l, w, i + 1);
    rc = pass(w);
    if (rc < 0) return rc;
  }
  return rc;
}

static int look_elements(struct lookup *l, struct mw_walk *w, size_t i) {
  const struct mw_segment *segment = &l->path->segments[i];
  bool first = true;
  int rc;
  w->p++;
  for (size_t at = 0; (rc = mw_walk_element(w, &first)) > 0; at++) {
    if (segment->kind == MW_SEGMENT_INDEX && at == segment->index) return look(l, w, i + 1);
    if (segment->kind == MW_SEGMENT_STAR) {
      struct mw_walk inside = *w;
      rc = look(l, &inside, i + 1);
      if (rc < 0 || l->stop) return rc;
    }
    rc = pass(w);
    if (rc < 0) return rc;
  }
  return rc;
}

// Looks for what is left of the path from segment i on in the value at w. Where the cursor is left
// does not matter: whoever goes on has one of its own.
static int look(struct lookup *l, struct mw_walk *w, size_t i) {
  mw_walk_blank(w);
  if (i == l->path->count) return look_found(l, w);
  if (w->p == w->end) return MW_EPARSE;
  bool key = l->path->segments[i].kind == MW_SEGMENT_KEY;
  if (*w->p == '{' && key) return look_key(l, w, i);
  if (*w->p == '[' && !key) return look_elements(l, w, i);
  return 0;
}

int mw_path_each(const struct mw_path *path, struct mw_slice json, mw_path_cb cb, void *ctx) {
  struct lookup l = {.path = path, .cb = cb, .ctx = ctx};
  struct mw_walk w = {.p = json.p, .end = mw_slice_end(json), .run = json.p};
  int rc = look(&l, &w, 0);
  return rc < 0 ? rc : l.found;
}
