// SPDX-License-Identifier: Apache-2.0
// kube._console: what `moonwatch status` and its like have: running processes, requests to them,
// and the terminal. Everything here blocks, as there is nothing else to do meanwhile.
#include <errno.h>
#include <lualib.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "bind/bind.h"
#include "bind/codec.h"
#include "bind/util.h"
#include "script/control_path.h"

enum { ANSWER_MAX = 32 * 1024 * 1024, CHUNK = 64 * 1024, FAILED = 1 };

// find(): the running processes of this user, { pid =, path = } each.
static int console_find(lua_State *L) {
  struct mw_control_found found[MW_CONTROL_FOUND_MAX];
  size_t count = mw_control_find(found);
  lua_createtable(L, (int)count, 0);
  for (size_t i = 0; i < count; i++) {
    lua_createtable(L, 0, 2);
    lua_pushnumber(L, found[i].pid);
    lua_setfield(L, -2, "pid");
    lua_pushstring(L, found[i].path);
    lua_setfield(L, -2, "path");
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}

static int fail(lua_State *L, int error) {
  lua_pushnil(L);
  lua_pushstring(L, strerror(error));
  lua_pushinteger(L, error);
  return 3;
}

// A connected socket, or a negative errno.
static int connect_to(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) return -ENAMETOOLONG;
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
  int error = errno;
  close(fd);
  return -error;
}

static int send_all(int fd, struct mw_slice text) {
  while (text.n > 0) {
    ssize_t n = send(fd, text.p, text.n, MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR) return errno;
    if (n > 0) text = mw_slice(text.p + n, text.n - (size_t)n);
  }
  return 0;
}

// Reads until the other side closes; 0 or errno.
static int receive_all(int fd, struct mw_buf *in, uint64_t deadline) {
  for (;;) {
    uint64_t now = mw_clock_now();
    if (now >= deadline) return ETIMEDOUT;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int ready = poll(&p, 1, (int)((deadline - now) / 1000000) + 1);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    if (ready < 0) return errno;
    if (mw_buf_reserve(in, CHUNK) < 0) return EMSGSIZE;
    ssize_t n = recv(fd, in->p + in->n, CHUNK, 0);
    if (n < 0 && errno != EINTR) return errno;
    if (n == 0) return 0;
    if (n > 0) in->n += (size_t)n;
  }
}

// request(path, method, target, seconds): the status and the body of the answer; or nil, a reason
// and errno. The server answers with its whole length and then closes.
static int console_request(lua_State *L) {
  const char *path = luaL_checkstring(L, 1), *method = luaL_checkstring(L, 2);
  const char *target = luaL_checkstring(L, 3);
  uint64_t deadline = mw_clock_now() + (uint64_t)(luaL_checknumber(L, 4) * 1e9);
  struct mw_buf *in = mw_bind_push_buffers(L, 1, ANSWER_MAX);
  lua_pushfstring(L, "%s %s HTTP/1.1\r\nHost: moonwatch\r\nConnection: close\r\n%s\r\n", method,
                  target, strcmp(method, "POST") == 0 ? "Content-Length: 0\r\n" : "");
  int fd = connect_to(path);
  if (fd < 0) return fail(L, -fd);
  int error = send_all(fd, mw_bind_slice(L, -1));
  if (error == 0) error = receive_all(fd, in, deadline);
  close(fd);
  if (error != 0) return fail(L, error);
  const char *body = in->n > 0 ? memmem(in->p, in->n, "\r\n\r\n", 4) : NULL;
  if (body == NULL || strncmp(in->p, "HTTP/1.", 7) != 0) return fail(L, ECONNRESET);
  lua_pushnumber(L, strtod(in->p + sizeof "HTTP/1.1", NULL));
  lua_pushlstring(L, body + 4, in->n - (size_t)(body + 4 - in->p));
  return 2;
}

// ---- the terminal ----

static struct termios terminal_before;
static volatile sig_atomic_t asked_to_end;

static void on_signal(int number) {
  if (number != SIGWINCH) asked_to_end = 1;
}

// is_terminal(): whether a person reads what is printed, and can press keys.
static int console_is_terminal(lua_State *L) {
  lua_pushboolean(L, isatty(STDIN_FILENO) && isatty(STDOUT_FILENO));
  return 1;
}

// size(): rows and columns of the terminal.
static int console_size(lua_State *L) {
  struct winsize size;
  bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0;
  lua_pushinteger(L, known ? size.ws_row : 24);
  lua_pushinteger(L, known ? size.ws_col : 80);
  return 2;
}

// take(): from now on keys are read one by one, without being shown, Ctrl-C among them, and signals
// that end the process are such a key, too, so that the terminal can be given back.
static int console_take(lua_State *L) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
  tcgetattr(STDIN_FILENO, &terminal_before);
  struct termios t = terminal_before;
  t.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
  t.c_cc[VMIN] = 0;
  t.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &t);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(numbers[i], &action, NULL);
  }
  (void)L;
  return 0;
}

static int console_give_back(lua_State *L) {
  (void)L;
  tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
  return 0;
}

// key(seconds): a key that was pressed meanwhile; "" when the time is over or the size of the
// window has changed; nil when it is to end: the terminal has gone, or a signal says so.
static int console_key(lua_State *L) {
  struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
  int ready = asked_to_end ? 0 : poll(&p, 1, (int)(luaL_checknumber(L, 1) * 1000));
  char key;
  ssize_t n = ready > 0 ? read(STDIN_FILENO, &key, 1) : 0;
  if (asked_to_end || (ready > 0 && n <= 0)) return 0;
  lua_pushlstring(L, &key, (size_t)n);
  return 1;
}

static int console_now(lua_State *L) {
  lua_pushnumber(L, mw_clock_wall());
  return 1;
}

static void open_console(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"find", console_find},
      {"request", console_request},
      {"now", console_now},
      {"is_terminal", console_is_terminal},
      {"size", console_size},
      {"take", console_take},
      {"give_back", console_give_back},
      {"key", console_key},
      {NULL, NULL},
  };
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  mw_bind_codec(L);
  lua_setfield(L, -2, "codec");
}

static int load_console(lua_State *L) {
  open_console(L);
  return 1;
}

struct call {
  const char *const *args;
  size_t count;
  int code;
};

static int run_console(lua_State *L) {
  struct call *call = lua_touserdata(L, 1);
  luaL_openlibs(L);
  mw_bind_preload(L, "kube._console", load_console);
  mw_codec_open(L);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "kube._console_main");
  lua_call(L, 1, 1);
  luaL_checkstack(L, (int)call->count, "too many arguments");
  for (size_t i = 0; i < call->count; i++) lua_pushstring(L, call->args[i]);
  lua_call(L, (int)call->count, 1);
  call->code = (int)lua_tointeger(L, -1);
  return 0;
}

int mw_bind_console_run(const char *const *args, size_t count) {
  struct call call = {args, count, FAILED};
  lua_State *L = luaL_newstate();
  if (lua_cpcall(L, run_console, &call) != 0) {
    fprintf(stderr, "moonwatch: %s\n", lua_tostring(L, -1));
  }
  lua_close(L);
  fflush(stdout);
  return call.code;
}
