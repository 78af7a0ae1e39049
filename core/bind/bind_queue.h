// SPDX-License-Identifier: Apache-2.0
#pragma once

struct lua_State;
struct mw_workqueue;

// The work queue behind the value at idx, which is a script's queue or its core (queue._handle):
// for bindings that add keys without entering Lua. Borrowed; take a mw_workqueue_ref to keep it.
// Raises.
struct mw_workqueue *mw_bind_check_queue(struct lua_State *L, int idx);
