// SPDX-License-Identifier: Apache-2.0
// One run of an exec credential plugin: spawn, collect its output, read the ExecCredential.
//
// The plugin gets a session of its own, so that a kill reaches the children of a wrapper script
// too. Its stderr is ours. A run ends once: by exit and end of output, by timeout, or by cancel;
// its memory goes when libuv has closed the last of its handles.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "transport/internal.h"

enum { OUTPUT_MAX = 1024 * 1024, INFO_MAX = 4 * 1024 * 1024, CHUNK = 16 * 1024 };

struct mw_exec_run {
  struct mw_loop *loop;
  const struct mw_kubeconfig *config;
  mw_exec_cb cb;  // NULL: over
  void *ctx;
  uv_process_t process;
  uv_pipe_t out;
  struct mw_timer *timer;  // the timeout, or the report of a failed start
  struct mw_buf output;
  char chunk[CHUNK];
  double timeout;
  int open_handles;
  bool spawned;  // the process is there and not yet waited for
  bool exited;
  bool output_ended;
  int64_t exit_status;
  int signal;
  struct mw_err err;
};

static void on_closed(uv_handle_t *handle) {
  struct mw_exec_run *run = handle->data;
  mw_live_add(MW_LIVE_HANDLE, -1);
  if (--run->open_handles > 0) return;
  mw_buf_deinit(&run->output);
  mw_free(run);
}

static void close_run(struct mw_exec_run *run) {
  run->cb = NULL;
  mw_timer_cancel(&run->timer);
  // Until its exit was seen, the process is ours and its id cannot belong to another.
  if (run->spawned && !run->exited) kill(-run->process.pid, SIGKILL);
  uv_close((uv_handle_t *)&run->out, on_closed);
  // A killed process must still be waited for: its handle closes when it has exited.
  if (!run->spawned || run->exited) uv_close((uv_handle_t *)&run->process, on_closed);
}

// Reports err, or the credentials when it is NULL, and ends the run.
static void finish(struct mw_exec_run *run, const struct mw_err *err) {
  struct mw_exec_result result = {0};
  struct mw_err why = {0};
  mw_exec_cb cb = run->cb;
  void *ctx = run->ctx;
  if (err != NULL) {
    why = *err;
  } else {
    const char *text = run->output.p != NULL ? run->output.p : "";
    mw_exec_parse(text, run->output.n, run->config->exec, &result, &why);
  }
  if (why.code != 0) {
    struct mw_err inner = why;
    mw_err_set(&why, inner.code, "%s: exec plugin \"%s\" %s", run->config->origin,
               run->config->exec->command, inner.message);
  }
  close_run(run);
  cb(ctx, why.code == 0 ? &result : NULL, why.code == 0 ? NULL : &why);
  mw_exec_result_deinit(&result);
}

static void finish_when_complete(struct mw_exec_run *run) {
  struct mw_err err;
  if (run->cb == NULL || !run->exited || !run->output_ended) return;
  if (run->signal != 0) {
    mw_err_set(&err, MW_EAUTH, "was killed by signal %d", run->signal);
    finish(run, &err);
  } else if (run->exit_status != 0) {
    mw_err_set(&err, MW_EAUTH, "failed with exit code %lld; what it said is on stderr",
               (long long)run->exit_status);
    finish(run, &err);
  } else {
    finish(run, NULL);
  }
}

static void on_exit_(uv_process_t *process, int64_t status, int sig) {
  struct mw_exec_run *run = process->data;
  run->exited = true;
  run->exit_status = status;
  run->signal = sig;
  if (run->cb == NULL) {
    uv_close((uv_handle_t *)&run->process, on_closed);
  } else {
    finish_when_complete(run);
  }
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  (void)suggested;
  struct mw_exec_run *run = handle->data;
  *buf = uv_buf_init(run->chunk, sizeof run->chunk);
}

static void on_output(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  struct mw_exec_run *run = stream->data;
  struct mw_err err;
  if (n < 0) {
    run->output_ended = true;
    uv_read_stop(stream);
    finish_when_complete(run);
  } else if (mw_buf_add(&run->output, buf->base, (size_t)n) < 0) {
    mw_err_set(&err, MW_EAUTH, "printed more than %d bytes", OUTPUT_MAX);
    finish(run, &err);
  }
}

static void on_timeout(void *arg) {
  struct mw_exec_run *run = arg;
  struct mw_err err;
  run->timer = NULL;
  mw_err_set(&err, MW_EAUTH, "did not answer within %g seconds", run->timeout);
  finish(run, &err);
}

