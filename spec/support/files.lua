-- Files for specs that read them: a directory that goes away, and what kubelets and editors do in it.
local uv = require "luv"

local files = {}

local Dir = {}
Dir.__index = Dir

--- The directory of that path, which must be there.
function files.at(path) return setmetatable({ path = path }, Dir) end

--- A new one, for the caller to close.
function files.dir()
  return files.at(assert(uv.fs_mkdtemp((os.getenv("TMPDIR") or "/tmp") .. "/mw-files-XXXXXX")))
end

function Dir:of(name) return self.path .. "/" .. name end

--- Makes a directory, with those that it needs.
function Dir:mkdir(name)
  local path = self.path
  for part in name:gmatch("[^/]+") do
    path = path .. "/" .. part
    local ok, message, code = uv.fs_mkdir(path, 493)
    assert(ok or code == "EEXIST", message)
  end
  return self
end

--- Writes a file in place, with the directories that it needs.
function Dir:write(name, text)
  local parent = name:match("^(.*)/")
  if parent then self:mkdir(parent) end
  local file = assert(io.open(self:of(name), "wb"))
  file:write(text)
  file:close()
  return self
end

--- Writes several, { name = text }.
function Dir:fill(texts)
  for name, text in pairs(texts) do self:write(name, text) end
  return self
end

function Dir:link(target, name)
  assert(uv.fs_symlink(target, self:of(name)))
  return self
end

function Dir:rename(from, to)
  assert(uv.fs_rename(self:of(from), self:of(to)))
  return self
end

--- Removes a file, or a directory with what is in it.
function Dir:remove(name)
  assert(os.execute(("rm -r '%s'"):format(self:of(name))) == 0)
  return self
end

--- Shows texts as the kubelet shows a ConfigMap: files in a directory of their own, the link `..data` put onto it
--- in one step, links of the visible names, and then the directory before that is removed.
function Dir:publish(texts)
  self.version = (self.version or 0) + 1
  local new = ("..version_%d"):format(self.version)
  local before = uv.fs_readlink(self:of("..data"))
  for name, text in pairs(texts) do self:write(new .. "/" .. name, text) end
  self:link(new, "..data_tmp")
  self:rename("..data_tmp", "..data")
  for name in pairs(texts) do
    local top = name:match("^[^/]+")
    if not uv.fs_lstat(self:of(top)) then self:link("..data/" .. top, top) end
  end
  if before then assert(os.execute(("rm -r '%s'"):format(self:of(before))) == 0) end
  return self
end

function Dir:close()
  assert(self.path:match("/mw%-files%-%w+$"))
  os.execute("chmod -R u+rwX '" .. self.path .. "'; rm -r '" .. self.path .. "'")
end

return files
