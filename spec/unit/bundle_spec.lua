-- The files of a script as they were at one moment: which belong to it, what it is called, whether it compiles.
local files = require "spec.support.files"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

ffi.cdef [[ unsigned geteuid(void); int memcmp(const void *, const void *, size_t); ]]

describe("a bundle", function()
  unit.no_leaks()
  local dir

  before_each(function() dir = files.dir() end)
  after_each(function() dir:close() end)

  local function names(bundle)
    local list = {}
    for i = 0, tonumber(C.mw_bundle_count(bundle)) - 1 do
      list[#list + 1] = ffi.string(C.mw_bundle_at(bundle, i).name)
    end
    return list
  end

  local function text_of(bundle, name)
    local file = C.mw_bundle_find(bundle, name)
    if file == nil then return nil end
    return ffi.string(file.text, file.size), ffi.string(file.path)
  end

  -- The bundle, owned by the garbage collector; or nil, message, code.
  local function own(bundle, err)
    if bundle == nil then return nil, ffi.string(err.message), ffi.string(C.mw_err_name(err.code)) end
    return ffi.gc(bundle, C.mw_bundle_unref)
  end

  local function read(path)
    local err = unit.err()
    return own(C.mw_bundle_read(path, err), err)
  end

  local function of(origin, list)
    local err = unit.err()
    local array = ffi.new("struct mw_bundle_file[?]", #list + 1)
    for i, f in ipairs(list) do
      array[i - 1] = { name = f.name, path = f.path or f.name, text = f.text, size = #f.text }
    end
    return own(C.mw_bundle_of(origin, array, #list, err), err)
  end

  local function revision(bundle) return ffi.string(C.mw_bundle_revision(bundle)) end
  local function entry(bundle) return ffi.string(C.mw_bundle_entry(bundle).name) end

  -- 0 or the name of the code, and the report.
  local function check(bundle, limit)
    local report = ffi.new("struct mw_buf")
    C.mw_buf_init(report, limit or 65536)
    local rc = C.mw_bundle_check(bundle, report)
    local text = report.n > 0 and ffi.string(report.p, report.n) or ""
    C.mw_buf_deinit(report)
    return rc == 0 and 0 or ffi.string(C.mw_err_name(rc)), text
  end

  describe("of a file", function()
    it("has the file alone when that names no other", function()
      dir:write("web.lua", "return 1\n"):write("other.lua", "return 2\n")
      local bundle = assert(read(dir:of("web.lua")))
      assert.are.same({ "web" }, names(bundle))
      assert.are.equal("web", entry(bundle))
      assert.are.equal(dir:of("web.lua"), ffi.string(C.mw_bundle_origin(bundle)))
      local text, path = text_of(bundle, "web")
      assert.are.equal("return 1\n", text)
      assert.are.equal(dir:of("web.lua"), path)
      assert.is_nil(text_of(bundle, "other"))
    end)

    it("brings along what its sources require, and what those require, once each", function()
      dir:fill {
        ["web.lua"] = [[local a = require "lib.a" local b = require('lib.b') require [==[no]==] require"lib.a"]],
        ["lib/a.lua"] = [[return require( "lib.b" )]],
        ["lib/b.lua"] = [[local ok, c = pcall(require, "c") return require "web"]],
        ["c/init.lua"] = [==[return require[[c.d]]]==],
        ["c/d.lua"] = "return 1",
        ["no.lua"] = "return 1",
        ["unrelated.lua"] = "return 1",
      }
      local bundle = assert(read(dir:of("web.lua")))
      assert.are.same({ "c.d", "c.init", "lib.a", "lib.b", "web" }, names(bundle))
      assert.are.equal("web", entry(bundle))
    end)

    it("finds a package by the name of its directory, unless a file has that name", function()
      dir:fill { ["web.lua"] = [[require "p" require "q"]], ["p/init.lua"] = "p", ["q/init.lua"] = "dir",
        ["q.lua"] = "file" }
      local bundle = assert(read(dir:of("web.lua")))
      assert.are.same({ "p.init", "q", "web" }, names(bundle))
      assert.are.equal("p", (text_of(bundle, "p")))
      assert.are.equal("p", (text_of(bundle, "p.init")))
      assert.are.equal("file", (text_of(bundle, "q")))
    end)

    it("takes names of libraries, and names that are no names, for nothing", function()
      dir:fill {
        ["web.lua"] = [[
          require "kube" require "kube.retry" require "cjson" require "cjson.safe" require "string" require "table"
          require "../up" require ".x" require "x." require "a..b" require "" require "a b" require(name) require
          xrequire "nope" require "lib." .. name require "gone"
          require "]],
        ["kube.lua"] = "", ["kube/retry.lua"] = "", ["cjson.lua"] = "", ["cjson/safe.lua"] = "", ["string.lua"] = "",
        ["table.lua"] = "", ["x.lua"] = "", ["nope.lua"] = "", ["lib.lua"] = "",
      }
      assert.are.same({ "web" }, names(assert(read(dir:of("web.lua")))))
    end)

    it("counts a name in a comment or a string, which does no harm", function()
      dir:fill { ["web.lua"] = "-- see require 'a'\nprint('require \"b\"')", ["a.lua"] = "", ["b.lua"] = "" }
      assert.are.same({ "a", "b", "web" }, names(assert(read(dir:of("web.lua")))))
    end)

    it("is read in one go, though it has nothing but names that never end", function()
      local text = ("require[["):rep(256 * 1024)
      dir:write("web.lua", text)
      assert.are.equal(text, (text_of(assert(read(dir:of("web.lua"))), "web")))
    end)

    it("is read from a pipe", function()
      dir:write("util.lua", "return 1")
      assert(os.execute(("mkfifo '%s'"):format(dir:of("pipe"))) == 0)
      os.execute(("(printf 'require \"util\"' > '%s') &"):format(dir:of("pipe")))
      local bundle = assert(read(dir:of("pipe")))
      assert.are.equal("pipe", entry(bundle))
      assert.are.same({ "pipe", "util" }, names(bundle))
    end)

    it("is not kept waiting by a pipe that has the name of a module", function()
      dir:write("web.lua", "require 'p'")
      assert(os.execute(("mkfifo '%s'"):format(dir:of("p.lua"))) == 0)
      assert.are.same({ "web" }, names(assert(read(dir:of("web.lua")))))
    end)

    it("lies in the working directory", function()
      local uv = require "luv"
      local before = uv.cwd()
      dir:fill { ["web.lua"] = "require 'lib.a'", ["lib/a.lua"] = "return 1" }
      uv.chdir(dir.path)
      local bundle, message = read("web.lua")
      uv.chdir(before)
      assert(bundle, message)
      assert.are.same({ "lib.a", "web" }, names(bundle))
      assert.are.equal("lib/a.lua", (select(2, text_of(bundle, "lib.a"))))
    end)
  end)

  describe("of a directory", function()
    it("has all Lua files beneath it but specs and what is hidden", function()
      dir:fill {
        ["init.lua"] = "return 1", ["lib/util.lua"] = "return 2", ["lib/init.lua"] = "return 3",
        ["a/b/c.lua"] = "return 4", ["web_spec.lua"] = "(", ["lib/util_spec.lua"] = "(",
        [".hidden.lua"] = "(", [".git/x.lua"] = "(",
        ["README.md"] = "(", ["lib/data.json"] = "{}", [".lua"] = "(",
      }
      local bundle = assert(read(dir.path))
      assert.are.same({ "a.b.c", "init", "lib.init", "lib.util" }, names(bundle))
      assert.are.equal("init", entry(bundle))
      assert.are.equal("return 3", (text_of(bundle, "lib")))
      assert.are.equal(dir:of("a/b/c.lua"), (select(2, text_of(bundle, "a.b.c"))))
    end)

    it("starts with main.lua when there is no init.lua, and takes a slash at the end of its name", function()
      dir:fill { ["main.lua"] = "return 1", ["x.lua"] = "return 2" }
      assert.are.equal("main", entry(assert(read(dir.path .. "/"))))
      dir:write("init.lua", "return 3")
      assert.are.equal("init", entry(assert(read(dir.path))))
    end)

    it("follows links, but not in circles", function()
      dir:fill { ["init.lua"] = "return 1", ["real/a.lua"] = "return 2" }
      dir:link("real", "linked"):link("..", "real/up"):link("real/a.lua", "b.lua"):link("nowhere.lua", "gone.lua")
      assert.are.same({ "b", "init", "linked.a", "real.a" }, names(assert(read(dir.path))))
    end)

    it("says so when two files are the same module", function()
      dir:fill { ["init.lua"] = "return 1", ["a.b.lua"] = "return 2", ["a/b.lua"] = "return 3" }
      local bundle, message, code = read(dir.path)
      assert.is_nil(bundle)
      assert.are.equal("EEXIST", code)
      assert.is_truthy(message:find('are both the module "a.b"; rename one of them', 1, true), message)
      assert.is_truthy(message:find(dir:of("a.b.lua"), 1, true) and message:find(dir:of("a/b.lua"), 1, true), message)
    end)
  end)

  describe("of a mounted ConfigMap", function()
    it("has the keys as modules, dots and all, and the texts of one version", function()
      dir:publish { ["init.lua"] = "one", ["lib.util.lua"] = "two", ["README.md"] = "none", ["x_spec.lua"] = "(" }
      local bundle = assert(read(dir.path))
      assert.are.same({ "init", "lib.util" }, names(bundle))
      assert.are.equal(dir:of("lib.util.lua"), (select(2, text_of(bundle, "lib.util"))))
      local first = revision(bundle)
      dir:publish { ["init.lua"] = "one", ["lib.util.lua"] = "three" }
      bundle = assert(read(dir.path))
      assert.are.equal("three", (text_of(bundle, "lib.util")))
      assert.are_not.equal(first, revision(bundle))
    end)

    it("has what the version has, though the visible links are not made yet", function()
      dir:publish { ["init.lua"] = "require 'new'" }
      dir:write("..next/init.lua", "require 'new' -- 2"):write("..next/new.lua", "return 1")
      dir:link("..next", "..data_tmp"):rename("..data_tmp", "..data")
      assert.are.same({ "init", "new" }, names(assert(read(dir.path))))
      assert.are.same({ "init", "new" }, names(assert(read(dir:of("init.lua")))))
    end)

    it("has directories where items have paths", function()
      dir:publish { ["main.lua"] = "return 1", ["lib/util.lua"] = "return 2" }
      assert.are.same({ "lib.util", "main" }, names(assert(read(dir.path))))
    end)

    it("gives a file the modules of its mount, by keys with dots", function()
      dir:publish { ["web.lua"] = "require 'lib.util'", ["lib.util.lua"] = "require 'q'", ["q.lua"] = "",
        ["z.lua"] = "" }
      assert.are.same({ "lib.util", "q", "web" }, names(assert(read(dir:of("web.lua")))))
    end)

    it("is of one version, however often it is replaced while it is read", function()
      local texts = { ["init.lua"] = "-- 0" }
      for i = 1, 20 do texts["m" .. i .. ".lua"] = "-- 0" end
      dir:publish(texts)
      -- Swaps versions until the file `stop` is there: all files of one have the same text.
      dir:write("..swap.sh", [[
        cd "$1" && n=0
        while [ ! -e ..stop ] && [ $n -lt 20000 ]; do
          n=$((n + 1)); old=$(readlink ..data) && mkdir ..v$n || exit
          for f in "$old"/*.lua; do echo "-- $n" > "..v$n/${f##*/}"; done
          ln -s ..v$n ..data_tmp; mv -T ..data_tmp ..data; rm -r "$old"
          : > ..swapped
        done
        : > ..ended]])
      os.execute(("sh '%s' '%s' &"):format(dir:of("..swap.sh"), dir.path))
      local function exists(name)
        local file = io.open(dir:of(name))
        if file then file:close() end
        return file ~= nil
      end
      while not exists("..swapped") do os.execute("sleep 0.01") end
      local whole = 0
      for _ = 1, 300 do
        local bundle, message = read(dir.path)
        if bundle then
          whole = whole + 1
          local text = text_of(bundle, "init")
          assert.are.equal(21, #names(bundle))
          for i = 1, 20 do assert.are.equal(text, (text_of(bundle, "m" .. i))) end
        else
          assert.are.equal(dir.path .. " changes while it is read; wait until it is at rest", message)
        end
      end
      dir:write("..stop", "")
      while not exists("..ended") do os.execute("sleep 0.01") end
      assert(read(dir.path))
      assert.is_true(whole > 0)
    end)
  end)

  describe("that cannot be read", function()
    local function fails(path, code, text)
      local bundle, message, got = read(path)
      assert.is_nil(bundle)
      assert.are.equal(text, message)
      assert.are.equal(code, got)
    end

    it("says what is missing and what to give", function()
      fails(dir:of("x.lua"), "ENOTFOUND", "cannot open " .. dir:of("x.lua") ..
        ": No such file or directory; give a script, or a directory with an init.lua")
      fails(dir:of("x/y/z.lua"), "ENOTFOUND", "cannot open " .. dir:of("x/y/z.lua") ..
        ": No such file or directory; give a script, or a directory with an init.lua")
    end)

    it("says that a directory has no script to start with", function()
      dir:write("web.lua", "return 1")
      fails(dir.path, "ENOTFOUND", dir.path ..
        " has neither an init.lua nor a main.lua; name the script init.lua, or give the file itself")
    end)

    it("says that the script is empty", function()
      local message = " is empty; write the script into it, or give another file"
      dir:write("web.lua", ""):write("init.lua", " \n\t\n")
      fails(dir:of("web.lua"), "EINVAL", dir:of("web.lua") .. message)
      fails(dir.path, "EINVAL", dir:of("init.lua") .. message)
    end)

    it("names a file that may not be read", function()
      if ffi.C.geteuid() == 0 then
        -- Root reads everything; what it cannot open are links in a circle.
        dir:link("b.lua", "a.lua"):link("a.lua", "b.lua")
        fails(dir:of("a.lua"), "EIO", "cannot open " .. dir:of("a.lua") ..
          ": Too many levels of symbolic links; see that the user moonwatch runs as may read it")
        return
      end
      dir:fill { ["init.lua"] = "return 1", ["lib/secret.lua"] = "return 2" }
      assert(os.execute(("chmod 000 '%s'"):format(dir:of("lib/secret.lua"))) == 0)
      fails(dir.path, "EIO", "cannot open " .. dir:of("lib/secret.lua") ..
        ": Permission denied; see that the user moonwatch runs as may read it")
    end)

    it("gives up on a file that is never what its size says", function()
      fails("/proc/version", "ESTATE", "/proc/version changes while it is read; save it once more")
    end)

    it("has a limit for its depth", function()
      local path = ("d/"):rep(16)
      dir:write("init.lua", "return 1"):write(path .. "x.lua", "return 1")
      assert(read(dir.path))
      dir:write(path .. "d/x.lua", "return 1")
      fails(dir.path, "ELIMIT", dir:of(path .. "d") ..
        " lies deeper than 16 directories; give a directory that holds nothing but the script")
    end)

    it("has a limit for the number of its files", function()
      for i = 1, 999 do dir:write(("m%d.lua"):format(i), "") end
      dir:write("init.lua", "return 1")
      assert.are.equal(1000, #names(assert(read(dir.path))))
      dir:write("one_more.lua", "")
      local bundle, message, code = read(dir.path)
      assert.is_nil(bundle)
      assert.are.equal("ELIMIT", code)
      assert.is_truthy(message:find("is one Lua file too many: a script has at most 1000; give a", 1, true), message)
    end)

    it("has a limit for what is looked at", function()
      dir:write("init.lua", "return 1")
      -- A hundred files, seen through a hundred links.
      for i = 1, 100 do dir:write("data/" .. i, ""):link("data", "link" .. i) end
      fails(dir.path, "ELIMIT", dir.path ..
        " has more than 10000 files and directories; give a directory that holds nothing but the script")
      local required = {}
      for i = 1, 10001 do required[i] = ("require 'm%d'"):format(i) end
      dir:write("web.lua", table.concat(required, " "))
      fails(dir:of("web.lua"), "ELIMIT", dir:of("web.lua") .. " requires more than 10000 modules; give a script")
    end)

    it("has a limit for its bytes, of one file and of all", function()
      local half = ("-"):rep(8 * 1024 * 1024)
      dir:write("init.lua", half .. half)
      assert(read(dir:of("init.lua")))
      local text = " is too large: all files of a script together have at most 16 MiB"
      dir:write("a.lua", "-")
      local bundle, message, code = read(dir.path)
      assert.is_nil(bundle)
      assert.are.equal("ELIMIT", code)
      assert.is_truthy(message:find(text, 1, true), message)
      dir:write("init.lua", half .. half .. "-")
      fails(dir:of("init.lua"), "ELIMIT", dir:of("init.lua") .. text)
      fails("/dev/zero", "ELIMIT", "/dev/zero" .. text)
    end)
  end)

  describe("from memory", function()
    it("has keys as modules, and leaves out what is none", function()
      local bundle = assert(of("configmap default/web", {
        { path = "init.lua", text = "a" }, { path = "lib.util.lua", text = "b" }, { path = "README", text = "c" },
        { path = "init_spec.lua", text = "d" },
      }))
      assert.are.same({ "init", "lib.util" }, names(bundle))
      assert.are.equal("configmap default/web", ffi.string(C.mw_bundle_origin(bundle)))
      assert.are.equal("configmap default/web/lib.util.lua", (select(2, text_of(bundle, "lib.util"))))
    end)

    it("starts with init, else main, else the only file", function()
      local function first(...)
        local list = {}
        for i, name in ipairs { ... } do list[i] = { name = name, text = "x" } end
        local bundle, message = of("memory", list)
        return bundle and entry(bundle) or message
      end
      assert.are.equal("init", first("main", "init", "a"))
      assert.are.equal("main", first("a", "main"))
      assert.are.equal("a", first("a"))
      assert.are.equal("memory has neither an init.lua nor a main.lua; name the script init.lua", first("a", "b"))
      assert.are.equal("memory has no Lua file; name the script init.lua", first())
      assert.are.equal('x and y are both the module "a"; rename one of them', (select(2, of("memory", {
        { name = "a", path = "x", text = "1" }, { name = "a", path = "y", text = "1" } }))))
    end)

    it("copies what it is given, NULs as well", function()
      local text = "-- \0\nreturn 1"
      assert.are.equal(text, (text_of(assert(of("memory", { { name = "init", text = text } })), "init")))
    end)
  end)

  describe("has a revision", function()
    it("of 12 hex digits that depends on names and contents, not on the place", function()
      local texts = { ["init.lua"] = "return 1", ["lib/a.lua"] = "return 2" }
      local other = files.dir()
      dir:fill(texts)
      other:fill(texts)
      local first = revision(assert(read(dir.path)))
      assert.is_truthy(first:match("^%x%x%x%x%x%x%x%x%x%x%x%x$"))
      assert.are.equal(first, revision(assert(read(other.path))))
      assert.are.equal(first, revision(assert(of("memory", {
        { name = "lib.a", text = "return 2" }, { name = "init", text = "return 1" } }))))
      other:write("lib/a.lua", "return 3")
      assert.are_not.equal(first, revision(assert(read(other.path))))
      other:write("lib/a.lua", "return 2")
      assert.are.equal(first, revision(assert(read(other.path))))
      other:rename("lib/a.lua", "lib/b.lua")
      assert.are_not.equal(first, revision(assert(read(other.path))))
      other:close()
    end)

    it("that tells apart how bytes fall on files, and which file comes first", function()
      local seen, count = {}, 0
      for _, list in ipairs {
        { { name = "init", text = "ab" }, { name = "x", text = "c" } },
        { { name = "init", text = "a" }, { name = "x", text = "bc" } },
        { { name = "init", text = "ab" }, { name = "xc", text = "" } },
        { { name = "init", text = "abxc" } },
      } do
        seen[revision(assert(of("memory", list)))] = true
      end
      for _ in pairs(seen) do count = count + 1 end
      assert.are.equal(4, count)
      dir:write("a.lua", "require 'b' require 'a'"):write("b.lua", "require 'b' require 'a'")
      assert.are_not.equal(revision(assert(read(dir:of("a.lua")))), revision(assert(read(dir:of("b.lua")))))
    end)
  end)

  describe("is checked", function()
    it("with nothing to say when all files compile", function()
      local bundle = assert(of("memory", {
        { name = "init", text = "#!/usr/bin/env moonwatch\nlocal x = 1" },
        { name = "main", text = "\239\187\191return 1" }, { name = "empty", text = "" },
      }))
      assert.are.same({ 0, "" }, { check(bundle) })
    end)

    it("with a paragraph for every file that does not compile", function()
      dir:fill {
        ["init.lua"] = "local a = 1\nlocal x = = 3\n",
        ["lib/fine.lua"] = "return 1",
        ["lib/open.lua"] = "local function f()\n  g()\n\nlocal y = 2\n\n\n",
        ["z.lua"] = "\tif x the\n\tprint(1)\nend\n",
      }
      local code, report = check(assert(read(dir.path)))
      assert.are.equal("ESCRIPT", code)
      assert.are.equal(([[
DIR/init.lua:2: unexpected symbol near '='
     2 | local x = = 3
       |           ^

DIR/lib/open.lua:7: 'end' expected (to close 'function' at line 1) near '<eof>'
     1 | local function f()
     4 | local y = 2
       |            ^

DIR/z.lua:1: 'then' expected near 'the'
     1 | 	if x the
       | 	     ^
]]):gsub("DIR", function() return dir.path end), report)
    end)

    it("with a mark under the right one of many, also past letters of several bytes", function()
      local _, report = check(assert(of("memory", { { name = "init", text = "x = 'ä=' == = 'é'" } })))
      assert.are.equal("init:1: unexpected symbol near '='\n     1 | x = 'ä=' == = 'é'\n" ..
        "       |             ^\n", report)
    end)

    it("with what is around the mark of a very long line", function()
      local _, report = check(assert(of("memory", {
        { name = "init", text = "x = '" .. ("ä"):rep(500) .. "' ) '" .. ("b"):rep(500) .. "'" } })))
      local lines = {}
      for line in report:gmatch("[^\n]+") do lines[#lines + 1] = line end
      assert.are.equal(3, #lines)
      assert.is_true(#lines[2] < 140)
      local before = lines[2]:match("^(.*)%)")
      local _, characters = before:gsub("[^\128-\191]", "")
      assert.are.equal((" "):rep(7) .. "|" .. (" "):rep(characters - 8) .. "^", lines[3])
    end)

    it("with words for compiled Lua", function()
      local code = string.dump(function() end)
      for _, text in ipairs { code, "\239\187\191" .. code, "#!/bin/lua\n" .. code, "\239\187\191#\r\n" .. code } do
        local _, report = check(assert(of("memory", { { name = "init", text = text } })))
        assert.are.equal("init: is compiled Lua; give the source\n", report)
      end
    end)

    it("with no control characters from the source", function()
      local _, report = check(assert(of("memory", { { name = "init", text = "x = '\27[31m\7' )" } })))
      assert.is_nil(report:find("[%z\1-\8\11-\31]"))
      _, report = check(assert(of("memory", { { name = "init", text = "x = y 'a\27[31m\\\nb' 'c" } })))
      assert.is_nil(report:find("[%z\1-\8\11-\31]"))
    end)

    it("up to what fits into the report", function()
      local list = {}
      for i = 1, 100 do list[i] = { name = ("m%03d"):format(i), text = "x = )" } end
      list[101] = { name = "init", text = "return 1" }
      local code, report = check(assert(of("memory", list)), 1000)
      assert.are.equal("ESCRIPT", code)
      assert.is_true(#report <= 1000)
      local _, shown = report:gsub("unexpected symbol", "")
      assert.is_true(shown > 5)
      assert.are.equal(tostring(100 - shown), report:match("%^\n\n%.%.%. and (%d+) more files\n$"))
    end)
  end)

  describe("whose code raised an error", function()
    local function explained(bundle, text, limit)
      local out = ffi.new("struct mw_buf")
      C.mw_buf_init(out, limit or 65536)
      local rc = C.mw_bundle_explain(bundle, text, out)
      local result = out.n > 0 and ffi.string(out.p, out.n) or ""
      C.mw_buf_deinit(out)
      return rc == 0 and result or ffi.string(C.mw_err_name(rc))
    end

    local long = "/a/path/that/is/so/long/that/Lua/does/not/show/all/of/it/main.lua"
    local bundle = of("memory", { { name = "init", path = "web.lua", text = "local x\nerror('no')\r\n" },
      { name = "b", path = long, text = "one\n\ttwo\n" } })

    it("has its line shown below the message, before the traceback", function()
      assert.are.equal("web.lua:2: no\n     2 | error('no')", explained(bundle, "web.lua:2: no"))
      assert.are.equal("web.lua:1: no\nand more\n     1 | local x\nstack traceback:\n\t[C]: in x",
        explained(bundle, "web.lua:1: no\nand more\nstack traceback:\n\t[C]: in x"))
    end)

    it("has its whole path where Lua cut it", function()
      assert.are.equal(long .. ":2: no\n     2 | \ttwo", explained(bundle, "..." .. long:sub(-40) .. ":2: no"))
    end)

    it("is shown as it is when it names no place in the files", function()
      for _, text in ipairs { "no", "", "other.lua:1: no", "web.lua: no", "web.lua:x: no", "web.lua:1:no", "...:1: no",
        "web.lua:", "a\nweb.lua:1: no", ":1: no" } do
        assert.are.equal(text, explained(bundle, text))
        assert.are.equal(text, explained(nil, text))
      end
    end)

    it("is cut when it is longer than anybody reads", function()
      local text = ("x"):rep(100000)
      assert.are.equal(text:sub(1, 16384), explained(bundle, text))
      assert.are.equal("ELIMIT", explained(bundle, text, 100))
    end)
  end)

  it("stays while anyone has it", function()
    local bundle = of("memory", { { name = "init", text = "return 1" } })
    ffi.gc(bundle, nil)
    assert.are.equal(bundle, C.mw_bundle_ref(bundle))
    C.mw_bundle_unref(bundle)
    assert.are.equal("return 1", (text_of(bundle, "init")))
    C.mw_bundle_unref(bundle)
    C.mw_bundle_unref(nil)
    assert.is_true(C.mw_bundle_ref(nil) == nil)
  end)

  it("says what was looked at, also when it could not be read", function()
    dir:fill { ["web.lua"] = "require 'lib.a' require 'lib.b.c' require 'gone.x'", ["lib/a.lua"] = "return 1" }
    local function places(path)
      local list, err, found = ffi.new("struct mw_bundle_places"), unit.err(), {}
      own(C.mw_bundle_read_from(path, list, err), err)
      for i = 0, tonumber(list.count) - 1 do
        local place = list.list[i]
        local name = ffi.string(place.path):sub(#dir.path + 2)
        local stamp = C.mw_bundle_stamp(place.path)
        assert.are.equal(0, ffi.C.memcmp(stamp, place.stamp, ffi.sizeof(stamp)), name)
        found[name] = place.directory and "directory" or stamp.inode == 0 and "missing" or "file"
      end
      C.mw_bundle_places_deinit(list)
      return found
    end
    assert.are.same({ [""] = "directory", lib = "directory", ["web.lua"] = "file", ["lib/a.lua"] = "file" },
      places(dir:of("web.lua")))
    assert.are.same({ [""] = "directory", ["x.lua"] = "missing" }, places(dir:of("x.lua")))
    dir:write("lib/b/c.lua", "")
    assert.are.same({ [""] = "directory", lib = "directory", ["lib/b"] = "directory", ["web.lua"] = "file",
      ["lib/a.lua"] = "file", ["lib/b/c.lua"] = "file" }, places(dir.path))
  end)
end)
