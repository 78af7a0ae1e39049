// SPDX-License-Identifier: Apache-2.0
// A snapshot, and how to take one page by page (S-REF-10..20, S-PAG).
//
// Objects are collected in the order in which the server sent them. What is unchanged since the
// last snapshot is the same object as before. Nothing reaches the sink before the last page is
// there; then everything does, in one call.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/reflector_internal.h"
#include "cache/shown.h"

// A server that is busy may be silent for long before a list, but gives it up itself after a minute
// (--request-timeout).
enum { PATH_LIMIT = 256 * 1024, LIST_IDLE = 75 };

static const char accept_json[] = "application/json";
static const char accept_metadata[] =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

// The snapshot.

void mw_reflect_snapshot_clear(struct mw_reflector *r) {
  mw_object_list_deinit(&r->snapshot.order);
  r->snapshot.order = (struct mw_object_list){0};
  mw_objmap_deinit(&r->snapshot.temp);
  mw_objmap_init(&r->snapshot.temp);
  mw_free(r->snapshot.token);
  r->snapshot.token = NULL;
  r->kind[0] = '\0';
  r->kind_sure = false;
  mw_reflect_put(r->stats, MW_REFLECT_RECEIVED, 0);
}

void mw_reflect_snapshot_begin(struct mw_reflector *r, const char *rv) {
  struct mw_reflect_snapshot *s = &r->snapshot;
  mw_reflect_snapshot_clear(r);
  snprintf(s->rv, sizeof s->rv, "%s", rv);
  s->since = mw_clock_now();
  s->heard = 0;
  s->paginated = false;
  s->retried = false;
  s->full = false;
}

struct mw_slice mw_reflect_key(const struct mw_item *item, char room[MW_OBJECT_KEY_MAX]) {
  struct mw_slice ns = item->ns, name = item->name;
  if (name.n == 0 || ns.n + 1 + name.n > MW_OBJECT_KEY_MAX) return mw_slice(room, 0);
  size_t n = 0;
  if (ns.n > 0) {
    memcpy(room, ns.p, ns.n);
    room[ns.n] = '/';
    n = ns.n + 1;
  }
  memcpy(room + n, name.p, name.n);
  return mw_slice(room, n + name.n);
}

void mw_reflect_drop(struct mw_reflector *r, enum mw_error_place place, const struct mw_item *item,
                     const struct mw_err *err) {
  char room[MW_OBJECT_KEY_MAX];
  struct mw_slice key = mw_reflect_key(item, room);
  if (key.n == 0) key = MW_SLICE("(no name)");
  mw_reflect_count(r->stats, MW_REFLECT_DROPPED);
  mw_log(MW_LOG_ERROR, "object left out", MW_STR("resource", r->name), MW_SLC("key", key),
         MW_STR("reason", err->message));
  if (r->drop_told) return;
  r->drop_told = true;
  struct mw_err told = {0};
  mw_err_set(&told, err->code, "object \"%s\" left out: %s", mw_shown(key).text, err->message);
  r->callbacks.on_error(r->callbacks.ctx, place, &told, "going on without this object");
}

void mw_reflect_learn_kind(struct mw_reflector *r, const struct mw_item *item, bool sure) {
  if (item->kind.n == 0 || item->kind.n > MW_REFLECT_KIND_MAX) return;
  if (r->kind[0] == '\0') {
    snprintf(r->kind, sizeof r->kind, "%.*s", MW_SLICE_ARGS(item->kind));
  }
  if (sure) r->kind_sure = true;
}

// What the last snapshot and the events since have under the item's key, or NULL.
static struct mw_object *find_known(const struct mw_reflector *r, const struct mw_item *item) {
  char room[MW_OBJECT_KEY_MAX];
  if (r->known.count == 0) return NULL;
  return mw_objmap_get(&r->known, mw_reflect_key(item, room));
}

// Whether the item is another state of an object, not one that took its name.
static bool same_uid(const struct mw_object *o, const struct mw_item *item) {
  char uid[MW_OBJECT_UID_MAX + 1];
  return item->uid.n == 0 || mw_slice_eq(mw_slice(uid, mw_object_uid(o, uid)), item->uid);
}

struct mw_object *mw_reflect_snapshot_object(struct mw_reflector *r, const struct mw_item *item,
                                             enum mw_error_place place) {
  struct mw_object *known = find_known(r, item);
  if (known != NULL && mw_object_same_version(known, item)) {
    mw_reflect_count(r->stats, MW_REFLECT_REUSED);
    return mw_object_ref(known);
  }
  struct mw_err err = {0};
  struct mw_object *o = mw_object_new(item, r->packer, known == NULL, &err);
  if (o != NULL) return o;
  mw_reflect_drop(r, place, item, &err);
  return known != NULL && same_uid(known, item) ? mw_object_ref(known) : NULL;
}

