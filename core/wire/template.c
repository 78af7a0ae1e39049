// SPDX-License-Identifier: Apache-2.0
#include "wire/template.h"

#include <limits.h>

#include "base/alloc.h"
#include "wire/common.h"
#include "wire/frame.h"
#include "wire/json.h"
#include "wire/outline.h"
#include "wire/scan.h"

enum {
  SECTIONS = MW_TEMPLATE_SECTIONS,
  RUN_MIN = 6,      // shorter ones are not worth a match
  RUNS_MAX = 1024,  // further ones are not noted
  WORD = 64,        // bits
  ESCAPE_MAX = 8,   // more bytes than an escape or a character has
};

struct section {
  uint32_t name, name_len;
  uint32_t from, to;  // of the value
  bool of_metadata;
  int mark;  // its number in the outline; -1: none
};

struct mw_template {
  struct mw_slice text;
  const struct mw_outline *outline;  // NULL: none
  struct section section[SECTIONS];
  int sections;
  uint64_t inside[];  // one bit per byte: of a string, but for its opening quote
};

static void add_section(struct mw_template *t, bool of_metadata, struct mw_slice name,
                        const char *from, const char *to) {
  if (t->sections == SECTIONS || to - from < MW_SECTION_MIN) return;
  size_t at = (size_t)(from - t->text.p);
  t->section[t->sections++] = (struct section){
      .name = (uint32_t)(name.p - t->text.p),
      .name_len = (uint32_t)name.n,
      .from = (uint32_t)at,
      .to = (uint32_t)(to - t->text.p),
      .of_metadata = of_metadata,
      .mark = t->outline != NULL ? mw_outline_section_at(t->outline, at) : -1,
  };
}

static void add_members(struct mw_template *t, size_t json) {
  struct mw_json c = {t->text.p, t->text.p + json};
  bool first = true, escaped;
  struct mw_slice name;
  if (mw_json_peek(&c) != MW_JSON_OBJECT || mw_json_enter(&c) < 0) return;
  while (mw_json_member(&c, &first, &name, &escaped) > 0) {
    enum mw_json_kind kind = mw_json_peek(&c);
    const char *from = c.p;
    if (mw_json_pass(&c) < 0) return;
    if (kind == MW_JSON_OBJECT || kind == MW_JSON_ARRAY) add_section(t, false, name, from, c.p);
  }
}

struct mw_template *mw_template_new(struct mw_slice text, size_t json,
                                    const struct mw_outline *outline) {
  struct mw_template *t = mw_xcalloc(1, sizeof *t + (text.n / WORD + 1) * sizeof t->inside[0]);
  t->text = text;
  t->outline = outline;
  mw_frame_strings(text, t->inside);
  if (text.n > json && (text.p[json] == '{' || text.p[json] == '[')) {
    // It needs no name: there is only one of the metadata.
    add_section(t, true, mw_slice(text.p, 0), text.p + json, text.p + text.n);
  }
  add_members(t, json);
  return t;
}

void mw_template_free(struct mw_template *t) { mw_free(t); }

int mw_template_section(const struct mw_template *t, bool of_metadata, struct mw_slice name) {
  if (of_metadata && !mw_slice_eq(name, MW_SLICE("managedFields"))) return -1;
  for (int i = 0; i < t->sections; i++) {
    const struct section *s = &t->section[i];
    if (s->of_metadata != of_metadata) continue;
    if (of_metadata || mw_slice_eq(name, mw_slice(t->text.p + s->name, s->name_len))) return i;
  }
  return -1;
}

static bool is_inside(const struct mw_template *t, const char *q) {
  size_t i = (size_t)(q - t->text.p);
  return t->inside[i / WORD] >> i % WORD & 1;
}

// Behind the string that q is in.
static const char *string_end(const struct mw_template *t, const char *q) {
  size_t i = (size_t)(q - t->text.p);
  uint64_t outside = ~t->inside[i / WORD] >> i % WORD;
  if (outside != 0) return q + __builtin_ctzll(outside);
  // The last word has a bit that is not set.
  for (i = i / WORD + 1; t->inside[i] == UINT64_MAX; i++) continue;
  return t->text.p + i * WORD + __builtin_ctzll(~t->inside[i]);
}

// Both texts, where they differ, and how many bytes before that were the same.
struct pair {
  const char *p;
  const char *q;
  size_t same;
};

