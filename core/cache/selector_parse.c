// SPDX-License-Identifier: Apache-2.0
// The texts of label selectors (S-SEL-01..05) and of field selectors (S-SEL-12). One token of
// lookahead, no recursion; the length of the text bounds everything else.
#include <stdlib.h>

#include "base/alloc.h"
#include "cache/selector.h"
#include "cache/shown.h"

enum token_kind {
  TOKEN_END = 0,
  TOKEN_WORD,
  TOKEN_COMMA,
  TOKEN_OPEN,
  TOKEN_CLOSE,
  TOKEN_NOT,
  TOKEN_EQUALS,
  TOKEN_DOUBLE_EQUALS,
  TOKEN_NOT_EQUALS,
  TOKEN_GREATER,
  TOKEN_LESS,
};

struct lexer {
  struct mw_slice text;
  size_t at;  // behind the token
  enum token_kind kind;
  struct mw_slice token;
  struct mw_err *err;
};

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
static bool is_symbol(char c) { return c != '\0' && strchr("=!(),<>", c) != NULL; }

static enum token_kind symbol_kind(struct mw_slice rest, size_t *len) {
  bool equals_next = rest.n > 1 && rest.p[1] == '=';
  *len = 1;
  switch (rest.p[0]) {
    case ',':
      return TOKEN_COMMA;
    case '(':
      return TOKEN_OPEN;
    case ')':
      return TOKEN_CLOSE;
    case '>':
      return TOKEN_GREATER;
    case '<':
      return TOKEN_LESS;
    default:
      break;
  }
  if (equals_next) *len = 2;
  if (rest.p[0] == '!') return equals_next ? TOKEN_NOT_EQUALS : TOKEN_NOT;
  return equals_next ? TOKEN_DOUBLE_EQUALS : TOKEN_EQUALS;
}

static void next(struct lexer *l) {
  struct mw_slice t = l->text;
  while (l->at < t.n && is_space(t.p[l->at])) l->at++;
  size_t len = 0;
  struct mw_slice rest = mw_slice(t.n > 0 ? t.p + l->at : "", t.n - l->at);
  if (rest.n == 0 || rest.p[0] == '\0') {
    l->kind = TOKEN_END;
  } else if (is_symbol(rest.p[0])) {
    l->kind = symbol_kind(rest, &len);
  } else {
    l->kind = TOKEN_WORD;
    while (len < rest.n && rest.p[len] != '\0' && !is_space(rest.p[len]) &&
           !is_symbol(rest.p[len])) {
      len++;
    }
  }
  l->token = mw_slice(rest.p, len);
  l->at += len;
}

static size_t column(const struct lexer *l) { return l->at - l->token.n + 1; }

static int unexpected(struct lexer *l, const char *expected) {
  const char *quote = l->kind != TOKEN_END ? "\"" : "";
  return mw_err_set(l->err, MW_EPARSE, "label selector, column %zu: expected %s, found %s%s%s",
                    column(l), expected, quote,
                    l->kind != TOKEN_END ? mw_shown(l->token).text : "the end", quote);
}

// The requirement's own complaint, with the place.
static int misplaced(struct lexer *l, size_t where, int code, const struct mw_err *why) {
  return mw_err_set(l->err, code, "label selector, column %zu: %s", where, why->message);
}

struct values {
  struct mw_slice *v;
  size_t n;
  size_t cap;
};

static void add_value(struct values *vs, struct mw_slice value) {
  if (vs->n == vs->cap) {
    vs->cap = vs->cap > 0 ? vs->cap * 2 : 8;
    vs->v = mw_xrealloc(vs->v, vs->cap * sizeof *vs->v);
  }
  vs->v[vs->n++] = value;
}

// "(" [value] ("," [value])* ")": where a value is missing it is "".
static int parse_set(struct lexer *l, struct values *vs) {
  if (l->kind != TOKEN_OPEN) return unexpected(l, "\"(\"");
  do {
    next(l);
    struct mw_slice value = MW_SLICE("");
    if (l->kind == TOKEN_WORD) {
      value = l->token;
      next(l);
    }
    add_value(vs, value);
  } while (l->kind == TOKEN_COMMA);
  if (l->kind != TOKEN_CLOSE) return unexpected(l, "\",\" or \")\"");
  next(l);
  return 0;
}

