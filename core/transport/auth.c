// SPDX-License-Identifier: Apache-2.0
// Keeps the credentials of one user fresh.
//
// Files (token, CA, client certificate and key) are read again when they were last read longer ago
// than FILE_AGE, or after a 401: the kubelet replaces a pod's token long before it expires. A file
// that cannot be read again keeps its last content. A plugin runs again when its credentials have
// expired or were rejected; whoever asks meanwhile waits for that one run.
#include "transport/auth.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "transport/internal.h"

static const double FILE_AGE = 60;
static const double EXEC_TIMEOUT = 60;
enum { FILE_MAX = 1024 * 1024 };

struct file {
  const char *path;  // the config's; NULL: none
  char *text;        // NULL: never read
  uint64_t read_at;
  bool stale;  // read it whatever its age
};

struct waiter {
  struct waiter *next;
  unsigned ticket;
  mw_auth_cb cb;
  void *ctx;
};

struct mw_auth {
  struct mw_loop *loop;
  const struct mw_kubeconfig *config;
  double exec_timeout;
  struct file token, ca, cert, key;
  char *authorization;  // of the token, the user and password or the plugin; NULL: none
  struct mw_exec_run *run;
  struct mw_exec_result plugin;
  bool has_plugin;  // plugin is good until it expires
  unsigned serial;
  unsigned last_ticket;
  struct waiter *waiting;     // for the run
  struct waiter *delivering;  // being told; a list of its own, as they may ask again
};

static void set_text(char **to, const char *text) {
  char *copy = text != NULL ? mw_xstrdup(text) : NULL;
  mw_free(*to);
  *to = copy;
}

static bool same(const char *a, const char *b) {
  return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static void set_authorization(struct mw_auth *a, const char *scheme, struct mw_slice value) {
  struct mw_buf b;
  mw_buf_init(&b, 2 * FILE_MAX);
  if (mw_buf_printf(&b, "%s %.*s", scheme, MW_SLICE_ARGS(value)) == 0 &&
      !same(b.p, a->authorization)) {
    set_text(&a->authorization, b.p);
    a->serial++;
  }
  mw_buf_deinit(&b);
}

static void set_basic(struct mw_auth *a) {
  struct mw_buf plain, coded;
  mw_buf_init(&plain, FILE_MAX);
  mw_buf_init(&coded, 2 * FILE_MAX);
  const char *password = a->config->password != NULL ? a->config->password : "";
  if (mw_buf_printf(&plain, "%s:%s", a->config->username, password) == 0 &&
      mw_base64_encode(mw_buf_slice(&plain), &coded) == 0) {
    set_authorization(a, "Basic", mw_buf_slice(&coded));
  }
  mw_buf_deinit(&plain);
  mw_buf_deinit(&coded);
}

struct mw_auth *mw_auth_new(struct mw_loop *loop, const struct mw_kubeconfig *config) {
  struct mw_auth *a = mw_xcalloc(1, sizeof *a);
  a->loop = loop;
  a->config = config;
  a->exec_timeout = EXEC_TIMEOUT;
  a->token.path = config->token_file;
  if (config->ca_data == NULL) a->ca.path = config->ca_file;
  if (config->cert_data == NULL) a->cert.path = config->cert_file;
  if (config->key_data == NULL) a->key.path = config->key_file;
  if (config->token != NULL) {
    set_authorization(a, "Bearer", mw_slice_str(config->token));
  } else if (config->username != NULL) {
    set_basic(a);
  }
  return a;
}

void mw_auth_age_files(struct mw_auth *a, double seconds) {
  struct file *const files[] = {&a->token, &a->ca, &a->cert, &a->key};
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    files[i]->read_at -= (uint64_t)(seconds * 1e9);
  }
}

void mw_auth_set_exec_timeout(struct mw_auth *a, double seconds) { a->exec_timeout = seconds; }

static void free_waiters(struct waiter *w) {
  while (w != NULL) {
    struct waiter *next = w->next;
    mw_free(w);
    w = next;
  }
}

void mw_auth_free(struct mw_auth *a) {
  mw_exec_cancel(&a->run);
  free_waiters(a->waiting);
  free_waiters(a->delivering);
  mw_exec_result_deinit(&a->plugin);
  mw_free(a->token.text);
  mw_free(a->ca.text);
  mw_free(a->cert.text);
  mw_free(a->key.text);
  mw_free(a->authorization);
  mw_free(a);
}

// ---- files ----

static bool needs_reading(const struct file *f) {
  if (f->path == NULL) return false;
  if (f->text == NULL || f->stale) return true;
  return (double)(mw_clock_now() - f->read_at) / 1e9 >= FILE_AGE;
}

// Sets *changed when the file holds something new.
static int read_again(struct mw_auth *a, struct file *f, bool *changed, struct mw_err *err) {
  if (!needs_reading(f)) return 0;
  struct mw_err why = {0};
  struct mw_buf b;
  mw_buf_init(&b, FILE_MAX);
  int rc = mw_file_read(f->path, &b, &why);
  f->read_at = mw_clock_now();
  f->stale = false;
  if (rc == 0 && !same(f->text, b.p)) {
    set_text(&f->text, b.p);
    *changed = true;
  } else if (rc < 0 && f->text != NULL) {
    mw_log(MW_LOG_WARN, "credentials not read again", MW_STR("error", why.message),
           MW_STR("of", a->config->origin));
    rc = 0;
  } else if (rc < 0) {
    rc = mw_err_set(err, MW_EAUTH, "%s: %s", a->config->origin, why.message);
  }
  mw_buf_deinit(&b);
  return rc;
}

