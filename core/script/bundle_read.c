// SPDX-License-Identifier: Apache-2.0
// Bundles from files. All files are opened relative to one directory that was opened first, so that
// a reading sees one directory from start to end: for the mount of a ConfigMap that is what
// `..data` leads to. The kubelet replaces that link, and only then removes what it led to before;
// whether it did so in the meantime is looked at when all is read, or when something could not be.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/map.h"
#include "script/bundle_internal.h"

enum { READINGS_MAX = 5 };  // of a file or a mount that changes while it is read

struct reading {
  struct mw_draft draft;
  const char *path;  // what was asked for
  const char *dir;   // of the files, as people write it: "" is the working directory
  int base;          // the same, opened
  bool mount;
  size_t entries;        // names looked at
  struct mw_map asked;   // names of modules looked for
  struct mw_map placed;  // paths in places
  struct mw_bundle_places *places;
  struct mw_err *err;
};

// A directory on the way down to one that is read.
struct level {
  const struct level *above;
  dev_t device;
  ino_t inode;
  int depth;
};

// ---- places ----

static struct mw_bundle_stamp stamp_of(const struct stat *st) {
  return (struct mw_bundle_stamp){
      .device = (uint64_t)st->st_dev,
      .inode = (uint64_t)st->st_ino,
      .size = (uint64_t)st->st_size,
      .modified = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
      .changed = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec,
  };
}

struct mw_bundle_stamp mw_bundle_stamp(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 ? stamp_of(&st) : (struct mw_bundle_stamp){0};
}

void mw_bundle_places_deinit(struct mw_bundle_places *p) {
  for (size_t i = 0; i < p->count; i++) mw_free(p->list[i].path);
  mw_free(p->list);
  *p = (struct mw_bundle_places){0};
}

// st NULL: there is nothing.
static void add_place(struct reading *r, const char *path, const struct stat *st) {
  struct mw_bundle_places *p = r->places;
  if (mw_map_set(&r->placed, mw_slice_str(path), r) != NULL) return;
  if (p->count == p->cap) {
    p->cap = p->cap > 0 ? p->cap * 2 : 16;
    p->list = mw_xrealloc(p->list, p->cap * sizeof *p->list);
  }
  struct mw_bundle_place *place = &p->list[p->count++];
  *place = (struct mw_bundle_place){.path = mw_xstrdup(path)};
  if (st == NULL) return;
  place->directory = S_ISDIR(st->st_mode);
  place->stamp = stamp_of(st);
}

static void add_place_now(struct reading *r, const char *path) {
  struct stat st;
  add_place(r, path, stat(path, &st) == 0 ? &st : NULL);
}

// "." for "".
static const char *real_dir(const char *dir) { return dir[0] != '\0' ? dir : "."; }

static char *directory_of(const char *path) {
  const char *slash = strrchr(path, '/');
  if (slash == NULL) return mw_xstrdup("");
  return slash == path ? mw_xstrdup("/") : mw_xstrndup(path, (size_t)(slash - path));
}

// ---- one file ----

static int cannot_open(struct reading *r, const char *path) {
  int why = errno;
  bool absent = why == ENOENT || why == ENOTDIR;
  return mw_err_set(r->err, absent ? MW_ENOTFOUND : MW_EIO, "cannot open %s: %s; %s", path,
                    strerror(why),
                    absent ? "give a script, or a directory with an init.lua"
                           : "see that the user moonwatch runs as may read it");
}

static int read_all(int fd, struct mw_buf *out) {
  for (;;) {
    if (mw_buf_reserve(out, 1) < 0) {
      char more;
      return read(fd, &more, 1) == 0 ? 0 : MW_ELIMIT;
    }
    ssize_t n = read(fd, out->p + out->n, out->cap - out->n - 1);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return MW_EIO;
    if (n == 0) return 0;
    out->n += (size_t)n;
  }
}

static bool is_same(const struct stat *a, const struct stat *b) {
  struct mw_bundle_stamp x = stamp_of(a), y = stamp_of(b);
  return memcmp(&x, &y, sizeof x) == 0;
}

