-- Media types: the Accept header taken apart, and JSON for human eyes.
local media = {}

-- "type/subtype;name=value" -> { type, subtype, params }.
local function clause(text)
  local full = text:match("^%s*([^;]-)%s*$") or text:match("^%s*([^;]-)%s*;")
  local kind, subtype = full:match("^([^/]*)/(.*)$")
  local params = {}
  for name, value in text:gmatch(";%s*([^=;%s]+)%s*=%s*([^;]-)%s*%f[;%z]") do params[name] = value end
  return { name = full, type = kind or full, subtype = subtype or "", params = params, q = tonumber(params.q) or 1 }
end

local function parse(header)
  local clauses = {}
  for text in header:gmatch("[^,]+") do
    local parsed = clause(text)
    parsed.order = #clauses
    clauses[#clauses + 1] = parsed
  end
  table.sort(clauses, function(a, b)
    if a.q ~= b.q then return a.q > b.q end
    if (a.type == "*") ~= (b.type == "*") then return b.type == "*" end
    if (a.subtype == "*") ~= (b.subtype == "*") then return b.subtype == "*" end
    return a.order < b.order
  end)
  return clauses
end

-- Clients send the same header again and again.
local KNOWN_MAX = 100
local known, known_count = {}, 0

--- The clauses of an Accept header, the preferred one first; shared, not to be changed.
function media.parse(header)
  local clauses = known[header]
  if clauses then return clauses end
  if known_count == KNOWN_MAX then known, known_count = {}, 0 end
  clauses = parse(header)
  known[header], known_count = clauses, known_count + 1
  return clauses
end

--- Whether a clause means this type.
function media.matches(parsed, kind, subtype)
  return (parsed.type == "*" or parsed.type == kind) and (parsed.subtype == "*" or parsed.subtype == subtype)
end

local OPEN, CLOSE = { ["{"] = true, ["["] = true }, { ["}"] = true, ["]"] = true }

-- The position of the quote that ends the string which begins at `at`.
local function string_end(text, at)
  repeat
    at = text:find('["\\]', at + 1)
    local escape = text:sub(at, at) == "\\"
    if escape then at = at + 1 end
  until not escape
  return at
end

--- Compact JSON with line breaks and two spaces per level.
function media.indent(text)
  local out, depth, at = {}, 0, 1
  local function put(piece) out[#out + 1] = piece end
  local function line() put("\n" .. ("  "):rep(depth)) end
  while true do
    local found = text:find('[%[%]{},:"]', at)
    if not found then break end
    put(text:sub(at, found - 1))
    local c = text:sub(found, found)
    at = found + 1
    if c == '"' then
      at = string_end(text, found) + 1
      put(text:sub(found, at - 1))
    elseif OPEN[c] and CLOSE[text:sub(at, at)] then
      put(text:sub(found, at))
      at = at + 1
    elseif OPEN[c] then
      put(c)
      depth = depth + 1
      line()
    elseif CLOSE[c] then
      depth = depth - 1
      line()
      put(c)
    elseif c == "," then
      put(c)
      line()
    else
      put(": ")
    end
  end
  put(text:sub(at))
  return table.concat(out)
end

return media
