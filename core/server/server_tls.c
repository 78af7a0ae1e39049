// SPDX-License-Identifier: Apache-2.0
// TLS between two memory BIOs: bytes of the socket go in and out by hand, so that libuv keeps the
// socket. What OpenSSL has to say is sent after each call into it.
#include "server/server_tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/alloc.h"
#include "server/internal.h"

struct mw_server_tls {
  SSL_CTX *ctx;
};

static const char *last_error(void) {
  const char *text = ERR_reason_error_string(ERR_peek_last_error());
  return text != NULL ? text : "unknown";
}

// ---- the context ----

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_n,
                           const unsigned char *in, unsigned in_n, void *arg) {
  (void)ssl;
  (void)arg;
  static const unsigned char ours[] = "\x08http/1.1";
  unsigned char *chosen = NULL;
  if (SSL_select_next_proto(&chosen, out_n, ours, sizeof ours - 1, in, in_n) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

// The first certificate is the server's own, the others lead to its CA.
static int use_chain(SSL_CTX *ctx, struct mw_slice pem, struct mw_err *err) {
  BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
  int rc = 0;
  size_t count = 0;
  for (X509 *x; rc == 0 && (x = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL; count++) {
    if (count == 0) {
      if (SSL_CTX_use_certificate(ctx, x) != 1) rc = MW_ETLS;
      X509_free(x);
    } else if (SSL_CTX_add0_chain_cert(ctx, x) != 1) {
      X509_free(x);
      rc = MW_ETLS;
    }
  }
  if (count == 0) rc = MW_ETLS;
  if (rc < 0) mw_err_set(err, rc, "the server's certificate cannot be used: %s", last_error());
  BIO_free(bio);
  return rc;
}

static int use_key(SSL_CTX *ctx, struct mw_slice pem, struct mw_err *err) {
  BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
  EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)"");
  int rc = 0;
  if (key == NULL || SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1) {
    rc = mw_err_set(err, MW_ETLS, "the server's private key cannot be used: %s", last_error());
  }
  EVP_PKEY_free(key);
  BIO_free(bio);
  return rc;
}

struct mw_server_tls *mw_server_tls_new(struct mw_slice certificate, struct mw_slice key,
                                        struct mw_err *err) {
  if (certificate.n == 0 || key.n == 0 || certificate.n > INT_MAX || key.n > INT_MAX) {
    mw_err_set(err, MW_EINVAL, "TLS needs a certificate and a private key, as PEM");
    return NULL;
  }
  ERR_clear_error();
  SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
  if (ctx == NULL) {
    mw_err_set(err, MW_ETLS, "TLS cannot be set up: %s", last_error());
    return NULL;
  }
  SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
  SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
  int rc = use_chain(ctx, certificate, err);
  if (rc == 0) rc = use_key(ctx, key, err);
  ERR_clear_error();
  if (rc < 0) {
    SSL_CTX_free(ctx);
    return NULL;
  }
  struct mw_server_tls *t = mw_xmalloc(sizeof *t);
  t->ctx = ctx;
  return t;
}

void mw_server_tls_free(struct mw_server_tls *t) {
  if (t == NULL) return;
  SSL_CTX_free(t->ctx);
  mw_free(t);
}

// ---- a connection ----

SSL *mw_tls_accept(struct mw_server_tls *t) {
  SSL *ssl = SSL_new(t->ctx);
  BIO *in = BIO_new(BIO_s_mem());
  BIO *out = BIO_new(BIO_s_mem());
  if (ssl == NULL || in == NULL || out == NULL) {
    SSL_free(ssl);
    BIO_free(in);
    BIO_free(out);
    return NULL;
  }
  SSL_set_bio(ssl, in, out);
  SSL_set_accept_state(ssl);
  return ssl;
}

static void flush(struct mw_conn *c) {
  struct mw_http_server *s = c->server;
  BIO *out = SSL_get_wbio(c->ssl);
  int n = 0;
  while ((n = BIO_read(out, s->sealed, sizeof s->sealed)) > 0) {
    uv_buf_t part = uv_buf_init(s->sealed, (unsigned)n);
    mw_conn_send_raw(c, &part, 1);
  }
}

static void greet(struct mw_conn *c) {
  if (c->greeted || !SSL_is_init_finished(c->ssl)) return;
  c->greeted = true;
  if (c->phase == MW_CONN_IDLE) mw_conn_deadline(c, c->server->config.idle_seconds);
}

void mw_tls_input(struct mw_conn *c, const char *p, size_t n) {
  if (BIO_write(SSL_get_rbio(c->ssl), p, (int)n) != (int)n) {
    mw_conn_cut(c, true);
    return;
  }
  while (!c->closing && c->phase != MW_CONN_LINGER) {
    ERR_clear_error();
    int got = SSL_read(c->ssl, c->server->plain, sizeof c->server->plain);
    int error = SSL_get_error(c->ssl, got);
    greet(c);
    flush(c);
    if (c->closing) break;
    if (got > 0) {
      mw_conn_feed(c, c->server->plain, (size_t)got);
    } else if (error == SSL_ERROR_WANT_READ) {
      break;
    } else {
      mw_conn_cut(c, false);  // the client's goodbye, or nonsense
    }
  }
  ERR_clear_error();
}

static bool seal(struct mw_conn *c, const char *p, size_t n) {
  if (n == 0) return true;
  ERR_clear_error();
  bool ok = SSL_write(c->ssl, p, (int)n) == (int)n;
  flush(c);
  if (!ok) mw_conn_cut(c, true);
  return ok && !c->closing;
}

void mw_tls_send(struct mw_conn *c, const uv_buf_t *parts, unsigned count) {
  struct mw_http_server *s = c->server;
  size_t filled = 0;
  for (unsigned i = 0; i < count; i++) {
    const char *p = parts[i].base;
    size_t left = parts[i].len;
    while (left > 0) {
      size_t n = sizeof s->scratch - filled < left ? sizeof s->scratch - filled : left;
      memcpy(s->scratch + filled, p, n);
      filled += n;
      p += n;
      left -= n;
      if (filled == sizeof s->scratch) {
        if (!seal(c, s->scratch, filled)) return;
        filled = 0;
      }
    }
  }
  seal(c, s->scratch, filled);
}

void mw_tls_end(struct mw_conn *c) {
  if (!c->greeted) return;
  ERR_clear_error();
  SSL_shutdown(c->ssl);
  ERR_clear_error();
  flush(c);
}
