// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cache/resource.h"
#include "script/heap.h"

#ifndef MW_VERSION
#define MW_VERSION "0.0.0"  // the build says which
#endif

enum { WORD_MAX = 32, NEAR_MAX = 3, ADDRESS_MAX = 64, PORT_DIGITS = 5, PORT_MAX = 65535 };

static const double seed_max = 9007199254740992;
static const double grace_max = 86400;
static const double memory_max = 1LL << 40;

static const char usage[] =
    "Moonwatch runs Kubernetes controllers written in Lua.\n"
    "\n"
    "Usage:\n"
    "  moonwatch run SCRIPT... [options]\n"
    "                                   run scripts, and reload them when their files change\n"
    "  moonwatch sandbox [options]      serve a Kubernetes API without a cluster\n"
    "  moonwatch test [SPEC...]         run the specs of scripts against a sandbox\n"
    "  moonwatch check SCRIPT...        say what scripts would do, or why they do not load\n"
    "  moonwatch rbac SCRIPT...         print the roles that scripts need\n"
    "  moonwatch status                 what a running process does, and with which revision\n"
    "  moonwatch top                    the same, as it goes: rates, queues, slow keys\n"
    "  moonwatch why KEY                what became of an object\n"
    "  moonwatch enqueue CONTROLLER KEY reconcile an object now\n"
    "  moonwatch reload                 read the scripts anew, now\n"
    "  moonwatch rollback [REVISION]    go back to a revision that ran before\n"
    "  moonwatch hold [on|off]          take no new revision, until released\n"
    "  moonwatch help COMMAND           the options of a command\n"
    "  moonwatch version                the version\n";

static const char usage_run[] =
    "Usage: moonwatch run SCRIPT... [options]\n"
    "\n"
    "Runs Lua scripts until they end, fail, or get SIGINT or SIGTERM: files, directories with an\n"
    "init.lua, or configmap:NAMESPACE/NAME. What changes is reloaded, and all caches stay as they\n"
    "are. On a terminal, a script that does not load waits until its files are mended.\n"
    "\n"
    "  --kubeconfig FILE     default: $KUBECONFIG, ~/.kube/config, then the pod's own account\n"
    "  --context NAME        default: the kubeconfig's current context\n"
    "  -n, --namespace NAME  for factories that name none; default: all namespaces\n"
    "  --sandbox             no cluster: start a sandbox, run against it, end with it\n"
    "  --apply PATH          with --sandbox: a manifest, or a directory of them; may be repeated\n"
    "  --kubeconfig-out FILE with --sandbox: where kubectl finds it\n"
    "  --metrics-listen ADDRESS:PORT\n"
    "                        serve /metrics, /healthz, /readyz and /status there; 0 takes a free "
    "port\n"
    "  --no-reload           leave files that change alone\n"
    "  --control PATH        the socket for moonwatch status and its like; none: without. "
    "Default:\n"
    "                        moonwatch/PID.sock in $XDG_RUNTIME_DIR, or /tmp/moonwatch-UID\n"
    "  --log-level LEVEL     error, warn, info (default) or debug\n"
    "  --log-format FORMAT   text, json or auto (default: text on a terminal, else json)\n"
    "  --shutdown-timeout S  seconds for work in flight to end when asked to stop; default: 10\n"
    "  --stuck-timeout S     seconds of CPU without a way to stop the script, after which the "
    "process\n"
    "                        ends; default: 10, 0: never\n"
    "  --http1               never use HTTP/2\n"
    "  --memory-limit SIZE   of the script's Lua state, such as 128Mi; default: 64Mi, 0: no limit\n"
    "\n"
    "Exit status: 0 ended or stopped in order, 1 the script failed or something did not start,\n"
    "2 wrong arguments, 3 no usable kubeconfig, 4 the lease was lost, 5 stopped, but with work\n"
    "left undone, 6 the script got stuck.\n";

