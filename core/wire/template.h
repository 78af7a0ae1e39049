// SPDX-License-Identifier: Apache-2.0
// The template of a family (pack.h): one of its objects, beside which the others are read.
//
// Pods of one Deployment have the same members in the same order and differ in names, times and
// addresses. A text that is walked beside its template is only compared with it as long as both
// have the same bytes: the template was validated, and from the same state of the grammar the same
// bytes lead to the same state. Where they differ inside a string, a number or a literal, that one
// is validated by itself, a string in place of a number too, and both go on behind it. Any other
// difference is the walker's (scan.h), from the beginning of the section on. So nothing passes here
// that the walker would refuse.
//
// What was the same is noted on the way, and the packer need not look for it again. And where only
// values differ in a section, not the names of its members, those are found by the template's
// (outline.h).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct mw_outline;
struct mw_template;
struct mw_walk;

enum { MW_TEMPLATE_SECTIONS = 8 };  // further members of a root are the walker's

// Bytes of an object's JSON that stand in the text of its template, too.
struct mw_run {
  uint32_t at;    // where in the JSON
  uint32_t from;  // and where in the template
  uint32_t n;
};

// A section of an object that was walked beside the template's: no run is of two of them.
struct mw_alike {
  uint32_t at;  // where in the JSON
  uint32_t n;
  uint32_t from;  // and where in the template
  uint32_t from_n;
  int section;
  int mark;  // its number in the outline; -1: it has none, or other members
};

struct mw_runs {
  struct mw_run *v;  // in the order of the JSON
  size_t n;
  size_t cap;
  struct mw_alike alike[MW_TEMPLATE_SECTIONS];  // in the same order
  size_t alike_count;
  unsigned seen;  // one bit per section of the template: one that comes twice has no mark
};

// Of a new object.
void mw_runs_begin(struct mw_runs *r);
// What was noted does not count.
void mw_runs_forget(struct mw_runs *r);
// Something came that this template has not told: any section may come for the second time now.
void mw_runs_lose_count(struct mw_runs *r);

// What the scanner has found out for the packer.
struct mw_beside {
  const struct mw_template *template;  // NULL: none
  const struct mw_run *runs;
  size_t run_count;
  const struct mw_alike *alike;
  size_t alike_count;
  struct mw_slice managed;  // metadata.managedFields in the text that was scanned, when left out
};

// text is the JSON of an object and, behind its first `json` bytes, its managedFields, or nothing.
// Both are valid, and stay where they are. outline: of that JSON, or NULL.
struct mw_template *mw_template_new(struct mw_slice text, size_t json,
                                    const struct mw_outline *outline);
void mw_template_free(struct mw_template *t);  // NULL is fine

// The section that the member `name` of the root, or of the metadata, is; -1: it has none.
int mw_template_section(const struct mw_template *t, bool of_metadata, struct mw_slice name);
// Walks the value at w->p beside a section. True: it was consumed, and it is valid. False: nothing
// has happened, but that it was seen. When w copies, notes in `runs` what is the same; `copy` is
// where the copy begins.
bool mw_template_walk(const struct mw_template *t, int section, struct mw_walk *w, const char *copy,
                      struct mw_runs *runs);
