// SPDX-License-Identifier: Apache-2.0
// A host's part in a leader election: it owns the lease, whichever script declared it, speaks for
// it in /healthz, and ends the process when it is lost, also one whose script does not give way.
// Script thread only.
#pragma once

#include "base/err.h"
#include "client/lease.h"
#include "transport/loop.h"

struct mw_host;
struct mw_leader;

struct mw_leader *mw_leader_new(struct mw_host *host);
// Forgets a declaration that was not started, if there is one.
void mw_leader_forget(struct mw_leader *l);
// After mw_leader_close was done.
void mw_leader_free(struct mw_leader *l);

// Declares the election; the fence before writes is closed from here on. A valid config is copied.
// Declared again for the same Lease (by the next generation of a script) it stays what it is;
// MW_ESTATE for another one.
int mw_leader_declare(struct mw_leader *l, const struct mw_runtime *runtime,
                      struct mw_endpoint *endpoint, const struct mw_lease_config *config,
                      struct mw_fence *fence, struct mw_err *err);
// Begins to contend, once.
void mw_leader_start(struct mw_leader *l);
// NULL: none was declared.
struct mw_lease *mw_leader_lease(struct mw_leader *l);

// Who hears of it from now on, besides the host: holder is NULL when only mw_lease_is_leading()
// changed.
typedef void (*mw_leader_cb)(void *ctx, const char *holder);
void mw_leader_listen(struct mw_leader *l, mw_leader_cb cb, void *ctx);
// Unless another listens meanwhile, nobody does from now on.
void mw_leader_unlisten(struct mw_leader *l, const void *ctx);

// Stops and releases; done is called from the loop, also when there is nothing to do. Whatever the
// script sent has been answered or cancelled.
void mw_leader_close(struct mw_leader *l, mw_loop_cb done, void *ctx);
