-- busted's output for scripts/test: one line per file while it runs, failures at once and whole,
-- the counts into $MOONWATCH_RESULTS at the end. A pending spec counts as failed: nothing is skipped.
return function(options)
  local busted = require "busted"
  local handler = require "busted.outputHandlers.base"()
  local passed, failed = 0, 0
  local clock = require("luv").hrtime
  local started, file_passed, file_failed

  local function show(title, element, message, trace)
    io.write(("\n\27[31m%s\27[0m %s\n  at %s:%s\n  %s\n"):format(title, handler.getFullName(element),
      element.trace and element.trace.short_src or "?",
      element.trace and element.trace.currentline or "?",
      tostring(message or ""):gsub("\n", "\n  ")))
    if trace and trace.traceback and options.verbose then io.write(trace.traceback, "\n") end
    io.flush()
  end

  function handler.fileStart()
    started, file_passed, file_failed = clock(), 0, 0
    return nil, true
  end

  function handler.fileEnd(element)
    io.write(("%-46s %4d passed%s  %.1f s\n"):format(element.name:gsub("^%./", ""), file_passed,
      file_failed > 0 and (", \27[31m%d failed\27[0m"):format(file_failed) or "",
      (clock() - started) / 1e9))
    io.flush()
    return nil, true
  end

  function handler.testEnd(_, _, status)
    if status == "success" then
      passed, file_passed = passed + 1, (file_passed or 0) + 1
    else
      failed, file_failed = failed + 1, (file_failed or 0) + 1
    end
    return nil, true
  end

  local function message_of(message)
    if type(message) == "table" then return message.message or tostring(message) end
    return message
  end

  function handler.testFailure(element, _, message, trace)
    show("FAILED", element, message_of(message), trace)
    return nil, true
  end
  handler.testError = handler.testFailure

  function handler.testPending(element, _, message)
    show("PENDING (counts as failed)", element, message)
    return nil, true
  end

  function handler.error(element, _, message, trace)
    if element.descriptor ~= "it" then
      failed = failed + 1
      show("ERROR", element, message_of(message), trace)
    end
    return nil, true
  end

  function handler.exitSuite()
    local path = os.getenv("MOONWATCH_RESULTS")
    if path then
      local out = assert(io.open(path, "w"))
      out:write(passed, " ", failed, "\n")
      out:close()
    end
    return nil, true
  end

  busted.subscribe({ "file", "start" }, handler.fileStart)
  busted.subscribe({ "file", "end" }, handler.fileEnd)
  busted.subscribe({ "test", "end" }, handler.testEnd, { predicate = handler.cancelOnPending })
  busted.subscribe({ "failure", "it" }, handler.testFailure)
  busted.subscribe({ "error", "it" }, handler.testError)
  busted.subscribe({ "pending" }, handler.testPending)
  busted.subscribe({ "failure" }, handler.error)
  busted.subscribe({ "error" }, handler.error)
  busted.subscribe({ "exit" }, handler.exitSuite)
  return handler
end