// Reads an open file once; *settled says whether it was the same before and after.
static int read_open(struct reading *r, int fd, const char *path, const struct stat *before,
                     struct mw_buf *out, bool *settled) {
  struct stat after;
  int rc = mw_buf_reserve(out, S_ISREG(before->st_mode) ? (size_t)before->st_size : 0);
  if (rc == 0) rc = read_all(fd, out);
  if (rc == 0 && fstat(fd, &after) != 0) rc = MW_EIO;
  if (rc == MW_EIO)
    return mw_err_set(r->err, rc, "cannot read %s: %s; see whether the file system is in order",
                      path, strerror(errno));
  if (rc == MW_ELIMIT)
    return mw_err_set(r->err, rc,
                      "%s is too large: all files of a script together have at most %d MiB", path,
                      MW_BUNDLE_BYTES_MAX >> 20);
  *settled =
      !S_ISREG(before->st_mode) || (is_same(before, &after) && out->n == (size_t)after.st_size);
  return 0;
}

// Reads dir/relative into *out, which the caller deinits. MW_ENOTFOUND: there is no such file, or
// it is not one; only that leaves err alone. A pipe is taken when it was named by the user.
static int read_file(struct reading *r, const char *relative, bool named, struct mw_buf *out,
                     struct stat *st) {
  char *path = mw_bundle_join(r->dir, relative);
  bool settled = false;
  int rc = 0;
  for (int i = 0; i < READINGS_MAX && rc == 0 && !settled; i++) {
    mw_buf_reset(out);
    int fd = openat(r->base, relative, O_RDONLY | O_CLOEXEC | O_NOCTTY | (named ? 0 : O_NONBLOCK));
    if (fd < 0 && !named && (errno == ENOENT || errno == ENOTDIR)) {
      rc = MW_ENOTFOUND;
    } else if (fd < 0 || fstat(fd, st) != 0) {
      rc = cannot_open(r, path);
    } else if (!named && !S_ISREG(st->st_mode)) {
      rc = MW_ENOTFOUND;
    } else {
      rc = read_open(r, fd, path, st, out, &settled);
    }
    if (fd >= 0) close(fd);
  }
  if (rc == 0 && !settled)
    rc = mw_err_set(r->err, MW_ESTATE, "%s changes while it is read; save it once more", path);
  mw_free(path);
  return rc;
}

static int add_file(struct reading *r, const char *relative, bool named) {
  struct mw_buf text;
  struct stat st;
  mw_buf_init(&text, MW_BUNDLE_BYTES_MAX);
  int rc = read_file(r, relative, named, &text, &st);
  if (rc < 0) {
    mw_buf_deinit(&text);
    return rc;
  }
  char *name = mw_bundle_name_of(relative);
  char *path = mw_bundle_join(r->dir, relative);
  if (!r->mount && S_ISREG(st.st_mode)) add_place(r, path, &st);
  rc = mw_draft_add(&r->draft, name, path, mw_xstrndup(text.n > 0 ? text.p : "", text.n), text.n,
                    r->err);
  mw_free(name);
  mw_free(path);
  mw_buf_deinit(&text);
  return rc;
}

static int count_entry(struct reading *r) {
  if (r->entries++ < MW_BUNDLE_ENTRIES_MAX) return 0;
  return mw_err_set(r->err, MW_ELIMIT,
                    "%s has more than %d files and directories; give a directory that holds "
                    "nothing but the script",
                    real_dir(r->dir), MW_BUNDLE_ENTRIES_MAX);
}

// ---- a directory ----

static int walk(struct reading *r, int fd, const char *relative, const struct level *above);

static bool is_above(const struct level *l, const struct stat *st) {
  for (; l != NULL; l = l->above)
    if (l->device == st->st_dev && l->inode == st->st_ino) return true;
  return false;
}

static int enter(struct reading *r, const char *relative, const struct level *above) {
  char *path = mw_bundle_join(r->dir, relative);
  int rc = 0;
  int fd = openat(r->base, relative, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    if (errno != ENOENT && errno != ENOTDIR) rc = cannot_open(r, path);
  } else if (above->depth == MW_BUNDLE_DEPTH_MAX) {
    close(fd);
    rc = mw_err_set(r->err, MW_ELIMIT,
                    "%s lies deeper than %d directories; give a directory that holds nothing but "
                    "the script",
                    path, MW_BUNDLE_DEPTH_MAX);
  } else {
    rc = walk(r, fd, relative, above);
  }
  mw_free(path);
  return rc;
}

