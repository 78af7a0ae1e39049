// SPDX-License-Identifier: Apache-2.0
// The two documents of the exec plugin protocol: what we tell a plugin and what it answers.
// JSON is YAML, so the answer is read with the reader of kubeconfig files.
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "transport/internal.h"

enum { CA_MAX = 1024 * 1024 };

int mw_base64_encode(struct mw_slice s, struct mw_buf *out) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const unsigned char *p = (const unsigned char *)s.p;
  int rc = mw_buf_add(out, "", 0);
  for (size_t i = 0; i < s.n && rc == 0; i += 3) {
    size_t left = s.n - i;
    unsigned b1 = left > 1 ? p[i + 1] : 0, b2 = left > 2 ? p[i + 2] : 0;
    char four[4] = {digits[p[i] >> 2], digits[(p[i] & 3) << 4 | b1 >> 4],
                    left > 1 ? digits[(b1 & 15) << 2 | b2 >> 6] : '=',
                    left > 2 ? digits[b2 & 63] : '='};
    rc = mw_buf_add(out, four, sizeof four);
  }
  return rc;
}

int mw_text_quote(struct mw_slice s, struct mw_buf *out) {
  int rc = mw_buf_add(out, "\"", 1);
  for (size_t i = 0; i < s.n && rc == 0; i++) {
    unsigned char c = (unsigned char)s.p[i];
    if (c == '"' || c == '\\') {
      rc = mw_buf_printf(out, "\\%c", c);
    } else if (c < 0x20) {
      rc = mw_buf_printf(out, "\\u%04x", c);
    } else {
      rc = mw_buf_add(out, s.p + i, 1);
    }
  }
  return rc < 0 ? rc : mw_buf_add(out, "\"", 1);
}

static int add_json(struct mw_buf *out, const char *name, const char *value) {
  int rc = mw_buf_printf(out, ",\"%s\":", name);
  return rc < 0 ? rc : mw_text_quote(mw_slice_str(value), out);
}

static int add_ca(struct mw_buf *out, const struct mw_kubeconfig *k) {
  struct mw_buf ca, coded;
  mw_buf_init(&ca, CA_MAX);
  mw_buf_init(&coded, 2 * CA_MAX);
  int rc = 0;
  if (k->ca_data != NULL) {
    rc = mw_buf_add(&ca, k->ca_data, strlen(k->ca_data));
  } else if (k->ca_file != NULL) {
    rc = mw_file_read(k->ca_file, &ca, NULL);
  }
  if (rc == 0 && ca.n > 0) rc = mw_base64_encode(mw_buf_slice(&ca), &coded);
  if (rc == 0 && ca.n > 0) rc = add_json(out, "certificate-authority-data", coded.p);
  mw_buf_deinit(&ca);
  mw_buf_deinit(&coded);
  return rc;
}

static int add_cluster(struct mw_buf *out, const struct mw_kubeconfig *k) {
  int rc = mw_buf_printf(out, ",\"cluster\":{\"insecure-skip-tls-verify\":%s",
                         k->insecure_skip_tls_verify ? "true" : "false");
  if (rc == 0) rc = add_json(out, "server", k->server);
  if (rc == 0 && k->tls_server_name != NULL) {
    rc = add_json(out, "tls-server-name", k->tls_server_name);
  }
  if (rc == 0 && k->proxy_url != NULL) rc = add_json(out, "proxy-url", k->proxy_url);
  if (rc == 0) rc = add_ca(out, k);
  if (rc == 0 && k->exec->cluster_config != NULL) {
    rc = mw_buf_printf(out, ",\"config\":%s", k->exec->cluster_config);
  }
  return rc < 0 ? rc : mw_buf_add(out, "}", 1);
}

int mw_exec_info(const struct mw_kubeconfig *k, struct mw_buf *out) {
  int rc = mw_buf_printf(out, "{\"kind\":\"ExecCredential\"");
  if (rc == 0) rc = add_json(out, "apiVersion", k->exec->api_version);
  if (rc == 0) rc = mw_buf_printf(out, ",\"spec\":{\"interactive\":false");
  if (rc == 0 && k->exec->provide_cluster_info) rc = add_cluster(out, k);
  return rc < 0 ? rc : mw_buf_add(out, "}}", 2);
}

static bool all_digits(const char *p, size_t n, int *value) {
  *value = 0;
  for (size_t i = 0; i < n; i++) {
    if (!isdigit((unsigned char)p[i])) return false;
    *value = *value * 10 + (p[i] - '0');
  }
  return true;
}

// "Z" or "+02:00" as seconds east; false for anything else.
static bool zone(const char *p, size_t n, int *seconds) {
  int h, m;
  *seconds = 0;
  if (n == 1 && (*p == 'Z' || *p == 'z')) return true;
  if (n != 6 || (*p != '+' && *p != '-') || p[3] != ':') return false;
  if (!all_digits(p + 1, 2, &h) || !all_digits(p + 4, 2, &m)) return false;
  *seconds = (h * 60 + m) * 60 * (*p == '-' ? -1 : 1);
  return true;
}

