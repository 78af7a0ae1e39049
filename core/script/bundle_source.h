// SPDX-License-Identifier: Apache-2.0
// Notices that the files of a bundle have changed. Everything here is for the loop's own thread.
//
// Whatever happens in one of the bundle's directories means "maybe": when it has been quiet for a
// moment, the bundle is read, and reported when its revision is another one. Directories are
// watched, never files: editors save by renaming, and the kubelet by replacing a link, after which
// the watch of a file is deaf. What looks unfinished then, a bundle that cannot be read or one with
// an empty file, is read again for a while before it is believed: some editors truncate before they
// write, some take the file away first.
//
// Not every file system tells of changes, and the number of watches is limited; so the files are
// also looked at (by stat alone) every few seconds, always.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "script/bundle.h"
#include "transport/loop.h"

enum { MW_BUNDLE_SOURCE_WATCHES_MAX = 256 };  // directories beyond are only looked at

struct mw_bundle_source;

struct mw_bundle_source_config {
  const char *path;  // as for mw_bundle_read; copied. A pipe is never read here
  // What was read before; only looked at by new. Its revision counts as reported. NULL: the first
  // reading is reported, whatever it gives, and at once.
  const struct mw_bundle *known;
  bool no_inotify;  // only look
  double quiet;     // seconds after the last event, 0: 0.1
  double patience;  // seconds after the first event at which it is read and believed, 0: 1
  double interval;  // seconds between looks, 0: 2
};

// Called from the loop, never by new. b: a revision that was not the last to be reported, or any
// after an error; borrowed. NULL: it cannot be read, err says why; the same message is not reported
// twice in a row. The source may be freed in it.
typedef void (*mw_bundle_source_cb)(void *ctx, struct mw_bundle *b, const struct mw_err *err);

struct mw_bundle_source *mw_bundle_source_new(struct mw_loop *loop,
                                              const struct mw_bundle_source_config *config,
                                              mw_bundle_source_cb cb, void *ctx);
// cb is not called any more. NULL is fine.
void mw_bundle_source_free(struct mw_bundle_source *s);

struct mw_bundle_source_stats {
  size_t watches;     // directories that tell of changes
  uint64_t readings;  // of the whole bundle
};
void mw_bundle_source_stats(const struct mw_bundle_source *s, struct mw_bundle_source_stats *out);
