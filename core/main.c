// SPDX-License-Identifier: Apache-2.0
// Wiring: what the command line asked for is put together and run.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "bind/bind.h"
#include "bind/bind_server.h"
#include "options.h"
#include "script/host.h"
#include "script/worker.h"

enum { SANDBOX_OPTIONS_MAX = 8, PATH_BYTES = 4096 };

static atomic_int sandbox_code;

// The sandbox asks for the end, on its own thread: the way out is the same as for a signal.
static void on_sandbox_stop(void *ctx, int code) {
  (void)ctx;
  atomic_store(&sandbox_code, code);
  kill(getpid(), SIGTERM);
}

// What lua/kube/sandbox/main.lua finds in host.options; `out` has room for SANDBOX_OPTIONS_MAX.
static size_t sandbox_options(const struct mw_options *o, struct mw_worker_option *out) {
  size_t n = 0;
  const struct mw_worker_option texts[] = {
      {.name = "listen", .text = o->listen},
      {.name = "token", .text = o->token},
      {.name = "data", .text = o->data},
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (texts[i].text != NULL) out[n++] = texts[i];
  if (o->has_seed) {
    out[n++] =
        (struct mw_worker_option){.name = "seed", .kind = MW_WORKER_NUMBER, .number = o->seed};
  }
  // Nobody but ourselves talks to the sandbox of `run`.
  out[n++] = (struct mw_worker_option){.name = "plain_http",
                                       .kind = MW_WORKER_FLAG,
                                       .number = o->plain_http || o->command == MW_COMMAND_RUN};
  out[n++] = (struct mw_worker_option){
      .name = "allow_remote", .kind = MW_WORKER_FLAG, .number = o->allow_remote};
  out[n++] = (struct mw_worker_option){
      .name = "apply", .kind = MW_WORKER_LIST, .list = o->apply, .count = o->apply_count};
  return n;
}

// NULL when it did not start; that was said then. `options` must outlive it.
static struct mw_worker *start_sandbox(const struct mw_options *o,
                                       struct mw_worker_option *options) {
  struct mw_worker_config config = {
      .module = "kube.sandbox.main",
      .open = mw_bind_server_open,
      .options = options,
      .option_count = sandbox_options(o, options),
      .on_stop = on_sandbox_stop,
  };
  struct mw_err err;
  struct mw_worker *w = mw_worker_start(&config, &err);
  if (w == NULL) fprintf(stderr, "moonwatch: the sandbox did not start: %s\n", err.message);
  return w;
}

static int run(struct mw_options *o) {
  struct mw_worker_option options[SANDBOX_OPTIONS_MAX];
  struct mw_worker *sandbox = NULL;
  if (o->sandbox) {
    sandbox = start_sandbox(o, options);
    if (sandbox == NULL) return mw_host_check_leaks(MW_EXIT_SCRIPT);
    o->host.kubeconfig.text = mw_worker_info(sandbox, "kubeconfig");
  }
  o->host.open = mw_bind_open;
  int code = mw_host_run(&o->host);
  if (sandbox != NULL) mw_worker_stop(sandbox);
  if (code == MW_EXIT_OK) code = atomic_load(&sandbox_code);
  return mw_host_check_leaks(code);
}

// Puts text into the file, which only we may read; a temporary one when path is empty, whose name
// it then is. 0, or errno.
static int write_private(char path[PATH_BYTES], const char *text) {
  static const char suffix[] = ".kubeconfig";
  bool temporary = path[0] == '\0';
  if (temporary) {
    const char *dir = getenv("TMPDIR");
    snprintf(path, PATH_BYTES, "%s/moonwatch-XXXXXX%s", dir != NULL ? dir : "/tmp", suffix);
  }
  int fd = temporary ? mkstemps(path, (int)sizeof suffix - 1)
                     : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) return errno;
  FILE *file = fdopen(fd, "w");
  bool written = fputs(text, file) >= 0;
  return fclose(file) == 0 && written ? 0 : errno;
}

static int wait_for_signal(const sigset_t *signals) {
  int number;
  sigwait(signals, &number);
  // Another one ends the process at once.
  pthread_sigmask(SIG_UNBLOCK, signals, NULL);
  return atomic_load(&sandbox_code);
}

static int sandbox(const struct mw_options *o) {
  // Before there are threads, so that all of them leave these to sigwait.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  struct mw_worker_option options[SANDBOX_OPTIONS_MAX];
  struct mw_worker *w = start_sandbox(o, options);
  if (w == NULL) return mw_host_check_leaks(MW_EXIT_SCRIPT);
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s", o->kubeconfig_out != NULL ? o->kubeconfig_out : "");
  int code = MW_EXIT_SCRIPT;
  int rc = write_private(path, mw_worker_info(w, "kubeconfig"));
  if (rc != 0) {
    fprintf(stderr, "moonwatch: cannot write %s: %s\n", path, strerror(rc));
  } else {
    printf("The sandbox serves %s\n", mw_worker_info(w, "url"));
    printf("Its kubeconfig is %s\n", path);
    printf("Try: kubectl --kubeconfig %s get namespaces\n", path);
    fflush(stdout);
    code = wait_for_signal(&signals);
  }
  mw_worker_stop(w);
  if (o->kubeconfig_out == NULL) unlink(path);
  return mw_host_check_leaks(code);
}

int main(int argc, char **argv) {
  struct mw_options o;
  mw_options_read(&o, argc, argv);
  int code = o.code;
  if (o.command != MW_COMMAND_NONE) {
    mw_alloc_setup();
    mw_log_setup(o.level, o.format);
    code = o.command == MW_COMMAND_RUN ? run(&o) : sandbox(&o);
  }
  mw_options_deinit(&o);
  return code;
}
