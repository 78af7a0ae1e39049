// SPDX-License-Identifier: Apache-2.0
// Where kubeconfig files come from: --kubeconfig, $KUBECONFIG, ~/.kube/config, the pod.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "transport/internal.h"

enum { MAX_FILES = 64, NAMESPACE_MAX = 253 };

static const char pod_dir[] = "/var/run/secrets/kubernetes.io/serviceaccount";

struct files {
  struct mw_kubeconfig_doc docs[MAX_FILES];
  size_t count;
  struct mw_buf label;  // all of them, for messages
};

static int read_all(int fd, struct mw_buf *out) {
  for (;;) {
    char chunk[16 * 1024];
    ssize_t n = read(fd, chunk, sizeof chunk);
    if (n == 0) return 0;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return MW_EIO;
    int rc = mw_buf_add(out, chunk, (size_t)n);
    if (rc < 0) return rc;
  }
}

int mw_file_read(const char *path, struct mw_buf *out, struct mw_err *err) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    bool absent = errno == ENOENT || errno == ENOTDIR;
    return mw_err_set(err, absent ? MW_ENOTFOUND : MW_EIO, "%s: %s", path, strerror(errno));
  }
  int rc = read_all(fd, out);
  int why = errno;
  close(fd);
  if (rc == MW_ELIMIT) return mw_err_set(err, rc, "%s: larger than %zu bytes", path, out->limit);
  if (rc < 0) return mw_err_set(err, rc, "%s: %s", path, strerror(why));
  if (out->p == NULL) return mw_buf_add(out, "", 0);
  return 0;
}

// A path as people write it: with ~ for the home directory.
static char *shorten(const char *path) {
  const char *home = getenv("HOME");
  size_t n = home != NULL ? strlen(home) : 0;
  if (n < 2 || strncmp(path, home, n) != 0 || path[n] != '/') return mw_xstrdup(path);
  size_t rest = strlen(path) - n;
  char *s = mw_xmalloc(rest + 2);
  s[0] = '~';
  memcpy(s + 1, path + n, rest + 1);
  return s;
}

// The directory of a file as an absolute path, so that a later chdir changes nothing. The file
// itself may be a link: as with kubectl, what counts is where the link is.
static char *directory(const char *path) {
  const char *slash = strrchr(path, '/');
  char *dir = slash == path   ? mw_xstrdup("/")
              : slash != NULL ? mw_xstrndup(path, (size_t)(slash - path))
                              : mw_xstrdup(".");
  char *full = realpath(dir, NULL);
  if (full == NULL) return dir;
  mw_free(dir);
  return full;
}

static void files_init(struct files *f) {
  f->count = 0;
  mw_buf_init(&f->label, MW_ERR_MESSAGE_MAX);
}

static void files_deinit(struct files *f) {
  for (size_t i = 0; i < f->count; i++) {
    mw_yaml_free(f->docs[i].yaml);
    mw_free(f->docs[i].label);
    mw_free(f->docs[i].dir);
  }
  mw_buf_deinit(&f->label);
}

// Adds one file. One that holds nothing at all (/dev/null) counts as not there.
static int add_file(struct files *f, const char *path, struct mw_err *err) {
  struct mw_err why = {0};
  struct mw_buf text;
  mw_buf_init(&text, MW_YAML_MAX_BYTES);
  char *label = shorten(path);
  struct mw_yaml *yaml = NULL;
  int rc = mw_file_read(path, &text, &why);
  if (rc == 0) {
    yaml = mw_yaml_parse(text.p, text.n, label, &why);
    if (yaml == NULL) rc = why.code;
  }
  mw_buf_deinit(&text);
  if (rc == 0 && mw_yaml_root(yaml) == 0)
    rc = mw_err_set(&why, MW_ENOTFOUND, "%s: is empty", label);
  if (rc < 0) {
    mw_yaml_free(yaml);
    mw_free(label);
    return mw_err_set(err, rc, "kubeconfig %s", why.message);
  }
  f->docs[f->count++] = (struct mw_kubeconfig_doc){yaml, label, directory(path)};
  // A label that does not fit is cut; it is only read by people.
  if (mw_buf_printf(&f->label, "%s%s", f->count > 1 ? ":" : "", label) < 0) return 0;
  return 0;
}

// Adds every file of a colon-separated list that exists.
static int add_list(struct files *f, const char *list, struct mw_err *err) {
  while (*list != '\0') {
    size_t n = strcspn(list, ":");
    char *path = mw_xstrndup(list, n);
    list += n + (list[n] == ':');
    int rc = 0;
    if (n > 0 && f->count == MAX_FILES) {
      rc = mw_err_set(err, MW_ELIMIT, "KUBECONFIG: more than %d files", MAX_FILES);
    } else if (n > 0) {
      rc = add_file(f, path, err);
    }
    mw_free(path);
    if (rc < 0 && rc != MW_ENOTFOUND) return rc;
  }
  return 0;
}

// Collects the files that source and environment ask for; none found is not an error.
static int collect(struct files *f, const struct mw_kubeconfig_source *source, struct mw_err *err) {
  if (source->path != NULL && *source->path != '\0') return add_file(f, source->path, err);
  const char *list = getenv("KUBECONFIG");
  if (list != NULL && *list != '\0') return add_list(f, list, err);
  const char *home = getenv("HOME");
  if (home == NULL || *home == '\0') return 0;
  struct mw_buf path;
  mw_buf_init(&path, 4096);
  int rc = mw_buf_printf(&path, "%s/.kube/config", home);
  if (rc == 0) rc = add_file(f, path.p, err);
  mw_buf_deinit(&path);
  return rc == MW_ENOTFOUND || rc == MW_ELIMIT ? 0 : rc;
}

