// SPDX-License-Identifier: Apache-2.0
// The libcurl handle of one attempt: address, headers, TLS, limits.
//
// Certificates always go in as memory. libcurl compares them when it looks for a connection to use
// again, so that rotated ones get new connections by themselves; and it would cache a CA file by
// its name for a day.
#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "transport/internal.h"

#ifndef MW_VERSION
#define MW_VERSION "0.1.0"
#endif

enum { URL_MAX = 64 * 1024, HEADER_MAX = 1024 * 1024, KEEPALIVE_IDLE = 15, KEEPALIVE_INTERVAL = 5 };
enum { DEAD_PEER_MS = 30 * 1000 };

// Collects what goes wrong, so that options read as a list.
struct setup {
  struct mw_request *r;
  const struct mw_kubeconfig *k;
  CURL *easy;
  int rc;
};

static void text_option(struct setup *s, CURLoption option, const char *value) {
  if (curl_easy_setopt(s->easy, option, value) != CURLE_OK) s->rc = MW_EINVAL;
}

static void number_option(struct setup *s, CURLoption option, long value) {
  if (curl_easy_setopt(s->easy, option, value) != CURLE_OK) s->rc = MW_EINVAL;
}

static void blob_option(struct setup *s, CURLoption option, const char *pem) {
  if (pem == NULL) return;
  struct curl_blob blob = {.data = (char *)pem, .len = strlen(pem), .flags = CURL_BLOB_COPY};
  if (curl_easy_setopt(s->easy, option, &blob) != CURLE_OK) s->rc = MW_EINVAL;
}

static void header(struct setup *s, const char *name, const char *suffix, const char *value) {
  struct mw_buf line;
  mw_buf_init(&line, HEADER_MAX);
  // A header without a value is written with a semicolon in libcurl's list.
  const char *separator = *value != '\0' ? ": " : ";";
  if (mw_buf_printf(&line, "%s%s%s%s", name, suffix, separator, value) < 0 ||
      !mw_header_safe(line.p)) {
    s->rc = MW_EINVAL;
  } else {
    struct curl_slist *list = curl_slist_append(s->r->headers, line.p);
    if (list == NULL) s->rc = MW_ELIMIT;
    if (list != NULL) s->r->headers = list;
  }
  mw_buf_deinit(&line);
}

// Takes a header away that libcurl would add by itself.
static void no_header(struct setup *s, const char *line) {
  struct curl_slist *list = curl_slist_append(s->r->headers, line);
  if (list != NULL) s->r->headers = list;
}

// The key of Impersonate-Extra-<key> may hold what a header name must not: it is percent-encoded.
static void extra_header(struct setup *s, const struct mw_exec_env *extra) {
  struct mw_buf key;
  mw_buf_init(&key, HEADER_MAX);
  int rc = 0;
  for (const char *p = extra->name; *p != '\0' && rc == 0; p++) {
    bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
                 strchr("!#$&'*+-.^_`|~", *p) != NULL;
    rc = plain ? mw_buf_add(&key, p, 1) : mw_buf_printf(&key, "%%%02X", (unsigned char)*p);
  }
  if (rc == 0 && key.n > 0) header(s, "Impersonate-Extra-", key.p, extra->value);
  mw_buf_deinit(&key);
}

static void set_headers(struct setup *s, const struct mw_credentials *c) {
  const struct mw_kubeconfig *k = s->k;
  header(s, "Accept", "", s->r->accept);
  if (s->r->body != NULL && s->r->content_type != NULL) {
    header(s, "Content-Type", "", s->r->content_type);
  }
  no_header(s, "Expect:");
  if (c->authorization != NULL) header(s, "Authorization", "", c->authorization);
  if (k->impersonate != NULL) header(s, "Impersonate-User", "", k->impersonate);
  if (k->impersonate_uid != NULL) header(s, "Impersonate-Uid", "", k->impersonate_uid);
  for (size_t i = 0; i < k->impersonate_group_count; i++) {
    header(s, "Impersonate-Group", "", k->impersonate_groups[i]);
  }
  for (size_t i = 0; i < k->impersonate_extra_count; i++) extra_header(s, &k->impersonate_extra[i]);
  for (size_t i = 0; i < s->r->extra_count; i++) {
    header(s, s->r->extra[i].name, "", s->r->extra[i].value);
  }
}

