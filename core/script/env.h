// SPDX-License-Identifier: Apache-2.0
// What a script finds in its state: the libraries it may use, and nothing that reaches past the
// host (lua/kube/_env.lua says which). This keeps mistakes in, not attackers.
#pragma once

struct lua_State;
struct mw_bundle;
struct mw_bundle_file;

// In two steps, since the bindings need all of Lua to set themselves up. Both raise.
// All libraries, and lua-cjson where it is installed: opened when it is first required. On an empty
// stack.
void mw_env_open(struct lua_State *L);
// Pushes the chunk of an embedded module and returns 0; else pushes a message. Does not raise.
int mw_env_load(struct lua_State *L, const char *module);
// The same for a file of a script, which is text.
int mw_env_load_file(struct lua_State *L, const struct mw_bundle_file *f);
// Takes away what scripts do not get. `require` finds the files of the bundle, which outlives L.
void mw_env_restrict(struct lua_State *L, const struct mw_bundle *bundle);
