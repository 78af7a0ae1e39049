// SPDX-License-Identifier: Apache-2.0
// JSON as it is written: commas and quotes are put by themselves.
//
//   struct mw_json_out o;
//   mw_json_open(&o, 64 * 1024);
//   mw_json_begin(&o, NULL, '{');
//   mw_json_put_str(&o, "name", "web");
//   mw_json_end(&o, '}');
//   if (mw_json_ok(&o)) send(mw_buf_slice(&o.text));
//   mw_json_close(&o);
//
// key is NULL within a list, and for the whole. Once something did not fit, nothing more is
// written, and mw_json_ok() says so.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"

struct mw_json_out {
  struct mw_buf text;
  bool comma;   // before what comes next
  bool failed;  // it is not whole
};

void mw_json_open(struct mw_json_out *o, size_t limit);
void mw_json_close(struct mw_json_out *o);
// Forgets what was written, keeps the memory.
void mw_json_reset(struct mw_json_out *o);
bool mw_json_ok(const struct mw_json_out *o);

void mw_json_begin(struct mw_json_out *o, const char *key, char bracket);
void mw_json_end(struct mw_json_out *o, char bracket);
// Bytes that are not UTF-8 are written as '?'. NULL is written as null.
void mw_json_put_str(struct mw_json_out *o, const char *key, const char *value);
void mw_json_put_slice(struct mw_json_out *o, const char *key, struct mw_slice value);
void mw_json_put_num(struct mw_json_out *o, const char *key, double value);
void mw_json_put_bool(struct mw_json_out *o, const char *key, bool value);
// value is JSON already.
void mw_json_put_raw(struct mw_json_out *o, const char *key, struct mw_slice value);
