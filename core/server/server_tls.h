// SPDX-License-Identifier: Apache-2.0
// The server's side of TLS, and certificates made on the spot for a server that nobody signed for.
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

struct mw_server_tls;

// From PEM texts. NULL on failure.
struct mw_server_tls *mw_server_tls_new(struct mw_slice certificate, struct mw_slice key,
                                        struct mw_err *err);
void mw_server_tls_free(struct mw_server_tls *t);  // NULL is fine; not while a server uses it

// A new CA (P-256) and a certificate that it signs for these names and addresses, as PEM. The CA's
// key is thrown away.
int mw_server_certificate(const char *const *hosts, size_t count, struct mw_buf *ca,
                          struct mw_buf *certificate, struct mw_buf *key, struct mw_err *err);
