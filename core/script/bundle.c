// SPDX-License-Identifier: Apache-2.0
// A digest by OpenSSL's newer functions would wait here for all of OpenSSL to start, which it does
// on another thread while the script is read and loaded.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "script/bundle.h"

#include <assert.h>
#include <ctype.h>
#include <openssl/sha.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "script/bundle_internal.h"

enum { NAME_ROOM = 512, REVISION_BYTES = (MW_BUNDLE_REVISION_SIZE - 1) / 2 };

struct mw_bundle {
  atomic_uint refs;
  char revision[MW_BUNDLE_REVISION_SIZE];
  char *origin;
  struct mw_bundle_file *files;  // sorted by name
  size_t count;
  const struct mw_bundle_file *entry;  // one of them
};

static void file_deinit(struct mw_bundle_file *f) {
  mw_free((char *)f->name);
  mw_free((char *)f->path);
  mw_free((char *)f->text);
}

const struct mw_bundle_file *mw_draft_find(const struct mw_draft *d, const char *name) {
  for (size_t i = 0; i < d->count; i++)
    if (strcmp(d->files[i].name, name) == 0) return &d->files[i];
  return NULL;
}

static int check_room(const struct mw_draft *d, const char *name, const char *path, size_t size,
                      struct mw_err *err) {
  const struct mw_bundle_file *same = mw_draft_find(d, name);
  if (same != NULL && strcmp(same->path, path) != 0)
    return mw_err_set(err, MW_EEXIST, "%s and %s are both the module \"%s\"; rename one of them",
                      same->path, path, name);
  if (d->count >= MW_BUNDLE_FILES_MAX)
    return mw_err_set(err, MW_ELIMIT,
                      "%s is one Lua file too many: a script has at most %d; give a directory that "
                      "holds nothing but the script",
                      path, MW_BUNDLE_FILES_MAX);
  if (size > MW_BUNDLE_BYTES_MAX - d->bytes)
    return mw_err_set(err, MW_ELIMIT,
                      "%s is too large: all files of a script together have at most %d MiB", path,
                      MW_BUNDLE_BYTES_MAX >> 20);
  return 0;
}

int mw_draft_add(struct mw_draft *d, const char *name, const char *path, char *text, size_t size,
                 struct mw_err *err) {
  int rc = check_room(d, name, path, size, err);
  if (rc < 0 || mw_draft_find(d, name) != NULL) {
    mw_free(text);
    return rc;
  }
  if (d->count == d->cap) {
    d->cap = d->cap > 0 ? d->cap * 2 : 16;
    d->files = mw_xrealloc(d->files, d->cap * sizeof *d->files);
  }
  d->files[d->count++] = (struct mw_bundle_file){mw_xstrdup(name), mw_xstrdup(path), text, size};
  d->bytes += size;
  return 0;
}

void mw_draft_deinit(struct mw_draft *d) {
  for (size_t i = 0; i < d->count; i++) file_deinit(&d->files[i]);
  mw_free(d->files);
  *d = (struct mw_draft){0};
}

static int compare_names(const void *a, const void *b) {
  const struct mw_bundle_file *x = a, *y = b;
  return strcmp(x->name, y->name);
}

// With its length before it, so that no two lists of files give the same bytes.
static void digest_part(SHA256_CTX *sha, const char *p, size_t n) {
  unsigned char size[8];
  for (int i = 0; i < 8; i++) size[i] = (unsigned char)((uint64_t)n >> (8 * i));
  SHA256_Update(sha, size, sizeof size);
  SHA256_Update(sha, p, n);
}

static void set_revision(struct mw_bundle *b) {
  unsigned char sum[SHA256_DIGEST_LENGTH];
  SHA256_CTX sha;
  SHA256_Init(&sha);
  digest_part(&sha, b->entry->name, strlen(b->entry->name));
  for (size_t i = 0; i < b->count; i++) {
    const struct mw_bundle_file *f = &b->files[i];
    digest_part(&sha, f->name, strlen(f->name));
    digest_part(&sha, f->text, f->size);
  }
  SHA256_Final(sum, &sha);
  for (size_t i = 0; i < REVISION_BYTES; i++)
    snprintf(b->revision + 2 * i, sizeof b->revision - 2 * i, "%02x", sum[i]);
}

static bool is_blank(const struct mw_bundle_file *f) {
  for (size_t i = 0; i < f->size; i++)
    if (!isspace((unsigned char)f->text[i])) return false;
  return true;
}

