// SPDX-License-Identifier: Apache-2.0
// Input: the source of a script. The modules that it names are names, stand in it behind the word
// that requires them, in order, and are those that a scan of what is left finds as well. It is
// checked as a bundle of one file: with a report exactly when Lua refuses it, of whole lines
// without control characters, the last of which has the mark.
#include <ctype.h>
#include <lauxlib.h>
#include <lua.h>
#include <string.h>

#include "fuzz.h"
#include "script/bundle_internal.h"

enum { REPORT_MAX = 64 * 1024 };

static void check_name(struct mw_slice text, struct mw_slice rest, struct mw_slice name) {
  require(name.n > 0 && name.n <= 200);
  require(name.p > text.p && name.p + name.n < text.p + text.n);
  require(rest.p <= name.p && rest.p + rest.n == text.p + text.n);
  require(memcmp(rest.p - 7, "require", 7) == 0);
  for (size_t i = 0; i < name.n; i++) {
    char c = name.p[i];
    require(isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.');
    require(c != '.' || (i > 0 && i + 1 < name.n && name.p[i + 1] != '.'));
  }
}

static void check_scan(struct mw_slice text) {
  struct mw_slice rest = text, name, again;
  while (mw_bundle_next_require(&rest, &name)) {
    check_name(text, rest, name);
    // From a word before it the same is found.
    struct mw_slice tail = mw_slice(rest.p - 7, rest.n + 7);
    require(mw_bundle_next_require(&tail, &again));
    require(again.p == name.p && again.n == name.n && tail.p == rest.p);
  }
  require(rest.n == 0);
}

static void check_report(struct mw_slice report) {
  require(report.n > 0 && report.p[report.n - 1] == '\n');
  require(memcmp(report.p, "fuzz.lua:", 9) == 0);
  const char *compiled = "fuzz.lua: is compiled Lua; give the source\n";
  if (mw_slice_is(report, compiled)) return;
  for (size_t i = 0; i < report.n; i++)
    require((unsigned char)report.p[i] >= 0x20 || report.p[i] == '\n' || report.p[i] == '\t');
  struct mw_slice mark = mw_slice(report.p, report.n - 1);
  require(mark.n > 0 && mark.p[mark.n - 1] == '^');
  const char *line = memrchr(mark.p, '\n', mark.n);
  require(line != NULL);
  for (const char *p = line + 1; p < mark.p + mark.n - 1; p++)
    require(*p == ' ' || *p == '\t' || *p == '|');
}

static bool compiles(struct mw_slice text) {
  lua_State *L = luaL_newstate();
  bool ok = luaL_loadbufferx(L, text.p, text.n, "=f", "t") == 0;
  lua_close(L);
  return ok;
}

static void check_bundle(struct mw_slice text) {
  struct mw_err err = {0};
  struct mw_bundle_file file = {"fuzz", "fuzz.lua", text.p, text.n};
  struct mw_bundle *b = mw_bundle_of("memory", &file, 1, &err);
  if (b == NULL) {
    require(err.code == MW_EINVAL);
    return;
  }
  struct mw_buf report;
  mw_buf_init(&report, REPORT_MAX);
  int rc = mw_bundle_check(b, &report);
  require(rc == (compiles(text) ? 0 : MW_ESCRIPT));
  if (rc < 0) check_report(mw_buf_slice(&report));
  require(rc < 0 || report.n == 0);
  mw_buf_deinit(&report);
  mw_bundle_unref(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // A copy that ends where the input ends, with the NUL that texts of bundles have.
  struct mw_buf copy;
  mw_buf_init(&copy, size);
  require(mw_buf_add(&copy, data, size) == 0);
  check_scan(mw_buf_slice(&copy));
  check_bundle(mw_buf_slice(&copy));
  mw_buf_deinit(&copy);
  return 0;
}
