// SPDX-License-Identifier: Apache-2.0
// A host's part in a leader election: it owns the lease, whichever scripts declared it, speaks for
// it in /healthz, and ends the process when it is lost, also one whose script does not give way.
// Script thread only.
//
// The election is the process's, as the fence is: with it only a leader writes, whichever script it
// is that wants to. It begins with the commit of the first generation that declared it, which may
// be a reload: from before anything of that generation runs until the lease is won nothing is sent,
// neither by it, nor by the one before, which drains, nor by other scripts. Their writes fail as
// not_leading; those under way end as timeouts, because another may lead already and nobody waits
// for it (fence.h). A commit that fails opens the fence again.
//
// It ends with the process. A revision that declares it no more does not change who may write: to
// release the lease would hand it to another replica while this one goes on writing. Another Lease
// than the first is refused for the same reason.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "client/lease.h"
#include "transport/loop.h"

struct mw_host;
struct mw_leader;

struct mw_leader *mw_leader_new(struct mw_host *host);
// After mw_leader_close was done.
void mw_leader_free(struct mw_leader *l);

// Whoever declared it hears of changes: holder is NULL when only mw_leader_is_leading() changed.
// Must not call into this header but to ask.
typedef void (*mw_leader_cb)(void *ctx, const char *holder);

// Declares the election for a generation, which has one declaration; nothing else changes. A valid
// config is copied. Who declares the same Lease shares it as it is, with the times of the first.
// MW_ESTATE for another one; place says in such messages where this was ("main.lua:3").
int mw_leader_declare(struct mw_leader *l, const void *generation, const char *place,
                      struct mw_endpoint *endpoint, const struct mw_lease_config *config,
                      mw_leader_cb cb, void *ctx, struct mw_err *err);
// It is about to be committed: before anything of it runs. From here on it hears of changes, and
// the fence is closed; the process contends from the next turn of the loop on, unless the
// generation has left by then. Nothing for one that declared nothing, or was here before.
void mw_leader_enter(struct mw_leader *l, const void *generation);
// It has ended, failed or stopped: takes its declaration back.
void mw_leader_leave(struct mw_leader *l, const void *generation);

// What is in force; NULL: nothing.
struct mw_lease *mw_leader_lease(struct mw_leader *l);
// The same for a generation: also what it declared and is not in force yet.
struct mw_lease *mw_leader_lease_of(struct mw_leader *l, const void *generation);
// Of what is declared, in force or not yet; NULL: nothing is.
const char *mw_leader_identity(const struct mw_leader *l);
// Whether the lease in force is ours.
bool mw_leader_is_leading(const struct mw_leader *l);
// Of those that entered: whether it is the first, for what one is to do for all; and whether it is
// the only one that is left.
bool mw_leader_is_first(const struct mw_leader *l, const void *generation);
bool mw_leader_is_alone(const struct mw_leader *l, const void *generation);

// Stops and releases; done is called from the loop, also when there is nothing to do. Whatever the
// scripts sent has been answered or cancelled.
void mw_leader_close(struct mw_leader *l, mw_loop_cb done, void *ctx);
