// SPDX-License-Identifier: Apache-2.0
// The store and its indexes. Belongs to the script thread: one writer, readers without locks.
//
// TRAPs decided: an index function that fails on a write never breaks the write and never leaves
// half an index: the object has no values in that index, and the failure is counted and reported
// (S-STO-23). One that fails on the first existing objects refuses the registration. Index values
// are remembered per object, so removal never calls the function again and a function that changes
// its mind cannot strand an entry. Indexes can be removed (our extension to S-STO-27). Index
// functions may be scripts that call back here: they may read, but while one runs the set of
// indexes stays as it is.
//
// Several who share the store (the generations of a script, an old and a new one) each have indexes
// of their own: `owner`, whatever it points to, says whose names are meant. Indexes of equal
// identity are built once and shared; each goes with the last name that it has.
//
// The index `namespace` is always there, for every owner, and needs no memory per object beyond its
// set.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cache/extract.h"
#include "cache/index.h"
#include "cache/object.h"
#include "cache/objmap.h"
#include "cache/selector.h"

struct mw_indexer;

struct mw_indexer *mw_indexer_new(void);
void mw_indexer_free(struct mw_indexer *ix);

// Adds all or none: MW_EEXIST names a clash, MW_ESCRIPT or another code an object that the function
// fails on. The first MW_INDEX_AT_ONCE existing objects are indexed before it returns, and the rest
// by mw_indexer_build, so that a large store stops nobody; from there on failures are those of
// writes. Nobody reads half an index: whoever is earlier than that builds the rest (S-STO-26).
// MW_ESTATE inside an index function.
enum { MW_INDEX_AT_ONCE = 256 };
int mw_indexer_add_indexes(struct mw_indexer *ix, const void *owner,
                           const struct mw_index_spec *specs, size_t count, struct mw_err *err)
    __attribute__((warn_unused_result));
// MW_ENOTFOUND when there is none of that name; `namespace` cannot be removed (MW_EINVAL).
// MW_ESTATE inside an index function.
int mw_indexer_remove_index(struct mw_indexer *ix, const void *owner, struct mw_slice name,
                            struct mw_err *err);
// Removes all that the owner has, also inside an index function: those that are called there go
// when it has returned.
void mw_indexer_drop_owner(struct mw_indexer *ix, const void *owner);
// Goes on with indexes that are not built yet until the deadline (mw_clock_now()); true when there
// are none.
bool mw_indexer_build(struct mw_indexer *ix, uint64_t deadline);
// Whether all that the owner has are built.
bool mw_indexer_is_built(const struct mw_indexer *ix, const void *owner);
// Calls cb with the name of each index that the owner has.
void mw_indexer_each_index(const struct mw_indexer *ix, const void *owner,
                           void (*cb)(void *ctx, struct mw_slice name), void *ctx);
// Upsert: takes its own +1, moves the store RV to the object's unless it has none. Returns the
// replaced object with its +1, or NULL. Writing the very object that is stored touches no index.
struct mw_object *mw_indexer_upsert(struct mw_indexer *ix, struct mw_object *o);
// Returns the removed object with its +1, or NULL. rv (the deletion event's) becomes the store RV
// unless empty, also when the key was unknown (S-STO-10, 30).
struct mw_object *mw_indexer_remove(struct mw_indexer *ix, struct mw_slice key, struct mw_slice rv);
// Makes the store exactly `all` (last of duplicate keys wins) and its RV rv. An object that is the
// same before and after exists once; of one that is not, both states do until olds and gone are
// released: the store is the old one until the snapshot is complete, and the new one before anybody
// is told. olds gets one entry per item of all: the object it replaced with +1, or NULL; gone gets
// what is no longer there. When the index functions take more than 2 s of it, a warning names the
// slowest.
void mw_indexer_replace(struct mw_indexer *ix, const struct mw_object_list *all, struct mw_slice rv,
                        struct mw_object_list *olds, struct mw_object_list *gone);
// One longer than MW_OBJECT_RV_MAX is ignored.
void mw_indexer_set_rv(struct mw_indexer *ix, struct mw_slice rv);

// Reads. Results are borrowed unless a list takes its own +1.
struct mw_object *mw_indexer_get(const struct mw_indexer *ix, struct mw_slice key);
size_t mw_indexer_count(const struct mw_indexer *ix);
struct mw_slice mw_indexer_rv(const struct mw_indexer *ix);  // "" until something was applied
// Appends what matches: namespace "" is all of them, selector NULL everything (S-LST-02, 03).
void mw_indexer_list(const struct mw_indexer *ix, struct mw_slice ns,
                     const struct mw_selector *selector, struct mw_unpacker *u,
                     struct mw_object_list *out);
// Objects under one value; MW_ENOTFOUND for an unknown index name (S-STO-24).
int mw_indexer_by_index(struct mw_indexer *ix, const void *owner, struct mw_slice index,
                        struct mw_slice value, struct mw_object_list *out, struct mw_err *err);
// Objects that share a value with o, each once.
int mw_indexer_index(struct mw_indexer *ix, const void *owner, struct mw_slice index,
                     struct mw_object *o, struct mw_object_list *out, struct mw_err *err);
// The keys under one value, sorted ascending.
int mw_indexer_index_keys(struct mw_indexer *ix, const void *owner, struct mw_slice index,
                          struct mw_slice value, struct mw_values *out, struct mw_err *err);
// The values that have at least one object; none for an unknown name (S-STO-25).
void mw_indexer_index_values(struct mw_indexer *ix, const void *owner, struct mw_slice index,
                             struct mw_values *out);

struct mw_indexer_stats {
  size_t objects;
  size_t object_bytes;  // packed objects with their headers
  size_t map_bytes;     // store and index tables
  unsigned long long index_failures;
};
void mw_indexer_stats(const struct mw_indexer *ix, struct mw_indexer_stats *out);
