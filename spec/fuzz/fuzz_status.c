// SPDX-License-Identifier: Apache-2.0
// Any body of an error response becomes a negative code and a printable message.
#include "fuzz.h"

#include "wire/json.h"
#include "wire/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  struct mw_slice body = {(const char *)data + 1, size - 1};
  struct mw_status status;
  struct mw_err err = {0};
  if (mw_status_parse(body, &status)) {
    require(mw_utf8_valid(mw_slice_str(status.message)));
    require(status.code >= 0 && status.retry_after >= -1);
    require(mw_status_classify(&status, 0, &err) < 0);
  }
  require(mw_status_from_body(body, 400 + data[0] % 112, &err) < 0);
  require(err.message[0] != '\0' && mw_utf8_valid(mw_slice_str(err.message)));
  return 0;
}
