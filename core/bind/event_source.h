// SPDX-License-Identifier: Apache-2.0
// A source of a controller: turns an informer's events into keys of its work queue, in C
// (S-CR-30..36, 41). Lua is entered only for predicates and maps that are functions.
//
//   { queue =, resource = "v1/pods",
//     map = "self" | "owner" | function(object) -> key, keys or nil,
//     missed = function(object),   with a map that is a function: it raised for this object
//     kind =, group =, owner = "controller" | "any", cluster_scoped =,    map = "owner": whose key
//     predicate = { "all" | "any" | "negate", ... } | { "generation" | "labels" | "annotations" |
//     "version" }
//               | { "match", parts } | { "call", function(object, old, event) },
//     low_priority = -100,         of initial adds, and of updates that changed nothing
//     spread = 10 }                seconds over which initial adds become ready
//
// Of an update, map and owners see the old and the new object: whoever lost it hears of it, too.
// TRAP decided (S-CR-31): a deletion that was missed queues its key like any other, also when the
// last state is not known; controller-runtime drops it then.
#pragma once

#include "base/err.h"
#include "cache/processor.h"

struct lua_State;
struct mw_generation;
struct mw_event_source;

struct mw_event_source *mw_event_source_new(struct mw_generation *gen);
// Reads the table at idx. Raises with what is wrong; the source can then be detached and freed.
void mw_event_source_read(struct mw_event_source *s, struct lua_State *L, int idx);
// Lets go of functions and of the queue; the generation still has its state.
void mw_event_source_detach(struct mw_event_source *s, struct lua_State *L);
void mw_event_source_free(struct mw_event_source *s);  // NULL is fine

// Negative when a function failed, or not all that the event concerns could be queued; err says
// why. An event whose predicate failed counts as one that matters.
int mw_event_source_deliver(struct mw_event_source *s, struct lua_State *L,
                            const struct mw_notification *n, struct mw_err *err);
