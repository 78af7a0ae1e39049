-- spec/README.md says which spec proves which row of the informer contract; here it is held to it.
local function read(path)
  local file = assert(io.open(path, "rb"), path)
  local text = file:read("*a")
  file:close()
  return text
end

-- A spec's text with titles that were written over two lines put together.
local function titles(path) return (read(path):gsub('"%s*%.%.%s*"', "")) end

describe("the map of the informer contract", function()
  local readme = assert(read("spec/README.md"):match("\n## The informer contract\n.*"))
  local stop = readme:find("\n## ", 5, true)
  readme = readme:sub(1, stop or #readme)

  it("names only specs that exist", function()
    local missing, count = {}, 0
    for cell in readme:gmatch("[^|\n]+") do
      for reference in (cell .. "<br>"):gmatch("%s*(.-)%s*<br>") do
        local file, title = reference:match("^(%l[%w]*/[%w_]+_spec%.lua): (.+)$")
        if file then
          count = count + 1
          if not titles("spec/" .. file):find('"' .. title .. '"', 1, true) then
            missing[#missing + 1] = reference
          end
        end
      end
    end
    assert.are.same({}, missing)
    assert.is_true(count > 150, "only " .. count .. " specs were found")
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