static const char usage_sandbox[] =
    "Usage: moonwatch sandbox [options]\n"
    "\n"
    "Serves a Kubernetes API without a cluster until it gets SIGINT, SIGTERM or SIGHUP: HTTPS,\n"
    "with a CA of its own. Objects are in memory; nothing runs them.\n"
    "\n"
    "  --listen ADDRESS:PORT   default: 127.0.0.1:0, which takes any free port\n"
    "  --allow-remote          let --listen be an address that others can reach\n"
    "  --plain-http            no TLS; kubectl then sends no token, other clients may\n"
    "  --token TOKEN           what clients must present; default: a random one\n"
    "  --kubeconfig-out FILE   where clients find all that; default: a temporary file\n"
    "  --apply PATH...         manifests, or directories of them, to begin with\n"
    "  --data FILE             keep the objects in this file\n"
    "  --seed NUMBER           make names and identities the same every time\n"
    "  --log-level LEVEL       error, warn, info (default) or debug\n"
    "  --log-format FORMAT     text, json or auto (default: text on a terminal, else json)\n"
    "\n"
    "Exit status: 0 stopped in order, 1 it did not start or could not keep its objects, 2 wrong\n"
    "arguments.\n";

static const char usage_test[] =
    "Usage: moonwatch test [SPEC...] [options] [-- BUSTED OPTIONS]\n"
    "\n"
    "Runs specs of scripts with busted, inside this process and against a sandbox of their own: "
    "files,\n"
    "or directories with files *_spec.lua; default: all below the current directory. In a spec,\n"
    "require \"kube.test\" runs a script and tells what it wrote.\n"
    "\n"
    "  --log-level LEVEL     error (default), warn, info or debug\n"
    "  --log-format FORMAT   text, json or auto (default: text on a terminal, else json)\n"
    "  --memory-limit SIZE   of each script's Lua state, such as 128Mi; default: 64Mi, 0: no "
    "limit\n"
    "  -- OPTIONS            for busted, such as --filter=PATTERN or --output=TAP\n"
    "\n"
    "Exit status: 0 all specs passed, 1 some did not or something did not start, 2 wrong "
    "arguments,\n"
    "130 stopped by a signal.\n";

static const char usage_check[] =
    "Usage: moonwatch check SCRIPT... [options]\n"
    "\n"
    "Loads scripts without a cluster, lets nothing of them run, and says what they declare: "
    "controllers,\n"
    "informers, timers, leader election, and what they must be allowed to do.\n"
    "\n"
    "  -n, --namespace NAME  as for run: where informers are that name none; default: everywhere\n"
    "  -o, --output FORMAT   text (default) or json\n"
    "  --memory-limit SIZE   as for run: of a script's Lua state; default: 64Mi\n"
    "\n"
    "Exit status: 0 all scripts load, 1 one does not, 2 wrong arguments.\n";

static const char usage_rbac[] =
    "Usage: moonwatch rbac SCRIPT... [options]\n"
    "\n"
    "Prints what an account must be allowed to do to run these scripts, and no more: a "
    "ClusterRole, or\n"
    "Roles for what is in known namespaces. See `writes` of kube.controller for what is written.\n"
    "\n"
    "  --name NAME           of the roles; default: that of the first script\n"
    "  -n, --namespace NAME  as for run: where informers are that name none; default: everywhere\n"
    "  -o, --output FORMAT   yaml (default) or json\n"
    "  --memory-limit SIZE   as for run: of a script's Lua state; default: 64Mi\n"
    "\n"
    "Exit status: 0 all scripts load, 1 one does not, 2 wrong arguments.\n";

static const char usage_operate[] =
    "Usage: moonwatch COMMAND [options]\n"
    "\n"
    "  status                    scripts with their revisions, controllers, informers, the lease\n"
    "  top                       rates, queues, running and slow keys, every second; q ends it\n"
    "  why KEY                   what became of an object: queued or not, its last runs, and why\n"
    "  enqueue CONTROLLER KEY    reconcile an object now\n"
    "  reload                    read the scripts anew, now; says when they are active, or why "
    "not\n"
    "  rollback [REVISION]       go back to a revision that ran before; default: the last one\n"
    "  hold [on|off]             take no new revision; what changes meanwhile waits for off\n"
    "\n"
    "These talk to a `moonwatch run` of the same user on this machine. KEY is NAMESPACE/NAME, or\n"
    "NAME; the first digits of a REVISION are enough.\n"
    "\n"
    "  --pid PID             which process, when there are several\n"
    "  --control PATH        the socket that it was given with its own --control\n"
    "  --script SCRIPT       reload, rollback, hold: which script, when it runs several\n"
    "  --controller NAME     why: of this controller alone\n"
    "  --once                top: print once and end\n"
    "  -o, --output FORMAT   text (default) or json\n"
    "\n"
    "Exit status: 0 done, 1 it could not be done, or there is no such process, 2 wrong "
    "arguments.\n";

