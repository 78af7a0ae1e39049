// SPDX-License-Identifier: Apache-2.0
// The stack is read by the thread itself, in a signal handler: then it stands still. It may have
// been caught in the middle of anything, so a fault in there, or no answer, costs only that part of
// the report. Nothing here takes a lock or allocates.
#include "script/stuck.h"

#include <errno.h>
#include <lua.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "script/host.h"

enum {
  ROOM = 4096,  // bytes that a pipe which can be written to takes at once
  FRAMES = 24,
  ANSWER_SECONDS = 1,
  WRITABLE_MS = 1000,
};

static const struct mw_stuck *stuck;
static sem_t answered;
static char stack[ROOM / 2];
static size_t stack_size;

static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void add(const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(stack + stack_size, sizeof stack - stack_size, format, args);
  va_end(args);
  if (n > 0) stack_size += (size_t)n;
  if (stack_size >= sizeof stack) stack_size = sizeof stack - 1;
}

static void add_frame(lua_State *L, lua_Debug *ar) {
  lua_getinfo(L, "Snl", ar);
  if (*ar->what == 'C') {
    add("\n\t[C]: in function '%s'", ar->name != NULL ? ar->name : "?");
  } else if (*ar->what == 'm') {
    add("\n\t%s:%d: in main chunk", ar->short_src, ar->currentline);
  } else {
    add("\n\t%s:%d: in function <%s:%d>", ar->short_src, ar->currentline, ar->short_src,
        ar->linedefined);
  }
}

// On the thread that is stuck.
static void on_question(int number) {
  (void)number;
  int depth = *stuck->depth < stuck->room ? *stuck->depth : stuck->room;
  const struct mw_entry *entry = &stuck->entries[depth > 0 ? depth - 1 : 0];
  add("in task %s", entry->what != NULL ? entry->what : stuck->what);
  if (entry->trigger != NULL) add("\ntrigger: %s", entry->trigger);
  add("\nstack traceback:");
  lua_Debug ar;
  for (int level = 0; level < FRAMES && lua_getstack(entry->L, level, &ar); level++) {
    add_frame(entry->L, &ar);
  }
  sem_post(&answered);
  for (;;) pause();
}

static void on_fault(int number) {
  (void)number;
  add("\n\t(the rest cannot be read)");
  sem_post(&answered);
  for (;;) pause();
}

static void ask(void) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  int question = SIGRTMIN + 2;
  struct sigaction action = {.sa_handler = on_fault};
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
    sigaction(faults[i], &action, NULL);
  }
  action.sa_handler = on_question;
  sem_init(&answered, 0, 0);
  if (sigaction(question, &action, NULL) != 0) return;
  if (pthread_kill(stuck->thread, question) != 0) return;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += ANSWER_SECONDS;
  while (sem_timedwait(&answered, &until) != 0 && errno == EINTR) continue;
}

_Noreturn void mw_stuck_leave(const struct mw_stuck *s) {
  stuck = s;
  ask();
  char report[ROOM];
  int n = snprintf(report, sizeof report,
                   "moonwatch: %s, and nothing can stop it; the process ends with code %d\n%s%s\n",
                   s->why, MW_EXIT_STUCK, stack_size > 0 ? stack : "in task ",
                   stack_size > 0 ? "" : s->what);
  size_t size = n < 0 ? 0 : (size_t)n < sizeof report ? (size_t)n : sizeof report - 1;
  // Whoever reads stderr may be what it is stuck on.
  struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
  ssize_t written = poll(&fd, 1, WRITABLE_MS) == 1 ? write(STDERR_FILENO, report, size) : 0;
  (void)written;  // there is nobody else to tell
  // Without those who would still wait for the stuck thread, as a sanitizer does.
  syscall(SYS_exit_group, MW_EXIT_STUCK);
  _exit(MW_EXIT_STUCK);
}
