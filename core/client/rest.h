// SPDX-License-Identifier: Apache-2.0
// One request to an API server and its whole answer: what verbs are made of.
//
// It is begun and ends on the script thread; the transfer is on the ingest thread, over the
// connections that the informers use. The answer's bytes are collected there and change hands, so
// that the script thread finds them in one piece and copies nothing.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "client/fence.h"
#include "transport/http.h"
#include "transport/runtime.h"

enum { MW_REST_BODY_MAX = 64 * 1024 * 1024, MW_REST_RUNNING_MAX = 64 };

struct mw_rest;

// The requests of one host. MW_REST_RUNNING_MAX of them are under way at once; others wait for
// their turn in the order in which they were begun, which is part of their time.
struct mw_rest_pool;
struct mw_rest_pool *mw_rest_pool_new(const struct mw_runtime *runtime);
// Every request was told or cancelled.
void mw_rest_pool_free(struct mw_rest_pool *p);
// Whether any is under way or waits.
bool mw_rest_pool_is_busy(const struct mw_rest_pool *p);
// The fence before its writes, which are requests that are neither GET, HEAD nor OPTIONS. One that
// is closed ends them with ENOT_LEADING, and nothing was sent; one that closes while such a request
// is under way ends it within milliseconds with ETIMEOUT, because nobody knows what became of it.
// Borrowed.
struct mw_fence *mw_rest_pool_fence(struct mw_rest_pool *p);

struct mw_rest_result {
  struct mw_err err;   // code 0: an answer arrived whole, whatever its status
  int status;          // 0 without an answer
  struct mw_buf head;  // "Name: value\r\n" for each header
  struct mw_buf body;  // a longer one than allowed is ELIMIT
};

// On the script thread, once, never inside mw_rest_start. The result is valid during the call; a
// buffer of it may be taken over (and must then be empty afterwards). The request is gone then.
typedef void (*mw_rest_cb)(void *ctx, struct mw_rest_result *result);

// Begins a request. The options are copied; any_status and keep_head of them are set here. Takes
// its own reference of the endpoint. unfenced: it changes nothing that replicas share, or is not
// for an API server at all, and passes the fence whatever its method. The answer's body may have
// body_max bytes; 0: MW_REST_BODY_MAX.
struct mw_rest *mw_rest_start(struct mw_rest_pool *pool, struct mw_endpoint *endpoint,
                              const struct mw_request_options *options, bool unfenced,
                              size_t body_max, mw_rest_cb cb, void *ctx);
// Ends the transfer, soon, and calls nobody. Sets *r to NULL; a NULL *r is fine.
void mw_rest_cancel(struct mw_rest **r);