// The commands that have a page of help, in the order of their words.
static const struct {
  enum mw_command command;
  const char *word, *help, *usage;
} pages[] = {
    {MW_COMMAND_RUN, "run", "help run", usage_run},
    {MW_COMMAND_SANDBOX, "sandbox", "help sandbox", usage_sandbox},
    {MW_COMMAND_TEST, "test", "help test", usage_test},
    {MW_COMMAND_CHECK, "check", "help check", usage_check},
    {MW_COMMAND_RBAC, "rbac", "help rbac", usage_rbac},
    {MW_COMMAND_STATUS, "status", "help status", usage_operate},
    {MW_COMMAND_TOP, "top", "help top", usage_operate},
    {MW_COMMAND_WHY, "why", "help why", usage_operate},
    {MW_COMMAND_ENQUEUE, "enqueue", "help enqueue", usage_operate},
    {MW_COMMAND_RELOAD, "reload", "help reload", usage_operate},
    {MW_COMMAND_ROLLBACK, "rollback", "help rollback", usage_operate},
    {MW_COMMAND_HOLD, "hold", "help hold", usage_operate},
};

enum { PAGES = sizeof pages / sizeof pages[0] };

static size_t page_of(enum mw_command command) {
  size_t i = 0;
  while (i + 1 < PAGES && pages[i].command != command) i++;
  return i;
}

const char *mw_options_word(enum mw_command command) { return pages[page_of(command)].word; }

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

// Edits between two short words; far apart when either is long.
static size_t distance(const char *a, const char *b) {
  size_t n = strlen(a), m = strlen(b);
  if (n >= WORD_MAX || m >= WORD_MAX) return WORD_MAX;
  size_t row[WORD_MAX + 1];
  for (size_t j = 0; j <= m; j++) row[j] = j;
  for (size_t i = 1; i <= n; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= m; j++) {
      size_t above = row[j];
      row[j] = least(least(above, row[j - 1]) + 1, diagonal + (a[i - 1] != b[j - 1]));
      diagonal = above;
    }
  }
  return row[m];
}

// The position of word in list, or -1.
static int position(const char *word, const char *const *list) {
  for (int i = 0; list[i] != NULL; i++)
    if (strcmp(word, list[i]) == 0) return i;
  return -1;
}

// Which of `known` was perhaps meant: one that differs in no more than half of what was written.
static const char *nearest(const char *word, const char *const *known) {
  const char *best = NULL;
  size_t best_distance = least((strlen(word + strspn(word, "-")) + 1) / 2, NEAR_MAX) + 1;
  for (; *known != NULL; known++) {
    size_t d = distance(word, *known);
    if (d >= best_distance) continue;
    best = *known;
    best_distance = d;
  }
  return best;
}

// Says that `word` is no known `kind`, and which of `known` was perhaps meant, or else what to ask
// for help.
static int unknown(const char *kind, const char *word, const char *const *known, const char *help) {
  const char *meant = nearest(word, known);
  fprintf(stderr, "moonwatch: unknown %s '%s'; ", kind, word);
  if (meant != NULL) {
    fprintf(stderr, "did you mean '%s'?\n", meant);
  } else {
    fprintf(stderr, "see moonwatch %s\n", help);
  }
  return MW_EXIT_USAGE;
}

// Says that `word` is no `kind`, and what there is of them: two words or more.
static int none_of(const char *kind, const char *word, const char *const *known) {
  fprintf(stderr, "moonwatch: unknown %s '%s': use %s", kind, word, known[0]);
  for (size_t i = 1; known[i] != NULL; i++) {
    fprintf(stderr, "%s%s", known[i + 1] != NULL ? ", " : " or ", known[i]);
  }
  fputc('\n', stderr);
  return MW_EXIT_USAGE;
}

static const char *help_of(const struct mw_options *o) { return pages[page_of(o->command)].help; }

static int usage_error(const struct mw_options *o, const char *problem, const char *word) {
  bool question = problem[strlen(problem) - 1] == '?';
  fprintf(stderr, "moonwatch: %s%s%s moonwatch %s\n", problem, word, question ? " See" : "; see",
          help_of(o));
  return MW_EXIT_USAGE;
}

static const char *const levels[] = {"error", "warn", "info", "debug", NULL};
static const char *const formats[] = {"auto", "text", "json", NULL};

