// SPDX-License-Identifier: Apache-2.0
// Two certificates: a CA that signs once, and the server's own.
#include <ctype.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/log.h"
#include "server/server_tls.h"

enum {
  PEM_MAX = 64 * 1024,
  SERIAL_BYTES = 16,
  DNS_MAX = 253,
  BACK_SECONDS = 3600,  // for clients whose clock is behind
  VALID_SECONDS = 365 * 24 * 3600
};

static int failed(struct mw_err *err, const char *what) {
  const char *text = ERR_reason_error_string(ERR_peek_last_error());
  int rc = mw_err_set(err, MW_ETLS, "cannot make a certificate: %s: %s", what,
                      text != NULL ? text : "unknown");
  ERR_clear_error();
  return rc;
}

static bool set_serial(X509 *x) {
  unsigned char bytes[SERIAL_BYTES];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
  bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40);  // positive, and of one length
  BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
  bool ok = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x)) != NULL;
  BN_free(number);
  return ok;
}

static X509 *blank(EVP_PKEY *key, const char *name) {
  X509 *x = X509_new();
  if (x == NULL) return NULL;
  bool ok = X509_set_version(x, X509_VERSION_3) == 1 && set_serial(x) &&
            X509_gmtime_adj(X509_getm_notBefore(x), -BACK_SECONDS) != NULL &&
            X509_gmtime_adj(X509_getm_notAfter(x), VALID_SECONDS) != NULL &&
            X509_set_pubkey(x, key) == 1 &&
            X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                                       (const unsigned char *)name, -1, -1, 0) == 1;
  if (ok) return x;
  X509_free(x);
  return NULL;
}

static bool add_extension(X509 *x, X509 *issuer, int nid, const char *value) {
  X509V3_CTX ctx;
  X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
  X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
  bool ok = extension != NULL && X509_add_ext(x, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return ok;
}

static X509 *make_ca(EVP_PKEY *key) {
  X509 *x = blank(key, "moonwatch-ca");
  if (x == NULL) return NULL;
  bool ok = X509_set_issuer_name(x, X509_get_subject_name(x)) == 1 &&
            add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE") &&
            add_extension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") &&
            add_extension(x, x, NID_subject_key_identifier, "hash") &&
            X509_sign(x, key, EVP_sha256()) > 0;
  if (ok) return x;
  X509_free(x);
  return NULL;
}

static bool plausible_name(const char *host) {
  size_t n = strlen(host);
  if (n == 0 || n > DNS_MAX) return false;
  for (size_t i = 0; i < n; i++) {
    if (!isalnum((unsigned char)host[i]) && strchr(".-_*", host[i]) == NULL) return false;
  }
  return true;
}

// Built by hand, as a configuration text would give commas in a name a meaning.
static bool add_host(GENERAL_NAMES *names, const char *host) {
  int type = GEN_IPADD;
  ASN1_STRING *value = a2i_IPADDRESS(host);
  if (value == NULL) {
    type = GEN_DNS;
    if (!plausible_name(host)) return false;
    value = ASN1_IA5STRING_new();
    if (value == NULL || ASN1_STRING_set(value, host, -1) != 1) {
      ASN1_STRING_free(value);
      return false;
    }
  }
  GENERAL_NAME *name = GENERAL_NAME_new();
  if (name == NULL) {
    ASN1_STRING_free(value);
    return false;
  }
  GENERAL_NAME_set0_value(name, type, value);
  if (sk_GENERAL_NAME_push(names, name) > 0) return true;
  GENERAL_NAME_free(name);
  return false;
}

static bool add_hosts(X509 *x, const char *const *hosts, size_t count) {
  GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
  bool ok = names != NULL;
  for (size_t i = 0; ok && i < count; i++) ok = add_host(names, hosts[i]);
  ok = ok && X509_add1_ext_i2d(x, NID_subject_alt_name, names, 0, 0) == 1;
  GENERAL_NAMES_free(names);
  return ok;
}

static X509 *make_leaf(EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key, const char *const *hosts,
                       size_t count) {
  X509 *x = blank(key, "moonwatch");
  if (x == NULL) return NULL;
  bool ok = X509_set_issuer_name(x, X509_get_subject_name(ca)) == 1 &&
            add_extension(x, ca, NID_basic_constraints, "critical,CA:FALSE") &&
            add_extension(x, ca, NID_key_usage, "critical,digitalSignature") &&
            add_extension(x, ca, NID_ext_key_usage, "serverAuth") &&
            add_extension(x, ca, NID_subject_key_identifier, "hash") &&
            add_extension(x, ca, NID_authority_key_identifier, "keyid:always") &&
            add_hosts(x, hosts, count) && X509_sign(x, ca_key, EVP_sha256()) > 0;
  if (ok) return x;
  X509_free(x);
  return NULL;
}

static int take_pem(BIO *bio, struct mw_buf *out) {
  char *p = NULL;
  long n = BIO_get_mem_data(bio, &p);
  int rc = n > 0 && n < PEM_MAX ? mw_buf_add(out, p, (size_t)n) : MW_ETLS;
  BIO_reset(bio);
  return rc;
}

static int write_all(X509 *ca_x, X509 *x, EVP_PKEY *pkey, struct mw_buf *ca,
                     struct mw_buf *certificate, struct mw_buf *key) {
  BIO *bio = BIO_new(BIO_s_mem());
  int rc = bio != NULL && PEM_write_bio_X509(bio, ca_x) == 1 ? take_pem(bio, ca) : MW_ETLS;
  if (rc == 0) rc = PEM_write_bio_X509(bio, x) == 1 ? take_pem(bio, certificate) : MW_ETLS;
  if (rc == 0) {
    rc = PEM_write_bio_PrivateKey(bio, pkey, NULL, NULL, 0, NULL, NULL) == 1 ? take_pem(bio, key)
                                                                             : MW_ETLS;
  }
  BIO_free(bio);
  return rc;
}

int mw_server_certificate(const char *const *hosts, size_t count, struct mw_buf *ca,
                          struct mw_buf *certificate, struct mw_buf *key, struct mw_err *err) {
  ERR_clear_error();
  if (count == 0) return mw_err_set(err, MW_EINVAL, "a certificate needs at least one host");
  int rc = 0;
  X509 *ca_x = NULL, *x = NULL;
  EVP_PKEY *ca_key = EVP_EC_gen("P-256");
  EVP_PKEY *pkey = EVP_EC_gen("P-256");
  if (ca_key == NULL || pkey == NULL) {
    rc = failed(err, "no key");
  } else if ((ca_x = make_ca(ca_key)) == NULL) {
    rc = failed(err, "no CA");
  } else if ((x = make_leaf(pkey, ca_x, ca_key, hosts, count)) == NULL) {
    rc = failed(err, "a host's name is malformed, or signing failed");
  } else if (write_all(ca_x, x, pkey, ca, certificate, key) < 0) {
    rc = failed(err, "no room for the result");
  }
  X509_free(x);
  X509_free(ca_x);
  EVP_PKEY_free(pkey);
  EVP_PKEY_free(ca_key);
  ERR_clear_error();
  return rc;
}
