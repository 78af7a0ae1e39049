// SPDX-License-Identifier: Apache-2.0
// Generated pods, as an API server would send them.
//
// `simple`: one application, what differs between its pods differs (names, uids, addresses, times,
// container ids). `diverse`: 800 applications in 60 namespaces, with containers, environments,
// volumes, probes and owners of their own. A quarter of the bytes is managedFields. The same
// arguments give the same bytes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One pod: its JSON with kind and apiVersion is at text + start.
struct pod {
  size_t start;
  uint32_t n;
  uint32_t body;         // offset of "metadata" from start: where a list's item begins
  uint32_t rv;           // offset of the ten digits of the resource version
  uint32_t annotations;  // offset of the first annotation, there is always one
};

struct pods {
  char *text;
  size_t n;
  struct pod *v;  // by namespace and name, as a server lists
  size_t count;
};

enum { POD_RV_DIGITS = 10, POD_RV_FIRST = 1000000000 };

// Memory comes from malloc and stays until the process ends; exits when there is none.
struct pods pods_make(size_t count, bool diverse);
