// SPDX-License-Identifier: Apache-2.0
// Arguments and wiring.
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "bind/bind.h"
#include "script/host.h"

#ifndef MW_VERSION
#define MW_VERSION "0.0.0"  // the build says which
#endif

enum { WORD_MAX = 32 };

static const char usage[] =
    "Moonwatch runs Kubernetes controllers written in Lua.\n"
    "\n"
    "Usage:\n"
    "  moonwatch run SCRIPT [options]   run a script until it ends\n"
    "  moonwatch help run               the options of run\n"
    "  moonwatch version                the version\n";

static const char usage_run[] =
    "Usage: moonwatch run SCRIPT [options]\n"
    "\n"
    "Runs a Lua script until it ends, fails, or gets SIGINT or SIGTERM.\n"
    "\n"
    "  --kubeconfig FILE     default: $KUBECONFIG, ~/.kube/config, then the pod's own account\n"
    "  --context NAME        default: the kubeconfig's current context\n"
    "  -n, --namespace NAME  for factories that name none; default: all namespaces\n"
    "  --log-level LEVEL     error, warn, info (default) or debug\n"
    "  --log-format FORMAT   text, json or auto (default: text on a terminal, else json)\n"
    "  --http1               never use HTTP/2\n"
    "  --jit                 compile Lua; a runaway loop can then not be stopped\n"
    "\n"
    "Exit status: 0 ended or stopped in order, 1 the script failed, 2 wrong arguments,\n"
    "3 no usable kubeconfig.\n";

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

// Edits between two short words; far apart when either is long.
static size_t distance(const char *a, const char *b) {
  size_t n = strlen(a), m = strlen(b);
  if (n >= WORD_MAX || m >= WORD_MAX) return WORD_MAX;
  size_t row[WORD_MAX + 1];
  for (size_t j = 0; j <= m; j++) row[j] = j;
  for (size_t i = 1; i <= n; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= m; j++) {
      size_t above = row[j];
      row[j] = least(least(above, row[j - 1]) + 1, diagonal + (a[i - 1] != b[j - 1]));
      diagonal = above;
    }
  }
  return row[m];
}

// Says that `word` is no known `kind`, and which of `known` was perhaps meant.
static int unknown(const char *kind, const char *word, const char *const *known) {
  const char *best = NULL;
  size_t best_distance = 4;
  for (; *known != NULL; known++) {
    size_t d = distance(word, *known);
    if (d >= best_distance) continue;
    best = *known;
    best_distance = d;
  }
  fprintf(stderr, "moonwatch: unknown %s '%s'", kind, word);
  if (best != NULL) fprintf(stderr, "; did you mean '%s'?", best);
  fprintf(stderr, best != NULL ? "\n" : "; see moonwatch --help\n");
  return MW_EXIT_USAGE;
}

static int usage_error(const char *problem, const char *word) {
  fprintf(stderr, "moonwatch: %s%s; see moonwatch help run\n", problem, word);
  return MW_EXIT_USAGE;
}

struct arguments {
  struct mw_host_config host;
  enum mw_log_level level;
  enum mw_log_format format;
};

static const char *const levels[] = {"error", "warn", "info", "debug", NULL};
static const char *const formats[] = {"auto", "text", "json", NULL};

// The position of word in list, or -1.
static int position(const char *word, const char *const *list) {
  for (int i = 0; list[i] != NULL; i++)
    if (strcmp(word, list[i]) == 0) return i;
  return -1;
}

enum option { KUBECONFIG, CONTEXT, NAMESPACE, SHORT_N, LOG_LEVEL, LOG_FORMAT, HTTP1, JIT };

// In the order of enum option; those from HTTP1 on take no value.
static const char *const options[] = {"--kubeconfig", "--context",   "--namespace",
                                      "-n",           "--log-level", "--log-format",
                                      "--http1",      "--jit",       NULL};

// 0, or the exit code.
static int set_option(struct arguments *a, enum option option, const char *value) {
  int found;
  switch (option) {
    case KUBECONFIG:
      a->host.kubeconfig.path = value;
      return 0;
    case CONTEXT:
      a->host.kubeconfig.context = value;
      return 0;
    case NAMESPACE:
    case SHORT_N:
      a->host.ns = value;
      return 0;
    case LOG_LEVEL:
      found = position(value, levels);
      if (found < 0) return unknown("log level", value, levels);
      a->level = (enum mw_log_level)found;
      return 0;
    case LOG_FORMAT:
      found = position(value, formats);
      if (found < 0) return unknown("log format", value, formats);
      a->format = (enum mw_log_format)found;
      return 0;
    case HTTP1:
      a->host.http1_only = true;
      return 0;
    case JIT:
      a->host.jit = true;
      return 0;
  }
  return 0;
}

// One argument, perhaps with its value in the next; moves *i. 0, or the exit code.
static int take(struct arguments *a, int argc, char **argv, int *i) {
  const char *word = argv[*i];
  if (word[0] != '-' || word[1] == '\0') {
    if (a->host.script != NULL) return usage_error("one script at a time, not also ", word);
    a->host.script = word;
    return 0;
  }
  char name[WORD_MAX];
  const char *value = strchr(word, '=');
  size_t length = value != NULL ? (size_t)(value - word) : strlen(word);
  snprintf(name, sizeof name, "%.*s", (int)least(length, WORD_MAX), word);
  int option = position(name, options);
  if (option < 0) return unknown("option", name, options);
  bool wants_value = option < HTTP1;
  if (!wants_value && value != NULL) return usage_error("no value belongs to ", name);
  if (wants_value && value == NULL && *i + 1 >= argc)
    return usage_error("a value is missing after ", name);
  if (wants_value) value = value != NULL ? value + 1 : argv[++*i];
  return set_option(a, (enum option)option, value);
}

static int run(int argc, char **argv) {
  struct arguments a = {.host = {.open = mw_bind_open}, .level = MW_LOG_INFO};
  for (int i = 0; i < argc; i++) {
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
      fputs(usage_run, stdout);
      return MW_EXIT_OK;
    }
    int code = take(&a, argc, argv, &i);
    if (code != 0) return code;
  }
  if (a.host.script == NULL) return usage_error("which script?", "");
  mw_alloc_setup();
  mw_log_setup(a.level, a.format);
  return mw_host_run(&a.host);
}

static int help(int argc, char **argv) {
  static const char *const topics[] = {"run", NULL};
  if (argc > 0 && position(argv[0], topics) < 0) return unknown("command", argv[0], topics);
  fputs(argc > 0 ? usage_run : usage, stdout);
  return MW_EXIT_OK;
}

static int version(int argc, char **argv) {
  (void)argc;
  (void)argv;
  printf("moonwatch %s\n", MW_VERSION);
  return MW_EXIT_OK;
}

int main(int argc, char **argv) {
  static const char *const commands[] = {"run",       "help", "version", "--help",
                                         "--version", "-h",   NULL};
  static int (*const functions[])(int, char **) = {run, help, version, help, version, help};
  if (argc < 2) {
    fputs(usage, stderr);
    return MW_EXIT_USAGE;
  }
  int command = position(argv[1], commands);
  if (command < 0) return unknown(argv[1][0] == '-' ? "option" : "command", argv[1], commands);
  return functions[command](argc - 2, argv + 2);
}
