// SPDX-License-Identifier: Apache-2.0
// Errors: negative ints from one table, with an optional detail record for the person who reads it.
//
// A function that can fail returns 0 or a negative MW_E* and fills `err` when it is not NULL.
// The message is one sentence: what failed, where, and what to do about it if we know.
#pragma once

#include <stdarg.h>

// name, number, text.
#define MW_ERR_MAP(X)                                                 \
  X(EINVAL, -1, "invalid argument")                                   \
  X(EPARSE, -2, "malformed input")                                    \
  X(ELIMIT, -3, "a size or depth limit was exceeded")                 \
  X(ENOTFOUND, -4, "not found")                                       \
  X(EEXIST, -5, "already exists")                                     \
  X(ESTATE, -6, "not possible in this state")                         \
  X(ECLOSED, -7, "closed")                                            \
  X(ECANCELLED, -8, "cancelled")                                      \
  X(ETIMEOUT, -9, "timed out")                                        \
  X(EREFUSED, -10, "connection refused")                              \
  X(EEOF, -11, "the connection ended early")                          \
  X(ECONNECT, -12, "could not connect")                               \
  X(ETLS, -13, "TLS verification or handshake failed")                \
  X(EAUTH, -14, "no usable credentials")                              \
  X(EHTTP, -15, "the server answered with an error")                  \
  X(EEXPIRED, -16, "the resource version has expired (410)")          \
  X(ETOOLARGERV, -17, "the resource version is ahead of the server")  \
  X(ETHROTTLED, -18, "the server asks for fewer requests (429)")      \
  X(EINTERNAL, -19, "internal error")                                 \
  X(ESHORTWATCH, -20, "the watch ended at once and without an event") \
  X(ESCRIPT, -21, "error in a script")                                \
  X(EIO, -22, "input/output error")                                   \
  X(ENOT_LEADING, -23, "not the leader")

enum mw_errno {
  MW_OK = 0,
#define X(name, number, text) MW_##name = number,
  MW_ERR_MAP(X)
#undef X
};

enum { MW_ERR_MESSAGE_MAX = 512 };

struct mw_err {
  int code;         // MW_E*, 0 when unset
  int http_status;  // 0 when no HTTP response was involved
  char message[MW_ERR_MESSAGE_MAX];
};

// "EEXPIRED" and its text; never NULL, also for unknown codes.
const char *mw_err_name(int code);
const char *mw_err_text(int code);

// Fill *err (may be NULL) and return `code`, so that `return mw_err_set(err, ...)` reads well.
// A message longer than the buffer is cut at a UTF-8 boundary.
int mw_err_set(struct mw_err *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int mw_err_vset(struct mw_err *err, int code, const char *fmt, va_list args)
    __attribute__((format(printf, 3, 0)));
