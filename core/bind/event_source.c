// SPDX-License-Identifier: Apache-2.0
#include "bind/event_source.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/map.h"
#include "bind/bind_queue.h"
#include "bind/objtable.h"
#include "bind/predicate_arg.h"
#include "bind/util.h"
#include "cache/change.h"
#include "cache/owner.h"
#include "queue/workqueue.h"
#include "script/call.h"
#include "script/generation.h"
#include "script/ref.h"

enum { DEPTH_MAX = 32, KEYS_MAX = 10000, NAME_ROOM = 256 };

enum map { MAP_SELF = 0, MAP_OWNER, MAP_CALL };

enum reason { ON_INITIAL = 0, ON_ADD, ON_UPDATE, ON_RESYNC, ON_DELETE, REASONS };

struct mw_event_source {
  struct mw_generation *gen;
  struct mw_workqueue *queue;  // +1
  struct mw_change *predicate;
  struct mw_unpacker *second;  // beside the state's own, for two objects at a time
  enum map map;
  int fn;      // MAP_CALL
  int missed;  // MAP_CALL: hears of an object for which it failed
  char kind[NAME_ROOM], group[NAME_ROOM];
  bool controller_only, cluster_scoped;
  int low_priority;
  double spread;  // initial ones become ready over so many seconds
  uint64_t reasons[REASONS];
  struct mw_err failure;  // of a function, while an event is delivered; code 0: none
};

// A function that is a test of events.
struct call {
  struct mw_event_source *source;
  int fn;
};

struct mw_event_source *mw_event_source_new(struct mw_generation *gen) {
  struct mw_event_source *s = mw_xcalloc(1, sizeof *s);
  s->gen = gen;
  s->fn = s->missed = MW_LUAREF_NONE;
  s->second = mw_unpacker_new();
  return s;
}

void mw_event_source_detach(struct mw_event_source *s, struct lua_State *L) {
  mw_luaref_drop(L, &s->fn);
  mw_luaref_drop(L, &s->missed);
  mw_change_free(s->predicate);  // its functions with it
  s->predicate = NULL;
  if (s->queue != NULL) mw_workqueue_unref(s->queue);
  s->queue = NULL;
}

void mw_event_source_free(struct mw_event_source *s) {
  if (s == NULL) return;
  mw_unpacker_free(s->second);
  mw_free(s);
}

// ---- reading the table ----

static const char *event_name(const struct mw_notification *n) {
  return n->type == MW_NOTIFY_ADD ? "add" : n->type == MW_NOTIFY_UPDATE ? "update" : "delete";
}

static bool call_test(void *ctx, const struct mw_notification *n) {
  struct call *c = ctx;
  struct mw_event_source *s = c->source;
  lua_State *L = mw_generation_state(s->gen);
  mw_luaref_push(L, c->fn);
  mw_objtable_push(L, n->object);
  if (n->type == MW_NOTIFY_UPDATE) {
    mw_objtable_push(L, n->old);
  } else {
    lua_pushnil(L);
  }
  lua_pushstring(L, event_name(n));
  if (mw_script_call_as(L, "a predicate", 3, 1, &s->failure) < 0) return false;
  bool pass = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return pass;
}

static void call_free(void *ctx) {
  struct call *c = ctx;
  mw_luaref_drop(mw_generation_state(c->source->gen), &c->fn);
  mw_free(c);
}

// Gives a test to its parent, or to the source where it has none, at once: an error behind this
// leaves nothing over.
static struct mw_change *give(struct mw_event_source *s, struct mw_change *parent,
                              struct mw_change *c) {
  if (parent != NULL) {
    mw_change_add(parent, c);
  } else {
    s->predicate = c;
  }
  return c;
}

static void read_call(struct mw_event_source *s, lua_State *L, int idx, struct mw_change *parent) {
  struct call *c = mw_xcalloc(1, sizeof *c);
  c->source = s;
  c->fn = MW_LUAREF_NONE;
  give(s, parent, mw_change_of_call(call_test, c, call_free));
  lua_rawgeti(L, idx, 2);
  c->fn = mw_luaref_take(L);
}

static void read_match(struct mw_event_source *s, lua_State *L, int idx, struct mw_change *parent) {
  struct mw_predicate *p = mw_predicate_new();
  give(s, parent, mw_change_of_object(p));
  lua_rawgeti(L, idx, 2);
  mw_bind_read_predicate(L, lua_gettop(L), p);
  lua_pop(L, 1);
}

static int kind_of(const char *name) {
  static const char *const names[] = {"version", "generation", "labels", "annotations", "match",
                                      "call",    "all",        "any",    "negate"};
  for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++)
    if (strcmp(name, names[i]) == 0) return i;
  return -1;
}

