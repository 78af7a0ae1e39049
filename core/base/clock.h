// SPDX-License-Identifier: Apache-2.0
// Time. Durations are seconds as double at the edges and nanoseconds inside.
#pragma once

#include <stdint.h>

// Monotonic nanoseconds.
uint64_t mw_clock_now(void);
// Seconds since the epoch, for stamps that people read.
double mw_clock_wall(void);
