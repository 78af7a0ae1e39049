// SPDX-License-Identifier: Apache-2.0
#include "script/operate.h"

#include <lua.h>

#include "script/call.h"
#include "script/generation.h"

static const char as[] = "a question about the script";

// Leaves the module; it is loaded when it is first asked.
static int push_module(lua_State *L, struct mw_err *err) {
  lua_getglobal(L, "require");
  lua_pushliteral(L, "kube._operate");
  return mw_script_call_as(L, as, 1, 1, err);
}

// The two results on top, popped: text, or nil and why not.
static int take_answer(lua_State *L, struct mw_buf *out, struct mw_err *err) {
  size_t n;
  const char *text = lua_tolstring(L, -2, &n);
  int rc;
  if (text == NULL) {
    const char *problem = lua_tostring(L, -1);
    rc = mw_err_set(err, MW_EINVAL, "%s", problem != NULL ? problem : "there is no answer");
  } else {
    rc = mw_buf_add(out, text, n);
    if (rc < 0) mw_err_set(err, rc, "the answer is too long");
  }
  lua_pop(L, 2);
  return rc;
}

int mw_operate_call(struct mw_generation *g, const char *function, const char *const *args,
                    size_t count, struct mw_buf *out, struct mw_err *err) {
  lua_State *L = mw_generation_state(g);
  lua_checkstack(L, (int)count + 4);
  int rc = push_module(L, err);
  if (rc < 0) return rc;
  lua_getfield(L, -1, function);
  lua_remove(L, -2);  // [function]
  for (size_t i = 0; i < count; i++) {
    if (args[i] != NULL) {
      lua_pushstring(L, args[i]);
    } else {
      lua_pushnil(L);
    }
  }
  rc = mw_script_call_as(L, as, (int)count, 2, err);
  return rc < 0 ? rc : take_answer(L, out, err);
}
