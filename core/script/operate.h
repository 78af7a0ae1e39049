// SPDX-License-Identifier: Apache-2.0
// The door to lua/kube/_operate.lua of a generation: what only the script's own side knows of its
// controllers. Script thread only.
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct mw_generation;

// Calls a function of it with texts (NULL: nil), and appends the text that it returns. MW_EINVAL:
// what was asked for is not there, and err says so in a sentence for who asked; MW_ESCRIPT: it
// failed.
int mw_operate_call(struct mw_generation *g, const char *function, const char *const *args,
                    size_t count, struct mw_buf *out, struct mw_err *err)
    __attribute__((warn_unused_result));
