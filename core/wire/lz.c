// SPDX-License-Identifier: Apache-2.0
#include "wire/lz.h"

#include <string.h>

#include "wire/common.h"

enum {
  MATCH_MIN = 8,   // bytes that are hashed and compared at once
  TAIL = 12,       // the format: no match begins in the last twelve bytes
  TAIL_TEXT = 5,   // and none reaches into the last five
  STEP = 3,        // bytes from one look to the next; a match is followed back to its beginning
  STEP_SHIFT = 3,  // after so many (a power of two) bytes without a match, one more
  WIDE = 16,       // a short text is copied as so many bytes at once
  MORE = 15,       // a length from here on takes further bytes
  FORMAT_MIN = 4,  // the format counts lengths of matches from here
  NEAR_MIN = 6,    // beside a near text a match needs no search, and a shorter one is worth it
  LOST_MAX = 3,    // quotes in step without a match, until one is searched for
  SEARCHES = 16,   // for one object
  NEEDLE = 20,     // bytes of what is searched for
  WINDOW = 1024,   // and in so many
};

static inline uint32_t hash(uint64_t v, unsigned bits) {
  return (uint32_t)(v * 0x9E3779B97F4A7C15u >> (64 - bits));
}

void mw_lz_index(struct mw_lz_index *x, struct mw_slice dict) {
  memset(x->at, 0, sizeof x->at);
  x->dict = dict.p;
  x->n = dict.n;
  for (size_t i = 0; i + MATCH_MIN <= dict.n; i++) {
    x->at[hash(mw_read8(dict.p + i), MW_LZ_DICT_BITS)] = (uint16_t)(i + 1);
  }
}

static inline size_t common_before(const char *a, const char *b, size_t n) {
  size_t i = 0;
  while (i < n && a[-1 - (ptrdiff_t)i] == b[-1 - (ptrdiff_t)i]) i++;
  return i;
}

// What is left of a length behind the token.
static inline char *put_more(char *out, size_t n) {
  for (; n >= 255; n -= 255) *out++ = (char)255;
  *out++ = (char)n;
  return out;
}

// wide: so many bytes may be read at p and written at out, whatever n is.
static inline char *put_text(char *out, char **token, const char *p, size_t n, bool wide) {
  *token = out++;
  **token = (char)((n < MORE ? n : MORE) << 4);
  if (n >= MORE) out = put_more(out, n - MORE);
  if (wide && n <= WIDE) {
    memcpy(out, p, WIDE);
  } else {
    memcpy(out, p, n);
  }
  return out + n;
}

static inline char *put_match(char *out, char *token, size_t back, size_t n) {
  *out++ = (char)back;
  *out++ = (char)(back >> 8);
  n -= FORMAT_MIN;
  *token |= (char)(n < MORE ? n : MORE);
  return n >= MORE ? put_more(out, n - MORE) : out;
}

struct match {
  const char *from;   // NULL: none
  const char *begin;  // of the memory that it lies in
  const char *end;
  size_t back;  // how far it is from p, as the format counts
};

static inline struct match find(const struct mw_lz_index *x, struct mw_lz_scratch *s,
                                struct mw_slice raw, const char *p) {
  uint64_t v = mw_read8(p);
  size_t here = (size_t)(p - raw.p);
  uint32_t *own = &s->at[hash(v, MW_LZ_OWN_BITS)];
  size_t mine = *own;
  *own = (uint32_t)here + 1;
  size_t theirs = x->at[hash(v, MW_LZ_DICT_BITS)];
  if (theirs > 0 && mw_read8(x->dict + theirs - 1) == v) {
    size_t back = x->n - (theirs - 1) + here;
    if (back <= MW_LZ_REACH) {
      return (struct match){x->dict + theirs - 1, x->dict, x->dict + x->n, back};
    }
  }
  if (mine > 0 && here - (mine - 1) <= MW_LZ_REACH && mw_read8(raw.p + mine - 1) == v) {
    return (struct match){raw.p + mine - 1, raw.p, raw.p + raw.n, here - (mine - 1)};
  }
  return (struct match){NULL, NULL, NULL, 0};
}

