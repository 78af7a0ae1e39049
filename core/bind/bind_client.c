// SPDX-License-Identifier: Apache-2.0
// kube._core.client: an API server as one user, from a kubeconfig.
#include "bind/bind_client.h"
#include "bind/bind.h"
#include "bind/util.h"
#include "script/generation.h"
#include "script/host.h"
#include "transport/http.h"
#include "transport/kubeconfig.h"

#define TYPE "kube.client"

static int client_gc(lua_State *L) {
  void **box = luaL_checkudata(L, 1, TYPE);
  if (*box != NULL) mw_endpoint_unref(*box);
  *box = NULL;
  return 0;
}

static int client_server(lua_State *L) {
  struct mw_endpoint *e = mw_bind_check_box(L, 1, TYPE);
  lua_pushstring(L, mw_endpoint_config(e)->server);
  return 1;
}

static int client_context(lua_State *L) {
  struct mw_endpoint *e = mw_bind_check_box(L, 1, TYPE);
  lua_pushstring(L, mw_endpoint_config(e)->context);
  return 1;
}

static int client_namespace(lua_State *L) {
  struct mw_endpoint *e = mw_bind_check_box(L, 1, TYPE);
  lua_pushstring(L, mw_endpoint_config(e)->namespace_);
  return 1;
}

// Pushes the client of the host's own endpoint.
static void push_default(lua_State *L) {
  struct mw_err err;
  struct mw_host *host = mw_generation_host(mw_generation_of(L));
  void **box = mw_bind_new_box(L, TYPE, NULL);
  *box = mw_host_endpoint(host, &err);
  if (*box == NULL) mw_bind_raise(L, &err);
}

struct mw_endpoint *mw_bind_endpoint(lua_State *L, int idx) {
  if (lua_isnil(L, idx)) {
    push_default(L);
    lua_replace(L, idx);
  }
  return mw_bind_check_box(L, idx, TYPE);
}

// new{kubeconfig=, context=}: both may be absent. A context without a file is one of the host's.
static int client_new(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  struct mw_kubeconfig_source source = {
      .path = mw_bind_opt_string(L, 1, "kubeconfig", NULL),
      .context = mw_bind_opt_string(L, 1, "context", NULL),
  };
  const struct mw_host_config *host = mw_host_config(mw_generation_host(mw_generation_of(L)));
  if (source.path == NULL && source.context != NULL && host->kubeconfig.text != NULL) {
    mw_bind_misuse(L,
                   "new_client: beside a sandbox there is no context to choose: leave option "
                   "'context' out, or name a file in option 'kubeconfig'");
  }
  if (host->offline || (source.path == NULL && source.context == NULL)) {
    push_default(L);
    return 1;
  }
  if (source.path == NULL) source.path = host->kubeconfig.path;
  struct mw_err err;
  void **box = mw_bind_new_box(L, TYPE, NULL);
  struct mw_kubeconfig *config = mw_kubeconfig_load(&source, &err);
  if (config == NULL) return mw_bind_raise(L, &err);
  *box = mw_endpoint_new(config);
  return 1;
}

// anonymous{server=, ca=, insecure=}: a server that is no API server, without credentials.
static int client_anonymous(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  const char *server = mw_bind_opt_string(L, 1, "server", NULL);
  const char *ca = mw_bind_opt_string(L, 1, "ca", NULL);
  bool insecure = mw_bind_opt_bool(L, 1, "insecure", false);
  luaL_argcheck(L, server != NULL, 1, "no server");
  void **box = mw_bind_new_box(L, TYPE, NULL);
  *box = mw_endpoint_new(mw_kubeconfig_foreign(server, ca, insecure));
  return 1;
}

// identity(client or nil): text that is equal for clients that are the same user of the same
// server.
static int client_identity(lua_State *L) {
  lua_settop(L, 1);
  lua_pushstring(L, mw_endpoint_identity(mw_bind_endpoint(L, 1)));
  return 1;
}

// unknown(client or nil, message): what to say of an answer of 401 that said `message`.
static int client_unknown(lua_State *L) {
  lua_settop(L, 2);
  struct mw_err err;
  struct mw_endpoint *e = mw_bind_endpoint(L, 1);
  const char *said = luaL_checkstring(L, 2);
  if (mw_endpoint_config(e)->foreign) return 1;  // at any length
  mw_err_set(&err, MW_EHTTP, "%s", said);
  mw_endpoint_unknown(e, &err);
  lua_pushstring(L, err.message);
  return 1;
}

void mw_bind_client(lua_State *L) {
  static const luaL_Reg functions[] = {{"new", client_new},
                                       {"anonymous", client_anonymous},
                                       {"identity", client_identity},
                                       {"unknown", client_unknown},
                                       {"server", client_server},
                                       {"context", client_context},
                                       {"namespace", client_namespace},
                                       {NULL, NULL}};
  static const luaL_Reg methods[] = {{NULL, NULL}};
  mw_bind_new_type(L, TYPE, methods, client_gc);
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  // kube._verbs puts them together when one is first called.
  luaL_getmetatable(L, TYPE);
  lua_getfield(L, -1, "__index");
  lua_setfield(L, -3, "methods");
  lua_pop(L, 1);
}
