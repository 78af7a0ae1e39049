// SPDX-License-Identifier: Apache-2.0
#include "bind/yaml_emit.h"

#include <yaml.h>

#include "base/yaml_scalar.h"
#include "wire/json.h"

struct emission {
  yaml_emitter_t emitter;
  struct mw_json c;
  struct mw_buf text;  // the string at hand
  struct mw_buf *out;
};

static int on_bytes(void *data, unsigned char *p, size_t n) {
  struct emission *e = data;
  return mw_buf_add(e->out, p, n) == 0;
}

// Hands over an event that was made (made is what its initialiser returned).
static int emit(struct emission *e, yaml_event_t *event, int made) {
  return made && yaml_emitter_emit(&e->emitter, event) ? 0 : MW_ELIMIT;
}

static int emit_scalar(struct emission *e, struct mw_slice s, yaml_scalar_style_t style) {
  yaml_event_t event;
  const unsigned char *p = (const unsigned char *)(s.n > 0 ? s.p : "");
  int made = yaml_scalar_event_initialize(&event, NULL, NULL, p, (int)s.n, 1, 1, style);
  return emit(e, &event, made);
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

// [-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?, which YAML 1.1 reads as a number.
static bool is_base60(struct mw_slice s) {
  const char *p = s.p, *end = s.p + s.n;
  if (p < end && (*p == '-' || *p == '+')) p++;
  if (p == end || !is_digit(*p)) return false;
  while (p < end && (is_digit(*p) || *p == '_')) p++;
  if (p == end || *p != ':') return false;
  while (p < end && *p == ':') {
    p++;
    if (p == end || !is_digit(*p)) return false;
    if (p + 1 < end && is_digit(p[1])) {
      if (*p > '5') return false;
      p++;
    }
    p++;
  }
  if (p < end && *p == '.') {
    p++;
    while (p < end && (is_digit(*p) || *p == '_')) p++;
  }
  return p == end;
}

static yaml_scalar_style_t style_of(struct mw_slice s) {
  if (s.n > 0 && memchr(s.p, '\n', s.n) != NULL) return YAML_LITERAL_SCALAR_STYLE;
  bool plain = mw_yaml_resolve(s).kind == MW_YAML_STRING && !is_base60(s);
  return plain ? YAML_PLAIN_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE;
}

static int emit_string(struct emission *e, struct mw_slice raw, bool escaped) {
  struct mw_slice s = raw;
  if (escaped) {
    mw_buf_reset(&e->text);
    int rc = mw_json_unescape(raw, &e->text);
    if (rc < 0) return rc;
    s = mw_buf_slice(&e->text);
  }
  return emit_scalar(e, s, style_of(s));
}

static int emit_value(struct emission *e, unsigned depth);

static int emit_object(struct emission *e, unsigned depth) {
  yaml_event_t event;
  int made = yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE);
  int rc = emit(e, &event, made);
  bool first = true, escaped;
  struct mw_slice key;
  while (rc == 0 && (rc = mw_json_member(&e->c, &first, &key, &escaped)) > 0) {
    rc = emit_string(e, key, escaped);
    if (rc == 0) rc = emit_value(e, depth + 1);
  }
  if (rc < 0) return rc;
  return emit(e, &event, yaml_mapping_end_event_initialize(&event));
}

static int emit_array(struct emission *e, unsigned depth) {
  yaml_event_t event;
  int made = yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE);
  int rc = emit(e, &event, made);
  bool first = true;
  while (rc == 0 && (rc = mw_json_element(&e->c, &first)) > 0) rc = emit_value(e, depth + 1);
  if (rc < 0) return rc;
  return emit(e, &event, yaml_sequence_end_event_initialize(&event));
}

static int emit_value(struct emission *e, unsigned depth) {
  enum mw_json_kind kind = mw_json_peek(&e->c);
  if (kind == MW_JSON_OBJECT || kind == MW_JSON_ARRAY) {
    if (depth > MW_JSON_DEPTH_MAX) return MW_ELIMIT;
    int rc = mw_json_enter(&e->c);
    if (rc < 0) return rc;
    return kind == MW_JSON_OBJECT ? emit_object(e, depth) : emit_array(e, depth);
  }
  struct mw_slice raw;
  bool escaped;
  if (kind == MW_JSON_STRING) {
    int rc = mw_json_string(&e->c, &raw, &escaped);
    return rc < 0 ? rc : emit_string(e, raw, escaped);
  }
  const char *from = e->c.p;
  int rc = mw_json_skip(&e->c);
  if (rc < 0) return rc;
  return emit_scalar(e, mw_slice(from, (size_t)(e->c.p - from)), YAML_PLAIN_SCALAR_STYLE);
}

static int emit_document(struct emission *e) {
  yaml_event_t event;
  int rc = emit(e, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
  if (rc == 0) {
    rc = emit(e, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
  }
  if (rc == 0) rc = emit_value(e, 1);
  if (rc == 0) rc = emit(e, &event, yaml_document_end_event_initialize(&event, 1));
  if (rc == 0) rc = emit(e, &event, yaml_stream_end_event_initialize(&event));
  return rc;
}

int mw_yaml_emit(struct mw_slice json, struct mw_buf *out, struct mw_err *err) {
  struct emission e = {.c = {json.p, json.p + json.n}, .out = out};
  mw_buf_init(&e.text, json.n);
  if (!yaml_emitter_initialize(&e.emitter)) return mw_err_set(err, MW_ELIMIT, "out of memory");
  yaml_emitter_set_output(&e.emitter, on_bytes, &e);
  yaml_emitter_set_unicode(&e.emitter, 1);
  int rc = emit_document(&e);
  if (rc < 0) {
    const char *problem = e.emitter.problem != NULL ? e.emitter.problem : mw_err_text(rc);
    mw_err_set(err, rc, "cannot write YAML: %s", problem);
  }
  yaml_emitter_delete(&e.emitter);
  mw_buf_deinit(&e.text);
  return rc;
}
