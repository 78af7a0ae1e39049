// SPDX-License-Identifier: Apache-2.0
// From parsed kubeconfig files to one mw_kubeconfig: pick the context, then its cluster and user.
//
// An entry is taken whole from the first file that has one of that name; files never share the
// fields of an entry, exactly as with kubectl.
#include "transport/kubeconfig.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/slice.h"
#include "transport/internal.h"

// A plugin gets the extension in its environment, where Linux takes 128 KiB for one variable.
enum { MAX_ITEMS = 1024, MAX_NAMES_IN_MESSAGE = 12, EXTENSION_MAX = 64 * 1024 };

#define EXEC_V1 "client.authentication.k8s.io/v1"
#define EXEC_V1BETA1 "client.authentication.k8s.io/v1beta1"
#define EXEC_EXTENSION "client.authentication.k8s.io/exec"

#define TEXTS "must be a list of texts"
#define TEXT_LISTS "must be a map of lists of texts"
#define PAIRS "must be a list of name and value"
#define ENTRIES "must be a list of maps, each with a name"

// Reads fields of one entry. The first failure sticks and later calls do nothing, so that the
// fields of an entry read as a list.
struct reader {
  const struct mw_kubeconfig_doc *doc;
  int node;
  const char *kind;      // "user"; NULL: of the file itself
  struct mw_slice name;  // of the entry
  const char *part;      // "exec." while its fields are read; NULL: none
  struct mw_err *err;
  int rc;
};

static void fail(struct reader *r, int code, const char *key, const char *problem) {
  if (r->rc != 0) return;
  const char *part = r->part != NULL ? r->part : "", *gap = *key != '\0' ? " " : "";
  if (r->kind == NULL) {
    r->rc = mw_err_set(r->err, code, "kubeconfig %s: %s%s%s", r->doc->label, key, gap, problem);
  } else {
    r->rc = mw_err_set(r->err, code, "kubeconfig %s: %s \"%.*s\": %s%s%s%s", r->doc->label, r->kind,
                       MW_SLICE_ARGS(r->name), part, key, gap, problem);
  }
}

static int field(const struct reader *r, const char *key) {
  return mw_yaml_get(r->doc->yaml, r->node, key);
}

// The three kinds of nodes. One that is not there or null is none of them, and fine; problem is
// what to say of another kind.

static int list(struct reader *r, int node, const char *key, const char *problem) {
  if (r->rc != 0 || !mw_yaml_has(r->doc->yaml, node)) return 0;
  if (mw_yaml_is_list(r->doc->yaml, node)) return node;
  fail(r, MW_EINVAL, key, problem);
  return 0;
}

static int map(struct reader *r, int node, const char *key, const char *problem) {
  if (r->rc != 0 || !mw_yaml_has(r->doc->yaml, node)) return 0;
  if (mw_yaml_is_map(r->doc->yaml, node)) return node;
  fail(r, MW_EINVAL, key, problem);
  return 0;
}

static bool scalar(struct reader *r, int node, const char *key, struct mw_slice *out) {
  *out = mw_slice(NULL, 0);
  if (r->rc != 0 || !mw_yaml_has(r->doc->yaml, node)) return false;
  *out = mw_yaml_text(r->doc->yaml, node);
  if (out->p == NULL) {
    fail(r, MW_EINVAL, key, "must be a text");
  } else if (memchr(out->p, '\0', out->n) != NULL) {
    fail(r, MW_EINVAL, key, "contains a NUL");
  }
  return r->rc == 0 && out->n > 0;
}

static void take_text(struct reader *r, const char *key, char **out) {
  struct mw_slice s;
  if (scalar(r, field(r, key), key, &s)) *out = mw_xstrndup(s.p, s.n);
}

// A text that goes into a header as it is.
static void take_header(struct reader *r, const char *key, char **out) {
  take_text(r, key, out);
  if (*out != NULL && !mw_header_safe(*out)) fail(r, MW_EINVAL, key, "has control characters");
}

