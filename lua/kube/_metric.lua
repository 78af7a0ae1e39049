-- Metrics of a script: kube.metric.counter, .gauge and .histogram.
--
-- They live as long as the script does: its series leave /metrics when it ends.
local core = require("kube._core").metric
local declarations = require "kube._declared"
local errors = require "kube._error"
local options = require "kube._options"

local M = {}

-- Series of one metric, and metrics of one script: what comes from outside must not fill the memory.
local SERIES_MAX, METRICS_MAX = 10000, 1000

local DEFAULT_BUCKETS = { 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10 }

local RESERVED = { "moonwatch_", "process_", "reflector_", "informer_", "workqueue_", "rest_client_",
  "controller_runtime_", "leader_election_" }

local declared, declared_count = {}, 0

local function check_number(what, value)
  if type(value) ~= "number" then
    errors.misuse("%s takes a number, not %s", what, value == nil and "nothing" or "a " .. type(value))
  end
  if value ~= value then errors.misuse("%s takes a number, not NaN", what) end
  return value
end

-- ---- one series ----

--- One series: a metric with the values of its labels.
---@class kube.MetricChild
local Child = {}
Child.__index = Child

local function what_of(self, verb) return ("%s:%s()"):format(self._metric._name, verb) end

local function only(self, verb, ...)
  local kind = self._metric._kind
  for _, allowed in ipairs { ... } do
    if kind == allowed then return end
  end
  local instead = { counter = "inc", gauge = "set, inc or dec", histogram = "observe" }
  errors.misuse("%s is a %s and has no %s(): use %s", self._metric._name, kind, verb, instead[kind])
end

--- Adds n, 1 when it is not given.
---@param n? number not below 0 for a counter
function Child:inc(n)
  only(self, "inc", "counter", "gauge")
  n = n == nil and 1 or check_number(what_of(self, "inc"), n)
  if n < 0 and self._metric._kind == "counter" then
    errors.misuse("%s is a counter and cannot go down: inc(%s)", self._metric._name, n)
  end
  self._series:add(n)
end

--- Takes n away, 1 when it is not given.
---@param n? number
function Child:dec(n)
  only(self, "dec", "gauge")
  self._series:add(-(n == nil and 1 or check_number(what_of(self, "dec"), n)))
end

--- Sets a gauge.
---@param value number
function Child:set(value)
  only(self, "set", "gauge")
  self._series:set(check_number(what_of(self, "set"), value))
end

--- Counts a value into the buckets of a histogram.
---@param value number
function Child:observe(value)
  only(self, "observe", "histogram")
  self._series:observe(check_number(what_of(self, "observe"), value))
end

-- ---- a metric ----

--- A metric with its labels.
---@class kube.Metric
local Metric = {}
Metric.__index = Metric

local function label_text(self, name, value)
  local kind = type(value)
  if kind == "string" then
    if value:find("\0", 1, true) then errors.misuse("%s: the value of label '%s' has a NUL in it", self._name, name) end
    return value
  elseif kind == "number" or kind == "boolean" then
    return tostring(value)
  elseif value == nil then
    errors.misuse("%s: label '%s' has no value; it has the labels: %s", self._name, name,
      table.concat(self._labels, ", "))
  end
  errors.misuse("%s: the value of label '%s' must be a string, a number or a boolean, not a %s", self._name, name, kind)
end

local function values_of(self, labels)
  if labels == nil then labels = {} end
  if type(labels) ~= "table" then
    errors.misuse("%s: labels must be a table, not a %s", self._name, type(labels))
  end
  for name in pairs(labels) do
    if not self._is_label[name] then
      errors.misuse("%s has no label '%s'%s", self._name, tostring(name), #self._labels == 0 and "; it has none"
        or options.hint(tostring(name), self._is_label))
    end
  end
  local values = {}
  for i, name in ipairs(self._labels) do values[i] = label_text(self, name, labels[name]) end
  return values
end

--- The series of these labels, for repeated use.
---@param labels? table<string, string|number|boolean>
---@return kube.MetricChild
function Metric:labels(labels)
  local values = values_of(self, labels)
  local key = table.concat(values, "\0")
  local child = self._children[key]
  if child then return child end
  -- The core gives all that come now one series, "overflow".
  if self._count >= SERIES_MAX and self._overflow then return self._overflow end
  child = setmetatable({ _metric = self, _series = self._family:series(values) }, Child)
  if self._count >= SERIES_MAX then
    self._overflow = child
  else
    self._children[key], self._count = child, self._count + 1
  end
  return child
end

-- verb(labels, value), or verb(value) when there are no labels.
local function call(self, verb, labels, value)
  if value == nil and type(labels) ~= "table" then labels, value = nil, labels end
  local child = self:labels(labels)
  child[verb](child, value)
