// SPDX-License-Identifier: Apache-2.0
// The door for those who operate a running process: HTTP with JSON on a unix socket that only its
// owner can open. On the script loop: an answer is what is true in one turn of it, and a script
// that keeps the loop busy keeps who asks waiting.
//
//   GET  /status                        programs, informers, controllers, the lease
//   GET  /top                           the same, with rates, running, slow and failing keys
//   GET  /why?key=K&controller=C        what became of a key; of all controllers without one
//   POST /enqueue?controller=C&key=K    queues a key
//   POST /reload?script=S               reads the files now; answers when they are active, or not
//   POST /rollback?script=S&revision=R  the same with a revision that was active before
//   POST /hold?script=S&on=true         takes no revision until on=false
//
// script is the one that is meant when there are several; reload and hold are otherwise for all.
// What is meant stands in the query, percent-encoded. A failure is {"error": "a sentence"}.
#pragma once

#include "base/err.h"
#include "transport/loop.h"

struct mw_control;
struct mw_host;
struct mw_json_out;

// Listens at path, or in the default place (control_path.h) when that is "". NULL and err when it
// cannot.
struct mw_control *mw_control_new(struct mw_host *host, const char *path, struct mw_err *err);
const char *mw_control_path(const struct mw_control *c);
// Answers who waits, and removes the socket. done is called from the loop; c is freed then.
void mw_control_close(struct mw_control *c, mw_loop_cb done, void *ctx);

// Writes what GET /status answers.
void mw_control_tell(struct mw_host *host, struct mw_json_out *o);