static void take_bool(struct reader *r, const char *key, bool *out) {
  int b = mw_yaml_bool(r->doc->yaml, field(r, key));
  if (b < 0) fail(r, MW_EINVAL, key, "must be true or false");
  *out = b > 0;
}

static char *join(const char *dir, struct mw_slice path) {
  if (dir == NULL || path.p[0] == '/') return mw_xstrndup(path.p, path.n);
  size_t n = strlen(dir);
  char *joined = mw_xmalloc(n + path.n + 2);
  memcpy(joined, dir, n);
  joined[n] = '/';
  memcpy(joined + n + 1, path.p, path.n);
  joined[n + 1 + path.n] = '\0';
  return joined;
}

static void take_path(struct reader *r, const char *key, char **out) {
  struct mw_slice s;
  if (scalar(r, field(r, key), key, &s)) *out = join(r->doc->dir, s);
}

static int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// The decoded bytes with a NUL after them, or NULL when s is not base64. Line breaks are fine.
static char *base64_decode(struct mw_slice s, size_t *out_n) {
  char *out = mw_xmalloc(s.n / 4 * 3 + 4);
  size_t n = 0, digits = 0, padding = 0;
  unsigned bits = 0;
  bool good = true;
  for (size_t i = 0; good && i < s.n; i++) {
    char c = s.p[i];
    if (c == '\n' || c == '\r' || c == ' ') continue;
    if (c == '=') {
      padding++;
      continue;
    }
    int v = base64_value(c);
    good = v >= 0 && padding == 0;
    bits = bits << 6 | (unsigned)(v & 63);
    if (++digits % 4 != 1) out[n++] = (char)(bits >> (6 - 2 * ((digits - 1) % 4)));
  }
  good = good && padding <= 2 && (digits + padding) % 4 == 0;
  if (!good) {
    mw_free(out);
    return NULL;
  }
  out[n] = '\0';
  *out_n = n;
  return out;
}

// Base64 of PEM.
static void take_pem(struct reader *r, const char *key, char **out) {
  struct mw_slice s;
  size_t n = 0;
  if (!scalar(r, field(r, key), key, &s)) return;
  *out = base64_decode(s, &n);
  if (*out == NULL) {
    fail(r, MW_EPARSE, key, "is not valid base64");
  } else if (strlen(*out) != n || strstr(*out, "-----BEGIN ") == NULL) {
    fail(r, MW_EPARSE, key, "is not the base64 of a PEM file");
  }
}

static bool starts_with(const char *s, const char *prefix) {
  return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool plain_url(const char *s) {
  for (; *s != '\0'; s++) {
    if ((unsigned char)*s <= ' ' || (unsigned char)*s >= 0x7F) return false;
  }
  return true;
}

static bool ascii(const char *s) {
  while (*s != '\0' && (unsigned char)*s < 0x80) s++;
  return *s == '\0';
}

// Whether host:port has a percent sign, but for that of an IPv6 zone: libcurl decodes such names,
// and then they are not ASCII, or not what they look like.
static bool encoded(const char *host) {
  size_t n = strcspn(host, "/?#");
  const char *zone = *host == '[' ? memchr(host, ']', n) : NULL;
  size_t skipped = zone != NULL ? (size_t)(zone - host) : 0;
  return memchr(host + skipped, '%', n - skipped) != NULL;
}

// Whether a host is written in a way that libcurl takes.
static bool check_spelling(struct reader *r, const char *key, const char *host) {
  if (!ascii(host)) {
    fail(r, MW_EINVAL, key, "must be ASCII: a name of other letters has a form with xn--");
  } else if (encoded(host)) {
    fail(r, MW_EINVAL, key,
         "must not be percent-encoded: a name of other letters has a form with xn--");
  }
  return r->rc == 0;
}

static void check_server(struct reader *r, struct mw_kubeconfig *k) {
  if (k->server == NULL) {
    fail(r, MW_EINVAL, "", "it has no server; add `server: https://host:port`");
    return;
  }
  const char *host = starts_with(k->server, "https://")  ? k->server + 8
                     : starts_with(k->server, "http://") ? k->server + 7
                                                         : NULL;
  if (host == NULL) {
    fail(r, MW_EINVAL, "server", "must begin with https:// or http://");
  } else if (!check_spelling(r, "server", host)) {
    return;
  } else if (*host == '\0' || *host == '/' || *host == ':' || !plain_url(k->server) ||
             strpbrk(host, "?#@\\") != NULL) {
    fail(r, MW_EINVAL, "server", "is not an address such as https://host:6443");
  } else {
    for (char *end = k->server + strlen(k->server); end > host && end[-1] == '/';) *--end = '\0';
  }
}

static void check_proxy(struct reader *r, const char *url) {
  static const char *const schemes[] = {"http://", "https://", "socks5://", "socks5h://"};
  if (url == NULL) return;
  for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
    if (!starts_with(url, schemes[i])) continue;
    const char *host = url + strlen(schemes[i]);
    // A password before it may be percent-encoded.
    const char *at = memrchr(host, '@', strcspn(host, "/?#"));
    if (!check_spelling(r, "proxy-url", at != NULL ? at + 1 : host)) return;
    if (*host != '\0' && plain_url(url)) return;
  }
  fail(r, MW_EINVAL, "proxy-url", "must be an http://, https:// or socks5:// address");
}

