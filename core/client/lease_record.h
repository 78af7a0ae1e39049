// SPDX-License-Identifier: Apache-2.0
// The Lease object (coordination.k8s.io/v1) as an election reads and writes it (S-LE-08, S-LE-09).
//
// What is written is the Lease that was read with some members set; everything else of it, known to
// us or not, stays byte for byte as it was.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

enum { MW_LEASE_HOLDER_MAX = 1024, MW_LEASE_TIME_SIZE = 32 };

struct mw_lease_record {
  char holder[MW_LEASE_HOLDER_MAX + 1];  // "": nobody
  long duration;                         // leaseDurationSeconds; 0 when absent
  long transitions;
  struct mw_slice spec;  // its JSON, "" when absent: points into what was read
};

// Reads a Lease. MW_EPARSE when it is not one, or not one with a version; err (may be NULL) says
// what it is instead.
int mw_lease_read(struct mw_slice json, struct mw_lease_record *out, struct mw_err *err)
    __attribute__((warn_unused_result));

struct mw_lease_label {
  const char *key;
  const char *value;
};

// What to set. Times are seconds since the epoch.
struct mw_lease_change {
  const char *holder;
  long duration;
  double renewed;
  double acquired;   // 0: stays
  long transitions;  // negative: stays
  const struct mw_lease_label *labels;
  size_t label_count;
};

// Appends the Lease `json` with these changes to out; json may be one that mw_lease_begin() made.
int mw_lease_write(struct mw_slice json, const struct mw_lease_change *change, struct mw_buf *out)
    __attribute__((warn_unused_result));
// Appends a Lease that nobody has held yet.
int mw_lease_begin(const char *ns, const char *name, struct mw_buf *out)
    __attribute__((warn_unused_result));

// "2006-01-02T15:04:05.000000Z"
void mw_lease_time(double seconds, char out[MW_LEASE_TIME_SIZE]);
