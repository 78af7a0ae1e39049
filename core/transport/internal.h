// SPDX-License-Identifier: Apache-2.0
// What the files of transport share among themselves; not for other directories.
//
// http.c is the pool (sockets, timers, guard, the list of what is to do), request.c the life of one
// request, easy.c the libcurl handle of one attempt, failure.c the words for what went wrong.
//
// libcurl calls us back from inside its own functions (a "curl frame"), where its multi handle must
// not be touched. Whatever cannot be done there goes on the pool's to-do list, which runs from the
// loop with no curl frame and no caller of ours on the stack.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "transport/auth.h"
#include "transport/http.h"
#include "transport/kubeconfig.h"
#include "transport/loop.h"
#include "transport/meter.h"
#include "transport/yaml_doc.h"

struct curl_slist;
struct uv_timer_s;

// ---- files and kubeconfig ----

// Appends a whole file to out, up to out's limit. MW_ENOTFOUND when it does not exist.
int mw_file_read(const char *path, struct mw_buf *out, struct mw_err *err)
    __attribute__((warn_unused_result));

// One parsed kubeconfig file.
struct mw_kubeconfig_doc {
  struct mw_yaml *yaml;
  char *label;  // how messages name it
  char *dir;    // what its relative paths are relative to; NULL: they stay as they are
};

// Picks a context (NULL: the current one) out of files that are merged as kubectl merges them.
// label names them all together.
struct mw_kubeconfig *mw_kubeconfig_resolve(const struct mw_kubeconfig_doc *docs, size_t count,
                                            const char *label, const char *context,
                                            struct mw_err *err);
// A service account mounted at dir, with the API server that the environment names.
struct mw_kubeconfig *mw_kubeconfig_pod(const char *dir, struct mw_err *err);
// True when s can be the value of a header: no control characters.
bool mw_header_safe(const char *s);

// ---- credentials ----

// What an exec plugin handed out; owns its strings.
struct mw_exec_result {
  char *token;  // NULL: none
  char *cert_data;
  char *key_data;
  double expires;  // seconds since the epoch; 0: never
};

struct mw_exec_run;

typedef void (*mw_exec_cb)(void *ctx, const struct mw_exec_result *result,
                           const struct mw_err *err);

// Runs the plugin of config (config->exec). cb is called once, never inside this call; the run is
// over then. result lives during the call.
struct mw_exec_run *mw_exec_start(struct mw_loop *loop, const struct mw_kubeconfig *config,
                                  double timeout, mw_exec_cb cb, void *ctx);
// Kills the plugin; cb is not called any more. Sets *run to NULL; a NULL *run is fine.
void mw_exec_cancel(struct mw_exec_run **run);

// The document that tells a plugin what it is run for ($KUBERNETES_EXEC_INFO).
int mw_exec_info(const struct mw_kubeconfig *config, struct mw_buf *out);
// Reads what a plugin printed. Fills out in any case; free it with mw_exec_result_deinit.
int mw_exec_parse(const char *p, size_t n, const struct mw_exec_config *config,
                  struct mw_exec_result *out, struct mw_err *err);
void mw_exec_result_deinit(struct mw_exec_result *result);
// Seconds since the epoch of an RFC 3339 time; negative when it is none.
double mw_time_rfc3339(struct mw_slice s);
int mw_base64_encode(struct mw_slice s, struct mw_buf *out);
// A text as JSON writes it, in its quotes. Bytes of 0x80 and more stay as they are.
int mw_text_quote(struct mw_slice s, struct mw_buf *out);

// For specs: what was read was read so much earlier, and how long a plugin may run.
void mw_auth_age_files(struct mw_auth *a, double seconds);
void mw_auth_set_exec_timeout(struct mw_auth *a, double seconds);

// ---- the pool ----

struct mw_link {
  struct mw_link *prev, *next;
};

// Credentials of one endpoint in this pool.
struct mw_login {
  struct mw_link link;
  struct mw_endpoint *endpoint;
  struct mw_auth *auth;
  size_t users;  // requests that hold it
};

struct mw_http {
  struct mw_loop *loop;
  struct mw_http_config config;  // with the defaults filled in
  void *multi;                   // CURLM
  struct uv_timer_s *curl_timer;
  struct uv_timer_s *guard;
  struct uv_timer_s *kick;  // runs the to-do list in the next turn
  struct mw_link sockets;
  struct mw_link *guard_next;  // where the guard goes on; moved when that socket goes away
  struct mw_link requests;
  struct mw_link todo;
  size_t todo_count;
  struct mw_link logins;
  size_t login_count;
  size_t transfers;  // easy handles in the multi
  struct mw_meter *meter;
  uint64_t moved;  // body bytes seen, all requests
  int depth;       // > 0: a curl frame is on the stack
  struct mw_http_stats stats;
};

// ---- one request ----

