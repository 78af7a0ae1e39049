// SPDX-License-Identifier: Apache-2.0
// Packed bytes: LZ4 with a dictionary that is collected from the stream and then frozen.
//
// A packer belongs to one thread (the one that ingests) and one informer. It gathers samples from
// what it packs; once it has enough it freezes them into a dictionary, and once more later if many
// objects turn out to be different. What was packed before that stays readable: each packed object
// carries a reference to the dictionary it was made with, or none. Dictionaries are immutable and
// refcounted, and shared between threads.
//
// Objects whose names differ only behind the last '-' or '.', as those of one Deployment or
// StatefulSet do, are a family. Once it has enough members, one of them becomes its template, a
// dictionary of one object, and the others are packed as what they have different: half the size,
// in a third of the time. A template is not packed itself, so only new objects count as members,
// else one that is updated often would be a family; and it goes when none of them is left.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "wire/template.h"

struct mw_dict;  // refcounted
struct mw_packer;

struct mw_dict *mw_dict_ref(struct mw_dict *d);  // NULL in, NULL out
void mw_dict_unref(struct mw_dict *d);           // NULL is fine

struct mw_packer *mw_packer_new(void);
void mw_packer_free(struct mw_packer *p);  // NULL is fine

// The most bytes that raw_len bytes can pack to; the result buffer needs that much room.
size_t mw_pack_bound(size_t raw_len);

// What is packed: the name of the object, whether no version of it was packed before, and what the
// scanner has found out.
struct mw_pack_hint {
  struct mw_slice name;
  bool is_new;
  struct mw_beside beside;
};

// Packs raw into out (mw_pack_bound room) and returns the packed size. *dict is the dictionary
// needed to unpack (borrowed until the next call; NULL for none). Returns raw.n itself, with the
// bytes copied and *dict NULL, when packing would not make it smaller: packed size == raw size
// means stored.
size_t mw_pack(struct mw_packer *p, const struct mw_pack_hint *hint, struct mw_slice raw, char *out,
               struct mw_dict **dict);

// The template of the family of this name, until the next mw_pack(); NULL: none.
const struct mw_template *mw_packer_template(struct mw_packer *p, struct mw_slice name);

// The dictionary in force, borrowed until the next mw_pack(); NULL until frozen.
struct mw_dict *mw_packer_dict(struct mw_packer *p);

// Sections, as the spec and the status, whose members have the same names as the template's are
// marked, so that one of their members can be read without unpacking.

// Begins to fetch what both of these look at first.
void mw_packed_prefetch(const struct mw_dict *dict, struct mw_slice packed);
// Where the section of this name begins in the text; 0: none is marked that has it.
size_t mw_packed_section(const struct mw_dict *dict, struct mw_slice packed, struct mw_slice name);

enum { MW_MEMBER_ROOM = 512 };

struct mw_packed_member {
  struct mw_slice value;  // JSON, in `room`
  unsigned number;        // among the members of its section
  char room[MW_MEMBER_ROOM];
};

// The member of this name of the section that begins at `section`: 1 when it has a string or a
// scalar, which is in *m then; 0 when there is none; negative when only the whole text can tell.
int mw_packed_member(const struct mw_dict *dict, struct mw_slice packed, size_t section,
                     struct mw_slice name, struct mw_packed_member *m);

// A place to unpack into, one per thread. What it returns is valid until the next text is begun.
struct mw_unpacker;

struct mw_unpacker *mw_unpacker_new(void);
void mw_unpacker_free(struct mw_unpacker *u);  // NULL is fine

// Begins with a text, of which nothing is there yet. dict may be NULL; it and the packed bytes stay
// where they are as long as there may be more to unpack.
void mw_unpack_begin(struct mw_unpacker *u, const struct mw_dict *dict, struct mw_slice packed,
                     size_t raw_len);
// What is there of it, and at least its first `want` bytes, or all. It begins where it began
// before. {NULL, 0} if the bytes are damaged.
struct mw_slice mw_unpack_more(struct mw_unpacker *u, size_t want);
