// SPDX-License-Identifier: Apache-2.0
// Where the API server is and who we are: kubeconfig files, or the pod's service account.
//
// KUBECONFIG may name several files; they merge as kubectl merges them (the first file to set a
// value wins, the first current-context wins). Relative paths are relative to the file that names
// them. Everything here is synchronous file reading at start; nothing touches the network.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct mw_exec_env {
  char *name;
  char *value;
};

// An exec credential plugin (client.authentication.k8s.io/v1 or v1beta1).
struct mw_exec_config {
  char *api_version;
  char *command;
  char **args;  // arg_count strings
  size_t arg_count;
  struct mw_exec_env *env;
  size_t env_count;
  char *install_hint;  // may be NULL
  bool provide_cluster_info;
  char *cluster_config;  // JSON that the cluster has for plugins; NULL: none, or not to be provided
};

// One way to reach one API server as one user. All strings are owned; NULL means not given.
struct mw_kubeconfig {
  bool foreign;      // no API server, and nobody in particular: kube.http
  char *origin;      // what to blame in messages: file and context, or "in-cluster"
  char *context;     // NULL in-cluster
  char *server;      // https://host:port[/prefix], without a trailing slash
  char *namespace_;  // of the context or the pod; NULL: none
  char *proxy_url;
  char *tls_server_name;
  bool insecure_skip_tls_verify;
  char *ca_file;
  char *ca_data;  // PEM
  char *cert_file;
  char *cert_data;  // PEM
  char *key_file;
  char *key_data;  // PEM
  char *token;
  char *token_file;  // re-read while running; wins over token once it holds one
  char *username;
  char *password;
  char *impersonate;
  char *impersonate_uid;
  char **impersonate_groups;
  size_t impersonate_group_count;
  struct mw_exec_env *impersonate_extra;  // name, value pairs; a name may repeat
  size_t impersonate_extra_count;
  struct mw_exec_config *exec;  // NULL: none
};

struct mw_kubeconfig_source {
  const char *path;     // --kubeconfig; NULL: $KUBECONFIG, then ~/.kube/config, then in-cluster
  const char *context;  // --context; NULL: current-context
  const char *text;     // the kubeconfig itself, in place of files; NULL: none
};

// Loads and checks. NULL on failure; err names the file, the line or the entry, and what to do.
struct mw_kubeconfig *mw_kubeconfig_load(const struct mw_kubeconfig_source *source,
                                         struct mw_err *err);
// From one document in memory, for tests and the fuzzer. dir is what relative paths resolve
// against (may be NULL: they stay as they are).
struct mw_kubeconfig *mw_kubeconfig_parse(const char *yaml, size_t n, const char *context,
                                          const char *origin, const char *dir, struct mw_err *err);
// The pod's own service account; MW_ENOTFOUND in err when not in a cluster.
struct mw_kubeconfig *mw_kubeconfig_in_cluster(struct mw_err *err);
// For a server that is none of Kubernetes' ("https://host:port"), without credentials; ca is PEM or
// NULL for the system's.
struct mw_kubeconfig *mw_kubeconfig_foreign(const char *server, const char *ca, bool insecure);
void mw_kubeconfig_free(struct mw_kubeconfig *k);  // NULL is fine
