// SPDX-License-Identifier: Apache-2.0
// A byte-wise state machine. Slower than the walker and only for what is outside of the items.
#include "wire/skim.h"

enum state {
  VALUE = 0,      // a value must follow
  FIRST_ELEMENT,  // a value or ']'
  FIRST_KEY,      // a member name or '}'
  KEY,            // a member name
  COLON,          // ':'
  AFTER,          // ',' or a closing bracket
  STRING,
  ESCAPE,    // behind a backslash
  HEX,       // in \uXXXX
  UTF8,      // in a sequence
  MINUS,     // a digit must follow
  ZERO,      // a number may end here; no digit may follow
  INT,       // a number may end here
  DOT,       // a digit must follow
  FRACTION,  // a number may end here
  E,         // a sign or a digit must follow
  E_SIGN,    // a digit must follow
  EXPONENT,  // a number may end here
  LITERAL,
  DONE,
};

// What one byte did.
enum outcome { TAKEN = 0, AGAIN, REFUSED };

void mw_skim_start(struct mw_skim *s) { *s = (struct mw_skim){.state = VALUE}; }

static enum outcome refuse(struct mw_skim *s, const char *why) {
  s->fault = MW_FAULT_SYNTAX;
  s->why = why;
  return REFUSED;
}

static enum outcome go(struct mw_skim *s, enum state state) {
  s->state = (uint8_t)state;
  return TAKEN;
}

static enum outcome complete(struct mw_skim *s) { return go(s, s->depth == 0 ? DONE : AFTER); }

static bool in_object(const struct mw_skim *s) {
  return (s->objects[s->depth >> 6] >> (s->depth & 63)) & 1;
}

static enum outcome open_bracket(struct mw_skim *s, bool object) {
  if (s->depth == MW_JSON_DEPTH_MAX) {
    s->fault = MW_FAULT_LIMIT;
    s->why = "nested deeper than 256 levels";
    return REFUSED;
  }
  s->depth++;
  uint64_t bit = (uint64_t)1 << (s->depth & 63);
  s->objects[s->depth >> 6] &= ~bit;
  if (object) s->objects[s->depth >> 6] |= bit;
  return go(s, object ? FIRST_KEY : FIRST_ELEMENT);
}

