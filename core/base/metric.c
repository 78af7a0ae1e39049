// SPDX-License-Identifier: Apache-2.0
// One mutex guards which families and series there are; values are atomics beside it. A writer pins
// the series of one family at a time, and sorts and formats them without the mutex, so that a large
// exposition holds up nobody who asks for a series meanwhile.
#include "base/metric.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/map.h"

struct mw_series {
  struct mw_metric *family;
  char *labels;            // a="x",b="y", escaped: what is shown, what it is found by and sorted by
  size_t owners;           // under the mutex; at 0 it is in no map any more
  size_t pins;             // under the mutex: writers that read it
  _Atomic uint64_t value;  // the bits of a double: value, or a histogram's sum
  _Atomic uint64_t *counts;  // histograms: one per bucket and one for +Inf, not cumulative
};

struct mw_metric {
  char *name, *help;
  enum mw_metric_type type;
  char **labels;
  size_t label_count;
  double *buckets;
  size_t bucket_count;
  size_t series_max;
  struct mw_map series;  // labels -> struct mw_series
  bool warned;           // that there are too many
  bool lasting;          // never freed
  bool listed;           // in `families`
  size_t holders;        // who hold one that is not lasting
  size_t pins;           // writers that read it
};

struct hook {
  mw_metric_cb cb;
  void *ctx;
  struct hook *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mw_metric **families;  // by name
static size_t family_count;
// Held while hooks run, so that none is gone before it has returned. Taken before `lock`.
static pthread_mutex_t hook_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hook *hooks;

static bool name_ok(const char *s, bool colons) {
  if (s == NULL || *s == '\0' || (*s >= '0' && *s <= '9')) return false;
  for (; *s != '\0'; s++) {
    bool word = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9');
    if (!word && *s != '_' && !(colons && *s == ':')) return false;
  }
  return true;
}

static int check_labels(const struct mw_metric_spec *spec, struct mw_err *err) {
  if (spec->label_count > MW_METRIC_LABEL_MAX) {
    return mw_err_set(err, MW_ELIMIT, "metric %s has %zu labels, the limit is %d", spec->name,
                      spec->label_count, MW_METRIC_LABEL_MAX);
  }
  for (size_t i = 0; i < spec->label_count; i++) {
    const char *label = spec->labels[i];
    if (!name_ok(label, false) || strcmp(label, "le") == 0 || strncmp(label, "__", 2) == 0) {
      return mw_err_set(err, MW_EINVAL,
                        "metric %s cannot have a label \"%s\": labels are of letters, digits and _,"
                        " begin with no digit and not with __, and \"le\" is Prometheus' own",
                        spec->name, label != NULL ? label : "");
    }
    for (size_t j = 0; j < i; j++) {
      if (strcmp(label, spec->labels[j]) == 0) {
        return mw_err_set(err, MW_EINVAL, "metric %s has the label %s twice", spec->name, label);
      }
    }
  }
  return 0;
}

static int check_buckets(const struct mw_metric_spec *spec, struct mw_err *err) {
  if (spec->type != MW_METRIC_HISTOGRAM) {
    if (spec->bucket_count == 0) return 0;
    return mw_err_set(err, MW_EINVAL, "metric %s has buckets but is no histogram", spec->name);
  }
  if (spec->bucket_count == 0 || spec->bucket_count > MW_METRIC_BUCKET_MAX) {
    return mw_err_set(err, MW_ELIMIT, "metric %s has %zu buckets, use 1 to %d", spec->name,
                      spec->bucket_count, MW_METRIC_BUCKET_MAX);
  }
  for (size_t i = 0; i < spec->bucket_count; i++) {
    double bound = spec->buckets[i];
    if (!isfinite(bound) || (i > 0 && bound <= spec->buckets[i - 1])) {
      return mw_err_set(err, MW_EINVAL,
                        "bucket %zu of metric %s is not above the one before it: give finite upper "
                        "bounds in growing order",
                        i + 1, spec->name);
    }
  }
  return 0;
}

static int check_spec(const struct mw_metric_spec *spec, struct mw_err *err) {
  if (!name_ok(spec->name, true)) {
    return mw_err_set(err, MW_EINVAL,
                      "\"%s\" is no name for a metric: use letters, digits, _ and :, and begin "
                      "with no digit",
                      spec->name != NULL ? spec->name : "");
  }
  int rc = check_labels(spec, err);
  return rc < 0 ? rc : check_buckets(spec, err);
}

static bool same_shape(const struct mw_metric *m, const struct mw_metric_spec *spec) {
  if (m->type != spec->type || m->label_count != spec->label_count ||
      m->bucket_count != spec->bucket_count) {
    return false;
  }
  for (size_t i = 0; i < m->label_count; i++) {
    if (strcmp(m->labels[i], spec->labels[i]) != 0) return false;
  }
  return m->bucket_count == 0 ||
         memcmp(m->buckets, spec->buckets, m->bucket_count * sizeof *m->buckets) == 0;
}

// Where name is or belongs.
static size_t place_of(const char *name, bool *found) {
  size_t low = 0, high = family_count;
  *found = false;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    int order = strcmp(families[mid]->name, name);
    if (order == 0) *found = true;
    if (order < 0) {
      low = mid + 1;
    } else {
      high = mid;
    }
  }
  return low;
}

