-- What specs wait with: a defect in it looks like one of the program.
local uv = require "luv"
local wait = require "spec.support.wait"

describe("waiting in a spec", function()
  it("ends when its time is over before the loop has turned", function()
    -- An open pipe in which nothing happens: without a timeout the loop would wait for it.
    local pipe, ended = uv.new_pipe(false), false
    local process = assert(uv.spawn("sleep", { args = { "30" }, stdio = { nil, pipe, nil } },
      function() ended = true end))
    pipe:read_start(function() end)
    local begun = uv.hrtime()
    local function slow()
      local at = uv.hrtime()
      while uv.hrtime() - at < 30e6 do end
      return ended
    end
    assert.is_false(wait(slow, 0.01))
    assert.is_true(uv.hrtime() - begun < 20e9)
    process:kill("sigkill")
    assert.is_true(wait(function() return ended end, 10))
    process:close()
    pipe:close()
    uv.run("nowait")
  end)
end)