static void read_cluster(struct reader *r, struct mw_kubeconfig *k) {
  take_text(r, "server", &k->server);
  take_text(r, "proxy-url", &k->proxy_url);
  take_text(r, "tls-server-name", &k->tls_server_name);
  take_bool(r, "insecure-skip-tls-verify", &k->insecure_skip_tls_verify);
  take_path(r, "certificate-authority", &k->ca_file);
  take_pem(r, "certificate-authority-data", &k->ca_data);
  if (r->rc != 0) return;
  check_server(r, k);
  check_proxy(r, k->proxy_url);
  if (k->tls_server_name != NULL &&
      (!plain_url(k->tls_server_name) || strpbrk(k->tls_server_name, ":/?#@\\[]") != NULL)) {
    fail(r, MW_EINVAL, "tls-server-name", "must be a host name");
  }
  if (k->insecure_skip_tls_verify && (k->ca_file != NULL || k->ca_data != NULL)) {
    fail(r, MW_EINVAL, "",
         "insecure-skip-tls-verify and a certificate authority exclude each other");
  }
}

// The next of the items that are kept, of which there may be MAX_ITEMS; 0 behind the last.
static int next_item(struct reader *r, int node, size_t i, size_t kept, const char *key) {
  int item = r->rc == 0 ? mw_yaml_item(r->doc->yaml, node, i) : 0;
  if (item == 0 || kept < MAX_ITEMS) return item;
  char problem[64];
  snprintf(problem, sizeof problem, "has more than %d items", MAX_ITEMS);
  fail(r, MW_ELIMIT, key, problem);
  return 0;
}

static void read_args(struct reader *r, struct mw_exec_config *exec) {
  int node = list(r, field(r, "args"), "args", TEXTS), item;
  for (size_t i = 0; (item = next_item(r, node, i, i, "args")) != 0; i++) {
    struct mw_slice s = mw_yaml_text(r->doc->yaml, item);
    if (s.p == NULL || memchr(s.p, '\0', s.n) != NULL) {
      fail(r, MW_EINVAL, "args", TEXTS);
      return;
    }
    exec->args = mw_xrealloc(exec->args, (i + 1) * sizeof *exec->args);
    exec->args[exec->arg_count++] = mw_xstrndup(s.p, s.n);
  }
}

static void add_pair(struct mw_exec_env **list, size_t *count, struct mw_slice name,
                     struct mw_slice value) {
  *list = mw_xrealloc(*list, (*count + 1) * sizeof **list);
  (*list)[*count].name = mw_xstrndup(name.p, name.n);
  (*list)[*count].value = mw_xstrndup(value.p != NULL ? value.p : "", value.n);
  *count += 1;
}

