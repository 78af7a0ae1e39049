// SPDX-License-Identifier: Apache-2.0
// kube.get: reads a place in an object without tripping over what is not there.
#pragma once

struct lua_State;

// A Lua function: get(o, "spec.containers[0].image") with the path syntax of wire/path.h, or
// get(o, "spec", "containers", 1, "image") with one key each, as one would index tables. A path
// with [*] gives an array of all it finds. Absent and null both give nil. A cached object that was
// not read before is read in C, and no table is made for it but the result.
int mw_get(struct lua_State *L);
