// SPDX-License-Identifier: Apache-2.0
// Label and field selectors: the whole grammar (S-SEL-01..12). A selector is immutable.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "cache/object.h"

enum { MW_SELECTOR_LENGTH_MAX = 64 * 1024 };

enum mw_selector_op {
  MW_SEL_EXISTS = 0,
  MW_SEL_NOT_EXISTS,
  MW_SEL_EQUALS,         // =
  MW_SEL_DOUBLE_EQUALS,  // ==
  MW_SEL_NOT_EQUALS,
  MW_SEL_IN,
  MW_SEL_NOT_IN,
  MW_SEL_GREATER,
  MW_SEL_LESS,
};

struct mw_selector;

// "" selects everything. NULL on an error; err gives the column and what was expected.
struct mw_selector *mw_selector_parse(struct mw_slice text, struct mw_err *err);
// One that selects nothing (a null LabelSelector, S-SEL-10).
struct mw_selector *mw_selector_nothing(void);
// Built up requirement by requirement: starts as everything.
struct mw_selector *mw_selector_new(void);
// Adds a requirement and checks key, arity and values (S-SEL-06, 07). check false skips the
// validation of key and values (S-SEL-11, a plain map).
int mw_selector_require(struct mw_selector *s, struct mw_slice key, enum mw_selector_op op,
                        const struct mw_slice *values, size_t count, bool check,
                        struct mw_err *err);
void mw_selector_free(struct mw_selector *s);  // NULL is fine

bool mw_selector_is_everything(const struct mw_selector *s);
bool mw_selector_is_nothing(const struct mw_selector *s);

// Labels given one by one, for specs and for objects that are not cached: true and the value, or
// false when there is no such label.
typedef bool (*mw_label_cb)(void *ctx, const struct mw_slice *key, struct mw_slice *value);
bool mw_selector_matches(const struct mw_selector *s, mw_label_cb get, void *ctx);
// A cached object; unpacks only when its fingerprints cannot decide.
bool mw_selector_matches_object(const struct mw_selector *s, const struct mw_object *o,
                                struct mw_unpacker *u);
// Appends the canonical text (S-SEL-09).
int mw_selector_format(const struct mw_selector *s, struct mw_buf *out);

// Field selectors are evaluated by the server; we check the grammar and give the canonical text.
int mw_field_selector_check(struct mw_slice text, struct mw_buf *canonical, struct mw_err *err);
