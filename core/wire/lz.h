// SPDX-License-Identifier: Apache-2.0
// Packs into LZ4's block format, with a dictionary that many objects share. Private to core/wire.
//
// liblz4 copies its table of 16 KiB before each object, because it notes the object's own bytes in
// it, and takes any match of four bytes. Here the dictionary's table is read only and the object
// has a small one of its own; only matches of eight bytes and more count, which JSON has plenty of.
// That takes three quarters of the time for the same size, and unpacking has fewer pieces to put
// together.
//
// Unpacking can stop and go on: who wants a field near the beginning of a text does not pay for the
// rest. It trusts nothing in what it reads.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "wire/outline.h"
#include "wire/template.h"

enum {
  MW_LZ_REACH = 65535,
  MW_LZ_DICT_BITS = 13,
  MW_LZ_OWN_BITS = 11,
  MW_LZ_SLACK = 32,  // room behind a text and behind its dictionary, for copies of whole words
};

// The most bytes that n can pack to.
static inline size_t mw_lz_bound(size_t n) { return n + n / 255 + 16; }

// Where the bytes of a dictionary stand. Immutable once made, and shared between threads.
struct mw_lz_index {
  const char *dict;
  size_t n;                           // at most MW_LZ_REACH
  uint16_t at[1 << MW_LZ_DICT_BITS];  // position + 1 of what has this hash; 0: nothing has
};

struct mw_lz_scratch {
  uint32_t at[1 << MW_LZ_OWN_BITS];
};

// The dictionary's bytes stay where they are.
void mw_lz_index(struct mw_lz_index *x, struct mw_slice dict);
// Packs raw, of less than 4 GiB, into out, which has room for mw_lz_bound(raw.n) bytes. x may be
// without a dictionary (n is 0).
size_t mw_lz_pack(const struct mw_lz_index *x, struct mw_lz_scratch *s, struct mw_slice raw,
                  char *out);
// The same beside a text that is nearly the same, as two pods of one Deployment are: both are read
// from the front, and where they differ, on from the next quotes. `near` is the dictionary then.
// However different they are, what comes out is right, and the caller looks at its size. `beside`,
// which may be NULL, spares a search: it tells where they are alike, and which sections are. Where
// bytes are the same is not believed. 0: both together have more than MW_LZ_REACH bytes.
// marks: of the sections that have one; what is in a section that has, up to its end, is a match
// with the same place of the other's section, or literal. Where two values end alike, their ends
// are the same place.
size_t mw_lz_pack_near(struct mw_slice near, struct mw_slice raw, const struct mw_beside *beside,
                       char *out, struct mw_mark marks[MW_OUTLINE_SECTIONS]);

// A text that is being unpacked.
struct mw_lz_text {
  struct mw_slice packed;  // what is left of it
  struct mw_slice dict;    // with MW_LZ_SLACK readable bytes behind it, or empty
  char *out;               // room for `all` bytes and MW_LZ_SLACK
  size_t n;                // bytes that are there; 0 at first
  size_t all;
};

// Goes on until there are at least `want` bytes, or all. False when what is packed is damaged.
bool mw_lz_unpack(struct mw_lz_text *t, size_t want) __attribute__((warn_unused_result));

// A place in the middle of a text that was packed beside `near`.
struct mw_lz_place {
  struct mw_slice near;
  struct mw_slice packed;  // behind the sequence at hand
  struct mw_slice text;    // what is left of its text
  struct mw_slice match;   // and of its match
  size_t at;               // where in the text that one ends
};

// Goes to the value of the member that stands at `member` in `near`, in the section at `mark`.
// s->near and s->packed, which is all of it, are set. False: only unpacking can tell.
bool mw_lz_find(struct mw_lz_place *s, struct mw_mark mark, const struct mw_outline_member *member);
// Copies the next n bytes to out; fewer where the text ends or is damaged.
size_t mw_lz_copy(struct mw_lz_place *s, char *out, size_t n);
