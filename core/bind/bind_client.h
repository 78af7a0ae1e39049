// SPDX-License-Identifier: Apache-2.0
#pragma once

struct lua_State;
struct mw_endpoint;

// The endpoint of the client at idx, or the host's default when there is none: +1. Raises.
struct mw_endpoint *mw_bind_endpoint(struct lua_State *L, int idx);