double mw_time_rfc3339(struct mw_slice s) {
  // 2006-01-02T15:04:05[.999]Z
  static const struct {
    size_t at, n;
    char after;
  } fields[] = {{0, 4, '-'}, {5, 2, '-'}, {8, 2, 'T'}, {11, 2, ':'}, {14, 2, ':'}, {17, 2, '\0'}};
  int v[6], east;
  if (s.n < 20) return -1;
  for (size_t i = 0; i < 6; i++) {
    char after = s.p[fields[i].at + fields[i].n];
    if (!all_digits(s.p + fields[i].at, fields[i].n, &v[i])) return -1;
    if (fields[i].after != '\0' && toupper((unsigned char)after) != fields[i].after) return -1;
  }
  size_t end = 19;
  if (s.p[end] == '.') {
    for (end++; end < s.n && isdigit((unsigned char)s.p[end]);) end++;
  }
  if (end >= s.n || !zone(s.p + end, s.n - end, &east)) return -1;
  struct tm tm = {.tm_year = v[0] - 1900,
                  .tm_mon = v[1] - 1,
                  .tm_mday = v[2],
                  .tm_hour = v[3],
                  .tm_min = v[4],
                  .tm_sec = v[5]};
  double t = (double)timegm(&tm) - east;
  return t < 0 ? -1 : t;
}

static char *text(const struct mw_yaml *y, int node, const char *key) {
  struct mw_slice s = mw_yaml_text(y, mw_yaml_get(y, node, key));
  if (s.n == 0 || memchr(s.p, '\0', s.n) != NULL) return NULL;
  return mw_xstrndup(s.p, s.n);
}

static int check(const struct mw_exec_result *out, struct mw_err *err) {
  bool pair = out->cert_data != NULL && out->key_data != NULL;
  if ((out->cert_data != NULL) != (out->key_data != NULL)) {
    return mw_err_set(err, MW_EAUTH, "must print clientCertificateData and clientKeyData together");
  }
  if (out->token == NULL && !pair) {
    return mw_err_set(err, MW_EAUTH, "printed neither status.token nor a client certificate");
  }
  if (out->token != NULL && !mw_header_safe(out->token)) {
    return mw_err_set(err, MW_EAUTH, "printed a token with control characters");
  }
  if (pair && (strstr(out->cert_data, "-----BEGIN ") == NULL ||
               strstr(out->key_data, "-----BEGIN ") == NULL)) {
    return mw_err_set(err, MW_EAUTH, "printed a client certificate or key that is not PEM");
  }
  return 0;
}

static int read_status(const struct mw_yaml *y, const struct mw_exec_config *config,
                       struct mw_exec_result *out, struct mw_err *err) {
  int root = mw_yaml_root(y);
  struct mw_slice version = mw_yaml_text(y, mw_yaml_get(y, root, "apiVersion"));
  if (!mw_slice_is(mw_yaml_text(y, mw_yaml_get(y, root, "kind")), "ExecCredential")) {
    return mw_err_set(err, MW_EAUTH, "did not print an ExecCredential");
  }
  if (!mw_slice_is(version, config->api_version)) {
    return mw_err_set(err, MW_EAUTH, "printed apiVersion %.*s, but exec.apiVersion is %s",
                      MW_SLICE_ARGS(version), config->api_version);
  }
  int status = mw_yaml_get(y, root, "status");
  out->token = text(y, status, "token");
  out->cert_data = text(y, status, "clientCertificateData");
  out->key_data = text(y, status, "clientKeyData");
  struct mw_slice expires = mw_yaml_text(y, mw_yaml_get(y, status, "expirationTimestamp"));
  if (expires.n > 0) {
    out->expires = mw_time_rfc3339(expires);
    if (out->expires < 0) {
      return mw_err_set(err, MW_EAUTH, "printed an expirationTimestamp that is not RFC 3339");
    }
  }
  return check(out, err);
}

int mw_exec_parse(const char *p, size_t n, const struct mw_exec_config *config,
                  struct mw_exec_result *out, struct mw_err *err) {
  *out = (struct mw_exec_result){0};
  struct mw_yaml *y = mw_yaml_parse(p, n, "output", NULL);
  // The parser's own message could quote the output, which holds a secret.
  if (y == NULL) return mw_err_set(err, MW_EAUTH, "did not print JSON");
  int rc = read_status(y, config, out, err);
  mw_yaml_free(y);
  return rc;
}

void mw_exec_result_deinit(struct mw_exec_result *result) {
  mw_free(result->token);
  mw_free(result->cert_data);
  mw_free(result->key_data);
  *result = (struct mw_exec_result){0};
}
