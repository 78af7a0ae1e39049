// SPDX-License-Identifier: Apache-2.0
// What GET /status and GET /top answer.
#include <unistd.h>

#include "base/clock.h"
#include "cache/factory.h"
#include "script/control_internal.h"
#include "script/host.h"
#include "script/operate.h"
#include "script/program.h"
#include "wire/json_write.h"

#ifndef MW_VERSION
#define MW_VERSION "0.0.0"  // the build says which
#endif

enum { CONTROLLERS_MAX = 1024 * 1024 };

// function: that of lua/kube/_operate.lua which tells of the controllers.
static void tell_controllers(struct mw_program *p, const char *function, struct mw_json_out *o) {
  struct mw_generation *g = mw_program_active(p);
  if (g == NULL) return;
  struct mw_err err;
  struct mw_buf text;
  mw_buf_init(&text, CONTROLLERS_MAX);
  if (mw_operate_call(g, function, NULL, 0, &text, &err) == 0) {
    mw_json_put_raw(o, "controllers", mw_buf_slice(&text));
  } else {
    mw_json_put_str(o, "controllers_error", err.message);
  }
  mw_buf_deinit(&text);
}

static void tell_informer(void *ctx, struct mw_informer *inf) {
  struct mw_json_out *o = ctx;
  if (!mw_informer_is_started(inf)) return;
  struct mw_informer_stats stats;
  mw_informer_stats(inf, &stats);
  mw_json_begin(o, NULL, '{');
  mw_json_put_str(o, "name", mw_informer_name(inf));
  if (mw_informer_namespace(inf)[0] != '\0')
    mw_json_put_str(o, "namespace", mw_informer_namespace(inf));
  mw_json_put_bool(o, "synced", mw_informer_has_synced(inf));
  mw_json_put_num(o, "objects", (double)stats.store.objects);
  mw_json_put_num(o, "bytes", (double)(stats.store.object_bytes + stats.store.map_bytes));
  mw_json_put_num(o, "events", (double)stats.reflector.events);
  mw_json_put_num(o, "lists", (double)stats.reflector.lists);
  if (stats.last_error[0] != '\0') mw_json_put_str(o, "last_error", stats.last_error);
  mw_json_end(o, '}');
}

static void tell_lease(struct mw_host *host, struct mw_json_out *o) {
  struct mw_lease *lease = mw_leader_lease(mw_host_leader(host));
  if (lease == NULL) return;
  const struct mw_lease_config *config = mw_lease_get_config(lease);
  mw_json_begin(o, "lease", '{');
  mw_json_put_str(o, "namespace", config->ns);
  mw_json_put_str(o, "name", config->name);
  mw_json_put_str(o, "identity", config->identity);
  mw_json_put_bool(o, "leading", mw_leader_is_leading(mw_host_leader(host)));
  mw_json_put_str(o, "holder", mw_lease_holder(lease));
  mw_json_end(o, '}');
}

static void tell(struct mw_host *host, const char *function, struct mw_json_out *o) {
  mw_json_begin(o, NULL, '{');
  mw_json_put_num(o, "pid", getpid());
  mw_json_put_str(o, "version", MW_VERSION);
  mw_json_put_num(o, "time", mw_clock_wall());
  mw_json_begin(o, "scripts", '[');
  for (size_t i = 0; i < mw_host_program_count(host); i++) {
    struct mw_program *p = mw_host_program(host, i);
    mw_json_begin(o, NULL, '{');
    mw_program_tell(p, o);
    tell_controllers(p, function, o);
    mw_json_end(o, '}');
  }
  mw_json_end(o, ']');
  mw_json_begin(o, "informers", '[');
  mw_factory_each(mw_host_factory(host), tell_informer, o);
  mw_json_end(o, ']');
  tell_lease(host, o);
  mw_json_end(o, '}');
}

void mw_control_tell(struct mw_host *host, struct mw_json_out *o) { tell(host, "controllers", o); }

static void serve(struct mw_control *c, struct mw_exchange *x, const char *function) {
  struct mw_json_out o;
  mw_json_open(&o, MW_CONTROL_ANSWER_MAX);
  tell(c->host, function, &o);
  mw_control_answer(x, &o);
}

void mw_control_status(struct mw_control *c, struct mw_exchange *x) { serve(c, x, "controllers"); }

void mw_control_top(struct mw_control *c, struct mw_exchange *x) { serve(c, x, "top"); }
