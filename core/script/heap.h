// SPDX-License-Identifier: Apache-2.0
// The memory of a Lua state: counted, and bounded by a limit.
//
// The limit is for what the code of a script takes. When that passes it, the heap asks for an
// interrupt: at the next instruction mw_heap_check collects all garbage and, when that does not
// help, raises an error there, with its line, as any other. So no C function is left half done for
// the sake of small things. One step may therefore go past the limit, by up to a quarter; whatever
// needs a large piece beyond that gets Lua's own "not enough memory" at once. Compiled code sees no
// interrupts: there large pieces are refused at the limit, and small ones at half as much again.
//
// What the host itself puts into the state (results, events) is counted, but never refused: most of
// it happens where nobody could catch the error. Who is in charge is what mw_heap_enforce says.
#pragma once

#include <stddef.h>

struct lua_State;
struct mw_heap;

#define MW_HEAP_DEFAULT ((size_t)64 << 20)

// A new state; limit in bytes, 0: none. Never NULL.
struct lua_State *mw_heap_open(size_t limit);
// lua_close.
void mw_heap_close(struct lua_State *L);
struct mw_heap *mw_heap_of(struct lua_State *L);  // NULL: not from mw_heap_open

// How to ask for an interrupt: interrupt(ctx) is called, perhaps deep within Lua, and must lead to
// mw_heap_check at the next instruction. NULL: there is no way, as for compiled code.
void mw_heap_on_full(struct mw_heap *h, void (*interrupt)(void *ctx), void *ctx);
// Raises when the limit is reached.
void mw_heap_check(struct mw_heap *h, struct lua_State *L);

// The limit holds from now on, for code on this stack; NULL: it does not. Returns what was set
// before. A stack around every protected call of a script's code, and NULL within that where a C
// function cannot bear an error. A NULL heap is fine.
struct lua_State *mw_heap_enforce(struct mw_heap *h, struct lua_State *running);
// Between two slices, when what a failed one held is let go: collects when there is little room.
void mw_heap_rest(struct mw_heap *h);

// What a task that failed held is let go: it may be worth collecting again. NULL is fine.
void mw_heap_loosen(struct mw_heap *h);

// Why an allocation was refused last, as a sentence, when text is Lua's message of that; else text.
// Borrowed until the next one is refused.
const char *mw_heap_explain(const struct mw_heap *h, const char *text);

size_t mw_heap_used(const struct mw_heap *h);
size_t mw_heap_limit(const struct mw_heap *h);          // 0: none
unsigned long mw_heap_hits(const struct mw_heap *h);    // how often the limit was reached
const char *mw_heap_last_hit(const struct mw_heap *h);  // where and how that was; "": never