static int set_grace(struct mw_options *o, const char *value) {
  char *end;
  double seconds = strtod(value, &end);
  if (end == value || *end != '\0' || !(seconds >= 0 && seconds <= grace_max)) {
    return usage_error(o, "--shutdown-timeout takes a number of seconds up to 86400, not ", value);
  }
  o->host.grace = seconds > 0 ? seconds : 1e-9;  // 0 is for not given
  return 0;
}

static int set_stuck(struct mw_options *o, const char *value) {
  char *end;
  double seconds = strtod(value, &end);
  if (end == value || *end != '\0' || !(seconds >= 0 && seconds <= grace_max)) {
    return usage_error(o, "--stuck-timeout takes a number of seconds up to 86400, not ", value);
  }
  o->host.stuck_after = seconds > 0 ? seconds : -1;
  return 0;
}

static int set_memory_limit(struct mw_options *o, const char *value) {
  static const char *const units[] = {"", "Ki", "Mi", "Gi", NULL};
  size_t digits = strspn(value, "0123456789");
  int unit = position(value + digits, units);
  double bytes = unit < 0 ? -1 : strtod(value, NULL) * (double)(1ULL << (10 * unit));
  if (digits == 0 || bytes < 0 || bytes > memory_max) {
    return usage_error(o, "--memory-limit takes bytes, or a size such as 64Mi or 1Gi, not ", value);
  }
  o->host.memory_limit = (size_t)bytes;
  return 0;
}

static int set_seed(struct mw_options *o, const char *value) {
  char *end;
  o->seed = strtod(value, &end);
  o->has_seed = true;
  bool whole = end != value && *end == '\0' && o->seed >= 0 && o->seed <= seed_max &&
               o->seed == (double)(unsigned long long)o->seed;
  return whole ? 0 : usage_error(o, "--seed takes a whole number, not ", value);
}

static int set_level(struct mw_options *o, const char *value) {
  int found = position(value, levels);
  if (found < 0) return none_of("log level", value, levels);
  o->level = (enum mw_log_level)found;
  return 0;
}

static int set_format(struct mw_options *o, const char *value) {
  int found = position(value, formats);
  if (found < 0) return none_of("log format", value, formats);
  o->format = (enum mw_log_format)found;
  return 0;
}

static int set_output(struct mw_options *o, const char *value) {
  static const char *const outputs[][3] = {{"text", "json", NULL}, {"yaml", "json", NULL}};
  const char *const *ours = outputs[o->command == MW_COMMAND_RBAC];
  if (position(value, ours) < 0) return none_of("output format", value, ours);
  o->output = value;
  return 0;
}

static int set_pid(struct mw_options *o, const char *value) {
  if (value[strspn(value, "0123456789")] != '\0') {
    return usage_error(o, "--pid takes the number of a process, not ", value);
  }
  o->pid = value;
  return 0;
}

static int set_name(struct mw_options *o, const char *value) {
  size_t n = strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-.:");
  if (value[n] != '\0') return usage_error(o, "a role cannot have the name ", value);
  o->name = value;
  return 0;
}

// It travels in a header and stands in a kubeconfig.
static int set_token(struct mw_options *o, const char *value) {
  for (const char *p = value; *p != '\0'; p++) {
    if (*p <= ' ' || *p > '~') return usage_error(o, "--token takes ASCII without spaces", "");
  }
  o->token = value;
  return 0;
}

static int add_apply(struct mw_options *o, const char *path) {
  o->apply = mw_xrealloc(o->apply, (o->apply_count + 1) * sizeof *o->apply);
  o->apply[o->apply_count++] = path;
  return 0;
}

// An option sets a string or a flag of struct mw_options, or has a function of its own.
enum kind {
  TEXT = 0,  // perhaps empty
  NAME,      // a string that is not
  FLAG,
  CALL  // with a string that is not empty
};

