// SPDX-License-Identifier: Apache-2.0
// Finds the end of a JSON object that comes in pieces and hands it out in one. Private to
// core/wire.
//
// Only brackets and strings are looked at; whoever gets the object validates it. An object that
// lies in one chunk is used in place, any other is gathered. Of one that is larger than the limit
// only the beginning is held while the rest passes by.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

struct mw_frame {
  struct mw_buf buf;  // what came of an object so far, up to the limit
  uint64_t size;      // of all that came
  uint64_t depth;     // open brackets; 0 between objects
  bool in_string;
  bool escape;  // the next byte is escaped
};

void mw_frame_init(struct mw_frame *f, size_t limit);
void mw_frame_deinit(struct mw_frame *f);
// Takes bytes from *p on; at the beginning of an object that is its '{'. 1: the object is complete
// and *whole is it, until the next call (*p behind it); 0: more bytes are needed; MW_ELIMIT: it is
// complete too, but larger than the limit, and *whole is only so much of it.
int mw_frame_feed(struct mw_frame *f, const char **p, const char *end, struct mw_slice *whole)
    __attribute__((warn_unused_result));

// Behind the object or array that begins at p, which is taken for valid; NULL when it does not end
// before `end`.
const char *mw_frame_end(const char *p, const char *end);

// Sets a bit for each byte of a string, but for its opening quote; there is one for each byte of
// the text, which is valid, and they are 0 before.
void mw_frame_strings(struct mw_slice text, uint64_t *bits);