// tls-server-name: the address carries that name, so that libcurl asks for and verifies it, while
// CONNECT_TO says where to connect and the Host header stays the server's own.
static int set_other_name(struct setup *s, struct mw_buf *url) {
  const char *authority = mw_endpoint_host(s->r->endpoint);
  struct mw_slice port, host = mw_server_host(s->k->server, &port);
  bool is_ipv6 = memchr(host.p, ':', host.n) != NULL;
  struct mw_buf line;
  mw_buf_init(&line, URL_MAX);
  int rc = mw_buf_printf(&line, "%s:%.*s:%s%.*s%s:%.*s", s->k->tls_server_name, MW_SLICE_ARGS(port),
                         is_ipv6 ? "[" : "", MW_SLICE_ARGS(host), is_ipv6 ? "]" : "",
                         MW_SLICE_ARGS(port));
  if (rc == 0) {
    s->r->connect_to = curl_slist_append(NULL, line.p);
    curl_easy_setopt(s->easy, CURLOPT_CONNECT_TO, s->r->connect_to);
    header(s, "Host", "", authority);
  }
  mw_buf_deinit(&line);
  if (rc < 0) return rc;
  return mw_buf_printf(url, "https://%s:%.*s%s", s->k->tls_server_name, MW_SLICE_ARGS(port),
                       strstr(s->k->server, "://") + 3 + strlen(authority));
}

static void set_url(struct setup *s) {
  struct mw_buf url;
  mw_buf_init(&url, URL_MAX);
  bool tls = strncmp(s->k->server, "https://", 8) == 0;
  int rc = tls && s->k->tls_server_name != NULL ? set_other_name(s, &url)
                                                : mw_buf_printf(&url, "%s", s->k->server);
  if (rc == 0) rc = mw_buf_printf(&url, "%s", s->r->path);
  if (rc < 0) s->rc = rc;
  if (rc == 0) text_option(s, CURLOPT_URL, url.p);
  mw_buf_deinit(&url);
  number_option(s, CURLOPT_PATH_AS_IS, 1);
  // HTTP/2 without TLS is never spoken: libcurl 7.88 breaks every stream after the first.
  bool h2 = tls && !s->r->http->config.http1_only;
  number_option(s, CURLOPT_HTTP_VERSION, h2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1);
  number_option(s, CURLOPT_PIPEWAIT, h2 ? 1 : 0);
}

// The body goes out by a callback that cannot go back: when a connection that was used before ends
// without an answer, libcurl sends a request again by itself if it can, and a write may have
// happened by then.
static void set_method(struct setup *s) {
  struct mw_request *r = s->r;
  if (r->body != NULL) {
    number_option(s, CURLOPT_POST, 1);
    curl_easy_setopt(s->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_size);
    curl_easy_setopt(s->easy, CURLOPT_READFUNCTION, mw_request_on_send);
    curl_easy_setopt(s->easy, CURLOPT_READDATA, r);
  }
  if (strcmp(r->method, "HEAD") == 0) {
    number_option(s, CURLOPT_NOBODY, 1);
  } else if (r->body != NULL || strcmp(r->method, "GET") != 0) {
    text_option(s, CURLOPT_CUSTOMREQUEST, r->method);
  }
}

// libcurl has OpenSSL give the buffer of each connection back whenever it is empty, which it is
// after each piece of an event: we have few connections, and they are busy.
static CURLcode on_tls_context(CURL *easy, void *context, void *ctx) {
  (void)easy;
  (void)ctx;
  SSL_CTX_clear_mode((SSL_CTX *)context, SSL_MODE_RELEASE_BUFFERS);
  return CURLE_OK;
}

