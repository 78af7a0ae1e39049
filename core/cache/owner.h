// SPDX-License-Identifier: Apache-2.0
// Members of metadata as they stand in the JSON, and the owners among them, read without unpacking
// more of an object than its head.
#pragma once

#include <stdbool.h>

#include "cache/object.h"

// The JSON text of metadata's member `key`: 1 and *value (valid until u is used again), 0 when
// there is none, negative when the object cannot be read.
int mw_metadata_value(const struct mw_object *o, struct mw_unpacker *u, struct mw_slice key,
                      struct mw_slice *value) __attribute__((warn_unused_result));

// One of metadata.ownerReferences. What it lacks is empty.
struct mw_owner {
  struct mw_slice api_version, kind, name, uid;
  bool controller;
};

// Valid during the call. Anything but 0 ends the walk and is returned.
typedef int (*mw_owner_cb)(void *ctx, const struct mw_owner *owner);

// Calls cb for each owner, in order. 0, what cb returned, or negative when the object cannot be
// read.
int mw_owner_each(const struct mw_object *o, struct mw_unpacker *u, mw_owner_cb cb, void *ctx)
    __attribute__((warn_unused_result));
