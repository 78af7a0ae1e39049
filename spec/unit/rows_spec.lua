-- spec/README.md says which spec proves which row of the informer contract; here it is held to it.
local function read(path)
  local file = assert(io.open(path, "rb"), path)
  local text = file:read("*a")
  file:close()
  return text
end

-- Reading specs as Lua does, so that what only looks like one does not count.

-- What is at this place: "comment", "long" (a string in brackets), "string" or "code", and where it ends.
local function token(text, at)
  local head = text:match("^%-%-", at)
  local level = text:match("^%[(=*)%[", head and at + 2 or at)
  if level then
    local _, stop = text:find("]" .. level .. "]", at, true)
    return head and "comment" or "long", stop or #text
  end
  if head then return "comment", (text:find("\n", at, true) or #text + 1) - 1 end
  local quote = text:match("^[\"']", at)
  if not quote then return "code", (text:find("[%-%[\"']", at + 1) or #text + 1) - 1 end
  local stop = at + 1
  while stop < #text and text:sub(stop, stop) ~= quote do
    stop = stop + (text:sub(stop, stop) == "\\" and 2 or 1)
  end
  return "string", stop
end

local function tokens(text)
  local list, at = {}, 1
  while at <= #text do
    local kind, stop = token(text, at)
    local last, part = list[#list], text:sub(at, stop)
    if kind == "code" and last and last.kind == "code" then
      last.text = last.text .. part
    else
      list[#list + 1] = { kind = kind, text = part }
    end
    at = stop + 1
  end
  return list
end

-- The rows that a comment names, as a set.
local function rows_in(comment)
  local rows = {}
  local named = comment and comment.kind == "comment" and comment.text:match("^%-%-%s*rows? (%d[%d, ]*)")
  for row in (named or ""):gmatch("%d+") do rows[row] = true end
  return rows
end

-- How deep in parentheses a piece of code ends that begins so deep; 0 when it leaves them all on the way.
local function depth_behind(code, depth)
  for bracket in code:gmatch("[()]") do
    depth = depth + (bracket == "(" and 1 or -1)
    if depth == 0 then return 0 end
  end
  return depth
end

-- What a call does behind its title, from list[at]: nil when no function follows, or else the rows that a comment
-- names there, before the function or as the first thing in it.
local function behind_title(list, at, depth)
  local rows = {}
  for i = at, #list do
    local code = list[i].kind == "code" and list[i].text or ""
    local first = code:find("function()", 1, true)
    depth = depth_behind(code:sub(1, (first or 0) - 1), depth)
    if depth == 0 then return nil end
    for row in pairs(rows_in(list[i])) do rows[row] = true end
    if first then
      local empty = code:find("^%s*$", first + #"function()")
      for row in pairs(rows_in(empty and list[i + 1])) do rows[row] = true end
      return rows
    end
  end
end

-- The specs of a text: the rows behind each title. A title may be written in several strings.
local function specs_in(text)
  local specs, list = {}, tokens(text)
  for i, before in ipairs(list) do
    local call = before.kind == "code" and before.text:match("%f[%w_.:]it(%(+)$")
    local title, at = "", i + 1
    while call and list[at] and list[at].kind == "string" do
      title, at = title .. list[at].text:sub(2, -2), at + 1
      if not (list[at] and list[at].text:find("^%s*%.%.%s*$")) then break end
      at = at + 1
    end
    if call then specs[title] = behind_title(list, at, #call) end
  end
  return specs
end

local known = {}
local function specs_of(path)
  known[path] = known[path] or specs_in(read(path))
  return known[path]
end

describe("the map of the informer contract", function()
  local readme = assert(read("spec/README.md"):match("\n## The informer contract\n.*"))
  local stop = readme:find("\n## ", 5, true)
  readme = readme:sub(1, stop or #readme)

  -- Calls fn(row, reference, specs of the file, title) for each spec that is named; row is nil without a number.
  local function each_reference(fn)
    for line in readme:gmatch("[^\n]+") do
      local row = line:match("^| (%d+) |")
      for cell in line:gmatch("[^|]+") do
        for reference in (cell .. "<br>"):gmatch("%s*(.-)%s*<br>") do
          local file, title = reference:match("^(%l[%w]*/[%w_]+_spec%.lua): (.+)$")
          if file then fn(row, reference, specs_of("spec/" .. file), title) end
        end
      end
    end
  end

  it("names only specs that exist, and that run", function()
    local missing, count = {}, 0
    each_reference(function(_, reference, specs, title)
      count = count + 1
      if not specs[title] then missing[#missing + 1] = reference end
    end)
    assert.are.same({}, missing)
    assert.is_true(count > 150, "only " .. count .. " specs were found")
  end)

  it("has its rows in a comment behind each title", function()
    local missing, count = {}, 0
    each_reference(function(row, reference, specs, title)
      if not row then return end
      count = count + 1
      if not (specs[title] and specs[title][row]) then missing[#missing + 1] = row .. ": " .. reference end
    end)
    assert.are.same({}, missing)
    assert.is_true(count > 150, "only " .. count .. " specs were found")
  end)

  it("takes for a spec only what runs, and for its rows only what stands behind its title", function()
    local function it_says(text)
      local found = {}
      for title, rows in pairs(specs_in(text)) do
        local list = {}
        for row in pairs(rows) do list[#list + 1] = row end
        table.sort(list)
        found[#found + 1] = title .. ": " .. table.concat(list, " ")
      end
      return table.concat(found, "; ")
    end
    local dashes = "-" .. "-"
    assert.are.equal("a: 3", it_says('  it("a", function() ' .. dashes .. ' row 3\n'))
    assert.are.equal("a b: 3 41",
      it_says('it("a " ..\n  "b", function()\n    ' .. dashes .. ' rows 3, 41; more 5\n'))
    assert.are.equal("a: 3", it_says('it("a", ' .. dashes .. ' row 3\n  function() '))
    assert.are.equal("a %s: 3", it_says('it(("a %s"):format(x()), function() ' .. dashes .. ' row 3\n'))
    assert.are.equal("a: ", it_says('it("a", function()\n  call()\n  ' .. dashes .. ' row 3\n'))
    assert.are.equal("a: ", it_says('it("a", function() ' .. dashes .. ' 3\n'))
    for _, text in ipairs { 'pending("a", function() ', 'x.it("a", function() ', 'it("a") f(function() ',
      'wait("a", function() ', dashes .. ' it("a", function() ', dashes .. '[[ it("a", function() end) ]] ',
      'x = [==[\nit("a", function() ]==]',
      "x = '\\'it(\"a\", function() ' " } do
      assert.are.equal("", it_says(text .. dashes .. " row 3\n"), text)
    end
  end)

  it("has every row once, but for those that it leaves out on purpose", function()
    local left_out = { [28] = true, [31] = true, [47] = true, [48] = true, [79] = true }
    local seen, wrong = {}, {}
    for row in readme:gmatch("\n| (%d+) |") do seen[tonumber(row)] = (seen[tonumber(row)] or 0) + 1 end
    for row = 1, 83 do
      if seen[row] ~= (not left_out[row] and 1 or nil) then wrong[#wrong + 1] = row end
    end
    for row = 84, 101 do
      if seen[row] ~= 1 then wrong[#wrong + 1] = row end
    end
    assert.are.same({}, wrong)
  end)
end)
