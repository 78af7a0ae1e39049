// SPDX-License-Identifier: Apache-2.0
// Validates one JSON value that comes in pieces, in constant memory. Private to core/wire.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/json.h"
#include "wire/scan.h"

struct mw_skim {
  uint8_t state;
  uint8_t hex;   // hexadecimal digits to come
  uint8_t more;  // bytes of a UTF-8 sequence to come
  uint8_t seen;  // and those that came
  uint8_t lo;    // range of the next one
  uint8_t hi;
  bool key;                                      // the string at hand is a member name
  unsigned depth;                                // open containers
  const char *literal;                           // what must follow of true, false, null
  uint64_t objects[MW_JSON_DEPTH_MAX / 64 + 1];  // one bit per level, set for objects
  enum mw_fault fault;
  const char *why;
  size_t back;  // the offending byte lies this far before the cursor
};

void mw_skim_start(struct mw_skim *s);
// Takes bytes of the value from *p on: 1 when it is complete (*p behind it), 0 when more are
// needed (*p == end), negative on an error (fault, why and back say what and where).
int mw_skim_feed(struct mw_skim *s, const char **p, const char *end)
    __attribute__((warn_unused_result));
