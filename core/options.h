// SPDX-License-Identifier: Apache-2.0
// The command line: what was asked for, and what to say when it is not understood.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "script/host.h"

enum mw_command {
  MW_COMMAND_NONE = 0,
  MW_COMMAND_RUN = 1,
  MW_COMMAND_SANDBOX = 2,
  MW_COMMAND_TEST = 4,
  MW_COMMAND_CHECK = 8,
  MW_COMMAND_RBAC = 16,
  MW_COMMAND_STATUS = 32,
  MW_COMMAND_RELOAD = 64,
  MW_COMMAND_ROLLBACK = 128,
  MW_COMMAND_HOLD = 256,
  MW_COMMAND_WHY = 512,
  MW_COMMAND_ENQUEUE = 1024,
  MW_COMMAND_TOP = 2048,
  // Those that talk to a running process.
  MW_COMMAND_OPERATE = MW_COMMAND_STATUS | MW_COMMAND_RELOAD | MW_COMMAND_ROLLBACK |
                       MW_COMMAND_HOLD | MW_COMMAND_WHY | MW_COMMAND_ENQUEUE | MW_COMMAND_TOP,
};

// Strings are argv's. NULL and 0 mean not given.
struct mw_options {
  enum mw_command command;  // NONE: all is said, end with `code`
  int code;
  struct mw_host_config host;  // scripts, kubeconfig, namespace, http1
  enum mw_log_level level;
  enum mw_log_format format;
  bool sandbox;  // run --sandbox
  const char *listen;
  const char *kubeconfig_out;
  const char *data;
  const char *token;
  const char *output;  // of check and rbac
  const char *name;    // of rbac: of the role
  // Of those that talk to a running process, which host.control may name, too.
  const char *pid, *script, *controller;
  bool once;
  // Of test: specs, then what is for busted; of run, check and rbac: scripts. Owned.
  const char **words;
  size_t word_count;
  const char **apply;  // apply_count paths; owned
  size_t apply_count;
  bool plain_http;
  bool allow_remote;
  bool has_seed;
  double seed;
};

// Reads the arguments. Help, the version and complaints are printed in here.
void mw_options_read(struct mw_options *o, int argc, char **argv);
const char *mw_options_word(enum mw_command command);  // "status"
void mw_options_deinit(struct mw_options *o);
