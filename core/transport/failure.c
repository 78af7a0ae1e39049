// SPDX-License-Identifier: Apache-2.0
// What libcurl's error codes mean to us, in words. Never names a secret: libcurl's own texts hold
// hosts, addresses and OpenSSL's reasons, and no header; those that hold a password stay unsaid.
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/internal.h"

enum { SAID_MAX = 200 };

// Who failed and where that came from.
struct place {
  CURL *easy;
  const struct mw_kubeconfig *config;
  const char *host;
  const char *detail;  // libcurl's words
  const char *proxy;   // what to check when it is the proxy's fault
};

static long info(const struct place *p, CURLINFO what) {
  long value = 0;
  curl_easy_getinfo(p->easy, what, &value);
  return value;
}

static bool mentions(const char *text, const char *what) { return strstr(text, what) != NULL; }

// The peer went away during the handshake, as a server does that is just starting or stopping.
static bool hung_up(const char *detail, long os_errno) {
  return os_errno == ECONNRESET || os_errno == EPIPE || mentions(detail, "SSL_ERROR_SYSCALL") ||
         mentions(detail, "reset by peer") || mentions(detail, "unexpected eof");
}

static bool has_ca(const struct mw_kubeconfig *k) {
  return k->ca_data != NULL || k->ca_file != NULL;
}

static const char *ca_option(const struct place *p) {
  return p->config->foreign ? "the option ca" : "certificate-authority";
}

static void server_tls_failure(const struct place *p, CURLcode code, struct mw_err *err) {
  if (mentions(p->detail, "subject name")) {
    mw_err_set(err, MW_ETLS,
               "%s: the server's certificate is for another name (%s): check server and "
               "tls-server-name of %s",
               p->host, p->detail, p->config->origin);
  } else if (mentions(p->detail, "expired") || mentions(p->detail, "not yet valid")) {
    mw_err_set(err, MW_ETLS, "%s: a certificate is not valid at this time (%s; %s)", p->host,
               p->detail, p->config->origin);
  } else if (code == CURLE_PEER_FAILED_VERIFICATION && !has_ca(p->config)) {
    mw_err_set(err, MW_ETLS,
               "%s: the server's certificate is not signed by a CA of this system (%s), and %s "
               "names no other: add %s",
               p->host, p->detail, p->config->origin, ca_option(p));
  } else if (code == CURLE_PEER_FAILED_VERIFICATION) {
    mw_err_set(err, MW_ETLS,
               "%s: the server's certificate is not signed by the CA of %s (%s): check %s", p->host,
               p->config->origin, p->detail, ca_option(p));
  } else if (code == CURLE_SSL_CACERT_BADFILE) {
    mw_err_set(err, MW_ETLS, "%s: certificate-authority of %s cannot be used (%s)", p->host,
               p->config->origin, p->detail);
  } else if (code == CURLE_SSL_CERTPROBLEM) {
    mw_err_set(err, MW_ETLS, "%s: client-certificate or client-key of %s cannot be used (%s)",
               p->host, p->config->origin, p->detail);
  } else if (mentions(p->detail, "alert")) {
    mw_err_set(err, MW_ETLS,
               "%s: the server refused the TLS connection (%s): check the client "
               "certificate of %s",
               p->host, p->detail, p->config->origin);
  } else if (mentions(p->detail, "wrong version number")) {
    mw_err_set(err, MW_ETLS, "%s: the server does not speak TLS: is it http:// instead (%s)?",
               p->host, p->config->origin);
  } else {
    mw_err_set(err, MW_ETLS, "%s: TLS failed (%s; %s)", p->host, p->detail, p->config->origin);
  }
}

// What goes on with an https:// proxy before anything is said to the server.
static void proxy_tls_failure(const struct place *p, CURLcode code, struct mw_err *err) {
  const char *what = "TLS with the proxy failed";
  if (mentions(p->detail, "subject name")) {
    what = "the proxy's certificate is for another name";
  } else if (mentions(p->detail, "expired") || mentions(p->detail, "not yet valid")) {
    what = "the proxy's certificate is not valid at this time";
  } else if (code == CURLE_PEER_FAILED_VERIFICATION) {
    what = has_ca(p->config) ? "the proxy's certificate is signed neither by the given CA nor by "
                               "one of this system"
                             : "the proxy's certificate is not signed by a CA of this system";
  } else if (mentions(p->detail, "wrong version number")) {
    what = "the proxy does not speak TLS, is it http:// instead?";
  }
  mw_err_set(err, MW_ETLS, "%s: %s (%s): check %s", p->host, what, p->detail, p->proxy);
}

