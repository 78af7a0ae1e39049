// SPDX-License-Identifier: Apache-2.0
// The host of an address: one address has many spellings, and libcurl writes its own.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "transport/internal.h"

// An IPv4 address or one in IPv6's form of it is AF_INET, a name AF_UNSPEC.
struct address {
  int family;
  struct in_addr v4;
  struct in6_addr v6;
};

// IPv4 with numbers left out, in octal or in hexadecimal is what libcurl takes too.
static struct address read_address(struct mw_slice host) {
  struct address a = {.family = AF_UNSPEC};
  char text[INET6_ADDRSTRLEN];
  const char *zone = host.n > 0 ? memchr(host.p, '%', host.n) : NULL;
  size_t n = zone != NULL ? (size_t)(zone - host.p) : host.n;
  if (n == 0 || n >= sizeof text) return a;
  memcpy(text, host.p, n);
  text[n] = '\0';
  if (inet_aton(text, &a.v4) == 1) {
    a.family = AF_INET;
  } else if (inet_pton(AF_INET6, text, &a.v6) == 1) {
    a.family = IN6_IS_ADDR_V4MAPPED(&a.v6) ? AF_INET : AF_INET6;
    if (a.family == AF_INET) memcpy(&a.v4, &a.v6.s6_addr[12], sizeof a.v4);
  }
  return a;
}

static struct mw_slice without_dot(struct mw_slice name) {
  if (name.n > 0 && name.p[name.n - 1] == '.') name.n--;
  return name;
}

static bool same_name(struct mw_slice a, struct mw_slice b) {
  a = without_dot(a), b = without_dot(b);
  return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

bool mw_host_same(struct mw_slice a, struct mw_slice b) {
  struct address x = read_address(a), y = read_address(b);
  if (x.family != y.family) return false;
  if (x.family == AF_INET) return x.v4.s_addr == y.v4.s_addr;
  if (x.family == AF_INET6) return IN6_ARE_ADDR_EQUAL(&x.v6, &y.v6);
  return same_name(a, b);
}

static struct mw_slice authority_of(const char *server) {
  const char *p = strstr(server, "://");
  p = p != NULL ? p + 3 : server;
  return mw_slice(p, strcspn(p, "/"));
}

char *mw_server_authority(const char *server) {
  struct mw_slice s = authority_of(server);
  return mw_xstrndup(s.p, s.n);
}

struct mw_slice mw_server_host(const char *server, struct mw_slice *port) {
  struct mw_slice host = authority_of(server);
  const char *bracket = *host.p == '[' ? memchr(host.p, ']', host.n) : NULL;
  const char *from = bracket != NULL ? bracket : host.p, *end = host.p + host.n;
  const char *colon = memchr(from, ':', (size_t)(end - from));
  *port = strncmp(server, "http://", 7) == 0 ? MW_SLICE("80") : MW_SLICE("443");
  if (colon != NULL && colon + 1 < end) *port = mw_slice(colon + 1, (size_t)(end - colon - 1));
  if (colon != NULL) host.n = (size_t)(colon - host.p);
  return bracket != NULL ? mw_slice(host.p + 1, host.n - 2) : host;
}

bool mw_server_is_local(const char *server) {
  struct mw_slice port, host = mw_server_host(server, &port);
  struct address a = read_address(host);
  if (a.family == AF_INET) return ntohl(a.v4.s_addr) >> 24 == IN_LOOPBACKNET;
  if (a.family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&a.v6);
  return same_name(host, MW_SLICE("localhost"));
}
