// SPDX-License-Identifier: Apache-2.0
// Blocks of memory that come and go by the thousand, often on one thread and then on another. Those
// that go are kept for the next of their size: malloc has one lock, and two threads that are both
// busy would meet there at every event.
//
// What is kept is bounded per size, and larger blocks are malloc's alone. Under AddressSanitizer,
// which has to see each block come and go, nothing is kept. Thread-safe.
#pragma once

#include <stddef.h>

// n bytes, with anything in them.
void *mw_block_get(size_t n) __attribute__((malloc, returns_nonnull));
// n is what it was at mw_block_get. NULL is fine.
void mw_block_put(void *p, size_t n);

// Gives back to malloc what is kept and nobody is taking just now.
void mw_block_trim(void);
// How many blocks of this size are kept.
size_t mw_block_kept(size_t n);
