-- Whether an applied configuration fits its schema: the errors that the server has for one that does
-- not, before anything is merged.
local atom = require "kube.sandbox.apply.atom"
local element = require "kube.sandbox.apply.path_element"
local gotext = require "kube.sandbox.patch.gotext"
local item = require "kube.sandbox.apply.item"
local json = require "kube.sandbox.json"

local check

-- Errors are put down where they are found; whoever led there adds what stands before their path.
local function report(errors, message, ...) errors[#errors + 1] = { path = "", message = message:format(...) } end

local function prefix(errors, from, text)
  for i = from, #errors do errors[i].path = text .. errors[i].path end
end

local IS_SCALAR = { number = true, cdata = true, string = true, boolean = true }

local function check_scalar(kind, value, errors)
  local given = type(value)
  if value == json.null then return end
  if kind == "numeric" then
    if given ~= "number" and given ~= "cdata" then
      report(errors, "expected numeric (int or float), got %s", gotext.type(value))
    end
  elseif kind == "string" then
    if given ~= "string" then report(errors, "expected string, got %s", gotext.wrapped(value)) end
  elseif kind == "boolean" then
    if given ~= "boolean" then report(errors, "expected boolean, got &{%s}", gotext.value(value)) end
  elseif not IS_SCALAR[given] then
    report(errors, "expected any scalar, got &{%s}", gotext.value(value))
  end
end

local function check_list(list, value, errors)
  if value == json.null then return end
  if not atom.array(value) then return report(errors, "expected list, got &{%s}", gotext.value(value)) end
  local seen, of_item = {}, atom.element(list)
  for i, v in ipairs(value) do
    local pe, problem
    if not list.atomic then
      pe, problem = item.element(list, v)
      if not pe then return report(errors, "element %d: %s", i - 1, problem) end
      if seen[pe] then report(errors, "duplicate entries for key %s", element.show(pe)) end
      seen[pe] = true
    end
    local before = #errors
    check(of_item, v, errors)
    if #errors > before then prefix(errors, before + 1, element.show(pe or "i:" .. (i - 1))) end
  end
end

local function check_map(map, value, errors)
  if value == json.null then return end
  if not atom.object(value) then return report(errors, "expected map, got &{%s}", gotext.value(value)) end
  local names = {}
  for name in pairs(value) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local before = #errors
    local of_member = atom.member(map, name)
    if of_member then check(of_member, value[name], errors) else report(errors, "field not declared in schema") end
    if #errors > before then prefix(errors, before + 1, "." .. name) end
    if not of_member then return end
  end
end

function check(self, value, errors)
  local kind = atom.kind(self, value)
  if kind == "map" then return check_map(self.map, value, errors) end
  if kind == "list" then return check_list(self.list, value, errors) end
  return check_scalar(self.scalar, value, errors)
end

--- nil when the document fits, else the text that says what does not.
return function(document, self)
  local errors = {}
  check(self, document, errors)
  if #errors == 0 then return nil end
  local texts = {}
  for i, e in ipairs(errors) do texts[i] = e.path == "" and e.message or e.path .. ": " .. e.message end
  if #texts == 1 then return texts[1] end
  return "errors:\n  " .. table.concat(texts, "\n  ")
end
