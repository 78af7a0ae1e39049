// SPDX-License-Identifier: Apache-2.0
// What C provides to lua/kube: one private module, kube._core, made of one table per component.
// Functions here may raise (longjmp); they are called from Lua only.
#pragma once

#include <stddef.h>

struct lua_State;

// Registers kube._core and the embedded lua/kube modules in package.preload of a new state, and
// installs the object-aware pairs, next, rawget... (objtable.h). Raises on failure.
void mw_bind_open(struct lua_State *L);

// The same for the specs of `moonwatch test`, with kube._core.test.
void mw_bind_test_open(struct lua_State *L);

// The same for `moonwatch check` and `moonwatch rbac`, with kube._core.check.
void mw_bind_check_open(struct lua_State *L);

// `moonwatch status` and its like: runs lua/kube/_console_main.lua in a state of its own, without a
// host, with these arguments; the exit code.
int mw_bind_console_run(const char *const *args, size_t count);

// The same for what reads scripts from ConfigMaps, with kube._core.deploy.
void mw_bind_deploy_open(struct lua_State *L);

// mw_bind_open with one more table in kube._core, which `open` pushes.
void mw_bind_open_with(struct lua_State *L, const char *name, void (*open)(struct lua_State *L));

// A function for such tables: the arguments of the command line (mw_host_config), as a list.
int mw_bind_arguments(struct lua_State *L);

// Puts the embedded modules, and one in C, into package.preload.
void mw_bind_preload(struct lua_State *L, const char *name, int (*load)(struct lua_State *L));

// Each pushes its table of functions: kube._core.task, .informer ...
void mw_bind_task(struct lua_State *L);    // sleep, background, cancel, signal/wait
void mw_bind_log(struct lua_State *L);     // write(level, message, fields)
void mw_bind_codec(struct lua_State *L);   // encode, decode, null, array, object, int64, get, copy
void mw_bind_client(struct lua_State *L);  // new{kubeconfig, context}
void mw_bind_request(
    struct lua_State *L);                 // new() and its methods: send(client, options), result()
void mw_bind_lease(struct lua_State *L);  // declare{...}, is_leading, holder ...
void mw_bind_informer(struct lua_State *L);  // new{...} and the informer's methods
void mw_bind_program(struct lua_State *L);
void mw_bind_metric(struct lua_State *L);    // new(type, name, help, labels, buckets, max)
void mw_bind_indexer(struct lua_State *L);   // reads: get, list, by_index ...
void mw_bind_queue(struct lua_State *L);     // new(name) and the queue's methods
void mw_bind_selector(struct lua_State *L);  // new, methods; labels, fields: canonical text

// Each adds its functions to the table on top: kube._core.tools, and kube._server in the sandbox.
void mw_bind_tools(struct lua_State *L);  // now, random, sha256, base64 ...
void mw_bind_yaml(struct lua_State *L);   // yaml_decode, yaml_encode
