-- How the commands that operate a running process write numbers and tables, for people.
local M = {}

--- "3m12s"; from a minute on without fractions.
---@param seconds number
---@return string
function M.duration(seconds)
  if seconds < 0 then seconds = 0 end
  if seconds < 0.001 then return ("%dus"):format(seconds * 1e6) end
  if seconds < 1 then return ("%dms"):format(seconds * 1e3) end
  if seconds < 60 then return (("%.1f"):format(seconds):gsub("%.0$", "")) .. "s" end
  local whole = math.floor(seconds)
  if whole < 3600 then return ("%dm%02ds"):format(whole / 60, whole % 60) end
  if whole < 86400 then return ("%dh%02dm"):format(whole / 3600, whole % 3600 / 60) end
  return ("%dd%02dh"):format(whole / 86400, whole % 86400 / 3600)
end

--- "1.5 MiB"
---@param bytes number
---@return string
function M.size(bytes)
  local units, i = { "B", "KiB", "MiB", "GiB", "TiB" }, 1
  while bytes >= 1024 and i < #units do
    bytes, i = bytes / 1024, i + 1
  end
  return ((i == 1 and "%d %s" or "%.1f %s"):format(bytes, units[i]):gsub("%.0 ", " "))
end

--- "1 key", "2 keys"
function M.count(n, what) return ("%d %s%s"):format(n, what, n == 1 and "" or "s") end

-- Letters, not bytes, so that columns stand below each other.
local function width(text)
  local _, continued = text:gsub("[\128-\191]", "")
  return #text - continued
end
M.width = width

--- Lines of a table; columns whose name begins with '>' are aligned right, the last one is not padded.
---@param columns string[]
---@param rows string[][]
---@param indent string
---@return string[]
function M.table(columns, rows, indent)
  local heads, widths, right = {}, {}, {}
  for i, name in ipairs(columns) do
    right[i] = name:sub(1, 1) == ">"
    heads[i] = right[i] and name:sub(2) or name
    widths[i] = width(heads[i])
    for _, row in ipairs(rows) do widths[i] = math.max(widths[i], width(row[i])) end
  end
  local lines = {}
  local function add(row)
    local cells = {}
    for i, cell in ipairs(row) do
      local fill = (" "):rep(widths[i] - width(cell))
      cells[i] = right[i] and fill .. cell or (i < #row and cell .. fill or cell)
    end
    lines[#lines + 1] = (indent .. table.concat(cells, "  "):gsub("%s+$", ""))
  end
  add(heads)
  for _, row in ipairs(rows) do add(row) end
  return lines
end

--- Each line of a text, with something before it.
function M.indent(text, by) return by .. (text:gsub("\n+$", ""):gsub("\n", "\n" .. by)) end

--- One line of what others wrote: nothing in it moves the cursor.
function M.clean(written) return (written:gsub("%s*\n%s*", " "):gsub("%c", "?")) end

--- Lines of a table of informers, below an empty one; none when there are none.
---@param informers table[] as GET /status has them
---@return string[]
function M.informers(informers)
  local rows = {}
  for i, one in ipairs(informers) do
    rows[i] = { one.name .. (one.namespace and " in " .. one.namespace or ""), one.synced and "yes" or "no",
      tostring(one.objects), M.size(one.bytes), tostring(one.events), M.clean(one.last_error or "") }
  end
  if not rows[1] then return {} end
  table.sort(rows, function(a, b) return a[1] < b[1] end)
  local lines = M.table({ "INFORMER", "SYNCED", ">OBJECTS", ">SIZE", ">EVENTS", "LAST ERROR" }, rows, "")
  table.insert(lines, 1, "")
  return lines
end

--- A text that is at most so wide.
function M.cut(line, columns)
  if width(line) <= columns then return line end
  local out, n = {}, 0
  for letter in line:gmatch("[%z\1-\127\192-\255][\128-\191]*") do
    n = n + 1
    if n >= columns then break end
    out[n] = letter
  end
  return table.concat(out) .. "~"
end

return M
