-- Whether an applied configuration fits its schema: the errors that the server has for one that does
-- not, before anything is merged.
local atom = require "kube.sandbox.apply.atom"
local element = require "kube.sandbox.apply.path_element"
local gotext = require "kube.sandbox.patch.gotext"
local item = require "kube.sandbox.apply.item"
local json = require "kube.sandbox.json"

local check

local function report(errors, path, message, ...)
  errors[#errors + 1] = { path = path, message = message:format(...) }
end

local IS_SCALAR = { number = true, cdata = true, string = true, boolean = true }

local function shown(value) return gotext.value(value) end

local function check_scalar(kind, value, path, errors)
  local given = type(value)
  if value == json.null then return end
  if kind == "numeric" then
    if given ~= "number" and given ~= "cdata" then
      report(errors, path, "expected numeric (int or float), got %s", gotext.type(value))
    end
  elseif kind == "string" then
    if given ~= "string" then report(errors, path, "expected string, got %s", gotext.wrapped(value)) end
  elseif kind == "boolean" then
    if given ~= "boolean" then report(errors, path, "expected boolean, got &{%s}", shown(value)) end
  elseif not IS_SCALAR[given] then
    report(errors, path, "expected any scalar, got &{%s}", shown(value))
  end
end

local function check_list(list, value, path, errors)
  if value == json.null then return end
  if not atom.array(value) then return report(errors, path, "expected list, got &{%s}", shown(value)) end
  local seen, of_item = {}, atom.element(list)
  for i, v in ipairs(value) do
    local pe, problem
    if list.atomic then
      pe = "i:" .. (i - 1)
    else
      pe, problem = item.element(list, v)
      if not pe then return report(errors, path, "element %d: %s", i - 1, problem) end
      if seen[pe] then report(errors, path, "duplicate entries for key %s", element.show(pe)) end
      seen[pe] = true
    end
    check(of_item, v, path .. element.show(pe), errors)
  end
end

local function check_map(map, value, path, errors)
  if value == json.null then return end
  if not atom.object(value) then return report(errors, path, "expected map, got &{%s}", shown(value)) end
  local names = {}
  for name in pairs(value) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local of_member = atom.member(map, name)
    if not of_member then return report(errors, path .. "." .. name, "field not declared in schema") end
    check(of_member, value[name], path .. "." .. name, errors)
  end
end

function check(self, value, path, errors)
  local kind = atom.kind(self, value)
  if kind == "map" then return check_map(self.map, value, path, errors) end
  if kind == "list" then return check_list(self.list, value, path, errors) end
  return check_scalar(self.scalar, value, path, errors)
end

--- nil when the document fits, else the text that says what does not.
return function(document, self)
  local errors = {}
  check(self, document, "", errors)
  if #errors == 0 then return nil end
  local texts = {}
  for i, e in ipairs(errors) do texts[i] = e.path == "" and e.message or e.path .. ": " .. e.message end
  if #texts == 1 then return texts[1] end
  return "errors:\n  " .. table.concat(texts, "\n  ")
end
