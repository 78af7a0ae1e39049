// SPDX-License-Identifier: Apache-2.0
// The files of a script as they were at one moment, in memory: what a generation runs, whatever
// becomes of the files later.
//
// Ownership: immutable and refcounted (atomically); a constructor returns +1, and what the other
// functions return lives as long as the bundle.
//
// Names are those that `require` has: lib/util.lua is "lib.util", and lib/init.lua is "lib.init",
// which mw_bundle_find also finds as "lib" when there is no lib.lua. No two files have one name.
//
// A *file* brings the files along that its sources name: each literal of require("x.y") or
// pcall(require, "x.y"), in them and in turn in what they name, that is found beside the first as
// x/y.lua or x/y/init.lua. A module whose name is put together at run time is not seen; a script
// that does so is given as a directory. A *directory* brings every *.lua beneath it but *_spec.lua
// and what is hidden; it starts with init.lua, else with main.lua.
//
// A mounted ConfigMap (the directory has the kubelet's `..data`) is read in one piece: from what
// `..data` led to at the start, and anew when it was replaced meanwhile. Its keys cannot contain a
// slash, so lib.util.lua is "lib.util" as well.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum {
  MW_BUNDLE_FILES_MAX = 1000,
  MW_BUNDLE_BYTES_MAX = 16 * 1024 * 1024,
  MW_BUNDLE_DEPTH_MAX = 16,       // directories within the first
  MW_BUNDLE_ENTRIES_MAX = 10000,  // names of all kinds that are looked at for one bundle
  MW_BUNDLE_REVISION_SIZE = 13,   // 12 hex digits and the NUL
};

struct mw_bundle;

struct mw_bundle_file {
  const char *name;  // as require has it: "lib.util"
  const char *path;  // for messages
  const char *text;  // NUL-terminated, and may contain NULs
  size_t size;
};

// Reads a file or a directory. NULL: err has one sentence with what to do. Blocks for as long as
// the file system takes; the first file may be a pipe.
struct mw_bundle *mw_bundle_read(const char *path, struct mw_err *err);

// The same from memory, copied: what was read by other means (the keys of a ConfigMap). It starts
// with "init", else "main", else its only file. A file without a name is a key, which `path` has:
// one that ends in .lua and not in _spec.lua is a module, all others are left out; messages name it
// with the origin before it.
struct mw_bundle *mw_bundle_of(const char *origin, const struct mw_bundle_file *files, size_t n,
                               struct mw_err *err);

struct mw_bundle *mw_bundle_ref(struct mw_bundle *b);  // NULL in, NULL out
void mw_bundle_unref(struct mw_bundle *b);             // NULL is fine

// 12 hex digits of the SHA-256 of names and contents: equal wherever the files lie.
const char *mw_bundle_revision(const struct mw_bundle *b);
const char *mw_bundle_origin(const struct mw_bundle *b);  // what it was read from, for people
const struct mw_bundle_file *mw_bundle_entry(const struct mw_bundle *b);
// NULL: none.
const struct mw_bundle_file *mw_bundle_find(const struct mw_bundle *b, const char *name);
// All, sorted by name.
size_t mw_bundle_count(const struct mw_bundle *b);
const struct mw_bundle_file *mw_bundle_at(const struct mw_bundle *b, size_t i);

// Compiles all files, as text. 0, or MW_ESCRIPT and in report, for every file that cannot be
// compiled, a paragraph: file, line, message, and the line with a mark below what was not expected.
// A report that is full ends with how many files are missing in it (MW_ELIMIT: not even that fits).
int mw_bundle_check(const struct mw_bundle *b, struct mw_buf *report)
    __attribute__((warn_unused_result));

// Adds a message of Lua, perhaps with a traceback. Where it begins with a place in one of the
// files, that is completed (Lua cuts long paths), and the line itself is shown below it. Of a text
// of more than 16 KB it is the beginning. b may be NULL. MW_ELIMIT: out is full.
int mw_bundle_explain(const struct mw_bundle *b, const char *text, struct mw_buf *out)
    __attribute__((warn_unused_result));

// What a reading has looked at, for those who want to notice a change: directories, and files with
// what stat said of them before they were read. Also filled by a reading that fails.
struct mw_bundle_stamp {
  uint64_t device, inode, size;
  int64_t modified, changed;  // nanoseconds
};

struct mw_bundle_place {
  char *path;
  bool directory;
  struct mw_bundle_stamp stamp;  // all 0: it is not there
};

struct mw_bundle_places {
  struct mw_bundle_place *list;  // no path twice
  size_t count, cap;
};

// As mw_bundle_read; *places must be empty ({0}) and is the caller's to deinit.
struct mw_bundle *mw_bundle_read_from(const char *path, struct mw_bundle_places *places,
                                      struct mw_err *err);
void mw_bundle_places_deinit(struct mw_bundle_places *p);
// What stat says now, links followed; all 0 when there is nothing.
struct mw_bundle_stamp mw_bundle_stamp(const char *path);
