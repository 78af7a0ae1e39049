// SPDX-License-Identifier: Apache-2.0
// The userdata that stand for tasks: see task_handle.c.
#pragma once

struct lua_State;
struct mw_signal;

// Adds what starts tasks and waits for them to the table on top of L (kube._core.task), and the
// methods of handles as its field methods.
void mw_bind_task_handles(struct lua_State *L);
// The signal at idx (borrowed); raises for anything else. In bind_task.c.
struct mw_signal *mw_bind_signal(struct lua_State *L, int idx);
