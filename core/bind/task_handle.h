// SPDX-License-Identifier: Apache-2.0
// The userdata that stand for tasks: see task_handle.c.
#pragma once

struct lua_State;

// Adds start, check, join and remaining to the table on top of L (kube._core.task).
void mw_bind_task_handles(struct lua_State *L);
