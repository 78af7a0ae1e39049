// SPDX-License-Identifier: Apache-2.0
#pragma once

struct lua_State;
struct mw_informer;

// Pushes a reader of the informer's store (takes its own +1). ns "" or NULL: all namespaces.
void mw_bind_push_reader(struct lua_State *L, struct mw_informer *inf, const char *ns);
