// SPDX-License-Identifier: Apache-2.0
// Exponential backoff with jitter (S-REF-40..43).
//
// TRAP decided (S-REF-41): the ramp restarts after `reset` seconds in which no delay was asked
// for, not `reset` seconds after the last restart. Under continuous failure the delay therefore
// stays at the cap instead of hammering the server again every two minutes.
#pragma once

#include <stdint.h>

#include "base/rand.h"

struct mw_backoff_config {
  double duration;  // first delay, seconds
  double factor;    // <= 0: constant delay
  double jitter;    // each delay is base + U[0,1) * jitter * base
  double cap;       // where growth ends; 0: nowhere. The first delay may be larger
  int steps;        // how often the base may grow; then it stays
  double reset;     // quiet seconds after which the ramp restarts; 0: never
};

// 0.8 s, x2, jitter 1.0, cap 30 s, 38 steps, reset 120 s.
extern const struct mw_backoff_config mw_backoff_default;

struct mw_backoff {
  struct mw_backoff_config config;
  struct mw_rand rand;
  double base;  // the next base delay
  int steps_left;
  uint64_t last_ask;  // when the last delay was computed, 0 = never
};

void mw_backoff_init(struct mw_backoff *b, const struct mw_backoff_config *config, uint64_t seed);
// The next delay in seconds; `now` in monotonic nanoseconds. Jitter is not cumulative.
double mw_backoff_next(struct mw_backoff *b, uint64_t now);