// As with client-go, the CA of a kubeconfig and insecure-skip-tls-verify hold for an https:// proxy
// as well; its certificate may also be signed by a CA of the system's directory. A client
// certificate and tls-server-name are for the server alone.
static void set_tls(struct setup *s, const struct mw_credentials *c) {
  const char *ca = c->ca_data != NULL ? c->ca_data : s->k->ca_data;
  number_option(s, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
  number_option(s, CURLOPT_PROXY_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
  curl_easy_setopt(s->easy, CURLOPT_SSL_CTX_FUNCTION, on_tls_context);
  if (s->k->insecure_skip_tls_verify) {
    number_option(s, CURLOPT_SSL_VERIFYPEER, 0);
    number_option(s, CURLOPT_SSL_VERIFYHOST, 0);
    number_option(s, CURLOPT_PROXY_SSL_VERIFYPEER, 0);
    number_option(s, CURLOPT_PROXY_SSL_VERIFYHOST, 0);
  } else if (ca != NULL) {
    // Only this CA: neither the system's file nor its directory.
    text_option(s, CURLOPT_CAINFO, NULL);
    text_option(s, CURLOPT_CAPATH, NULL);
    blob_option(s, CURLOPT_CAINFO_BLOB, ca);
    blob_option(s, CURLOPT_PROXY_CAINFO_BLOB, ca);
  }
  bool own = c->cert_data != NULL;
  blob_option(s, CURLOPT_SSLCERT_BLOB, own ? c->cert_data : s->k->cert_data);
  blob_option(s, CURLOPT_SSLKEY_BLOB, own ? c->key_data : s->k->key_data);
}

// As with client-go, *_PROXY and NO_PROXY of the environment count when the kubeconfig says
// nothing, but not for a server on this machine, as the sandbox or that of kind is. Names are
// resolved by a SOCKS proxy, which is offered no Kerberos: libcurl would block the loop for it, and
// may not have it (core/absent.c).
static void set_proxy(struct setup *s) {
  number_option(s, CURLOPT_SOCKS5_AUTH, CURLAUTH_BASIC);
  number_option(s, CURLOPT_HEADEROPT, CURLHEADER_SEPARATE);
  number_option(s, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1);
  if (s->k->proxy_url == NULL) {
    if (mw_server_is_local(s->k->server)) text_option(s, CURLOPT_NOPROXY, "*");
    return;
  }
  text_option(s, CURLOPT_PROXY, s->k->proxy_url);
  if (strncmp(s->k->proxy_url, "socks5://", 9) == 0) {
    struct mw_buf url;
    mw_buf_init(&url, URL_MAX);
    if (mw_buf_printf(&url, "socks5h://%s", s->k->proxy_url + 9) == 0) {
      text_option(s, CURLOPT_PROXY, url.p);
    }
    mw_buf_deinit(&url);
  }
  text_option(s, CURLOPT_NOPROXY, "");
}

// A peer that does not acknowledge what we sent is dead, even when libcurl only waits to read.
static int on_new_socket(void *ctx, curl_socket_t fd, curlsocktype purpose) {
  (void)purpose;
  struct mw_http *h = ctx;
  unsigned ms = DEAD_PEER_MS;
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
  h->stats.connections++;
  return CURL_SOCKOPT_OK;
}

static void set_limits(struct setup *s) {
  const struct mw_http_config *config = &s->r->http->config;
  number_option(s, CURLOPT_NOSIGNAL, 1);
  number_option(s, CURLOPT_NETRC, CURL_NETRC_IGNORED);
  number_option(s, CURLOPT_FOLLOWLOCATION, 0);
  text_option(s, CURLOPT_PROTOCOLS_STR, "http,https");
  number_option(s, CURLOPT_BUFFERSIZE, (long)config->buffer_size);
  number_option(s, CURLOPT_CONNECTTIMEOUT_MS, (long)(config->connect_timeout * 1000));
  number_option(s, CURLOPT_TCP_NODELAY, 1);
  number_option(s, CURLOPT_TCP_KEEPALIVE, 1);
  number_option(s, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE);
  number_option(s, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_INTERVAL);
  curl_easy_setopt(s->easy, CURLOPT_SOCKOPTFUNCTION, on_new_socket);
  curl_easy_setopt(s->easy, CURLOPT_SOCKOPTDATA, s->r->http);
  // Without it, cancelling a request would wait for a name server that does not answer.
  number_option(s, CURLOPT_QUICK_EXIT, 1);
}

static void set_callbacks(struct setup *s) {
  curl_easy_setopt(s->easy, CURLOPT_PRIVATE, s->r);
  curl_easy_setopt(s->easy, CURLOPT_ERRORBUFFER, s->r->curl_error);
  curl_easy_setopt(s->easy, CURLOPT_HEADERFUNCTION, mw_request_on_header);
  curl_easy_setopt(s->easy, CURLOPT_HEADERDATA, s->r);
  curl_easy_setopt(s->easy, CURLOPT_WRITEFUNCTION, mw_request_on_body);
  curl_easy_setopt(s->easy, CURLOPT_WRITEDATA, s->r);
  curl_easy_setopt(s->easy, CURLOPT_PREREQFUNCTION, mw_request_on_connected);
  curl_easy_setopt(s->easy, CURLOPT_PREREQDATA, s->r);
}

int mw_easy_open(struct mw_request *r, const struct mw_credentials *c, struct mw_err *err) {
  _Static_assert(MW_CURL_ERROR_SIZE >= CURL_ERROR_SIZE, "libcurl writes that much");
  const struct mw_kubeconfig *k = mw_endpoint_config(r->endpoint);
  struct setup s = {.r = r, .k = k, .easy = curl_easy_init()};
  if (s.easy == NULL) return mw_err_set(err, MW_ELIMIT, "%s: out of memory", k->server);
  r->easy = s.easy;
  r->curl_error[0] = '\0';
  set_callbacks(&s);
  set_headers(&s, c);
  set_url(&s);
  set_method(&s);
  set_tls(&s, c);
  set_proxy(&s);
  set_limits(&s);
  text_option(&s, CURLOPT_USERAGENT, "moonwatch/" MW_VERSION);
  curl_easy_setopt(s.easy, CURLOPT_HTTPHEADER, r->headers);
  if (s.rc == 0) return 0;
  mw_easy_close(r);
  return mw_err_set(err, s.rc,
                    "%s: %s %.200s cannot be sent: the path or a header is not valid (%s)",
                    mw_endpoint_host(r->endpoint), r->method, r->path, k->origin);
}

void mw_easy_close(struct mw_request *r) {
  if (r->easy != NULL) curl_easy_cleanup(r->easy);
  r->easy = NULL;
  curl_slist_free_all(r->headers);
  r->headers = NULL;
  curl_slist_free_all(r->connect_to);
  r->connect_to = NULL;
}