// Writes the text up to the match at p, and the match; *text is behind it then. There are at least
// TAIL + MATCH_MIN bytes from p on, and as many more for the output.
static inline char *put_both(char *out, const char **text, const char *p, const char *end,
                             const struct match *m) {
  size_t free = (size_t)(p - *text), room = (size_t)(m->from - m->begin);
  size_t before = common_before(p, m->from, free < room ? free : room);
  size_t left = (size_t)(end - TAIL_TEXT - p), reach = (size_t)(m->end - m->from);
  size_t most = (left < reach ? left : reach) - MATCH_MIN;
  size_t n = MATCH_MIN + mw_common(p + MATCH_MIN, m->from + MATCH_MIN, most);
  char *token;
  out = put_text(out, &token, *text, free - before, true);
  *text = p + n;
  return put_match(out, token, m->back, n + before);
}

size_t mw_lz_pack(const struct mw_lz_index *x, struct mw_lz_scratch *s, struct mw_slice raw,
                  char *out) {
  char *const start = out;
  const char *end = raw.p + raw.n;
  const char *text = raw.p;  // not written yet
  memset(s->at, 0, sizeof s->at);
  for (const char *p = raw.p; (size_t)(end - p) >= TAIL + MATCH_MIN;) {
    struct match m = find(x, s, raw, p);
    if (m.from == NULL) {
      size_t step = STEP + ((size_t)(p - text) >> STEP_SHIFT);
      if (step > (size_t)(end - p)) break;
      p += step;
      continue;
    }
    out = put_both(out, &text, p, end, &m);
    p = text;
  }
  char *token;
  out = put_text(out, &token, text, (size_t)(end - text), false);
  return (size_t)(out - start);
}

// Two texts, read side by side.
struct pair {
  const char *p, *end;   // of what is packed, as far as matches go
  const char *q, *stop;  // of the one beside it
  int searches;          // left
  bool wide;             // what mw_is_wide() says
};

static size_t same(const struct pair *t) {
  size_t left = (size_t)(t->end - t->p), reach = (size_t)(t->stop - t->q);
  return mw_common_long(t->p, t->q, left < reach ? left : reach, t->wide);
}

static const char *quote(const char *p, const char *end) {
  return p < end ? memchr(p, '"', (size_t)(end - p)) : NULL;
}

// One of them has more members: looks for our next ones, with what follows, in the other.
static size_t search(struct pair *t) {
  size_t reach = (size_t)(t->stop - t->q);
  size_t window = reach < WINDOW ? reach : WINDOW;
  for (const char *p = t->p + 1; t->searches > 0; p++) {
    p = quote(p, t->end);
    if (p == NULL || t->end - p < NEEDLE) return 0;
    if (p[-1] != ',' && p[-1] != '{') continue;
    t->searches--;
    const char *found = memmem(t->q, window, p, NEEDLE);
    if (found == NULL) continue;
    t->p = p;
    t->q = found;
    return same(t);
  }
  return 0;
}

// From where the texts differ to where they go on alike; for how many bytes. 0: nowhere.
static size_t catch_up(struct pair *t) {
  struct pair s = *t;
  for (int lost = 0; lost < LOST_MAX; lost++) {
    s.p = quote(s.p, s.end);
    s.q = quote(s.q, s.stop);
    if (s.p == NULL || s.q == NULL) return 0;
    size_t n = same(&s);
    if (n >= NEAR_MIN) {
      *t = s;
      return n;
    }
    s.p += n;
    s.q += n;
  }
  return search(t);
}

// What becomes of a text beside another.
struct near_work {
  struct mw_slice raw, near;
  struct pair t;
  const char *text;  // not written yet
  char *out;
};

