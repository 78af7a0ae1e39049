// SPDX-License-Identifier: Apache-2.0
// kube._core.lease: the host's leader election.
//
//   lease.declare(options, notify)   notify(holder or nil) is called whenever something changed,
//   from
//                                    the commit on; it must not await. options.place says where
//   lease.is_configured(), lease.is_leading(), lease.holder(), lease.identity(), lease.namespace()
//   lease.is_first(), lease.is_alone()   among the scripts that declared it
#include "base/alloc.h"
#include "base/log.h"
#include "bind/bind.h"
#include "bind/bind_client.h"
#include "bind/util.h"
#include "script/call.h"
#include "script/generation.h"
#include "script/host.h"
#include "script/leader.h"
#include "script/ref.h"

struct listener {
  struct mw_owned owned;
  struct mw_generation *gen;
  int notify;
};

static struct mw_host *host_of(lua_State *L) { return mw_generation_host(mw_generation_of(L)); }

static struct mw_leader *leader_of(lua_State *L) { return mw_host_leader(host_of(L)); }

static struct mw_lease *lease_of(lua_State *L) {
  return mw_leader_lease_of(leader_of(L), mw_generation_of(L));
}

static void on_news(void *ctx, const char *holder) {
  struct listener *n = ctx;
  lua_State *L = mw_generation_state(n->gen);
  struct mw_err err;
  mw_luaref_push(L, n->notify);
  lua_pushstring(L, holder);  // nil for NULL
  if (mw_script_call(L, 1, 0, &err) < 0)
    mw_log(MW_LOG_ERROR, "the news of an election got lost", MW_STR("error", err.message));
}

static void listener_close(struct mw_owned *o) {
  struct listener *n = (struct listener *)o;
  mw_leader_leave(mw_host_leader(mw_generation_host(n->gen)), n->gen);
  mw_luaref_drop(mw_generation_state(n->gen), &n->notify);
  mw_generation_drop(n->gen, &n->owned);
  mw_free(n);
}

// Takes the function on top; first of all, because that may raise.
static int declare(lua_State *L, const char *place, struct mw_endpoint *endpoint,
                   const struct mw_lease_config *config, struct mw_err *err) {
  int notify = mw_luaref_take(L);
  struct listener *n = mw_xcalloc(1, sizeof *n);
  n->gen = mw_generation_of(L);
  n->notify = notify;
  int rc = mw_leader_declare(leader_of(L), n->gen, place, endpoint, config, on_news, n, err);
  if (rc < 0) {
    mw_luaref_drop(L, &n->notify);
    mw_free(n);
    return rc;
  }
  n->owned.close = listener_close;
  n->owned.passive = true;
  mw_generation_own(n->gen, &n->owned);
  return 0;
}

// The array of { key, value } pairs in options.labels; what it points to stays in there.
static size_t read_labels(lua_State *L, int options, struct mw_lease_label *out) {
  lua_getfield(L, options, "labels");  // [labels]
  size_t n = lua_isnil(L, -1) ? 0 : lua_objlen(L, -1);
  if (n > MW_LEASE_LABELS_MAX)
    mw_bind_misuse(L, "leader_election: more than %d labels", MW_LEASE_LABELS_MAX);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, -1, (int)i + 1);
    lua_rawgeti(L, -1, 1);
    lua_rawgeti(L, -2, 2);  // [labels, pair, key, value]
    out[i] = (struct mw_lease_label){luaL_checkstring(L, -2), luaL_checkstring(L, -1)};
    lua_pop(L, 3);
  }
  lua_pop(L, 1);
  return n;
}

// Where the Lease is unless the script says so: -n, the kubeconfig's or the pod's, kubectl's.
static const char *default_namespace(lua_State *L, const struct mw_endpoint *endpoint) {
  const char *ns = mw_host_namespace(host_of(L));
  if (ns[0] != '\0') return ns;
  ns = mw_endpoint_config(endpoint)->namespace_;
  return ns != NULL && ns[0] != '\0' ? ns : "default";
}

// That of the lease there is; else one that is made.
static const char *default_identity(lua_State *L, char made[MW_LEASE_IDENTITY_SIZE]) {
  const char *has = mw_leader_identity(leader_of(L));
  if (has != NULL) return has;
  mw_lease_identity(made);
  return made;
}

static int lease_declare(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  lua_pushnil(L);
  lua_insert(L, 2);  // [options, client, notify]
  struct mw_endpoint *endpoint = mw_bind_endpoint(L, 2);
  char made[MW_LEASE_IDENTITY_SIZE];
  struct mw_lease_label labels[MW_LEASE_LABELS_MAX];
  const struct mw_lease_config *d = &mw_lease_default;
  struct mw_lease_config config = {
      .name = mw_bind_opt_string(L, 1, "name", ""),
      .ns = mw_bind_opt_string(L, 1, "namespace", default_namespace(L, endpoint)),
      .identity = mw_bind_opt_string(L, 1, "identity", default_identity(L, made)),
      .lease_duration = mw_bind_opt_seconds(L, 1, "lease_duration", d->lease_duration),
      .renew_deadline = mw_bind_opt_seconds(L, 1, "renew_deadline", d->renew_deadline),
      .retry_period = mw_bind_opt_seconds(L, 1, "retry_period", d->retry_period),
      .release = mw_bind_opt_bool(L, 1, "release", d->release),
      .labels = labels,
      .label_count = read_labels(L, 1, labels),
  };
  struct mw_err err;
  const char *place = mw_bind_opt_string(L, 1, "place", "");
  int rc = mw_lease_config_check(&config, &err);
  if (rc == 0) rc = declare(L, place, endpoint, &config, &err);
  return rc == 0 ? 0 : mw_bind_misuse(L, "leader_election: %s", err.message);
}

static int lease_is_configured(lua_State *L) {
  lua_pushboolean(L, lease_of(L) != NULL);
  return 1;
}

static int lease_is_leading(lua_State *L) {
  lua_pushboolean(L, lease_of(L) == NULL || mw_leader_is_leading(leader_of(L)));
  return 1;
}

static int lease_is_first(lua_State *L) {
  lua_pushboolean(L, mw_leader_is_first(leader_of(L), mw_generation_of(L)));
  return 1;
}

static int lease_is_alone(lua_State *L) {
  lua_pushboolean(L, mw_leader_is_alone(leader_of(L), mw_generation_of(L)));
  return 1;
}

static int lease_holder(lua_State *L) {
  lua_pushstring(L, lease_of(L) != NULL ? mw_lease_holder(lease_of(L)) : "");
  return 1;
}

static int lease_identity(lua_State *L) {
  lua_pushstring(L, lease_of(L) != NULL ? mw_lease_get_config(lease_of(L))->identity : NULL);
  return 1;
}

static int lease_namespace(lua_State *L) {
  lua_pushstring(L, lease_of(L) != NULL ? mw_lease_get_config(lease_of(L))->ns : NULL);
  return 1;
}

void mw_bind_lease(struct lua_State *L) {
  static const luaL_Reg functions[] = {{"declare", lease_declare},
                                       {"is_configured", lease_is_configured},
                                       {"is_leading", lease_is_leading},
                                       {"is_first", lease_is_first},
                                       {"is_alone", lease_is_alone},
                                       {"holder", lease_holder},
                                       {"identity", lease_identity},
                                       {"namespace", lease_namespace},
                                       {NULL, NULL}};
  lua_newtable(L);
  luaL_register(L, NULL, functions);
}