static const struct known {
  const char *name;
  unsigned commands;
  enum kind kind;
  size_t offset;                                        // TEXT, NAME, FLAG
  int (*set)(struct mw_options *o, const char *value);  // CALL: 0, or the exit code
} known[] = {
#define RUN MW_COMMAND_RUN
#define SANDBOX MW_COMMAND_SANDBOX
#define TEST MW_COMMAND_TEST
#define LOOK (MW_COMMAND_CHECK | MW_COMMAND_RBAC)
#define OPERATE MW_COMMAND_OPERATE
#define FIELD(name) offsetof(struct mw_options, name)
    {"--kubeconfig", RUN, TEXT, FIELD(host.kubeconfig.path), NULL},
    {"--context", RUN, TEXT, FIELD(host.kubeconfig.context), NULL},
    {"--namespace", RUN | LOOK, TEXT, FIELD(host.ns), NULL},
    {"-n", RUN | LOOK, TEXT, FIELD(host.ns), NULL},
    {"--output", LOOK | OPERATE, CALL, 0, set_output},
    {"-o", LOOK | OPERATE, CALL, 0, set_output},
    {"--control", RUN | OPERATE, NAME, FIELD(host.control), NULL},
    {"--pid", OPERATE, CALL, 0, set_pid},
    {"--script", MW_COMMAND_RELOAD | MW_COMMAND_ROLLBACK | MW_COMMAND_HOLD, NAME, FIELD(script),
     NULL},
    {"--controller", MW_COMMAND_WHY, NAME, FIELD(controller), NULL},
    {"--once", MW_COMMAND_TOP, FLAG, FIELD(once), NULL},
    {"--name", MW_COMMAND_RBAC, CALL, 0, set_name},
    {"--sandbox", RUN, FLAG, FIELD(sandbox), NULL},
    {"--metrics-listen", RUN, NAME, FIELD(host.listen), NULL},
    {"--shutdown-timeout", RUN, CALL, 0, set_grace},
    {"--no-reload", RUN, FLAG, FIELD(host.no_reload), NULL},
    {"--http1", RUN, FLAG, FIELD(host.http1_only), NULL},
    {"--stuck-timeout", RUN, CALL, 0, set_stuck},
    {"--memory-limit", RUN | TEST | LOOK, CALL, 0, set_memory_limit},
    {"--apply", RUN | SANDBOX, CALL, 0, add_apply},
    {"--log-level", RUN | SANDBOX | TEST, CALL, 0, set_level},
    {"--log-format", RUN | SANDBOX | TEST, CALL, 0, set_format},
    {"--listen", SANDBOX, NAME, FIELD(listen), NULL},
    {"--allow-remote", SANDBOX, FLAG, FIELD(allow_remote), NULL},
    {"--plain-http", SANDBOX, FLAG, FIELD(plain_http), NULL},
    {"--token", SANDBOX, CALL, 0, set_token},
    {"--kubeconfig-out", RUN | SANDBOX, NAME, FIELD(kubeconfig_out), NULL},
    {"--data", SANDBOX, NAME, FIELD(data), NULL},
    {"--seed", SANDBOX, CALL, 0, set_seed},
#undef FIELD
#undef OPERATE
#undef LOOK
#undef TEST
#undef SANDBOX
#undef RUN
};

enum { KNOWN = sizeof known / sizeof known[0] };

static int unknown_option(const struct mw_options *o, const char *name) {
  const char *names[KNOWN + 1];
  size_t n = 0;
  for (size_t i = 0; i < KNOWN; i++)
    if ((known[i].commands & o->command) != 0) names[n++] = known[i].name;
  names[n] = NULL;
  return unknown("option", name, names, help_of(o));
}

static const struct known *find_option(const struct mw_options *o, const char *name) {
  for (size_t i = 0; i < KNOWN; i++) {
    bool ours = (known[i].commands & o->command) != 0;
    if (ours && strcmp(name, known[i].name) == 0) return &known[i];
  }
  return NULL;
}

static int add_word(struct mw_options *o, const char *word) {
  o->words = mw_xrealloc(o->words, (o->word_count + 1) * sizeof *o->words);
  o->words[o->word_count++] = word;
  return 0;
}

// A word that is no option.
static int take_word(struct mw_options *o, const char *word) {
  if (o->command != MW_COMMAND_RUN && o->command != MW_COMMAND_SANDBOX) return add_word(o, word);
  if (o->command == MW_COMMAND_SANDBOX) {
    if (o->apply_count > 0) return add_apply(o, word);
    return usage_error(o, "what is to be done with ", word);
  }
  return add_word(o, word);
}

