// SPDX-License-Identifier: Apache-2.0
// kube._server: compression, files.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "bind/bind_server.h"
#include "bind/util.h"
#include "script/embedded.h"

enum {
  TEXT_MAX = 512 * 1024 * 1024,  // zlib counts in int
  GZIP_WINDOW = 15 + 16,         // the largest window, with gzip's frame
  GZIP_LEVEL = 4,                // what the API server uses
  PATH_BYTES = 4096
};

// The text at idx 1, not too long for the libraries.
static struct mw_slice text_arg(lua_State *L) {
  struct mw_slice s = mw_bind_slice(L, 1);
  luaL_argcheck(L, s.n <= TEXT_MAX, 1, "the text is too long");
  return s;
}

static int tool_gzip(lua_State *L) {
  struct mw_slice s = text_arg(L);
  z_stream z = {.next_in = (Bytef *)s.p, .avail_in = (uInt)s.n};
  size_t room = (size_t)compressBound((uLong)s.n) + 64;
  z.next_out = lua_newuserdata(L, room);
  z.avail_out = (uInt)room;
  Bytef *out = z.next_out;
  if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return luaL_error(L, "gzip: out of memory");
  }
  int rc = deflate(&z, Z_FINISH);
  size_t n = z.total_out;
  deflateEnd(&z);
  if (rc != Z_STREAM_END) return luaL_error(L, "gzip: error %d", rc);
  lua_pushlstring(L, (const char *)out, n);
  return 1;
}

// The length that gzip wrote last, low byte first, of what it packed.
static size_t unpacked_length(struct mw_slice s) {
  size_t n = 0;
  for (size_t i = 1; i <= 4 && i <= s.n; i++) n = n << 8 | (unsigned char)s.p[s.n - i];
  return n;
}

// gunzip(text, limit): what gzip packed; nil when the text is none, is cut, or holds more than
// `limit` bytes.
static int tool_gunzip(lua_State *L) {
  struct mw_slice s = text_arg(L);
  lua_Number limit = luaL_checknumber(L, 2);
  luaL_argcheck(L, limit >= 0 && limit <= TEXT_MAX, 2, "0 to 512 MiB");
  size_t n = unpacked_length(s);
  lua_pushnil(L);
  if ((lua_Number)n > limit) return 1;
  z_stream z = {.next_in = (Bytef *)s.p, .avail_in = (uInt)s.n, .avail_out = (uInt)n};
  z.next_out = lua_newuserdata(L, n + 1);
  Bytef *out = z.next_out;
  if (inflateInit2(&z, GZIP_WINDOW) != Z_OK) return luaL_error(L, "gunzip: out of memory");
  int rc = inflate(&z, Z_FINISH);
  bool whole = rc == Z_STREAM_END && z.total_out == n;
  inflateEnd(&z);
  if (whole) {
    lua_pushlstring(L, (const char *)out, n);
  } else {
    lua_pushnil(L);
  }
  return 1;
}

#define DIRECTORY_TYPE "kube.sandbox.directory"

static int directory_gc(lua_State *L) {
  DIR **d = lua_touserdata(L, 1);
  if (*d != NULL) closedir(*d);
  *d = NULL;
  return 0;
}

// directory(path): an array of the names in it, in any order; nil when it is none.
static int tool_directory(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  DIR **d = lua_newuserdata(L, sizeof *d);
  *d = NULL;
  if (luaL_newmetatable(L, DIRECTORY_TYPE)) {
    lua_pushcfunction(L, directory_gc);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  *d = opendir(path);
  lua_pushnil(L);
  if (*d == NULL) return 1;
  lua_newtable(L);
  int n = 0;
  for (struct dirent *entry = readdir(*d); entry != NULL; entry = readdir(*d)) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    lua_pushstring(L, entry->d_name);
    lua_rawseti(L, -2, ++n);
  }
  closedir(*d);
  *d = NULL;
  return 1;
}

// A new file, in the place of one that may be there.
static int put(const char *path, struct mw_slice text) {
  // What a crash has left there is not ours to fill: its mode may be another.
  if (unlink(path) != 0 && errno != ENOENT) return errno;
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) return errno;
  int rc = 0;
  while (rc == 0 && text.n > 0) {
    ssize_t n = write(fd, text.p, text.n);
    if (n < 0 && errno != EINTR) rc = errno;
    if (n > 0) text = (struct mw_slice){text.p + n, text.n - (size_t)n};
  }
  if (close(fd) != 0 && rc == 0) rc = errno;
  return rc;
}

// write(path, text): puts a file, which only its owner may read, in the place of what was there, at
// once. true, or nil and why not.
static int tool_write(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  struct mw_slice text = mw_bind_slice(L, 2);
  char scratch[PATH_BYTES];
  int n = snprintf(scratch, sizeof scratch, "%s.new", path);
  int rc = n < PATH_BYTES ? put(scratch, text) : ENAMETOOLONG;
  if (rc == 0 && rename(scratch, path) != 0) rc = errno;
  if (rc == 0) {
    lua_pushboolean(L, 1);
    return 1;
  }
  if (n < PATH_BYTES) unlink(scratch);
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s", path, strerror(rc));
  return 2;
}

// data(name): the text of a file of lua/kube/sandbox/data, or nil.
static int tool_data(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  for (const struct mw_embedded_file *f = mw_embedded_data; f->name != NULL; f++) {
    if (strcmp(f->name, name) != 0) continue;
    lua_pushlstring(L, f->start, (size_t)(f->end - f->start));
    return 1;
  }
  lua_pushnil(L);
  return 1;
}

void mw_bind_server_tools(struct lua_State *L) {
  static const luaL_Reg functions[] = {
      {"gzip", tool_gzip}, {"gunzip", tool_gunzip}, {"directory", tool_directory},
      {"data", tool_data}, {"write", tool_write},   {NULL, NULL},
  };
  luaL_register(L, NULL, functions);
}
