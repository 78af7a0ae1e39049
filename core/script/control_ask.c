// SPDX-License-Identifier: Apache-2.0
// Questions about keys, which only the scripts themselves can answer.
#include "base/clock.h"
#include "script/control_internal.h"
#include "script/host.h"
#include "script/operate.h"
#include "script/program.h"

enum { ARGS_MAX = 3 + 2 * MW_PROGRAM_HISTORY };

// Asks one script: the two texts, then its revision, and what the revisions before it did.
static int ask(struct mw_program *p, const char *function, const char *const args[2],
               struct mw_buf *out, struct mw_err *err) {
  struct mw_generation *g = mw_program_active(p);
  if (g == NULL) return mw_err_set(err, MW_ECLOSED, "the script has ended");
  const char *all[ARGS_MAX] = {args[0], args[1], mw_program_revision(p)};
  size_t count = 3 + mw_program_past(p, all + 3);
  return mw_operate_call(g, function, all, count, out, err);
}

// Asks each script, and writes what those answered that know what is meant; how many did. err: of
// the first one that did not.
static size_t ask_all(struct mw_control *c, const char *function, const char *const args[2],
                      struct mw_json_out *o, struct mw_err *err) {
  size_t answers = 0;
  for (size_t i = 0; i < mw_host_program_count(c->host); i++) {
    struct mw_program *p = mw_host_program(c->host, i);
    struct mw_err failure = {.code = 0};
    struct mw_buf text;
    mw_buf_init(&text, MW_CONTROL_ANSWER_MAX);
    if (ask(p, function, args, &text, &failure) == 0) {
      mw_json_begin(o, NULL, '{');
      mw_json_put_str(o, "script", mw_program_path(p));
      mw_json_put_str(o, "revision", mw_program_revision(p));
      mw_json_put_raw(o, "controllers", mw_buf_slice(&text));
      mw_json_end(o, '}');
      answers++;
    }
    if (failure.code != 0 && err->code == 0) *err = failure;
    mw_buf_deinit(&text);
  }
  return answers;
}

static void serve(struct mw_control *c, struct mw_exchange *x, const char *function,
                  const char *const args[2]) {
  struct mw_json_out o;
  struct mw_err err = {.code = 0};
  mw_json_open(&o, MW_CONTROL_ANSWER_MAX);
  mw_json_begin(&o, NULL, '{');
  mw_json_put_num(&o, "time", mw_clock_wall());
  mw_json_begin(&o, "scripts", '[');
  size_t answers = ask_all(c, function, args, &o, &err);
  mw_json_end(&o, ']');
  mw_json_end(&o, '}');
  if (answers > 0) {
    mw_control_answer(x, &o);
    return;
  }
  mw_json_close(&o);
  mw_control_refuse(x, err.code == MW_EINVAL ? 404 : 500, err.message);
}

void mw_control_why(struct mw_control *c, struct mw_exchange *x) {
  char key[MW_CONTROL_VALUE_MAX], controller[MW_CONTROL_VALUE_MAX];
  int has_key = mw_control_parameter(x, "key", key);
  int named = has_key < 0 ? has_key : mw_control_parameter(x, "controller", controller);
  if (named < 0) return;
  if (has_key == 0) {
    mw_control_refuse(x, 400, "which key?");
    return;
  }
  serve(c, x, "why", (const char *const[]){key, named > 0 ? controller : NULL});
}

void mw_control_enqueue(struct mw_control *c, struct mw_exchange *x) {
  char key[MW_CONTROL_VALUE_MAX], controller[MW_CONTROL_VALUE_MAX];
  int has_key = mw_control_parameter(x, "key", key);
  int named = has_key < 0 ? has_key : mw_control_parameter(x, "controller", controller);
  if (named < 0) return;
  if (has_key == 0 || named == 0) {
    mw_control_refuse(x, 400, "which controller and key?");
    return;
  }
  serve(c, x, "enqueue", (const char *const[]){controller, key});
}