// One argument, perhaps with its value in the next; moves *i. 0, or the exit code.
static int take(struct mw_options *o, int argc, char **argv, int *i) {
  const char *word = argv[*i];
  if (word[0] != '-' || word[1] == '\0') return take_word(o, word);
  char name[WORD_MAX];
  const char *value = strchr(word, '=');
  size_t length = value != NULL ? (size_t)(value - word) : strlen(word);
  snprintf(name, sizeof name, "%.*s", (int)least(length, WORD_MAX), word);
  const struct known *k = find_option(o, name);
  if (k == NULL) return unknown_option(o, name);
  void *field = (char *)o + k->offset;
  if (k->kind == FLAG) {
    if (value != NULL) return usage_error(o, "no value belongs to ", name);
    *(bool *)field = true;
    return 0;
  }
  if (value == NULL && *i + 1 >= argc) return usage_error(o, "a value is missing after ", name);
  value = value != NULL ? value + 1 : argv[++*i];
  if (k->kind != TEXT && *value == '\0') return usage_error(o, "nothing is given after ", name);
  if (k->kind == CALL) return k->set(o, value);
  *(const char **)field = value;
  return 0;
}

static bool is_port(const char *text) {
  size_t n = strspn(text, "0123456789");
  return n > 0 && n <= PORT_DIGITS && text[n] == '\0' && strtol(text, NULL, 10) <= PORT_MAX;
}

enum reach { MALFORMED = 0, LOCAL, REMOTE };

// Who can reach what listens on ADDRESS:PORT or [ADDRESS]:PORT. Without an address it is on all.
static enum reach reach_of(const char *listen) {
  const char *colon = strrchr(listen, ':');
  if (colon == NULL || !is_port(colon + 1)) return MALFORMED;
  size_t n = (size_t)(colon - listen);
  if (n == 0) return REMOTE;
  bool bracketed = n >= 2 && listen[0] == '[' && listen[n - 1] == ']';
  char address[ADDRESS_MAX];
  snprintf(address, sizeof address, "%.*s", (int)least(bracketed ? n - 2 : n, ADDRESS_MAX),
           listen + (bracketed ? 1 : 0));
  struct in_addr v4;
  struct in6_addr v6;
  if (!bracketed && inet_pton(AF_INET, address, &v4) == 1) {
    return (ntohl(v4.s_addr) >> 24) == 127 ? LOCAL : REMOTE;
  }
  if (!bracketed || inet_pton(AF_INET6, address, &v6) != 1) return MALFORMED;
  return IN6_IS_ADDR_LOOPBACK(&v6) ? LOCAL : REMOTE;
}

static int check_metrics_listen(const struct mw_options *o) {
  if (o->host.listen == NULL || reach_of(o->host.listen) != MALFORMED) return 0;
  return usage_error(o,
                     "--metrics-listen takes a numeric ADDRESS:PORT such as 127.0.0.1:9090, not ",
                     o->host.listen);
}

static int check_listen(const struct mw_options *o) {
  enum reach reach = o->listen != NULL ? reach_of(o->listen) : LOCAL;
  if (reach == MALFORMED) {
    return usage_error(o, "--listen takes a numeric ADDRESS:PORT such as 127.0.0.1:8001, not ",
                       o->listen);
  }
  if (reach == LOCAL || o->allow_remote) return 0;
  fprintf(stderr,
          "moonwatch: whoever reaches %s owns the sandbox: listen on 127.0.0.1 or [::1], or add "
          "--allow-remote\n",
          o->listen);
  return MW_EXIT_USAGE;
}

// The words of those that talk to a running process.
static int check_operate(const struct mw_options *o) {
  static const char *const switches[] = {"on", "off", NULL};
  size_t least_words = o->command == MW_COMMAND_WHY ? 1 : o->command == MW_COMMAND_ENQUEUE ? 2 : 0;
  bool takes_one = o->command == MW_COMMAND_ROLLBACK || o->command == MW_COMMAND_HOLD;
  size_t most_words = takes_one ? 1 : least_words;
  if (o->word_count < least_words) {
    return usage_error(o, o->command == MW_COMMAND_WHY ? "which key?" : "which controller and key?",
                       "");
  }
  if (o->word_count > most_words) {
    return usage_error(o, "what is to be done with ", o->words[most_words]);
  }
  if (o->command == MW_COMMAND_HOLD && o->word_count > 0 && position(o->words[0], switches) < 0) {
    return usage_error(o, "hold takes on or off, not ", o->words[0]);
  }
  if (o->pid != NULL && o->host.control != NULL) {
    return usage_error(o, "--pid and --control both say which process; give one of them", "");
  }
  return 0;
}

// "" is all of them, so this is no matter of the option itself.
static int check_namespace(const struct mw_options *o) {
  struct mw_err err;
  if (o->host.ns == NULL || mw_namespace_check(mw_slice_str(o->host.ns), &err) == 0) return 0;
  return usage_error(o, "--namespace: ", err.message);
}

