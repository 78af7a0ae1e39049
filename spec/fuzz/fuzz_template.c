// SPDX-License-Identifier: Apache-2.0
// What is read beside a template is what the walker takes, to the byte, and is packed to what comes
// back. Input: edits, and a JSON value behind them; the template has the value, and beside it is
// read what the edits make of it. An edit is where (two bytes), how many bytes go, how many come,
// and these; the first byte tells how many edits there are.
#include "near.h"

#include "base/buf.h"
#include "wire/scan.h"
#include "wire/template.h"

enum { TEXT_MAX = 1 << 16, EDITS_MAX = 7, DEPTH = 2 };

#define HEAD "{\"s\":"
#define FIRST "{\"v\":"

struct input {
  const uint8_t *p;
  const uint8_t *end;
};

static size_t byte(struct input *in) { return in->p < in->end ? *in->p++ : 0; }

// Replaces a part of the text in buf.
static void edit(struct mw_buf *buf, struct input *in) {
  size_t at = byte(in) << 8;
  at |= byte(in);
  size_t gone = byte(in), come = byte(in);
  if (come > (size_t)(in->end - in->p)) come = (size_t)(in->end - in->p);
  if (at > buf->n) at = buf->n;
  if (gone > buf->n - at) gone = buf->n - at;
  require(mw_buf_reserve(buf, buf->n + come) == 0);
  memmove(buf->p + at + come, buf->p + at + gone, buf->n - at - gone);
  memcpy(buf->p + at, in->p, come);
  buf->n += come - gone;
  in->p += come;
}

static void add(struct mw_buf *out, struct mw_slice text) {
  require(mw_buf_add(out, text.p, text.n) == 0);
}

// {"s":{"v":VALUE,"text":"..."},"u":{"v":VALUE,...}}: large enough for a section, with something to
// go on with; what differs in it differs behind it, too, which is packed by what can be found.
static void wrap(struct mw_buf *out, struct mw_slice value) {
  add(out, MW_SLICE(HEAD FIRST));
  add(out, value);
  add(out,
      MW_SLICE(",\"text\":\"................................................................\"}"));
  add(out, MW_SLICE(",\"u\":{\"n\":[1,2,3],\"v\":"));
  add(out, value);
  add(out, MW_SLICE(",\"w\":{\"x\":\"0123456789abcdefghijklmnopqrstuvwxyz\"}}}"));
}

static bool is_json(struct mw_slice text) {
  struct mw_walk w = {.p = text.p, .end = text.p + text.n, .run = text.p};
  return text.n > 0 && mw_walk_value(&w, 1) == 0 && w.p == w.end;
}

static void check(struct mw_slice near, struct mw_slice raw) {
  struct mw_outline *outline = mw_outline_new(near);
  struct mw_template *t = mw_template_new(near, near.n, outline);
  int section = mw_template_section(t, false, MW_SLICE("s"));
  require(section >= 0 && mw_template_section(t, true, MW_SLICE("managedFields")) < 0);
  const char *from = raw.p + sizeof HEAD - 1;
  char *copy = mw_xmalloc(raw.n);
  struct mw_runs runs = {0};
  struct mw_walk w = {.p = from, .end = raw.p + raw.n, .run = raw.p, .out = copy};
  struct mw_walk alone = {.p = from, .end = w.end, .run = from};
  bool taken = mw_template_walk(t, section, &w, copy, &runs);
  require(w.p == from || taken);
  require(taken || runs.n == 0);
  if (taken) require(mw_walk_value(&alone, DEPTH) == 0 && alone.p == w.p);
  for (size_t i = 0; i < runs.n; i++) {
    const struct mw_run *r = &runs.v[i];
    require(r->at + r->n <= raw.n && r->from + r->n <= near.n);
    require(memcmp(raw.p + r->at, near.p + r->from, r->n) == 0);
  }
  struct mw_beside beside = {.runs = runs.v, .run_count = runs.n, .alike = runs.alike};
  beside.alike_count = runs.alike_count;
  check_near(near, raw, &beside, outline);
  for (size_t i = 0; i < runs.n; i++) runs.v[i].from += 3;  // not true, and not believed
  check_near(near, raw, &beside, outline);
  for (size_t i = 0; i < runs.n; i++) runs.v[i].from -= 3;
  for (size_t i = 1; i < runs.n; i += 2) {  // nor is their order
    struct mw_run run = runs.v[i];
    runs.v[i] = runs.v[i - 1];
    runs.v[i - 1] = run;
  }
  check_near(near, raw, &beside, outline);
  mw_free(runs.v);
  mw_free(copy);
  mw_template_free(t);
  mw_outline_free(outline);
}

// The value as managedFields of the template, which stand behind its JSON; beside them is read what
// the edits have made of it.
static void check_managed(struct mw_slice near, struct mw_slice value, struct mw_slice raw) {
  char *text = mw_xmalloc(near.n + value.n);  // whose end is seen by AddressSanitizer
  memcpy(text, near.p, near.n);
  memcpy(text + near.n, value.p, value.n);
  struct mw_template *t = mw_template_new(mw_slice(text, near.n + value.n), near.n, NULL);
  int section = mw_template_section(t, true, MW_SLICE("managedFields"));
  const char *from = raw.p + sizeof HEAD FIRST - 1;
  struct mw_runs runs = {0};
  struct mw_walk w = {.p = from, .end = raw.p + raw.n, .run = from}, alone = w;
  if (section >= 0 && mw_template_walk(t, section, &w, NULL, &runs)) {
    require(mw_walk_value(&alone, DEPTH) == 0 && alone.p == w.p);
  }
  require(runs.n == 0);
  mw_template_free(t);
  mw_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {data, data + size};
  size_t edits = byte(&in) & EDITS_MAX;
  struct input list = in;
  for (size_t i = 0; i < edits; i++) {
    size_t come = in.end - in.p >= 4 ? in.p[3] : 0;
    in.p += in.end - in.p >= (ptrdiff_t)(4 + come) ? 4 + come : (size_t)(in.end - in.p);
  }
  struct mw_slice value = {(const char *)in.p, (size_t)(in.end - in.p)};
  if (!is_json(value)) return 0;
  struct mw_buf near, raw, edited;
  mw_buf_init(&near, TEXT_MAX);
  mw_buf_init(&raw, TEXT_MAX);
  mw_buf_init(&edited, TEXT_MAX);
  wrap(&near, value);
  require(mw_buf_add(&edited, value.p, value.n) == 0);
  list.end = in.p;
  for (size_t i = 0; i < edits; i++) edit(&edited, &list);
  wrap(&raw, mw_buf_slice(&edited));
  check(mw_buf_slice(&near), mw_buf_slice(&raw));
  check(mw_buf_slice(&near), mw_buf_slice(&near));
  check_managed(mw_buf_slice(&near), value, mw_buf_slice(&raw));
  mw_buf_deinit(&near);
  mw_buf_deinit(&raw);
  mw_buf_deinit(&edited);
  return 0;
}
