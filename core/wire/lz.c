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
  WINDOW = 2048,   // and in so many
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
  const char *raw, *near;
  const struct mw_run *run, *last;  // what is known to be alike, and not behind p
  bool wide;                        // what mw_is_wide() says
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

// The next run that is known, or what is left of one that is under way; NULL: none.
static const struct mw_run *next_run(struct pair *t) {
  size_t here = (size_t)(t->p - t->raw);
  while (t->run < t->last && t->run->at + t->run->n <= here) t->run++;
  return t->run < t->last ? t->run : NULL;
}

// Goes to a run; for how many bytes both are alike there.
static size_t go_to(struct pair *t, const struct mw_run *run) {
  size_t here = (size_t)(t->p - t->raw), in = here > run->at ? here - run->at : 0;
  size_t left = (size_t)(t->end - t->raw), reach = (size_t)(t->stop - t->near);
  t->run++;
  if (run->at + in >= left || run->from + in >= reach) return 0;
  t->p = t->raw + run->at + in;
  t->q = t->near + run->from + in;
  return same(t);
}

// From where the texts differ to where they go on alike. Inside of a section it is known where that
// is; before one it is looked for, but not beyond its beginning.
static size_t go_on(struct pair *t) {
  const struct mw_run *run = next_run(t);
  if (run == NULL) return catch_up(t);
  if (!run->begins || (size_t)(t->p - t->raw) > run->at) return go_to(t, run);
  struct pair before = *t;
  size_t n = catch_up(t);
  if (n > 0 && (size_t)(t->p - t->raw) < run->at) return n;
  t->p = before.p;
  t->q = before.q;
  return go_to(t, run);
}

size_t mw_lz_pack_near(struct mw_slice near, struct mw_slice raw, const struct mw_beside *beside,
                       char *out) {
  if (near.n + raw.n > MW_LZ_REACH) return 0;
  char *const start = out;
  char *token;
  const char *text = raw.p, *end = raw.p + raw.n;
  struct pair t = {.p = raw.p,
                   .end = end - TAIL_TEXT,
                   .q = near.p,
                   .stop = near.p + near.n,
                   .searches = SEARCHES,
                   .raw = raw.p,
                   .near = near.p,
                   .wide = mw_is_wide()};
  if (beside != NULL && beside->run_count > 0) {
    t.run = beside->runs;
    t.last = beside->runs + beside->run_count;
  }
  size_t n = raw.n >= TAIL + MATCH_MIN ? same(&t) : 0;
  // As for put_both: there is room to copy wide.
  while (n > 0 && (size_t)(end - t.p) >= TAIL + MATCH_MIN) {
    if (n >= NEAR_MIN) {
      size_t free = (size_t)(t.p - text), room = (size_t)(t.q - near.p);
      size_t before = common_before(t.p, t.q, free < room ? free : room);
      out = put_text(out, &token, text, free - before, true);
      out = put_match(out, token, (size_t)(t.stop - t.q) + (size_t)(t.p - raw.p), n + before);
      text = t.p + n;
    }
    t.p += n;
    t.q += n;
    n = go_on(&t);
  }
  out = put_text(out, &token, text, (size_t)(end - text), false);
  return (size_t)(out - start);
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
