// SPDX-License-Identifier: Apache-2.0
// Label selectors as Lua writes them: a string, a map of labels, or a LabelSelector
// (matchLabels, matchExpressions).
#pragma once

struct lua_State;
struct mw_selector;

// Pushes a userdata that owns the selector made from the value at idx. Raises with what is wrong.
struct mw_selector **mw_bind_push_selector(struct lua_State *L, int idx);
