// SPDX-License-Identifier: Apache-2.0
// Whatever is read as a Lease can be written again, as JSON that an independent parser accepts and
// that reads as what was put in.
#include "fuzz.h"

#include <string.h>

#include "client/lease_record.h"
#include "oracle.h"
#include "wire/json.h"

static void check_written(struct mw_slice json, const struct mw_lease_change *change,
                          long transitions) {
  struct mw_buf out, reading;
  mw_buf_init(&out, READING_MAX);
  mw_buf_init(&reading, READING_MAX);
  int rc = mw_lease_write(json, change, &out);
  if (rc < 0) {  // labels that are no object
    require(rc == MW_EPARSE && change->label_count > 0);
    mw_buf_deinit(&out);
    return;
  }
  size_t n;
  require(oracle_read(mw_buf_slice(&out), &reading, &n) && n == out.n);
  struct mw_lease_record record;
  require(mw_lease_read(mw_buf_slice(&out), &record, NULL) == 0);
  require(strcmp(record.holder, change->holder) == 0 && record.duration == change->duration);
  require(record.transitions == transitions);
  require(record.spec.n > 0 && record.spec.p[0] == '{' && record.spec.p[record.spec.n - 1] == '}');
  mw_buf_deinit(&out);
  mw_buf_deinit(&reading);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct mw_slice json = {(const char *)data, size};
  struct mw_lease_record record;
  struct mw_err err = {0};
  if (mw_lease_read(json, &record, &err) < 0) {
    require(err.code == MW_EPARSE && err.message[0] != '\0');
    return 0;
  }
  require(mw_utf8_valid(mw_slice_str(record.holder)));
  static const struct mw_lease_label labels[] = {{"app", "w\"eb"}, {"example.com/a", ""}};
  struct mw_lease_change change = {
      .holder = "a\\b\n", .duration = 7, .renewed = 1e9, .transitions = -1};
  check_written(json, &change, record.transitions);
  change = (struct mw_lease_change){.holder = "",
                                    .duration = 1,
                                    .renewed = 1.5e9,
                                    .acquired = 1e9,
                                    .transitions = 3,
                                    .labels = labels,
                                    .label_count = 2};
  check_written(json, &change, 3);
  return 0;
}
