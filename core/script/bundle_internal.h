// SPDX-License-Identifier: Apache-2.0
// What the parts of a bundle share: bundle.c (the bundle), bundle_read.c (files and directories),
// bundle_scan.c (which modules a source names), bundle_check.c (whether it compiles),
// bundle_explain.c (what its errors are about).
#pragma once

#include "base/slice.h"
#include "script/bundle.h"

// A bundle in the making.
struct mw_draft {
  struct mw_bundle_file *files;  // name, path and text are its own
  size_t count, cap;
  size_t bytes;
};

// Takes text over, also when it fails. A name that is there already: MW_EEXIST, or 0 when it is the
// same file.
int mw_draft_add(struct mw_draft *d, const char *name, const char *path, char *text, size_t size,
                 struct mw_err *err) __attribute__((warn_unused_result));
const struct mw_bundle_file *mw_draft_find(const struct mw_draft *d, const char *name);
void mw_draft_deinit(struct mw_draft *d);
// Empties the draft. NULL when the entry (not NULL, one of the files) has nothing but white space.
struct mw_bundle *mw_draft_finish(struct mw_draft *d, const char *origin,
                                  const struct mw_bundle_file *entry, struct mw_err *err);

// Whether a file of this name is a module of a directory or a ConfigMap.
bool mw_bundle_is_module(const char *file);
// "lib.util" of "lib/util.lua". The caller's.
char *mw_bundle_name_of(const char *relative);
// dir/name; name alone when dir is "". The caller's.
char *mw_bundle_join(const char *dir, const char *name);

// The next module that *source names by a literal, with *source moved behind it; false: no more.
// Nothing is known of comments and strings: a name in one of them counts. Names are of letters,
// digits, '_', '-' and '.', without empty parts, and none that the host has itself ("kube.x",
// "string").
bool mw_bundle_next_require(struct mw_slice *source, struct mw_slice *name);

// Adds a line of a file, with its number before it.
int mw_bundle_show_line(struct mw_buf *out, const struct mw_bundle_file *file, size_t number)
    __attribute__((warn_unused_result));
