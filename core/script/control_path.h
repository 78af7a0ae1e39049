// SPDX-License-Identifier: Apache-2.0
// Where a process listens for those who operate it, and how they find it:
// $XDG_RUNTIME_DIR/moonwatch/PID.sock, else moonwatch-UID/PID.sock in $TMPDIR or /tmp. The
// directory is ours and closed to others; what a process that has died left there goes when
// somebody looks.
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

enum { MW_CONTROL_PATH_MAX = 108, MW_CONTROL_FOUND_MAX = 64 };

// The path for this process, in a directory that is made if it is not there. MW_EIO when there is
// none that can be trusted: err names it.
int mw_control_default_path(char out[MW_CONTROL_PATH_MAX], struct mw_err *err)
    __attribute__((warn_unused_result));
// Removes a socket of ours at which nobody listens any more. Anything else stays.
void mw_control_remove_stale(const char *path);

struct mw_control_found {
  pid_t pid;
  char path[MW_CONTROL_PATH_MAX];
};
// The running processes of this user in the default places, by pid, at most MW_CONTROL_FOUND_MAX;
// how many.
size_t mw_control_find(struct mw_control_found *out);
