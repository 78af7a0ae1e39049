// SPDX-License-Identifier: Apache-2.0
// The store is a map of objects; each index (index.c) is told of every change. held[0] is
// `namespace`. Every write goes through apply(), in which store, indexes and sums change together.
//
// Owners have names, names refer to indexes: one that several names refer to is built and updated
// once.
//
// An index that was added to a full store is built in slices. Events go into it from the beginning;
// the walk over the store passes over the objects that it finds there already.
#include "cache/indexer.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/shown.h"

static const uint64_t slow_ns = 2ull * 1000 * 1000 * 1000;

// An index and how many names it has.
struct held {
  struct mw_index *index;
  char *identity;  // of identity_len; NULL: it is not shared
  size_t identity_len;
  unsigned names;               // 0: it goes as soon as no index function is on the stack
  bool building;                // not all objects have been visited
  bool calling;                 // its function is on the stack
  unsigned long long failures;  // of its function
  struct mw_objmap_walk walk;
};

struct name {
  const void *owner;
  char *text;
  struct held *held;
};

struct mw_indexer {
  struct mw_objmap store;
  struct held **held;
  size_t held_count;
  struct name *names;  // in the order in which they were added
  size_t name_count;
  unsigned calling;                  // index functions on the stack: the indexes stay as they are
  bool orphans;                      // some have no name any more
  const struct mw_object *applying;  // in the store already, and in the indexes one after the other
  uint64_t *spent;                   // during a replace: nanoseconds per index; else NULL
  size_t object_bytes;
  unsigned long long failures;
  size_t rv_len;
  char rv[MW_OBJECT_RV_MAX + 1];
};

static struct held *hold(struct mw_indexer *ix, const struct mw_index_spec *spec) {
  struct held *h = mw_xcalloc(1, sizeof *h);
  h->index = mw_index_new(spec);
  if (spec->identity.n > 0) {
    h->identity = mw_xmalloc(spec->identity.n);
    memcpy(h->identity, spec->identity.p, spec->identity.n);
    h->identity_len = spec->identity.n;
  }
  ix->held = mw_xrealloc(ix->held, (ix->held_count + 1) * sizeof(struct held *));
  ix->held[ix->held_count++] = h;
  return h;
}

static void held_free(struct held *h) {
  mw_index_free(h->index);
  mw_free(h->identity);
  mw_free(h);
}

struct mw_indexer *mw_indexer_new(void) {
  struct mw_indexer *ix = mw_xcalloc(1, sizeof *ix);
  mw_objmap_init(&ix->store);
  hold(ix, &(struct mw_index_spec){.name = "namespace"})->names = 1;
  return ix;
}

void mw_indexer_free(struct mw_indexer *ix) {
  if (ix == NULL) return;
  for (size_t i = 0; i < ix->name_count; i++) mw_free(ix->names[i].text);
  for (size_t i = 0; i < ix->held_count; i++) held_free(ix->held[i]);
  mw_free(ix->names);
  mw_free(ix->held);
  mw_objmap_deinit(&ix->store);
  mw_free(ix);
}

// ---- indexes ----

#define NAMESPACE_IS_THERE "the index \"namespace\" is always there, by metadata.namespace"

static bool is_namespace_index(const struct mw_indexer *ix, struct mw_slice name) {
  return mw_slice_eq(name, mw_index_name(ix->held[0]->index));
}

static struct held *find_index(const struct mw_indexer *ix, const void *owner,
                               struct mw_slice name) {
  if (is_namespace_index(ix, name)) return ix->held[0];
  for (size_t i = 0; i < ix->name_count; i++) {
    const struct name *n = &ix->names[i];
    if (n->owner == owner && mw_slice_is(name, n->text)) return n->held;
  }
  return NULL;
}

static int no_index(struct mw_slice name, struct mw_err *err) {
  return mw_err_set(err, MW_ENOTFOUND, "there is no index named \"%s\"", mw_shown(name).text);
}

// The name of specs[i], against the indexes there are and the specs before it.
static int check_name(const struct mw_indexer *ix, const void *owner,
                      const struct mw_index_spec *specs, size_t i, struct mw_err *err) {
  struct mw_slice name = mw_slice_str(specs[i].name);
  if (name.n == 0 || specs[i].values == NULL) {
    return mw_err_set(err, MW_EINVAL, "an index needs a name and a function");
  }
  if (is_namespace_index(ix, name)) {
    return mw_err_set(err, MW_EEXIST,
                      NAMESPACE_IS_THERE ": leave it out, or give yours another name");
  }
  bool clash = find_index(ix, owner, name) != NULL;
  for (size_t j = 0; j < i && !clash; j++) clash = mw_slice_is(name, specs[j].name);
  if (!clash) return 0;
  return mw_err_set(err, MW_EEXIST, "there is already an index named \"%s\"", mw_shown(name).text);
}

