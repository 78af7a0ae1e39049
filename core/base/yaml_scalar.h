// SPDX-License-Identifier: Apache-2.0
// What a plain YAML scalar means, as go-yaml v2 (and with it the API server and kubectl) reads it:
// the words and numbers of YAML 1.1, without base 60. Knows no Lua.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum mw_yaml_kind {
  MW_YAML_STRING = 0,
  MW_YAML_NULL,
  MW_YAML_BOOL,
  MW_YAML_INT,    // i
  MW_YAML_UINT,   // u: beyond INT64_MAX
  MW_YAML_FLOAT,  // d, perhaps not finite
  MW_YAML_MERGE,  // "<<"
  MW_YAML_TIME,   // read as a string, but written in quotes
};

struct mw_yaml_scalar {
  enum mw_yaml_kind kind;
  bool b;
  int64_t i;
  uint64_t u;
  double d;
};

struct mw_yaml_scalar mw_yaml_resolve(struct mw_slice text);