static int parse_one_value(struct lexer *l, struct values *vs) {
  if (l->kind == TOKEN_WORD) {
    add_value(vs, l->token);
    next(l);
    return 0;
  }
  if (l->kind != TOKEN_END && l->kind != TOKEN_COMMA) return unexpected(l, "a value");
  add_value(vs, MW_SLICE(""));
  return 0;
}

static bool find_operator(const struct lexer *l, enum mw_selector_op *op) {
  switch (l->kind) {
    case TOKEN_EQUALS:
      *op = MW_SEL_EQUALS;
      return true;
    case TOKEN_DOUBLE_EQUALS:
      *op = MW_SEL_DOUBLE_EQUALS;
      return true;
    case TOKEN_NOT_EQUALS:
      *op = MW_SEL_NOT_EQUALS;
      return true;
    case TOKEN_GREATER:
      *op = MW_SEL_GREATER;
      return true;
    case TOKEN_LESS:
      *op = MW_SEL_LESS;
      return true;
    case TOKEN_WORD:
      *op = mw_slice_is(l->token, "in") ? MW_SEL_IN : MW_SEL_NOT_IN;
      return *op == MW_SEL_IN || mw_slice_is(l->token, "notin");
    default:
      return false;
  }
}

static int parse_operator(struct lexer *l, enum mw_selector_op *op, struct values *vs) {
  if (l->kind == TOKEN_END || l->kind == TOKEN_COMMA) {
    *op = MW_SEL_EXISTS;
    return 0;
  }
  if (!find_operator(l, op)) {
    return unexpected(l, "one of = == != in notin > <, \",\" or the end");
  }
  next(l);
  return *op == MW_SEL_IN || *op == MW_SEL_NOT_IN ? parse_set(l, vs) : parse_one_value(l, vs);
}

static int parse_requirement(struct lexer *l, struct mw_selector *s) {
  bool negated = l->kind == TOKEN_NOT;
  if (negated) next(l);
  if (l->kind != TOKEN_WORD) return unexpected(l, negated ? "a key after \"!\"" : "a key or \"!\"");
  struct mw_slice key = l->token;
  size_t where = column(l);
  enum mw_selector_op op = MW_SEL_NOT_EXISTS;
  struct values vs = {0};
  struct mw_err why = {0};
  next(l);
  int rc = negated ? 0 : parse_operator(l, &op, &vs);
  if (rc == 0) {
    rc = mw_selector_require(s, key, op, vs.v, vs.n, true, &why);
    if (rc < 0) misplaced(l, where, rc, &why);
  }
  mw_free(vs.v);
  return rc;
}

static int parse_all(struct lexer *l, struct mw_selector *s) {
  next(l);
  if (l->kind == TOKEN_END) return 0;
  for (;;) {
    int rc = parse_requirement(l, s);
    if (rc < 0) return rc;
    if (l->kind == TOKEN_END) return 0;
    if (l->kind != TOKEN_COMMA) return unexpected(l, "\",\" or the end");
    next(l);
  }
}

struct mw_selector *mw_selector_parse(struct mw_slice text, struct mw_err *err) {
  if (text.n > MW_SELECTOR_LENGTH_MAX) {
    mw_err_set(err, MW_ELIMIT, "the label selector is longer than %d bytes",
               MW_SELECTOR_LENGTH_MAX);
    return NULL;
  }
  struct lexer l = {.text = text, .err = err};
  struct mw_selector *s = mw_selector_new();
  if (parse_all(&l, s) == 0) return s;
  mw_selector_free(s);
  return NULL;
}

// ---- field selectors ----

struct term {
  struct mw_slice field;
  bool negated;
  struct mw_slice value;  // still escaped
};