static int visit(struct reading *r, int fd, const struct dirent *e, const char *relative,
                 const struct level *level) {
  struct stat st;
  if (e->d_name[0] == '.') return 0;
  int rc = count_entry(r);
  if (rc < 0) return rc;
  bool is_dir = e->d_type == DT_DIR;
  if (e->d_type == DT_LNK || e->d_type == DT_UNKNOWN)
    is_dir = fstatat(fd, e->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
  if (!is_dir && !mw_bundle_is_module(e->d_name)) return 0;
  char *path = mw_bundle_join(relative, e->d_name);
  rc = is_dir ? enter(r, path, level) : add_file(r, path, false);
  mw_free(path);
  return rc == MW_ENOTFOUND ? 0 : rc;
}

// Adds what is in the directory, which it closes; relative is "" for the first.
static int walk(struct reading *r, int fd, const char *relative, const struct level *above) {
  struct stat st;
  char *path = mw_bundle_join(r->dir, relative);
  DIR *dir = fdopendir(fd);
  int rc = dir != NULL && fstat(fd, &st) == 0 ? 0 : cannot_open(r, path);
  struct level level = {above, st.st_dev, st.st_ino, above != NULL ? above->depth + 1 : 0};
  // A link to where it came from shows nothing new.
  if (rc == 0 && !is_above(above, &st)) {
    if (!r->mount) add_place(r, relative[0] != '\0' ? path : real_dir(r->dir), &st);
    for (struct dirent *e = readdir(dir); rc == 0 && e != NULL; e = readdir(dir))
      rc = visit(r, fd, e, relative, &level);
  }
  if (dir != NULL) {
    closedir(dir);
  } else {
    close(fd);
  }
  mw_free(path);
  return rc;
}

static int read_directory(struct reading *r, const struct mw_bundle_file **entry) {
  int fd = openat(r->base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int rc = fd < 0 ? cannot_open(r, real_dir(r->dir)) : walk(r, fd, "", NULL);
  if (rc < 0) return rc;
  *entry = mw_draft_find(&r->draft, "init");
  if (*entry == NULL) *entry = mw_draft_find(&r->draft, "main");
  if (*entry != NULL) return 0;
  return mw_err_set(r->err, MW_ENOTFOUND,
                    "%s has neither an init.lua nor a main.lua; name the script init.lua, or give "
                    "the file itself",
                    real_dir(r->dir));
}

// ---- a file and what it requires ----

// A module that is not there may come: the directories in which it would be.
static void add_directories(struct reading *r, const char *relative) {
  for (const char *p = strchr(relative, '/'); p != NULL; p = strchr(p + 1, '/')) {
    char *part = mw_xstrndup(relative, (size_t)(p - relative));
    char *path = mw_bundle_join(r->dir, part);
    struct stat st;
    bool there = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (there) add_place(r, path, &st);
    mw_free(part);
    mw_free(path);
    if (!there) return;
  }
}

static int try_file(struct reading *r, char *relative) {
  if (!r->mount) add_directories(r, relative);
  int rc = add_file(r, relative, false);
  mw_free(relative);
  return rc;
}

// Adds the file of a module; nothing when there is none.
static int add_module(struct reading *r, struct mw_slice name) {
  char *base = mw_xstrndup(name.p, name.n), *dotted = mw_xstrndup(name.p, name.n);
  for (char *p = base; *p != '\0'; p++)
    if (*p == '.') *p = '/';
  static const char *const endings[] = {".lua", "/init.lua"};
  int rc = MW_ENOTFOUND;
  for (size_t i = 0; i < 2 && rc == MW_ENOTFOUND; i++) {
    size_t room = name.n + strlen(endings[i]) + 1;
    char *relative = mw_xmalloc(room);
    snprintf(relative, room, "%s%s", base, endings[i]);
    rc = try_file(r, relative);
  }
  if (rc == MW_ENOTFOUND && r->mount) {
    size_t room = name.n + sizeof ".lua";
    char *relative = mw_xmalloc(room);
    snprintf(relative, room, "%s.lua", dotted);
    rc = try_file(r, relative);
  }
  mw_free(base);
  mw_free(dotted);
  return rc == MW_ENOTFOUND ? 0 : rc;
}

static int add_required(struct reading *r, struct mw_slice source) {
  struct mw_slice name;
  int rc = 0;
  while (rc == 0 && mw_bundle_next_require(&source, &name)) {
    if (mw_map_set(&r->asked, name, r) != NULL) continue;
    if (r->asked.count > MW_BUNDLE_ENTRIES_MAX)
      return mw_err_set(r->err, MW_ELIMIT, "%s requires more than %d modules; give a script",
                        r->path, MW_BUNDLE_ENTRIES_MAX);
    rc = add_module(r, name);
  }
  return rc;
}

static int read_script(struct reading *r, const char *file, const struct mw_bundle_file **entry) {
  int rc = add_file(r, file, true);
  // The list grows while it is walked.
  for (size_t i = 0; rc == 0 && i < r->draft.count; i++)
    rc = add_required(r, mw_slice(r->draft.files[i].text, r->draft.files[i].size));
  if (rc == 0) *entry = &r->draft.files[0];
  return rc;
}

// ---- all ----

// Opens what is to be read. In a mount the files' own links may be late (the kubelet makes those of
// new files last).
static int open_base(struct reading *r) {
  char *data = mw_bundle_join(r->dir, "..data");
  r->base = open(data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  r->mount = r->base >= 0;
  if (r->mount) {
    add_place_now(r, real_dir(r->dir));
    add_place_now(r, data);
    // It is the link that matters, which is replaced in the directory above.
    r->places->list[r->places->count - 1].directory = false;
  } else {
    r->base = open(real_dir(r->dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  mw_free(data);
  return r->base >= 0 ? 0 : cannot_open(r, r->path);
}

// Whether the mount shows something else by now.
static bool is_replaced(const struct reading *r) {
  struct stat mine, now;
  char *data = mw_bundle_join(r->dir, "..data");
  bool replaced = r->mount && (fstat(r->base, &mine) != 0 || stat(data, &now) != 0 ||
                               mine.st_dev != now.st_dev || mine.st_ino != now.st_ino);
  mw_free(data);
  return replaced;
}

// file NULL: all of dir. *again: what was read has been replaced meanwhile.
static struct mw_bundle *read_once(const char *path, const char *dir, const char *file,
                                   struct mw_bundle_places *places, bool *again,
                                   struct mw_err *err) {
  struct reading r = {.path = path, .dir = dir, .base = -1, .places = places, .err = err};
  const struct mw_bundle_file *entry = NULL;
  struct mw_bundle *b = NULL;
  mw_map_init(&r.asked);
  mw_map_init(&r.placed);
  int rc = open_base(&r);
  if (rc == 0 && file != NULL && !r.mount) add_place_now(&r, real_dir(dir));
  if (rc == 0) rc = file != NULL ? read_script(&r, file, &entry) : read_directory(&r, &entry);
  *again = is_replaced(&r);
  if (*again)
    mw_err_set(err, MW_ESTATE, "%s changes while it is read; wait until it is at rest", path);
  if (rc == 0 && !*again) b = mw_draft_finish(&r.draft, path, entry, err);
  if (b == NULL) add_place_now(&r, path);  // what is not there may come
  if (r.base >= 0) close(r.base);
  mw_draft_deinit(&r.draft);
  mw_map_deinit(&r.asked);
  mw_map_deinit(&r.placed);
  return b;
}

struct mw_bundle *mw_bundle_read_from(const char *path, struct mw_bundle_places *places,
                                      struct mw_err *err) {
  struct stat st;
  bool is_dir = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
  char *dir = is_dir ? mw_xstrdup(path) : directory_of(path);
  const char *slash = strrchr(path, '/');
  const char *file = is_dir ? NULL : slash != NULL ? slash + 1 : path;
  struct mw_bundle *b = NULL;
  bool again = true;
  for (int i = 0; i < READINGS_MAX && again; i++) {
    mw_bundle_places_deinit(places);
    b = read_once(path, dir, file, places, &again, err);
  }
  mw_free(dir);
  return b;
}

struct mw_bundle *mw_bundle_read(const char *path, struct mw_err *err) {
  struct mw_bundle_places places = {0};
  struct mw_bundle *b = mw_bundle_read_from(path, &places, err);
  mw_bundle_places_deinit(&places);
  return b;
}
