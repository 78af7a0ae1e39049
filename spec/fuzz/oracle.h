// SPDX-License-Identifier: Apache-2.0
// What an independent parser, yajl, reads in a text. A reading is one line per event: brackets,
// names, values; numbers and strings are spelled out, strings unescaped.
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"

enum { READING_MAX = 1 << 24 };

// Appends yajl's reading of the value that the text begins with, and sets *n to its length. False
// when it refuses it; what it read before that is there.
bool oracle_read(struct mw_slice text, struct mw_buf *reading, size_t *n);

// The same for the elements of the array `items` of an object, each reading behind the one before:
// calls cb for every element that is complete, also when the text is refused later.
typedef void (*oracle_item_cb)(void *ctx, struct mw_slice reading);
void oracle_read_items(struct mw_slice text, oracle_item_cb cb, void *ctx);

// Whether yajl may accept a text that was refused at `p`: it takes more white space than JSON has,
// and UTF-8 for every scheme of lead and following bytes, overlong or not.
bool oracle_is_lax(const char *p, const char *end);

// Whether a raw string has a \u escape of half a pair, for which there is no right reading.
bool oracle_is_torn(struct mw_slice raw);
