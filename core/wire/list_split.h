// SPDX-License-Identifier: Apache-2.0
// Cuts a list response into items as its bytes arrive. Holds one item at most, never the body.
//
// Feed bytes as they come, then finish. Each item is scanned (wire/item.h) and handed to the
// callback as soon as its last byte is there. The list's own fields may come before or after the
// items. Offsets in errors count from the first byte of the response.
//
// An item that is too deep or too large does not fail the list: it is passed over to its closing
// bracket, without a look at what is behind the point of excess, and handed out as refused.
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "wire/item.h"

// item->refused may be set. A nonzero return stops the splitter; feed returns it.
typedef int (*mw_list_item_cb)(void *ctx, const struct mw_item *item);

struct mw_list_info {
  char kind[128];  // "PodList"; "" until seen
  char api_version[128];
  char rv[128];          // metadata.resourceVersion
  char *continue_token;  // metadata.continue, NULL when absent or empty; owned by the splitter
  long long remaining;   // metadata.remainingItemCount, -1 when absent
  size_t items;          // handed out so far
};

struct mw_list_split;

// projection, packer and item limit as in wire/item.h; the first two outlive the splitter.
struct mw_list_split *mw_list_split_new(const struct mw_projection *projection,
                                        struct mw_packer *packer, mw_list_item_cb cb, void *ctx);
void mw_list_split_free(struct mw_list_split *s);  // NULL is fine
int mw_list_split_feed(struct mw_list_split *s, const char *p, size_t n, struct mw_err *err)
    __attribute__((warn_unused_result));
// The response is complete. MW_EPARSE when the document is not; MW_EINVAL when it is valid JSON
// but no list (no items, kind Table or Status).
int mw_list_split_finish(struct mw_list_split *s, struct mw_err *err)
    __attribute__((warn_unused_result));
// Valid until free; complete after finish.
const struct mw_list_info *mw_list_split_info(const struct mw_list_split *s);