// The test on top of the stack, which stays there.
static void read_test(struct mw_event_source *s, lua_State *L, struct mw_change *parent,
                      int depth) {
  int idx = lua_gettop(L);
  luaL_checktype(L, idx, LUA_TTABLE);
  luaL_checkstack(L, 16, "predicates are nested too deeply");
  if (depth > DEPTH_MAX) mw_bind_misuse(L, "predicates are nested too deeply");
  lua_rawgeti(L, idx, 1);
  const char *name = luaL_checkstring(L, -1);
  int kind = kind_of(name);
  lua_pop(L, 1);
  if (kind < 0) mw_bind_misuse(L, "there is no predicate '%s'", name);
  if (kind == MW_CHANGE_CALL) {
    read_call(s, L, idx, parent);
  } else if (kind == MW_CHANGE_OBJECT) {
    read_match(s, L, idx, parent);
  } else {
    struct mw_change *c = give(s, parent, mw_change_new((enum mw_change_kind)kind));
    for (int i = 2; kind >= MW_CHANGE_ALL; i++) {
      lua_rawgeti(L, idx, i);
      if (lua_isnil(L, -1)) break;
      read_test(s, L, c, depth + 1);
      lua_pop(L, 1);
    }
    lua_settop(L, idx);
  }
}

static void read_map(struct mw_event_source *s, lua_State *L, int idx) {
  lua_getfield(L, idx, "map");
  if (lua_isfunction(L, -1)) {
    s->map = MAP_CALL;
    s->fn = mw_luaref_take(L);
    lua_getfield(L, idx, "missed");
    luaL_checktype(L, -1, LUA_TFUNCTION);
    s->missed = mw_luaref_take(L);
    return;
  }
  s->map = strcmp(luaL_checkstring(L, -1), "owner") == 0 ? MAP_OWNER : MAP_SELF;
  lua_pop(L, 1);
  if (s->map != MAP_OWNER) return;
  snprintf(s->kind, sizeof s->kind, "%s", mw_bind_opt_string(L, idx, "kind", ""));
  snprintf(s->group, sizeof s->group, "%s", mw_bind_opt_string(L, idx, "group", ""));
  s->controller_only = strcmp(mw_bind_opt_string(L, idx, "owner", "controller"), "any") != 0;
  s->cluster_scoped = mw_bind_opt_bool(L, idx, "cluster_scoped", false);
}

static void read_reasons(struct mw_event_source *s, const char *resource) {
  static const char *const words[REASONS] = {"initial", "add", "update", "resync", "delete"};
  for (int i = 0; i < REASONS; i++) {
    char text[MW_WORKQUEUE_REASON_MAX];
    snprintf(text, sizeof text, "%s %s", words[i], resource);
    s->reasons[i] = mw_workqueue_reason(s->queue, mw_slice_str(text));
  }
}

void mw_event_source_read(struct mw_event_source *s, struct lua_State *L, int idx) {
  lua_getfield(L, idx, "queue");
  s->queue = mw_workqueue_ref(mw_bind_check_queue(L, lua_gettop(L)));
  lua_pop(L, 1);
  read_reasons(s, mw_bind_opt_string(L, idx, "resource", ""));
  s->low_priority = (int)mw_bind_opt_number(L, idx, "low_priority", 0, -1000, 1000);
  s->spread = mw_bind_opt_seconds(L, idx, "spread", 0);
  read_map(s, L, idx);
  lua_getfield(L, idx, "predicate");
  if (!lua_isnil(L, -1)) read_test(s, L, NULL, 0);
  lua_pop(L, 1);
}

// ---- events ----

struct delivery {
  struct mw_event_source *source;
  const struct mw_object *object;  // whose owners are looked at
  double spread;
  struct mw_workqueue_add how;
  struct mw_err *err;
};

static int add(struct delivery *d, struct mw_slice key) {
  if (key.n == 0) return mw_err_set(d->err, MW_ESCRIPT, "map returned an empty key");
  if (d->spread > 0) d->how.after = d->spread * mw_hash(key) / UINT32_MAX;
  int rc = mw_workqueue_add(d->source->queue, key, &d->how);
  if (rc == MW_ELIMIT) mw_err_set(d->err, rc, "the key is too long, or the work queue is full");
  return rc;
}

static struct mw_slice group_of(struct mw_slice api_version) {
  const char *slash = api_version.n > 0 ? memchr(api_version.p, '/', api_version.n) : NULL;
  return slash != NULL ? mw_slice(api_version.p, (size_t)(slash - api_version.p))
                       : mw_slice(api_version.p, 0);
}

static int on_owner(void *ctx, const struct mw_owner *owner) {
  struct delivery *d = ctx;
  struct mw_event_source *s = d->source;
  if (s->controller_only && !owner->controller) return 0;
  if (!mw_slice_is(owner->kind, s->kind) || owner->name.n == 0) return 0;
  if (!mw_slice_is(group_of(owner->api_version), s->group)) return 0;
  struct mw_slice ns = mw_object_ns(d->object);
  if (ns.n == 0 || s->cluster_scoped) return add(d, owner->name);
  char key[MW_OBJECT_KEY_MAX];
  if (ns.n + 1 + owner->name.n > sizeof key) return 0;
  memcpy(key, ns.p, ns.n);
  key[ns.n] = '/';
  memcpy(key + ns.n + 1, owner->name.p, owner->name.n);
  return add(d, mw_slice(key, ns.n + 1 + owner->name.n));
}