static int order_terms(const void *a, const void *b) {
  const struct term *x = a;
  const struct term *y = b;
  size_t n = x->field.n < y->field.n ? x->field.n : y->field.n;
  int d = memcmp(x->field.p, y->field.p, n);
  if (d == 0) d = (x->field.n > y->field.n) - (x->field.n < y->field.n);
  if (d == 0) d = x->negated - y->negated;
  if (d != 0) return d;
  n = x->value.n < y->value.n ? x->value.n : y->value.n;
  d = n > 0 ? memcmp(x->value.p, y->value.p, n) : 0;
  return d != 0 ? d : (x->value.n > y->value.n) - (x->value.n < y->value.n);
}

static int field_error(size_t at, const char *what, struct mw_err *err) {
  return mw_err_set(err, MW_EPARSE, "field selector, column %zu: %s", at + 1, what);
}

// Escapes are only \\ \, and \=; a bare = is none of the value's business (a bare comma ended the
// term already).
static int check_value(struct mw_slice text, size_t from, size_t to, struct mw_err *err) {
  for (size_t i = from; i < to; i++) {
    if (text.p[i] == '=') return field_error(i, "\"=\" in a value is written \"\\=\"", err);
    if (text.p[i] != '\\') continue;
    i++;
    if (i == to || strchr("\\,=", text.p[i]) == NULL || text.p[i] == '\0') {
      return field_error(i - 1, "a backslash may stand before \\, \",\" and \"=\" only", err);
    }
  }
  return 0;
}

// The term in text[from, to): field, the leftmost of != == =, value.
static int parse_term(struct mw_slice text, size_t from, size_t to, struct term *out,
                      struct mw_err *err) {
  for (size_t i = from; i < to; i++) {
    bool double_char = i + 1 < to && text.p[i + 1] == '=';
    bool negated = text.p[i] == '!' && double_char;
    if (!negated && text.p[i] != '=') continue;
    if (i == from) return field_error(i, "the field's name is missing", err);
    size_t value = i + (double_char ? 2 : 1);
    *out = (struct term){mw_slice(text.p + from, i - from), negated,
                         mw_slice(text.p + value, to - value)};
    return check_value(text, value, to, err);
  }
  return field_error(from, "a term is field=value, field==value or field!=value", err);
}

// Where the term that begins at `from` ends: an unescaped comma or the end.
static size_t term_end(struct mw_slice text, size_t from) {
  size_t i = from;
  while (i < text.n && text.p[i] != ',') i += text.p[i] == '\\' && i + 1 < text.n ? 2 : 1;
  return i;
}

static int format_terms(const struct term *terms, size_t count, struct mw_buf *out) {
  int rc = mw_buf_add(out, "", 0);
  for (size_t i = 0; i < count && rc == 0; i++) {
    if (i > 0) rc = mw_buf_add(out, ",", 1);
    if (rc == 0) rc = mw_buf_add(out, terms[i].field.p, terms[i].field.n);
    if (rc == 0) rc = mw_buf_printf(out, "%s", terms[i].negated ? "!=" : "=");
    if (rc == 0) rc = mw_buf_add(out, terms[i].value.p, terms[i].value.n);
  }
  return rc;
}

int mw_field_selector_check(struct mw_slice text, struct mw_buf *canonical, struct mw_err *err) {
  if (text.n > MW_SELECTOR_LENGTH_MAX) {
    return mw_err_set(err, MW_ELIMIT, "the field selector is longer than %d bytes",
                      MW_SELECTOR_LENGTH_MAX);
  }
  struct term *terms = NULL;
  size_t count = 0;
  size_t cap = 0;
  int rc = 0;
  for (size_t from = 0; from < text.n && rc == 0;) {
    size_t to = term_end(text, from);
    if (to > from) {
      if (count == cap) {
        cap = cap > 0 ? cap * 2 : 4;
        terms = mw_xrealloc(terms, cap * sizeof *terms);
      }
      rc = parse_term(text, from, to, &terms[count], err);
      count++;
    }
    from = to + 1;
  }
  if (rc == 0 && count > 1) qsort(terms, count, sizeof *terms, order_terms);
  if (rc == 0) rc = format_terms(terms, count, canonical);
  if (rc == MW_ELIMIT) mw_err_set(err, rc, "the field selector does not fit");
  mw_free(terms);
  return rc;
}