static enum outcome close_bracket(struct mw_skim *s) {
  s->depth--;
  return complete(s);
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

static enum outcome begin_literal(struct mw_skim *s, const char *rest) {
  s->literal = rest;
  return go(s, LITERAL);
}

static enum outcome begin_value(struct mw_skim *s, char c) {
  switch (c) {
    case '"':
      s->key = false;
      return go(s, STRING);
    case '{':
      return open_bracket(s, true);
    case '[':
      return open_bracket(s, false);
    case 't':
      return begin_literal(s, "rue");
    case 'f':
      return begin_literal(s, "alse");
    case 'n':
      return begin_literal(s, "ull");
    case '-':
      return go(s, MINUS);
    case '0':
      return go(s, ZERO);
    default:
      return is_digit(c) ? go(s, INT) : refuse(s, "expected a value");
  }
}

static enum outcome begin_key(struct mw_skim *s, char c) {
  if (c != '"') return refuse(s, "expected a member name");
  s->key = true;
  return go(s, STRING);
}

static enum outcome after_value(struct mw_skim *s, char c) {
  bool object = in_object(s);
  if (c == ',') return go(s, object ? KEY : VALUE);
  if (c == (object ? '}' : ']')) return close_bracket(s);
  return refuse(s, object ? "expected ',' or '}'" : "expected ',' or ']'");
}

static enum outcome structure(struct mw_skim *s, char c) {
  if (is_space(c)) return TAKEN;
  switch (s->state) {
    case FIRST_ELEMENT:
      return c == ']' ? close_bracket(s) : begin_value(s, c);
    case FIRST_KEY:
      return c == '}' ? close_bracket(s) : begin_key(s, c);
    case KEY:
      return begin_key(s, c);
    case COLON:
      return c == ':' ? go(s, VALUE) : refuse(s, "expected ':'");
    case AFTER:
      return after_value(s, c);
    default:
      return begin_value(s, c);
  }
}

static enum outcome refuse_utf8(struct mw_skim *s) {
  s->fault = MW_FAULT_UTF8;
  s->why = "invalid UTF-8";
  s->back = s->seen;
  return REFUSED;
}

static enum outcome begin_utf8(struct mw_skim *s, unsigned char c) {
  s->seen = 0;
  if (c < 0xC2 || c > 0xF4) return refuse_utf8(s);
  s->more = c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
  s->lo = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
  s->hi = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
  s->seen = 1;
  return go(s, UTF8);
}

static enum outcome in_utf8(struct mw_skim *s, unsigned char c) {
  if (c < s->lo || c > s->hi) return refuse_utf8(s);
  s->lo = 0x80;
  s->hi = 0xBF;
  s->seen++;
  return --s->more == 0 ? go(s, STRING) : TAKEN;
}

static enum outcome in_escape(struct mw_skim *s, char c) {
  if (c == 'u') {
    s->hex = 4;
    return go(s, HEX);
  }
  if (c != '\0' && strchr("\"\\/bfnrt", c) != NULL) return go(s, STRING);
  return refuse(s, "unknown escape");
}

static enum outcome in_hex(struct mw_skim *s, char c) {
  bool hex = is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
  if (!hex) return refuse(s, "expected four hexadecimal digits");
  return --s->hex == 0 ? go(s, STRING) : TAKEN;
}

static enum outcome in_string(struct mw_skim *s, char c) {
  if (c == '"') return s->key ? go(s, COLON) : complete(s);
  if (c == '\\') return go(s, ESCAPE);
  if ((signed char)c < 0) return begin_utf8(s, (unsigned char)c);
  if (c < 0x20) return refuse(s, "control character in a string");
  return TAKEN;
}

// The number ended before c, which belongs to what follows.
static enum outcome end_number(struct mw_skim *s) {
  complete(s);
  return AGAIN;
}

static enum outcome in_number(struct mw_skim *s, char c) {
  bool digit = is_digit(c);
  bool e = c == 'e' || c == 'E';
  switch (s->state) {
    case MINUS:
      return digit ? go(s, c == '0' ? ZERO : INT) : refuse(s, "expected a digit");
    case ZERO:
    case INT:
      if (digit && s->state == INT) return TAKEN;
      if (c == '.') return go(s, DOT);
      return e ? go(s, E) : end_number(s);
    case DOT:
      return digit ? go(s, FRACTION) : refuse(s, "expected a digit");
    case FRACTION:
      if (digit) return TAKEN;
      return e ? go(s, E) : end_number(s);
    case E:
      if (c == '+' || c == '-') return go(s, E_SIGN);
      return digit ? go(s, EXPONENT) : refuse(s, "expected a digit");
    case E_SIGN:
      return digit ? go(s, EXPONENT) : refuse(s, "expected a digit");
    default:
      return digit ? TAKEN : end_number(s);
  }
}

static enum outcome in_literal(struct mw_skim *s, char c) {
  if (c != *s->literal) return refuse(s, "expected a value");
  s->literal++;
  return *s->literal == '\0' ? complete(s) : TAKEN;
}

static enum outcome step(struct mw_skim *s, char c) {
  if (s->state <= AFTER) return structure(s, c);
  switch (s->state) {
    case STRING:
      return in_string(s, c);
    case ESCAPE:
      return in_escape(s, c);
    case HEX:
      return in_hex(s, c);
    case UTF8:
      return in_utf8(s, (unsigned char)c);
    case LITERAL:
      return in_literal(s, c);
    default:
      return in_number(s, c);
  }
}

int mw_skim_feed(struct mw_skim *s, const char **p, const char *end) {
  while (*p < end) {
    enum outcome outcome = step(s, **p);
    if (outcome == REFUSED) return s->fault == MW_FAULT_LIMIT ? MW_ELIMIT : MW_EPARSE;
    if (outcome == TAKEN) ++*p;
    if (s->state == DONE) return 1;
  }
  return 0;
}
