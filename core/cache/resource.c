// SPDX-License-Identifier: Apache-2.0
// Names are checked strictly, for two reasons: they become part of a URL, and people write "Pod"
// or "apps/deployments" and deserve to read what to write instead.
#include "cache/resource.h"

#include <stdio.h>
#include <strings.h>

#include "cache/shown.h"

// What people name without its group: for hints in errors only.
static const struct {
  const char *group_version;
  const char *singular;
  const char *plural;
} known[] = {
    {"v1", "pod", "pods"},
    {"v1", "service", "services"},
    {"v1", "configmap", "configmaps"},
    {"v1", "secret", "secrets"},
    {"v1", "namespace", "namespaces"},
    {"v1", "node", "nodes"},
    {"v1", "event", "events"},
    {"v1", "endpoints", "endpoints"},
    {"v1", "serviceaccount", "serviceaccounts"},
    {"v1", "persistentvolume", "persistentvolumes"},
    {"v1", "persistentvolumeclaim", "persistentvolumeclaims"},
    {"v1", "replicationcontroller", "replicationcontrollers"},
    {"apps/v1", "deployment", "deployments"},
    {"apps/v1", "replicaset", "replicasets"},
    {"apps/v1", "statefulset", "statefulsets"},
    {"apps/v1", "daemonset", "daemonsets"},
    {"batch/v1", "job", "jobs"},
    {"batch/v1", "cronjob", "cronjobs"},
    {"networking.k8s.io/v1", "ingress", "ingresses"},
    {"networking.k8s.io/v1", "networkpolicy", "networkpolicies"},
    {"coordination.k8s.io/v1", "lease", "leases"},
    {"discovery.k8s.io/v1", "endpointslice", "endpointslices"},
    {"policy/v1", "poddisruptionbudget", "poddisruptionbudgets"},
    {"autoscaling/v2", "horizontalpodautoscaler", "horizontalpodautoscalers"},
    {"rbac.authorization.k8s.io/v1", "role", "roles"},
    {"rbac.authorization.k8s.io/v1", "rolebinding", "rolebindings"},
    {"rbac.authorization.k8s.io/v1", "clusterrole", "clusterroles"},
    {"rbac.authorization.k8s.io/v1", "clusterrolebinding", "clusterrolebindings"},
    {"storage.k8s.io/v1", "storageclass", "storageclasses"},
    {"apiextensions.k8s.io/v1", "customresourcedefinition", "customresourcedefinitions"},
};

// The groups with a dot that are Kubernetes' own, or were.
static const char *const own_groups[] = {
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "auditregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "lifecycle.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "settings.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
};

enum { SEGMENTS_MAX = 3, LABEL_MAX = 63 };

static bool same_name(struct mw_slice s, const char *name) {
  return s.n == strlen(name) && strncasecmp(s.p, name, s.n) == 0;
}

// Puts the full name of what s probably means into out; false when we do not know it.
static bool suggest(struct mw_slice s, char *out, size_t room) {
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (!same_name(s, known[i].singular) && !same_name(s, known[i].plural)) continue;
    snprintf(out, room, "%s/%s", known[i].group_version, known[i].plural);
    return true;
  }
  return false;
}

static bool lower_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// A DNS-1123 label, or with dots a subdomain.
static bool dns_name(struct mw_slice s, bool dots) {
  bool inside = false;  // the byte before was part of a label's body
  for (size_t i = 0; i < s.n; i++) {
    if (lower_alnum(s.p[i])) {
      inside = true;
    } else if (s.p[i] == '-') {
      if (i == 0 || s.p[i - 1] == '.') return false;
      inside = false;
    } else {
      if (!dots || s.p[i] != '.' || !inside) return false;
      inside = false;
    }
  }
  return inside;
}

// v1, v2beta1 and the like.
static bool looks_like_version(struct mw_slice s) {
  return s.n >= 2 && s.p[0] == 'v' && s.p[1] >= '0' && s.p[1] <= '9';
}

static int refuse(struct mw_slice text, struct mw_slice noun, const char *why, struct mw_err *err) {
  char hint[160];
  if (suggest(noun, hint, sizeof hint)) {
    return mw_err_set(err, MW_EINVAL, "\"%s\" is not a resource: %s; write \"%s\"",
                      mw_shown(text).text, why, hint);
  }
  return mw_err_set(err, MW_EINVAL,
                    "\"%s\" is not a resource: %s; write \"version/plural\" as in \"v1/pods\" or "
                    "\"group/version/plural\" as in \"apps/v1/deployments\"",
                    mw_shown(text).text, why);
}

