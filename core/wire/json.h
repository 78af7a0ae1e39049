// SPDX-License-Identifier: Apache-2.0
// JSON on bytes at hand: validation, skipping, strings, numbers, paths. No tree is ever built.
//
// A cursor walks contiguous bytes [p, end). Every function is memory-safe on any input and
// bounded: nesting beyond MW_JSON_DEPTH_MAX is MW_ELIMIT, everything else that is not JSON
// (RFC 8259, UTF-8 without surrogates or overlong forms) is MW_EPARSE. On an error the cursor
// stands at the offending byte, so `c.p - start` is the offset to report.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

enum { MW_JSON_DEPTH_MAX = 256 };

struct mw_json {
  const char *p;
  const char *end;
};

enum mw_json_kind {
  MW_JSON_NONE = 0,  // end of input or not the start of a value
  MW_JSON_OBJECT,
  MW_JSON_ARRAY,
  MW_JSON_STRING,
  MW_JSON_NUMBER,
  MW_JSON_TRUE,
  MW_JSON_FALSE,
  MW_JSON_NULL,
};

// Skips white space and tells what value comes next, without consuming it.
enum mw_json_kind mw_json_peek(struct mw_json *c);

// Validates and consumes one whole value of any kind.
int mw_json_skip(struct mw_json *c) __attribute__((warn_unused_result));
// The same for what was validated before: of an object or array only brackets and strings are
// looked at, which is faster. MW_EPARSE when it does not end.
int mw_json_pass(struct mw_json *c) __attribute__((warn_unused_result));

// Consumes a string. *raw is the content between the quotes, still escaped; *escaped tells
// whether it holds a backslash at all (if not, raw is the string).
int mw_json_string(struct mw_json *c, struct mw_slice *raw, bool *escaped)
    __attribute__((warn_unused_result));

// Whether a validated raw string reads `text` once it is unescaped.
bool mw_raw_is(struct mw_slice raw, bool escaped, struct mw_slice text);
// Appends the unescaped form of a validated raw string to out.
int mw_json_unescape(struct mw_slice raw, struct mw_buf *out) __attribute__((warn_unused_result));

// Appends s as a quoted JSON string. s must be UTF-8; invalid bytes are MW_EPARSE.
int mw_json_quote(struct mw_slice s, struct mw_buf *out) __attribute__((warn_unused_result));
// The same as Go writes it: <, >, & and U+2028, U+2029 are escaped, too.
int mw_json_quote_html(struct mw_slice s, struct mw_buf *out) __attribute__((warn_unused_result));

// Consumes a number; *text is its literal. is_int: no fraction and no exponent.
int mw_json_number(struct mw_json *c, struct mw_slice *text, bool *is_int)
    __attribute__((warn_unused_result));

// Members and elements. Enter consumes the bracket. Then loop:
//   rc = mw_json_member(&c, &first, &key, &escaped);   1: key and ':' consumed, a value follows
//   rc = mw_json_element(&c, &first);                  1: a value follows
//                                                      0: the closing bracket was consumed
// The caller must consume the value (mw_json_skip or deeper) before the next call.
int mw_json_enter(struct mw_json *c) __attribute__((warn_unused_result));
int mw_json_member(struct mw_json *c, bool *first, struct mw_slice *key, bool *escaped)
    __attribute__((warn_unused_result));
int mw_json_element(struct mw_json *c, bool *first) __attribute__((warn_unused_result));

// Finds member `key` (unescaped) of the object at c and leaves the cursor at its value: 1 found,
// 0 absent (cursor behind the object), negative error. Only what is passed over is validated.
int mw_json_find(struct mw_json *c, struct mw_slice key) __attribute__((warn_unused_result));

// Whether s is valid UTF-8.
bool mw_utf8_valid(struct mw_slice s);
