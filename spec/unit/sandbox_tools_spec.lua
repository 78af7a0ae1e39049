-- The tools of kube._server that need no server.
local host = require "spec.support.sandbox_env"
local uv = require "luv"
local unit = require "spec.support.unit"

describe("the sandbox's tools", function()
  unit.no_leaks()

  it("make random bytes", function()
    assert.equal(16, #host.random(16))
    assert.equal("", host.random(0))
    assert.not_equal(host.random(16), host.random(16))
    assert.is_false(pcall(host.random, -1))
  end)

  it("know the time", function()
    assert.is_true(math.abs(host.now() - os.time()) < 2)
    local before = host.monotonic()
    assert.is_true(host.monotonic() >= before)
  end)

  it("compute digests", function()
    assert.equal("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", host.hex(host.sha256 ""))
    assert.equal("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", host.hex(host.sha256 "abc"))
    assert.equal("ddaf35a193617aba", host.hex(host.sha512 "abc"):sub(1, 16))
    assert.equal(64, #host.sha512 "abc")
  end)

  it("encode and decode base64 of either alphabet", function()
    for text, encoded in pairs { [""] = "", a = "YQ==", ab = "YWI=", abc = "YWJj", ["\255\254\253"] = "//79" } do
      assert.equal(encoded, host.base64(text))
      assert.equal(text, host.unbase64(encoded))
    end
    assert.equal("__79YQ", host.base64url "\255\254\253a")
    assert.equal("\255\254\253a", host.unbase64url "__79YQ")
    assert.equal("ab", host.unbase64 "YW\nI=\n")
    for _, wrong in ipairs { "Y", "YQ", "YQ=", "YQ===", "=YQ=", "Y Q=", "_w==" } do
      assert.is_nil(host.unbase64(wrong))
    end
    assert.is_nil(host.unbase64url "/w")
    assert.is_nil(host.unbase64url "YWJjY")
  end)

  it("compress as gzip does", function()
    local text = ("all work and no play "):rep(1000)
    local packed = host.gzip(text)
    assert.is_true(#packed < 1000)
    local name = os.tmpname()
    local file = assert(io.open(name, "wb"))
    file:write(packed)
    file:close()
    local pipe = assert(io.popen("gzip -dc < " .. name))
    assert.equal(text, pipe:read("*a"))
    pipe:close()
    os.remove(name)
  end)

  it("write a file for its owner alone, in the place of what was there, and leave nothing when they cannot", function()
    local path = os.tmpname()
    for _, name in ipairs { path, path .. ".new" } do
      assert(io.open(name, "w")):close()
      assert(uv.fs_chmod(name, tonumber("644", 8)))
    end
    assert.is_true(host.write(path, "kept"))
    local file = assert(io.open(path))
    assert.equal("kept", file:read("*a"))
    file:close()
    assert.equal(tonumber("600", 8), uv.fs_stat(path).mode % 512)
    assert.is_nil(uv.fs_stat(path .. ".new"))
    os.remove(path)
    assert(uv.fs_mkdir(path, tonumber("700", 8)))
    assert.same({ nil, path .. ": Is a directory" }, { host.write(path, "lost") })
    assert.is_nil(uv.fs_stat(path .. ".new"))
    assert(uv.fs_rmdir(path))
    assert.same({ nil, "/no-such-directory/x: No such file or directory" }, { host.write("/no-such-directory/x", "") })
  end)

  it("unpack what was packed, and nothing that is damaged or too large", function()
    for _, text in ipairs { "", "a", ("all work and no play "):rep(10000) } do
      local packed = host.gzip(text)
      assert.equal(text, host.gunzip(packed, #text))
      assert.equal(text, host.gunzip(packed, #text + 1))
      if text ~= "" then assert.is_nil(host.gunzip(packed, #text - 1)) end
      assert.is_nil(host.gunzip(packed:sub(1, -2), #text))
      assert.is_nil(host.gunzip("x" .. packed, #text))
    end
    -- It says that it holds less, or more, than it does.
    local packed = host.gzip("four")
    assert.is_nil(host.gunzip(packed:sub(1, -5) .. "\3\0\0\0", 100))
    assert.is_nil(host.gunzip(packed:sub(1, -5) .. "\5\0\0\0", 100))
    assert.is_nil(host.gunzip("", 100))
    assert.is_nil(host.gunzip("not packed at all", 2 ^ 20))
    assert.has_error(function() host.gunzip(packed, -1) end)
  end)

  it("give nothing for a data file that is not there", function()
    assert.is_nil(host.data "no such file")
  end)
end)