// Cuts text at its slashes. The number of segments, or SEGMENTS_MAX + 1 for more than fit.
static size_t cut(struct mw_slice text, struct mw_slice out[SEGMENTS_MAX]) {
  size_t count = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.n; i++) {
    if (i < text.n && text.p[i] != '/') continue;
    if (count == SEGMENTS_MAX) return SEGMENTS_MAX + 1;
    out[count++] = mw_slice(text.p + start, i - start);
    start = i + 1;
  }
  return count;
}

// Why these segments are no resource, or NULL.
static const char *complaint(struct mw_slice group, struct mw_slice version,
                             struct mw_slice plural) {
  if (mw_slice_is(group, "core")) return "the core group has no name";
  if (looks_like_version(group)) return "a subresource cannot be listed or watched";
  if (group.n == 0 && !looks_like_version(version)) return "it lacks a version";
  if (group.n > 253 || version.n > LABEL_MAX || plural.n > 253) return "a part of it is too long";
  if (group.n > 0 && !dns_name(group, true)) return "the group is not a DNS name";
  if (!dns_name(version, false)) return "the version is not a DNS label";
  if (!dns_name(plural, false)) return "the last part must be the plural, in lower case";
  return NULL;
}

int mw_resource_parse(struct mw_slice text, struct mw_resource *out, struct mw_err *err) {
  struct mw_slice part[SEGMENTS_MAX];
  size_t count = cut(text, part);
  struct mw_slice none = MW_SLICE("");
  if (count == 1) return refuse(text, part[0], "it lacks a version", err);
  if (count > SEGMENTS_MAX) return refuse(text, none, "it has too many slashes", err);
  for (size_t i = 0; i < count; i++) {
    if (part[i].n == 0) return refuse(text, none, "a part of it is empty", err);
  }
  struct mw_slice group = count == 3 ? part[0] : none;
  struct mw_slice version = part[count - 2];
  struct mw_slice plural = part[count - 1];
  const char *why = complaint(group, version, plural);
  if (why != NULL) return refuse(text, looks_like_version(group) ? version : plural, why, err);
  snprintf(out->group, sizeof out->group, "%.*s", MW_SLICE_ARGS(group));
  snprintf(out->version, sizeof out->version, "%.*s", MW_SLICE_ARGS(version));
  snprintf(out->plural, sizeof out->plural, "%.*s", MW_SLICE_ARGS(plural));
  return 0;
}

void mw_resource_name(const struct mw_resource *r, char *out, size_t room) {
  const char *slash = r->group[0] != '\0' ? "/" : "";
  snprintf(out, room, "%s%s%s/%s", r->group, slash, r->version, r->plural);
}

bool mw_group_is_own(struct mw_slice group) {
  if (group.n == 0 || memchr(group.p, '.', group.n) == NULL) return true;
  for (size_t i = 0; i < sizeof own_groups / sizeof own_groups[0]; i++) {
    if (mw_slice_is(group, own_groups[i])) return true;
  }
  return false;
}

int mw_namespace_check(struct mw_slice ns, struct mw_err *err) {
  if (ns.n == 0 || (ns.n <= LABEL_MAX && dns_name(ns, false))) return 0;
  return mw_err_set(err, MW_EINVAL,
                    "'%s' cannot be a namespace: write at most %d lower-case letters, digits and "
                    "'-', with no '-' at either end",
                    mw_shown(ns).text, LABEL_MAX);
}

int mw_resource_path(const struct mw_resource *r, struct mw_slice ns, struct mw_buf *out) {
  int rc = r->group[0] == '\0' ? mw_buf_printf(out, "/api/%s", r->version)
                               : mw_buf_printf(out, "/apis/%s/%s", r->group, r->version);
  if (rc == 0 && ns.n > 0) {
    rc = mw_buf_printf(out, "/namespaces/");
    if (rc == 0) rc = mw_query_escape(ns, out);
  }
  return rc == 0 ? mw_buf_printf(out, "/%s", r->plural) : rc;
}

static bool unreserved(char c) {
  return lower_alnum(c) || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.' || c == '~';
}

int mw_query_escape(struct mw_slice s, struct mw_buf *out) {
  int rc = 0;
  for (size_t i = 0; i < s.n && rc == 0; i++) {
    rc = unreserved(s.p[i]) ? mw_buf_add(out, s.p + i, 1)
                            : mw_buf_printf(out, "%%%02X", (unsigned)(unsigned char)s.p[i]);
  }
  return rc;
}