static void read_env(struct reader *r, struct mw_exec_config *exec) {
  int node = list(r, field(r, "env"), "env", PAIRS), item;
  for (size_t i = 0; (item = next_item(r, node, i, i, "env")) != 0; i++) {
    struct mw_slice name, value;
    bool named = scalar(r, mw_yaml_get(r->doc->yaml, item, "name"), "env.name", &name);
    scalar(r, mw_yaml_get(r->doc->yaml, item, "value"), "env.value", &value);
    if (!named || memchr(name.p, '=', name.n) != NULL) fail(r, MW_EINVAL, "env", PAIRS);
    if (r->rc != 0) return;
    add_pair(&exec->env, &exec->env_count, name, value);
  }
}

// What is wrong with interactiveMode; NULL: nothing. v1 wants it to be said, v1beta1 takes
// IfAvailable for granted.
static const char *wrong_with_mode(const char *mode, const char *api_version) {
  if (mode == NULL) {
    bool needed = strcmp(api_version, EXEC_V1) == 0;
    return needed ? "is missing, and " EXEC_V1 " needs it; add IfAvailable or Never" : NULL;
  }
  if (strcmp(mode, "Always") == 0) {
    return "is Always, but the plugin will run without a terminal; use IfAvailable or Never";
  }
  bool known = strcmp(mode, "IfAvailable") == 0 || strcmp(mode, "Never") == 0;
  return known ? NULL : "must be IfAvailable or Never";
}

static void check_exec(struct reader *r, const struct mw_exec_config *exec, const char *mode) {
  if (r->rc != 0) return;
  const char *version = exec->api_version;
  if (exec->command == NULL) {
    fail(r, MW_EINVAL, "exec", "has no command");
  } else if (version == NULL ||
             (strcmp(version, EXEC_V1) != 0 && strcmp(version, EXEC_V1BETA1) != 0)) {
    fail(r, MW_EINVAL, "exec.apiVersion", "must be " EXEC_V1 " or " EXEC_V1BETA1);
  } else {
    const char *problem = wrong_with_mode(mode, version);
    if (problem != NULL) fail(r, MW_EINVAL, "exec.interactiveMode", problem);
  }
}

static void read_exec(struct reader *user, struct mw_kubeconfig *k) {
  int node = map(user, field(user, "exec"), "exec", "must be a map");
  if (node == 0) return;
  struct reader r = *user;
  r.node = node;
  r.part = "exec.";
  k->exec = mw_xcalloc(1, sizeof *k->exec);
  char *mode = NULL;
  take_text(&r, "apiVersion", &k->exec->api_version);
  take_text(&r, "installHint", &k->exec->install_hint);
  take_text(&r, "interactiveMode", &mode);
  take_bool(&r, "provideClusterInfo", &k->exec->provide_cluster_info);
  struct mw_slice command;
  if (scalar(&r, field(&r, "command"), "command", &command)) {
    bool is_path = memchr(command.p, '/', command.n) != NULL;
    k->exec->command = join(is_path ? r.doc->dir : NULL, command);
  }
  read_args(&r, k->exec);
  read_env(&r, k->exec);
  user->rc = r.rc;
  check_exec(user, k->exec, mode);
  mw_free(mode);
}

static int find_extension(struct reader *r, const char *name) {
  const struct mw_yaml *yaml = r->doc->yaml;
  int node = list(r, field(r, "extensions"), "extensions", ENTRIES);
  for (size_t i = 0;; i++) {
    int item = mw_yaml_item(yaml, node, i);
    if (item == 0) return 0;
    struct mw_slice found = mw_yaml_text(yaml, mw_yaml_get(yaml, item, "name"));
    if (mw_slice_is(found, name)) return mw_yaml_get(yaml, item, "extension");
  }
}