// An index follows a change of the store. Its function may be a script that calls back here.
static int update_index(struct mw_indexer *ix, struct held *h, struct mw_object *old,
                        struct mw_object *o, struct mw_err *err) {
  ix->calling++;
  h->calling = true;
  int rc = mw_index_update(h->index, old, o, err);
  h->calling = false;
  ix->calling--;
  return rc;
}

static int check_idle(const struct mw_indexer *ix, struct mw_err *err) {
  if (ix->calling == 0) return 0;
  return mw_err_set(err, MW_ESTATE, "indexes cannot change inside an index function");
}

// Frees the indexes without a name, unless one is being called or the list is being walked over.
static void sweep_orphans(struct mw_indexer *ix) {
  if (!ix->orphans || ix->calling > 0 || ix->spent != NULL) return;
  ix->orphans = false;
  size_t kept = 0;
  for (size_t i = 0; i < ix->held_count; i++) {
    struct held *h = ix->held[i];
    if (h->names > 0) {
      ix->held[kept++] = h;
    } else {
      held_free(h);
    }
  }
  ix->held_count = kept;
}

static void release(struct mw_indexer *ix, struct held *h) {
  if (--h->names == 0) ix->orphans = true;
}

static void remove_name(struct mw_indexer *ix, size_t i) {
  release(ix, ix->names[i].held);
  mw_free(ix->names[i].text);
  ix->name_count--;
  memmove(&ix->names[i], &ix->names[i + 1], (ix->name_count - i) * sizeof ix->names[0]);
}

// ---- building ----

// Says so the first time, then each time their number has doubled.
static void report_failure(struct mw_indexer *ix, struct held *h, const struct mw_object *o, int rc,
                           const struct mw_err *err) {
  ix->failures++;
  h->failures++;
  if ((h->failures & (h->failures - 1)) != 0) return;
  mw_log(MW_LOG_WARN, "an index function failed; the object is not in that index",
         MW_SLC("index", mw_index_name(h->index)), MW_SLC("key", mw_object_key(o)),
         MW_STR("error", err->code != 0 ? err->message : mw_err_text(rc)),
         MW_INT("failures", h->failures));
}

struct build {
  struct mw_indexer *ix;
  struct held *held;
  size_t count;  // of objects seen
  int rc;        // of the first failure
  struct mw_err *err;
  bool strict;  // that failure ends it, and is told in err
};

static void build_one(void *ctx, struct mw_object *o) {
  struct build *b = ctx;
  struct mw_err why = {0};
  b->count++;
  if (b->rc < 0 || o == b->ix->applying || mw_index_holds(b->held->index, o)) return;
  int rc = update_index(b->ix, b->held, NULL, o, &why);
  if (rc == 0) return;
  if (!b->strict) {
    report_failure(b->ix, b->held, o, rc, &why);
    return;
  }
  b->rc = mw_err_set(b->err, rc, "index \"%s\" fails on \"%s\": %s",
                     mw_shown(mw_index_name(b->held->index)).text, mw_shown(mw_object_key(o)).text,
                     why.code != 0 ? why.message : mw_err_text(rc));
}

// The first objects of a store that is there already.
static int begin_build(struct mw_indexer *ix, struct held *h, struct mw_err *err) {
  struct build b = {.ix = ix, .held = h, .err = err, .strict = true};
  h->building = true;
  while (b.rc == 0 && b.count < MW_INDEX_AT_ONCE && h->building) {
    h->building = mw_objmap_step(&ix->store, &h->walk, build_one, &b);
  }
  return b.rc;
}

static void go_on_building(struct mw_indexer *ix, struct held *h, uint64_t deadline) {
  struct build b = {.ix = ix, .held = h};
  while (h->building && h->names > 0 && mw_clock_now() < deadline) {
    h->building = mw_objmap_step(&ix->store, &h->walk, build_one, &b);
  }
}

bool mw_indexer_build(struct mw_indexer *ix, uint64_t deadline) {
  bool built = true;
  for (size_t i = 1; i < ix->held_count; i++) {
    go_on_building(ix, ix->held[i], deadline);
    if (ix->held[i]->building && ix->held[i]->names > 0) built = false;
  }
  sweep_orphans(ix);
  return built;
}

