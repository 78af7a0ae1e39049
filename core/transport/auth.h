// SPDX-License-Identifier: Apache-2.0
// Credentials as they are now: a token that is re-read from its file, or one that an exec plugin
// hands out and that expires. Lives on the ingest loop.
#pragma once

#include "base/err.h"
#include "transport/kubeconfig.h"
#include "transport/loop.h"

struct mw_auth;

struct mw_credentials {
  const char *authorization;  // header value ("Bearer ..."), or NULL
  const char *cert_data;      // PEM from a plugin, or NULL
  const char *key_data;
  const char *ca_data;  // PEM of a rotated CA file, or NULL: as configured
  unsigned serial;      // changes when anything here changes; for mw_auth_reject
};

// Called exactly once per get, perhaps before get returns. credentials are valid during the call.
typedef void (*mw_auth_cb)(void *ctx, const struct mw_credentials *credentials,
                           const struct mw_err *err);

// config outlives the auth.
struct mw_auth *mw_auth_new(struct mw_loop *loop, const struct mw_kubeconfig *config);
// Waiting callbacks are not called any more; a running plugin is killed.
void mw_auth_free(struct mw_auth *a);

// Fresh credentials: from memory when they are good, else after reading the file or running the
// plugin (one run serves all who wait). Returns a ticket to cancel with, 0 when cb already ran.
unsigned mw_auth_get(struct mw_auth *a, mw_auth_cb cb, void *ctx);
void mw_auth_cancel(struct mw_auth *a, unsigned ticket);
// The server answered 401 to the credentials with this serial: read or run again next time. Does
// nothing when there are newer ones already, so that many requests cause one refresh.
void mw_auth_reject(struct mw_auth *a, unsigned serial);