// What the cluster has to say to a plugin. Read only for a plugin that wants to know, so that what
// is wrong with it troubles nobody else.
static void read_extension(struct reader *cluster, struct mw_kubeconfig *k) {
  int node = find_extension(cluster, EXEC_EXTENSION);
  if (!mw_yaml_has(cluster->doc->yaml, node)) return;
  struct mw_err why;
  struct mw_buf json;
  mw_buf_init(&json, EXTENSION_MAX);
  int rc = mw_yaml_to_json(cluster->doc->yaml, node, &json, &why);
  if (rc == 0) {
    k->exec->cluster_config = mw_xstrndup(json.p, json.n);
  } else {
    fail(cluster, rc, "extension " EXEC_EXTENSION, why.message);
  }
  mw_buf_deinit(&json);
}

// A text that is not empty and goes into a header. problem: what to say when it is none.
static bool header_item(struct reader *r, int item, const char *key, const char *problem,
                        struct mw_slice *s) {
  *s = mw_yaml_text(r->doc->yaml, item);
  if (s->n == 0) {
    fail(r, MW_EINVAL, key, problem);
    return false;
  }
  for (size_t i = 0; i < s->n; i++) {
    if (iscntrl((unsigned char)s->p[i])) {
      fail(r, MW_EINVAL, key, "has control characters");
      return false;
    }
  }
  return true;
}

static void read_groups(struct reader *r, struct mw_kubeconfig *k) {
  static const char key[] = "as-groups";
  int node = list(r, field(r, key), key, TEXTS), item;
  for (size_t i = 0; (item = next_item(r, node, i, i, key)) != 0; i++) {
    struct mw_slice s;
    if (!header_item(r, item, key, TEXTS, &s)) return;
    k->impersonate_groups =
        mw_xrealloc(k->impersonate_groups, (i + 1) * sizeof *k->impersonate_groups);
    k->impersonate_groups[k->impersonate_group_count++] = mw_xstrndup(s.p, s.n);
  }
}

static void read_extra_values(struct reader *r, const char *key, struct mw_slice name, int values,
                              struct mw_kubeconfig *k) {
  int node = list(r, values, key, TEXT_LISTS), item;
  size_t *count = &k->impersonate_extra_count;
  for (size_t i = 0; (item = next_item(r, node, i, *count, key)) != 0; i++) {
    struct mw_slice value;
    if (!header_item(r, item, key, TEXT_LISTS, &value)) return;
    add_pair(&k->impersonate_extra, count, name, value);
  }
}

static void read_extra(struct reader *r, struct mw_kubeconfig *k) {
  static const char key[] = "as-user-extra";
  int node = map(r, field(r, key), key, TEXT_LISTS), name_node, values;
  for (size_t i = 0; mw_yaml_pair(r->doc->yaml, node, i, &name_node, &values); i++) {
    struct mw_slice name;
    if (!header_item(r, name_node, key, TEXT_LISTS, &name)) return;
    read_extra_values(r, key, name, values, k);
  }
}

static void trim(char *s) {
  if (s == NULL) return;
  size_t n = strlen(s);
  while (n > 0 && isspace((unsigned char)s[n - 1])) s[--n] = '\0';
}

static void check_user(struct reader *r, const struct mw_kubeconfig *k) {
  bool cert = k->cert_file != NULL || k->cert_data != NULL;
  bool key = k->key_file != NULL || k->key_data != NULL;
  if (cert && !key) fail(r, MW_EINVAL, "", "it has a client-certificate but no client-key");
  if (key && !cert) fail(r, MW_EINVAL, "", "it has a client-key but no client-certificate");
  if ((k->token != NULL || k->token_file != NULL) && k->username != NULL) {
    fail(r, MW_EINVAL, "", "token and username exclude each other; remove one");
  }
  if (k->impersonate == NULL && (k->impersonate_uid != NULL || k->impersonate_group_count > 0 ||
                                 k->impersonate_extra_count > 0)) {
    fail(r, MW_EINVAL, "", "as-uid, as-groups and as-user-extra need `as`, the user");
  }
}

