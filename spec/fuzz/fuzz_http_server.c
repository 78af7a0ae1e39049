// SPDX-License-Identifier: Apache-2.0
// Any bytes from a client, in pieces of any size, to a server whose handler answers in every way
// there is: at once, later, in a stream, by a cut, or never. No crash, no leak, every exchange ends
// exactly once, and the server ends too.
//
// The first byte of the input says how large the pieces are and whether the client closes its half;
// the target of a request says how it is answered.
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "fuzz.h"
#include "server/internal.h"

enum { HELD_MAX = 64, TURNS_AFTER = 3 };

struct run {
  struct mw_exchange *held[HELD_MAX];  // those that are answered later
  size_t count;
  size_t requests, ended;
  bool closed;
};

static void end(struct run *r) { r->ended++; }

static void forget(struct run *r, const struct mw_exchange *x) {
  for (size_t i = 0; i < r->count; i++) {
    if (r->held[i] == x) r->held[i] = r->held[--r->count];
  }
}

// Everything that can be read is read.
static void look_at(const struct mw_exchange *x) {
  struct mw_slice name, value;
  static const char seldom[] = "X-Seldom";
  bool found = false;
  size_t sum = mw_exchange_body(x).n + mw_exchange_method(x).n;
  for (size_t i = 0; mw_exchange_header_at(x, i, &name, &value); i++) {
    require(name.n > 0);
    found |= name.n == sizeof seldom - 1 && strncasecmp(name.p, seldom, name.n) == 0;
    for (size_t k = 0; k < value.n; k++) {
      require(value.p[k] != '\n' && value.p[k] != '\0');
      sum += (unsigned char)value.p[k];
    }
  }
  require(sum > 0);
  require((mw_exchange_header(x, seldom).p != NULL) == found);
}

static void answer(struct run *r, struct mw_exchange *x, char how) {
  static char large[300 * 1024];
  switch (how) {
    case 's':
      mw_exchange_start(x, 200, MW_SLICE("X-A: b\r\n"));
      mw_exchange_write(x, MW_SLICE("chunk"));
      mw_exchange_write(x, mw_slice(large, sizeof large));
      mw_exchange_finish(x);
      break;
    case 'r':
      mw_exchange_reset(x);
      break;
    case 'b':
      mw_exchange_reply(x, 200, MW_SLICE(""), mw_slice(large, sizeof large));
      break;
    case 'n':
      mw_exchange_reply(x, 204, MW_SLICE(""), MW_SLICE(""));
      break;
    default:
      mw_exchange_reply(x, 200, MW_SLICE("X-A: b\r\n"), MW_SLICE("body"));
  }
  end(r);
}

static void on_request(void *ctx, struct mw_exchange *x) {
  struct run *r = ctx;
  r->requests++;
  look_at(x);
  struct mw_slice target = mw_exchange_target(x);
  require(target.n > 0 && (target.p[0] == '/' || target.p[0] == '*'));
  char how = target.n > 1 ? target.p[1] : 'w';
  if (how == 'l' && r->count < HELD_MAX) {
    if (target.n > 2 && target.p[2] == 's') mw_exchange_start(x, 200, MW_SLICE(""));
    r->held[r->count++] = x;
  } else {
    answer(r, x, how);
  }
}

static void on_gone(void *ctx, struct mw_exchange *x) {
  struct run *r = ctx;
  require(!mw_exchange_write(x, MW_SLICE("late")));
  forget(r, x);
  end(r);
}

static void on_closed(void *arg) { ((struct run *)arg)->closed = true; }

// Answers the oldest that waits.
static void answer_one(struct run *r) {
  if (r->count == 0) return;
  struct mw_exchange *x = r->held[0];
  forget(r, x);
  if (x->conn->phase == MW_CONN_STREAM) {
    mw_exchange_write(x, MW_SLICE("late chunk"));
    mw_exchange_finish(x);
    end(r);
  } else {
    answer(r, x, 'w');
  }
}

static void drop_output(int fd) {
  char sink[64 * 1024];
  while (recv(fd, sink, sizeof sink, MSG_DONTWAIT) > 0) continue;
}

static void talk(struct mw_loop *loop, struct run *r, int fd, const uint8_t *data, size_t size) {
  size_t piece = data[0] & 0x3f;
  if (piece == 0) piece = 64 * 1024;
  bool half_close = data[0] & 0x40, deaf = data[0] & 0x80;
  for (size_t at = 1; at < size;) {
    size_t n = size - at < piece ? size - at : piece;
    ssize_t sent = send(fd, data + at, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    mw_loop_turn(loop, 0);
    if (!deaf) drop_output(fd);
    if (r->count > 2) answer_one(r);
    if (sent <= 0) break;
    at += (size_t)sent;
  }
  if (half_close) shutdown(fd, SHUT_WR);
  for (int i = 0; i < TURNS_AFTER; i++) {
    mw_loop_turn(loop, 0);
    answer_one(r);
    if (!deaf) drop_output(fd);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct mw_loop *loop;
  if (loop == NULL) loop = mw_loop_new("fuzz");
  if (size < 2) return 0;
  mw_log_set_level(MW_LOG_ERROR);
  struct run r = {0};
  struct mw_http_server_config config = {.loop = loop,
                                         .host = "127.0.0.1",
                                         .on_request = on_request,
                                         .on_gone = on_gone,
                                         .ctx = &r,
                                         .header_max = 4096,
                                         .body_max = 8192,
                                         .backlog_max = 16 * 1024};
  struct mw_http_server *s = mw_http_server_new(&config, NULL);
  int pair[2];
  require(s != NULL && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  mw_conn_open(s, pair[1]);
  talk(loop, &r, pair[0], data, size);
  close(pair[0]);
  mw_http_server_close(s, 0, on_closed, &r);
  for (int i = 0; !r.closed; i++) {
    require(i < 1000);
    mw_loop_turn(loop, 1);
  }
  require(r.ended == r.requests);
  require(mw_live_get(MW_LIVE_REQUEST) == 0);
  require(mw_live_get(MW_LIVE_HANDLE) == 0);
  return 0;
}
