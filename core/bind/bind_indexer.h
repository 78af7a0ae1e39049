// SPDX-License-Identifier: Apache-2.0
#pragma once

struct lua_State;
struct mw_handle;

// Pushes a reader of the store of the handle's informer, with the handle's indexes (takes its own
// +1). ns "" or NULL: all namespaces.
void mw_bind_push_reader(struct lua_State *L, struct mw_handle *h, const char *ns);
