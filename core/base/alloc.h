// SPDX-License-Identifier: Apache-2.0
// Memory: the only door to malloc. Out of memory aborts with a message; an untrusted size never
// reaches these functions unchecked (every buffer and parser has a limit of its own).
#pragma once

#include <stddef.h>

void *mw_xmalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *mw_xcalloc(size_t count, size_t n) __attribute__((malloc, returns_nonnull));
void *mw_xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
char *mw_xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
// Copies n bytes and adds a NUL.
char *mw_xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
// free(); NULL is fine.
void mw_free(void *p);

// Once, before there are threads: sets malloc up for very many objects that one thread makes and
// another frees.
void mw_alloc_setup(void);

// What is alive, by kind, for the leak assertions after each spec and at exit. Thread-safe.
#define MW_LIVE_MAP(X)             \
  X(OBJECT, "object")              \
  X(REQUEST, "request")            \
  X(INFORMER, "informer")          \
  X(LISTENER, "listener")          \
  X(SELECTOR, "selector")          \
  X(ENDPOINT, "endpoint")          \
  X(LUAREF, "luaref")              \
  X(HANDLE, "uv handle")           \
  X(DICT, "dictionary")            \
  X(TASK, "task")                  \
  X(CALL, "call")                  \
  X(SERIES, "series")              \
  X(QUEUE, "work queue")           \
  X(BUNDLE, "bundle")              \
  X(LIST_SPLIT, "list splitter")   \
  X(WATCH_SPLIT, "watch splitter") \
  X(SCANNER, "item scanner")       \
  X(PATH, "path")                  \
  X(PROJECTION, "projection")

enum mw_live {
#define X(name, text) MW_LIVE_##name,
  MW_LIVE_MAP(X)
#undef X
      MW_LIVE_COUNT
};

void mw_live_add(enum mw_live kind, int delta);
long mw_live_get(enum mw_live kind);
const char *mw_live_name(enum mw_live kind);
