// SPDX-License-Identifier: Apache-2.0
// What is packed comes back, before and after the freeze, and beside a text that is like it, from
// liblz4 as well; damaged bytes are refused or at least read within bounds. The first two bytes
// choose the claimed size of the damaged object, and where the text is cut that another is packed
// beside.
#include "near.h"

#include "wire/pack.h"

enum { OBJECTS = 300 };

static struct mw_slice unpack(struct mw_unpacker *u, struct mw_dict *dict, struct mw_slice packed,
                              size_t raw_len, size_t want) {
  mw_unpack_begin(u, dict, packed, raw_len);
  return mw_unpack_more(u, want);
}

static void check_round_trip(struct mw_packer *p, struct mw_unpacker *u, struct mw_slice raw) {
  struct mw_dict *dict;
  char *out = mw_xmalloc(mw_pack_bound(raw.n) + 1);
  size_t n =
      mw_pack(p, &(struct mw_pack_hint){.name = MW_SLICE("a-1"), .is_new = true}, raw, out, &dict);
  require(n <= raw.n);
  struct mw_slice back = unpack(u, dict, mw_slice(out, n), raw.n, raw.n);
  require(back.p != NULL && mw_slice_eq(back, raw));
  mw_unpack_begin(u, dict, mw_slice(out, n), raw.n);
  for (size_t want = 0; want < raw.n; want += 1 + raw.n / 5) {
    back = mw_unpack_more(u, want);
    require(back.p != NULL && back.n >= want && memcmp(back.p, raw.p, back.n) == 0);
  }
  mw_free(out);
}

// liblz4 is particular about the end of a text and takes a match that is no way back, we are the
// other way round; what both take they take alike. Memory is of exactly the size that is promised.
static void check_damaged(struct mw_slice dict, struct mw_slice packed, size_t claimed) {
  char *ours = mw_xmalloc(claimed + MW_LZ_SLACK), *theirs = mw_xmalloc(claimed + 1);
  char *beside = mw_xmalloc(dict.n + MW_LZ_SLACK), *in = mw_xmalloc(packed.n);
  memcpy(beside, dict.p, dict.n);
  memcpy(in, packed.p, packed.n);
  struct mw_lz_text t = {.packed = {in, packed.n}, .dict = {beside, dict.n}, .out = ours};
  t.all = claimed;
  bool taken = mw_lz_unpack(&t, claimed / 2) && mw_lz_unpack(&t, claimed);
  int n =
      LZ4_decompress_safe_usingDict(in, theirs, (int)packed.n, (int)claimed, beside, (int)dict.n);
  if (taken && n == (int)claimed) require(memcmp(ours, theirs, claimed) == 0);
  mw_free(ours);
  mw_free(theirs);
  mw_free(beside);
  mw_free(in);
}

// The input beside itself with a hole, and its parts beside each other.
static void check_parts(struct mw_slice raw, size_t at) {
  size_t cut = raw.n > 0 ? at % raw.n : 0, hole = (raw.n - cut) / 3;
  char *holed = mw_xmalloc(raw.n + 1);
  memcpy(holed, raw.p, cut);
  memcpy(holed + cut, raw.p + cut + hole, raw.n - cut - hole);
  struct mw_slice other = mw_slice(holed, raw.n - hole);
  check_near(other, raw, NULL, NULL);
  check_near(raw, other, NULL, NULL);
  check_near(mw_slice(raw.p, cut), mw_slice(raw.p + cut, raw.n - cut), NULL, NULL);
  mw_free(holed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  struct mw_packer *p = mw_packer_new();
  struct mw_unpacker *u = mw_unpacker_new();
  struct mw_slice raw = {(const char *)data + 2, size - 2};
  check_round_trip(p, u, raw);
  // Slices of the input stand for the objects of an informer.
  struct mw_dict *dict;
  char *out = mw_xmalloc(mw_pack_bound(raw.n) + 1);
  for (size_t i = 0; i < OBJECTS && raw.n > 0; i++) {
    size_t from = i * 7 % raw.n;
    mw_pack(p, &(struct mw_pack_hint){.name = MW_SLICE("a-2"), .is_new = true},
            mw_slice(raw.p + from, raw.n - from), out, &dict);
  }
  mw_free(out);
  require(raw.n == 0 || mw_packer_dict(p) != NULL);
  check_round_trip(p, u, raw);
  size_t claimed = (size_t)data[0] << 4 | data[1];
  struct mw_slice odd = unpack(u, mw_packer_dict(p), raw, claimed, claimed);
  require(odd.p == NULL || odd.n == claimed);
  odd = unpack(u, mw_packer_dict(p), raw, claimed, claimed / 2);
  require(odd.p == NULL || odd.n >= claimed / 2);
  size_t cut = raw.n / 3;
  check_damaged(mw_slice(raw.p, cut), mw_slice(raw.p + cut, raw.n - cut), claimed);
  check_parts(raw, claimed);
  mw_packer_free(p);
  mw_unpacker_free(u);
  return 0;
}
