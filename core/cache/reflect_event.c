// SPDX-License-Identifier: Apache-2.0
// What one event of a stream does (S-REF-50..55, S-WL-03..06).
//
// Before the marker, events build a snapshot of their own; after it they go to the sink one by one.
// An event that fails a check is skipped: it neither counts nor moves the resource version, so the
// next watch asks for it again.
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cache/reflector_internal.h"

enum { ORDER_SLACK = 1024 };

static enum mw_error_place place(const struct mw_reflector *r) {
  return r->watch.streaming ? MW_PLACE_STREAM_LIST : MW_PLACE_WATCH;
}

// The kind of the first object stands for all until the next snapshot: what the resource's kind is
// called we are never told (S-REF-52). A refused object goes on to where it is dropped, as its
// version or its deletion may count.
static bool check(struct mw_reflector *r, const struct mw_event *event) {
  const struct mw_item *item = &event->item;
  struct mw_err err = {0};
  if (item->refused != NULL && event->type <= MW_EVENT_DELETED) return true;
  if (item->refused != NULL) {
    mw_err_set(&err, MW_ELIMIT, "%s", item->refused);
  } else if (!item->has_metadata) {
    mw_err_set(&err, MW_EINVAL, "an event's object has no metadata");
  } else if (mw_slice_is(item->kind, "Table")) {
    mw_err_set(&err, MW_EINVAL, "an event's object is a Table");
  } else if (r->kind[0] != '\0' && item->kind.n > 0 && !mw_slice_is(item->kind, r->kind)) {
    mw_err_set(&err, MW_EINVAL, "an event's object is a %.*s, not a %s", MW_SLICE_ARGS(item->kind),
               r->kind);
  } else {
    if (r->kind[0] == '\0' && item->kind.n <= MW_REFLECT_KIND_MAX) {
      snprintf(r->kind, sizeof r->kind, "%.*s", MW_SLICE_ARGS(item->kind));
    }
    return true;
  }
  mw_reflect_drop(r, place(r), item, &err);
  return false;
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
  } else if (event->type == MW_EVENT_BOOKMARK && event->item.initial_events_end) {
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
  bool good = check(r, event);
  if (r->stopping) return MW_ECANCELLED;
  if (!good) return 0;
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