static int add_owners(struct delivery *d, const struct mw_object *o) {
  d->object = o;
  int rc = mw_owner_each(o, d->source->second, on_owner, d);
  if (rc == MW_EPARSE) mw_err_set(d->err, rc, "its owner references cannot be read");
  return rc;
}

// What a map function returned, on top of the stack: nil, a key, or a list of keys.
static int add_returned(struct delivery *d, lua_State *L) {
  if (lua_isnil(L, -1)) return 0;
  if (lua_type(L, -1) == LUA_TSTRING) return add(d, mw_bind_slice(L, -1));
  if (!lua_istable(L, -1)) {
    return mw_err_set(d->err, MW_ESCRIPT, "map returns a key, a list of keys or nothing, not a %s",
                      luaL_typename(L, -1));
  }
  size_t n = lua_objlen(L, -1);
  if (n > KEYS_MAX)
    return mw_err_set(d->err, MW_ELIMIT, "map returned more than %d keys", KEYS_MAX);
  int rc = 0;
  for (size_t i = 1; i <= n && rc == 0; i++) {
    lua_rawgeti(L, -1, (int)i);
    rc = lua_type(L, -1) == LUA_TSTRING
             ? add(d, mw_bind_slice(L, -1))
             : mw_err_set(d->err, MW_ESCRIPT, "key %d of what map returned is a %s, not a string",
                          (int)i, luaL_typename(L, -1));
    lua_pop(L, 1);
  }
  return rc;
}

static void tell_missed(const struct delivery *d, lua_State *L, struct mw_object *o) {
  struct mw_err err;
  mw_luaref_push(L, d->source->missed);
  mw_objtable_push(L, o);
  if (mw_script_call(L, 1, 0, &err) < 0)
    mw_log(MW_LOG_ERROR, "an event is lost", MW_STR("error", err.message));
}

static int add_mapped(struct delivery *d, lua_State *L, struct mw_object *o) {
  mw_luaref_push(L, d->source->fn);
  mw_objtable_push(L, o);
  int rc = mw_script_call_as(L, "a map function", 1, 1, d->err);
  if (rc < 0) {
    tell_missed(d, L, o);
    return rc;
  }
  rc = add_returned(d, L);
  lua_pop(L, 1);
  return rc;
}

static int add_keys(struct delivery *d, lua_State *L, struct mw_object *o) {
  switch (d->source->map) {
    case MAP_SELF:
      return add(d, mw_object_key(o));
    case MAP_OWNER:
      return add_owners(d, o);
    case MAP_CALL:
      return add_mapped(d, L, o);
  }
  return 0;
}

static enum reason reason_of(const struct mw_notification *n) {
  switch (n->type) {
    case MW_NOTIFY_ADD:
      return n->initial ? ON_INITIAL : ON_ADD;
    case MW_NOTIFY_UPDATE:
      return mw_slice_eq(mw_object_rv(n->old), mw_object_rv(n->object)) ? ON_RESYNC : ON_UPDATE;
    case MW_NOTIFY_DELETE:
      return ON_DELETE;
  }
  return ON_ADD;
}

static int add_event(struct mw_event_source *s, struct lua_State *L,
                     const struct mw_notification *n, struct mw_err *err) {
  enum reason reason = reason_of(n);
  bool low = reason == ON_INITIAL || reason == ON_RESYNC;
  struct delivery d = {
      .source = s,
      .spread = reason == ON_INITIAL ? s->spread : 0,
      .how = {.priority = low ? s->low_priority : 0, .reasons = s->reasons[reason]},
      .err = err};
  int rc = add_keys(&d, L, n->object);
  if (n->type != MW_NOTIFY_UPDATE || s->map == MAP_SELF || reason == ON_RESYNC) return rc;
  // What the new state could not tell, the old one may.
  struct mw_err second;
  if (rc < 0) d.err = &second;
  int old = add_keys(&d, L, n->old);
  return rc < 0 ? rc : old;
}

int mw_event_source_deliver(struct mw_event_source *s, struct lua_State *L,
                            const struct mw_notification *n, struct mw_err *err) {
  s->failure.code = 0;
  bool pass =
      s->predicate == NULL || mw_change_test(s->predicate, n, mw_objtable_unpacker(L), s->second);
  if (s->failure.code == 0) return pass ? add_event(s, L, n, err) : 0;
  // Better one reconcile too many than one too few.
  int rc = add_event(s, L, n, err);
  if (rc < 0) return rc;
  return mw_err_set(err, s->failure.code,
                    "a predicate failed, and the event counts all the same: %s",
                    s->failure.message);
}
