// SPDX-License-Identifier: Apache-2.0
// What one event of a stream does (S-REF-50..55, S-WL-03..06).
//
// Before the marker, events build a snapshot of their own; after it they go to the sink one by one.
// An event that fails a check is skipped: it neither counts nor moves the resource version, so the
// next watch asks for it again. A marker that fails one ends the stream, as none would follow.
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cache/reflector_internal.h"

enum { ORDER_SLACK = 1024 };

static enum mw_error_place place(const struct mw_reflector *r) {
  return r->watch.streaming ? MW_PLACE_STREAM_LIST : MW_PLACE_WATCH;
}

static bool is_marker(const struct mw_reflector *r, const struct mw_event *event) {
  return r->watch.streaming && event->type == MW_EVENT_BOOKMARK && event->item.initial_events_end;
}

static bool is_table(const struct mw_item *item) { return mw_slice_is(item->kind, "Table"); }

// Whether what may well be an object is of another kind than the first.
static bool is_other_kind(const struct mw_reflector *r, const struct mw_item *item) {
  if (item->refused != NULL || !item->has_metadata || is_table(item)) return false;
  return r->kind[0] != '\0' && item->kind.n > 0 && !mw_slice_is(item->kind, r->kind);
}

static int check_marker(const struct mw_reflector *r, const struct mw_item *item,
                        struct mw_err *err) {
  if (item->rv.n > MW_OBJECT_RV_MAX) {
    return mw_err_set(err, MW_ELIMIT, "the marker's resourceVersion is too long");
  }
  if (!r->watch.mixed || item->kind.n > 0) return 0;
  return mw_err_set(err, MW_EINVAL, "the events are of several kinds, the marker is of none");
}

// The kind of the first object stands for all until the next snapshot: what the resource's kind is
// called we are never told (S-REF-52). A refused object goes on to where it is dropped, as its
// version or its deletion may count.
static int check(const struct mw_reflector *r, const struct mw_event *event, struct mw_err *err) {
  const struct mw_item *item = &event->item;
  if (item->refused != NULL && event->type <= MW_EVENT_DELETED) return 0;
  if (item->refused != NULL) return mw_err_set(err, MW_ELIMIT, "%s", item->refused);
  if (!item->has_metadata) {
    return mw_err_set(err, MW_EINVAL, "an event's object has no metadata");
  }
  if (is_table(item)) return mw_err_set(err, MW_EINVAL, "an event's object is a Table");
  if (is_other_kind(r, item)) {
    return mw_err_set(err, MW_EINVAL, "an event's object is a %.*s, not a %s",
                      MW_SLICE_ARGS(item->kind), r->kind);
  }
  return is_marker(r, event) ? check_marker(r, item, err) : 0;
}

// What becomes of an event that fails a check. Where two events differ and nothing else says which
// kind is right, it may be the first that was wrong, and then what is skipped is what we are here
// for. A streaming list goes on to its marker, which says so; a watch has none.
static int refuse(struct mw_reflector *r, const struct mw_event *event, const struct mw_err *err) {
  bool other = is_other_kind(r, &event->item);
  if (is_marker(r, event) || (other && !r->watch.streaming && !r->kind_sure)) {
    r->body_err = *err;
    return err->code;
  }
  r->watch.mixed |= other;
  mw_reflect_drop(r, place(r), &event->item, err);
  return r->stopping ? MW_ECANCELLED : 0;
}

// The snapshot that a stream builds.

// Forgets what was replaced or deleted since, so that a server that goes on changing its mind
// cannot make `order` grow for ever.
static void compact(struct mw_reflect_snapshot *s) {
  // As many as keys: each is there once, and nothing was deleted.
  if (s->order.n == s->temp.count) return;
  struct mw_object_list live = {0};
  for (size_t i = 0; i < s->order.n; i++) {
    struct mw_object *o = s->order.v[i];
    if (mw_objmap_get(&s->temp, mw_object_key(o)) == o) mw_object_list_add(&live, o);
  }
  mw_object_list_deinit(&s->order);
  s->order = live;
}

static void collect(struct mw_reflector *r, const struct mw_item *item) {
  struct mw_reflect_snapshot *s = &r->snapshot;
  struct mw_object *o = mw_reflect_snapshot_object(r, item, MW_PLACE_STREAM_LIST);
  if (o == NULL) return;
  mw_object_unref(mw_objmap_set(&s->temp, o));
  mw_object_list_add(&s->order, o);
  mw_object_unref(o);
  if (s->order.n > 2 * s->temp.count + ORDER_SLACK) compact(s);
}

static void uncollect(struct mw_reflector *r, const struct mw_item *item) {
  char room[MW_OBJECT_KEY_MAX];
  struct mw_slice key = mw_reflect_key(item, room);
  if (key.n > 0) {
    mw_object_unref(mw_objmap_del(&r->snapshot.temp, key));
    return;
  }
  struct mw_err err = {0};
  mw_err_set(&err, MW_EINVAL, "an object was deleted, but its name is missing or too long");
  mw_reflect_drop(r, MW_PLACE_STREAM_LIST, item, &err);
}

