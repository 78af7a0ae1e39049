// SPDX-License-Identifier: Apache-2.0
// Predicates on objects as lua/kube/_predicate.lua hands them over:
//   {selector=, namespace=, {path=|label=|owner=, values={...}, negate=}, ...}
#pragma once

struct lua_State;
struct mw_predicate;

// Fills p from the table at idx. Raises with what is wrong; p stays whole then.
void mw_bind_read_predicate(struct lua_State *L, int idx, struct mw_predicate *p);