bool mw_indexer_is_built(const struct mw_indexer *ix, const void *owner) {
  for (size_t i = 0; i < ix->name_count; i++) {
    if (ix->names[i].owner == owner && ix->names[i].held->building) return false;
  }
  return true;
}

// The index to be read, whole: what is missing is built. An index function that reads its own index
// gets it as it is. Until sweep_orphans.
static struct held *read_index(struct mw_indexer *ix, const void *owner, struct mw_slice name) {
  struct held *h = find_index(ix, owner, name);
  if (h != NULL && h->building && !h->calling) go_on_building(ix, h, UINT64_MAX);
  return h;
}

// ---- adding and removing ----

static void refuse_spec(const struct mw_index_spec *spec) {
  if (spec->free_ctx != NULL) spec->free_ctx(spec->ctx);
}

static struct held *find_equal(const struct mw_indexer *ix, struct mw_slice identity) {
  for (size_t i = 0; i < ix->held_count && identity.n > 0; i++) {
    struct held *h = ix->held[i];
    if (mw_slice_eq(identity, mw_slice(h->identity, h->identity_len))) return h;
  }
  return NULL;
}

// Gives the spec its name: of an index that is there already, or of a new one.
static int add_index(struct mw_indexer *ix, const void *owner, const struct mw_index_spec *spec,
                     struct mw_err *err) {
  struct held *h = find_equal(ix, spec->identity);
  bool shared = h != NULL;
  if (!shared) h = hold(ix, spec);
  h->names++;
  ix->names = mw_xrealloc(ix->names, (ix->name_count + 1) * sizeof *ix->names);
  ix->names[ix->name_count++] = (struct name){owner, mw_xstrdup(spec->name), h};
  if (!shared) return begin_build(ix, h, err);
  refuse_spec(spec);
  return 0;
}

int mw_indexer_add_indexes(struct mw_indexer *ix, const void *owner,
                           const struct mw_index_spec *specs, size_t count, struct mw_err *err) {
  int rc = check_idle(ix, err);
  for (size_t i = 0; i < count && rc == 0; i++) rc = check_name(ix, owner, specs, i, err);
  size_t had = ix->name_count;
  for (size_t i = 0; i < count; i++) {
    if (rc < 0) {
      refuse_spec(&specs[i]);
    } else {
      rc = add_index(ix, owner, &specs[i], err);
    }
  }
  while (rc < 0 && ix->name_count > had) remove_name(ix, ix->name_count - 1);
  sweep_orphans(ix);
  return rc;
}

int mw_indexer_remove_index(struct mw_indexer *ix, const void *owner, struct mw_slice name,
                            struct mw_err *err) {
  int rc = check_idle(ix, err);
  if (rc < 0) return rc;
  if (is_namespace_index(ix, name)) {
    return mw_err_set(err, MW_EINVAL, NAMESPACE_IS_THERE ", and cannot be removed");
  }
  for (size_t i = 0; i < ix->name_count; i++) {
    if (ix->names[i].owner != owner || !mw_slice_is(name, ix->names[i].text)) continue;
    remove_name(ix, i);
    sweep_orphans(ix);
    return 0;
  }
  return no_index(name, err);
}

void mw_indexer_drop_owner(struct mw_indexer *ix, const void *owner) {
  for (size_t i = ix->name_count; i > 0; i--) {
    if (ix->names[i - 1].owner == owner) remove_name(ix, i - 1);
  }
  sweep_orphans(ix);
}

void mw_indexer_each_index(const struct mw_indexer *ix, const void *owner,
                           void (*cb)(void *ctx, struct mw_slice name), void *ctx) {
  cb(ctx, mw_index_name(ix->held[0]->index));
  for (size_t i = 0; i < ix->name_count; i++) {
    if (ix->names[i].owner == owner) cb(ctx, mw_slice_str(ix->names[i].text));
  }
}

// ---- writes ----

// The store has changed from old to o (one may be NULL): the indexes and sums follow.
static void apply(struct mw_indexer *ix, struct mw_object *old, struct mw_object *o) {
  if (old == o) return;
  if (old != NULL) ix->object_bytes -= mw_object_memory(old);
  if (o != NULL) ix->object_bytes += mw_object_memory(o);
  ix->applying = o;
  for (size_t i = 0; i < ix->held_count; i++) {
    struct held *h = ix->held[i];
    struct mw_err err;
    err.code = 0;
    uint64_t since = ix->spent != NULL && i > 0 ? mw_clock_now() : 0;
    int rc = update_index(ix, h, old, o, &err);
    if (since > 0) ix->spent[i] += mw_clock_now() - since;
    if (rc < 0) report_failure(ix, h, o, rc, &err);
  }
  ix->applying = NULL;
  sweep_orphans(ix);
}

