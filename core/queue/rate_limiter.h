// SPDX-License-Identifier: Apache-2.0
// How long a key that failed waits for its next turn (S-WQ-30..33): the longer of what its own
// failures ask for and of what a token bucket, shared by all keys, has left.
//
// The limiter holds no keys: whoever asks counts a key's failures and forgets them. No jitter.
#pragma once

#include <stdint.h>

struct mw_rate_limiter_config {
  double base_delay;  // seconds after the first failure; doubled with each further one
  double max_delay;   // the longest that failures ask for
  // Not 0: no doubling; so many failures wait base_delay, those after them max_delay.
  unsigned fast_retries;
  double qps;       // tokens per second; 0: no bucket
  double burst;     // tokens that a bucket at rest holds
  double max_wait;  // the longest of all, the bucket's waits included; 0: no such bound
};

// 5 ms, doubling up to 1000 s; no bucket.
extern const struct mw_rate_limiter_config mw_rate_limiter_default;

struct mw_rate_limiter {
  struct mw_rate_limiter_config config;
  double tokens;    // below 0: reserved by those who wait
  uint64_t filled;  // when tokens was right, monotonic nanoseconds
};

// A bucket begins full.
void mw_rate_limiter_init(struct mw_rate_limiter *l, const struct mw_rate_limiter_config *config,
                          uint64_t now);
// The delay in seconds of a key that has failed so many times before. Takes a token, whichever of
// the two delays is longer.
double mw_rate_limiter_next(struct mw_rate_limiter *l, unsigned failures, uint64_t now);
