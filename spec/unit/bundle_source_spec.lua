-- A source notices what editors, git and kubelets do to the files of a script. Where a spec is about watches, looking
-- is put off for an hour; where it is about looking, there are no watches.
local files = require "spec.support.files"
local source_rig = require "spec.support.bundle_source_rig"
local unit = require "spec.support.unit"
local uv = require "luv"
local C, ffi = unit.C, unit.ffi

describe("a source", function()
  local dir, rig

  local never = 3600

  setup(function() C.mw_log_set_level(C.MW_LOG_ERROR) end)
  teardown(function() C.mw_log_set_level(C.MW_LOG_INFO) end)
  before_each(function() dir = files.dir() end)
  after_each(function()
    if rig then rig:close() end
    rig = nil
    dir:close()
  end)
  unit.no_leaks() -- after that

  local function watch(path, options)
    options = options or {}
    options.interval = options.interval or never
    rig = source_rig.new(path, options):ready()
    return rig
  end

  -- Nothing but what was asked for has been reported: a change that follows is the next report, and the last.
  local function reports_nothing_before(change)
    local before = #rig.reports
    assert.are.equal(rig.seen or 0, before)
    change()
    local report = rig:next()
    assert.are.equal(before + 1, #rig.reports)
    return report
  end

  describe("that watches", function()
    it("tells of a file that is saved in place", function()
      dir:write("web.lua", "return 1")
      watch(dir:of("web.lua"))
      dir:write("web.lua", "return 2")
      assert.are.equal("return 2", rig:next().web)
    end)

    it("tells of a file that is saved by renaming, as vim does, again and again", function()
      dir:write("web.lua", "return 0")
      watch(dir:of("web.lua"))
      for i = 1, 3 do
        dir:rename("web.lua", "web.lua~"):write("web.lua", "return " .. i):remove("web.lua~")
        assert.are.equal("return " .. i, rig:next().web)
        dir:write("4913", "return 'new " .. i .. "'"):rename("4913", "web.lua")
        assert.are.equal("return 'new " .. i .. "'", rig:next().web)
      end
    end)

    it("does not believe in an empty file, nor in a missing one, while someone saves", function()
      dir:write("web.lua", "require 'lib'"):write("lib.lua", "return 1")
      watch(dir:of("web.lua"), { quiet = 0.01, patience = never })
      for i, name in ipairs { "web.lua", "lib.lua" } do
        dir:write(name, "")
        rig:read_again(3)
        dir:write(name, "require 'lib' -- " .. i)
        assert.are.equal("require 'lib' -- " .. i, rig:next()[name:match("^%a+")])
      end
      dir:remove("web.lua")
      rig:read_again(3)
      dir:write("web.lua", "return 3")
      assert.are.equal("return 3", rig:next().web)
      assert.are.equal(3, #rig.reports)
    end)

    it("believes in an empty module after a while", function()
      dir:write("web.lua", "require 'lib'"):write("lib.lua", "return 1")
      watch(dir:of("web.lua"), { quiet = 0.01, patience = 0.1 })
      dir:write("lib.lua", "")
      assert.are.equal("", rig:next().lib)
    end)

    it("tells once of a checkout that writes many files one after the other", function()
      local quiet = 1
      for i = 1, 8 do dir:write(("lib/m%d.lua"):format(i), "return 0") end
      dir:write("init.lua", "return 0")
      watch(dir.path, { quiet = quiet, patience = never })
      -- A round in which this process was kept from running for too long shows nothing: then another one.
      for round = 1, 20 do
        local longest, at = 0, uv.hrtime()
        local before = rig:stats().readings
        for i = 1, 8 do
          dir:write(("lib/m%d.lua"):format(i), "return " .. round)
          C.mw_loop_turn(rig.loop, 20)
          local now = uv.hrtime()
          longest, at = math.max(longest, (now - at) / 1e9), now
        end
        local report = rig:next()
        local readings = rig:stats().readings - before
        if longest < quiet / 2 then
          assert.are.equal(1, readings)
          for i = 1, 8 do assert.are.equal("return " .. round, report["lib.m" .. i]) end
          assert.are.equal(rig.seen, #rig.reports)
          return
        end
        while report["lib.m8"] ~= "return " .. round do report = rig:next() end
      end
      error("this machine is too busy for any checkout")
    end)

    it("reads in the end what never comes to rest", function()
      dir:write("web.lua", "return 0")
      watch(dir:of("web.lua"), { quiet = never, patience = 0.2 })
      local i = 0
      rig:until_true(function()
        i = i + 1
        dir:write("web.lua", "return " .. i)
        return #rig.reports > 0
      end)
    end)

    it("tells of a module that comes in a new directory, and of its changes", function()
      dir:write("web.lua", "pcall(require, 'lib.deep.new')")
      watch(dir:of("web.lua"))
      assert.are.equal(1, rig:stats().watches)
      dir:mkdir("lib")
      rig:until_true(function() return rig:stats().watches == 2 end)
      dir:mkdir("lib/deep")
      rig:until_true(function() return rig:stats().watches == 3 end)
      dir:write("lib/deep/new.lua", "return 1")
      assert.are.equal("return 1", rig:next()["lib.deep.new"])
      dir:write("lib/deep/new.lua", "return 2")
      assert.are.equal("return 2", rig:next()["lib.deep.new"])
    end)

    it("tells of new files and directories of a directory, and of their end", function()
      dir:write("init.lua", "return 0")
      watch(dir.path)
      dir:write("a/b/c.lua", "return 1")
      local report = rig:next()
      while not report["a.b.c"] do report = rig:next() end
      rig:until_true(function() return rig:stats().watches == 3 end)
      dir:write("a/b/c.lua", "return 2")
      assert.are.equal("return 2", rig:next()["a.b.c"])
      dir:remove("a")
      report = rig:next()
      while report["a.b.c"] do report = rig:next() end
      rig:until_true(function() return rig:stats().watches == 1 end)
    end)

    it("is not deaf in a directory that was replaced by another one", function()
      dir:fill { ["init.lua"] = "return 0", ["lib/a.lua"] = "return 0" }
      watch(dir.path)
      for i = 1, 3 do
        dir:remove("lib"):write("lib/a.lua", "return " .. i)
        local report = rig:next()
        while report["lib.a"] ~= "return " .. i do report = rig:next() end
        rig:until_true(function() return rig:stats().watches == 2 end)
        dir:write("lib/a.lua", "return " .. i .. " -- changed")
        assert.are.equal("return " .. i .. " -- changed", rig:next()["lib.a"])
      end
    end)

    it("finds its directory again when that was away", function()
      dir:write("web/init.lua", "return 0")
      watch(dir:of("web"))
      dir:rename("web", "elsewhere")
      assert.are.equal("cannot open " .. dir:of("web") ..
        ": No such file or directory; give a script, or a directory with an init.lua", rig:next().error)
      dir:rename("elsewhere", "web")
      assert.are.equal("return 0", rig:next().init)
      dir:write("web/init.lua", "return 1")
      assert.are.equal("return 1", rig:next().init)
    end)

    it("tells of every version of a mounted ConfigMap", function()
      dir:publish { ["init.lua"] = "return 0", ["lib.a.lua"] = "return 0" }
      watch(dir.path)
      assert.are.equal(1, rig:stats().watches)
      for i = 1, 3 do
        dir:publish { ["init.lua"] = "return 0", ["lib.a.lua"] = "return " .. i, ["new" .. i .. ".lua"] = "return 1" }
        local report = rig:next()
        assert.are.same({ "return 0", "return " .. i, "return 1" },
          { report.init, report["lib.a"], report["new" .. i] })
      end
      assert.are.equal(3, #rig.reports)
    end)

    it("tells of every version of a file in a mounted ConfigMap", function()
      dir:publish { ["web.lua"] = "return 0" }
      watch(dir:of("web.lua"))
      for i = 1, 3 do
        dir:publish { ["web.lua"] = "return " .. i }
        assert.are.equal("return " .. i, rig:next().web)
      end
    end)

    it("says nothing of files that are touched, saved as they were, or none of the script's", function()
      dir:write("web.lua", "return 0")
      watch(dir:of("web.lua"))
      assert(uv.fs_utime(dir:of("web.lua"), 1, 1))
      rig:read_again()
      dir:write("web.lua", "return 0")
      rig:read_again()
      dir:write("notes.txt", "x"):write("other.lua", "return 1")
      rig:read_again()
      assert.are.equal("return 1", reports_nothing_before(function() dir:write("web.lua", "return 1") end).web)
    end)

    it("tells of an entry that is removed, once, and that it is back, though it is the same", function()
      dir:write("web.lua", "return 0")
      watch(dir:of("web.lua"), { quiet = 0.01, patience = 0.1 })
      dir:remove("web.lua")
      assert.are.equal("cannot open " .. dir:of("web.lua") ..
        ": No such file or directory; give a script, or a directory with an init.lua", rig:next().error)
      dir:write("notes.txt", "x")
      rig:read_again()
      local report = reports_nothing_before(function() dir:write("web.lua", "return 0") end)
      assert.are.equal("return 0", report.web)
      dir:write("web.lua", " ")
      assert.is_truthy(rig:next().error:find("is empty", 1, true))
      dir:remove("web.lua")
      assert.is_truthy(rig:next().error:find("No such file", 1, true))
    end)

    it("leaves directories beyond its number to looking", function()
      local count = C.MW_BUNDLE_SOURCE_WATCHES_MAX + 3
      dir:write("init.lua", "return 0")
      for i = 1, count do dir:write(("d%d/m.lua"):format(i), "return 0") end
      watch(dir.path, { interval = 0.05, quiet = 0.01 })
      assert.are.equal(C.MW_BUNDLE_SOURCE_WATCHES_MAX, rig:stats().watches)
      for i = 1, count, 20 do
        dir:write(("d%d/m.lua"):format(i), "return 1")
        assert.are.equal("return 1", rig:next()[("d%d.m"):format(i)])
      end
    end)
  end)

  describe("that only looks", function()
    local function look(path, interval)
      return watch(path, { no_inotify = true, interval = interval or 0.05, quiet = 0.01, patience = 0.1 })
    end

    it("tells of files that are saved, in place and by renaming", function()
      dir:write("web.lua", "return 0")
      look(dir:of("web.lua"))
      assert.are.equal(0, rig:stats().watches)
      for i = 1, 3 do
        dir:write("web.lua", "return " .. i)
        assert.are.equal("return " .. i, rig:next().web)
        dir:write("4913", "return 'new " .. i .. "'"):rename("4913", "web.lua")
        assert.are.equal("return 'new " .. i .. "'", rig:next().web)
      end
    end)

    it("tells of a file whose time was set back, and of new modules and versions", function()
      dir:write("web.lua", "pcall(require, 'lib.a') return 0")
      look(dir:of("web.lua"))
      local stat = uv.fs_stat(dir:of("web.lua"))
      dir:write("web.lua", "pcall(require, 'lib.a') return 1")
      assert(uv.fs_utime(dir:of("web.lua"), stat.atime.sec, stat.mtime.sec))
      assert.are.equal("pcall(require, 'lib.a') return 1", rig:next().web)
      dir:write("lib/a.lua", "return 1")
      local report = rig:next()
      while report["lib.a"] ~= "return 1" do report = rig:next() end
    end)

    it("tells of every version of a mounted ConfigMap", function()
      dir:publish { ["init.lua"] = "return 0" }
      look(dir.path)
      for i = 1, 3 do
        dir:publish { ["init.lua"] = "return " .. i }
        assert.are.equal("return " .. i, rig:next().init)
      end
    end)

    it("reads again, for a while, what was written just before it was read", function()
      dir:write("web.lua", "return 0")
      look(dir:of("web.lua"))
      rig:read_again(2)
      assert.are.equal(0, #rig.reports)
    end)

    it("reads nothing when nothing has moved", function()
      dir:write("web.lua", "return 0")
      -- Long ago for the one time that can be set; the other one gets old by itself.
      look(dir:of("web.lua"))
      rig:until_true(function()
        local before = rig:stats().readings
        local stop = uv.hrtime() + 0.5e9
        rig:until_true(function() return uv.hrtime() > stop end)
        return rig:stats().readings == before
      end, "it reads all the time")
    end)
  end)

  it("does without inotify where there is none to be had, and says what to do", function()
    local function run(command)
      local pipe = assert(io.popen(command .. " 2>&1"))
      local text = pipe:read("*a")
      pipe:close()
      return text
    end
    -- The kernel's answer when a user has as many watches as he may, without taking them from everybody else.
    dir:write("full.c", [[
      #include <errno.h>
      int inotify_add_watch(int fd, const char *path, unsigned mask);
      int inotify_add_watch(int fd, const char *path, unsigned mask) {
        (void)fd, (void)path, (void)mask;
        errno = ENOSPC;
        return -1;
      }
    ]])
    local full = dir:of("full.so")
    assert.are.equal("", run(("env -u LD_PRELOAD gcc -shared -fPIC -o %s %s"):format(full, dir:of("full.c"))))
    dir:fill { ["init.lua"] = "return 0", ["lib/a.lua"] = "return 0" }
    local preload = ((os.getenv("LD_PRELOAD") or "") .. ":" .. full):gsub("^:", "")
    local text = run(("LD_PRELOAD=%s luajit spec/support/bundle_source_child.lua %s"):format(preload, dir.path))
    assert.is_truthy(text:find("watches\t0\n", 1, true), text)
    assert.is_truthy(text:find("reports\t2\n", 1, true), text)
    local _, lines = text:gsub("cannot be watched", "")
    assert.are.equal(1, lines, text)
    assert.is_truthy(text:find("raise the sysctl fs.inotify.max_user_watches", 1, true), text)
  end)

  it("reports its first reading when nothing is known yet, whatever that is", function()
    watch(dir:of("web.lua"), { known = false, patience = never })
    assert.is_truthy(rig:next().error:find("No such file", 1, true))
    dir:write("web.lua", "return 1")
    assert.are.equal("return 1", rig:next().web)
    rig:close()
    watch(dir:of("web.lua"), { known = false, patience = never })
    assert.are.equal("return 1", rig:next().web)
  end)

  it("reports what has changed between the reading that is known and its own", function()
    dir:write("web.lua", "return 1")
    rig = source_rig.new(dir:of("web.lua"), { interval = never })
    dir:write("web.lua", "return 2")
    assert.are.equal("return 2", rig:next().web)
  end)

  it("never reads a pipe", function()
    assert(os.execute(("mkfifo '%s'"):format(dir:of("pipe"))) == 0)
    rig = source_rig.new(dir:of("pipe"), { known = false, interval = 0.01 })
    for _ = 1, 20 do C.mw_loop_turn(rig.loop, 10) end
    assert.are.equal(0, rig:stats().readings)
  end)

  it("may be freed by its own callback, and while it waits", function()
    dir:write("web.lua", "return 1")
    watch(dir:of("web.lua"))
    rig.on_report = function()
      C.mw_bundle_source_free(rig.source)
      rig.source = nil
    end
    dir:write("web.lua", "return 2")
    rig:next()
    assert.is_true(rig.source == nil)
    rig:close()
    watch(dir:of("web.lua"), { quiet = never, patience = never })
    dir:write("web.lua", "return 3")
    C.mw_loop_turn(rig.loop, 10)
    C.mw_bundle_source_free(ffi.cast("struct mw_bundle_source *", nil))
  end)
end)
