// SPDX-License-Identifier: Apache-2.0
#include "queue/rate_limiter.h"

#include <math.h>

enum { DOUBLINGS_MAX = 1024 };  // beyond them a double is infinite, and the cap holds

const struct mw_rate_limiter_config mw_rate_limiter_default = {.base_delay = 0.005,
                                                               .max_delay = 1000};

void mw_rate_limiter_init(struct mw_rate_limiter *l, const struct mw_rate_limiter_config *config,
                          uint64_t now) {
  l->config = *config;
  l->tokens = config->burst;
  l->filled = now;
}

static double key_delay(const struct mw_rate_limiter_config *c, unsigned failures) {
  if (c->fast_retries > 0) return failures < c->fast_retries ? c->base_delay : c->max_delay;
  int doublings = failures < DOUBLINGS_MAX ? (int)failures : DOUBLINGS_MAX;
  return fmin(ldexp(c->base_delay, doublings), c->max_delay);
}

static double bucket_delay(struct mw_rate_limiter *l, uint64_t now) {
  if (l->config.qps <= 0) return 0;
  double passed = now > l->filled ? (double)(now - l->filled) * 1e-9 : 0;
  l->tokens = fmin(l->tokens + passed * l->config.qps, l->config.burst) - 1;
  l->filled = now;
  return l->tokens < 0 ? -l->tokens / l->config.qps : 0;
}

double mw_rate_limiter_next(struct mw_rate_limiter *l, unsigned failures, uint64_t now) {
  double delay = fmax(key_delay(&l->config, failures), bucket_delay(l, now));
  return l->config.max_wait > 0 ? fmin(delay, l->config.max_wait) : delay;
}
