// SPDX-License-Identifier: Apache-2.0
// Values taken out of objects in C: what an index spec yields and what a predicate looks at.
//
//   path   every value at a field path (strings as they are, numbers and booleans as JSON text)
//   label  the value of one label
//   owner  the uids of metadata.ownerReferences (only the controller's with controller_only)
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "cache/object.h"
#include "cache/selector.h"

enum mw_extract_kind { MW_EXTRACT_PATH = 0, MW_EXTRACT_LABEL, MW_EXTRACT_OWNER };

struct mw_extract;

// argument: the path or the label's key; for owner "" or "controller". NULL on an error.
struct mw_extract *mw_extract_new(enum mw_extract_kind kind, struct mw_slice argument,
                                  struct mw_err *err);
void mw_extract_free(struct mw_extract *x);  // NULL is fine

enum { MW_VALUES_MAX = 4096, MW_VALUES_BYTES_MAX = 1024 * 1024 };

// The values found in one object; owns copies. Reused from object to object.
struct mw_values {
  struct mw_buf bytes;  // the values one after the other
  size_t *ends;         // end offset of each
  size_t count;
  size_t cap;
};

void mw_values_init(struct mw_values *v);
void mw_values_deinit(struct mw_values *v);
void mw_values_reset(struct mw_values *v);
// Adds one; at most 4096 values and 1 MiB of bytes per object (MW_ELIMIT).
int mw_values_add(struct mw_values *v, struct mw_slice value) __attribute__((warn_unused_result));
// Adds one without that limit: for what is already in the store.
void mw_values_push(struct mw_values *v, struct mw_slice value);
struct mw_slice mw_values_get(const struct mw_values *v, size_t i);

// Appends the values of o to out. 0, or negative when the object cannot be read or has too many.
// u NULL: an unpacker of the extract's own; then it belongs to one thread.
int mw_extract_values(struct mw_extract *x, const struct mw_object *o, struct mw_unpacker *u,
                      struct mw_values *out) __attribute__((warn_unused_result));

// A predicate in C: every part that is set must hold. A part holds when one of the object's values
// is one of its own; negated, when none is. An object that cannot be read fails every part.
struct mw_predicate;

struct mw_predicate_part {
  struct mw_extract *extract;     // owned by the predicate afterwards
  const struct mw_slice *values;  // copied; with count 0: any value will do (exists)
  size_t count;
  bool negate;
};

struct mw_predicate *mw_predicate_new(void);
void mw_predicate_free(struct mw_predicate *p);  // NULL is fine
void mw_predicate_add(struct mw_predicate *p, const struct mw_predicate_part *part);
// Takes ownership of the selector.
void mw_predicate_set_labels(struct mw_predicate *p, struct mw_selector *s);
void mw_predicate_set_ns(struct mw_predicate *p, struct mw_slice ns);
bool mw_predicate_test(const struct mw_predicate *p, const struct mw_object *o,
                       struct mw_unpacker *u);
