// SPDX-License-Identifier: Apache-2.0
// The Status object: how an API server says no (S-REST-08, S-REST-09).
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/slice.h"

struct mw_status {
  int code;                // 0 when absent
  int retry_after;         // details.retryAfterSeconds, -1 when absent
  char reason[64];         // "" when absent
  char message[400];       // cut if longer
  bool too_large_rv;       // cause ResourceVersionTooLarge
  bool says_too_large_rv;  // a message says so, which counts in a timeout: servers before 1.19
};

// Reads a Status from JSON. False when it is not a Status object (kind Status, apiVersion v1 or
// meta.k8s.io/v1); then *out is zero.
bool mw_status_parse(struct mw_slice json, struct mw_status *out);

// The MW_E* that the rest of the core decides by: EEXPIRED, ETOOLARGERV, ETHROTTLED, EINTERNAL,
// EHTTP. http_status is used where the Status has no code (0 for an event in a stream). The
// message of err reads like kubectl's: `pods is forbidden: User "x" cannot list ...`.
int mw_status_classify(const struct mw_status *status, int http_status, struct mw_err *err);

// The same for an HTTP error whose body may or may not be a Status.
int mw_status_from_body(struct mw_slice body, int http_status, struct mw_err *err);
