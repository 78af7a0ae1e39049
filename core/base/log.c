// SPDX-License-Identifier: Apache-2.0
// One buffer per call, one write per line, so lines of two threads never mix.
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

enum { VALUE_LIMIT = 4 * 1024, LINE_LIMIT = 1024 * 1024, STATUS_LIMIT = 256 };

static atomic_int current_level = MW_LOG_INFO;
static atomic_bool as_json;
static bool on_terminal;
static pthread_mutex_t out_lock = PTHREAD_MUTEX_INITIALIZER;
static char status_line[STATUS_LIMIT];

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static const char *const level_colours[] = {"\033[31m", "\033[33m", "\033[36m", "\033[2m"};

void mw_log_setup(enum mw_log_level level, enum mw_log_format format) {
  on_terminal = isatty(STDERR_FILENO) == 1;
  atomic_store(&as_json, format == MW_LOG_JSON || (format == MW_LOG_AUTO && !on_terminal));
  atomic_store(&current_level, (int)level);
}

void mw_log_set_level(enum mw_log_level level) { atomic_store(&current_level, (int)level); }

enum mw_log_level mw_log_get_level(void) { return (enum mw_log_level)atomic_load(&current_level); }

const char *mw_log_level_name(enum mw_log_level level) { return level_names[level]; }

int mw_log_level_find(struct mw_slice name) {
  for (int i = MW_LOG_ERROR; i <= MW_LOG_DEBUG; i++) {
    if (mw_slice_is(name, level_names[i])) return i;
  }
  return -1;
}

bool mw_log_on(enum mw_log_level level) {
  return (int)level <= atomic_load_explicit(&current_level, memory_order_relaxed);
}

// A line that is too long is cut, never lost: appends past the limit are ignored on purpose.
static void put(struct mw_buf *b, const char *p, size_t n) {
  if (mw_buf_add(b, p, n) < 0 && b->n < b->limit) {
    size_t room = b->limit - b->n;
    if (mw_buf_add(b, p, room < n ? room : n) < 0) return;
  }
}

static void puts_(struct mw_buf *b, const char *s) { put(b, s, strlen(s)); }

// The length of the UTF-8 sequence at p, 0 when it is none. Overlong forms pass: a log is no
// parser.
static size_t sequence_at(const char *p, size_t n) {
  unsigned char lead = (unsigned char)p[0];
  size_t len = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (lead > 0xF4 || len > n) return 0;
  for (size_t i = 1; i < len; i++) {
    if (((unsigned char)p[i] & 0xC0) != 0x80) return 0;
  }
  return len;
}

static void put_escaped(struct mw_buf *b, unsigned char c) {
  char esc[8];
  int n = c == '"' || c == '\\' ? snprintf(esc, sizeof esc, "\\%c", c)
          : c == '\n'           ? snprintf(esc, sizeof esc, "\\n")
          : c >= 0x80           ? snprintf(esc, sizeof esc, "\\ufffd")
                                : snprintf(esc, sizeof esc, "\\u%04x", c);
  put(b, esc, (size_t)n);
}

static void put_json_string(struct mw_buf *b, struct mw_slice s) {
  bool cut = s.n > VALUE_LIMIT;
  if (cut) s.n = VALUE_LIMIT;
  put(b, "\"", 1);
  for (size_t i = 0; i < s.n;) {
    unsigned char c = (unsigned char)s.p[i];
    size_t len = sequence_at(s.p + i, s.n - i);
    if (len == 0 || c < 0x20 || c == '"' || c == '\\') {
      put_escaped(b, c);
      i++;
    } else {
      put(b, s.p + i, len);
      i += len;
    }
  }
  puts_(b, cut ? "...\"" : "\"");
}

static void put_value(struct mw_buf *b, const struct mw_log_field *f, bool json) {
  char number[40];
  switch (f->kind) {
    case MW_FIELD_STR: {
      bool plain = !json && f->str.n > 0;
      for (size_t i = 0; plain && i < f->str.n; i++) {
        unsigned char c = (unsigned char)f->str.p[i];
        plain = c > ' ' && c != '"' && c != '=' && c != 0x7F;
      }
      if (plain) {
        put(b, f->str.p, f->str.n);
      } else {
        put_json_string(b, f->str);
      }
      return;
    }
    case MW_FIELD_INT:
      snprintf(number, sizeof number, "%" PRId64, f->i);
      break;
    case MW_FIELD_NUM:
      if (isfinite(f->num)) {
        snprintf(number, sizeof number, "%.6g", f->num);
      } else {
        snprintf(number, sizeof number, json ? "null" : "%f", f->num);
      }
      break;
    case MW_FIELD_BOOL:
      snprintf(number, sizeof number, "%s", f->i ? "true" : "false");
      break;
    case MW_FIELD_RAW:
      put(b, f->str.p, f->str.n);
      return;
  }
  puts_(b, number);
}

