// SPDX-License-Identifier: Apache-2.0
// A stack per size. Anyone may push at any time; one at a time may pop, so that the block on top
// cannot go and come back under the eyes of another who pops. Who finds the stack in use has malloc
// instead of a wait.
#include "base/block.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/alloc.h"

// gcc says it one way, clang another.
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define KEEPS false
#else
#define KEEPS true
#endif

enum {
  STEP = 16,  // as malloc's own sizes
  LARGEST = 2048,
  KEEP_BYTES = 128 * 1024,  // of each size
  CACHE_LINE = 64,
};

struct block {
  struct block *next;
};

struct stack {
  _Alignas(CACHE_LINE) _Atomic(struct block *) top;
  atomic_size_t count;
  atomic_flag popping;
};

static struct stack stacks[LARGEST / STEP + 1];

static size_t rounded(size_t n) { return n > 0 ? (n + STEP - 1) / STEP * STEP : STEP; }

// The stack for blocks of n bytes; NULL: they are not kept.
static struct stack *stack_for(size_t n) {
  return KEEPS && n <= LARGEST ? &stacks[rounded(n) / STEP] : NULL;
}

// NULL: none, or another thread is at it.
static struct block *pop(struct stack *s) {
  if (atomic_load_explicit(&s->top, memory_order_relaxed) == NULL) return NULL;
  if (atomic_flag_test_and_set_explicit(&s->popping, memory_order_acquire)) return NULL;
  struct block *b = atomic_load_explicit(&s->top, memory_order_acquire);
  while (b != NULL && !atomic_compare_exchange_weak_explicit(
                          &s->top, &b, b->next, memory_order_acquire, memory_order_acquire)) {
  }
  atomic_flag_clear_explicit(&s->popping, memory_order_release);
  if (b != NULL) atomic_fetch_sub_explicit(&s->count, 1, memory_order_relaxed);
  return b;
}

static void push(struct stack *s, struct block *b) {
  b->next = atomic_load_explicit(&s->top, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&s->top, &b->next, b, memory_order_release,
                                                memory_order_relaxed)) {
  }
}

void *mw_block_get(size_t n) {
  struct stack *s = stack_for(n);
  if (s == NULL) return mw_xmalloc(n);
  struct block *b = pop(s);
  return b != NULL ? (void *)b : mw_xmalloc(rounded(n));
}

void mw_block_put(void *p, size_t n) {
  if (p == NULL) return;
  struct stack *s = stack_for(n);
  if (s == NULL ||
      atomic_load_explicit(&s->count, memory_order_relaxed) >= KEEP_BYTES / rounded(n)) {
    mw_free(p);
    return;
  }
  atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed);
  push(s, p);
}

void mw_block_trim(void) {
  for (size_t i = 0; i < sizeof stacks / sizeof stacks[0]; i++) {
    struct block *b;
    while ((b = pop(&stacks[i])) != NULL) mw_free(b);
  }
}

size_t mw_block_kept(size_t n) {
  struct stack *s = stack_for(n);
  return s != NULL ? atomic_load(&s->count) : 0;
}