void mw_reflect_snapshot_done(struct mw_reflector *r, struct mw_slice rv) {
  struct mw_object_list all = r->snapshot.order;
  r->snapshot.order = (struct mw_object_list){0};
  // What a stream collected is by key already.
  struct mw_objmap fresh = r->snapshot.temp;
  mw_objmap_init(&r->snapshot.temp);
  if (fresh.count == 0) {
    mw_objmap_reserve(&fresh, all.n);
    for (size_t i = 0; i < all.n; i++) mw_object_unref(mw_objmap_set(&fresh, all.v[i]));
  }
  mw_objmap_deinit(&r->known);
  r->known = fresh;
  double seconds = (double)(mw_clock_now() - r->snapshot.since) * 1e-9;
  mw_log(seconds > mw_reflect_slow(r) ? MW_LOG_WARN : MW_LOG_DEBUG, "snapshot taken",
         MW_STR("resource", r->name), MW_INT("objects", all.n), MW_NUM("seconds", seconds),
         MW_BOOL("streamed", r->watch.streaming), MW_SLC("rv", rv));
  mw_reflect_meter_list(r->meters, seconds, all.n);
  r->rv_unavailable = false;
  r->sink.replace(r->sink.ctx, &all, rv);
  mw_object_list_deinit(&all);
  mw_reflect_set_rv(r, rv);
}

// Pages.

static long page_size(const struct mw_reflector *r, const char *rv) {
  if (r->config.page_size > 0) return r->config.page_size;
  if (r->zero_paginated) return MW_REFLECT_PAGE;
  bool any_or_newest = rv[0] == '\0' || strcmp(rv, "0") == 0;
  return any_or_newest ? MW_REFLECT_PAGE : 0;
}

static int on_item(void *ctx, const struct mw_item *item) {
  struct mw_reflector *r = ctx;
  struct mw_object *o = mw_reflect_snapshot_object(r, item, MW_PLACE_LIST);
  if (o != NULL) {
    mw_object_list_add(&r->snapshot.order, o);
    mw_object_unref(o);
    mw_reflect_learn_kind(r, item, true);
  }
  mw_reflect_put(r->stats, MW_REFLECT_RECEIVED, r->snapshot.order.n);
  mw_reflect_put(r->stats, MW_REFLECT_LAST_EVENT_AT, mw_clock_now());
  return r->stopping ? MW_ECANCELLED : 0;
}

static void on_response(void *ctx, const struct mw_response *response) {
  struct mw_reflector *r = ctx;
  r->http_status = response->status;
}

static int on_data(void *ctx, const char *p, size_t n) {
  struct mw_reflector *r = ctx;
  return mw_list_split_feed(r->list_split, p, n, &r->body_err);
}

// 410 with reason Expired on a later page; Gone does not count (S-PAG-04).
static bool page_expired(const struct mw_reflector *r, struct mw_slice body) {
  struct mw_status status;
  return r->snapshot.token != NULL && !r->snapshot.full && mw_status_parse(body, &status) &&
         strcmp(status.reason, "Expired") == 0;
}

static void list_failed(struct mw_reflector *r, const struct mw_err *err, struct mw_slice body) {
  struct mw_reflect_failure failure = {.place = MW_PLACE_LIST, .err = err};
  bool expired = err->code == MW_EEXPIRED || err->code == MW_ETOOLARGERV;
  if (err->code == MW_EEXPIRED && page_expired(r, body)) {
    mw_reflect_decide(r, MW_DECISION_PAGE_EXPIRED, &failure);
  } else if (expired) {
    r->rv_unavailable = true;
    mw_reflect_decide(r, r->snapshot.retried ? MW_DECISION_LIST_FAILED : MW_DECISION_LIST_EXPIRED,
                      &failure);
  } else {
    mw_reflect_decide(r, MW_DECISION_LIST_FAILED, &failure);
  }
}

static void request_page(struct mw_reflector *r);

static void next_page(struct mw_reflector *r, const char *token) {
  struct mw_reflect_snapshot *s = &r->snapshot;
  if (s->token != NULL && strcmp(s->token, token) == 0) {
    struct mw_err err = {0};
    mw_err_set(&err, MW_EINVAL, "the server repeats a page of %s: its continue token is the same",
               r->name);
    list_failed(r, &err, (struct mw_slice){NULL, 0});
    return;
  }
  mw_free(s->token);
  s->token = mw_xstrdup(token);
  s->paginated = true;
  request_page(r);
}

