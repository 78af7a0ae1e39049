// SPDX-License-Identifier: Apache-2.0
#include "base/rand.h"

#include <sys/random.h>
#include <time.h>

uint64_t mw_rand_entropy(void) {
  uint64_t v;
  if (getrandom(&v, sizeof v, 0) == (ssize_t)sizeof v) return v;
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_nsec * 0x9E3779B97F4A7C15u;
}

void mw_rand_init(struct mw_rand *r, uint64_t seed) { r->state = seed; }

// splitmix64: one add and three mixes, any seed is good.
uint64_t mw_rand_next(struct mw_rand *r) {
  uint64_t z = (r->state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double mw_rand_unit(struct mw_rand *r) { return (double)(mw_rand_next(r) >> 11) * 0x1.0p-53; }
