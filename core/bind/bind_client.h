// SPDX-License-Identifier: Apache-2.0
#pragma once

struct lua_State;
struct mw_endpoint;

// The endpoint of the client at idx (absolute), valid while the client is on the stack. Where there
// is nil, that is replaced by the host's own client. Raises.
struct mw_endpoint *mw_bind_endpoint(struct lua_State *L, int idx);