static struct mw_metric *family_new(const struct mw_metric_spec *spec) {
  struct mw_metric *m = mw_xcalloc(1, sizeof *m);
  m->name = mw_xstrdup(spec->name);
  m->help = mw_xstrdup(spec->help != NULL ? spec->help : "");
  m->type = spec->type;
  m->label_count = spec->label_count;
  m->labels = mw_xcalloc(spec->label_count, sizeof *m->labels);
  for (size_t i = 0; i < spec->label_count; i++) m->labels[i] = mw_xstrdup(spec->labels[i]);
  m->bucket_count = spec->bucket_count;
  m->buckets = mw_xcalloc(spec->bucket_count, sizeof *m->buckets);
  for (size_t i = 0; i < spec->bucket_count; i++) m->buckets[i] = spec->buckets[i];
  m->series_max = spec->series_max != 0 ? spec->series_max : MW_METRIC_SERIES_DEFAULT;
  mw_map_init(&m->series);
  return m;
}

// Under the mutex. Whether nobody needs it any more.
static bool is_over(const struct mw_metric *m) {
  return !m->lasting && m->holders == 0 && m->pins == 0 && m->series.count == 0;
}

static void family_free(struct mw_metric *m) {
  for (size_t i = 0; i < m->label_count; i++) mw_free(m->labels[i]);
  mw_free(m->labels);
  mw_free(m->buckets);
  mw_free(m->name);
  mw_free(m->help);
  mw_map_deinit(&m->series);
  mw_free(m);
}

static void unlist_family(size_t at) {
  families[at]->listed = false;
  family_count--;
  memmove(families + at, families + at + 1, (family_count - at) * sizeof *families);
}

static void insert_family(size_t at, struct mw_metric *m) {
  m->listed = true;
  families = mw_xrealloc(families, (family_count + 1) * sizeof *families);
  memmove(families + at + 1, families + at, (family_count - at) * sizeof *families);
  families[at] = m;
  family_count++;
}

struct mw_metric *mw_metric_family(const struct mw_metric_spec *spec) {
  struct mw_err err = {0};
  struct mw_metric *m = NULL;
  if (check_spec(spec, &err) == 0) {
    bool found;
    pthread_mutex_lock(&lock);
    size_t at = place_of(spec->name, &found);
    if (found && !families[at]->lasting && !same_shape(families[at], spec)) {
      unlist_family(at);  // a script was faster
      found = false;
    }
    if (!found) insert_family(at, family_new(spec));
    if (same_shape(families[at], spec)) {
      m = families[at];
      m->lasting = true;
    } else {
      mw_err_set(&err, MW_EEXIST, "metric %s is declared twice and differently", spec->name);
    }
    pthread_mutex_unlock(&lock);
  }
  if (m == NULL) {
    fprintf(stderr, "moonwatch: %s\n", err.message);
    abort();
  }
  return m;
}

struct mw_metric *mw_metric_hold(const struct mw_metric_spec *spec, struct mw_err *err) {
  if (check_spec(spec, err) < 0) return NULL;
  struct mw_metric *m = NULL;
  bool found;
  pthread_mutex_lock(&lock);
  size_t at = place_of(spec->name, &found);
  if (found && families[at]->lasting) {
    mw_err_set(err, MW_EEXIST, "metric %s is one of Moonwatch's own", spec->name);
  } else {
    if (found && !same_shape(families[at], spec)) {
      unlist_family(at);
      found = false;
    }
    if (!found) insert_family(at, family_new(spec));
    m = families[at];
    m->holders++;
  }
  pthread_mutex_unlock(&lock);
  return m;
}

