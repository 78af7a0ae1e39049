// SPDX-License-Identifier: Apache-2.0
// Cuts a watch stream into events as its bytes arrive. Holds one event at most.
//
// A stream is a sequence of JSON documents {"type": ..., "object": {...}}, with or without white
// space between them. Type and object may come in either order.
//
// An event whose object is too deep, or that is too large, does not fail the stream: it is passed
// over to its closing bracket, without a look at what is behind the point of excess, and handed out
// with item.refused set. Its type is UNKNOWN with an empty text when that was not seen before.
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "wire/item.h"
#include "wire/status.h"

enum mw_event_type {
  MW_EVENT_ADDED = 0,
  MW_EVENT_MODIFIED,
  MW_EVENT_DELETED,
  MW_EVENT_BOOKMARK,
  MW_EVENT_ERROR,    // `status` is set; `item` is empty
  MW_EVENT_UNKNOWN,  // a type we do not know; `item` is set
};

struct mw_event {
  enum mw_event_type type;
  struct mw_slice type_text;
  struct mw_item item;
  bool is_status;  // MW_EVENT_ERROR: the object was a Status
  struct mw_status status;
};

// A nonzero return stops the splitter; feed returns it.
typedef int (*mw_watch_event_cb)(void *ctx, const struct mw_event *event);

struct mw_watch_split;

// projection and packer as in wire/item.h; both outlive the splitter.
struct mw_watch_split *mw_watch_split_new(const struct mw_projection *projection,
                                          struct mw_packer *packer, mw_watch_event_cb cb,
                                          void *ctx);
void mw_watch_split_free(struct mw_watch_split *s);  // NULL is fine
int mw_watch_split_feed(struct mw_watch_split *s, const char *p, size_t n, struct mw_err *err)
    __attribute__((warn_unused_result));
// The stream ended. 0 when it ended between events; MW_EEOF when it was cut inside one.
int mw_watch_split_finish(struct mw_watch_split *s, struct mw_err *err)
    __attribute__((warn_unused_result));