static int check_file(const struct mw_kubeconfig *k, const char *field, const char *path,
                      struct mw_err *err) {
  if (path == NULL || access(path, R_OK) == 0) return 0;
  return mw_err_set(err, errno == ENOENT ? MW_ENOTFOUND : MW_EIO, "%s: %s %s: %s", k->origin, field,
                    path, strerror(errno));
}

// The files that the chosen entries name must be readable now, not at the first request; that of a
// token need not be while there is another one.
static int check_files(const struct mw_kubeconfig *k, struct mw_err *err) {
  int rc = 0;
  if (k->ca_data == NULL) rc = check_file(k, "certificate-authority", k->ca_file, err);
  if (rc == 0 && k->cert_data == NULL) rc = check_file(k, "client-certificate", k->cert_file, err);
  if (rc == 0 && k->key_data == NULL) rc = check_file(k, "client-key", k->key_file, err);
  if (rc == 0 && k->token == NULL) rc = check_file(k, "tokenFile", k->token_file, err);
  return rc;
}

static struct mw_kubeconfig *none_found(struct mw_err *err) {
  struct mw_err why = {0};
  struct mw_kubeconfig *k = mw_kubeconfig_in_cluster(&why);
  if (k != NULL) return k;
  if (why.code != MW_ENOTFOUND) {
    mw_err_set(err, why.code, "%s", why.message);
    return NULL;
  }
  const char *list = getenv("KUBECONFIG");
  if (list != NULL && *list != '\0') {
    mw_err_set(err, MW_ENOTFOUND,
               "no cluster is configured: KUBECONFIG names %s, which does not exist or is empty; "
               "name a file with --kubeconfig or KUBECONFIG, or run inside a cluster; --sandbox "
               "needs none",
               list);
  } else {
    mw_err_set(err, MW_ENOTFOUND,
               "no cluster is configured: name a file with --kubeconfig or KUBECONFIG (there is no "
               "~/.kube/config), or run inside a cluster; --sandbox needs none");
  }
  return NULL;
}

struct mw_kubeconfig *mw_kubeconfig_load(const struct mw_kubeconfig_source *source,
                                         struct mw_err *err) {
  if (source->text != NULL) {
    return mw_kubeconfig_parse(source->text, strlen(source->text), source->context, "the sandbox",
                               NULL, err);
  }
  struct files f;
  files_init(&f);
  struct mw_kubeconfig *k = NULL;
  int rc = collect(&f, source, err);
  if (rc == 0 && f.count == 0) {
    k = none_found(err);
  } else if (rc == 0) {
    k = mw_kubeconfig_resolve(f.docs, f.count, f.label.p != NULL ? f.label.p : "", source->context,
                              err);
    if (k != NULL && check_files(k, err) < 0) {
      mw_kubeconfig_free(k);
      k = NULL;
    }
  }
  files_deinit(&f);
  return k;
}

static char *path_in(const char *dir, const char *name) {
  struct mw_buf b;
  mw_buf_init(&b, 4096);
  if (mw_buf_printf(&b, "%s/%s", dir, name) == 0) return b.p;
  mw_buf_deinit(&b);
  return mw_xstrdup("");
}

static char *pod_namespace(const char *dir) {
  struct mw_buf b;
  mw_buf_init(&b, NAMESPACE_MAX + 1);
  char *path = path_in(dir, "namespace");
  char *name = NULL;
  if (mw_file_read(path, &b, NULL) == 0) {
    size_t n = strcspn(b.p, " \t\r\n");
    if (n > 0) name = mw_xstrndup(b.p, n);
  }
  mw_free(path);
  mw_buf_deinit(&b);
  return name;
}

struct mw_kubeconfig *mw_kubeconfig_pod(const char *dir, struct mw_err *err) {
  const char *host = getenv("KUBERNETES_SERVICE_HOST");
  const char *port = getenv("KUBERNETES_SERVICE_PORT");
  if (host == NULL || *host == '\0' || port == NULL || *port == '\0') {
    mw_err_set(err, MW_ENOTFOUND, "not inside a cluster: KUBERNETES_SERVICE_HOST is not set");
    return NULL;
  }
  struct mw_kubeconfig *k = mw_xcalloc(1, sizeof *k);
  k->origin = mw_xstrdup("in-cluster");
  k->token_file = path_in(dir, "token");
  k->ca_file = path_in(dir, "ca.crt");
  k->namespace_ = pod_namespace(dir);
  bool v6 = strchr(host, ':') != NULL;
  struct mw_buf server;
  mw_buf_init(&server, 1024);
  int rc = mw_buf_printf(&server, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
  k->server = server.p;
  if (rc < 0) mw_err_set(err, rc, "in-cluster: KUBERNETES_SERVICE_HOST is too long");
  if (rc == 0 && access(k->token_file, R_OK) != 0) {
    rc = mw_err_set(err, MW_EAUTH,
                    "in-cluster: %s: %s; does the pod set automountServiceAccountToken: false?",
                    k->token_file, strerror(errno));
  }
  // As client-go does: without a CA file the system's roots are tried.
  if (rc == 0 && access(k->ca_file, R_OK) != 0) {
    mw_free(k->ca_file);
    k->ca_file = NULL;
  }
  if (rc == 0) return k;
  mw_kubeconfig_free(k);
  return NULL;
}

struct mw_kubeconfig *mw_kubeconfig_in_cluster(struct mw_err *err) {
  return mw_kubeconfig_pod(pod_dir, err);
}
