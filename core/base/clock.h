// SPDX-License-Identifier: Apache-2.0
// Time. Durations are seconds as double at the edges and nanoseconds inside.
#pragma once

#include <stdint.h>

// Monotonic nanoseconds.
uint64_t mw_clock_now(void);
// The same, with the time that the machine was suspended: for what others count meanwhile.
uint64_t mw_clock_boot(void);
// Seconds since the epoch, for stamps that people read.
double mw_clock_wall(void);