static void on_failed_start(void *arg) {
  struct mw_exec_run *run = arg;
  run->timer = NULL;
  struct mw_err err = run->err;
  finish(run, &err);
}

// NAME=value for the plugin: ours, then what the kubeconfig adds, then the exec info. Later ones
// win, so an earlier one of the same name is left out.
struct environment {
  char **list;
  size_t count;
};

static void put(struct environment *e, const char *name, const char *value) {
  struct mw_buf line;
  mw_buf_init(&line, INFO_MAX);
  if (mw_buf_printf(&line, "%s=%s", name, value) < 0) return;
  size_t n = strlen(name) + 1;
  for (size_t i = 0; i < e->count; i++) {
    if (strncmp(e->list[i], line.p, n) != 0) continue;
    mw_free(e->list[i]);
    e->list[i] = line.p;
    return;
  }
  e->list = mw_xrealloc(e->list, (e->count + 2) * sizeof *e->list);
  e->list[e->count++] = line.p;
  e->list[e->count] = NULL;
}

static void environment_init(struct environment *e, const struct mw_kubeconfig *config) {
  *e = (struct environment){0};
  for (char **p = environ; *p != NULL; p++) {
    const char *equals = strchr(*p, '=');
    if (equals == NULL || equals == *p) continue;
    char *name = mw_xstrndup(*p, (size_t)(equals - *p));
    put(e, name, equals + 1);
    mw_free(name);
  }
  for (size_t i = 0; i < config->exec->env_count; i++) {
    put(e, config->exec->env[i].name, config->exec->env[i].value);
  }
  struct mw_buf info;
  mw_buf_init(&info, INFO_MAX);
  if (mw_exec_info(config, &info) == 0) put(e, "KUBERNETES_EXEC_INFO", info.p);
  mw_buf_deinit(&info);
}

static void environment_deinit(struct environment *e) {
  for (size_t i = 0; i < e->count; i++) mw_free(e->list[i]);
  mw_free(e->list);
}

static int spawn(struct mw_exec_run *run) {
  const struct mw_exec_config *exec = run->config->exec;
  struct environment env;
  environment_init(&env, run->config);
  char **args = mw_xcalloc(exec->arg_count + 2, sizeof *args);
  args[0] = exec->command;
  for (size_t i = 0; i < exec->arg_count; i++) args[i + 1] = exec->args[i];
  uv_stdio_container_t stdio[3] = {
      {.flags = UV_IGNORE},
      {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&run->out},
      {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO}};
  uv_process_options_t options = {.file = exec->command,
                                  .args = args,
                                  .env = env.list,
                                  .stdio = stdio,
                                  .stdio_count = 3,
                                  .flags = UV_PROCESS_DETACHED,
                                  .exit_cb = on_exit_};
  int rc = uv_spawn(mw_loop_uv(run->loop), &run->process, &options);
  mw_free(args);
  environment_deinit(&env);
  return rc;
}

static void explain(struct mw_exec_run *run, int rc) {
  const struct mw_exec_config *exec = run->config->exec;
  if (rc == UV_ENOENT && exec->install_hint != NULL) {
    mw_err_set(&run->err, MW_EAUTH, "was not found: %s", exec->install_hint);
  } else if (rc == UV_ENOENT) {
    mw_err_set(&run->err, MW_EAUTH, "was not found: install it or correct exec.command");
  } else {
    mw_err_set(&run->err, MW_EAUTH, "could not be started: %s", uv_strerror(rc));
  }
}

struct mw_exec_run *mw_exec_start(struct mw_loop *loop, const struct mw_kubeconfig *config,
                                  double timeout, mw_exec_cb cb, void *ctx) {
  struct mw_exec_run *run = mw_xcalloc(1, sizeof *run);
  run->loop = loop;
  run->config = config;
  run->cb = cb;
  run->ctx = ctx;
  run->timeout = timeout;
  mw_buf_init(&run->output, OUTPUT_MAX);
  uv_pipe_init(mw_loop_uv(loop), &run->out, 0);
  int rc = spawn(run);
  run->process.data = run->out.data = run;
  run->open_handles = 2;
  mw_live_add(MW_LIVE_HANDLE, 2);
  if (rc == 0) {
    run->spawned = true;
    rc = uv_read_start((uv_stream_t *)&run->out, on_alloc, on_output);
  }
  if (rc == 0) {
    run->timer = mw_timer_start(loop, timeout, on_timeout, run);
  } else {
    explain(run, rc);
    run->timer = mw_timer_start(loop, 0, on_failed_start, run);
  }
  return run;
}

void mw_exec_cancel(struct mw_exec_run **run) {
  if (*run != NULL) close_run(*run);
  *run = NULL;
}