static void put_time(struct mw_buf *b, bool json) {
  double wall = mw_clock_wall();
  time_t seconds = (time_t)wall;
  int ms = (int)((wall - (double)seconds) * 1000);
  struct tm tm;
  char stamp[40];
  size_t n;
  if (json) {
    gmtime_r(&seconds, &tm);
    n = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(stamp + n, sizeof stamp - n, ".%03dZ", ms);
  } else {
    localtime_r(&seconds, &tm);
    n = strftime(stamp, sizeof stamp, "%H:%M:%S", &tm);
    snprintf(stamp + n, sizeof stamp - n, ".%03d", ms);
  }
  puts_(b, stamp);
}

static void format_json(struct mw_buf *b, enum mw_log_level level, const char *message,
                        const struct mw_log_field *fields, size_t count) {
  puts_(b, "{\"time\":\"");
  put_time(b, true);
  puts_(b, "\",\"level\":\"");
  puts_(b, level_names[level]);
  puts_(b, "\",\"msg\":");
  put_json_string(b, mw_slice_str(message));
  for (size_t i = 0; i < count; i++) {
    put(b, ",", 1);
    put_json_string(b, mw_slice_str(fields[i].key));
    put(b, ":", 1);
    put_value(b, &fields[i], true);
  }
  put(b, "}", 1);
}

// Where a text (a traceback) has further lines: the rest behind the first newline, else empty.
static struct mw_slice further_lines(const struct mw_log_field *f) {
  const char *newline =
      f->kind == MW_FIELD_STR && f->str.n > 0 ? memchr(f->str.p, '\n', f->str.n) : NULL;
  if (newline == NULL) return (struct mw_slice){0};
  return mw_slice(newline + 1, (size_t)(f->str.p + f->str.n - newline - 1));
}

// The lines, each indented below the log line. Nothing in them can act on the terminal.
static void put_lines(struct mw_buf *b, struct mw_slice s) {
  static const char indent[] = "\n    ";
  if (s.n > VALUE_LIMIT) s.n = VALUE_LIMIT;
  puts_(b, indent);
  for (size_t i = 0; i < s.n;) {
    unsigned char c = (unsigned char)s.p[i];
    size_t len = sequence_at(s.p + i, s.n - i);
    if (c == '\n' || c == '\t') {
      puts_(b, c == '\n' ? indent : "  ");
    } else if (len == 0 || c < 0x20 || c == 0x7F) {
      put_escaped(b, c);
    } else {
      put(b, s.p + i, len);
    }
    i += len > 0 ? len : 1;
  }
}

static void format_text(struct mw_buf *b, enum mw_log_level level, const char *message,
                        const struct mw_log_field *fields, size_t count) {
  if (on_terminal) puts_(b, level_colours[level]);
  put_time(b, false);
  put(b, " ", 1);
  puts_(b, level_names[level]);
  puts_(b, strlen(level_names[level]) == 4 ? "  " : " ");
  if (on_terminal) puts_(b, "\033[0m");
  puts_(b, message);
  for (size_t i = 0; i < count; i++) {
    put(b, " ", 1);
    puts_(b, fields[i].key);
    put(b, "=", 1);
    struct mw_log_field first = fields[i];
    size_t rest = further_lines(&first).n;
    if (rest > 0) first.str.n -= rest + 1;
    put_value(b, &first, false);
  }
  for (size_t i = 0; i < count; i++) {
    struct mw_slice rest = further_lines(&fields[i]);
    if (rest.n > 0) put_lines(b, rest);
  }
}

// A slow reader of our stderr holds us up for a second at most; then the line is lost.
static void write_all(const char *p, size_t n) {
  while (n > 0) {
    ssize_t w = write(STDERR_FILENO, p, n);
    if (w > 0) {
      p += w;
      n -= (size_t)w;
      continue;
    }
    if (w < 0 && errno == EINTR) continue;
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (w == 0 || errno != EAGAIN || poll(&out, 1, 1000) <= 0) return;
  }
}

void mw_log_fields(enum mw_log_level level, const char *message, const struct mw_log_field *fields,
                   size_t count) {
  struct mw_buf b;
  mw_buf_init(&b, LINE_LIMIT);
  bool json = atomic_load(&as_json);
  bool pretty = on_terminal && !json;
  if (pretty) puts_(&b, "\r\033[K");
  if (json) {
    format_json(&b, level, message, fields, count);
  } else {
    format_text(&b, level, message, fields, count);
  }
  b.limit = LINE_LIMIT + STATUS_LIMIT + 1;
  put(&b, "\n", 1);
  pthread_mutex_lock(&out_lock);
  if (pretty) puts_(&b, status_line);
  write_all(b.p, b.n);
  pthread_mutex_unlock(&out_lock);
  mw_buf_deinit(&b);
}

void mw_log_status(const char *line) {
  if (!on_terminal || atomic_load(&as_json)) return;
  pthread_mutex_lock(&out_lock);
  snprintf(status_line, sizeof status_line, "%s", line != NULL ? line : "");
  write_all("\r\033[K", 4);
  write_all(status_line, strlen(status_line));
  pthread_mutex_unlock(&out_lock);
}

void mw_log_hide_status(void) {
  if (!on_terminal) return;
  pthread_mutex_lock(&out_lock);
  if (status_line[0] != '\0') write_all("\r\033[K", 4);
  pthread_mutex_unlock(&out_lock);
}
