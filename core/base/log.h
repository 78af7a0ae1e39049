// SPDX-License-Identifier: Apache-2.0
// Structured logs on stderr: text for a terminal, JSON otherwise. One line each; what a text of
// many lines (a traceback) has behind its first stands indented below, for a terminal. Thread-safe.
//
//   mw_log(MW_LOG_WARN, "watch ended", MW_STR("resource", res), MW_INT("events", n));
//
// Fields are evaluated only when the level is on. Values are copied before the call returns; a text
// longer than 4 KiB is cut, and what is not UTF-8 becomes U+FFFD, so that a line is always whole.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum mw_log_level { MW_LOG_ERROR = 0, MW_LOG_WARN, MW_LOG_INFO, MW_LOG_DEBUG };
enum mw_log_format { MW_LOG_AUTO = 0, MW_LOG_TEXT, MW_LOG_JSON };
enum mw_log_kind { MW_FIELD_STR = 0, MW_FIELD_INT, MW_FIELD_NUM, MW_FIELD_BOOL, MW_FIELD_RAW };

struct mw_log_field {
  const char *key;
  enum mw_log_kind kind;
  struct mw_slice str;  // MW_FIELD_STR; MW_FIELD_RAW: JSON text
  int64_t i;            // MW_FIELD_INT, MW_FIELD_BOOL
  double num;           // MW_FIELD_NUM
};

#define MW_STR(k, s) ((struct mw_log_field){.key = (k), .str = mw_slice_str(s)})
#define MW_SLC(k, s) ((struct mw_log_field){.key = (k), .str = (s)})
#define MW_INT(k, v) ((struct mw_log_field){.key = (k), .kind = MW_FIELD_INT, .i = (int64_t)(v)})
#define MW_NUM(k, v) ((struct mw_log_field){.key = (k), .kind = MW_FIELD_NUM, .num = (v)})
#define MW_BOOL(k, v) ((struct mw_log_field){.key = (k), .kind = MW_FIELD_BOOL, .i = (v)})

// Set once at start, before threads. AUTO means TEXT on a terminal, JSON otherwise.
void mw_log_setup(enum mw_log_level level, enum mw_log_format format);
void mw_log_set_level(enum mw_log_level level);
enum mw_log_level mw_log_get_level(void);
// "error", "warn", "info", "debug".
const char *mw_log_level_name(enum mw_log_level level);
// The level of that name, -1 when there is none.
int mw_log_level_find(struct mw_slice name);
bool mw_log_on(enum mw_log_level level);
void mw_log_fields(enum mw_log_level level, const char *message, const struct mw_log_field *fields,
                   size_t count);

// A line that stays at the bottom of a terminal and is redrawn (progress). NULL clears it.
// Does nothing when stderr is not a terminal or the format is JSON.
void mw_log_status(const char *line);
// Takes the line away until it is drawn again, so that something else can be printed there.
void mw_log_hide_status(void);

#define mw_log(level, message, ...)                                            \
  do {                                                                         \
    enum mw_log_level mw_level_ = (level);                                     \
    if (mw_log_on(mw_level_)) {                                                \
      const struct mw_log_field mw_fields_[] = {{.key = NULL}, ##__VA_ARGS__}; \
      mw_log_fields(mw_level_, (message), mw_fields_ + 1,                      \
                    sizeof mw_fields_ / sizeof mw_fields_[0] - 1);             \
    }                                                                          \
  } while (0)
