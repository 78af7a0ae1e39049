// SPDX-License-Identifier: Apache-2.0
// Samples are whole objects: a dictionary of a dozen of them, one behind the other, packs as well
// as a trained one, and far better than one of cut pieces. Objects come sorted by name, so the
// first ones are alike: the room for samples grows with the objects seen, and what the samples so
// far already pack well is not taken. A second dictionary, gathered from more objects, follows the
// first when there were objects that the first does not pack well.
#include "wire/pack.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/map.h"
#include "wire/json.h"
#include "wire/lz.h"
#include "wire/outline.h"

enum {
  DICT_MAX = MW_LZ_REACH,      // LZ4 looks back no further
  FIRST_ROOM = 16 * 1024,      // for samples at the start; grows to DICT_MAX
  SAMPLE_MAX = 12 * 1024,      // of a larger object only the beginning
  GOOD_RATIO = 8,              // what packs this well teaches nothing
  RAW_MAX = 64 * 1024 * 1024,  // more is damage
  OUT_ROOM = 16 * 1024,        // for what is unpacked, at the start
  KEEP_MAX = 1024 * 1024,      // output room that outlives a large object
  FAMILIES = 4096,             // a power of two
  MEMBERS = 8,               // of a family that gets a template: it is as large as a dozen of them,
                             // but those who have it are packed in a third of the time
  MEMBERS_MAX = 24,          // that are counted
  TEMPLATE_MIN = 512,        // smaller objects
  TEMPLATE_MAX = 24 * 1024,  // and larger ones make none
  MANAGED_MAX = MW_LZ_REACH - 2 * TEMPLATE_MAX,  // so that all that is packed beside it is in reach
  ALIKE_RATIO = 4,                               // what packs less well is not like the template
  UNLIKE = 4,                                    // members that one who is not counts for
  LINE = 64,              // bytes that processors take from each other at once
  NEAR_AHEAD = 4 * 1024,  // of a template that is fetched before it is read
  MARKS_ROOM = MW_OUTLINE_SECTIONS * sizeof(struct mw_mark),
  VALUE_FIRST = 48,  // bytes, that hold most values and what follows them
};

// One of `every` objects is looked at, until `seen` objects have passed.
struct stage {
  size_t seen;
  size_t every;
};

static const struct stage stages[] = {{256, 4}, {2048, 32}};
enum { STAGES = sizeof stages / sizeof stages[0] };

struct mw_dict {
  atomic_size_t refs;  // written all the time, by several threads; the rest is only read
  char apart[LINE - sizeof(atomic_size_t)];
  // Of a template; NULL: it is none, or has no section. What is packed begins with a mark for each
  // of its sections.
  const struct mw_outline *outline;
  struct mw_slice text;  // and MW_LZ_SLACK bytes more
  char memory[];         // the outline, then the text
};

// One of two places in a table that are found by the name. A family that has it loses it when more
// others in a row wanted it than it has members.
struct family {
  uint32_t hash;         // of what its names begin with; 0: none
  uint16_t members;      // that are like the others
  uint16_t others;       // in a row
  struct mw_dict *dict;  // of its template; NULL: too few members
  struct mw_template *template;
};

struct mw_packer {
  struct mw_dict *dict;      // in force; NULL until the first stage is over
  size_t stage;              // STAGES: all is learned
  size_t seen;               // objects packed in this stage
  char *samples;             // DICT_MAX; NULL once all is learned
  size_t n;                  // bytes in samples
  struct mw_lz_index index;  // of the dictionary
  struct mw_lz_scratch work;
  struct family *families;  // FAMILIES; NULL until the first stage is over
  size_t members;           // that were packed
};

struct mw_dict *mw_dict_ref(struct mw_dict *d) {
  if (d != NULL) atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
  return d;
}

void mw_dict_unref(struct mw_dict *d) {
  if (d == NULL || atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) > 1) return;
  mw_live_add(MW_LIVE_DICT, -1);
  mw_free(d);
}

