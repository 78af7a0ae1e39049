// SPDX-License-Identifier: Apache-2.0
// A program: one script that the command line named, through its revisions. Script thread only.
//
// One generation is active. A new revision is staged beside it, and touches nothing: its files are
// compiled, its load phase declares, and what it wants to watch is read while the active one goes
// on working. Then it takes over in one turn of the loop (commit), and the one before drains: calls
// and reconciles under way end on the old code, events that came before the turn are delivered
// there, all later ones here. Whatever fails before that turn changes nothing; the report says why,
// and stays until another revision is offered.
//
// Each event reaches the handlers of one generation, and those of a script are told in order also
// across its generations: new handlers of an informer begin when the old ones of that informer have
// finished what was queued for them, a call that awaits included. They wait for MW_LISTENER_HOLD
// (processor.h) at most, and then begin beside them, which is logged: a call that hangs does not
// keep its successor from working. The take-over itself waits for nothing, nor do controllers,
// whose queues see to it that a key does not run twice at once.
//
// TRAP decided (S-INF-52, S-STO-27): to the cache a take-over is handlers that go and others that
// come, which get synthetic adds. Indexes that nobody names any more go, too; queued keys do not:
// the new code works on them.
//
// Informers, queues and the lease belong to the host, so they never notice (a revision that adds an
// election, or leaves it out: leader.h). Informers and queues that nobody wants any more are kept
// for a while (MW_PROGRAM_KEEP): who undoes a change finds them warm.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "script/bundle.h"
#include "script/generation.h"
#include "transport/loop.h"

struct mw_json_out;
struct mw_program;

enum {
  MW_PROGRAM_RETIRING = 4,    // generations that drain at once; the next revision waits for them
  MW_PROGRAM_KEEP = 300,      // seconds that an informer or a queue is kept for nobody
  MW_PROGRAM_HISTORY = 5,     // revisions that are remembered, to go back to
  MW_PROGRAM_PROBATION = 60,  // seconds in which a failure goes back to the revision before:
                              // of its main task, one that the watchdog or the memory limit stops,
  MW_PROGRAM_RUNS = 20        // or, of so many reconciles at least, more than half, and more than
                              // three times as many as before
};

#define MW_PROGRAM_REMOTE "configmap:"

struct mw_program_config {
  // A file or a directory; or a name that begins with MW_PROGRAM_REMOTE, whose revisions are all
  // offered by somebody else.
  const char *path;
  const char *module;  // or a part of Moonwatch (generation.h), which has no revisions
  mw_state_open_cb open;
  const char *agent;
  bool metered;
  size_t memory_limit;  // of a generation; 0: none
  bool watched;         // revisions are noticed by themselves
};

struct mw_program *mw_program_new(struct mw_host *host, const struct mw_program_config *config);
// Reads, checks and loads the first revision, unless that is to be offered. The error names file
// and line.
int mw_program_load(struct mw_program *p, struct mw_err *err);
// After a load that failed: all reasons; "" when not even a state could be made for it.
const char *mw_program_report(const struct mw_program *p);
// After a load that failed: tells why, and waits for files that are better. What loads then is the
// first revision: nobody hands over to it, it waits for no caches, and it may do its work and end.
// False when no files are watched that could be mended: then nothing has happened.
bool mw_program_wait(struct mw_program *p);
void mw_program_commit(struct mw_program *p);  // of the first revision

// Another revision, +0. Tries to make it the active one.
void mw_program_offer(struct mw_program *p, struct mw_bundle *b);
// The active generation; NULL: none.
struct mw_generation *mw_program_active(struct mw_program *p);
// Whether its first revision has still to come; it keeps the process running then.
bool mw_program_is_waiting(const struct mw_program *p);
// Whether its revisions are offered by somebody else.
bool mw_program_is_remote(const struct mw_program *p);
// Whether something keeps it running.
bool mw_program_is_busy(const struct mw_program *p);
// Whether a task of the active generation has failed that nobody looked at.
bool mw_program_has_failed(const struct mw_program *p);
// Something changed in the host (mw_host_poke).
void mw_program_look(struct mw_program *p);

// As mw_generation_stop, for all that there is of it; done is called from the loop.
void mw_program_stop(struct mw_program *p, double grace, double patience, mw_loop_cb done,
                     void *ctx);
bool mw_program_has_ended(const struct mw_program *p);
bool mw_program_is_drained(const struct mw_program *p);
// After stop reported done.
void mw_program_free(struct mw_program *p);

// ---- for those who operate it (control.h) ----

const char *mw_program_path(const struct mw_program *p);      // NULL: a module
const char *mw_program_revision(const struct mw_program *p);  // of the active one, "": none
// Writes what there is to know of it, as members of an object.
void mw_program_tell(const struct mw_program *p, struct mw_json_out *o);
// How often it reached its memory limit, in all its revisions.
unsigned long mw_program_memory_hits(const struct mw_program *p);
// What the last revisions did that have ended, as pairs of a revision and what
// lua/kube/_operate.lua made of it; how many texts. Borrowed.
size_t mw_program_past(const struct mw_program *p, const char *out[2 * MW_PROGRAM_HISTORY]);
// cb(ctx) is called when another revision is active, one has failed, or one is held back. It must
// not call into the program. One observer.
void mw_program_on_change(struct mw_program *p, mw_loop_cb cb, void *ctx);

// Reads the files now and offers what they have, also a revision that failed before. out: which it
// is. The error says why they cannot be read.
int mw_program_reload(struct mw_program *p, char out[MW_BUNDLE_REVISION_SIZE], struct mw_err *err)
    __attribute__((warn_unused_result));
// The same with a revision that was active before: that which begins with text, or the last one
// when text is NULL. Also while offers are held.
int mw_program_rollback(struct mw_program *p, const char *text, char out[MW_BUNDLE_REVISION_SIZE],
                        struct mw_err *err) __attribute__((warn_unused_result));
// While on, what is offered is remembered; then the last of it is taken.
void mw_program_hold(struct mw_program *p, bool on);

// What became of a revision that was asked for.
enum mw_program_outcome {
  MW_PROGRAM_PENDING = 0,
  MW_PROGRAM_ACTIVE,
  MW_PROGRAM_FAILED,    // mw_program_failure
  MW_PROGRAM_HELD,      // it waits for the release
  MW_PROGRAM_REPLACED,  // by another one that was offered since
  MW_PROGRAM_ENDED      // the program has, or does
};
enum mw_program_outcome mw_program_outcome(const struct mw_program *p, const char *revision);
// The report, if this revision is the last that failed, and none has become active since; else
// NULL.
const char *mw_program_failure(const struct mw_program *p, const char *revision);