// Where a match may end at the latest, and before which it has to begin.
static const char *matches_end(const struct near_work *w) {
  return w->raw.p + (w->raw.n >= TAIL + MATCH_MIN ? w->raw.n - TAIL_TEXT : 0);
}

// Writes the match at p and q, and the text before it. It may begin earlier, but not before `from`.
// A match that lies before that is none.
static void put_near(struct near_work *w, const char *p, const char *q, size_t n,
                     const char *from) {
  if (from < w->text) from = w->text;
  // As for put_both: there is room to copy wide.
  if (p < from || n < NEAR_MIN) return;
  if ((size_t)(w->raw.p + w->raw.n - p) < TAIL + MATCH_MIN) return;
  size_t free = (size_t)(p - from), room = (size_t)(q - w->near.p);
  size_t before = common_before(p, q, free < room ? free : room);
  size_t back = (size_t)(w->near.p + w->near.n - q) + (size_t)(p - w->raw.p);
  char *token;
  w->out = put_text(w->out, &token, w->text, (size_t)(p - w->text) - before, true);
  w->out = put_match(w->out, token, back, n + before);
  w->text = p + n;
}

// Packs what is between sections, up to `end`, by what can be found: from the first byte on, or
// behind a difference.
static void pack_between(struct near_work *w, const char *p, const char *q, const char *end) {
  const char *last = matches_end(w);
  struct pair *t = &w->t;
  t->p = p;
  t->q = q;
  t->end = end < last ? end : last;
  if (p >= t->end) return;
  size_t n = same(t);
  do {
    put_near(w, t->p, t->q, n, p);
    t->p += n;
    t->q += n;
    n = catch_up(t);
  } while (n > 0);
}

static bool is_run(const struct near_work *w, const struct mw_run *r) {
  return r->n >= NEAR_MIN && (size_t)r->at + r->n <= w->raw.n &&
         (size_t)r->from + r->n <= w->near.n &&
         memcmp(w->raw.p + r->at, w->near.p + r->from, r->n) == 0;
}

// What is known of both texts, as far as it is used.
struct known {
  const struct mw_alike *section, *sections_end;
  const struct mw_run *run, *runs_end;
};

static bool is_section(const struct near_work *w, const struct mw_alike *s, const char *p) {
  return s->at >= (size_t)(p - w->raw.p) && (size_t)s->at + s->n <= w->raw.n &&
         (size_t)s->from + s->from_n <= w->near.n;
}

// Packs a section by its runs. The last one may go on behind it, but not beyond `limit`.
static void pack_section(struct near_work *w, struct known *k, const char *limit) {
  const struct mw_alike *s = k->section;
  const size_t end = (size_t)s->at + s->n;
  for (; k->run < k->runs_end && (size_t)k->run->at + k->run->n <= end; k->run++) {
    const struct mw_run *run = k->run;
    if (!is_run(w, run)) continue;
    const char *p = w->raw.p + run->at, *q = w->near.p + run->from;
    if (p >= limit) return;
    size_t left = (size_t)(limit - p), reach = (size_t)(w->near.p + w->near.n - q), n = run->n;
    if (n > left) n = left;
    if (run->at + n == end) n += mw_common(p + n, q + n, left < reach ? left - n : reach - n);
    put_near(w, p, q, n, w->raw.p + s->at);
  }
}

// Whether a section begins with a run: then it can be found by a mark.
static bool begins_with_run(const struct near_work *w, const struct known *k) {
  const struct mw_run *run = k->run;
  return run < k->runs_end && run->at == k->section->at && run->from == k->section->from &&
         is_run(w, run);
}

