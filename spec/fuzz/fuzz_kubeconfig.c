// SPDX-License-Identifier: Apache-2.0
// Any bytes as a kubeconfig, and as the answer of an exec plugin: no crash, no leak, and a failure
// always has a message. The identity of an endpoint is computed as well, as it reads every field.
// What a cluster has for plugins becomes JSON that an independent parser reads.
#include <stdint.h>
#include <stdlib.h>

#include "oracle.h"
#include "transport/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(const char *json) {
  struct mw_buf reading;
  size_t n;
  mw_buf_init(&reading, READING_MAX);
  if (!oracle_read(mw_slice_str(json), &reading, &n) || n != strlen(json)) abort();
  mw_buf_deinit(&reading);
}

static void as_kubeconfig(const char *text, size_t n, const char *dir) {
  struct mw_err err = {0};
  struct mw_kubeconfig *k = mw_kubeconfig_parse(text, n, NULL, "fuzz", dir, &err);
  if (k == NULL) {
    if (err.code == 0 || err.message[0] == '\0') abort();
    return;
  }
  if (k->server == NULL || k->origin == NULL) abort();
  if (k->exec != NULL && k->exec->cluster_config != NULL) check_json(k->exec->cluster_config);
  mw_endpoint_unref(mw_endpoint_new(k));
}

static void as_exec_credential(const char *text, size_t n) {
  struct mw_exec_config config = {.api_version = "client.authentication.k8s.io/v1"};
  struct mw_exec_result result;
  struct mw_err err = {0};
  int rc = mw_exec_parse(text, n, &config, &result, &err);
  if (rc < 0 && err.message[0] == '\0') abort();
  if (rc == 0 && result.token == NULL && result.cert_data == NULL) abort();
  mw_exec_result_deinit(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = (const char *)data;
  as_kubeconfig(text, size, NULL);
  as_kubeconfig(text, size, "/dir");
  as_exec_credential(text, size);
  return 0;
}
