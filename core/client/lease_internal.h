// SPDX-License-Identifier: Apache-2.0
// What lease.c (the loops) and lease_try.c (the requests of one try) share.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/metric.h"
#include "base/rand.h"
#include "client/lease.h"

enum { MW_LEASE_BODY_MAX = 2 * 1024 * 1024 };

enum mw_lease_state {
  MW_LEASE_IDLE = 0,
  MW_LEASE_ACQUIRING,
  MW_LEASE_RENEWING,
  MW_LEASE_RELEASING,
  MW_LEASE_OVER
};

// The request under way.
enum mw_lease_step {
  MW_STEP_NONE = 0,
  MW_STEP_FAST,    // PUT from what was last seen
  MW_STEP_GET,     // what there is
  MW_STEP_CREATE,  // POST
  MW_STEP_UPDATE,  // PUT from what GET gave
};

struct mw_lease {
  struct mw_runtime runtime;
  struct mw_endpoint *endpoint;
  struct mw_fence *fence;
  struct mw_lease_config config;  // its strings are ours
  struct mw_lease_callbacks on;
  void *ctx;
  char *collection, *path;                     // of the API
  struct mw_series *master_status, *slowpath;  // S-LE-15

  // Ingest thread.
  enum mw_lease_state state;
  struct mw_rand rand;
  struct mw_timer *retry;       // the next try
  struct mw_timer *deadline;    // of the round of renewals, or of the release
  struct mw_timer *fence_time;  // when the fence closes
  uint64_t round_ends;          // mw_clock_now(); 0: no round
  uint64_t try_began;           // likewise
  // One try.
  enum mw_lease_step step;
  struct mw_request *request;
  uint64_t write_began;  // mw_clock_boot()
  int status;
  struct mw_buf body;
  // What was last seen of the Lease.
  struct mw_buf object;  // all of it; empty: nothing yet
  struct mw_buf spec;    // of it
  struct mw_lease_record record;
  bool observed;
  char failure[MW_ERR_MESSAGE_MAX];  // that was logged last
  bool late;                         // it was logged that the fence has closed

  // Any thread: mw_clock_boot() of the last change that was seen, while we lead; 0: we do not.
  atomic_uint_least64_t seen_at;
  uint64_t observed_at;  // ingest thread: the same, whoever leads

  // Script thread.
  char holder[MW_LEASE_HOLDER_MAX + 1];
  mw_loop_cb done;
  void *done_ctx;
};

// lease.c: what became of a try. why is one sentence.
void mw_lease_try_won(struct mw_lease *l);
void mw_lease_try_failed(struct mw_lease *l, const char *why);
void mw_lease_lost(struct mw_lease *l, const char *why);
void mw_lease_released(struct mw_lease *l);
// The record is that of the object now: tells of a new holder.
void mw_lease_new_holder(struct mw_lease *l);

// lease_try.c
void mw_lease_try(struct mw_lease *l);
void mw_lease_release(struct mw_lease *l);
// Ends the request under way, if any. True when it was a write, which may have happened.
bool mw_lease_abort(struct mw_lease *l);
