// SPDX-License-Identifier: Apache-2.0
// The named work queues of a host. A queue outlives the script that filled it: the next generation
// finds it by its name, with the keys that are waiting. Script thread only.
//
// A queue goes when nobody uses it and it knows of no key, when it is shut down and nobody uses it,
// when nobody has used it for the seconds of grace, and with the host.
#pragma once

#include "queue/workqueue.h"

struct mw_queues;

struct mw_queues *mw_queues_new(struct mw_loop *loop, double grace);
// All users must have left.
void mw_queues_free(struct mw_queues *qs);

// The queue of this name, +1: the one that is there, or a new one with this configuration. One that
// was shut down is replaced. NULL when the one that is there is used by another owner, which is
// whatever the users of one queue have in common.
struct mw_workqueue *mw_queues_get(struct mw_queues *qs, const char *name, const void *owner,
                                   const struct mw_workqueue_config *config);
// The queue of the name `was`, +1, if it is the owner's, for one that will rename it; else NULL.
struct mw_workqueue *mw_queues_find(struct mw_queues *qs, const char *was, const void *owner);
// q is found by this name from now on. Not when there is another of that name.
void mw_queues_rename(struct mw_queues *qs, struct mw_workqueue *q, const char *name);
// Calls cb with each queue (borrowed).
void mw_queues_each(struct mw_queues *qs, void (*cb)(void *ctx, struct mw_workqueue *q), void *ctx);
// Lets go of the queues that nobody uses, whatever keys are waiting in them.
void mw_queues_forget(struct mw_queues *qs);
// Gives back the +1 of mw_queues_get, after the user has left.
void mw_queues_put(struct mw_queues *qs, struct mw_workqueue *q);
