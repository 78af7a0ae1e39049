// SPDX-License-Identifier: Apache-2.0
// JSON numbers without loss: which machine type gives a literal back exactly, and how a double is
// written. Knows no Lua.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum { MW_NUMBER_SIZE = 40 };  // room for any number that mw_number_write() writes, and a NUL

enum mw_number_kind {
  MW_NUMBER_DOUBLE = 0,
  MW_NUMBER_INT64,   // an integer beyond 2^53
  MW_NUMBER_UINT64,  // an integer beyond INT64_MAX
  MW_NUMBER_TEXT,    // none of them holds it: keep the literal
};

struct mw_number {
  enum mw_number_kind kind;
  double d;
  int64_t i;
  uint64_t u;
};

// Reads a JSON number literal. is_int: no fraction and no exponent.
struct mw_number mw_number_read(struct mw_slice text, bool is_int);

// Reads a decimal integer with an optional sign into INT64 or, where that is too small, UINT64.
// False when it is none or fits neither.
bool mw_number_read_int(struct mw_slice text, struct mw_number *out);

// Writes a finite double as the shortest JSON number that reads back as the same double; whole
// numbers below 2^63 without exponent or fraction. Returns the length.
size_t mw_number_write(double d, char out[MW_NUMBER_SIZE]);

// The same in the form that Go's encoder chooses: an exponent only below 1e-6 and from 1e21 on.
size_t mw_number_write_go(double d, char out[MW_NUMBER_SIZE]);