static int read_token(struct mw_auth *a, struct mw_err *err) {
  bool changed = false;
  int rc = read_again(a, &a->token, &changed, err);
  if (rc < 0 || a->token.text == NULL) return rc;
  struct mw_slice s = mw_slice_str(a->token.text);
  while (s.n > 0 && isspace((unsigned char)s.p[s.n - 1])) s.n--;
  while (s.n > 0 && isspace((unsigned char)s.p[0])) s = mw_slice(s.p + 1, s.n - 1);
  const char *problem = s.n == 0 ? "is empty" : NULL;
  for (size_t i = 0; i < s.n; i++) {
    if (iscntrl((unsigned char)s.p[i])) problem = "does not hold a token";
  }
  if (problem != NULL) {
    a->token.stale = true;
    return mw_err_set(err, MW_EAUTH, "%s: the token file %s %s", a->config->origin, a->token.path,
                      problem);
  }
  set_authorization(a, "Bearer", s);
  return 0;
}

static int read_files(struct mw_auth *a, struct mw_err *err) {
  bool changed = false;
  int rc = read_token(a, err);
  // As in client-go, a token that is given serves until the file holds one.
  if (rc < 0 && a->config->token != NULL) {
    mw_log(MW_LOG_DEBUG, "the token file is passed over", MW_STR("error", err->message));
    rc = 0;
  }
  if (rc == 0) rc = read_again(a, &a->ca, &changed, err);
  if (rc == 0) rc = read_again(a, &a->cert, &changed, err);
  if (rc == 0) rc = read_again(a, &a->key, &changed, err);
  if (changed) a->serial++;
  return rc;
}

// ---- the plugin ----

static bool plugin_is_good(const struct mw_auth *a) {
  if (!a->has_plugin) return false;
  return a->plugin.expires <= 0 || mw_clock_wall() < a->plugin.expires;
}

static void give(struct mw_auth *a, mw_auth_cb cb, void *ctx) {
  struct mw_credentials c = {.authorization = a->authorization,
                             .ca_data = a->ca.text,
                             .cert_data = a->cert.text,
                             .key_data = a->key.text,
                             .serial = a->serial};
  // The key may be a file while the certificate is not, and the other way round.
  if (c.cert_data == NULL) c.cert_data = a->config->cert_data;
  if (c.key_data == NULL) c.key_data = a->config->key_data;
  if (a->plugin.cert_data != NULL) {
    c.cert_data = a->plugin.cert_data;
    c.key_data = a->plugin.key_data;
  }
  cb(ctx, &c, NULL);
}

static void take_plugin(struct mw_auth *a, const struct mw_exec_result *result) {
  set_text(&a->plugin.token, result->token);
  set_text(&a->plugin.cert_data, result->cert_data);
  set_text(&a->plugin.key_data, result->key_data);
  a->plugin.expires = result->expires;
  a->has_plugin = true;
  a->serial++;
  // As in client-go, a token or password of the kubeconfig itself comes first.
  bool fixed =
      a->config->token != NULL || a->config->token_file != NULL || a->config->username != NULL;
  if (fixed) return;
  if (result->token != NULL) {
    set_authorization(a, "Bearer", mw_slice_str(result->token));
  } else {
    set_text(&a->authorization, NULL);
  }
}

static void on_plugin(void *ctx, const struct mw_exec_result *result, const struct mw_err *err) {
  struct mw_auth *a = ctx;
  a->run = NULL;
  if (result != NULL) take_plugin(a, result);
  a->delivering = a->waiting;
  a->waiting = NULL;
  while (a->delivering != NULL) {
    struct waiter *w = a->delivering;
    a->delivering = w->next;
    if (err != NULL) {
      w->cb(w->ctx, NULL, err);
    } else {
      give(a, w->cb, w->ctx);
    }
    mw_free(w);
  }
}

static unsigned wait_for_plugin(struct mw_auth *a, mw_auth_cb cb, void *ctx) {
  struct waiter *w = mw_xcalloc(1, sizeof *w);
  if (++a->last_ticket == 0) a->last_ticket = 1;
  w->ticket = a->last_ticket;
  w->cb = cb;
  w->ctx = ctx;
  struct waiter **tail = &a->waiting;
  while (*tail != NULL) tail = &(*tail)->next;
  *tail = w;
  if (a->run == NULL) {
    a->run = mw_exec_start(a->loop, a->config, a->exec_timeout, on_plugin, a);
  }
  return w->ticket;
}

unsigned mw_auth_get(struct mw_auth *a, mw_auth_cb cb, void *ctx) {
  struct mw_err err = {0};
  if (read_files(a, &err) < 0) {
    cb(ctx, NULL, &err);
    return 0;
  }
  if (a->config->exec != NULL && !plugin_is_good(a)) return wait_for_plugin(a, cb, ctx);
  give(a, cb, ctx);
  return 0;
}

static bool drop(struct waiter **list, unsigned ticket) {
  for (; *list != NULL; list = &(*list)->next) {
    struct waiter *w = *list;
    if (w->ticket != ticket) continue;
    *list = w->next;
    mw_free(w);
    return true;
  }
  return false;
}

void mw_auth_cancel(struct mw_auth *a, unsigned ticket) {
  if (!drop(&a->waiting, ticket)) drop(&a->delivering, ticket);
}

void mw_auth_reject(struct mw_auth *a, unsigned serial) {
  if (serial != a->serial) return;
  a->has_plugin = false;
  a->token.stale = a->ca.stale = a->cert.stale = a->key.stale = true;
}
