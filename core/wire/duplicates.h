// SPDX-License-Identifier: Apache-2.0
// Keys that occur more than once in an object: legal JSON, most often a mistake.
#pragma once

#include "base/slice.h"

// Called once per place, in the order of the document. The path is that of the key: "data.a",
// "spec.containers[0].name"; it lives until the call returns.
typedef void (*mw_duplicate_cb)(void *ctx, struct mw_slice path);

// Walks a whole document in time linear to its length and tells the first `max` places. Negative
// when it is not JSON.
int mw_json_duplicates(struct mw_slice json, size_t max, mw_duplicate_cb cb, void *ctx);
