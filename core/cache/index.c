// SPDX-License-Identifier: Apache-2.0
// Two tables: value -> set, and object -> its sets. The second is keyed by the object's address:
// the set holds a reference, so an address in the table is never one that was freed and reused.
// Most objects have one value; the table then holds the set itself and no list.
#include "cache/index.h"

#include <stdint.h>

#include "base/alloc.h"
#include "base/map.h"

struct set {
  struct mw_objmap objects;
  uint64_t stamp;  // the update that last found this value in its object
  uint32_t value_len;
  char value[];
};

struct set_list {
  size_t n;
  struct set *v[];
};

// 0: none; a struct set; or, with the lowest bit set, a struct set_list.
typedef uintptr_t sets_ref;

struct link {
  const struct mw_object *object;  // NULL: free
  sets_ref sets;
};

// Object -> sets: open addressing with linear probing, at most 4/5 full, no graves.
struct links {
  struct link *slots;
  size_t count;
  size_t cap;
};

struct mw_index {
  char *name;
  struct mw_index_spec spec;
  struct mw_map sets;  // value -> struct set
  struct links links;
  struct mw_values scratch;
  struct set_list *found;  // scratch: the sets of the object at hand
  size_t found_cap;
  uint64_t stamp;
  size_t bytes;  // of sets and lists; the tables are asked
};

// ---- links ----

static size_t link_home(const struct links *t, const struct mw_object *o) {
  uint64_t h = (uint64_t)(uintptr_t)o * 0x9E3779B97F4A7C15u;
  return (size_t)(((h >> 32) * t->cap) >> 32);
}

static size_t link_after(const struct links *t, size_t i) { return i + 1 < t->cap ? i + 1 : 0; }

static void link_put(struct links *t, struct link l) {
  size_t i = link_home(t, l.object);
  while (t->slots[i].object != NULL) i = link_after(t, i);
  t->slots[i] = l;
}

static void links_resize(struct links *t, size_t cap) {
  struct links old = *t;
  t->cap = cap;
  t->slots = mw_xcalloc(cap, sizeof *t->slots);
  for (size_t i = 0; i < old.cap; i++) {
    if (old.slots[i].object != NULL) link_put(t, old.slots[i]);
  }
  mw_free(old.slots);
}

static void links_add(struct links *t, const struct mw_object *o, sets_ref sets) {
  if ((t->count + 1) * 5 > t->cap * 4) links_resize(t, t->cap + t->cap / 2 + 8);
  link_put(t, (struct link){o, sets});
  t->count++;
}

static void links_close_gap(struct links *t, size_t i) {
  for (size_t j = link_after(t, i); t->slots[j].object != NULL; j = link_after(t, j)) {
    size_t h = link_home(t, t->slots[j].object);
    bool stays = i < j ? (h > i && h <= j) : (h > i || h <= j);
    if (stays) continue;
    t->slots[i] = t->slots[j];
    i = j;
  }
  t->slots[i].object = NULL;
}

// The slot of o, or a free one; there are slots.
static size_t link_find(const struct links *t, const struct mw_object *o) {
  size_t i = link_home(t, o);
  while (t->slots[i].object != NULL && t->slots[i].object != o) i = link_after(t, i);
  return i;
}

// Removes and returns the sets of o.
static sets_ref links_take(struct links *t, const struct mw_object *o) {
  if (t->count == 0) return 0;
  size_t i = link_find(t, o);
  if (t->slots[i].object == NULL) return 0;
  sets_ref sets = t->slots[i].sets;
  links_close_gap(t, i);
  t->count--;
  if (t->cap > 64 && t->count * 4 < t->cap) links_resize(t, t->count + t->count / 2 + 8);
  return sets;
}

// ---- sets ----

static struct set_list *as_list(sets_ref r) {
  return (r & 1) != 0 ? (struct set_list *)(r & ~(uintptr_t)1) : NULL;
}

