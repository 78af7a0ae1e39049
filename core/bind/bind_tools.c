// SPDX-License-Identifier: Apache-2.0
// Time, random bytes, digests and encodings, for the helpers of scripts and for the sandbox.
#include <lauxlib.h>
#include <lua.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>

#include "base/clock.h"
#include "bind/bind.h"
#include "bind/util.h"

enum {
  RANDOM_MAX = 64 * 1024,
  TEXT_MAX = 512 * 1024 * 1024,  // OpenSSL counts in int
};

// The text at idx 1, not too long for the library.
static struct mw_slice text_arg(lua_State *L) {
  struct mw_slice s = mw_bind_slice(L, 1);
  luaL_argcheck(L, s.n <= TEXT_MAX, 1, "the text is too long");
  return s;
}

static int tool_now(lua_State *L) {
  lua_pushnumber(L, mw_clock_wall());
  return 1;
}

static int tool_monotonic(lua_State *L) {
  lua_pushnumber(L, (double)mw_clock_now() / 1e9);
  return 1;
}

static int tool_random(lua_State *L) {
  long n = (long)luaL_checkinteger(L, 1);
  luaL_argcheck(L, n >= 0 && n <= RANDOM_MAX, 1, "0 to 65536 bytes");
  unsigned char *bytes = lua_newuserdata(L, (size_t)n + 1);
  if (RAND_bytes(bytes, (int)n) != 1) return luaL_error(L, "the system has no random bytes");
  lua_pushlstring(L, (const char *)bytes, (size_t)n);
  return 1;
}

static int digest(lua_State *L, const EVP_MD *kind) {
  struct mw_slice s = text_arg(L);
  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  if (EVP_Digest(s.p, s.n, sum, &n, kind, NULL) != 1) return luaL_error(L, "no such digest");
  lua_pushlstring(L, (const char *)sum, n);
  return 1;
}

static int tool_sha256(lua_State *L) { return digest(L, EVP_sha256()); }

static int tool_sha512(lua_State *L) { return digest(L, EVP_sha512()); }

static int tool_hex(lua_State *L) {
  static const char digits[] = "0123456789abcdef";
  struct mw_slice s = text_arg(L);
  char *out = lua_newuserdata(L, 2 * s.n + 1);
  for (size_t i = 0; i < s.n; i++) {
    out[2 * i] = digits[(unsigned char)s.p[i] >> 4];
    out[2 * i + 1] = digits[(unsigned char)s.p[i] & 0xF];
  }
  lua_pushlstring(L, out, 2 * s.n);
  return 1;
}

// Pushes the text at 1 in base64; in the alphabet of URLs and without padding when asked for.
static int encode64(lua_State *L, bool url) {
  struct mw_slice s = text_arg(L);
  unsigned char *out = lua_newuserdata(L, 4 * ((s.n + 2) / 3) + 1);
  size_t n = (size_t)EVP_EncodeBlock(out, (const unsigned char *)s.p, (int)s.n);
  for (size_t i = 0; url && i < n; i++) {
    if (out[i] == '+') out[i] = '-';
    if (out[i] == '/') out[i] = '_';
  }
  while (url && n > 0 && out[n - 1] == '=') n--;
  lua_pushlstring(L, (const char *)out, n);
  return 1;
}

static int tool_base64(lua_State *L) { return encode64(L, false); }

static int tool_base64url(lua_State *L) { return encode64(L, true); }

static bool is_base64(char c, bool url) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
  return url ? c == '-' || c == '_' : c == '+' || c == '/';
}

// Copies the characters to `out` in the common alphabet, without padding; SIZE_MAX when there is
// anything else. Line breaks are skipped, as Go does.
static size_t take64(struct mw_slice s, bool url, char *out) {
  size_t n = 0, padding = 0;
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i];
    if (c == '\n' || c == '\r') continue;
    if (c == '=' && !url) {
      padding++;
      continue;
    }
    if (!is_base64(c, url) || padding > 0) return SIZE_MAX;
    out[n++] = c == '-' ? '+' : c == '_' ? '/' : c;
  }
  bool whole = url ? n % 4 != 1 : n % 4 != 1 && (n + padding) % 4 == 0 && padding <= 2;
  return whole ? n : SIZE_MAX;
}

// Pushes what the base64 text at 1 stands for, or nil when it is none.
static int decode64(lua_State *L, bool url) {
  struct mw_slice s = text_arg(L);
  char *in = lua_newuserdata(L, s.n + 4);
  size_t n = take64(s, url, in);
  if (n == SIZE_MAX) {
    lua_pushnil(L);
    return 1;
  }
  size_t padded = (n + 3) / 4 * 4;
  memset(in + n, '=', padded - n);
  unsigned char *out = lua_newuserdata(L, padded / 4 * 3 + 1);
  int got = padded > 0 ? EVP_DecodeBlock(out, (const unsigned char *)in, (int)padded) : 0;
  if (got < 0) {
    lua_pushnil(L);
  } else {
    lua_pushlstring(L, (const char *)out, (size_t)got - (padded - n));
  }
  return 1;
}

static int tool_unbase64(lua_State *L) { return decode64(L, false); }

static int tool_unbase64url(lua_State *L) { return decode64(L, true); }

void mw_bind_tools(struct lua_State *L) {
  static const luaL_Reg functions[] = {
      {"now", tool_now},
      {"monotonic", tool_monotonic},
      {"random", tool_random},
      {"sha256", tool_sha256},
      {"sha512", tool_sha512},
      {"hex", tool_hex},
      {"base64", tool_base64},
      {"base64url", tool_base64url},
      {"unbase64", tool_unbase64},
      {"unbase64url", tool_unbase64url},
      {NULL, NULL},
  };
  luaL_register(L, NULL, functions);
}
