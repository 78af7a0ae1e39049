// SPDX-License-Identifier: Apache-2.0
// Two streams of random numbers write a pod: that of its application, which starts anew for each
// of its pods and so writes the same again, and that of the pod itself.
#include "pods.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { APPS = 800, NAMESPACES = 60, POD_ROOM = 64 * 1024, NAME_MAX_LEN = 64 };

struct random {
  uint64_t state;
};

static uint64_t next(struct random *r) {
  uint64_t z = (r->state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static unsigned below(struct random *r, unsigned n) { return (unsigned)(next(r) % n); }

#define COUNT(list) ((unsigned)(sizeof(list) / sizeof((list)[0])))
#define PICK(r, list) ((list)[below(r, COUNT(list))])

static const char *const firsts[] = {
    "billing", "checkout", "search",  "catalog",  "payment", "shipping",  "identity", "session",
    "report",  "ledger",   "webhook", "metrics",  "events",  "inventory", "pricing",  "review",
    "media",   "thumb",    "mail",    "customer", "order",   "export",    "fraud",    "risk",
    "quota",   "tenant",   "audit",   "geo",      "chat",    "profile"};
static const char *const seconds[] = {
    "api",     "worker",  "gateway",   "indexer", "scheduler", "consumer", "proxy",
    "cache",   "sync",    "collector", "relay",   "frontend",  "backend",  "cron",
    "stream",  "router",  "store",     "loader",  "mirror",    "agent",    "controller",
    "archive", "reducer", "planner",   "watcher", "notifier",  "renderer"};
static const char *const teams[] = {"platform", "growth",   "commerce", "data", "infra",
                                    "mobile",   "security", "core",     "labs", "edge"};
static const char *const stages[] = {"prod", "staging", "dev", "canary", "batch", "shared"};
static const char *const variables[] = {
    "LOG_LEVEL",    "DATABASE_URL",   "REDIS_ADDR", "KAFKA_BROKERS", "FEATURE_FLAGS",  "HTTP_PORT",
    "GRPC_PORT",    "JAVA_TOOL_OPTS", "GOMAXPROCS", "SENTRY_DSN",    "OTEL_ENDPOINT",  "REGION",
    "CLUSTER_NAME", "BUCKET",         "QUEUE_NAME", "CACHE_TTL",     "MAX_CONNECTIONS"};
static const char *const registries[] = {"registry.example.com", "ghcr.io/example",
                                         "docker.io/library", "quay.io/example",
                                         "123456789012.dkr.ecr.eu-west-1.amazonaws.com"};
static const char *const sidecars[] = {"istio-proxy", "fluent-bit", "vault-agent", "oauth2-proxy",
                                       "otel-agent"};
static const char *const owners[] = {"ReplicaSet", "ReplicaSet",  "ReplicaSet",
                                     "ReplicaSet", "StatefulSet", "DaemonSet"};

// What an application's pods have in common and several places need.
struct app {
  char name[NAME_MAX_LEN];
  char ns[NAME_MAX_LEN];
  char hash[12];
  const char *owner;
  unsigned containers;
  uint64_t seed;
};

struct plan {
  char name[NAME_MAX_LEN];
  const struct app *app;
  uint64_t seed;
};

struct writer {
  struct pods *out;
  size_t cap;
  struct random app;
  struct random pod;
  const struct plan *plan;
  bool diverse;
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  struct pods *out = w->out;
  int n = vsnprintf(out->text + out->n, w->cap - out->n, format, args);
  va_end(args);
  if (n < 0 || out->n + (size_t)n >= w->cap) abort();
  out->n += (size_t)n;
}

static void put_hex(struct writer *w, struct random *r, unsigned digits) {
  for (unsigned i = 0; i < digits; i += 8) {
    put(w, "%0*x", (int)(digits - i < 8 ? digits - i : 8),
        (unsigned)(next(r) >> (digits - i < 8 ? 64 - 4 * (digits - i) : 32)));
  }
}

static void put_uid(struct writer *w, struct random *r) {
  uint64_t a = next(r), b = next(r);
  put(w, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32), (unsigned)(a & 0xffff),
      (unsigned)(a >> 16 & 0xfff), (unsigned)(b & 0x3fff) | 0x8000, (unsigned long long)(b >> 16));
}

// A day of the last three months; `later` seconds after it.
static void put_time(struct writer *w, uint64_t seed, unsigned later) {
  unsigned t = (unsigned)(seed % 80000) + later;
  put(w, "2026-%02u-%02uT%02u:%02u:%02uZ", (unsigned)(seed >> 20) % 3 + 3,
      (unsigned)(seed >> 32) % 28 + 1, t / 3600 % 24, t / 60 % 60, t % 60);
}

static void put_annotations(struct writer *w) {
  put(w, "\"annotations\":{");
  struct pod *pod = &w->out->v[w->out->count];
  pod->annotations = (uint32_t)(w->out->n - pod->start);
  put(w, "\"checksum/config\":\"");
  put_hex(w, &w->app, 64);
  put(w, "\",\"cni.projectcalico.org/containerID\":\"");
  put_hex(w, &w->pod, 64);
  unsigned ip = below(&w->pod, 1u << 22);
  put(w, "\",\"cni.projectcalico.org/podIP\":\"10.%u.%u.%u/32\"", 64 + (ip >> 16), ip >> 8 & 255,
      ip & 255);
  if (w->diverse && below(&w->app, 2) == 0) {
    put(w, ",\"kubectl.kubernetes.io/restartedAt\":\"");
    put_time(w, next(&w->app), 0);
    put(w, "\"");
  }
  if (w->diverse && below(&w->app, 3) == 0) {
    put(w, ",\"prometheus.io/port\":\"%u\",\"prometheus.io/scrape\":\"true\"",
        8000 + below(&w->app, 2000));
  }
  if (w->diverse && below(&w->app, 4) == 0) {
    put(w, ",\"deploy.example.com/trace\":\"");
    put_hex(w, &w->pod, 32);
    put(w, "\"");
  }
  put(w, "}");
}

static void put_labels(struct writer *w) {
  const struct app *a = w->plan->app;
  put(w, "\"labels\":{\"app.kubernetes.io/instance\":\"%s\",\"app.kubernetes.io/name\":\"%s\"",
      a->name, a->name);
  if (w->diverse && below(&w->app, 2) == 0) {
    put(w, ",\"app.kubernetes.io/managed-by\":\"Helm\",\"app.kubernetes.io/version\":\"%u.%u.%u\"",
        below(&w->app, 9), below(&w->app, 30), below(&w->app, 20));
  }
  if (strcmp(a->owner, "StatefulSet") == 0) {
    put(w, ",\"statefulset.kubernetes.io/pod-name\":\"%s\"", w->plan->name);
  } else {
    put(w, ",\"pod-template-hash\":\"%s\"", a->hash);
  }
  put(w, ",\"team\":\"%s\"}", PICK(&w->app, teams));
}

static void put_managed_container(struct writer *w, unsigned i) {
  put(w,
      "%s\"k:{\\\"name\\\":\\\"%s-%u\\\"}\":{\".\":{},\"f:args\":{},\"f:env\":{},\"f:image\":{},"
      "\"f:imagePullPolicy\":{},\"f:readinessProbe\":{\".\":{},\"f:failureThreshold\":{},"
      "\"f:httpGet\":{\".\":{},\"f:path\":{},\"f:port\":{},\"f:scheme\":{}}},\"f:name\":{},"
      "\"f:ports\":{},\"f:resources\":{\".\":{},\"f:limits\":{},\"f:requests\":{}},"
      "\"f:terminationMessagePath\":{},\"f:terminationMessagePolicy\":{},\"f:volumeMounts\":{}}",
      i > 0 ? "," : "", w->plan->app->name, i);
}

static void put_managed_fields(struct writer *w) {
  put(w,
      "\"managedFields\":[{\"manager\":\"kube-controller-manager\",\"operation\":\"Update\","
      "\"apiVersion\":\"v1\",\"time\":\"");
  put_time(w, w->plan->seed, 0);
  put(w,
      "\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{\"f:annotations\":{\".\":{},"
      "\"f:checksum/config\":{}},\"f:generateName\":{},\"f:labels\":{\".\":{},"
      "\"f:app.kubernetes.io/instance\":{},\"f:app.kubernetes.io/name\":{}},"
      "\"f:ownerReferences\":{\".\":{},\"k:{\\\"uid\\\":\\\"");
  struct random owner = {w->plan->app->seed + 1};
  put_uid(w, &owner);
  put(w, "\\\"}\":{}}},\"f:spec\":{\"f:containers\":{");
  for (unsigned i = 0; i < w->plan->app->containers; i++) put_managed_container(w, i);
  put(w,
      "},\"f:dnsPolicy\":{},\"f:enableServiceLinks\":{},\"f:restartPolicy\":{},"
      "\"f:schedulerName\":{},\"f:securityContext\":{},\"f:terminationGracePeriodSeconds\":{}}}},"
      "{\"manager\":\"kubelet\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":\"");
  put_time(w, w->plan->seed, 20);
  put(w,
      "\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{"
      "\"k:{\\\"type\\\":\\\"ContainersReady\\\"}\":{\".\":{},\"f:lastProbeTime\":{},"
      "\"f:lastTransitionTime\":{},\"f:status\":{},\"f:type\":{}},"
      "\"k:{\\\"type\\\":\\\"Ready\\\"}\":{\".\":{},\"f:lastProbeTime\":{},"
      "\"f:lastTransitionTime\":{},\"f:status\":{},\"f:type\":{}}},\"f:containerStatuses\":{},"
      "\"f:hostIP\":{},\"f:phase\":{},\"f:podIP\":{},\"f:podIPs\":{},\"f:startTime\":{}}},"
      "\"subresource\":\"status\"}]");
}

static void put_metadata(struct writer *w) {
  const struct plan *plan = w->plan;
  const struct app *a = plan->app;
  struct pod *pod = &w->out->v[w->out->count];
  pod->body = (uint32_t)(w->out->n - pod->start);
  put(w, "\"metadata\":{\"name\":\"%s\",\"generateName\":\"%s-\",\"namespace\":\"%s\",\"uid\":\"",
      plan->name, a->name, a->ns);
  put_uid(w, &w->pod);
  put(w, "\",\"resourceVersion\":\"");
  pod->rv = (uint32_t)(w->out->n - pod->start);
  put(w, "%010u\",\"creationTimestamp\":\"", POD_RV_FIRST + below(&w->pod, 900000000));
  put_time(w, plan->seed, 0);
  put(w, "\",");
  put_labels(w);
  put(w, ",");
  put_annotations(w);
  put(w,
      ",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"%s\",\"name\":\"%s-%s\","
      "\"uid\":\"",
      a->owner, a->name, a->hash);
  struct random owner = {a->seed + 1};
  put_uid(w, &owner);
  put(w, "\",\"controller\":true,\"blockOwnerDeletion\":true}],");
  put_managed_fields(w);
  put(w, "},");
}

static void put_env(struct writer *w) {
  unsigned n = w->diverse ? below(&w->app, 3) : 1;
  put(w,
      "\"env\":[{\"name\":\"POD_IP\",\"valueFrom\":{\"fieldRef\":{\"apiVersion\":\"v1\","
      "\"fieldPath\":\"status.podIP\"}}}");
  for (unsigned i = 0; i < n; i++) {
    const char *name = PICK(&w->app, variables);
    switch (below(&w->app, 3)) {
      case 0:
        put(w,
            ",{\"name\":\"%s\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"%s-secrets\","
            "\"key\":\"%s\"}}}",
            name, w->plan->app->name, name);
        break;
      case 1:
        put(w, ",{\"name\":\"%s\",\"value\":\"%s.%s.svc.cluster.local:%u\"}", name,
            PICK(&w->app, firsts), w->plan->app->ns, 1024 + below(&w->app, 60000));
        break;
      default:
        put(w, ",{\"name\":\"%s\",\"value\":\"%u\"}", name, below(&w->app, 100000));
    }
  }
  put(w, "],");
}

static void put_probe(struct writer *w, const char *name) {
  if (!w->diverse || below(&w->app, 3) > 0) {
    put(w,
        "\"%s\":{\"httpGet\":{\"path\":\"/%s\",\"port\":%u,\"scheme\":\"HTTP\"},"
        "\"initialDelaySeconds\":%u,\"timeoutSeconds\":%u,\"periodSeconds\":10,"
        "\"successThreshold\":1,\"failureThreshold\":3},",
        name, PICK(&w->app, seconds), 8000 + below(&w->app, 2000), below(&w->app, 60),
        1 + below(&w->app, 9));
  } else if (below(&w->app, 2) == 0) {
    put(w,
        "\"%s\":{\"tcpSocket\":{\"port\":%u},\"timeoutSeconds\":1,\"periodSeconds\":%u,"
        "\"successThreshold\":1,\"failureThreshold\":3},",
        name, 1024 + below(&w->app, 9000), 5 + below(&w->app, 55));
  }
}

static void put_image(struct writer *w, struct random *r, unsigned i) {
  const struct app *a = w->plan->app;
  put(w, "%s/%s:v%u.%u.%u", PICK(r, registries), i == 0 ? a->name : sidecars[i % COUNT(sidecars)],
      below(r, 5), below(r, 40), below(r, 10));
}

static struct random image_random(const struct writer *w, unsigned i) {
  return (struct random){w->plan->app->seed * 31 + i + 2};
}

static void put_container(struct writer *w, unsigned i, const char *token) {
  const struct app *a = w->plan->app;
  struct random image = image_random(w, i);
  put(w, "%s{\"name\":\"%s-%u\",\"image\":\"", i > 0 ? "," : "", a->name, i);
  put_image(w, &image, i);
  put(w, "\",\"args\":[\"--config=/etc/%s/%s.yaml\"", a->name, PICK(&w->app, seconds));
  for (unsigned k = w->diverse ? below(&w->app, 3) : 1; k > 0; k--) {
    put(w, ",\"--%s-%s=%u\"", PICK(&w->app, firsts), PICK(&w->app, seconds), below(&w->app, 10000));
  }
  put(w, "],\"ports\":[{\"name\":\"http\",\"containerPort\":%u,\"protocol\":\"TCP\"}],",
      8000 + below(&w->app, 2000));
  put_env(w);
  unsigned cpu = 1 + below(&w->app, 20), memory = 1 + below(&w->app, 32);
  put(w,
      "\"resources\":{\"limits\":{\"cpu\":\"%u00m\",\"memory\":\"%uMi\"},\"requests\":{"
      "\"cpu\":\"%u0m\",\"memory\":\"%uMi\"}},\"volumeMounts\":[{\"name\":\"config\","
      "\"mountPath\":\"/etc/%s\"},{\"name\":\"kube-api-access-%s\",\"readOnly\":true,"
      "\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount\"}],",
      cpu, memory * 128, cpu, memory * 64, a->name, token);
  if (i == 0 && w->diverse && below(&w->app, 2) == 0) put_probe(w, "livenessProbe");
  if (i == 0) put_probe(w, "readinessProbe");
  put(w,
      "\"terminationMessagePath\":\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\","
      "\"imagePullPolicy\":\"IfNotPresent\"}");
}

static void put_volumes(struct writer *w, const char *token) {
  const struct app *a = w->plan->app;
  put(w,
      "\"volumes\":[{\"name\":\"config\",\"configMap\":{\"name\":\"%s-config\",\"defaultMode\":"
      "420}},",
      a->name);
  if (w->diverse && below(&w->app, 3) == 0) {
    put(w, "{\"name\":\"data\",\"persistentVolumeClaim\":{\"claimName\":\"data-%s\"}},",
        w->plan->name);
  } else if (w->diverse && below(&w->app, 2) == 0) {
    put(w, "{\"name\":\"tmp\",\"emptyDir\":{\"sizeLimit\":\"%uMi\"}},", 64 + below(&w->app, 512));
  }
  put(w,
      "{\"name\":\"kube-api-access-%s\",\"projected\":{\"sources\":[{\"serviceAccountToken\":{"
      "\"expirationSeconds\":3607,\"path\":\"token\"}},{\"configMap\":{\"name\":"
      "\"kube-root-ca.crt\",\"items\":[{\"key\":\"ca.crt\",\"path\":\"ca.crt\"}]}},{"
      "\"downwardAPI\":{\"items\":[{\"path\":\"namespace\",\"fieldRef\":{\"apiVersion\":\"v1\","
      "\"fieldPath\":\"metadata.namespace\"}}]}}],\"defaultMode\":420}}],",
      token);
}

static void put_spec(struct writer *w) {
  const struct app *a = w->plan->app;
  char token[6] = {0};
  for (unsigned i = 0; i < 5; i++) token[i] = "bcdfghjklmnpqrstvwxz2456789"[below(&w->pod, 27)];
  put(w, "\"spec\":{");
  put_volumes(w, token);
  put(w, "\"containers\":[");
  for (unsigned i = 0; i < a->containers; i++) put_container(w, i, token);
  put(w,
      "],\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":%u,"
      "\"dnsPolicy\":\"ClusterFirst\",",
      w->diverse ? 10 + below(&w->app, 120) : 30);
  if (w->diverse && below(&w->app, 4) == 0) {
    put(w, "\"nodeSelector\":{\"node.example.com/pool\":\"%s\"},", PICK(&w->app, teams));
  }
  put(w,
      "\"serviceAccountName\":\"%s\",\"serviceAccount\":\"%s\",\"nodeName\":"
      "\"ip-10-0-%u-%u.eu-west-1.compute.internal\",\"securityContext\":{",
      a->name, a->name, below(&w->pod, 20), below(&w->pod, 250));
  if (w->diverse && below(&w->app, 2) == 0) {
    put(w, "\"runAsUser\":%u,\"runAsNonRoot\":true,\"fsGroup\":%u", 1000 + below(&w->app, 9000),
        1000 + below(&w->app, 9000));
  }
  put(w, "},");
  if (w->diverse && below(&w->app, 4) == 0) {
    put(w,
        "\"affinity\":{\"podAntiAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":"
        "[{\"weight\":%u,\"podAffinityTerm\":{\"labelSelector\":{\"matchLabels\":{"
        "\"app.kubernetes.io/name\":\"%s\"}},\"topologyKey\":\"kubernetes.io/hostname\"}}]}},",
        1 + below(&w->app, 100), a->name);
  }
  put(w, "\"schedulerName\":\"default-scheduler\",\"tolerations\":[");
  if (w->diverse && below(&w->app, 3) == 0) {
    put(w,
        "{\"key\":\"dedicated\",\"operator\":\"Equal\",\"value\":\"%s\",\"effect\":\"NoSchedule\""
        "},",
        PICK(&w->app, teams));
  }
  put(w,
      "{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
      "\"tolerationSeconds\":300},{\"key\":\"node.kubernetes.io/unreachable\",\"operator\":"
      "\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300}],\"priority\":0,"
      "\"enableServiceLinks\":true,\"preemptionPolicy\":\"PreemptLowerPriority\"},");
}

static void put_container_status(struct writer *w, unsigned i) {
  struct random image = image_random(w, i);
  put(w, "%s{\"name\":\"%s-%u\",\"state\":{\"running\":{\"startedAt\":\"", i > 0 ? "," : "",
      w->plan->app->name, i);
  put_time(w, w->plan->seed, 12 + i);
  put(w, "\"}},\"lastState\":{},\"ready\":true,\"restartCount\":%u,\"image\":\"",
      below(&w->pod, 8) == 0 ? below(&w->pod, 20) : 0);
  put_image(w, &image, i);
  put(w, "\",\"imageID\":\"%s@sha256:", w->plan->app->name);
  put_hex(w, &image, 64);
  put(w, "\",\"containerID\":\"containerd://");
  put_hex(w, &w->pod, 64);
  put(w, "\",\"started\":true}");
}

static void put_status(struct writer *w) {
  static const char *const conditions[] = {"Initialized", "Ready", "ContainersReady",
                                           "PodScheduled"};
  static const unsigned delays[] = {0, 14, 14, 0};
  put(w, "\"status\":{\"phase\":\"Running\",\"conditions\":[");
  for (unsigned i = 0; i < COUNT(conditions); i++) {
    put(w,
        "%s{\"type\":\"%s\",\"status\":\"True\",\"lastProbeTime\":null,\"lastTransitionTime\":\"",
        i > 0 ? "," : "", conditions[i]);
    put_time(w, w->plan->seed, delays[i]);
    put(w, "\"}");
  }
  unsigned ip = below(&w->pod, 1u << 22), host = below(&w->pod, 5000);
  put(w,
      "],\"hostIP\":\"10.0.%u.%u\",\"podIP\":\"10.%u.%u.%u\",\"podIPs\":[{\"ip\":\"10.%u.%u.%u\""
      "}],\"startTime\":\"",
      host / 250, host % 250, 64 + (ip >> 16), ip >> 8 & 255, ip & 255, 64 + (ip >> 16),
      ip >> 8 & 255, ip & 255);
  put_time(w, w->plan->seed, 1);
  put(w, "\",\"containerStatuses\":[");
  for (unsigned i = 0; i < w->plan->app->containers; i++) put_container_status(w, i);
  put(w, "],\"qosClass\":\"Burstable\"}");
}

static void put_pod(struct writer *w) {
  struct pods *out = w->out;
  if (w->cap - out->n < POD_ROOM) {
    w->cap += w->cap / 2 + POD_ROOM;
    out->text = realloc(out->text, w->cap);
    if (out->text == NULL) abort();
  }
  struct pod *pod = &out->v[out->count];
  pod->start = out->n;
  w->app = (struct random){w->plan->app->seed};
  w->pod = (struct random){w->plan->seed};
  put(w, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",");
  put_metadata(w);
  put_spec(w);
  put_status(w);
  put(w, "}");
  pod->n = (uint32_t)(out->n - pod->start);
  out->count++;
}

static void plan_app(struct app *a, unsigned i, bool diverse) {
  struct random r = {0xA5A5 + i};
  // 7 and the number of names have no common divisor: no two applications get the same.
  unsigned name = i * 7 % (COUNT(firsts) * COUNT(seconds));
  unsigned ns = below(&r, NAMESPACES);
  snprintf(a->name, sizeof a->name, "%s-%s", firsts[name % COUNT(firsts)],
           seconds[name / COUNT(firsts)]);
  snprintf(a->ns, sizeof a->ns, "%s-%s", teams[ns % COUNT(teams)], stages[ns / COUNT(teams)]);
  snprintf(a->hash, sizeof a->hash, "%08x", (unsigned)next(&r));
  unsigned dice = below(&r, 20);
  a->containers = !diverse ? 1 : dice < 16 ? 1 : dice < 19 ? 2 : 3;
  a->owner = diverse ? PICK(&r, owners) : owners[0];
  a->seed = next(&r);
}

static int by_key(const void *left, const void *right) {
  const struct plan *a = left, *b = right;
  int order = strcmp(a->app->ns, b->app->ns);
  return order != 0 ? order : strcmp(a->name, b->name);
}

static void plan_pod(struct plan *p, const struct app *apps, size_t i, bool diverse) {
  struct random r = {0x5EED + i};
  // Squared: some applications have many pods, most have few.
  unsigned u = below(&r, 1000), v = below(&r, 1000);
  p->app = &apps[diverse ? (size_t)u * v * APPS / 1000000 : 0];
  p->seed = next(&r);
  snprintf(p->name, sizeof p->name, "%.36s-%s-%05x", p->app->name, p->app->hash, (unsigned)i);
}

struct pods pods_make(size_t count, bool diverse) {
  struct app *apps = calloc(APPS, sizeof *apps);
  struct plan *plans = calloc(count + 1, sizeof *plans);
  struct pods out = {.v = calloc(count + 1, sizeof(struct pod))};
  struct writer w = {.out = &out, .cap = count * 6000 + POD_ROOM, .diverse = diverse};
  out.text = malloc(w.cap);
  if (apps == NULL || plans == NULL || out.v == NULL || out.text == NULL) abort();
  for (unsigned i = 0; i < APPS; i++) plan_app(&apps[i], i, diverse);
  for (size_t i = 0; i < count; i++) plan_pod(&plans[i], apps, i, diverse);
  qsort(plans, count, sizeof *plans, by_key);
  for (size_t i = 0; i < count; i++) {
    w.plan = &plans[i];
    put_pod(&w);
  }
  free(plans);
  free(apps);
  return out;
}