static struct mw_dict *dict_new(struct mw_slice bytes, struct mw_slice more,
                                const struct mw_outline *outline) {
  size_t head = outline != NULL ? mw_outline_size(outline) : 0;
  struct mw_dict *d = mw_xmalloc(sizeof *d + head + bytes.n + more.n + MW_LZ_SLACK);
  char *to = d->memory + head;
  atomic_init(&d->refs, 1);
  d->outline = head > 0 ? memcpy(d->memory, outline, head) : NULL;
  d->text = mw_slice(to, bytes.n + more.n);
  memcpy(to, bytes.p, bytes.n);
  if (more.n > 0) memcpy(to + bytes.n, more.p, more.n);
  mw_live_add(MW_LIVE_DICT, 1);
  return d;
}

static void give_template(struct family *f, struct mw_slice raw, struct mw_slice managed) {
  if (managed.n > MANAGED_MAX) managed.n = 0;
  struct mw_outline *outline = mw_outline_new(raw);
  f->dict = dict_new(raw, managed, outline);
  f->template = mw_template_new(f->dict->text, raw.n, f->dict->outline);
  mw_outline_free(outline);
}

// Makes it one that has nothing.
static void reset(struct family *f, uint32_t hash) {
  mw_dict_unref(f->dict);
  mw_template_free(f->template);
  *f = (struct family){.hash = hash};
}

struct mw_packer *mw_packer_new(void) {
  struct mw_packer *p = mw_xcalloc(1, sizeof *p);
  p->samples = mw_xmalloc(DICT_MAX);
  return p;
}

void mw_packer_free(struct mw_packer *p) {
  if (p == NULL) return;
  mw_dict_unref(p->dict);
  for (size_t i = 0; p->families != NULL && i < FAMILIES; i++) reset(&p->families[i], 0);
  mw_free(p->families);
  mw_free(p->samples);
  mw_free(p);
}

struct mw_dict *mw_packer_dict(struct mw_packer *p) {
  return p->dict;
}

size_t mw_pack_bound(size_t raw_len) {
  return raw_len <= RAW_MAX ? mw_lz_bound(raw_len) + MARKS_ROOM : raw_len;
}

// Ends a stage. What was packed with the dictionary before has a reference of its own.
static void freeze(struct mw_packer *p) {
  if (p->n > 0) {
    mw_dict_unref(p->dict);
    p->dict = dict_new(mw_slice(p->samples, p->n), mw_slice(NULL, 0), NULL);
    mw_lz_index(&p->index, p->dict->text);
  }
  p->n = 0;
  p->seen = 0;
  if (p->families == NULL) p->families = mw_xcalloc(FAMILIES, sizeof *p->families);
  if (++p->stage < STAGES) return;
  mw_free(p->samples);
  p->samples = NULL;
}

static bool packs_well(struct mw_packer *p, const struct mw_lz_index *index, struct mw_slice raw,
                       char *out) {
  return mw_lz_pack(index, &p->work, raw, out) * GOOD_RATIO < raw.n;
}

// Whether the dictionary in force or the samples so far already pack raw well. out is scratch.
static bool is_known(struct mw_packer *p, struct mw_slice raw, char *out) {
  if (packs_well(p, &p->index, raw, out)) return true;
  if (p->n == 0) return false;
  struct mw_lz_index samples;
  mw_lz_index(&samples, mw_slice(p->samples, p->n));
  return packs_well(p, &samples, raw, out);
}

// Looks at an object on its way through. out is scratch.
static void learn(struct mw_packer *p, struct mw_slice raw, char *out) {
  const struct stage *stage = &stages[p->stage];
  size_t seen = p->seen++;
  size_t room = FIRST_ROOM + (DICT_MAX - FIRST_ROOM) * seen / stage->seen;
  size_t n = raw.n < SAMPLE_MAX ? raw.n : SAMPLE_MAX;
  if (seen % stage->every == 0 && p->n + n <= room && !is_known(p, raw, out)) {
    memcpy(p->samples + p->n, raw.p, n);
    p->n += n;
  }
  if (p->seen == stage->seen) freeze(p);
}

static uint32_t family_hash(struct mw_slice name) {
  size_t n = name.n;
  while (n > 0 && name.p[n - 1] != '-' && name.p[n - 1] != '.') n--;
  return mw_hash(mw_slice(name.p, n > 0 ? n : name.n)) | 1;
}

// The place that this family has, or the one of its two that it could rather get.
static struct family *place_of(struct mw_packer *p, uint32_t hash) {
  struct family *f = &p->families[hash & (FAMILIES - 2)];
  return f->hash != hash && (f[1].hash == hash || f[1].members < f->members) ? f + 1 : f;
}