void mw_metric_release(struct mw_metric *m) {
  pthread_mutex_lock(&lock);
  assert(m->holders > 0);
  m->holders--;
  if (m->holders == 0 && m->listed && !m->lasting) {
    bool found;
    unlist_family(place_of(m->name, &found));
  }
  bool over = is_over(m);
  pthread_mutex_unlock(&lock);
  if (over) family_free(m);
}

size_t mw_metric_label_count(const struct mw_metric *m) { return m->label_count; }

// A scrape or a name that is too long for its buffer ends there; the caller sees it at the end.
static void put(struct mw_buf *b, int *rc, const char *p, size_t n) {
  int added = mw_buf_add(b, p, n);
  if (*rc == 0) *rc = added;
}

static void put_text(struct mw_buf *b, int *rc, const char *s) { put(b, rc, s, strlen(s)); }

// The length of the UTF-8 sequence at p, which is followed by a NUL; 0 when it is none.
static size_t sequence_at(const unsigned char *p) {
  size_t n = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
  if (p[0] > 0xF4) return 0;
  for (size_t i = 1; i < n; i++) {
    if ((p[i] & 0xC0) != 0x80) return 0;
  }
  if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
      (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F)) {
    return 0;
  }
  return n;
}

static void put_escaped(struct mw_buf *b, int *rc, const char *s, size_t limit, bool quotes) {
  for (size_t used = 0; *s != '\0';) {
    size_t n = sequence_at((const unsigned char *)s);
    used += n > 0 ? n : 1;
    if (used > limit) return;
    if (n == 0) {
      put_text(b, rc, "\xEF\xBF\xBD");
    } else if (*s == '\n') {
      put_text(b, rc, "\\n");
    } else if (*s == '\\' || (quotes && *s == '"')) {
      put(b, rc, (const char[]){'\\', *s}, 2);
    } else {
      put(b, rc, s, n);
    }
    s += n > 0 ? n : 1;
  }
}

// The labels with their values as they are shown; the caller frees it.
static char *render_labels(const struct mw_metric *m, const char *const *values) {
  struct mw_buf b;
  mw_buf_init(&b, SIZE_MAX / 2);  // bounded by labels and values
  int rc = 0;
  put_text(&b, &rc, "");
  for (size_t i = 0; i < m->label_count; i++) {
    if (i > 0) put_text(&b, &rc, ",");
    put_text(&b, &rc, m->labels[i]);
    put_text(&b, &rc, "=\"");
    put_escaped(&b, &rc, values[i], MW_METRIC_VALUE_MAX, true);
    put_text(&b, &rc, "\"");
  }
  assert(rc == 0);
  return b.p;
}

static struct mw_series *series_new(struct mw_metric *m, char *labels) {
  struct mw_series *s = mw_xcalloc(1, sizeof *s);
  s->family = m;
  s->labels = labels;
  if (m->type == MW_METRIC_HISTOGRAM) {
    s->counts = mw_xcalloc(m->bucket_count + 1, sizeof *s->counts);
  }
  mw_live_add(MW_LIVE_SERIES, 1);
  return s;
}

static void series_free(struct mw_series *s) {
  mw_live_add(MW_LIVE_SERIES, -1);
  mw_free(s->counts);
  mw_free(s->labels);
  mw_free(s);
}

static struct mw_series *insert_series(struct mw_metric *m, char *labels) {
  struct mw_series *s = series_new(m, labels);
  mw_map_set(&m->series, mw_slice_str(labels), s);
  return s;
}

// The series that all above the limit share: one more in the map.
static struct mw_series *overflow_of(struct mw_metric *m) {
  const char *values[MW_METRIC_LABEL_MAX];
  for (size_t i = 0; i < MW_METRIC_LABEL_MAX; i++) values[i] = "overflow";
  char *labels = render_labels(m, values);
  struct mw_series *s = mw_map_get(&m->series, mw_slice_str(labels));
  if (s == NULL) return insert_series(m, labels);
  mw_free(labels);
  return s;
}

