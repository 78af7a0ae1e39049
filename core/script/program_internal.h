// SPDX-License-Identifier: Apache-2.0
// Private to program.c, which moves revisions on, and program_status.c, which tells of them.
#pragma once

#include <stdint.h>

#include "script/bundle_source.h"
#include "script/keep.h"
#include "script/program.h"
#include "script/store.h"

// A revision in its generation.
struct mw_program_run {
  struct mw_program *program;
  struct mw_generation *generation;
  struct mw_bundle *bundle;  // NULL: a module
  bool stuck;                // it did not end: something still points into its state
};

struct mw_program {
  struct mw_host *host;
  struct mw_program_config config;
  struct mw_bundle_source *source;  // NULL: not watched
  struct mw_program_run *active, *staging;
  struct mw_program_run *retiring[MW_PROGRAM_RETIRING];
  struct mw_bundle *next;                         // offered, and waits for its turn
  struct mw_bundle *history[MW_PROGRAM_HISTORY];  // those that were active before, newest first
  char *bad[MW_PROGRAM_HISTORY];                  // revisions that failed in probation
  size_t bad_next;
  struct mw_keep *keep;
  struct mw_store *store;
  unsigned long generations;  // so many were made
  uint64_t offered_at;        // of the staging one
  struct mw_timer *warm_up;
  struct mw_timer *probation;  // running: the active one may be taken back
  uint64_t probation_ends;
  double failing_before;  // the part of reconciles that failed in the revision before
  char *failure;          // of the staging one at its commit
  char *fault;            // of the active one, to be looked at from the loop
  bool failed;            // the last one has ended for that, and the process goes on
  bool awaited;           // none has been active yet, and one is to come
  bool remote;            // what runs is offered
  bool undone;
  mw_loop_cb done;  // stopping
  void *done_ctx;
  // What is told of it.
  double active_at;  // wall clock: when the active one became it
  unsigned long reloads, failures;
  unsigned long past_hits;  // of the memory limit, by those that have ended
  struct mw_program_failure {
    char revision[MW_BUNDLE_REVISION_SIZE];
    char *report;
    double at;
  } last_failure;          // report NULL: none since the last success
  bool taken_back;         // what becomes active next does so because of it
  struct mw_bundle *held;  // what was offered while nothing is taken
  double held_at;          // 0: offers are taken
  struct mw_program_past {
    char revision[MW_BUNDLE_REVISION_SIZE];
    char *text;                // NULL: none
  } past[MW_PROGRAM_HISTORY];  // what those did that have ended, newest first
  mw_loop_cb changed;
  void *changed_ctx;
};

// program.c
// "" for NULL and for a module.
const char *mw_program_revision_of(const struct mw_program_run *r);
// Whether it failed in its probation.
bool mw_program_is_bad(const struct mw_program *p, const struct mw_bundle *b);
// Makes it the active one, if it can be.
void mw_program_adopt(struct mw_program *p, struct mw_bundle *b);

// program_status.c
// The last revision to go back to: not the active one, and none that failed. NULL: there is none.
struct mw_bundle *mw_program_before(const struct mw_program *p);
// Another revision is active.
void mw_program_note_active(struct mw_program *p);
// A revision failed; "": the files cannot even be read.
void mw_program_note_failure(struct mw_program *p, const char *revision, const char *report);
// How often it reached its memory limit; 0 for NULL.
unsigned long mw_program_hits_of(const struct mw_program_run *r);
// A generation has ended: what it did is remembered.
void mw_program_keep_past(struct mw_program *p, const struct mw_program_run *r);
// Something is offered: whether offers are held; then it is remembered.
bool mw_program_hold_back(struct mw_program *p, struct mw_bundle *b);
// Frees what is told of it.
void mw_program_forget(struct mw_program *p);
