// SPDX-License-Identifier: Apache-2.0
// The Lua modules of lua/kube, compiled, and the sandbox's data files, put into the binary at build
// time (scripts/embed.cmake).
#pragma once

struct mw_embedded {
  const char *module;  // "kube", "kube.factory"; NULL ends the table
  const char *code;    // LuaJIT's bytecode, with the names and lines that tracebacks show
  const char *end;
};

extern const struct mw_embedded mw_embedded_lua[];

// A file of lua/kube/sandbox/data, as it is.
struct mw_embedded_file {
  const char *name;  // relative to that directory; NULL ends the table
  const char *start;
  const char *end;
};

extern const struct mw_embedded_file mw_embedded_data[];
