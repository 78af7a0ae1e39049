// SPDX-License-Identifier: Apache-2.0
// A script's hold on an informer. The informer belongs to the host, which hands it on from one
// generation to the next; the handle, its handlers, indexes and hooks belong to the generation and
// end with it. A generation has at most one handle of an informer, so it is the generation that
// owns the indexes (indexer.h); they are there for as long as anything of the script can read them.
// The same holds for the transform. All is gone before the state is.
#pragma once

#include <lua.h>
#include <stdbool.h>

#include "cache/informer.h"
#include "script/generation.h"

struct mw_registration;

struct mw_handle {
  struct mw_owned owned;  // in the generation's list while `running`
  struct mw_generation *gen;
  struct mw_informer *inf;           // +1; NULL only while it is being made
  struct mw_registration *handlers;  // those that are not closed
  int refs;       // the Lua box, the generation while running, each of the handlers and readers
  bool running;   // this handle's start is in force
  bool ran;       // stays true once it was
  bool starting;  // start was asked for in the load phase
  bool stopped;   // this handle was stopped; it never starts again
};

enum { MW_BIND_QUEUE_MAX = 1 << 30 };  // the largest queue_bound

#define MW_INFORMER_TYPE "kube.informer"
#define MW_REGISTRATION_TYPE "kube.registration"

struct mw_handle *mw_bind_check_handle(lua_State *L, int idx);
void mw_bind_handle_unref(struct mw_handle *h);
// Raises when this handle was stopped, although the informer may go on for the next generation.
// what is for the message.
void mw_bind_check_not_stopped(lua_State *L, const struct mw_handle *h, const char *what);
// The same also when this handle was started.
void mw_bind_check_not_started(lua_State *L, const struct mw_handle *h, const char *what);

// Handlers: add_listener(options) -> registration (bind_listener.c).
int mw_bind_add_listener(lua_State *L);
// Nothing new is delivered to the handlers that were added through h.
void mw_bind_remove_handlers(struct mw_handle *h);
// The handlers of h, none of which is attached yet, are for h->inf from now on.
void mw_bind_move_handlers(struct mw_handle *h);
// Whether the running task is a call of one of the handlers of h, or belongs to one.
bool mw_bind_is_in_handler(lua_State *L, const struct mw_handle *h);
void mw_bind_listener_open(lua_State *L);

// Indexes, transform, watch error handler (bind_hooks.c).
int mw_bind_add_indexers(lua_State *L);
int mw_bind_remove_indexer(lua_State *L);
int mw_bind_set_transform(lua_State *L);
int mw_bind_set_error_handler(lua_State *L);
