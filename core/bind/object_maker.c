// SPDX-License-Identifier: Apache-2.0
#include "bind/object_maker.h"

#include "bind/codec.h"
#include "wire/item.h"

void mw_object_maker_init(struct mw_object_maker *m) {
  m->packer = mw_packer_new();
  m->scanner = mw_item_scanner_new(m->packer);
  mw_buf_init(&m->json, MW_ITEM_SIZE_MAX);
}

void mw_object_maker_deinit(struct mw_object_maker *m) {
  mw_item_scanner_free(m->scanner);
  mw_packer_free(m->packer);
  mw_buf_deinit(&m->json);
  *m = (struct mw_object_maker){0};
}

struct mw_object *mw_object_make(struct mw_object_maker *m, struct lua_State *L, int idx,
                                 bool is_new, struct mw_err *err) {
  mw_buf_reset(&m->json);
  if (mw_codec_encode(L, idx, &m->json, err) < 0) return NULL;
  struct mw_json c = {m->json.p, m->json.p + m->json.n};
  struct mw_item item;
  if (mw_item_scan(m->scanner, &c, mw_projection_all(), NULL, &item, err) < 0) return NULL;
  item.partial = true;  // as far as anybody can tell
  return mw_object_new(&item, m->packer, is_new, err);
}