enum mw_request_state {
  MW_REQUEST_NEW = 0,    // not begun: on the to-do list
  MW_REQUEST_AUTH,       // waits for credentials
  MW_REQUEST_RUNNING,    // libcurl has it
  MW_REQUEST_WAITING,    // waits for a retry
  MW_REQUEST_ENDED,      // waits on the to-do list for its on_done
  MW_REQUEST_REPORTING,  // in on_done
  MW_REQUEST_DEAD        // cancelled in a curl frame: waits on the to-do list to be freed
};

enum mw_request_todo { MW_TODO_NOTHING = 0, MW_TODO_BEGIN, MW_TODO_END, MW_TODO_DESTROY };

enum { MW_ERROR_BODY_MAX = 64 * 1024, MW_CURL_ERROR_SIZE = 256, MW_CONTENT_TYPE_MAX = 128 };

struct mw_request {
  struct mw_link link;
  struct mw_link todo_link;
  enum mw_request_todo todo;
  enum mw_request_state state;
  struct mw_http *http;
  struct mw_endpoint *endpoint;
  struct mw_login *login;
  struct mw_request_callbacks on;
  void *ctx;
  // What was asked for.
  char *method;
  char *path;
  char *accept;
  char *content_type;
  char *body;  // NULL: none
  size_t body_size;
  double head_timeout;
  double idle_timeout;
  bool is_watch;
  bool any_status;
  bool keep_head;
  struct mw_exec_env *extra;  // further headers; their strings are ours
  size_t extra_count;
  uint64_t ends;  // when the deadline is; 0: never
  int retries_left;
  int losses_left;  // of retries_left, those after a lost connection
  // One attempt.
  void *easy;  // CURL, NULL when libcurl does not have it
  struct curl_slist *headers;
  struct curl_slist *connect_to;
  char curl_error[MW_CURL_ERROR_SIZE];
  size_t body_sent;                // what libcurl has taken of the body
  unsigned ticket;                 // of mw_auth_get, 0: none
  unsigned serial;                 // of the credentials in use
  int status;                      // 0: no response yet
  int retry_after;                 // -1: none
  char type[MW_CONTENT_TYPE_MAX];  // Content-Type of the response
  bool head_done;                  // all headers of the final response are here
  bool again;                      // this response is not for the caller: it leads to a retry
  size_t dropped;                  // body bytes of such a response
  struct mw_buf head;              // of this response, with keep_head
  // The whole request.
  struct mw_timer *retry_timer;
  struct mw_timer *deadline;
  struct mw_timer *idle_timer;
  uint64_t began;         // this attempt; 0: none, or it was counted
  uint64_t last_byte;     // when something arrived or the attempt began
  bool reported;          // on_response was called
  bool delivered;         // on_data was called
  bool refreshed;         // 401 was answered with fresh credentials once
  int reader_rc;          // what on_data returned, when not 0
  bool sent;              // libcurl has begun to send this attempt
  struct mw_err refusal;  // of on_send, or of a write that would be sent twice; code 0: none
  struct mw_buf error_body;
  struct mw_err err;  // code 0: it went well
};

// http.c
struct mw_login *mw_pool_login(struct mw_http *h, struct mw_endpoint *e);
void mw_pool_logout(struct mw_http *h, struct mw_login *login);
void mw_pool_todo(struct mw_request *r, enum mw_request_todo todo);
void mw_pool_forget(struct mw_request *r);  // takes it off the to-do list
void mw_pool_open(struct mw_http *h);       // starts libcurl, once; before any other call of it
int mw_pool_add(struct mw_http *h, void *easy);
void mw_pool_remove(struct mw_http *h, void *easy);

// request.c
void mw_request_finished(struct mw_request *r, int curl_code);
void mw_request_run_todo(struct mw_request *r, enum mw_request_todo todo);

// easy.c: the handle of one attempt is r->easy afterwards. What can fail is a bad address.
int mw_easy_open(struct mw_request *r, const struct mw_credentials *c, struct mw_err *err);
void mw_easy_close(struct mw_request *r);

// failure.c
void mw_failure(const struct mw_request *r, int curl_code, struct mw_err *err);
const char *mw_endpoint_host(const struct mw_endpoint *e);  // host:port, for messages

// address.c: the host of a server's address, without the brackets of IPv6, and its port: the
// scheme's if none is written.
struct mw_slice mw_server_host(const char *server, struct mw_slice *port);
char *mw_server_authority(const char *server);  // host:port as they are written; the caller's
// Whether a server is on this machine, whatever the system makes of names.
bool mw_server_is_local(const char *server);
// Whether two hosts are one name or one address, whatever their spelling.
bool mw_host_same(struct mw_slice a, struct mw_slice b);

// libcurl's callbacks, set by easy.c, living in request.c.
size_t mw_request_on_header(char *p, size_t size, size_t n, void *r);
int mw_request_on_connected(void *r, char *ip, char *local_ip, int port, int local_port);
size_t mw_request_on_send(char *p, size_t size, size_t n, void *r);
size_t mw_request_on_body(char *p, size_t size, size_t n, void *r);
