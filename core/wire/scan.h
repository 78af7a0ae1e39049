// SPDX-License-Identifier: Apache-2.0
// The walker under everything in core/wire: validates JSON and, when asked, copies it on the way.
// Private to core/wire; others use wire/json.h.
//
// Copying is lazy: what was accepted since `run` is copied in one piece when something has to be
// left out or at the end. The copy is never longer than what was walked over, so the room for it
// is made once, by the caller.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

enum mw_fault {
  MW_FAULT_SYNTAX = 0,  // not JSON
  MW_FAULT_UTF8,        // not UTF-8
  MW_FAULT_SHAPE,       // JSON, but not what the API sends
  MW_FAULT_LIMIT,       // too deep, too large
};

struct mw_walk {
  const char *p;      // the next byte; on an error, the offending one
  const char *end;    // never read at or behind it
  const char *run;    // accepted but not yet copied: [run, p)
  char *out;          // where the copy goes on; NULL: validate only
  const char *block;  // the 64 bytes that `stops` is for; NULL at first
  uint64_t stops;     // one bit per byte where plain text ends
  enum mw_fault fault;
  const char *why;  // on an error: what was expected
};

// Records the fault at p and returns its code: MW_ELIMIT or MW_EPARSE.
int mw_walk_fail(struct mw_walk *w, const char *p, enum mw_fault fault, const char *why);

// Fills err (may be NULL) with a sentence about a fault at byte `offset`, and returns its code.
int mw_fault_report(struct mw_err *err, enum mw_fault fault, const char *why, uint64_t offset);

// Copies what is pending up to `to`, which lies in [run, p]; the next run begins at p.
void mw_walk_flush(struct mw_walk *w, const char *to);

// Whether white space may follow: seldom, so the calls for it are kept out of the way.
static inline bool mw_walk_at_space(const struct mw_walk *w) {
  return __builtin_expect(w->p < w->end && (unsigned char)*w->p <= ' ', 0);
}

// Skips white space and leaves it out of the copy. True when there was any.
bool mw_walk_pass_space(struct mw_walk *w);
static inline bool mw_walk_space(struct mw_walk *w) {
  return mw_walk_at_space(w) && mw_walk_pass_space(w);
}

// Skips white space without a decision about the copy. True when there was any.
bool mw_walk_pass_blank(struct mw_walk *w);
static inline bool mw_walk_blank(struct mw_walk *w) {
  return mw_walk_at_space(w) && mw_walk_pass_blank(w);
}

// Consumes one value of any kind. depth is that of the value, 1 for the outermost.
int mw_walk_value(struct mw_walk *w, unsigned depth) __attribute__((warn_unused_result));
// The first byte from p on that is not plain text: a quote, a backslash, control or not ASCII.
const char *mw_walk_pass_plain(struct mw_walk *w, const char *p);
static inline const char *mw_walk_plain(struct mw_walk *w, const char *p) {
  uintptr_t at = (uintptr_t)p - (uintptr_t)w->block;
  uint64_t stops = at < 64 ? w->stops >> at : 0;
  return __builtin_expect(stops != 0, 1) ? p + __builtin_ctzll(stops) : mw_walk_pass_plain(w, p);
}
// Consumes a string as mw_json_string() does. Most are plain, and the calls for others are kept out
// of the way.
int mw_walk_any_string(struct mw_walk *w, struct mw_slice *raw, bool *escaped)
    __attribute__((warn_unused_result));
__attribute__((warn_unused_result)) static inline int mw_walk_string(struct mw_walk *w,
                                                                     struct mw_slice *raw,
                                                                     bool *escaped) {
  if (w->p < w->end && *w->p == '"') {
    const char *from = w->p + 1, *p = mw_walk_plain(w, from);
    if (__builtin_expect(p < w->end && *p == '"', 1)) {
      *raw = mw_slice(from, (size_t)(p - from));
      *escaped = false;
      w->p = p + 1;
      return 0;
    }
  }
  return mw_walk_any_string(w, raw, escaped);
}
// The closing quote of a string whose text begins at p, when that is plain and short, as most are:
// to look takes less time than to prepare a walker. NULL: the walker decides.
const char *mw_walk_short_text(const char *p, const char *end);
int mw_walk_number(struct mw_walk *w, bool *is_int) __attribute__((warn_unused_result));
// The same from a place in a text that w->p does not stand at: behind the string that p is in, at
// the beginning of a character; and behind the number or literal at p. NULL: there is none.
const char *mw_walk_text(struct mw_walk *w, const char *p);
const char *mw_walk_scalar(struct mw_walk *w, const char *p);

// Consumes what is between one member and the value of the next, as mw_json_member() does.
int mw_walk_member(struct mw_walk *w, bool *first, struct mw_slice *key, bool *escaped)
    __attribute__((warn_unused_result));
int mw_walk_element(struct mw_walk *w, bool *first) __attribute__((warn_unused_result));

// Behind the last byte, also for the slice without any.
static inline const char *mw_slice_end(struct mw_slice s) { return s.n > 0 ? s.p + s.n : s.p; }

// The bytes of the UTF-8 sequence that begins at p, 2 to 4; 0 when it is none. p is not ASCII.
size_t mw_utf8_sequence(const char *p, const char *end);

// Set by specs, to have a processor with wide registers do without them.
extern bool mw_narrow;

#ifdef __x86_64__
// Functions marked so are compiled for the wider registers that most processors have, and are
// called where mw_is_wide() says that this one does. Each has a twin for those that every one has
// (SSE2), with the same results.
#define MW_WIDE __attribute__((target("avx2,bmi,popcnt,pclmul")))

static inline bool mw_is_wide(void) {
  return !mw_narrow && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("pclmul");
}
#else
static inline bool mw_is_wide(void) { return false; }
#endif

struct mw_item;
struct mw_item_scanner;
// Why the last mw_item_scan() failed, for callers that know the offset.
const struct mw_walk *mw_item_scanner_walk(const struct mw_item_scanner *s);
// Makes *item what the last mw_item_scan() saw before it failed (see mw_item.refused).
void mw_item_scanner_refused(const struct mw_item_scanner *s, const char *why,
                             struct mw_item *item);
