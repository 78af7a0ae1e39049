-- captured(fn): calls fn and returns what it wrote to stderr, C's logs too.
local ffi = require "ffi"

ffi.cdef "int dup(int); int dup2(int, int); int close(int); int fileno(void *);"

return function(fn)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  local saved = ffi.C.dup(2)
  ffi.C.dup2(ffi.C.fileno(file), 2)
  local ok, err = pcall(fn)
  ffi.C.dup2(saved, 2)
  ffi.C.close(saved)
  file:close()
  local text = io.open(path):read("*a")
  os.remove(path)
  assert(ok, err)
  return text
end