static void warn_if_slow(const struct mw_indexer *ix, size_t objects) {
  uint64_t total = 0;
  size_t slowest = 0;
  for (size_t i = 0; i < ix->held_count; i++) {
    total += ix->spent[i];
    if (ix->spent[i] > ix->spent[slowest]) slowest = i;
  }
  if (total < slow_ns) return;
  mw_log(MW_LOG_WARN, "an index function is slow, nothing else ran meanwhile",
         MW_SLC("index", mw_index_name(ix->held[slowest]->index)),
         MW_NUM("seconds", (double)ix->spent[slowest] / 1e9), MW_INT("objects", objects));
}

static void set_rv(struct mw_indexer *ix, struct mw_slice rv) {
  if (rv.n > MW_OBJECT_RV_MAX) return;
  if (rv.n > 0) memcpy(ix->rv, rv.p, rv.n);
  ix->rv_len = rv.n;
}

struct mw_object *mw_indexer_upsert(struct mw_indexer *ix, struct mw_object *o) {
  struct mw_object *old = mw_objmap_set(&ix->store, o);
  apply(ix, old, o);
  struct mw_slice rv = mw_object_rv(o);
  if (rv.n > 0) set_rv(ix, rv);
  return old;
}

static struct mw_object *take(struct mw_indexer *ix, struct mw_slice key) {
  struct mw_object *old = mw_objmap_del(&ix->store, key);
  if (old != NULL) apply(ix, old, NULL);
  return old;
}

struct mw_object *mw_indexer_remove(struct mw_indexer *ix, struct mw_slice key,
                                    struct mw_slice rv) {
  mw_object_trim();
  struct mw_object *old = take(ix, key);
  if (rv.n > 0) set_rv(ix, rv);
  return old;
}

// Removes what is not in `listed`.
static void sweep(struct mw_indexer *ix, const struct mw_objmap *listed,
                  struct mw_object_list *gone) {
  // All that is listed is stored, so equal sizes mean equal sets.
  if (ix->store.count == listed->count) return;
  size_t first = gone->n;
  struct mw_object *o;
  for (size_t cursor = 0; (o = mw_objmap_next(&ix->store, &cursor)) != NULL;) {
    if (mw_objmap_get(listed, mw_object_key(o)) == NULL) mw_object_list_add(gone, o);
  }
  for (size_t i = first; i < gone->n; i++) {
    mw_object_unref(take(ix, mw_object_key(gone->v[i])));
  }
}

void mw_indexer_replace(struct mw_indexer *ix, const struct mw_object_list *all, struct mw_slice rv,
                        struct mw_object_list *olds, struct mw_object_list *gone) {
  mw_object_trim();
  bool was_empty = ix->store.count == 0;
  ix->spent = mw_xcalloc(ix->held_count, sizeof *ix->spent);
  struct mw_objmap listed;
  mw_objmap_init(&listed);
  if (was_empty) {
    mw_objmap_reserve(&ix->store, all->n);
  } else {
    mw_objmap_reserve(&listed, all->n);
  }
  for (size_t i = 0; i < all->n; i++) {
    if (!was_empty) mw_object_unref(mw_objmap_set(&listed, all->v[i]));
    mw_object_list_give(olds, mw_indexer_upsert(ix, all->v[i]));
  }
  if (!was_empty) sweep(ix, &listed, gone);
  mw_objmap_deinit(&listed);
  set_rv(ix, rv);
  warn_if_slow(ix, all->n);
  mw_free(ix->spent);
  ix->spent = NULL;
  sweep_orphans(ix);
}

void mw_indexer_set_rv(struct mw_indexer *ix, struct mw_slice rv) {
  // Bookmarks come when the removed objects of a replace have long been released.
  mw_object_trim();
  set_rv(ix, rv);
}

// ---- reads ----

struct mw_object *mw_indexer_get(const struct mw_indexer *ix, struct mw_slice key) {
  return mw_objmap_get(&ix->store, key);
}

size_t mw_indexer_count(const struct mw_indexer *ix) { return ix->store.count; }

struct mw_slice mw_indexer_rv(const struct mw_indexer *ix) {
  return mw_slice(ix->rv, ix->rv_len);
}

