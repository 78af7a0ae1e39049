// SPDX-License-Identifier: Apache-2.0
// Work on blocks for threads of specs, as a call that can be posted to a loop.
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/block.h"

enum { PLACES = 32, SIZE = 96 };

// Declared for the FFI in spec/unit/block_spec.lua.
struct spec_block_work {
  int rounds;
  int torn;  // blocks with somebody else's bytes in them
};

void spec_block_work(void *arg);

static _Atomic(uint8_t *) places[PLACES];

// Writes a block full of one byte, leaves it for any thread, and looks whether the one that lay
// there is still full of its own.
void spec_block_work(void *arg) {
  struct spec_block_work *w = arg;
  for (int i = 0; i < w->rounds; i++) {
    uint8_t *b = mw_block_get(SIZE);
    memset(b, i & 0xFF, SIZE);
    b = atomic_exchange(&places[i % PLACES], b);
    for (int at = 1; b != NULL && at < SIZE; at++) {
      if (b[at] != b[0]) w->torn++;
    }
    mw_block_put(b, SIZE);
  }
  for (int i = 0; i < PLACES; i++) mw_block_put(atomic_exchange(&places[i], NULL), SIZE);
}
