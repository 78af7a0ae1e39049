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
};

// Strings are argv's. NULL and 0 mean not given.
struct mw_options {
  enum mw_command command;  // NONE: all is said, end with `code`
  int code;
  struct mw_host_config host;  // scripts, kubeconfig, namespace, jit, http1
  enum mw_log_level level;
  enum mw_log_format format;
  bool sandbox;  // run --sandbox
  const char *listen;
  const char *kubeconfig_out;
  const char *data;
  const char *token;
  const char *output;  // of check and rbac
  const char *name;    // of rbac: of the role
  // Of test: specs, then what is for busted; of the others: scripts. Owned.
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
void mw_options_deinit(struct mw_options *o);
