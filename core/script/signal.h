// SPDX-License-Identifier: Apache-2.0
// Something that tasks wait for and that may happen many times. Script thread only. Refcounted:
// whoever waits, and a delivery under way, hold it too.
#pragma once

struct lua_State;
struct mw_loop;
struct mw_signal;

// +1 for the caller.
struct mw_signal *mw_signal_new(struct mw_loop *loop);
struct mw_signal *mw_signal_ref(struct mw_signal *s);
void mw_signal_unref(struct mw_signal *s);

// Wakes all who wait, from the loop, never in here.
void mw_signal_fire(struct mw_signal *s);
// An await function: `true, fired` (false when timeout seconds passed first; < 0: no timeout) or
// `false, err`. what is for messages. Raises where awaiting is impossible.
int mw_signal_wait(struct lua_State *L, struct mw_signal *s, double timeout, const char *what);
