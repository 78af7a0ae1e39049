// SPDX-License-Identifier: Apache-2.0
// kube._core.codec as a module for specs, with a way to make cached objects from JSON:
//
//   local open = package.loadlib(build .. "/libmoonwatch_unit.so", "luaopen_mw_codec_spec")
//   local codec = open()
#include <lauxlib.h>
#include <lua.h>

#include "bind/bind.h"
#include "bind/codec.h"
#include "bind/objtable_internal.h"
#include "bind/util.h"
#include "cache/object.h"
#include "wire/item.h"
#include "wire/pack.h"

int luaopen_mw_codec_spec(lua_State *L);

struct maker {
  struct mw_item_scanner *scanner;
  struct mw_packer *packer;
};

static int maker_gc(lua_State *L) {
  struct maker *m = lua_touserdata(L, 1);
  mw_item_scanner_free(m->scanner);
  mw_packer_free(m->packer);
  *m = (struct maker){NULL, NULL};
  return 0;
}

static void push_maker(lua_State *L) {
  struct maker *m = lua_newuserdata(L, sizeof *m);
  m->packer = mw_packer_new();
  m->scanner = mw_item_scanner_new(m->packer);
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, maker_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
}

// object_from_json(json): the table of a new cached object.
static int object_from_json(lua_State *L) {
  struct maker *m = lua_touserdata(L, lua_upvalueindex(1));
  struct mw_slice json = mw_bind_slice(L, 1);
  struct mw_json c = {json.p, json.p + json.n};
  struct mw_item item;
  struct mw_err err;
  if (mw_item_scan(m->scanner, &c, mw_projection_all(), NULL, &item, &err) < 0) {
    return luaL_error(L, "%s", err.message);
  }
  struct mw_object *o = mw_object_new(&item, m->packer, true, &err);
  if (o == NULL) return luaL_error(L, "%s", err.message);
  mw_objtable_push(L, o);
  mw_object_unref(o);
  return 1;
}

// is_marked(table, name): whether the section of this name is found without unpacking the object.
static int is_marked(lua_State *L) {
  struct mw_object *o = mw_objtable_object(L, 1);
  luaL_argcheck(L, o != NULL, 1, "not the table of a cached object");
  lua_pushboolean(L, mw_object_section(o, mw_bind_slice(L, 2)) > 0);
  return 1;
}

// push_again(table): what Lua is given when it asks for the same object once more.
static int push_again(lua_State *L) {
  struct mw_object *o = mw_objtable_object(L, 1);
  luaL_argcheck(L, o != NULL, 1, "not the table of a cached object");
  mw_objtable_push(L, o);
  return 1;
}

static int held_gc(lua_State *L) {
  struct mw_object **held = lua_touserdata(L, 1);
  mw_object_unref(*held);
  *held = NULL;
  return 0;
}

static int held_push(lua_State *L) {
  struct mw_object **held = lua_touserdata(L, lua_upvalueindex(1));
  mw_objtable_push(L, *held);
  return 1;
}

// hold(table): a function that gives the table of the same object, which it holds as a store does.
static int hold(lua_State *L) {
  struct mw_object *o = mw_objtable_object(L, 1);
  luaL_argcheck(L, o != NULL, 1, "not the table of a cached object");
  struct mw_object **held = lua_newuserdata(L, sizeof *held);
  *held = mw_object_ref(o);
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, held_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  lua_pushcclosure(L, held_push, 1);
  return 1;
}

// is_lazy(table): whether something is left to decode.
static int is_lazy(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  bool lazy = false;
  for (lua_pushnil(L); !lazy && lua_next(L, 1); lua_pop(L, 1)) {
    if (lua_islightuserdata(L, -2)) lazy = true;
  }
  lua_pushboolean(L, lazy);
  return 1;
}

// An allocator that refuses once its allowance is used up.
struct ration {
  lua_Alloc inner;
  void *ctx;
  int left;
};

static void *ration_alloc(void *ctx, void *p, size_t old, size_t n) {
  struct ration *r = ctx;
  if (n > old && r->left-- <= 0) return NULL;
  return r->inner(r->ctx, p, old, n);
}

// starve(n, f): calls f with memory for n allocations. True when that was enough; false when it ran
// out of memory; any other error is raised.
static int starve(lua_State *L) {
  struct ration ration = {.left = (int)luaL_checkinteger(L, 1)};
  lua_settop(L, 2);
  ration.inner = lua_getallocf(L, &ration.ctx);
  lua_setallocf(L, ration_alloc, &ration);
  int rc = lua_pcall(L, 0, 0, 0);
  lua_setallocf(L, ration.inner, ration.ctx);
  if (rc != 0 && rc != LUA_ERRMEM) return lua_error(L);
  lua_pushboolean(L, rc == 0);
  return 1;
}

// busted takes back what a spec file changed in _G and in package.loaded, so the builtins are
// wrapped for each file that opens the module.
static void open_again(lua_State *L) {
  static const char opened = 0;
  lua_pushlightuserdata(L, (void *)&opened);
  lua_rawget(L, LUA_REGISTRYINDEX);
  if (!lua_isnil(L, -1)) mw_objtable_wrap(L);
  lua_pop(L, 1);
  lua_pushlightuserdata(L, (void *)&opened);
  lua_pushboolean(L, 1);
  lua_rawset(L, LUA_REGISTRYINDEX);
}

int luaopen_mw_codec_spec(lua_State *L) {
  static const luaL_Reg helpers[] = {
      {"push_again", push_again}, {"hold", hold},     {"is_lazy", is_lazy},
      {"is_marked", is_marked},   {"starve", starve}, {NULL, NULL},
  };
  mw_codec_open(L);
  mw_objtable_open(L);
  open_again(L);
  mw_bind_codec(L);
  luaL_register(L, NULL, helpers);
  push_maker(L);
  lua_pushcclosure(L, object_from_json, 1);
  lua_setfield(L, -2, "object_from_json");
  return 1;
}