static size_t sets_count(sets_ref r) {
  if (r == 0) return 0;
  return as_list(r) != NULL ? as_list(r)->n : 1;
}

static struct set *sets_at(sets_ref r, size_t i) {
  return as_list(r) != NULL ? as_list(r)->v[i] : (struct set *)r;
}

static size_t list_bytes(size_t n) { return sizeof(struct set_list) + n * sizeof(struct set *); }

static sets_ref sets_make(struct mw_index *x, const struct set_list *found) {
  if (found->n == 0) return 0;
  if (found->n == 1) return (sets_ref)found->v[0];
  struct set_list *l = mw_xmalloc(list_bytes(found->n));
  memcpy(l, found, list_bytes(found->n));
  x->bytes += list_bytes(l->n);
  return (sets_ref)l | 1;
}

static void sets_drop(struct mw_index *x, sets_ref r) {
  struct set_list *l = as_list(r);
  if (l == NULL) return;
  x->bytes -= list_bytes(l->n);
  mw_free(l);
}

// The value is held twice: by the set and as the key of the map.
static size_t set_bytes(const struct set *s) { return sizeof *s + 2 * (size_t)s->value_len + 1; }

static struct set *set_of(struct mw_index *x, struct mw_slice value) {
  struct set *s = mw_map_get(&x->sets, value);
  if (s != NULL) return s;
  s = mw_xmalloc(sizeof *s + value.n);
  mw_objmap_init(&s->objects);
  s->stamp = 0;
  s->value_len = (uint32_t)value.n;
  if (value.n > 0) memcpy(s->value, value.p, value.n);
  mw_map_set(&x->sets, value, s);
  x->bytes += set_bytes(s);
  return s;
}

static void set_put(struct mw_index *x, struct set *s, struct mw_object *o) {
  x->bytes -= mw_objmap_memory(&s->objects);
  mw_object_unref(mw_objmap_set(&s->objects, o));
  x->bytes += mw_objmap_memory(&s->objects);
}

static void set_remove(struct mw_index *x, struct set *s, const struct mw_object *o) {
  x->bytes -= mw_objmap_memory(&s->objects);
  mw_object_unref(mw_objmap_del(&s->objects, mw_object_key(o)));
  x->bytes += mw_objmap_memory(&s->objects);
  if (s->objects.count > 0) return;
  x->bytes -= set_bytes(s);
  mw_map_del(&x->sets, mw_slice(s->value, s->value_len));
  mw_free(s);
}

// ---- the index ----

struct mw_index *mw_index_new(const struct mw_index_spec *spec) {
  struct mw_index *x = mw_xcalloc(1, sizeof *x);
  x->name = mw_xstrdup(spec->name);
  x->spec = *spec;
  x->spec.name = x->name;
  mw_map_init(&x->sets);
  mw_values_init(&x->scratch);
  x->found_cap = 4;
  x->found = mw_xcalloc(1, list_bytes(x->found_cap));
  return x;
}

void mw_index_free(struct mw_index *x) {
  if (x == NULL) return;
  for (size_t i = 0; i < x->links.cap; i++) {
    if (x->links.slots[i].object != NULL) sets_drop(x, x->links.slots[i].sets);
  }
  mw_free(x->links.slots);
  size_t cursor = 0;
  void *s;
  while (mw_map_next(&x->sets, &cursor, NULL, &s)) {
    mw_objmap_deinit(&((struct set *)s)->objects);
    mw_free(s);
  }
  mw_map_deinit(&x->sets);
  mw_values_deinit(&x->scratch);
  mw_free(x->found);
  if (x->spec.free_ctx != NULL) x->spec.free_ctx(x->spec.ctx);
  mw_free(x->name);
  mw_free(x);
}

struct mw_slice mw_index_name(const struct mw_index *x) {
  return mw_slice_str(x->name);
}

