// SPDX-License-Identifier: Apache-2.0
// The outline of a template (template.h): where the members of its sections are. Private to
// core/wire.
//
// An object that has the same members in a section, and only other values, is packed so that the
// section begins with a match (lz.h). A mark says where. With it and the outline one member is
// found without unpacking what stands before it: a controller that looks for the node of each of
// its pods reads a few dozen bytes of each, not half of it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum {
  MW_OUTLINE_SECTIONS = 2,  // each costs every object a mark
  MW_SECTION_MIN = 64  // bytes; smaller sections are neither outlined nor read beside a template
};

// A section of an object: where it is in the JSON, and which sequence of the packed bytes has the
// match that begins it. n is 0: it is not like the template's.
struct mw_mark {
  uint16_t at;
  uint16_t n;
  uint16_t packed;
};

struct mw_outline;

// Of a JSON that is valid and has no white space. NULL when it has no section, or 64 KiB or more.
struct mw_outline *mw_outline_new(struct mw_slice json);
void mw_outline_free(struct mw_outline *o);  // NULL is fine
// It is one piece of memory of this size, and may be copied.
size_t mw_outline_size(const struct mw_outline *o);

// How many sections there are: at least one.
size_t mw_outline_count(const struct mw_outline *o);
// The number of the section of this name, or of the one that begins at `from`; -1: it has none.
int mw_outline_section(const struct mw_outline *o, struct mw_slice name);
int mw_outline_section_at(const struct mw_outline *o, size_t from);

struct mw_outline_member {
  size_t key;    // where its name begins, with the quote
  size_t value;  // and where its value does
};

// The number of a member among those of its section; -1: there is none of this name.
int mw_outline_member(const struct mw_outline *o, struct mw_slice json, int section,
                      struct mw_slice name, struct mw_outline_member *m);
