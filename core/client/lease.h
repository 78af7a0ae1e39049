// SPDX-License-Identifier: Apache-2.0
// Leader election by a Lease (S-LE-01..16): of all processes that contend for one Lease, one leads.
//
// The election runs on the ingest thread, so that no script can keep it from renewing. It is made,
// started, stopped and told of on the script thread.
//
//   acquiring   tries at once and then every retry_period x (1..2.2) until the Lease is ours
//   renewing    renews every retry_period; a renewal that fails is tried again until renew_deadline
//   over        the Lease was lost; it does not contend again (S-LE-12): the process is to end
//
// Only the local clock counts, and only *changes* of the record (S-LE-06): a foreign record is
// expired when it has not changed for its own duration since we first saw it so. Times in the
// record are for people and never compared. The clock is CLOCK_BOOTTIME: a stopped process and a
// suspended machine notice how long they were away.
//
// Stricter than client-go in three places. While it leads, a record with another holder means at
// once that the Lease is lost. The fence before writes (fence.h) closes renew_deadline after the
// start of the last renewal that succeeded, which is before the renewals are given up (retry_period
// later); one that succeeds late opens it again, as nobody else can have led in between. And a lost
// Lease is not released: the time that is left of it keeps our last writes apart from the next
// leader's first.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "client/fence.h"
#include "client/lease_record.h"
#include "transport/runtime.h"

enum { MW_LEASE_LABELS_MAX = 64, MW_LEASE_IDENTITY_SIZE = 320 };

struct mw_lease_config {
  const char *ns;
  const char *name;
  const char *identity;   // not empty, at most MW_LEASE_HOLDER_MAX bytes
  double lease_duration;  // whole seconds, because the record has those
  double renew_deadline;
  double retry_period;
  bool release;  // gives the Lease up when it is stopped, so that another need not wait
  const struct mw_lease_label *labels;  // set with every write; others stay
  size_t label_count;
};

// Without names: 15 s, 10 s, 2 s, release (S-LE-01).
extern const struct mw_lease_config mw_lease_default;

// S-LE-02: MW_EINVAL, and err says which value does not fit, and what would.
int mw_lease_config_check(const struct mw_lease_config *config, struct mw_err *err)
    __attribute__((warn_unused_result));
// hostname_uuid, another one with each call (S-LE-14).
void mw_lease_identity(char out[MW_LEASE_IDENTITY_SIZE]);

// On the script thread unless it says otherwise, never inside a function of this header. Any may be
// NULL.
struct mw_lease_callbacks {
  // mw_lease_is_leading() may have changed.
  void (*on_change)(void *ctx);
  // The record has another holder than before, also the first time, also ourselves, also "" after a
  // release (S-LE-11).
  void (*on_new_leader)(void *ctx, const char *holder);
  // It is over: why is one sentence. Not after a stop, and once at most.
  void (*on_lost)(void *ctx, const char *why);
  // The same, on the ingest thread and at once: for who cannot wait for a script to give way.
  void (*on_over)(void *ctx);
};

struct mw_lease;

// config is valid and copied, callbacks are copied. Takes references of fence and endpoint, and
// touches neither.
struct mw_lease *mw_lease_new(const struct mw_runtime *runtime, struct mw_endpoint *endpoint,
                              struct mw_fence *fence, const struct mw_lease_config *config,
                              const struct mw_lease_callbacks *callbacks, void *ctx);
// Closes the fence, ends what is under way before it, and begins to contend.
void mw_lease_start(struct mw_lease *l);
// Ends it in any state: the fence closes, and a Lease that is or may be ours is released if the
// configuration says so, within renew_deadline (S-LE-10). done is called on the script thread when
// all is over; no other callback after it. Once.
void mw_lease_stop(struct mw_lease *l, mw_loop_cb done, void *ctx);
// After the stop is done, or when it was never started.
void mw_lease_free(struct mw_lease *l);

// Any thread, of one that was started: whether the Lease is ours and the fence open.
bool mw_lease_is_leading(const struct mw_lease *l);
// S-LE-13, any thread: 0, or MW_ESTATE when it believes that it leads and has not seen the Lease
// for its duration and `tolerance` seconds more.
int mw_lease_check(const struct mw_lease *l, double tolerance, struct mw_err *err);

// Script thread.
const struct mw_lease_config *mw_lease_get_config(const struct mw_lease *l);
const char *mw_lease_holder(
    const struct mw_lease *l);  // the last one seen; "": nobody, or none yet