static void read_user(struct reader *r, struct mw_kubeconfig *k) {
  if (mw_yaml_has(r->doc->yaml, field(r, "auth-provider"))) {
    fail(r, MW_EINVAL, "auth-provider", "is not supported; use the exec plugin of your provider");
  }
  take_path(r, "client-certificate", &k->cert_file);
  take_pem(r, "client-certificate-data", &k->cert_data);
  take_path(r, "client-key", &k->key_file);
  take_pem(r, "client-key-data", &k->key_data);
  take_text(r, "token", &k->token);
  trim(k->token);
  if (k->token != NULL && *k->token == '\0') {  // as good as none
    mw_free(k->token);
    k->token = NULL;
  }
  if (k->token != NULL && !mw_header_safe(k->token)) {
    fail(r, MW_EINVAL, "token", "has control characters");
  }
  take_path(r, "tokenFile", &k->token_file);
  take_header(r, "username", &k->username);
  take_header(r, "password", &k->password);
  take_header(r, "as", &k->impersonate);
  take_header(r, "as-uid", &k->impersonate_uid);
  read_groups(r, k);
  read_extra(r, k);
  read_exec(r, k);
  if (r->rc == 0) check_user(r, k);
}

// Lists the names of a section over all files, for messages.
static void list_names(const struct mw_kubeconfig_doc *docs, size_t count, const char *section,
                       struct mw_buf *out) {
  size_t named = 0, more = 0;
  for (size_t d = 0; d < count; d++) {
    int list = mw_yaml_get(docs[d].yaml, mw_yaml_root(docs[d].yaml), section);
    for (size_t i = 0;; i++) {
      int item = mw_yaml_item(docs[d].yaml, list, i);
      if (item == 0) break;
      struct mw_slice name = mw_yaml_text(docs[d].yaml, mw_yaml_get(docs[d].yaml, item, "name"));
      if (name.p == NULL) continue;
      if (named == MAX_NAMES_IN_MESSAGE ||
          mw_buf_printf(out, "%s%.*s", named > 0 ? ", " : "", MW_SLICE_ARGS(name)) < 0) {
        more++;
      } else {
        named++;
      }
    }
  }
  int rc = 0;
  if (named == 0) rc = mw_buf_printf(out, "none");
  if (more > 0) rc = mw_buf_printf(out, " and %zu more", more);
  (void)rc;  // a cut message is still a message
}

// Finds an entry by name and points r at it. MW_ENOTFOUND without a message when it is missing;
// r->rc when it is no entry.
static int find(const struct mw_kubeconfig_doc *docs, size_t count, const char *section,
                struct mw_slice name, struct reader *r) {
  for (size_t d = 0; d < count; d++) {
    int list = mw_yaml_get(docs[d].yaml, mw_yaml_root(docs[d].yaml), section);
    for (size_t i = 0;; i++) {
      int item = mw_yaml_item(docs[d].yaml, list, i);
      if (item == 0) break;
      struct mw_slice found = mw_yaml_text(docs[d].yaml, mw_yaml_get(docs[d].yaml, item, "name"));
      if (found.p == NULL || !mw_slice_eq(found, name)) continue;
      r->doc = &docs[d];
      r->name = found;
      r->node = map(r, mw_yaml_get(docs[d].yaml, item, r->kind), "", "it must be a map");
      return r->rc;
    }
  }
  return MW_ENOTFOUND;
}

static int missing(const struct mw_kubeconfig_doc *docs, size_t count, const char *label,
                   const char *section, const char *what, struct mw_err *err) {
  struct mw_buf names;
  mw_buf_init(&names, MW_ERR_MESSAGE_MAX);
  list_names(docs, count, section, &names);
  int rc = mw_err_set(err, MW_ENOTFOUND, "kubeconfig %s: %s; it has: %s", label, what,
                      names.p != NULL ? names.p : "none");
  mw_buf_deinit(&names);
  return rc;
}

