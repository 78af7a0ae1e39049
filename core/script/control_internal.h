// SPDX-License-Identifier: Apache-2.0
// The parts of the control socket and what they share: control.c (life, routes), control_status.c
// (what there is), control_ask.c (keys), control_change.c (other revisions), control_query.c (what
// was asked).
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "script/control.h"
#include "script/control_path.h"
#include "server/http_server.h"
#include "wire/json_write.h"

enum { MW_CONTROL_ANSWER_MAX = 16 * 1024 * 1024, MW_CONTROL_VALUE_MAX = 4096 };

struct mw_control_wait;  // an exchange that waits for revisions

struct mw_control {
  struct mw_host *host;
  struct mw_http_server *http;
  struct mw_control_wait *waits;
  bool look_posted;
  bool closed;  // the server is; a look may still be posted
  char path[MW_CONTROL_PATH_MAX];
  mw_loop_cb done;
  void *done_ctx;
};

typedef void (*mw_control_serve)(struct mw_control *c, struct mw_exchange *x);

// control.c
// Answers {"error": sentence}.
void mw_control_refuse(struct mw_exchange *x, unsigned status, const char *sentence);
// Sends what o has, and closes it.
void mw_control_answer(struct mw_exchange *x, struct mw_json_out *o);
// Nothing points to it any more.
void mw_control_over(struct mw_control *c);

// control_status.c
void mw_control_status(struct mw_control *c, struct mw_exchange *x);
void mw_control_top(struct mw_control *c, struct mw_exchange *x);

// control_ask.c
void mw_control_why(struct mw_control *c, struct mw_exchange *x);
void mw_control_enqueue(struct mw_control *c, struct mw_exchange *x);

// control_change.c
void mw_control_reload(struct mw_control *c, struct mw_exchange *x);
void mw_control_rollback(struct mw_control *c, struct mw_exchange *x);
void mw_control_hold(struct mw_control *c, struct mw_exchange *x);
// Hears of the programs from now on.
void mw_control_listen(struct mw_control *c);
// The client has gone.
void mw_control_forget(struct mw_control *c, struct mw_exchange *x);
// Answers all that wait: it ends.
void mw_control_give_up(struct mw_control *c);

// control_query.c
// A parameter of the query, decoded: 1; 0 when there is none or it is empty; MW_EINVAL when it
// cannot be decoded or is too long, and the exchange has been answered.
int mw_control_parameter(struct mw_exchange *x, const char *name, char out[MW_CONTROL_VALUE_MAX]);