static void add_all(const struct mw_objmap *m, struct mw_object_list *out) {
  struct mw_object *o;
  for (size_t cursor = 0; (o = mw_objmap_next(m, &cursor)) != NULL;) mw_object_list_add(out, o);
}

void mw_indexer_list(const struct mw_indexer *ix, struct mw_slice ns,
                     const struct mw_selector *selector, struct mw_unpacker *u,
                     struct mw_object_list *out) {
  if (selector != NULL && mw_selector_is_nothing(selector)) return;
  const struct mw_objmap *m = ns.n > 0 ? mw_index_get(ix->held[0]->index, ns) : &ix->store;
  if (m == NULL) return;
  if (selector == NULL || mw_selector_is_everything(selector)) {
    add_all(m, out);
    return;
  }
  struct mw_object *o;
  for (size_t cursor = 0; (o = mw_objmap_next(m, &cursor)) != NULL;) {
    if (mw_selector_matches_object(selector, o, u)) mw_object_list_add(out, o);
  }
}

int mw_indexer_by_index(struct mw_indexer *ix, const void *owner, struct mw_slice index,
                        struct mw_slice value, struct mw_object_list *out, struct mw_err *err) {
  const struct held *h = read_index(ix, owner, index);
  if (h == NULL) return no_index(index, err);
  const struct mw_objmap *m = mw_index_get(h->index, value);
  if (m != NULL) add_all(m, out);
  sweep_orphans(ix);
  return 0;
}

// Adds what is in m and was not added before.
static void add_new(const struct mw_objmap *m, struct mw_objmap *seen, struct mw_object_list *out) {
  struct mw_object *o;
  for (size_t cursor = 0; (o = mw_objmap_next(m, &cursor)) != NULL;) {
    if (mw_objmap_get(seen, mw_object_key(o)) != NULL) continue;
    mw_object_unref(mw_objmap_set(seen, o));
    mw_object_list_add(out, o);
  }
}

int mw_indexer_index(struct mw_indexer *ix, const void *owner, struct mw_slice index,
                     struct mw_object *o, struct mw_object_list *out, struct mw_err *err) {
  struct held *h = read_index(ix, owner, index);
  if (h == NULL) return no_index(index, err);
  const struct mw_index *x = h->index;
  struct mw_values values;
  struct mw_objmap seen;
  mw_values_init(&values);
  mw_objmap_init(&seen);
  ix->calling++;
  int rc = mw_index_compute(x, o, &values, err);
  ix->calling--;
  for (size_t i = 0; i < values.count && rc == 0; i++) {
    const struct mw_objmap *m = mw_index_get(x, mw_values_get(&values, i));
    if (m == NULL) continue;
    if (values.count == 1) {
      add_all(m, out);
    } else {
      add_new(m, &seen, out);
    }
  }
  mw_objmap_deinit(&seen);
  mw_values_deinit(&values);
  sweep_orphans(ix);
  return rc;
}

static int order_keys(const void *a, const void *b) {
  struct mw_slice x = mw_object_key(*(struct mw_object *const *)a);
  struct mw_slice y = mw_object_key(*(struct mw_object *const *)b);
  int d = memcmp(x.p, y.p, x.n < y.n ? x.n : y.n);
  return d != 0 ? d : (x.n > y.n) - (x.n < y.n);
}

int mw_indexer_index_keys(struct mw_indexer *ix, const void *owner, struct mw_slice index,
                          struct mw_slice value, struct mw_values *out, struct mw_err *err) {
  struct mw_object_list list = {0};
  int rc = mw_indexer_by_index(ix, owner, index, value, &list, err);
  if (list.n > 1) qsort(list.v, list.n, sizeof list.v[0], order_keys);
  for (size_t i = 0; i < list.n; i++) mw_values_push(out, mw_object_key(list.v[i]));
  mw_object_list_deinit(&list);
  return rc;
}

void mw_indexer_index_values(struct mw_indexer *ix, const void *owner, struct mw_slice index,
                             struct mw_values *out) {
  const struct held *h = read_index(ix, owner, index);
  if (h != NULL) mw_index_values(h->index, out);
  sweep_orphans(ix);
}

void mw_indexer_stats(const struct mw_indexer *ix, struct mw_indexer_stats *out) {
  *out = (struct mw_indexer_stats){.objects = ix->store.count,
                                   .object_bytes = ix->object_bytes,
                                   .map_bytes = mw_objmap_memory(&ix->store),
                                   .index_failures = ix->failures};
  for (size_t i = 0; i < ix->held_count; i++) {
    out->map_bytes += mw_index_memory(ix->held[i]->index);
  }
}