struct mw_bundle *mw_draft_finish(struct mw_draft *d, const char *origin,
                                  const struct mw_bundle_file *entry, struct mw_err *err) {
  if (is_blank(entry)) {
    mw_err_set(err, MW_EINVAL, "%s is empty; write the script into it, or give another file",
               entry->path);
    mw_draft_deinit(d);
    return NULL;
  }
  struct mw_bundle_file first = *entry;
  struct mw_bundle *b = mw_xcalloc(1, sizeof *b);
  atomic_init(&b->refs, 1);
  b->origin = mw_xstrdup(origin);
  b->files = d->files;
  b->count = d->count;
  *d = (struct mw_draft){0};
  qsort(b->files, b->count, sizeof *b->files, compare_names);
  b->entry = bsearch(&first, b->files, b->count, sizeof *b->files, compare_names);
  assert(b->entry != NULL);
  set_revision(b);
  mw_live_add(MW_LIVE_BUNDLE, 1);
  return b;
}

bool mw_bundle_is_module(const char *file) {
  static const char ending[] = ".lua", spec[] = "_spec.lua";
  size_t n = strlen(file), e = sizeof ending - 1, s = sizeof spec - 1;
  if (file[0] == '.' || n <= e || strcmp(file + n - e, ending) != 0) return false;
  return n < s || strcmp(file + n - s, spec) != 0;
}

char *mw_bundle_name_of(const char *relative) {
  size_t n = strlen(relative), e = strlen(".lua");
  char *name = mw_xstrndup(relative, n > e && strcmp(relative + n - e, ".lua") == 0 ? n - e : n);
  for (char *p = name; *p != '\0'; p++)
    if (*p == '/') *p = '.';
  return name;
}

char *mw_bundle_join(const char *dir, const char *name) {
  size_t n = strlen(dir), room = n + strlen(name) + 2;
  char *path = mw_xmalloc(room);
  snprintf(path, room, "%s%s%s", dir, n == 0 || dir[n - 1] == '/' ? "" : "/", name);
  return path;
}

static int add_copy(struct mw_draft *d, const char *origin, const struct mw_bundle_file *f,
                    struct mw_err *err) {
  char *text = mw_xstrndup(f->text, f->size);
  if (f->name != NULL) return mw_draft_add(d, f->name, f->path, text, f->size, err);
  char *name = mw_bundle_name_of(f->path);
  char *path = mw_bundle_join(origin, f->path);
  int rc = mw_draft_add(d, name, path, text, f->size, err);
  mw_free(name);
  mw_free(path);
  return rc;
}

struct mw_bundle *mw_bundle_of(const char *origin, const struct mw_bundle_file *files, size_t n,
                               struct mw_err *err) {
  struct mw_draft d = {0};
  for (size_t i = 0; i < n; i++) {
    if (files[i].name == NULL && !mw_bundle_is_module(files[i].path)) continue;
    if (add_copy(&d, origin, &files[i], err) < 0) goto fail;
  }
  const struct mw_bundle_file *entry = mw_draft_find(&d, "init");
  if (entry == NULL) entry = mw_draft_find(&d, "main");
  if (entry == NULL && d.count == 1) entry = &d.files[0];
  if (entry != NULL) return mw_draft_finish(&d, origin, entry, err);
  mw_err_set(err, MW_ENOTFOUND, "%s has %s; name the script init.lua", origin,
             d.count == 0 ? "no Lua file" : "neither an init.lua nor a main.lua");
fail:
  mw_draft_deinit(&d);
  return NULL;
}

struct mw_bundle *mw_bundle_ref(struct mw_bundle *b) {
  if (b != NULL) atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
  return b;
}

void mw_bundle_unref(struct mw_bundle *b) {
  if (b == NULL) return;
  if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
  for (size_t i = 0; i < b->count; i++) file_deinit(&b->files[i]);
  mw_free(b->files);
  mw_free(b->origin);
  mw_free(b);
  mw_live_add(MW_LIVE_BUNDLE, -1);
}

const char *mw_bundle_revision(const struct mw_bundle *b) { return b->revision; }

const char *mw_bundle_origin(const struct mw_bundle *b) { return b->origin; }

const struct mw_bundle_file *mw_bundle_entry(const struct mw_bundle *b) { return b->entry; }

const struct mw_bundle_file *mw_bundle_find(const struct mw_bundle *b, const char *name) {
  struct mw_bundle_file key = {.name = name};
  const struct mw_bundle_file *f =
      bsearch(&key, b->files, b->count, sizeof *b->files, compare_names);
  char package[NAME_ROOM];
  int n = snprintf(package, sizeof package, "%s.init", name);
  if (f != NULL || n >= (int)sizeof package) return f;
  key.name = package;
  return bsearch(&key, b->files, b->count, sizeof *b->files, compare_names);
}

size_t mw_bundle_count(const struct mw_bundle *b) { return b->count; }

const struct mw_bundle_file *mw_bundle_at(const struct mw_bundle *b, size_t i) {
  assert(i < b->count);
  return &b->files[i];
}
