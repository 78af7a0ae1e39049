// SPDX-License-Identifier: Apache-2.0
// Random numbers for jitter and seeds; never for secrets.
#pragma once

#include <stdint.h>

struct mw_rand {
  uint64_t state;
};

// 64 bits from the kernel.
uint64_t mw_rand_entropy(void);
void mw_rand_init(struct mw_rand *r, uint64_t seed);
uint64_t mw_rand_next(struct mw_rand *r);
// Uniform in [0, 1).
double mw_rand_unit(struct mw_rand *r);