// The name of the context to use: as asked for, or the first current-context.
static struct mw_slice choose(const struct mw_kubeconfig_doc *docs, size_t count,
                              const char *context) {
  struct mw_slice name = mw_slice_str(context);
  for (size_t d = 0; d < count && name.n == 0; d++) {
    int root = mw_yaml_root(docs[d].yaml);
    name = mw_yaml_text(docs[d].yaml, mw_yaml_get(docs[d].yaml, root, "current-context"));
  }
  return name;
}

// Reads the entry that the context's field `kind` names.
static int read_part(const struct mw_kubeconfig_doc *docs, size_t count, const char *label,
                     struct reader *context, const char *kind, const char *section,
                     void (*read)(struct reader *, struct mw_kubeconfig *), struct mw_kubeconfig *k,
                     struct mw_err *err) {
  struct reader r = {.kind = kind, .err = err};
  struct mw_slice name;
  bool named = scalar(context, field(context, kind), kind, &name);
  if (context->rc != 0) return context->rc;
  if (!named && strcmp(kind, "user") == 0) return 0;  // anonymous
  char what[MW_ERR_MESSAGE_MAX];
  struct mw_err text;
  if (!named) {
    return mw_err_set(err, MW_EINVAL, "kubeconfig %s: context \"%.*s\" names no %s",
                      context->doc->label, MW_SLICE_ARGS(context->name), kind);
  }
  if (find(docs, count, section, name, &r) == 0) read(&r, k);
  if (r.doc != NULL) return r.rc;
  mw_err_set(&text, 0, "context \"%.*s\" names the %s \"%.*s\", which does not exist",
             MW_SLICE_ARGS(context->name), kind, MW_SLICE_ARGS(name));
  memcpy(what, text.message, sizeof what);
  return missing(docs, count, label, section, what, err);
}

static void check_section(struct reader *r, const char *section) {
  const struct mw_yaml *yaml = r->doc->yaml;
  int node = list(r, field(r, section), section, ENTRIES), item;
  for (size_t i = 0; r->rc == 0 && (item = mw_yaml_item(yaml, node, i)) != 0; i++) {
    int name = mw_yaml_get(yaml, map(r, item, section, ENTRIES), "name");
    bool is_text = !mw_yaml_has(yaml, name) || mw_yaml_text(yaml, name).p != NULL;
    if (!is_text) fail(r, MW_EINVAL, section, ENTRIES);
  }
}

// What is no map has nothing of a kubeconfig, and is likely another file. Nothing at all is fine.
static int check_shape(const struct mw_kubeconfig_doc *doc, struct mw_err *err) {
  struct reader r = {.doc = doc, .node = mw_yaml_root(doc->yaml), .err = err};
  struct mw_slice current;
  map(&r, r.node, "",
      "this is not a kubeconfig, which is a map with clusters, users and contexts; name another "
      "file");
  scalar(&r, field(&r, "current-context"), "current-context", &current);
  check_section(&r, "contexts");
  check_section(&r, "clusters");
  check_section(&r, "users");
  return r.rc;
}

static int resolve(struct mw_kubeconfig *k, const struct mw_kubeconfig_doc *docs, size_t count,
                   const char *label, const char *asked, struct mw_err *err) {
  for (size_t i = 0; i < count; i++) {
    int wrong = check_shape(&docs[i], err);
    if (wrong < 0) return wrong;
  }
  struct mw_slice name = choose(docs, count, asked);
  if (name.n == 0) {
    return missing(docs, count, label, "contexts",
                   "there is no current-context, choose one with --context", err);
  }
  struct reader context = {.kind = "context", .err = err};
  if (find(docs, count, "contexts", name, &context) < 0) {
    if (context.rc < 0) return context.rc;
    struct mw_err what;
    mw_err_set(&what, 0, "context \"%.*s\" does not exist", MW_SLICE_ARGS(name));
    return missing(docs, count, label, "contexts", what.message, err);
  }
  struct mw_err origin;
  mw_err_set(&origin, 0, "kubeconfig %s, context \"%.*s\"", context.doc->label,
             MW_SLICE_ARGS(name));
  k->origin = mw_xstrdup(origin.message);
  k->context = mw_xstrndup(name.p, name.n);
  take_text(&context, "namespace", &k->namespace_);
  int rc = context.rc;
  if (rc == 0) {
    rc = read_part(docs, count, label, &context, "cluster", "clusters", read_cluster, k, err);
  }
  if (rc == 0) rc = read_part(docs, count, label, &context, "user", "users", read_user, k, err);
  if (rc == 0 && k->exec != NULL && k->exec->provide_cluster_info) {
    rc = read_part(docs, count, label, &context, "cluster", "clusters", read_extension, k, err);
  }
  return rc;
}

