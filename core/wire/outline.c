// SPDX-License-Identifier: Apache-2.0
// What is asked for all the time lies close together: the names of sections are here, and those of
// members, which are spread over the whole template, are compared by a short hash first.
#include "wire/outline.h"

#include <stdbool.h>

#include "base/alloc.h"
#include "base/map.h"
#include "wire/json.h"

enum {
  MEMBERS_MAX = 64,    // a section with more has no outline
  NAME_MAX_LEN = 15,   // nor has one with a longer name
  AROUND_NAME = 3,     // bytes: two quotes and a colon
  TEXT_MAX = 1 << 16,  // what 16 bits can count
};

struct member {
  uint16_t hash;
  uint16_t key;
  uint16_t value;
};

struct section {
  char name[NAME_MAX_LEN];
  uint8_t name_len;
  uint16_t from;          // of the '{'
  uint16_t first, count;  // members
};

struct mw_outline {
  uint16_t count;
  uint16_t members;
  struct section section[MW_OUTLINE_SECTIONS];
  struct member member[];
};

struct draft {
  const char *text;
  size_t members;
  struct section section[MW_OUTLINE_SECTIONS];
  size_t sections;
  struct member member[MW_OUTLINE_SECTIONS * MEMBERS_MAX];
};

static uint16_t short_hash(struct mw_slice name) { return (uint16_t)mw_hash(name); }

// Adds the members of the object at the cursor; false when one of them cannot be told.
static bool add_members(struct draft *d, struct mw_json c) {
  size_t first = d->members;
  bool begin = true, escaped;
  struct mw_slice name;
  int rc;
  if (mw_json_enter(&c) < 0) return false;
  while ((rc = mw_json_member(&c, &begin, &name, &escaped)) > 0) {
    if (escaped || d->members - first == MEMBERS_MAX) return false;
    if (c.p != name.p + name.n + AROUND_NAME - 1) return false;
    d->member[d->members++] = (struct member){.hash = short_hash(name),
                                              .key = (uint16_t)(name.p - 1 - d->text),
                                              .value = (uint16_t)(c.p - d->text)};
    if (mw_json_pass(&c) < 0) return false;
  }
  return rc == 0;
}

static void add_section(struct draft *d, struct mw_slice name, const char *from, const char *to) {
  size_t first = d->members;
  if (d->sections == MW_OUTLINE_SECTIONS || to - from < MW_SECTION_MIN) return;
  if (name.n == 0 || name.n > NAME_MAX_LEN) return;
  if (!add_members(d, (struct mw_json){from, to})) {
    d->members = first;
    return;
  }
  struct section *s = &d->section[d->sections++];
  memcpy(s->name, name.p, name.n);
  s->name_len = (uint8_t)name.n;
  s->from = (uint16_t)(from - d->text);
  s->first = (uint16_t)first;
  s->count = (uint16_t)(d->members - first);
}

// The metadata is none: it stands in front and differs in all objects.
static void add_sections(struct draft *d, struct mw_slice json) {
  struct mw_json c = {json.p, json.p + json.n};
  bool first = true, escaped;
  struct mw_slice name;
  if (mw_json_peek(&c) != MW_JSON_OBJECT || mw_json_enter(&c) < 0) return;
  while (mw_json_member(&c, &first, &name, &escaped) > 0) {
    const char *from = c.p;
    if (mw_json_pass(&c) < 0) return;
    if (*from == '{' && !escaped && !mw_slice_is(name, "metadata")) {
      add_section(d, name, from, c.p);
    }
  }
}

struct mw_outline *mw_outline_new(struct mw_slice json) {
  struct draft d = {.text = json.p};
  if (json.n < TEXT_MAX) add_sections(&d, json);
  if (d.sections == 0) return NULL;
  struct mw_outline *o = mw_xmalloc(sizeof *o + d.members * sizeof o->member[0]);
  o->count = (uint16_t)d.sections;
  o->members = (uint16_t)d.members;
  memcpy(o->section, d.section, sizeof d.section);
  memcpy(o->member, d.member, d.members * sizeof d.member[0]);
  return o;
}

void mw_outline_free(struct mw_outline *o) { mw_free(o); }

size_t mw_outline_size(const struct mw_outline *o) {
  return sizeof *o + o->members * sizeof o->member[0];
}

size_t mw_outline_count(const struct mw_outline *o) { return o->count; }

int mw_outline_section(const struct mw_outline *o, struct mw_slice name) {
  for (size_t i = 0; i < o->count; i++) {
    const struct section *s = &o->section[i];
    if (mw_slice_eq(mw_slice(s->name, s->name_len), name)) return (int)i;
  }
  return -1;
}

int mw_outline_section_at(const struct mw_outline *o, size_t from) {
  for (size_t i = 0; i < o->count; i++) {
    if (o->section[i].from == from) return (int)i;
  }
  return -1;
}

int mw_outline_member(const struct mw_outline *o, struct mw_slice json, int section,
                      struct mw_slice name, struct mw_outline_member *m) {
  const struct section *s = &o->section[section];
  uint16_t hash = short_hash(name);
  for (int i = 0; i < s->count; i++) {
    const struct member *v = &o->member[s->first + i];
    if (v->hash != hash || (size_t)(v->value - v->key) != name.n + AROUND_NAME) continue;
    if (!mw_slice_eq(mw_slice(json.p + v->key + 1, name.n), name)) continue;
    *m = (struct mw_outline_member){v->key, v->value};
    return i;
  }
  return -1;
}
