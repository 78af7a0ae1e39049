// SPDX-License-Identifier: Apache-2.0
// One try to get or to keep the Lease (S-LE-05), and its release (S-LE-10).
//
//   ours and valid -> FAST --ok--> won
//                      | no
//                      v
//                     GET --404--> CREATE --ok--> won
//                      |
//                      +--held by another--> failed (renewing: lost)
//                      v
//                    UPDATE --ok--> won
//
// An answer counts only when it is a Lease that names us: a proxy that says 200 to everything must
// not make a leader.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "client/lease_internal.h"
#include "wire/status.h"

static const double timeout_least = 1;
static const char *const user_agent = "moonwatch/" MW_VERSION " leader-election";

static void on_response(void *ctx, const struct mw_response *response) {
  struct mw_lease *l = ctx;
  l->status = response->status;
}

static int on_data(void *ctx, const char *p, size_t n) {
  struct mw_lease *l = ctx;
  return mw_buf_add(&l->body, p, n);
}

static void on_done(void *ctx, const struct mw_err *err, struct mw_slice body);

// S-LE-14: one request that hangs must not eat up the deadline.
static double timeout(const struct mw_lease *l) {
  double t = l->config.renew_deadline / 2;
  if (t < timeout_least) t = timeout_least;
  if (l->round_ends == 0) return t;
  double left = ((double)l->round_ends - (double)mw_clock_now()) / 1e9;
  if (left < 1e-3) left = 1e-3;
  return left < t ? left : t;
}

static void send_request(struct mw_lease *l, enum mw_lease_step step, const char *method,
                         const char *path, struct mw_slice body) {
  static const struct mw_request_callbacks callbacks = {
      .on_response = on_response, .on_data = on_data, .on_done = on_done};
  const struct mw_http_header agent = {"User-Agent", user_agent};
  struct mw_request_options options = {.method = method,
                                       .path = path,
                                       .content_type = "application/json",
                                       .body = body,
                                       .timeout = timeout(l),
                                       .max_retries = -1,
                                       .any_status = true,
                                       .headers = &agent,
                                       .header_count = 1};
  l->step = step;
  l->status = 0;
  mw_buf_reset(&l->body);
  l->request = mw_http_start(l->runtime.http, l->endpoint, &options, &callbacks, l);
}

static void get(struct mw_lease *l) {
  send_request(l, MW_STEP_GET, "GET", l->path, (struct mw_slice){0});
}

static void write_lease(struct mw_lease *l, enum mw_lease_step step, struct mw_slice base,
                        const struct mw_lease_change *change) {
  struct mw_buf out;
  mw_buf_init(&out, MW_LEASE_BODY_MAX);
  if (mw_lease_write(base, change, &out) < 0) {
    mw_buf_deinit(&out);
    l->step = MW_STEP_NONE;
    mw_lease_try_failed(l, "the Lease cannot be written: its identity or a label is not UTF-8");
    return;
  }
  bool create = step == MW_STEP_CREATE;
  l->write_began = mw_clock_boot();
  send_request(l, step, create ? "POST" : "PUT", create ? l->collection : l->path,
               mw_buf_slice(&out));
  mw_buf_deinit(&out);
}

// S-LE-08.
static void claim(struct mw_lease *l, enum mw_lease_step step, struct mw_slice base) {
  bool renewal = step != MW_STEP_CREATE && strcmp(l->record.holder, l->config.identity) == 0;
  struct mw_lease_change change = {.holder = l->config.identity,
                                   .duration = (long)l->config.lease_duration,
                                   .renewed = mw_clock_wall(),
                                   .transitions = -1,
                                   .labels = l->config.labels,
                                   .label_count = l->config.label_count};
  if (!renewal) {
    change.acquired = change.renewed;
    change.transitions = step == MW_STEP_CREATE ? 0 : l->record.transitions + 1;
  }
  write_lease(l, step, base, &change);
}

static void create(struct mw_lease *l) {
  struct mw_buf base;
  mw_buf_init(&base, MW_LEASE_BODY_MAX);
  if (mw_lease_begin(l->config.ns, l->config.name, &base) == 0)
    claim(l, MW_STEP_CREATE, mw_buf_slice(&base));
  mw_buf_deinit(&base);
}

static bool is_mine(const struct mw_lease *l) {
  return strcmp(l->record.holder, l->config.identity) == 0;
}

// S-LE-06.
static bool is_valid(const struct mw_lease *l) {
  return l->observed_at + (uint64_t)l->record.duration * 1000000000u > mw_clock_boot();
}