const struct mw_template *mw_packer_template(struct mw_packer *p, struct mw_slice name) {
  if (p->families == NULL) return NULL;
  uint32_t hash = family_hash(name);
  const struct family *f = place_of(p, hash);
  return f->hash == hash ? f->template : NULL;
}

// NULL: both places that it could have are others'.
static struct family *family_of(struct mw_packer *p, struct mw_slice name) {
  uint32_t hash = family_hash(name);
  struct family *f = place_of(p, hash);
  if (f->hash != hash) {
    if (f->hash != 0 && ++f->others <= f->members) return NULL;
    reset(f, hash);
  }
  f->others = 0;
  return f;
}

static void count_member(struct family *f, bool alike) {
  if (alike) {
    if (f->members < MEMBERS_MAX) f->members++;
  } else if (f->members > UNLIKE) {
    f->members -= UNLIKE;
  } else {
    reset(f, f->hash);  // another may do better
  }
}

// Takes the template from a family whose members are all gone. One place for each object that is
// packed is looked at.
static void sweep(struct mw_packer *p) {
  struct family *f = &p->families[p->members++ & (FAMILIES - 1)];
  if (f->dict == NULL || atomic_load_explicit(&f->dict->refs, memory_order_acquire) > 1) return;
  reset(f, f->hash);
}

static size_t marks_size(const struct mw_dict *d) {
  return d->outline != NULL ? mw_outline_count(d->outline) * sizeof(struct mw_mark) : 0;
}

// Packs it beside a template, behind its marks; 0: it cannot be.
static size_t pack_beside(const struct mw_dict *d, const struct mw_beside *beside,
                          struct mw_slice raw, char *out) {
  struct mw_mark marks[MW_OUTLINE_SECTIONS];
  size_t head = marks_size(d);
  size_t n = mw_lz_pack_near(d->text, raw, beside, out + head, marks);
  memcpy(out, marks, head);
  return n > 0 ? head + n : 0;
}

// Packs it as a member of its family; 0: it is none, or not like the others.
static size_t pack_member(struct mw_packer *p, const struct mw_pack_hint *hint, struct mw_slice raw,
                          char *out, struct mw_dict **dict) {
  if (p->families == NULL || raw.n < TEMPLATE_MIN || raw.n > TEMPLATE_MAX) return 0;
  sweep(p);
  struct family *f = family_of(p, hint->name);
  if (f == NULL) return 0;
  if (f->dict == NULL && hint->is_new) {
    count_member(f, true);
    if (f->members == MEMBERS) give_template(f, raw, hint->beside.managed);
  }
  if (f->dict == NULL) return 0;
  const struct mw_beside *beside = hint->beside.template == f->template ? &hint->beside : NULL;
  size_t n = pack_beside(f->dict, beside, raw, out);
  bool alike = n > 0 && n * ALIKE_RATIO <= raw.n;
  if (alike) *dict = f->dict;
  count_member(f, alike);
  return alike ? n : 0;
}

size_t mw_pack(struct mw_packer *p, const struct mw_pack_hint *hint, struct mw_slice raw, char *out,
               struct mw_dict **dict) {
  *dict = NULL;
  if (raw.n == 0) return 0;
  size_t n = pack_member(p, hint, raw, out, dict);
  if (n > 0) return n;
  n = raw.n;
  if (raw.n <= RAW_MAX) {
    if (p->stage < STAGES) learn(p, raw, out);
    n = mw_lz_pack(&p->index, &p->work, raw, out);
  }
  if (n >= raw.n) {
    memcpy(out, raw.p, raw.n);
    return raw.n;
  }
  *dict = p->dict;
  return n;
}

// The mark of a section, and what is behind all marks.
static struct mw_mark mark_of(struct mw_slice *packed, const struct mw_dict *d, size_t section) {
  struct mw_mark mark = {0};
  size_t head = marks_size(d);
  if (packed->n < head) return mark;
  memcpy(&mark, packed->p + section * sizeof mark, sizeof mark);
  packed->p += head;
  packed->n -= head;
  return mark;
}

static void fetch(const char *p, size_t n) {
  for (size_t i = 0; i < n; i += LINE) __builtin_prefetch(p + i);
}

void mw_packed_prefetch(const struct mw_dict *dict, struct mw_slice packed) {
  if (dict == NULL) return;
  fetch((const char *)dict + LINE, 4 * LINE);
  fetch(packed.p, packed.n < 4 * LINE ? packed.n : 4 * LINE);
}

