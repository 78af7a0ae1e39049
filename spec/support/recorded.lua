-- Answers of a real kube-apiserver, kept under spec/fixtures/sandbox, and a way to compare field errors
-- with them: the server walks its maps in no order.
local json = require "kube.sandbox.json"

local recorded = {}

--- The decoded content of a file of recorded answers.
function recorded.read(name)
  local file = assert(io.open("spec/fixtures/sandbox/" .. name, "rb"))
  local text = file:read("*a")
  file:close()
  return assert(json.decode(text))
end

--- Field errors as sorted lines: our own tables, or recorded arrays of type, field and message.
function recorded.lines(errors)
  local out = {}
  for i, e in ipairs(errors) do
    out[i] = ("%s %s %s"):format(e.type or e[1], e.field or e[2], e.message or e[3])
  end
  table.sort(out)
  return out
end

return recorded
