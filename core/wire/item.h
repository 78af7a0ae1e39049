// SPDX-License-Identifier: Apache-2.0
// One Kubernetes object, from its bytes to a clean copy with its metadata at hand.
//
// mw_item_scan() validates the whole object, copies it without insignificant white space and
// without what the projection drops, and notes where the metadata is: one pass, no tree. Strings
// in mw_item are not copied unless they were escaped: they live until the scanner's next call, and
// no longer than what was scanned and the defaults.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "wire/json.h"
#include "wire/path.h"
#include "wire/template.h"

enum { MW_ITEM_SIZE_MAX = 16 * 1024 * 1024, MW_ITEM_LABELS_MAX = 4096 };

struct mw_item_label {
  struct mw_slice key;    // unescaped
  struct mw_slice value;  // unescaped
};

struct mw_item {
  struct mw_slice json;  // the clean copy
  struct mw_slice kind;
  struct mw_slice api_version;
  struct mw_slice name;
  struct mw_slice ns;  // empty for cluster scope
  struct mw_slice uid;
  struct mw_slice rv;
  const struct mw_item_label *labels;  // in document order; last of equal keys wins
  size_t label_count;
  bool more_labels;         // beyond MW_ITEM_LABELS_MAX: the first so many are in labels
  bool has_metadata;        // metadata was there and is an object
  bool deleting;            // metadata.deletionTimestamp is set
  bool partial;             // the projection may have removed more than managedFields
  bool initial_events_end;  // annotation k8s.io/initial-events-end is exactly "true"
  struct mw_beside beside;  // for the packer
  // Set by the splitters only, for an object that is too deep or too large: why. There is no json
  // and no label then, and of the rest what stood before the point where it became too much.
  const char *refused;
};

struct mw_item_scanner;

struct mw_packer;

// packer: what is scanned is for it, and read beside its templates; it stays as long as the
// scanner. NULL: read for itself.
struct mw_item_scanner *mw_item_scanner_new(struct mw_packer *packer);
void mw_item_scanner_free(struct mw_item_scanner *s);  // NULL is fine

// What a list knows of its items and the items do not say: typed lists leave kind and apiVersion
// out of them. When given and absent in the object, they are put at the front of the copy.
struct mw_item_defaults {
  struct mw_slice kind;  // empty: add nothing
  struct mw_slice api_version;
};

// Scans the object at the cursor and leaves the cursor behind it. defaults may be NULL.
// Errors: MW_EPARSE; MW_ELIMIT for an object that is too deep or too large. The cursor stands at
// the offending byte and err (may be NULL) says what was expected there, without an offset (the
// caller knows where the cursor began).
int mw_item_scan(struct mw_item_scanner *s, struct mw_json *c, const struct mw_projection *p,
                 const struct mw_item_defaults *defaults, struct mw_item *item, struct mw_err *err)
    __attribute__((warn_unused_result));