// The marker: the snapshot is complete, and the stream goes on as a plain watch (S-WL-05).
static void complete(struct mw_reflector *r, struct mw_slice rv) {
  compact(&r->snapshot);
  mw_timer_cancel(&r->tick);
  mw_reflect_snapshot_done(r, rv);
  r->watch.streaming = false;
  r->watch.record = true;
  r->watch.events = 0;
  r->watch.since = mw_clock_now();
  r->drop_told = false;
  if (r->stopping) return;
  mw_reflect_enter_watch_phase(r);
  mw_reflect_set_state(r, MW_REF_WATCHING);
}

static void stream_event(struct mw_reflector *r, const struct mw_event *event, uint64_t now) {
  struct mw_reflect_snapshot *s = &r->snapshot;
  s->heard = now;
  if (event->type == MW_EVENT_ADDED || event->type == MW_EVENT_MODIFIED) {
    collect(r, &event->item);
  } else if (event->type == MW_EVENT_DELETED) {
    uncollect(r, &event->item);
  } else if (is_marker(r, event)) {
    mw_reflect_put(r->stats, MW_REFLECT_RECEIVED, s->temp.count);
    complete(r, event->item.rv);
    return;
  }
  mw_reflect_put(r->stats, MW_REFLECT_RECEIVED, s->temp.count);
}

// After the snapshot.

// An object was deleted whose last state cannot be stored: what is known of it has to go. The
// version of that is old; a bookmark brings the one of the deletion.
static void remove_known(struct mw_reflector *r, const struct mw_item *item) {
  char room[MW_OBJECT_KEY_MAX];
  struct mw_object *known = mw_objmap_del(&r->known, mw_reflect_key(item, room));
  if (known == NULL) return;
  r->sink.remove(r->sink.ctx, known);
  if (!r->stopping && item->rv.n > 0) r->sink.bookmark(r->sink.ctx, item->rv);
  mw_object_unref(known);
}

static void pass_on(struct mw_reflector *r, const struct mw_event *event) {
  struct mw_err err = {0};
  struct mw_object *o = mw_object_new(&event->item, r->packer, event->type == MW_EVENT_ADDED, &err);
  if (o == NULL) {
    mw_reflect_drop(r, MW_PLACE_WATCH, &event->item, &err);
    if (event->type == MW_EVENT_DELETED && !r->stopping) remove_known(r, &event->item);
    return;
  }
  if (event->type == MW_EVENT_DELETED) {
    mw_object_unref(mw_objmap_del(&r->known, mw_object_key(o)));
    r->sink.remove(r->sink.ctx, o);
  } else {
    mw_object_unref(mw_objmap_set(&r->known, o));
    if (event->type == MW_EVENT_ADDED) {
      r->sink.add(r->sink.ctx, o);
    } else {
      r->sink.update(r->sink.ctx, o);
    }
  }
  mw_object_unref(o);
}

static void watch_event(struct mw_reflector *r, const struct mw_event *event) {
  if (event->type == MW_EVENT_BOOKMARK && event->item.rv.n > 0) {
    r->sink.bookmark(r->sink.ctx, event->item.rv);
  } else if (event->type <= MW_EVENT_DELETED) {
    pass_on(r, event);
  }
  if (event->type != MW_EVENT_ADDED) r->watch.record = true;
  if (r->watch.record && event->item.rv.n > 0) mw_reflect_set_rv(r, event->item.rv);
}

static int error_event(struct mw_reflector *r, const struct mw_event *event) {
  if (event->is_status) return mw_status_classify(&event->status, 0, &r->body_err);
  return mw_err_set(&r->body_err, MW_EINVAL,
                    "the stream ended with an error that is not a Status object");
}

int mw_reflect_event(void *ctx, const struct mw_event *event) {
  struct mw_reflector *r = ctx;
  if (event->type == MW_EVENT_ERROR) return error_event(r, event);
  struct mw_err err = {0};
  if (check(r, event, &err) != 0) return refuse(r, event, &err);
  if (event->item.refused == NULL) mw_reflect_learn_kind(r, &event->item, is_marker(r, event));
  if (event->type == MW_EVENT_UNKNOWN) {
    mw_log(MW_LOG_ERROR, "unknown type of event", MW_STR("resource", r->name),
           MW_SLC("type", event->type_text));
  }
  r->watch.events++;
  mw_reflect_count(r->stats, MW_REFLECT_EVENTS);
  uint64_t now = mw_clock_now();
  mw_reflect_put(r->stats, MW_REFLECT_LAST_EVENT_AT, now);
  if (r->watch.streaming) {
    stream_event(r, event, now);
  } else {
    watch_event(r, event);
  }
  return r->stopping ? MW_ECANCELLED : 0;
}