int mw_index_compute(const struct mw_index *x, struct mw_object *o, struct mw_values *out,
                     struct mw_err *err) {
  if (x->spec.values == NULL) return mw_values_add(out, mw_object_ns(o));
  int rc = x->spec.values(x->spec.ctx, o, out, err);
  return rc > 0 ? MW_ESCRIPT : rc;
}

// Fills x->found with the sets of o's values, each once, and stamps them.
static int find_sets(struct mw_index *x, struct mw_object *o, struct mw_err *err) {
  x->found->n = 0;
  x->stamp++;
  if (o == NULL) return 0;
  mw_values_reset(&x->scratch);
  int rc = mw_index_compute(x, o, &x->scratch, err);
  if (rc < 0) return rc;
  if (x->scratch.count > x->found_cap) {
    x->found_cap = x->scratch.count;
    x->found = mw_xrealloc(x->found, list_bytes(x->found_cap));
  }
  for (size_t i = 0; i < x->scratch.count; i++) {
    struct set *s = set_of(x, mw_values_get(&x->scratch, i));
    if (s->stamp == x->stamp) continue;
    s->stamp = x->stamp;
    x->found->v[x->found->n++] = s;
  }
  return 0;
}

// Namespaces need no links: the object itself tells its set.
static void update_by_namespace(struct mw_index *x, struct mw_object *old, struct mw_object *o) {
  if (old != NULL && (o == NULL || !mw_slice_eq(mw_object_ns(old), mw_object_ns(o)))) {
    struct set *s = mw_map_get(&x->sets, mw_object_ns(old));
    if (s != NULL) set_remove(x, s, old);
  }
  if (o != NULL) set_put(x, set_of(x, mw_object_ns(o)), o);
}

int mw_index_update(struct mw_index *x, struct mw_object *old, struct mw_object *o,
                    struct mw_err *err) {
  if (x->spec.values == NULL) {
    update_by_namespace(x, old, o);
    return 0;
  }
  int rc = find_sets(x, o, err);
  sets_ref before = old != NULL ? links_take(&x->links, old) : 0;
  size_t count = sets_count(before);
  bool same = count == x->found->n;
  for (size_t i = 0; i < count && same; i++) same = sets_at(before, i)->stamp == x->stamp;
  for (size_t i = 0; i < x->found->n; i++) set_put(x, x->found->v[i], o);
  for (size_t i = 0; i < count && !same; i++) {
    struct set *s = sets_at(before, i);
    if (s->stamp != x->stamp) set_remove(x, s, old);
  }
  sets_ref now = before;
  if (!same) {
    sets_drop(x, before);
    now = sets_make(x, x->found);
  }
  if (now != 0) links_add(&x->links, o, now);
  return rc;
}

bool mw_index_holds(const struct mw_index *x, const struct mw_object *o) {
  return x->links.count > 0 && x->links.slots[link_find(&x->links, o)].object != NULL;
}

const struct mw_objmap *mw_index_get(const struct mw_index *x, struct mw_slice value) {
  struct set *s = mw_map_get(&x->sets, value);
  return s != NULL ? &s->objects : NULL;
}

void mw_index_values(const struct mw_index *x, struct mw_values *out) {
  size_t cursor = 0;
  struct mw_slice value;
  while (mw_map_next(&x->sets, &cursor, &value, NULL)) mw_values_push(out, value);
}

size_t mw_index_memory(const struct mw_index *x) {
  size_t entry = sizeof(char *) + 2 * sizeof(uint32_t) + sizeof(void *);
  return x->bytes + x->sets.cap * entry + x->links.cap * sizeof(struct link);
}

int mw_index_extract(void *ctx, struct mw_object *o, struct mw_values *out, struct mw_err *err) {
  int rc = mw_extract_values(ctx, o, NULL, out);
  if (rc == MW_ELIMIT) return mw_err_set(err, rc, "the object has too many values");
  return rc < 0 ? mw_err_set(err, rc, "the object cannot be read") : 0;
}

void mw_index_extract_free(void *ctx) { mw_extract_free(ctx); }
