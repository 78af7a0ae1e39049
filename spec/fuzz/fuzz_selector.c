// SPDX-License-Identifier: Apache-2.0
// Input: a selector. Read as a label selector and as a field selector: what is accepted prints to
// a text that is accepted and prints to itself; what is refused says why. A label selector matches
// an object by its fingerprints and bytes exactly when it matches the same labels one by one.
#include "fuzz.h"

#include "cache/object.h"
#include "cache/selector.h"

enum { TEXT_MAX = 4 * MW_SELECTOR_LENGTH_MAX };

static const struct mw_item_label labels[] = {
    {MW_SLICE("x"), MW_SLICE("a")},   {MW_SLICE("app"), MW_SLICE("web")},
    {MW_SLICE("n"), MW_SLICE("42")},  {MW_SLICE("example.com/t"), MW_SLICE("")},
    {MW_SLICE("in"), MW_SLICE("in")},
};
static const size_t label_count = sizeof labels / sizeof labels[0];
static const char json[] =
    "{\"metadata\":{\"name\":\"o\",\"labels\":{\"x\":\"a\",\"app\":\"web\",\"n\":\"42\","
    "\"example.com/t\":\"\",\"in\":\"in\"}}}";

static bool get_label(void *ctx, const struct mw_slice *key, struct mw_slice *value) {
  (void)ctx;
  for (size_t i = 0; i < label_count; i++) {
    if (!mw_slice_eq(*key, labels[i].key)) continue;
    *value = labels[i].value;
    return true;
  }
  return false;
}

static struct mw_object *make_object(void) {
  struct mw_item item = {.json = mw_slice(json, sizeof json - 1),
                         .name = MW_SLICE("o"),
                         .labels = labels,
                         .label_count = label_count,
                         .has_metadata = true};
  struct mw_packer *packer = mw_packer_new();
  struct mw_object *o = mw_object_new(&item, packer, true, NULL);
  mw_packer_free(packer);
  return o;
}

static void check_matching(const struct mw_selector *s) {
  static struct mw_object *object;
  static struct mw_unpacker *unpacker;
  if (object == NULL) {
    object = make_object();
    unpacker = mw_unpacker_new();
  }
  bool direct = mw_selector_matches(s, get_label, NULL);
  require(mw_selector_matches_object(s, object, unpacker) == direct);
}

static void check_labels(struct mw_slice text) {
  struct mw_err err = {0};
  struct mw_selector *s = mw_selector_parse(text, &err);
  if (s == NULL) {
    require(err.code < 0 && err.message[0] != '\0');
    return;
  }
  struct mw_buf first;
  struct mw_buf second;
  mw_buf_init(&first, TEXT_MAX);
  mw_buf_init(&second, TEXT_MAX);
  require(mw_selector_format(s, &first) == 0);
  struct mw_selector *again = mw_selector_parse(mw_buf_slice(&first), &err);
  require(again != NULL);
  require(mw_selector_format(again, &second) == 0);
  require(mw_slice_eq(mw_buf_slice(&first), mw_buf_slice(&second)));
  check_matching(s);
  mw_buf_deinit(&first);
  mw_buf_deinit(&second);
  mw_selector_free(again);
  mw_selector_free(s);
}

static void check_fields(struct mw_slice text) {
  struct mw_err err = {0};
  struct mw_buf first;
  struct mw_buf second;
  mw_buf_init(&first, TEXT_MAX);
  mw_buf_init(&second, TEXT_MAX);
  if (mw_field_selector_check(text, &first, &err) == 0) {
    require(mw_field_selector_check(mw_buf_slice(&first), &second, &err) == 0);
    require(mw_slice_eq(mw_buf_slice(&first), mw_buf_slice(&second)));
  } else {
    require(err.code < 0 && err.message[0] != '\0');
  }
  mw_buf_deinit(&first);
  mw_buf_deinit(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct mw_slice text = {(const char *)data, size};
  check_labels(text);
  check_fields(text);
  return 0;
}
