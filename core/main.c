// SPDX-License-Identifier: Apache-2.0
// Wiring: what the command line asked for is put together and run.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "bind/bind.h"
#include "bind/bind_server.h"
#include "options.h"
#include "script/host.h"
#include "script/worker.h"

#ifndef MW_VERSION
#define MW_VERSION "0.0.0"  // the build says which
#endif

enum { SANDBOX_OPTIONS_MAX = 8, PATH_BYTES = 4096 };

static uint64_t signalled_at;  // written while signals are blocked

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
  // Nobody but ourselves talks to the sandbox of `run` and `test`, unless others are told how.
  bool alone = o->command != MW_COMMAND_SANDBOX && o->kubeconfig_out == NULL;
  out[n++] = (struct mw_worker_option){
      .name = "plain_http", .kind = MW_WORKER_FLAG, .number = o->plain_http || alone};
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
  };
  struct mw_err err;
  struct mw_worker *w = mw_worker_start(&config, &err);
  if (w == NULL) fprintf(stderr, "moonwatch: the sandbox did not start: %s\n", err.message);
  return w;
}

static int write_all(int fd, const char *text) {
  for (size_t n = strlen(text); n > 0;) {
    ssize_t written = write(fd, text, n);
    if (written < 0 && errno != EINTR) return errno;
    if (written < 0) continue;
    text += written;
    n -= (size_t)written;
  }
  return 0;
}

// Puts text into the file, which only we may read; a temporary one when path is NULL. `name` is
// what it is called then. 0, or errno.
static int write_private(const char *path, const char *text, char name[PATH_BYTES]) {
  static const char suffix[] = ".kubeconfig";
  const char *dir = getenv("TMPDIR");
  int n = path != NULL ? snprintf(name, PATH_BYTES, "%s", path)
                       : snprintf(name, PATH_BYTES, "%s/moonwatch-XXXXXX%s",
                                  dir != NULL ? dir : "/tmp", suffix);
  if (n >= PATH_BYTES) return ENAMETOOLONG;
  int fd = path != NULL ? open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR)
                        : mkstemps(name, (int)sizeof suffix - 1);
  if (fd < 0) return errno;
  struct stat was;
  // A file that was there before keeps the mode it had; a terminal or a pipe is none of ours.
  bool open_to_others = fstat(fd, &was) == 0 && S_ISREG(was.st_mode) && (was.st_mode & 077) != 0;
  int rc = open_to_others && fchmod(fd, S_IRUSR | S_IWUSR) != 0 ? errno : write_all(fd, text);
  if (close(fd) != 0 && rc == 0) rc = errno;
  if (rc != 0 && path == NULL) unlink(name);
  return rc;
}

// Writes the sandbox's kubeconfig; false when it cannot be written, which was said then.
static bool publish(const struct mw_worker *w, const char *path, char name[PATH_BYTES]) {
  int rc = write_private(path, mw_worker_info(w, "kubeconfig"), name);
  if (rc != 0) fprintf(stderr, "moonwatch: cannot write %s: %s\n", name, strerror(rc));
  return rc == 0;
}

static int run(struct mw_options *o, mw_state_open_cb open) {
  struct mw_worker_option options[SANDBOX_OPTIONS_MAX];
  struct mw_worker *sandbox = NULL;
  if (o->sandbox) {
    sandbox = start_sandbox(o, options);
    if (sandbox == NULL) return mw_host_check_leaks(MW_EXIT_SCRIPT);
    o->host.kubeconfig.text = mw_worker_info(sandbox, "kubeconfig");
  }
  o->host.open = open;
  o->host.open_deploy = mw_bind_deploy_open;
  // Who reads the report can save a file, or press Ctrl-C.
  o->host.attended = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
  char name[PATH_BYTES];
  bool told = o->kubeconfig_out == NULL || publish(sandbox, o->kubeconfig_out, name);
  int code = told ? mw_host_run(&o->host) : MW_EXIT_SCRIPT;
  if (sandbox != NULL && mw_worker_stop(sandbox) < 0 && code == MW_EXIT_OK) code = MW_EXIT_SCRIPT;
  return mw_host_check_leaks(code);
}

static int test(struct mw_options *o) {
  o->sandbox = true;
  o->host.module = "kube._test_main";
  o->host.agent = "moonwatch-test/" MW_VERSION;
  o->host.stopped = MW_EXIT_SIGNAL;  // not all specs have passed
  o->host.args = o->words;
  o->host.arg_count = o->word_count;
  return run(o, mw_bind_test_open);
}

