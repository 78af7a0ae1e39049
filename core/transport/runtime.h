// SPDX-License-Identifier: Apache-2.0
// The threads of a host, as those see them that begin something on one and end it on the other.
#pragma once

#include "transport/http.h"
#include "transport/loop.h"

struct mw_runtime {
  struct mw_loop *script;  // the loop this is called on
  struct mw_loop *ingest;  // the loop of http
  struct mw_http *http;
};