struct mw_series *mw_metric_series(struct mw_metric *m, const char *const *values) {
  char *labels = render_labels(m, values);
  bool warn = false;
  pthread_mutex_lock(&lock);
  struct mw_series *s = mw_map_get(&m->series, mw_slice_str(labels));
  if (s == NULL && m->series.count >= m->series_max) {
    s = overflow_of(m);
    warn = !m->warned;
    m->warned = true;
  } else if (s == NULL) {
    s = insert_series(m, labels);
    labels = NULL;
  }
  s->owners++;
  pthread_mutex_unlock(&lock);
  mw_free(labels);
  if (warn) {
    mw_log(MW_LOG_WARN, "a metric has too many series: further ones are counted as \"overflow\"",
           MW_STR("metric", m->name), MW_INT("limit", m->series_max));
  }
  return s;
}

void mw_series_unref(struct mw_series *s) {
  if (s == NULL) return;
  struct mw_metric *m = s->family;
  pthread_mutex_lock(&lock);
  assert(s->owners > 0);
  bool last = --s->owners == 0;
  if (last) mw_map_del(&m->series, mw_slice_str(s->labels));
  bool gone = last && s->pins == 0;
  bool over = is_over(m);
  pthread_mutex_unlock(&lock);
  if (gone) series_free(s);
  if (over) family_free(m);
}

static double to_double(uint64_t bits) {
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

static uint64_t to_bits(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}

static void add(_Atomic uint64_t *to, double v) {
  uint64_t bits = atomic_load_explicit(to, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(to, &bits, to_bits(to_double(bits) + v),
                                                memory_order_relaxed, memory_order_relaxed)) {
  }
}

void mw_series_add(struct mw_series *s, double v) {
  assert(s->family->type != MW_METRIC_HISTOGRAM);
  assert(s->family->type != MW_METRIC_COUNTER || v >= 0);
  add(&s->value, v);
}

void mw_series_set(struct mw_series *s, double v) {
  assert(s->family->type != MW_METRIC_HISTOGRAM);
  atomic_store_explicit(&s->value, to_bits(v), memory_order_relaxed);
}

void mw_series_observe(struct mw_series *s, double v) {
  const struct mw_metric *m = s->family;
  assert(m->type == MW_METRIC_HISTOGRAM);
  if (isnan(v)) return;
  size_t low = 0, high = m->bucket_count;  // the first bound that is not below v
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (m->buckets[mid] < v) {
      low = mid + 1;
    } else {
      high = mid;
    }
  }
  atomic_fetch_add_explicit(&s->counts[low], 1, memory_order_relaxed);
  add(&s->value, v);
}

double mw_series_value(const struct mw_series *s) {
  return to_double(atomic_load_explicit(&s->value, memory_order_relaxed));
}

// The shortest text that reads as the same double.
static void format_number(char out[static 32], double v) {
  if (isnan(v)) {
    snprintf(out, 32, "NaN");
  } else if (isinf(v)) {
    snprintf(out, 32, v > 0 ? "+Inf" : "-Inf");
  } else {
    for (int digits = 15; digits <= 17; digits++) {
      snprintf(out, 32, "%.*g", digits, v);
      if (strtod(out, NULL) == v) break;
    }
  }
}

// name_suffix{labels,le="bound"} value
static void put_line(struct mw_buf *out, int *rc, const struct mw_series *s, const char *suffix,
                     const char *le, const char *value) {
  put_text(out, rc, s->family->name);
  put_text(out, rc, suffix);
  bool labelled = s->labels[0] != '\0';
  if (labelled || le != NULL) {
    put_text(out, rc, "{");
    put_text(out, rc, s->labels);
    if (le != NULL) {
      put_text(out, rc, labelled ? ",le=\"" : "le=\"");
      put_text(out, rc, le);
      put_text(out, rc, "\"");
    }
    put_text(out, rc, "}");
  }
  put_text(out, rc, " ");
  put_text(out, rc, value);
  put_text(out, rc, "\n");
}