size_t mw_packed_section(const struct mw_dict *dict, struct mw_slice packed, struct mw_slice name) {
  if (dict == NULL || dict->outline == NULL) return 0;
  int section = mw_outline_section(dict->outline, name);
  return section >= 0 ? mark_of(&packed, dict, (size_t)section).at : 0;
}

// Whether the string or scalar that begins here ends, too; *n is its length then.
static bool is_value(const char *p, size_t *n) {
  struct mw_json c = {p, p + *n};
  bool is_string = mw_json_peek(&c) == MW_JSON_STRING;
  if (mw_json_pass(&c) < 0) return false;
  if (c.p == c.end && !is_string) return false;  // a number may go on
  *n = (size_t)(c.p - p);
  return true;
}

int mw_packed_member(const struct mw_dict *dict, struct mw_slice packed, size_t section,
                     struct mw_slice name, struct mw_packed_member *m) {
  if (dict == NULL || dict->outline == NULL) return -1;
  for (size_t i = 0; i < mw_outline_count(dict->outline); i++) {
    struct mw_lz_place s = {.near = dict->text, .packed = packed};
    struct mw_mark mark = mark_of(&s.packed, dict, i);
    if (mark.n == 0 || mark.at != section) continue;
    struct mw_outline_member member;
    int number = mw_outline_member(dict->outline, s.near, (int)i, name, &member);
    if (number < 0) return 0;
    if (!mw_lz_find(&s, mark, &member)) return -1;
    size_t had = mw_lz_copy(&s, m->room, VALUE_FIRST), n = had;
    if (had == 0 || *m->room == '{' || *m->room == '[') return -1;
    if (!is_value(m->room, &n)) {
      n = had + mw_lz_copy(&s, m->room + had, sizeof m->room - had);
      if (!is_value(m->room, &n)) return -1;
    }
    m->number = (unsigned)number;
    m->value = mw_slice(m->room, n);
    return 1;
  }
  return -1;
}

struct mw_unpacker {
  char *memory;
  size_t cap;
  struct mw_lz_text text;  // what is being unpacked
};

struct mw_unpacker *mw_unpacker_new(void) {
  return mw_xcalloc(1, sizeof(struct mw_unpacker));
}

void mw_unpacker_free(struct mw_unpacker *u) {
  if (u == NULL) return;
  mw_free(u->memory);
  mw_free(u);
}

static char *room_for(struct mw_unpacker *u, size_t n) {
  n += MW_LZ_SLACK;
  if (u->cap < n || (u->cap > KEEP_MAX && n < KEEP_MAX / 4)) {
    size_t cap = OUT_ROOM;
    while (cap < n) cap *= 2;
    mw_free(u->memory);
    u->memory = mw_xmalloc(cap);
    u->cap = cap;
  }
  return u->memory;
}

void mw_unpack_begin(struct mw_unpacker *u, const struct mw_dict *dict, struct mw_slice packed,
                     size_t raw_len) {
  size_t head = dict != NULL ? marks_size(dict) : 0;
  if (packed.n < head) head = packed.n;
  u->text = (struct mw_lz_text){.packed = {packed.p + head, packed.n - head}, .all = raw_len};
  if (dict != NULL) u->text.dict = dict->text;
  // A template is read from its beginning on, about as far as the text is.
  if (dict != NULL && dict->text.n <= TEMPLATE_MAX) {
    fetch(packed.p, packed.n < NEAR_AHEAD ? packed.n : NEAR_AHEAD);
    fetch(dict->text.p, dict->text.n < NEAR_AHEAD ? dict->text.n : NEAR_AHEAD);
  }
  if (raw_len > RAW_MAX || packed.n > raw_len) return;
  u->text.out = room_for(u, raw_len);
  if (packed.n < raw_len) return;
  if (raw_len > 0) memcpy(u->text.out, packed.p, raw_len);
  u->text.n = raw_len;
}

struct mw_slice mw_unpack_more(struct mw_unpacker *u, size_t want) {
  struct mw_lz_text *t = &u->text;
  if (t->out != NULL && t->n < t->all && !mw_lz_unpack(t, want)) t->out = NULL;
  return mw_slice(t->out, t->out != NULL ? t->n : 0);
}