// libcurl 7.88 sets a proxy's result to an error when TLS with it begins, and to 0 when it stands.
static void tls_failure(const struct place *p, CURLcode code, struct mw_err *err) {
  if (info(p, CURLINFO_PROXY_SSL_VERIFYRESULT) != 0) {
    proxy_tls_failure(p, code, err);
  } else {
    server_tls_failure(p, code, err);
  }
}

static const char *proxy_source(const struct mw_kubeconfig *k, char *room, size_t size) {
  if (k->proxy_url == NULL) return "HTTPS_PROXY and its like in the environment";
  snprintf(room, size, "proxy-url of %s", k->origin);
  return room;
}

// Of a proxy's address that it cannot read, libcurl quotes the whole, with the password in it.
static bool quotes_proxy(const char *detail) { return mentions(detail, "Unsupported proxy"); }

static void proxy_failure(const struct place *p, struct mw_err *err) {
  mw_err_set(err, MW_ECONNECT, "%s: the proxy cannot be used (%s): check %s", p->host, p->detail,
             p->proxy);
}

// Whether libcurl may have asked a proxy: one that is set to nothing is none.
static bool may_have_proxy(const struct mw_kubeconfig *k) {
  static const char *const names[] = {"HTTPS_PROXY", "https_proxy", "http_proxy", "ALL_PROXY",
                                      "all_proxy"};
  if (k->proxy_url != NULL) return true;
  bool found = false;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *value = getenv(names[i]);
    found |= value != NULL && *value != '\0';
  }
  return found && !mw_server_is_local(k->server);
}

// Whether libcurl's "host port n" is the server, which it may write in its own way.
static bool is_server(const struct mw_kubeconfig *k, struct mw_slice peer) {
  static const char between[] = " port ";
  struct mw_slice port, host = mw_server_host(k->server, &port);
  const char *at = memmem(peer.p, peer.n, between, sizeof between - 1);
  if (at == NULL) return false;
  return mw_host_same(mw_slice(peer.p, (size_t)(at - peer.p)), host) &&
         strtol(at + sizeof between - 1, NULL, 10) == strtol(port.p, NULL, 10);
}

// Whom libcurl says that it could not connect to, when that is not the server: then it is the
// proxy.
static struct mw_slice proxy_of(const struct place *p) {
  static const char before[] = "Failed to connect to ";
  const char *to = strstr(p->detail, before), *after = to != NULL ? strstr(to, " after ") : NULL;
  if (after == NULL || !may_have_proxy(p->config)) return mw_slice(NULL, 0);
  struct mw_slice peer = mw_slice(to + sizeof before - 1, (size_t)(after - to) - sizeof before + 1);
  return is_server(p->config, peer) ? mw_slice(NULL, 0) : peer;
}

static const char *server_name(const struct place *p) {
  return p->config->foreign ? "server" : "API server";
}

static void connect_failure(const struct place *p, long os_errno, struct mw_err *err) {
  struct mw_slice proxy = proxy_of(p);
  bool refused = os_errno == ECONNREFUSED;
  const char *why = os_errno != 0 ? strerror((int)os_errno) : p->detail;
  if (proxy.n > 0) {
    mw_err_set(err, refused ? MW_EREFUSED : MW_ECONNECT,
               "%s: the proxy, %.*s, cannot be reached (%s): check %s", p->host,
               MW_SLICE_ARGS(proxy), why, p->proxy);
  } else if (refused) {
    mw_err_set(err, MW_EREFUSED, "%s: connection refused: is the %s running (%s)?", p->host,
               server_name(p), p->config->origin);
  } else {
    mw_err_set(err, MW_ECONNECT, "%s: could not connect (%s; %s)", p->host, why, p->config->origin);
  }
}