// Remembers the Lease in the body; false, and err, when there is none.
static bool observe(struct mw_lease *l, struct mw_err *err) {
  struct mw_lease_record record;
  if (mw_lease_read(mw_buf_slice(&l->body), &record, err) < 0) return false;
  bool changed = !l->observed || !mw_slice_eq(record.spec, mw_buf_slice(&l->spec));
  if (changed) {
    l->observed_at = mw_clock_boot();
    mw_buf_reset(&l->spec);
    int rc = mw_buf_add(&l->spec, record.spec.p, record.spec.n);
    (void)rc;  // it has the limit of what it is part of
  }
  bool new_holder = !l->observed || strcmp(record.holder, l->record.holder) != 0;
  l->observed = true;
  l->record = record;
  l->record.spec = (struct mw_slice){0};
  struct mw_buf other = l->object;
  l->object = l->body;
  l->body = other;
  if (new_holder) mw_lease_new_holder(l);
  return true;
}

// Why an answer is not what it should be.
static void refusal(const struct mw_lease *l, const struct mw_err *transport, struct mw_err *err) {
  if (transport != NULL) {
    *err = *transport;
  } else {
    mw_status_from_body(mw_buf_slice(&l->body), l->status, err);
    if (l->status == 401) mw_endpoint_unknown(l->endpoint, err);
  }
}

static bool succeeded(const struct mw_lease *l, const struct mw_err *transport) {
  return transport == NULL && l->status >= 200 && l->status < 300;
}

static void fail(struct mw_lease *l, const char *why) {
  if (l->state == MW_LEASE_RELEASING) {
    mw_lease_released(l);
  } else {
    mw_lease_try_failed(l, why);
  }
}

static void release_write(struct mw_lease *l) {
  double now = mw_clock_wall();
  struct mw_lease_change change = {
      .holder = "", .duration = 1, .renewed = now, .acquired = now, .transitions = -1};
  write_lease(l, MW_STEP_UPDATE, mw_buf_slice(&l->object), &change);
}

static void got(struct mw_lease *l, const struct mw_err *transport) {
  struct mw_err err = {.code = 0};
  if (transport == NULL && l->status == 404 && l->state != MW_LEASE_RELEASING) {
    create(l);
  } else if (!succeeded(l, transport)) {
    refusal(l, transport, &err);
    fail(l, err.message);
  } else if (!observe(l, &err)) {
    fail(l, err.message);
  } else if (l->state == MW_LEASE_RELEASING) {
    if (is_mine(l)) {
      release_write(l);
    } else {
      mw_lease_released(l);
    }
  } else if (l->record.holder[0] != '\0' && !is_mine(l) &&
             (l->state == MW_LEASE_RENEWING || is_valid(l))) {
    snprintf(err.message, sizeof err.message, "the Lease is held by %.200s", l->record.holder);
    if (l->state == MW_LEASE_RENEWING) {
      mw_lease_lost(l, err.message);
    } else {
      fail(l, err.message);
    }
  } else {
    claim(l, MW_STEP_UPDATE, mw_buf_slice(&l->object));
  }
}

static void wrote(struct mw_lease *l, enum mw_lease_step step, const struct mw_err *transport) {
  struct mw_err err = {.code = 0};
  bool ok = succeeded(l, transport) && observe(l, &err);
  bool releasing = l->state == MW_LEASE_RELEASING;
  bool conflict = transport == NULL && l->status == 409;
  if (ok && releasing) {
    mw_lease_released(l);
  } else if (ok && is_mine(l)) {
    mw_lease_try_won(l);
  } else if (!ok && (releasing ? conflict : step == MW_STEP_FAST)) {
    if (!releasing) mw_series_add(l->slowpath, 1);
    get(l);
  } else {
    if (ok) snprintf(err.message, sizeof err.message, "the server wrote another holder than us");
    if (err.message[0] == '\0') refusal(l, transport, &err);
    fail(l, err.message);
  }
}

static void on_done(void *ctx, const struct mw_err *err, struct mw_slice body) {
  (void)body;
  struct mw_lease *l = ctx;
  enum mw_lease_step step = l->step;
  l->request = NULL;
  l->step = MW_STEP_NONE;
  if (step == MW_STEP_GET) {
    got(l, err);
  } else {
    wrote(l, step, err);
  }
}

void mw_lease_try(struct mw_lease *l) {
  l->try_began = mw_clock_now();
  if (l->observed && is_mine(l) && is_valid(l)) {
    claim(l, MW_STEP_FAST, mw_buf_slice(&l->object));
  } else {
    get(l);
  }
}

void mw_lease_release(struct mw_lease *l) { get(l); }

bool mw_lease_abort(struct mw_lease *l) {
  bool write = l->step != MW_STEP_NONE && l->step != MW_STEP_GET;
  mw_http_cancel(&l->request);
  l->step = MW_STEP_NONE;
  return write;
}