static void page_done(struct mw_reflector *r, const struct mw_list_info *info) {
  struct mw_reflect_snapshot *s = &r->snapshot;
  // The splitter refuses a longer one. A later page's would be too new for the first.
  _Static_assert(sizeof info->rv <= sizeof s->list_rv, "a list's version is never cut");
  if (s->token == NULL) memcpy(s->list_rv, info->rv, sizeof info->rv);
  if (info->continue_token != NULL) {
    next_page(r, info->continue_token);
    return;
  }
  if (s->paginated && strcmp(s->rv, "0") == 0) r->zero_paginated = true;
  mw_reflect_snapshot_done(r, mw_slice_str(s->list_rv));
  if (r->stopping) return;
  mw_reflect_enter_watch_phase(r);
  mw_reflect_watch(r);
}

static void on_done(void *ctx, const struct mw_err *err, struct mw_slice body) {
  struct mw_reflector *r = ctx;
  r->request = NULL;
  struct mw_list_split *split = r->list_split;
  r->list_split = NULL;
  struct mw_err why = r->body_err;
  if (why.code == 0 && err != NULL) {
    mw_reflect_explain(r, err, body, &why);
  } else if (why.code == 0) {
    why.code = mw_list_split_finish(split, &why);
  }
  if (why.code == 0) {
    page_done(r, mw_list_split_info(split));
  } else {
    list_failed(r, &why, body);
  }
  mw_list_split_free(split);
}

static int page_path(const struct mw_reflector *r, struct mw_buf *path) {
  const struct mw_reflect_snapshot *s = &r->snapshot;
  int rc = mw_reflect_path(r, path);
  if (rc == 0 && s->limit > 0) {
    char limit[24];
    snprintf(limit, sizeof limit, "%ld", s->limit);
    rc = mw_reflect_param(path, "limit", limit);
  }
  if (rc == 0 && s->token != NULL) rc = mw_reflect_param(path, "continue", s->token);
  if (rc == 0 && s->token == NULL && s->rv[0] != '\0') {
    rc = mw_reflect_param(path, "resourceVersion", s->rv);
  }
  return rc != 0 ? rc : mw_reflect_fixed_params(r, path);
}

static void request_page(struct mw_reflector *r) {
  static const struct mw_request_callbacks callbacks = {
      .on_response = on_response, .on_data = on_data, .on_done = on_done};
  mw_reflect_set_state(r, MW_REF_LISTING);
  if (r->stopping) return;
  struct mw_buf path;
  mw_buf_init(&path, PATH_LIMIT);
  int rc = page_path(r, &path);
  if (rc == 0) {
    r->list_split = mw_list_split_new(r->config.projection, r->packer, on_item, r);
    r->http_status = 0;
    r->drop_told = false;
    r->body_err = (struct mw_err){0};
    struct mw_request_options options = {
        .path = path.p,
        .accept = r->config.metadata_only ? accept_metadata : accept_json,
        .idle_timeout = r->config.list_idle > 0 ? r->config.list_idle : LIST_IDLE,
        .head_timeout = r->config.head_timeout,
    };
    mw_reflect_count(r->stats, MW_REFLECT_LISTS);
    r->request = mw_http_start(r->http, r->endpoint, &options, &callbacks, r);
  }
  mw_buf_deinit(&path);
  if (rc == 0) return;
  struct mw_err err = {0};
  mw_err_set(&err, rc, "the request for %s cannot be written: %s", r->name, mw_err_text(rc));
  list_failed(r, &err, (struct mw_slice){NULL, 0});
}

void mw_reflect_list(struct mw_reflector *r) {
  const char *rv = r->last_rv[0] != '\0' ? r->last_rv : "0";
  mw_reflect_snapshot_begin(r, r->rv_unavailable ? "" : rv);
  r->snapshot.limit = page_size(r, r->snapshot.rv);
  request_page(r);
}

void mw_reflect_list_newest(struct mw_reflector *r) {
  uint64_t since = r->snapshot.since;
  mw_reflect_snapshot_begin(r, "");
  r->snapshot.since = since;
  r->snapshot.retried = true;
  r->snapshot.limit = page_size(r, "");
  request_page(r);
}

void mw_reflect_list_full(struct mw_reflector *r) {
  mw_reflect_snapshot_clear(r);
  r->snapshot.limit = 0;
  r->snapshot.full = true;
  request_page(r);
}
