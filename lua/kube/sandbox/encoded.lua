-- Documents as text, remembered for a while: what one watcher is sent, the next ones get without
-- another encoding. Documents are immutable, so a text stays true; two generations bound the memory,
-- and keep no document alive.
local encoded = {}
encoded.__index = encoded

local GENERATION_BYTES = 8 * 1024 * 1024

local function generation() return setmetatable({}, { __mode = "k" }) end

function encoded.new(bytes)
  return setmetatable({
    young = generation(),
    old = generation(),
    size = 0,
    limit = bytes or GENERATION_BYTES,
    count = 0,
  }, encoded)
end

local function remember(self, doc, form, text)
  if self.size + #text > self.limit then
    self.old, self.young, self.size = self.young, generation(), 0
  end
  local forms = self.young[doc] or {}
  self.young[doc] = forms
  forms[form] = text
  self.size = self.size + #text
end

--- The text of a document in one form; `encode(doc)` makes it if nobody asked of late.
function encoded:get(doc, form, encode)
  local young = self.young[doc]
  local text = young and young[form]
  if text then return text end
  local old = self.old[doc]
  text = old and old[form]
  if not text then
    text = encode(doc)
    self.count = self.count + 1
  end
  remember(self, doc, form, text)
  return text
end

return encoded
