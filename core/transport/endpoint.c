// SPDX-License-Identifier: Apache-2.0
// An endpoint is immutable but for its count, so that threads may share it.
#include <inttypes.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/map.h"
#include "transport/internal.h"

enum { IDENTITY_MAX = 16 * 1024, SECRETS_MAX = 8 * 1024 * 1024 };

struct mw_endpoint {
  atomic_uint refs;
  struct mw_kubeconfig *config;
  char *identity;
  char *host;
};

static void add(struct mw_buf *b, const char *name, const char *value) {
  if (value == NULL) return;
  // Lengths keep neighbours apart. What does not fit the limit cannot have come from a kubeconfig.
  int rc = mw_buf_printf(b, "%s %zu %s\n", name, strlen(value), value);
  (void)rc;
}

static void add_pairs(struct mw_buf *b, const struct mw_exec_env *list, size_t count) {
  for (size_t i = 0; i < count; i++) add(b, list[i].name, list[i].value);
}

// Everything that makes two users or two ways to a server differ.
static void add_config(struct mw_buf *b, const struct mw_kubeconfig *k) {
  const char *const texts[] = {k->proxy_url,   k->tls_server_name, k->ca_file,  k->ca_data,
                               k->cert_file,   k->cert_data,       k->key_file, k->key_data,
                               k->token,       k->token_file,      k->username, k->password,
                               k->impersonate, k->impersonate_uid};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    char name[8] = {'f', (char)('a' + i), '\0'};
    add(b, name, texts[i]);
  }
  add(b, "foreign", k->foreign ? "yes" : NULL);
  add(b, "insecure", k->insecure_skip_tls_verify ? "yes" : NULL);
  for (size_t i = 0; i < k->impersonate_group_count; i++) add(b, "group", k->impersonate_groups[i]);
  add_pairs(b, k->impersonate_extra, k->impersonate_extra_count);
  if (k->exec == NULL) return;
  add(b, "exec", k->exec->command);
  for (size_t i = 0; i < k->exec->arg_count; i++) add(b, "arg", k->exec->args[i]);
  add_pairs(b, k->exec->env, k->exec->env_count);
  add(b, "cluster config", k->exec->cluster_config);
}

// The server, and a hash of the rest: seeded per process, so that it tells nothing about a secret.
static char *identify(const struct mw_kubeconfig *k) {
  struct mw_buf b, id;
  mw_buf_init(&b, SECRETS_MAX);
  mw_buf_init(&id, IDENTITY_MAX);
  add_config(&b, k);
  uint32_t low = mw_hash(mw_buf_slice(&b));
  add(&b, "salt", "second half");
  uint32_t high = mw_hash(mw_buf_slice(&b));
  int rc = mw_buf_printf(&id, "%s as %08" PRIx32 "%08" PRIx32, k->server, high, low);
  mw_buf_deinit(&b);
  return rc == 0 ? id.p : mw_xstrdup("");
}

struct mw_endpoint *mw_endpoint_new(struct mw_kubeconfig *config) {
  struct mw_endpoint *e = mw_xcalloc(1, sizeof *e);
  mw_live_add(MW_LIVE_ENDPOINT, 1);
  atomic_init(&e->refs, 1);
  e->config = config;
  e->identity = identify(config);
  e->host = mw_server_authority(config->server);
  return e;
}

struct mw_endpoint *mw_endpoint_ref(struct mw_endpoint *e) {
  atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
  return e;
}

void mw_endpoint_unref(struct mw_endpoint *e) {
  if (e == NULL || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1) return;
  mw_kubeconfig_free(e->config);
  mw_free(e->identity);
  mw_free(e->host);
  mw_free(e);
  mw_live_add(MW_LIVE_ENDPOINT, -1);
}

const struct mw_kubeconfig *mw_endpoint_config(const struct mw_endpoint *e) { return e->config; }

const char *mw_endpoint_identity(const struct mw_endpoint *e) { return e->identity; }

const char *mw_endpoint_host(const struct mw_endpoint *e) { return e->host; }
