// SPDX-License-Identifier: Apache-2.0
// What C provides to lua/kube/sandbox: one private module, kube._server, in the state of a worker
// (script/worker.h). Functions here may raise (longjmp); they are called from Lua only.
#pragma once

struct lua_State;

// Opens the codec, and registers kube._server and the embedded modules in package.preload of a
// worker's state. Raises on failure.
void mw_bind_server_open(struct lua_State *L);

// Each adds its functions to the table on top. The first needs no worker.
void mw_bind_server_tools(struct lua_State *L);  // gzip, directory, data, write
void mw_bind_server_http(struct lua_State *L);   // listen, certificate
