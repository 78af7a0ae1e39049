// SPDX-License-Identifier: Apache-2.0
// A cached Kubernetes object: immutable, refcounted, packed, one allocation.
//
// Ownership: mw_object_new() returns +1; whoever stores a pointer takes its own +1 with
// mw_object_ref(). The count is atomic: objects cross threads by reference, and the last unref
// frees on the spot, whichever thread that is.
//
// Unpacked stay: key, uid, resourceVersion, flags, and a 4-byte fingerprint per label, enough to
// say "surely not" without unpacking. Everything else is in the packed bytes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "wire/item.h"
#include "wire/json.h"
#include "wire/pack.h"

enum { MW_OBJECT_KEY_MAX = 1024, MW_OBJECT_UID_MAX = 128, MW_OBJECT_RV_MAX = 128 };

struct mw_object;

// Packs an item. NULL when it cannot be stored: refused, no metadata, no name, or key, uid or rv
// longer than the maxima above (err says which). is_new: no version of it is stored yet, as far as
// the caller knows (pack.h).
struct mw_object *mw_object_new(const struct mw_item *item, struct mw_packer *packer, bool is_new,
                                struct mw_err *err);
struct mw_object *mw_object_ref(struct mw_object *o);  // NULL in, NULL out
void mw_object_unref(struct mw_object *o);             // NULL is fine
// Unrefs n objects that were not looked at for long, without waiting for each to come from memory.
void mw_object_unref_all(struct mw_object *const *v, size_t n);

// "namespace/name", or "name" without a namespace (S-STO-01).
struct mw_slice mw_object_key(const struct mw_object *o);
struct mw_slice mw_object_ns(const struct mw_object *o);
struct mw_slice mw_object_name(const struct mw_object *o);
struct mw_slice mw_object_rv(const struct mw_object *o);
uint32_t mw_object_hash(const struct mw_object *o);  // mw_hash(key)
// metadata.deletionTimestamp is set.
bool mw_object_deleting(const struct mw_object *o);
// Parts of what the server sent may be missing, by a projection or a transform: it must not be
// written back whole.
bool mw_object_partial(const struct mw_object *o);
// Writes the uid and a NUL to out (at least MW_OBJECT_UID_MAX + 1 bytes); returns its length.
size_t mw_object_uid(const struct mw_object *o, char *out);
bool mw_object_same_uid(const struct mw_object *a, const struct mw_object *b);
// Same uid and resourceVersion as the item: nothing to pack again. Never without a version.
bool mw_object_same_version(const struct mw_object *o, const struct mw_item *item);

// Sizes: of the JSON, and of the whole allocation.
size_t mw_object_raw_size(const struct mw_object *o);
size_t mw_object_memory(const struct mw_object *o);

// The JSON, unpacked into u's memory: valid until u is used again. {NULL, 0}: damaged.
struct mw_slice mw_object_json(const struct mw_object *o, struct mw_unpacker *u);
// Begins to unpack it: mw_unpack_more (wire/pack.h) goes on as far as is wanted, as long as o is
// there. What stands early, as the metadata does, then comes at a fraction of the cost.
void mw_object_unpack(const struct mw_object *o, struct mw_unpacker *u);
// Where the section of this name begins in the JSON, and a member of the section that begins there:
// mw_packed_section and mw_packed_member (wire/pack.h), which answer without unpacking, or not at
// all.
size_t mw_object_section(const struct mw_object *o, struct mw_slice name);
int mw_object_member(const struct mw_object *o, size_t section, struct mw_slice name,
                     struct mw_packed_member *m);
// The member at a path of two names; negative for any other path, too.
int mw_object_member_at(const struct mw_object *o, const struct mw_path *path,
                        struct mw_packed_member *m);
// Somebody will soon ask for one of these: begins to fetch what they look at first.
void mw_object_prefetch(const struct mw_object *o);
// From the start of an object's JSON to the value of metadata's member `key`: 1 found, 0 absent,
// negative when the JSON ends or breaks before that is known (then look at the whole).
int mw_object_metadata(struct mw_json *c, struct mw_slice key);

// Fingerprints: false means surely not; true means look.
bool mw_object_may_have_label(const struct mw_object *o, struct mw_slice key);
bool mw_object_may_have_label_value(const struct mw_object *o, struct mw_slice key,
                                    struct mw_slice value);
// The label's value by unpacking as far as the metadata: 1 and *value (valid until u is used
// again), or 0.
int mw_object_label(const struct mw_object *o, struct mw_unpacker *u, struct mw_slice key,
                    struct mw_slice *value);

// Splits a key: 0 slashes: no namespace; 1: namespace and name; more: MW_EINVAL "unexpected key
// format" (S-STO-02).
int mw_key_split(struct mw_slice key, struct mw_slice *ns, struct mw_slice *name);

// Compares two resource versions (S-REST-11): -1, 0, 1 into *order, or MW_EINVAL when one of them
// is not a plain positive decimal. Lengths are not limited.
int mw_rv_compare(struct mw_slice a, struct mw_slice b, int *order);

// A counted array of objects, each +1.
struct mw_object_list {
  struct mw_object **v;
  size_t n;
  size_t cap;
};

// Appends and takes its own +1. NULL is an entry too.
void mw_object_list_add(struct mw_object_list *l, struct mw_object *o);
// Appends and takes over the caller's +1.
void mw_object_list_give(struct mw_object_list *l, struct mw_object *o);
void mw_object_list_deinit(struct mw_object_list *l);

// Gives freed memory back to the system when, of all objects in the process, more than 10,000 and
// more than a quarter are gone since their peak, as old states are behind a relist; true if it did,
// which takes some milliseconds. Cheap otherwise: call it after removals. The peak is what earlier
// calls saw, so call it before a mass removal too.
bool mw_object_trim(void);