// check and rbac: what lua/kube/_check_main.lua takes.
static int look(struct mw_options *o) {
  size_t n = 0;
  const char **args = mw_xcalloc(o->word_count + 3, sizeof *args);
  args[n++] = o->command == MW_COMMAND_RBAC ? "rbac" : "check";
  args[n++] = o->output != NULL ? o->output : "";
  args[n++] = o->name != NULL ? o->name : "";
  for (size_t i = 0; i < o->word_count; i++) args[n++] = o->words[i];
  o->host.module = "kube._check_main";
  o->host.args = args;
  o->host.arg_count = n;
  o->host.offline = true;
  o->host.stopped = MW_EXIT_SIGNAL;
  int code = run(o, mw_bind_check_open);
  mw_free(args);
  return code;
}

// status, reload...: what lua/kube/_console_main.lua takes.
static int operate(const struct mw_options *o) {
  size_t n = 0;
  const char **args = mw_xcalloc(o->word_count + 7, sizeof *args);
  args[n++] = mw_options_word(o->command);
  args[n++] = o->output != NULL ? o->output : "text";
  args[n++] = o->host.control != NULL ? o->host.control : "";
  args[n++] = o->pid != NULL ? o->pid : "";
  args[n++] = o->script != NULL ? o->script : "";
  args[n++] = o->controller != NULL ? o->controller : "";
  args[n++] = o->once ? "once" : "";
  for (size_t i = 0; i < o->word_count; i++) args[n++] = o->words[i];
  int code = mw_bind_console_run(args, n);
  mw_free(args);
  return code;
}

static void on_second_signal(int number) {
  (void)number;
  if (mw_clock_now() - signalled_at > MW_SAME_SIGNAL) _exit(MW_EXIT_SIGNAL);
}

// Blocks the signals that mean the end, for sigwait to take; not one that we were started to
// ignore, as nohup does. Unblocked, they end the process.
static sigset_t block_end_signals(void) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    struct sigaction action;
    sigaction(numbers[i], NULL, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&set, numbers[i]);
  }
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    struct sigaction action = {.sa_handler = on_second_signal};
    if (sigismember(&set, numbers[i])) sigaction(numbers[i], &action, NULL);
  }
  return set;
}

static void serve(const struct mw_worker *w, const char *kubeconfig, const sigset_t *signals) {
  printf("The sandbox serves %s\n", mw_worker_info(w, "url"));
  printf("Its kubeconfig is %s\n", kubeconfig);
  printf("Try: kubectl --kubeconfig %s get namespaces\n", kubeconfig);
  fflush(stdout);
  int number;
  sigwait(signals, &number);
  signalled_at = mw_clock_now();
}

static int sandbox(const struct mw_options *o) {
  struct mw_worker_option options[SANDBOX_OPTIONS_MAX];
  // While it starts there is nothing to clean up yet: a signal ends the process then.
  struct mw_worker *w = start_sandbox(o, options);
  if (w == NULL) return mw_host_check_leaks(MW_EXIT_SCRIPT);
  sigset_t signals = block_end_signals();
  char kubeconfig[PATH_BYTES];
  int code = MW_EXIT_OK;
  if (!publish(w, o->kubeconfig_out, kubeconfig)) {
    code = MW_EXIT_SCRIPT;
  } else {
    serve(w, kubeconfig, &signals);
    if (o->kubeconfig_out == NULL) unlink(kubeconfig);
  }
  // Another signal ends the process at once.
  pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
  if (mw_worker_stop(w) < 0) code = MW_EXIT_SCRIPT;
  return mw_host_check_leaks(code);
}

// Who starts us may have closed these: the next file or socket would get their place, and what is
// printed.
static void open_standard_files(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) abort();
}

int main(int argc, char **argv) {
  open_standard_files();
  struct mw_options o;
  mw_options_read(&o, argc, argv);
  int code = o.code;
  if (o.command != MW_COMMAND_NONE) {
    mw_alloc_setup();
    mw_log_setup(o.level, o.format);
    code = o.command == MW_COMMAND_RUN             ? run(&o, mw_bind_open)
           : o.command == MW_COMMAND_TEST          ? test(&o)
           : o.command == MW_COMMAND_SANDBOX       ? sandbox(&o)
           : (o.command & MW_COMMAND_OPERATE) != 0 ? operate(&o)
                                                   : look(&o);
  }
  mw_options_deinit(&o);
  return code;
}