struct mw_kubeconfig *mw_kubeconfig_resolve(const struct mw_kubeconfig_doc *docs, size_t count,
                                            const char *label, const char *context,
                                            struct mw_err *err) {
  struct mw_kubeconfig *k = mw_xcalloc(1, sizeof *k);
  if (resolve(k, docs, count, label, context, err) == 0) return k;
  mw_kubeconfig_free(k);
  return NULL;
}

struct mw_kubeconfig *mw_kubeconfig_parse(const char *yaml, size_t n, const char *context,
                                          const char *origin, const char *dir, struct mw_err *err) {
  struct mw_kubeconfig_doc doc = {.label = (char *)origin, .dir = (char *)dir};
  struct mw_err why;
  doc.yaml = mw_yaml_parse(yaml, n, origin, &why);
  if (doc.yaml == NULL) {
    mw_err_set(err, why.code, "kubeconfig %s", why.message);
    return NULL;
  }
  struct mw_kubeconfig *k = mw_kubeconfig_resolve(&doc, 1, origin, context, err);
  mw_yaml_free(doc.yaml);
  return k;
}

bool mw_header_safe(const char *s) {
  for (; *s != '\0'; s++) {
    if (iscntrl((unsigned char)*s)) return false;
  }
  return true;
}

static void free_pairs(struct mw_exec_env *list, size_t count) {
  for (size_t i = 0; i < count; i++) {
    mw_free(list[i].name);
    mw_free(list[i].value);
  }
  mw_free(list);
}

static void free_exec(struct mw_exec_config *exec) {
  if (exec == NULL) return;
  for (size_t i = 0; i < exec->arg_count; i++) mw_free(exec->args[i]);
  mw_free(exec->args);
  free_pairs(exec->env, exec->env_count);
  mw_free(exec->api_version);
  mw_free(exec->command);
  mw_free(exec->install_hint);
  mw_free(exec->cluster_config);
  mw_free(exec);
}

struct mw_kubeconfig *mw_kubeconfig_foreign(const char *server, const char *ca, bool insecure) {
  struct mw_kubeconfig *k = mw_xcalloc(1, sizeof *k);
  k->foreign = true;
  k->origin = mw_xstrdup("kube.http");
  k->server = mw_xstrdup(server);
  k->ca_data = ca != NULL ? mw_xstrdup(ca) : NULL;
  k->insecure_skip_tls_verify = insecure;
  return k;
}

void mw_kubeconfig_free(struct mw_kubeconfig *k) {
  if (k == NULL) return;
  char *const texts[] = {
      k->origin,  k->context,    k->server,    k->namespace_, k->proxy_url,   k->tls_server_name,
      k->ca_file, k->ca_data,    k->cert_file, k->cert_data,  k->key_file,    k->key_data,
      k->token,   k->token_file, k->username,  k->password,   k->impersonate, k->impersonate_uid};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) mw_free(texts[i]);
  for (size_t i = 0; i < k->impersonate_group_count; i++) mw_free(k->impersonate_groups[i]);
  mw_free(k->impersonate_groups);
  free_pairs(k->impersonate_extra, k->impersonate_extra_count);
  free_exec(k->exec);
  mw_free(k);
}