// Whether one of the eight bytes before p may be of an escape, or is not ASCII.
static bool may_be_cut(const char *p) {
  uint64_t v = mw_read8(p - ESCAPE_MAX);
  uint64_t backslash = v ^ 0x5C5C5C5C5C5C5C5Cu;
  return ((v | ((backslash - 0x0101010101010101u) & ~backslash)) & 0x8080808080808080u) != 0;
}

// Inside of a string of the template: goes behind it in both.
static bool pass_strings(const struct mw_template *t, struct mw_walk *w, struct pair *s) {
  const char *p = s->p;
  if (s->same < ESCAPE_MAX || may_be_cut(p)) {
    const char *q = s->q;
    while (is_inside(t, q)) q--;
    p -= s->q - q - 1;
  }
  s->p = mw_walk_text(w, p);
  s->q = string_end(t, s->q);
  return s->p != NULL;
}

static bool is_scalar(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' ||
         c == 'E';
}

// At a number or a literal of the template: goes behind it in both. Where the one has such a value,
// the other may have any, but deeper ones are left to the walker.
static bool pass_scalars(struct mw_walk *w, struct pair *s) {
  size_t back = 0;
  while (back < s->same && is_scalar(s->q[-1 - (ptrdiff_t)back])) back++;
  s->p -= back;
  s->q -= back;
  if (!is_scalar(*s->q)) return false;
  if (s->p < w->end && *s->p == '"') {
    s->p = mw_walk_text(w, s->p + 1);
  } else {
    s->p = mw_walk_scalar(w, s->p);
  }
  while (is_scalar(*s->q)) s->q++;
  return s->p != NULL;
}

void mw_runs_forget(struct mw_runs *r) {
  r->n = 0;
  r->alike_count = 0;
}

void mw_runs_begin(struct mw_runs *r) {
  mw_runs_forget(r);
  r->seen = 0;
}

void mw_runs_lose_count(struct mw_runs *r) { r->seen = UINT_MAX; }

static void note(struct mw_runs *runs, size_t at, size_t from, size_t n) {
  if (runs->n == RUNS_MAX) return;
  if (runs->n == runs->cap) {
    runs->cap = runs->cap > 0 ? 2 * runs->cap : 64;
    runs->v = mw_xrealloc(runs->v, runs->cap * sizeof *runs->v);
  }
  runs->v[runs->n++] = (struct mw_run){(uint32_t)at, (uint32_t)from, (uint32_t)n};
}

// Counts a section, and takes the mark from one that came before. Whether it is the first.
static bool count_section(struct mw_runs *runs, int section) {
  bool first = (runs->seen >> section & 1) == 0;
  runs->seen |= 1u << section;
  for (size_t i = 0; i < runs->alike_count && !first; i++) {
    if (runs->alike[i].section == section) runs->alike[i].mark = -1;
  }
  return first;
}

bool mw_template_walk(const struct mw_template *t, int section, struct mw_walk *w, const char *copy,
                      struct mw_runs *runs) {
  const struct section *beside = &t->section[section];
  const char *const start = w->p;
  const char *const stop = t->text.p + beside->to;
  const size_t noted = runs->n;
  const bool wide = mw_is_wide();
  // Of the byte at w->p, in the copy.
  const size_t base = w->out != NULL ? (size_t)(w->out - copy) + (size_t)(start - w->run) : 0;
  struct pair s = {start, t->text.p + beside->from, 0};
  bool same_names = count_section(runs, section);
  if (runs->alike_count == SECTIONS) return false;
  for (;;) {
    size_t left = (size_t)(w->end - s.p), reach = (size_t)(stop - s.q);
    s.same = mw_common_long(s.p, s.q, left < reach ? left : reach, wide);
    if (s.same >= RUN_MIN && w->out != NULL) {
      note(runs, base + (size_t)(s.p - start), (size_t)(s.q - t->text.p), s.same);
    }
    s.p += s.same;
    s.q += s.same;
    if (s.q == stop) break;
    if (s.p == w->end) goto differs;
    if (!(is_inside(t, s.q) ? pass_strings(t, w, &s) : pass_scalars(w, &s))) goto differs;
    if (*s.q == ':') same_names = false;
  }
  if (w->out != NULL) {
    runs->alike[runs->alike_count++] = (struct mw_alike){.at = (uint32_t)base,
                                                         .n = (uint32_t)(s.p - start),
                                                         .from = beside->from,
                                                         .from_n = beside->to - beside->from,
                                                         .section = section,
                                                         .mark = same_names ? beside->mark : -1};
  }
  w->p = s.p;
  return true;
differs:
  w->p = start;
  w->why = NULL;
  runs->n = noted;
  return false;
}
