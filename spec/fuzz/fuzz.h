// SPDX-License-Identifier: Apache-2.0
// What every fuzzer needs: the entry that libFuzzer calls, and a check that always counts.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool ok) {
  if (!ok) abort();
}
