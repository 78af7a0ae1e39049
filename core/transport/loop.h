// SPDX-License-Identifier: Apache-2.0
// A libuv loop with a door for other threads.
//
// A loop belongs to the thread that runs it. Only mw_loop_post() may be called from elsewhere.
// Posted calls run on the loop's thread, in the order in which they were posted.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct mw_loop;

typedef void (*mw_loop_cb)(void *arg);

struct mw_loop *mw_loop_new(const char *name);
// The loop must not be running. Runs what is still posted, closes what it owns and asserts that no
// foreign handle is left.
void mw_loop_free(struct mw_loop *l);

uv_loop_t *mw_loop_uv(struct mw_loop *l);

// Runs on this thread until mw_loop_stop.
void mw_loop_run(struct mw_loop *l);
// Runs one turn; blocks for at most timeout_ms (0: not at all). For tests and for waiting.
void mw_loop_turn(struct mw_loop *l, unsigned timeout_ms);
// Runs the loop on a thread of its own / stops and joins that thread.
int mw_loop_start_thread(struct mw_loop *l) __attribute__((warn_unused_result));
void mw_loop_join_thread(struct mw_loop *l);
// Makes mw_loop_run return after the current turn. Any thread.
void mw_loop_stop(struct mw_loop *l);

// Calls cb(arg) on the loop's thread, soon. Any thread.
void mw_loop_post(struct mw_loop *l, mw_loop_cb cb, void *arg);
// Posts and waits until the call returned. Not from the loop's own thread unless the loop is not
// running in a thread, in which case it is called directly.
void mw_loop_call(struct mw_loop *l, mw_loop_cb cb, void *arg);

// A one-shot timer that owns its uv handle: freed when it fired or was cancelled.
struct mw_timer;
// seconds >= 0. cb runs once unless cancelled.
struct mw_timer *mw_timer_start(struct mw_loop *l, double seconds, mw_loop_cb cb, void *arg);
// Sets *t to NULL; cb will not run. A NULL *t is fine. Within cb the timer is gone already: cb
// must clear its owner's pointer first.
void mw_timer_cancel(struct mw_timer **t);