// The count is the sum of what the buckets have, so the two agree also while others observe.
static void put_histogram(struct mw_buf *out, int *rc, const struct mw_series *s) {
  char bound[32], value[32];
  uint64_t total = 0;
  for (size_t i = 0; i <= s->family->bucket_count; i++) {
    total += atomic_load_explicit(&s->counts[i], memory_order_relaxed);
    snprintf(value, sizeof value, "%" PRIu64, total);
    format_number(bound, i < s->family->bucket_count ? s->family->buckets[i] : INFINITY);
    put_line(out, rc, s, "_bucket", bound, value);
  }
  char sum[32];
  format_number(sum, mw_series_value(s));
  put_line(out, rc, s, "_sum", NULL, sum);
  put_line(out, rc, s, "_count", NULL, value);
}

static int by_labels(const void *a, const void *b) {
  return strcmp((*(struct mw_series *const *)a)->labels, (*(struct mw_series *const *)b)->labels);
}

// What a writer reads of a family, which it has pinned itself; freed by unpin.
static struct mw_series **pin(struct mw_metric *m, size_t *count) {
  pthread_mutex_lock(&lock);
  struct mw_series **list = mw_xcalloc(m->series.count, sizeof *list);
  size_t n = 0, cursor = 0;
  void *value;
  while (mw_map_next(&m->series, &cursor, NULL, &value)) list[n++] = value;
  for (size_t i = 0; i < n; i++) list[i]->pins++;
  pthread_mutex_unlock(&lock);
  *count = n;
  return list;
}

static void unpin(struct mw_metric *m, struct mw_series **list, size_t count) {
  size_t gone = 0;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < count; i++) {
    if (--list[i]->pins == 0 && list[i]->owners == 0) list[gone++] = list[i];
  }
  m->pins--;
  bool over = is_over(m);
  pthread_mutex_unlock(&lock);
  for (size_t i = 0; i < gone; i++) series_free(list[i]);
  if (over) family_free(m);
  mw_free(list);
}

static void put_family(struct mw_buf *out, int *rc, struct mw_metric *m) {
  static const char *const types[] = {"counter", "gauge", "histogram"};
  size_t count;
  struct mw_series **list = pin(m, &count);
  qsort(list, count, sizeof *list, by_labels);
  if (count > 0 && *rc == 0) {
    put_text(out, rc, "# HELP ");
    put_text(out, rc, m->name);
    put_text(out, rc, " ");
    put_escaped(out, rc, m->help, SIZE_MAX, false);
    put_text(out, rc, "\n# TYPE ");
    put_text(out, rc, m->name);
    put_text(out, rc, " ");
    put_text(out, rc, types[m->type]);
    put_text(out, rc, "\n");
  }
  for (size_t i = 0; i < count && *rc == 0; i++) {
    if (m->type == MW_METRIC_HISTOGRAM) {
      put_histogram(out, rc, list[i]);
    } else {
      char value[32];
      format_number(value, mw_series_value(list[i]));
      put_line(out, rc, list[i], "", NULL, value);
    }
  }
  unpin(m, list, count);
}

int mw_metric_write(struct mw_buf *out) {
  pthread_mutex_lock(&hook_lock);
  for (struct hook *h = hooks; h != NULL; h = h->next) h->cb(h->ctx);
  pthread_mutex_unlock(&hook_lock);

  pthread_mutex_lock(&lock);
  size_t count = family_count;
  struct mw_metric **list = mw_xcalloc(count, sizeof(void *));
  for (size_t i = 0; i < count; i++) {
    list[i] = families[i];
    list[i]->pins++;
  }
  pthread_mutex_unlock(&lock);
  int rc = 0;
  for (size_t i = 0; i < count; i++) put_family(out, &rc, list[i]);
  mw_free(list);
  return rc;
}

void mw_metric_on_write(mw_metric_cb cb, void *ctx) {
  struct hook *h = mw_xmalloc(sizeof *h);
  pthread_mutex_lock(&hook_lock);
  *h = (struct hook){.cb = cb, .ctx = ctx, .next = hooks};
  hooks = h;
  pthread_mutex_unlock(&hook_lock);
}

void mw_metric_off_write(mw_metric_cb cb, void *ctx) {
  pthread_mutex_lock(&hook_lock);
  struct hook **at = &hooks;
  while (*at != NULL && ((*at)->cb != cb || (*at)->ctx != ctx)) at = &(*at)->next;
  struct hook *h = *at;
  if (h != NULL) *at = h->next;
  pthread_mutex_unlock(&hook_lock);
  mw_free(h);
}
