// SPDX-License-Identifier: Apache-2.0
#include "base/backoff.h"

const struct mw_backoff_config mw_backoff_default = {
    .duration = 0.8, .factor = 2, .jitter = 1, .cap = 30, .steps = 38, .reset = 120};

static void restart(struct mw_backoff *b) {
  b->base = b->config.duration;
  b->steps_left = b->config.steps;
}

void mw_backoff_init(struct mw_backoff *b, const struct mw_backoff_config *config, uint64_t seed) {
  *b = (struct mw_backoff){.config = *config};
  mw_rand_init(&b->rand, seed);
  restart(b);
}

double mw_backoff_next(struct mw_backoff *b, uint64_t now) {
  double quiet = (double)(now - b->last_ask) * 1e-9;
  if (b->config.reset > 0 && b->last_ask != 0 && quiet > b->config.reset) restart(b);
  b->last_ask = now;
  double base = b->base;
  if (b->config.factor > 0 && b->steps_left > 0) {
    b->steps_left--;
    b->base *= b->config.factor;
    if (b->config.cap > 0 && b->base > b->config.cap) b->base = b->config.cap;
  }
  return base + mw_rand_unit(&b->rand) * b->config.jitter * base;
}
