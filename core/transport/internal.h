// SPDX-License-Identifier: Apache-2.0
// What the files of transport share among themselves; not for other directories.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "transport/kubeconfig.h"
#include "transport/yaml_doc.h"

// Appends a whole file to out, up to out's limit. MW_ENOTFOUND when it does not exist.
int mw_file_read(const char *path, struct mw_buf *out, struct mw_err *err)
    __attribute__((warn_unused_result));

// One parsed kubeconfig file.
struct mw_kubeconfig_doc {
  struct mw_yaml *yaml;
  char *label;  // how messages name it
  char *dir;    // what its relative paths are relative to; NULL: they stay as they are
};

// Picks a context (NULL: the current one) out of files that are merged as kubectl merges them.
// label names them all together.
struct mw_kubeconfig *mw_kubeconfig_resolve(const struct mw_kubeconfig_doc *docs, size_t count,
                                            const char *label, const char *context,
                                            struct mw_err *err);
// A service account mounted at dir, with the API server that the environment names.
struct mw_kubeconfig *mw_kubeconfig_pod(const char *dir, struct mw_err *err);
// True when s can be the value of a header: no control characters.
bool mw_header_safe(const char *s);
