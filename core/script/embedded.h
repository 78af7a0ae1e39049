// SPDX-License-Identifier: Apache-2.0
// The Lua modules of lua/kube, put into the binary at build time (scripts/embed.cmake).
#pragma once

#include <stddef.h>

struct mw_embedded {
  const char *module;  // "kube", "kube.factory"; NULL ends the table
  const char *chunk;   // "@lua/kube/factory.lua", as it appears in tracebacks
  const char *source;
  size_t size;
};

extern const struct mw_embedded mw_embedded_lua[];