// What only the whole can tell. 0, or the exit code.
static int check(struct mw_options *o) {
  if (o->command == MW_COMMAND_SANDBOX) return check_listen(o);
  if ((o->command & MW_COMMAND_OPERATE) != 0) return check_operate(o);
  if (o->word_count == 0) {
    return usage_error(o, o->command == MW_COMMAND_RUN ? "which script?" : "which scripts?", "");
  }
  o->host.scripts = o->words;
  o->host.script_count = o->word_count;
  int code = check_namespace(o);
  if (code != 0) return code;
  if (o->command != MW_COMMAND_RUN) return 0;
  if (!o->sandbox && o->apply_count > 0) return usage_error(o, "--apply belongs to --sandbox", "");
  if (!o->sandbox && o->kubeconfig_out != NULL) {
    return usage_error(o, "--kubeconfig-out belongs to --sandbox", "");
  }
  bool other = o->host.kubeconfig.path != NULL || o->host.kubeconfig.context != NULL;
  if (o->sandbox && other) {
    return usage_error(o, "--sandbox is the cluster: no --kubeconfig and no --context", "");
  }
  if (o->host.control == NULL) {
    o->host.control = "";
  } else if (strcmp(o->host.control, "none") == 0) {
    o->host.control = NULL;
  }
  return check_metrics_listen(o);
}

static bool is_help(const char *word) {
  return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int print(const char *text) {
  fputs(text, stdout);
  return MW_EXIT_OK;
}

// What is for busted, behind the specs: all there are when none was given.
static int take_words(struct mw_options *o, int argc, char **argv) {
  if (o->word_count == 0) add_word(o, ".");
  for (int i = 0; i < argc; i++) add_word(o, argv[i]);
  return 0;
}

// The arguments behind the command. 0 with the command still set: go ahead.
static int read_command(struct mw_options *o, int argc, char **argv) {
  for (int i = 0; i < argc; i++) {
    if (o->command == MW_COMMAND_TEST && strcmp(argv[i], "--") == 0) {
      return take_words(o, argc - i - 1, argv + i + 1);
    }
    if (is_help(argv[i])) {
      int code = print(pages[page_of(o->command)].usage);
      o->command = MW_COMMAND_NONE;
      return code;
    }
    int code = take(o, argc, argv, &i);
    if (code != 0) return code;
  }
  return o->command == MW_COMMAND_TEST ? take_words(o, 0, NULL) : check(o);
}

static int help(int argc, char **argv) {
  const char *topics[PAGES + 1] = {NULL};
  for (size_t i = 0; i < PAGES; i++) topics[i] = pages[i].word;
  if (argc == 0) return print(usage);
  int topic = position(argv[0], topics);
  return topic >= 0 ? print(pages[topic].usage) : unknown("command", argv[0], topics, "help");
}

static int version(void) {
  printf("moonwatch %s\n", MW_VERSION);
  return MW_EXIT_OK;
}

void mw_options_read(struct mw_options *o, int argc, char **argv) {
  static const char *const words[] = {
      "run",    "sandbox",  "test", "check", "rbac",    "status", "top",       "why", "enqueue",
      "reload", "rollback", "hold", "help",  "version", "--help", "--version", "-h",  NULL};
  *o = (struct mw_options){.level = MW_LOG_INFO, .host.memory_limit = MW_HEAP_DEFAULT};
  int word = argc >= 2 ? position(argv[1], words) : -1;
  if (argc < 2) {
    fputs(usage, stderr);
    o->code = MW_EXIT_USAGE;
  } else if (word < 0) {
    o->code = unknown(argv[1][0] == '-' ? "option" : "command", argv[1], words, "help");
  } else if (word < PAGES) {
    o->command = pages[word].command;
    if (o->command != MW_COMMAND_RUN && o->command != MW_COMMAND_SANDBOX) o->level = MW_LOG_ERROR;
    o->code = read_command(o, argc - 2, argv + 2);
    if (o->code != 0) o->command = MW_COMMAND_NONE;
  } else {
    bool asks_version = strstr(words[word], "version") != NULL;
    o->code = asks_version ? version() : help(argc - 2, argv + 2);
  }
}

void mw_options_deinit(struct mw_options *o) {
  mw_free(o->apply);
  mw_free(o->words);
  o->apply = o->words = NULL;
}
