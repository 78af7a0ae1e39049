// SPDX-License-Identifier: Apache-2.0
// What is packed comes back, before and after the freeze; damaged bytes are refused or at least
// read within bounds. The first two bytes choose the claimed size of the damaged object.
#include "fuzz.h"

#include "base/alloc.h"
#include "wire/pack.h"

enum { OBJECTS = 300 };

static void check_round_trip(struct mw_packer *p, struct mw_unpacker *u, struct mw_slice raw) {
  struct mw_dict *dict;
  char *out = mw_xmalloc(mw_pack_bound(raw.n) + 1);
  size_t n = mw_pack(p, raw, out, &dict);
  require(n <= raw.n);
  struct mw_slice back = mw_unpack(u, dict, mw_slice(out, n), raw.n, raw.n);
  require(back.p != NULL && mw_slice_eq(back, raw));
  back = mw_unpack(u, dict, mw_slice(out, n), raw.n, raw.n / 2);
  require(back.p != NULL && back.n >= raw.n / 2 && memcmp(back.p, raw.p, raw.n / 2) == 0);
  mw_free(out);
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
    mw_pack(p, mw_slice(raw.p + from, raw.n - from), out, &dict);
  }
  mw_free(out);
  require(raw.n == 0 || mw_packer_dict(p) != NULL);
  check_round_trip(p, u, raw);
  size_t claimed = (size_t)data[0] << 4 | data[1];
  struct mw_slice odd = mw_unpack(u, mw_packer_dict(p), raw, claimed, claimed);
  require(odd.p == NULL || odd.n == claimed);
  odd = mw_unpack(u, mw_packer_dict(p), raw, claimed, claimed / 2);
  require(odd.p == NULL || odd.n >= claimed / 2);
  mw_packer_free(p);
  mw_unpacker_free(u);
  return 0;
}