end

--- Adds n, 1 when it is not given: metric:inc({ code = 200 }, 2), metric:inc().
---@param labels? table<string, string|number|boolean>
---@param n? number
function Metric:inc(labels, n) call(self, "inc", labels, n) end

--- Takes n away from a gauge, 1 when it is not given.
---@param labels? table<string, string|number|boolean>
---@param n? number
function Metric:dec(labels, n) call(self, "dec", labels, n) end

--- Sets a gauge: metric:set({ node = "a" }, 3), metric:set(3).
---@param labels? table<string, string|number|boolean>
---@param value number
function Metric:set(labels, value) call(self, "set", labels, value) end

--- Counts a value into the buckets of a histogram.
---@param labels? table<string, string|number|boolean>
---@param value number
function Metric:observe(labels, value) call(self, "observe", labels, value) end

options.guard(Metric, "metric")
options.guard(Child, "metric:labels{...}")

-- ---- declaring them ----

local KNOWN = { name = "string", help = "string", labels = "table" }
local KNOWN_HISTOGRAM = { name = "string", help = "string", labels = "table", buckets = "table" }

local function check_list(what, list, kind)
  local n = 0
  for _ in pairs(list) do n = n + 1 end
  for i = 1, n do
    if type(list[i]) ~= kind then errors.misuse("%s must be a list of %ss", what, kind) end
  end
  return list
end

local function check_name(what, name)
  if not name then errors.misuse("%s needs a name", what) end
  for _, prefix in ipairs(RESERVED) do
    if name:sub(1, #prefix) == prefix then
      errors.misuse("%s: names that begin with %s are Moonwatch's own; begin with the name of your controller", what,
        prefix)
    end
  end
  for _, suffix in ipairs { "_bucket", "_sum", "_count" } do
    if name:sub(-#suffix) == suffix then
      errors.misuse("%s: %s is what Prometheus makes of a histogram; call it otherwise", what, name)
    end
  end
end

local function shape_of(kind, opts)
  return table.concat({ kind, table.concat(opts.labels, ","), table.concat(opts.buckets, ",") }, ";")
end

local function declare(kind, opts, ours)
  local what = "kube.metric." .. kind
  opts = options.check(what, opts, kind == "histogram" and KNOWN_HISTOGRAM or KNOWN)
  if not ours then check_name(what, opts.name) end
  opts = {
    name = opts.name, help = opts.help or "",
    labels = check_list(what .. ": labels", opts.labels or {}, "string"),
    buckets = check_list(what .. ": buckets",
      opts.buckets or (kind == "histogram" and DEFAULT_BUCKETS or {}), "number"),
  }
  local shape, known = shape_of(kind, opts), declared[opts.name]
  if known then
    if known._shape == shape then return known end
    errors.misuse("%s: %s was declared at %s with another type, other labels or other buckets", what, opts.name,
      known._place)
  end
  if declared_count >= METRICS_MAX then
    errors.misuse("%s: a script has at most %d metrics; tell things apart by labels", what, METRICS_MAX)
  end
  local family, why = core.new(kind, opts.name, opts.help, opts.labels, opts.buckets, SERIES_MAX)
  if not family then errors.misuse("%s: %s", what, why) end
  local metric = setmetatable({ _name = opts.name, _kind = kind, _shape = shape, _place = errors.place(),
    _family = family, _labels = {}, _is_label = {}, _children = {}, _count = 0 }, Metric)
  for i, label in ipairs(opts.labels) do metric._labels[i], metric._is_label[label] = label, true end
  if not ours then declarations.add("metrics", { name = opts.name, type = kind }) end
  declared[opts.name], declared_count = metric, declared_count + 1
  if #opts.labels == 0 then metric:labels() end
  return metric
end

--- A number that only grows. The same declaration again gives the same metric.
---@param opts { name: string, help?: string, labels?: string[] }
---@return kube.Metric
function M.counter(opts) return declare("counter", opts) end

--- A number that goes up and down.
---@param opts { name: string, help?: string, labels?: string[] }
---@return kube.Metric
function M.gauge(opts) return declare("gauge", opts) end

--- Values counted by size; buckets are their upper bounds, by default from 5 ms to 10 s.
---@param opts { name: string, help?: string, labels?: string[], buckets?: number[] }
---@return kube.Metric
function M.histogram(opts) return declare("histogram", opts) end

--- For modules of kube: the same, with names that scripts do not get.
---@param kind "counter"|"gauge"|"histogram"
---@param opts { name: string, help?: string, labels?: string[], buckets?: number[] }
---@return kube.Metric
function M.internal(kind, opts) return declare(kind, opts, true) end

return M
