// SPDX-License-Identifier: Apache-2.0
// JSON as YAML, in the style of go-yaml v2: block style, lists not indented under their key, a
// string in quotes only when it would read as something else without. Knows no Lua.
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

// Appends the JSON value as one YAML document.
int mw_yaml_emit(struct mw_slice json, struct mw_buf *out, struct mw_err *err);
