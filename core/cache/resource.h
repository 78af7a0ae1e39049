// SPDX-License-Identifier: Apache-2.0
// A resource by its one name: `version/plural` for the core group, `group/version/plural` else.
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

struct mw_resource {
  char group[254];  // "" for core
  char version[64];
  char plural[254];
};

// Parses "v1/pods" or "apps/v1/deployments". The error says what is wrong and shows the form.
int mw_resource_parse(struct mw_slice text, struct mw_resource *out, struct mw_err *err);
// "apps/v1/deployments"; at least 600 bytes of room.
void mw_resource_name(const struct mw_resource *r, char *out, size_t room);
// Whether a group is one of Kubernetes itself, as "", "apps" and "networking.k8s.io" are: no custom
// resource is in one. Not all that end in .k8s.io are.
bool mw_group_is_own(struct mw_slice group);
// Whether there can be a namespace of this name, or "" for all of them: a DNS-1123 label. The error
// says what to write.
int mw_namespace_check(struct mw_slice ns, struct mw_err *err);
// Appends "/api/v1/namespaces/ns/pods" or "/apis/apps/v1/deployments"; ns may be empty.
int mw_resource_path(const struct mw_resource *r, struct mw_slice ns, struct mw_buf *out);
// Appends s percent-encoded for a query value.
int mw_query_escape(struct mw_slice s, struct mw_buf *out);