// Packs up to the end of the last section that is known, which is at *p and *q then.
static void pack_known(struct near_work *w, struct known *k, const char **p, const char **q,
                       struct mw_mark *marks) {
  const char *const start = w->out, *const end = matches_end(w);
  for (; k->section < k->sections_end && is_section(w, k->section, *p); k->section++) {
    const struct mw_alike *s = k->section, *next = s + 1;
    const char *limit =
        next < k->sections_end && is_section(w, next, *p) ? w->raw.p + next->at : end;
    pack_between(w, *p, *q, w->raw.p + s->at);
    size_t packed = (size_t)(w->out - start);
    bool begins = s->mark >= 0 && begins_with_run(w, k);
    pack_section(w, k, limit < end ? limit : end);
    if (begins && w->text > w->raw.p + s->at) {
      marks[s->mark] = (struct mw_mark){(uint16_t)s->at, (uint16_t)s->n, (uint16_t)packed};
    }
    *p = w->raw.p + s->at + s->n;
    *q = w->near.p + s->from + s->from_n;
    if (w->text > *p) {
      *q += w->text - *p;
      *p = w->text;
    }
  }
}

size_t mw_lz_pack_near(struct mw_slice near, struct mw_slice raw, const struct mw_beside *beside,
                       char *out, struct mw_mark marks[MW_OUTLINE_SECTIONS]) {
  memset(marks, 0, MW_OUTLINE_SECTIONS * sizeof *marks);
  if (near.n + raw.n > MW_LZ_REACH) return 0;
  struct near_work w = {.raw = raw, .near = near, .text = raw.p, .out = out};
  w.t = (struct pair){.stop = near.p + near.n, .searches = SEARCHES, .wide = mw_is_wide()};
  const char *p = raw.p, *q = near.p, *end = raw.p + raw.n;
  if (beside != NULL && beside->alike_count > 0 && beside->run_count > 0) {
    struct known k = {beside->alike, beside->alike + beside->alike_count, beside->runs,
                      beside->runs + beside->run_count};
    pack_known(&w, &k, &p, &q, marks);
  }
  pack_between(&w, p, q, end);
  char *token;
  w.out = put_text(w.out, &token, w.text, (size_t)(end - w.text), false);
  return (size_t)(w.out - out);
}

// Unpacking.

// Copies n bytes, and up to MW_LZ_SLACK more: there is room to read and to write them. What is
// read lies that far in front of what is written, or elsewhere.
static inline void copy_words(char *to, const char *from, size_t n) {
  char *end = to + n;
  do {
    memcpy(to, from, MW_LZ_SLACK);
    to += MW_LZ_SLACK;
    from += MW_LZ_SLACK;
  } while (to < end);
}

// The rest of a length; SIZE_MAX when there is none.
static size_t get_more(struct mw_slice *packed, size_t n) {
  unsigned char byte;
  do {
    if (packed->n == 0 || n > SIZE_MAX / 2) return SIZE_MAX;
    byte = (unsigned char)*packed->p++;
    packed->n--;
    n += byte;
  } while (byte == 255);
  return n;
}

static inline bool get_text(struct mw_lz_text *t, struct mw_slice *packed, size_t n) {
  if (n == MORE) n = get_more(packed, n);
  if (n > packed->n || n > t->all - t->n) return false;
  if (packed->n >= n + MW_LZ_SLACK) {
    copy_words(t->out + t->n, packed->p, n);
  } else {
    memcpy(t->out + t->n, packed->p, n);
  }
  packed->p += n;
  packed->n -= n;
  t->n += n;
  return true;
}

// Repeats what is `back` bytes before the end of what is there.
static inline void repeat(char *out, size_t back, size_t n) {
  if (back >= MW_LZ_SLACK) {
    copy_words(out, out - back, n);
  } else {
    for (size_t i = 0; i < n; i++) out[i] = out[(ptrdiff_t)i - (ptrdiff_t)back];
  }
}