// A proxy that was asked for a tunnel and answered with something else. That it could not reach
// the server (5xx) passes, as a server that refuses does.
static void tunnel_failure(const struct place *p, struct mw_err *err) {
  if (info(p, CURLINFO_HTTP_CONNECTCODE) >= 500) {
    mw_err_set(err, MW_EREFUSED,
               "%s: the proxy could not connect (%s): is the %s running (%s), and can the proxy "
               "reach it (%s)?",
               p->host, p->detail, server_name(p), p->config->origin, p->proxy);
  } else {
    mw_err_set(err, MW_ECONNECT, "%s: the proxy refused to connect (%s): check %s", p->host,
               p->detail, p->proxy);
  }
}

// libcurl does not say whose address it is.
static void bad_address(const struct place *p, struct mw_err *err) {
  bool proxy = may_have_proxy(p->config);
  mw_err_set(err, MW_EINVAL, "%s: not a valid address%s (%s; %s)%s%s", p->host,
             proxy ? ", or the proxy's is none" : "", p->detail, p->config->origin,
             proxy ? ": check also " : "", proxy ? p->proxy : "");
}

static void eof(const struct place *p, struct mw_err *err) {
  mw_err_set(err, MW_EEOF, "%s: the connection ended early (%s)", p->host, p->detail);
}

// After the connection stood.
static void transfer_failure(const struct place *p, CURLcode code, struct mw_err *err) {
  if (mentions(p->detail, "alert")) {
    tls_failure(p, code, err);
  } else if (mentions(p->detail, "CONNECT tunnel failed")) {
    tunnel_failure(p, err);
  } else {
    eof(p, err);
  }
}

void mw_failure(const struct mw_request *r, int curl_code, struct mw_err *err) {
  CURLcode code = (CURLcode)curl_code;
  const struct mw_kubeconfig *k = mw_endpoint_config(r->endpoint);
  const char *detail = r->curl_error[0] != '\0' ? r->curl_error : curl_easy_strerror(code);
  char room[MW_ERR_MESSAGE_MAX];
  struct place p = {r->easy, k, mw_endpoint_host(r->endpoint), detail,
                    proxy_source(k, room, sizeof room)};
  long os_errno = info(&p, CURLINFO_OS_ERRNO);
  if (quotes_proxy(detail)) {
    p.detail = "its address is not valid";
    proxy_failure(&p, err);
    return;
  }
  switch (code) {
    case CURLE_COULDNT_CONNECT:
      connect_failure(&p, os_errno, err);
      return;
    case CURLE_COULDNT_RESOLVE_HOST:
      mw_err_set(err, MW_ECONNECT, "%s: could not resolve host: check server of %s", p.host,
                 k->origin);
      return;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY:
      proxy_failure(&p, err);
      return;
    case CURLE_OPERATION_TIMEDOUT:
      mw_err_set(err, MW_ETIMEOUT, "%s: timed out (%s; %s)", p.host, detail, k->origin);
      return;
    case CURLE_SSL_CONNECT_ERROR:
      if (hung_up(detail, os_errno)) {
        eof(&p, err);
      } else {
        tls_failure(&p, code, err);
      }
      return;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
      tls_failure(&p, code, err);
      return;
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
      transfer_failure(&p, code, err);
      return;
    case CURLE_URL_MALFORMAT:
      bad_address(&p, err);
      return;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
      mw_err_set(err, MW_ECONNECT, "%s: the server does not speak HTTP (%s): check server of %s",
                 p.host, detail, k->origin);
      return;
    default:  // GOT_NOTHING, PARTIAL_FILE, HTTP2, HTTP2_STREAM and whatever else breaks a transfer
      eof(&p, err);
      return;
  }
}

void mw_endpoint_unknown(const struct mw_endpoint *e, struct mw_err *err) {
  struct mw_err said = *err;
  if (mw_endpoint_config(e)->foreign) return;
  // What is advised has room behind it.
  size_t all = strlen(said.message), n = all < SAID_MAX ? all : SAID_MAX;
  while (n < all && n > 0 && ((unsigned char)said.message[n] & 0xC0) == 0x80) n--;
  mw_err_set(err, said.code, "%s: the server does not know who asks (%.*s%s): check the user of %s",
             mw_endpoint_host(e), (int)n, said.message, n < all ? "..." : "",
             mw_endpoint_config(e)->origin);
  err->http_status = said.http_status;
}