static inline bool get_match(struct mw_lz_text *t, struct mw_slice *packed, size_t n) {
  if (packed->n < 2) return false;
  size_t back = (unsigned char)packed->p[0] | (size_t)(unsigned char)packed->p[1] << 8;
  packed->p += 2;
  packed->n -= 2;
  n = (n == MORE ? get_more(packed, n) : n) + FORMAT_MIN;
  if (n < FORMAT_MIN || n > t->all - t->n || back == 0) return false;
  char *out = t->out + t->n;
  t->n += n;
  if (back <= t->n - n) {
    repeat(out, back, n);
    return true;
  }
  size_t in_dict = back - (t->n - n);
  if (in_dict > t->dict.n) return false;
  size_t first = n < in_dict ? n : in_dict;
  copy_words(out, t->dict.p + t->dict.n - in_dict, first);
  if (first < n) repeat(out + first, back, n - first);  // it goes on where the text begins
  return true;
}

bool mw_lz_unpack(struct mw_lz_text *t, size_t want) {
  struct mw_slice packed = t->packed;
  while (t->n < want && t->n < t->all) {
    if (packed.n == 0) return false;
    unsigned token = (unsigned char)*packed.p++;
    packed.n--;
    if (!get_text(t, &packed, token >> 4)) return false;
    if (packed.n > 0 && !get_match(t, &packed, token & MORE)) return false;
  }
  t->packed = packed;
  return t->n < t->all || packed.n == 0;
}

// Reading from the middle.

static size_t get_byte(struct mw_slice *packed) {
  packed->n--;
  return (unsigned char)*packed->p++;
}

// Goes to the next sequence, whose match begins at `at` when that is not 0. What is packed beside a
// near text has no matches with itself.
static bool next_sequence(struct mw_lz_place *s, size_t at) {
  struct mw_slice *packed = &s->packed;
  if (packed->n == 0) return false;
  size_t token = get_byte(packed), n = token >> 4;
  if (n == MORE) n = get_more(packed, n);
  if (n > packed->n) return false;
  s->text = mw_slice(packed->p, n);
  s->match = mw_slice(NULL, 0);
  s->at = at > 0 ? at : s->at + n;
  packed->p += n;
  packed->n -= n;
  if (packed->n == 0) return true;
  if (packed->n < 2) return false;
  size_t back = get_byte(packed);
  back |= get_byte(packed) << 8;
  n = ((token & MORE) == MORE ? get_more(packed, MORE) : (token & MORE)) + FORMAT_MIN;
  size_t in_near = back - s->at;
  if (back <= s->at || in_near > s->near.n || n < FORMAT_MIN || n > in_near) return false;
  s->match = mw_slice(s->near.p + s->near.n - in_near, n);
  s->at += n;
  return true;
}

bool mw_lz_find(struct mw_lz_place *s, struct mw_mark mark,
                const struct mw_outline_member *member) {
  const char *key = s->near.p + member->key, *value = s->near.p + member->value;
  if (mark.n == 0 || mark.packed > s->packed.n) return false;
  s->packed.p += mark.packed;
  s->packed.n -= mark.packed;
  // Until one covers the name, and all of it: what is literal between two matches need not be the
  // template's member at that place. One that does has the value behind it. It may have been
  // extended backwards (put_near) over what two values of unequal length end with alike, but never
  // over a name before them: at the opening quote of the shorter one, that of the longer one has a
  // backslash where the shorter one has a colon.
  for (size_t at = mark.at;; at = 0) {
    if (!next_sequence(s, at) || s->match.n == 0 || s->match.p > key) return false;
    if (s->at - s->match.n >= (size_t)mark.at + mark.n) return false;
    if (s->match.p + s->match.n >= value) break;
  }
  s->text.n = 0;
  s->match = mw_slice(value, (size_t)(s->match.p + s->match.n - value));
  return true;
}

static size_t copy_from(struct mw_slice *from, char *out, size_t n) {
  if (n > from->n) n = from->n;
  if (n == 0) return 0;
  memcpy(out, from->p, n);
  from->p += n;
  from->n -= n;
  return n;
}

size_t mw_lz_copy(struct mw_lz_place *s, char *out, size_t n) {
  size_t done = 0;
  for (;;) {
    done += copy_from(&s->text, out + done, n - done);
    done += copy_from(&s->match, out + done, n - done);
    if (done == n || !next_sequence(s, 0)) return done;
  }
}
